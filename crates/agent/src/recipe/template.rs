//! The texts of a recipe as templates: `{{ name }}` and what else its language has, without files and without end.

use std::collections::{BTreeMap, HashSet};

use minijinja::{Environment, UndefinedBehavior};

use super::{Check, Flaw, Recipe};

/// Steps that filling in one text may take.
const FUEL: u64 = 20_000;

/// Bytes of a text that was filled in.
const LARGEST: usize = 512 << 10;

/// Every text of a recipe in which values are filled, with its field. Programs of extensions are none of them.
pub(super) fn texts(recipe: &Recipe) -> Vec<(String, &str)> {
    let mut texts: Vec<(String, &str)> = [("title", Some(&recipe.title)), ("description", Some(&recipe.description))]
        .into_iter()
        .chain([("instructions", recipe.instructions.as_ref()), ("prompt", recipe.prompt.as_ref())])
        .filter_map(|(field, text)| Some((field.to_owned(), text?.as_str())))
        .collect();
    texts.extend(
        recipe.activities.iter().enumerate().map(|(place, text)| (format!("activities[{place}]"), text.as_str())),
    );
    if let Some(retry) = &recipe.retry {
        let checks = retry.checks.iter().enumerate();
        texts.extend(
            checks
                .map(|(place, Check::Shell { command })| (format!("retry.checks[{place}].command"), command.as_str())),
        );
        texts.extend(retry.on_failure.iter().map(|command| ("retry.on_failure".to_owned(), command.as_str())));
    }
    for (place, sub) in recipe.sub_recipes.iter().enumerate() {
        let values = sub.values.iter().flatten().filter_map(|(key, value)| Some((key, value.as_str()?)));
        texts.extend(values.map(|(key, text)| (format!("sub_recipes[{place}].values.{key}"), text)));
    }
    texts
}

/// It is a template, and knows all its names.
pub(super) fn check(field: &str, text: &str, keys: &HashSet<&str>) -> Result<(), Flaw> {
    let environment = environment();
    let template = environment.template_from_str(text).map_err(|error| broken(field, &error))?;
    let mut names: Vec<String> = template.undeclared_variables(false).into_iter().collect();
    names.sort();
    match names.into_iter().find(|name| !keys.contains(name.as_str()) && !is_function(name)) {
        Some(name) => Err(Flaw::new(field, format!("there is no parameter of this name: {name}"))),
        None => Ok(()),
    }
}

/// The names that a text uses.
pub(super) fn names(text: &str) -> HashSet<String> {
    let environment = environment();
    environment.template_from_str(text).map(|template| template.undeclared_variables(false)).unwrap_or_default()
}

/// Fills values in.
pub(super) fn render(field: &str, text: &str, values: &BTreeMap<String, minijinja::Value>) -> Result<String, Flaw> {
    if !text.contains("{{") && !text.contains("{%") && !text.contains("{#") {
        return Ok(text.to_owned());
    }
    let environment = environment();
    let filled = environment.render_str(text, values.clone()).map_err(|error| broken(field, &error))?;
    match filled.len() <= LARGEST {
        true => Ok(filled),
        false => Err(Flaw::new(field, format!("it is larger than {LARGEST} bytes when filled in: {}", filled.len()))),
    }
}

fn environment() -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_fuel(Some(FUEL));
    environment.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
    // It makes long lists from short texts.
    environment.remove_global("range");
    environment
}

fn is_function(name: &str) -> bool {
    ["dict", "namespace", "debug"].contains(&name)
}

fn broken(field: &str, error: &minijinja::Error) -> Flaw {
    Flaw::new(field, format!("it cannot be filled in: {error}"))
}
