//! A session begins to follow a recipe.

use gander_agent::recipe::{Recipe, Values};
use gander_domain::caller::Caller;
use gander_domain::{Command, ServiceError, SessionView, SettingsPatch};
use gander_mcp::{Reach, Spec};
use gander_runtime::hub::Ack;
use gander_tools::Guard;

use crate::errors::{
    service_error_from_denied, service_error_from_hub, service_error_from_recipe, service_error_from_store,
};
use crate::extensions::ExtensionEntry;
use crate::recipes::{RecipeExtensions, SessionRecipe, resolve_recipe_extensions};
use crate::{Services, extension_changes};

/// As large as a recipe may be.
const MAX_AMENDED_BYTES: usize = 256 << 10;

/// The recipe that a session is to follow.
#[derive(Clone, Debug, Default)]
pub struct ApplyRecipe {
    /// The recipe.
    pub recipe: Recipe,
    /// What is filled in.
    pub values: Values,
    /// Its folder, if it came from a file.
    pub folder: Option<String>,
    /// Extensions whose programs its user agreed to.
    pub approved: Vec<String>,
}

/// What a session that follows a recipe has.
#[derive(Clone, Debug, PartialEq)]
pub struct AppliedRecipe {
    /// The recipe, filled in.
    pub recipe: Recipe,
    /// What is asked first, if the recipe says.
    pub prompt: Option<String>,
    /// Extensions that are not to be had here.
    pub absent: Vec<String>,
}

/// Makes a session follow a recipe: its instructions and limits hold for every run from now on.
pub async fn apply_recipe(
    services: &Services,
    caller: &Caller,
    view: &SessionView,
    request: ApplyRecipe,
) -> Result<AppliedRecipe, ServiceError> {
    let ApplyRecipe { recipe, values, folder, approved } = request;
    let recipe = services.recipes.fill_recipe(&recipe, &values, &view.workspace, folder.as_deref()).await;
    let recipe = recipe.map_err(|flaw| service_error_from_recipe(&flaw))?;
    let wanted = approved_recipe_extensions(services, caller, &recipe, &approved)?;
    let patch = recipe_settings(services, &recipe)?;
    services
        .recipes
        .set_session_recipe(view.session, &SessionRecipe { recipe: recipe.clone(), folder })
        .await
        .map_err(|error| service_error_from_store(&error))?;
    let there = services.extensions.built_ins(view);
    for built_in in wanted.built_ins.into_iter().filter(|wanted| !there.is_enabled(*wanted)) {
        extension_changes::add_extension(
            services,
            caller,
            Some(view.session),
            built_in.name(),
            ExtensionEntry::built_in(),
        )
        .await?;
    }
    let servers = [wanted.programs, wanted.addresses].concat();
    if !servers.is_empty() {
        services.extensions.attach_session(view, servers);
    }
    let title = view.title.is_none().then(|| Command::SetTitle { title: recipe_session_title(&recipe) });
    let configure = (patch != SettingsPatch::default()).then_some(Command::Configure { patch });
    for command in configure.into_iter().chain(title) {
        let done = services.hub.execute_command(caller, view.session, command, Ack::Synced).await;
        done.map_err(|error| service_error_from_hub(view.session, &error))?;
    }
    let prompt = recipe.prompt.clone().filter(|prompt| !prompt.trim().is_empty());
    Ok(AppliedRecipe { recipe, prompt, absent: wanted.absent })
}

/// The recipe's extensions, if its user agreed to every program that they start.
fn approved_recipe_extensions(
    services: &Services,
    caller: &Caller,
    recipe: &Recipe,
    approved: &[String],
) -> Result<RecipeExtensions, ServiceError> {
    let anywhere = caller.may_name_program(services.remote_commands).is_ok();
    let reach = if anywhere { Reach::Anywhere } else { Reach::Guarded(Guard::default()) };
    let wanted = resolve_recipe_extensions(&services.extensions, recipe, &reach);
    match wanted
        .programs
        .iter()
        .find(|program| !(caller.may_name_program(false).is_ok() && approved.contains(&program.name)))
    {
        None => Ok(wanted),
        Some(Spec { name, .. }) => Err(ServiceError::BadParams(format!(
            "a recipe starts no program unasked: put it into the settings as [extensions.{name}], or run the recipe \
             with `gander run --recipe`, which asks: {name}"
        ))),
    }
}

/// Changes the recipe that a session follows, or has it follow one of only that. What is filled in stays as it is.
pub async fn amend_recipe(
    services: &Services,
    caller: &Caller,
    view: &SessionView,
    change: impl FnOnce(&mut Recipe),
) -> Result<(), ServiceError> {
    caller.may_prompt().map_err(service_error_from_denied)?;
    let store_failed = |error: &_| service_error_from_store(error);
    let followed = services.recipes.recipe_of_session(view.session).await.map_err(|error| store_failed(&error))?;
    let mut followed = followed.unwrap_or_else(|| SessionRecipe {
        recipe: Recipe { title: "Session".to_owned(), ..Recipe::default() },
        folder: Some(view.workspace.clone()),
    });
    change(&mut followed.recipe);
    let size = followed.recipe.to_json().to_string().len();
    if size > MAX_AMENDED_BYTES {
        return Err(ServiceError::BadParams(format!(
            "what a session is told must have at most {MAX_AMENDED_BYTES} bytes: {size}"
        )));
    }
    let kept = services.recipes.set_session_recipe(view.session, &followed).await;
    kept.map_err(|error| store_failed(&error))
}

/// The model that a recipe wants, and its limits. One that nobody here knows is refused: another would do something else.
fn recipe_settings(services: &Services, recipe: &Recipe) -> Result<SettingsPatch, ServiceError> {
    let wanted = recipe.settings.clone().unwrap_or_default();
    let model = match (wanted.goose_provider, wanted.goose_model) {
        (Some(provider), model) => {
            Some(services.models.qualified_name(&provider, model.as_deref()).ok_or_else(|| {
                ServiceError::BadParams(format!("settings.goose_provider: no such provider here: {provider}"))
            })?)
        }
        (None, Some(model)) if model.contains('/') => Some(model),
        (None, Some(_) | None) => None,
    };
    // From 0 to 2: the check of the recipe saw to that.
    let temperature = wanted.temperature.map(|degrees| (degrees * 100.0).round() as u16);
    Ok(SettingsPatch { model, temperature, max_turns: wanted.max_turns, ..SettingsPatch::default() })
}

fn recipe_session_title(recipe: &Recipe) -> String {
    let line: String = recipe.title.chars().filter(|letter| !letter.is_control()).take(200).collect();
    if line.trim().is_empty() { "Recipe".to_owned() } else { line.trim().to_owned() }
}
