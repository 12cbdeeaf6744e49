//! The texts of a recipe as templates: `{{ name }}` and what else its language has, without files and without end.

use std::collections::{BTreeMap, HashSet};

use minijinja::{Environment, UndefinedBehavior};

use super::growth::{self, Limited};
use super::{Check, Flaw, Recipe, filters};

/// Steps that filling in one text may take.
const MAX_STEPS: usize = 20_000;

/// Steps times the longest value, in all texts of a recipe together: each step may go through all of one.
const MAX_WORK: usize = 512 << 20;

/// Bytes of a text that was filled in.
const MAX_OUTPUT_BYTES: usize = 512 << 10;

/// Every text of a recipe in which values are filled, with its field. Programs of extensions are none of them.
pub(super) fn template_texts(recipe: &Recipe) -> Vec<(String, &str)> {
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
pub(super) fn check_template(field: &str, text: &str, keys: &HashSet<&str>) -> Result<(), Flaw> {
    growth::check_template_growth(text).map_err(|reason| Flaw::new(field, reason))?;
    let environment = template_environment(MAX_STEPS);
    let template = environment.template_from_str(text).map_err(|error| template_flaw(field, &error))?;
    let mut names: Vec<String> = template.undeclared_variables(false).into_iter().collect();
    names.sort();
    match names.into_iter().find(|name| !keys.contains(name.as_str())) {
        Some(name) => Err(Flaw::new(field, format!("there is no parameter of this name: {name}"))),
        None => Ok(()),
    }
}

/// The names that a text uses.
pub(super) fn placeholder_names(text: &str) -> HashSet<String> {
    let environment = template_environment(MAX_STEPS);
    environment.template_from_str(text).map(|template| template.undeclared_variables(false)).unwrap_or_default()
}

/// Fills values in. `texts` is how many texts the recipe has: each may do its share of the work.
pub(super) fn render_template(
    field: &str,
    text: &str,
    values: &BTreeMap<String, minijinja::Value>,
    texts: usize,
) -> Result<String, Flaw> {
    if !text.contains("{{") && !text.contains("{%") && !text.contains("{#") {
        return Ok(text.to_owned());
    }
    growth::check_template_growth(text).map_err(|reason| Flaw::new(field, reason))?;
    let names = placeholder_names(text);
    let used = values.iter().filter(|(name, _)| names.contains(*name));
    let longest = used.filter_map(|(_, value)| value.as_str().map(str::len)).fold(text.len().max(1), usize::max);
    let environment = template_environment(MAX_STEPS.min(MAX_WORK / texts.max(1) / longest));
    let template = environment.template_from_str(text).map_err(|error| template_flaw(field, &error))?;
    let mut filled = Limited { bytes: Vec::new(), limit: MAX_OUTPUT_BYTES };
    template.render_captured_to(values.clone(), &mut filled).map_err(|error| template_flaw(field, &error))?;
    String::from_utf8(filled.bytes).map_err(|error| Flaw::new(field, format!("it cannot be filled in: {error}")))
}

fn template_environment(steps: usize) -> Environment<'static> {
    let mut environment = Environment::empty();
    filters::add_recipe_filters(&mut environment, MAX_OUTPUT_BYTES);
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_fuel(Some(steps as u64));
    environment
}

fn template_flaw(field: &str, error: &minijinja::Error) -> Flaw {
    // What the writer refused stands behind the engine's own words.
    let reason = std::error::Error::source(error).map(|source| format!(": {source}")).unwrap_or_default();
    Flaw::new(field, format!("it cannot be filled in: {error}{reason}"))
}
