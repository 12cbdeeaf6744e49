//! From YAML or JSON to a recipe, with errors that name the field.

use serde::de::{Deserialize as _, DeserializeOwned, Deserializer};
use serde_json::{Map, Value};

use super::{Flaw, Recipe, check};

/// Bytes of a recipe.
const LARGEST: usize = 256 << 10;

/// Items of one list.
const MOST: usize = 100;

/// Reads a recipe from the text of a file.
pub fn parse_recipe(text: &str) -> Result<Recipe, Flaw> {
    parse_whole_recipe(text).map(|(_, recipe)| recipe)
}

/// A recipe as the text of a file.
pub fn recipe_to_yaml(value: &Value) -> Result<String, Flaw> {
    serde_saphyr::to_string(value).map_err(|error| Flaw::new("recipe", error.to_string()))
}

/// The same, with everything that the file says.
pub fn parse_whole_recipe(text: &str) -> Result<(Value, Recipe), Flaw> {
    if text.len() > LARGEST {
        return Err(Flaw::new("recipe", format!("it is larger than {LARGEST} bytes: {}", text.len())));
    }
    let json = text.trim_start().starts_with('{').then(|| serde_json::from_str(text).ok()).flatten();
    let value: Value = match json {
        Some(value) => value,
        None => serde_saphyr::from_str_with_options(text, yaml_options())
            .map_err(|error| Flaw::new("recipe", unreadable_recipe_message(&error.to_string())))?,
    };
    let recipe = recipe_from_value(Value::clone(&value))?;
    Ok((value, recipe))
}

/// Reads a recipe that came as JSON.
pub fn recipe_from_value(value: Value) -> Result<Recipe, Flaw> {
    // Some files hold the recipe under a key of this name.
    let nested = value.as_object().filter(|fields| fields.len() == 1).and_then(|fields| fields.get("recipe")).cloned();
    let value = nested.unwrap_or(value);
    if value.to_string().len() > LARGEST {
        return Err(Flaw::new("recipe", format!("it is larger than {LARGEST} bytes")));
    }
    check::check_recipe_visible(&value)?;
    let Value::Object(fields) = value else { return Err(Flaw::new("recipe", "it is not a mapping of fields")) };
    let fields = RecipeFields(fields);
    let recipe = Recipe {
        version: fields.optional_field("version")?.unwrap_or_else(|| "1.0.0".to_owned()),
        title: fields.text_field("title")?,
        description: fields.text_field("description")?,
        instructions: fields.optional_field("instructions")?,
        prompt: fields.optional_field("prompt")?,
        parameters: fields.list_field("parameters")?,
        extensions: fields.list_field("extensions")?,
        settings: fields.optional_field("settings")?,
        response: fields.optional_field("response")?,
        retry: fields.optional_field("retry")?,
        sub_recipes: fields.list_field("sub_recipes")?,
        activities: fields.list_field("activities")?,
        author: fields.optional_field("author")?,
    };
    check::check_recipe(&recipe)?;
    Ok(recipe)
}

/// A recipe's fields. What is null is absent; what nobody knows is left alone.
struct RecipeFields(Map<String, Value>);

impl RecipeFields {
    fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    fn optional_field<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, Flaw> {
        self.get(name)
            .map(|value| T::deserialize(value).map_err(|error| Flaw::new(name, error.to_string())))
            .transpose()
    }

    fn text_field(&self, name: &str) -> Result<String, Flaw> {
        let text: Option<String> = self.optional_field(name)?;
        text.filter(|text| !text.trim().is_empty()).ok_or_else(|| Flaw::new(name, "it is missing"))
    }

    fn list_field<T: DeserializeOwned>(&self, name: &str) -> Result<Vec<T>, Flaw> {
        let Some(value) = self.get(name) else { return Ok(Vec::new()) };
        let items = value.as_array().ok_or_else(|| Flaw::new(name, "it is not a list"))?;
        if items.len() > MOST {
            return Err(Flaw::new(name, format!("it has more than {MOST} items: {}", items.len())));
        }
        let item = |(place, value): (usize, &Value)| {
            T::deserialize(value).map_err(|error| Flaw::new(format!("{name}[{place}]"), error.to_string()))
        };
        items.iter().enumerate().map(item).collect()
    }
}

/// A text, or a number or a truth in place of one: `default: 3` is written as often as `default: "3"`.
pub(super) fn deserialize_scalar_as_text<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<String>, D::Error> {
    match Option::<Value>::deserialize(deserializer)? {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(plain @ (Value::Bool(_) | Value::Number(_))) => Ok(Some(plain.to_string())),
        Some(Value::Array(_) | Value::Object(_)) => Err(serde::de::Error::custom("default: it is not a text")),
    }
}

/// Words such as `yes` and `no` are texts, as in goose.
fn yaml_options() -> serde_saphyr::Options {
    serde_saphyr::options! { strict_booleans: true }
}

/// The first line says what and where; a `{{` that is not quoted is the usual reason.
fn unreadable_recipe_message(error: &str) -> String {
    let line = error.lines().next().unwrap_or_default();
    format!("it is neither YAML nor JSON (a text that begins with {{{{ needs quotes): {line}")
}
