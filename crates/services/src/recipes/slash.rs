//! Recipes that are called by a slash inside any conversation: their words stand in place of what was typed.

use std::sync::Arc;

use gander_agent::recipe::{Recipe, Values, recipe_from_value};
use gander_domain::{Part, Principal, ServiceError, SlashCommand, SlashCommandKind};
use serde_json::Value;

use super::Recipes;
use crate::errors::{service_error_from_recipe, service_error_from_store};

/// A recipe with a name of its own.
#[derive(Clone, Debug, PartialEq)]
pub struct SlashRecipe {
    /// What is typed after the slash.
    pub name: String,
    /// The recipe.
    pub recipe: Arc<Recipe>,
}

impl SlashRecipe {
    /// None if the recipe cannot be used any more.
    pub(super) fn new(name: &str, recipe: &Value) -> Option<Self> {
        let recipe = Arc::new(recipe_from_value(recipe.clone()).ok()?);
        Some(Self { name: name.to_owned(), recipe })
    }

    /// As a client is told of it.
    pub fn to_command(&self) -> SlashCommand {
        let keys: Vec<&str> = self.recipe.parameters.iter().map(|parameter| parameter.key.as_str()).collect();
        let hint = keys.iter().map(|key| format!("{key}=…")).collect::<Vec<_>>().join(" ");
        let (kind, name) = (SlashCommandKind::Recipe, self.name.clone());
        SlashCommand { kind, name, description: self.recipe.description.clone(), hint }
    }
}

/// What somebody calls by a slash.
pub(crate) async fn load_slash_recipes(
    recipes: &Recipes,
    principal: &Principal,
) -> Result<Arc<[SlashRecipe]>, ServiceError> {
    recipes.slash_recipes(principal).await.map_err(|error| service_error_from_store(&error))
}

/// What a person's prompt becomes: the name of a recipe becomes what that recipe says.
pub(crate) async fn expand_slash_recipe(
    recipes: &Recipes,
    principal: &Principal,
    workspace: &str,
    mut parts: Vec<Part>,
) -> Result<Vec<Part>, ServiceError> {
    let Some(Part::Text { text }) = parts.first() else { return Ok(parts) };
    let Some(line) = text.trim_start().strip_prefix('/') else { return Ok(parts) };
    let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let slashes = load_slash_recipes(recipes, principal).await?;
    let Some(slash) = slashes.iter().find(|slash| slash.name == name) else { return Ok(parts) };
    let filled =
        recipes.fill_recipe(&slash.recipe, &parse_slash_values(&slash.recipe, rest.trim()), workspace, None).await;
    parts[0] = Part::text(filled.map_err(|flaw| service_error_from_recipe(&flaw))?.all_text());
    Ok(parts)
}

/// `key=value` words; anything else is the first parameter, whole.
fn parse_slash_values(recipe: &Recipe, typed: &str) -> Values {
    let known = |key: &str| recipe.parameters.iter().any(|parameter| parameter.key == key);
    let pairs: Option<Values> = typed
        .split_whitespace()
        .map(|word| word.split_once('=').filter(|(key, _)| known(key)))
        .map(|pair| pair.map(|(key, value)| (key.to_owned(), value.to_owned())))
        .collect();
    match (pairs, recipe.parameters.first()) {
        (Some(pairs), _) => pairs,
        (None, Some(first)) => Values::from([(first.key.clone(), typed.to_owned())]),
        (None, None) => Values::new(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_typed_becomes_values() {
        let parameter = |key: &str| json!({"key": key, "input_type": "string", "requirement": "required"});
        let recipe = json!({"title": "t", "description": "d", "prompt": "{{ a }}{{ b }}",
            "parameters": [parameter("a"), parameter("b")]});
        let slash = SlashRecipe::new("go", &recipe).unwrap();
        let told = |typed: &str| {
            parse_slash_values(&slash.recipe, typed)
                .into_iter()
                .map(|(key, value)| format!("{key}:{value}"))
                .collect::<Vec<_>>()
        };
        assert_eq!(told("b=2 a=1"), ["a:1", "b:2"]);
        assert_eq!(told("two words"), ["a:two words"]);
        assert_eq!(told("x=1"), ["a:x=1"]);
        assert_eq!(told(""), Vec::<String>::new());
        assert_eq!(slash.to_command().hint, "a=… b=…");
    }
}
