//! `gander recipes`, and the recipe of `gander run`: found, checked, and agreed to before anything of it starts.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clap::Subcommand;
use gander::config::Config;
use gander_agent::recipe::{self, InputType, Parameter, Recipe, RecipeExtension, Requirement};
use gander_client::AgentConnection;
use gander_tools::extension_absence_reason;
use serde_json::{Map, Value, json};

use super::errors::message;
use super::{client, shell_completion};
use crate::commands::{Context, Exit};
use crate::output::{Output, clean_output_text, reveal_output_text};
use crate::terminal::list_table::print_list_table;
use crate::terminal::person::Person;

/// Where a project keeps its recipes.
const FOLDERS: [&str; 2] = [".gander/recipes", ".goose/recipes"];

/// Larger files are no recipes.
const LARGEST: u64 = 1 << 20;

#[derive(Debug, Subcommand)]
pub(super) enum RecipesCommand {
    /// List recipes: this folder's, your own, and those saved in the server
    List {
        /// One JSON object per line
        #[arg(long)]
        json: bool,
    },
    /// Print a recipe
    Show {
        /// A file, a name from `gander recipes list`, or a link
        #[arg(add = shell_completion::complete_all_recipes())]
        recipe: String,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Check recipes, and name the fields that are wrong
    Validate {
        /// Files, names from `gander recipes list`, or links
        #[arg(required = true, add = shell_completion::complete_all_recipes())]
        recipes: Vec<String>,
    },
    /// Save a recipe in the server, for every client; prints its id
    Save {
        /// A file, a name from `gander recipes list`, or a link
        #[arg(add = shell_completion::complete_all_recipes())]
        recipe: String,
        /// Also make it a slash command of this name
        #[arg(long, value_name = "NAME")]
        slash: Option<String>,
    },
    /// Delete a recipe that was saved in the server
    Delete {
        /// Its id, from `gander recipes list`
        #[arg(add = shell_completion::complete_saved_recipes())]
        id: String,
    },
}

/// A recipe that was found.
pub(super) struct FoundRecipe {
    pub(super) value: Value,
    pub(super) recipe: Recipe,
    pub(super) folder: Option<String>,
    pub(super) source: String,
}

pub(super) async fn run(context: Context, command: RecipesCommand) -> anyhow::Result<Exit> {
    let here = std::env::current_dir()?;
    match command {
        RecipesCommand::List { json } => list_recipes(&context, &here, json).await?,
        RecipesCommand::Show { recipe, json } => {
            let found = find_recipe(&context.config, &here, &recipe).await?;
            let text =
                if json { serde_json::to_string_pretty(&found.value)? } else { recipe::recipe_to_yaml(&found.value)? };
            context.output.line(clean_output_text(&text).trim_end())?;
        }
        RecipesCommand::Validate { recipes } => return validate_recipes(&context, &here, &recipes).await,
        RecipesCommand::Save { recipe, slash } => {
            let found = find_recipe(&context.config, &here, &recipe).await?;
            let mut connection = client::connect_client(&context.config, &here).await?;
            let saved =
                connection.call_method("_goose/unstable/recipes/save", &json!({ "recipe": found.value })).await?;
            if let Some(slash) = slash {
                let params = json!({ "id": saved["id"], "slashCommand": slash });
                connection.call_method("_goose/unstable/recipes/slash-command", &params).await?;
            }
            context.output.line(saved["id"].as_str().unwrap_or_default())?;
        }
        RecipesCommand::Delete { id } => {
            let mut connection = client::connect_client(&context.config, &here).await?;
            connection.call_method("_goose/unstable/recipes/delete", &json!({ "id": id })).await?;
            context.output.note(&format!("Deleted {}.", clean_output_text(&id)));
        }
    }
    Ok(Exit::Done)
}

async fn list_recipes(context: &Context, here: &Path, json: bool) -> anyhow::Result<()> {
    let mut recipes = Vec::new();
    for path in recipe_files(&context.config, here) {
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let mut listed = json!({ "name": name, "file": path });
        match read_recipe(&path) {
            Ok(found) => {
                listed["title"] = found.recipe.title.into();
                listed["description"] = found.recipe.description.into();
            }
            Err(error) => listed["error"] = message(&error).into(),
        }
        recipes.push(listed);
    }
    let mut connection = client::connect_client(&context.config, here).await?;
    let saved = connection.call_method("_goose/unstable/recipes/list", &json!({})).await?;
    recipes.extend(saved["manifests"].as_array().into_iter().flatten().map(|manifest| {
        let recipe = &manifest["recipe"];
        let (title, description) = (&recipe["title"], &recipe["description"]);
        let slash = manifest["slash_command"].as_str().map(|name| format!("/{name}"));
        json!({ "name": manifest["id"], "slashCommand": slash, "title": title, "description": description })
    }));
    if json {
        return Ok(recipes.iter().try_for_each(|recipe| context.output.line(&recipe.to_string()))?);
    }
    if recipes.is_empty() {
        context
            .output
            .note("No recipes yet: put one into .gander/recipes, or save one with `gander recipes save FILE`.");
        return Ok(());
    }
    let rows: Vec<Vec<String>> = recipes.iter().map(recipe_row).collect();
    Ok(print_list_table(context.output, &["NAME", "TITLE", "FROM", "DESCRIPTION"], &rows)?)
}

fn recipe_row(recipe: &Value) -> Vec<String> {
    let text = |name: &str| recipe[name].as_str().unwrap_or_default().to_owned();
    let from = match (recipe["file"].as_str(), recipe["slashCommand"].as_str()) {
        (Some(file), _) => file.to_owned(),
        (None, Some(slash)) => format!("saved, {slash}"),
        (None, None) => "saved".to_owned(),
    };
    let description = recipe["error"].as_str().map_or_else(|| text("description"), |error| format!("invalid: {error}"));
    vec![text("name"), text("title"), from, description]
}

async fn validate_recipes(context: &Context, here: &Path, recipes: &[String]) -> anyhow::Result<Exit> {
    let mut exit = Exit::Done;
    for name in recipes {
        let told = match find_recipe(&context.config, here, name).await {
            Ok(found) => format!("{name}: valid, \"{}\"", clean_output_text(&found.recipe.title)),
            Err(error) => {
                exit = Exit::Failed;
                format!("{name}: {}", reveal_output_text(&message(&error)))
            }
        };
        context.output.line(&told)?;
    }
    Ok(exit)
}

/// Finds a recipe: a link, a file, a name of one in the usual folders, or the id of one in the server.
pub(super) async fn find_recipe(config: &Config, here: &Path, name: &str) -> anyhow::Result<FoundRecipe> {
    if name.contains("recipe?config=") {
        let (value, recipe) = recipe::decode_recipe_link(name)?;
        return Ok(FoundRecipe { value, recipe, folder: None, source: "link".to_owned() });
    }
    let path = here.join(name);
    if path.is_file() {
        return read_recipe(&path);
    }
    let named = recipe_files(config, here).into_iter().find(|path| path.file_stem().is_some_and(|stem| stem == name));
    if let Some(path) = named {
        return read_recipe(&path);
    }
    if name.contains('/') || name.contains('.') {
        bail!("no such recipe: {name}");
    }
    let mut connection = client::connect_client(config, here).await?;
    let saved = connection.call_method("_goose/unstable/recipes/read", &json!({ "id": name })).await;
    let value = saved.with_context(|| format!("no such recipe: {name}"))?["recipe"].clone();
    let recipe = recipe::recipe_from_value(value.clone())?;
    Ok(FoundRecipe { value, recipe, folder: None, source: name.to_owned() })
}

fn read_recipe(path: &Path) -> anyhow::Result<FoundRecipe> {
    let path = path.canonicalize()?;
    if path.metadata()?.len() > LARGEST {
        bail!("too large for a recipe: {}", path.display());
    }
    let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let (value, recipe) =
        recipe::parse_whole_recipe(&text).with_context(|| format!("invalid recipe {}", path.display()))?;
    let folder = path.parent().map(|folder| folder.to_string_lossy().into_owned());
    Ok(FoundRecipe { value, recipe, folder, source: path.to_string_lossy().into_owned() })
}

/// Recipe files of the project and the owner's own.
pub(super) fn recipe_files(config: &Config, here: &Path) -> Vec<PathBuf> {
    let folders = FOLDERS.iter().map(|folder| here.join(folder)).chain(config.own.recipes.iter().cloned());
    let mut files = Vec::new();
    for folder in folders {
        let inside = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
        let known =
            |path: &PathBuf| path.extension().is_some_and(|end| ["yaml", "yml", "json"].iter().any(|x| end == *x));
        let mut found: Vec<PathBuf> = inside.filter(known).take(1_000).collect();
        found.sort();
        files.extend(found);
    }
    files
}

/// `key=value`, as it is given on the command line.
pub(super) fn recipe_values(params: &[String]) -> anyhow::Result<Map<String, Value>> {
    let pair = |param: &String| {
        let (key, value) = param.split_once('=').with_context(|| format!("not of the form key=value: {param}"))?;
        Ok((key.to_owned(), Value::from(value)))
    };
    params.iter().map(pair).collect()
}

/// Where a recipe is begun.
pub(super) struct RecipeStart<'a> {
    pub(super) context: &'a Context,
    /// The person at the terminal, if there is one: stdin has one reader.
    pub(super) person: Option<&'a mut Person>,
    pub(super) session: &'a str,
}

/// The session begins to follow the recipe; gives what is asked first.
pub(super) async fn apply_recipe_to_session(
    mut at: RecipeStart<'_>,
    connection: &mut AgentConnection,
    found: &FoundRecipe,
    params: &[String],
) -> anyhow::Result<Option<String>> {
    let values = at.values(&found.recipe, params).await?;
    let approved = at.approved(&found.recipe).await?;
    let wish = json!({
        "sessionId": at.session, "recipe": found.value, "values": values, "folder": found.folder, "approved": approved,
    });
    let begun = connection.call_method("_goose/unstable/recipes/apply", &wish).await?;
    for name in begun["absent"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        at.context
            .output
            .note(&format!("continuing without it, {}", clean_output_text(&extension_absence_reason(name))));
    }
    Ok(begun["prompt"].as_str().map(str::to_owned))
}

impl RecipeStart<'_> {
    /// What is filled in: as it was given, and what the person says to parameters that they are to be asked for.
    async fn values(&mut self, recipe: &Recipe, params: &[String]) -> anyhow::Result<Map<String, Value>> {
        let mut values = recipe_values(params)?;
        let asked = |parameter: &&Parameter| {
            let open = parameter.default.is_none() && !values.contains_key(&parameter.key);
            open && parameter.requirement == Requirement::UserPrompt
        };
        let asked: Vec<&Parameter> = recipe.parameters.iter().filter(asked).collect();
        for parameter in asked {
            let Some(person) = self.person.as_mut() else {
                let key = &parameter.key;
                bail!("the recipe asks for {key}, and nobody can be asked here: give it with --param {key}=…");
            };
            values.insert(
                parameter.key.clone(),
                Value::from(ask_recipe_parameter(self.context.output, person, parameter).await?),
            );
        }
        Ok(values)
    }

    /// The extensions whose programs the person at the terminal agrees to. Without one none is started.
    async fn approved(&mut self, recipe: &Recipe) -> anyhow::Result<Vec<String>> {
        let configured = |name: &str| self.context.config.extensions.iter().any(|spec| spec.name == name);
        let programs: Vec<&RecipeExtension> = recipe
            .extensions
            .iter()
            .filter(|extension| extension.kind == "stdio" && !configured(&extension.name))
            .collect();
        if programs.is_empty() {
            return Ok(Vec::new());
        }
        let Some(person) = self.person.as_mut() else {
            let names: Vec<&str> = programs.iter().map(|extension| extension.name.as_str()).collect();
            bail!(
                "the recipe would start programs, and nobody can be asked here: {}",
                reveal_output_text(&names.join(", "))
            );
        };
        let (output, mut approved) = (self.context.output, Vec::new());
        for extension in programs {
            let line = std::iter::once(extension.cmd.as_deref().unwrap_or_default())
                .chain(extension.args.iter().map(String::as_str));
            let line = line.collect::<Vec<_>>().join(" ");
            output.note(&format!(
                "? The recipe wants to start a program, {}: {}",
                reveal_output_text(&extension.name),
                reveal_output_text(&line)
            ));
            output.aside("Start it? [y/n] > ");
            match person.line().await.as_deref().map(str::trim) {
                Some("yes" | "y") => approved.push(extension.name.clone()),
                Some(_) | None => bail!("not started: {}", reveal_output_text(&extension.name)),
            }
        }
        Ok(approved)
    }
}

/// What the person says to one parameter. They are asked until they say something that it can be.
async fn ask_recipe_parameter(output: Output, person: &mut Person, parameter: &Parameter) -> anyhow::Result<String> {
    let about = if parameter.description.is_empty() { &parameter.key } else { &parameter.description };
    output.note(&format!("? {} ({})", reveal_output_text(about), parameter.key));
    let options = parameter.options.as_deref().filter(|_| parameter.input_type == InputType::Select);
    if let Some(options) = options {
        output.note(&format!("  one of {}", reveal_output_text(&options.join(", "))));
    }
    loop {
        output.aside("  > ");
        let Some(line) = person.line().await else { bail!("no value was given for {}", parameter.key) };
        let line = line.trim();
        if !line.is_empty() && options.is_none_or(|options| options.iter().any(|option| option == line)) {
            return Ok(line.to_owned());
        }
    }
}
