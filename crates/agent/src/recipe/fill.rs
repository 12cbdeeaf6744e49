//! A recipe with its parameters filled in: nothing is left open, and no value becomes part of a command's grammar.

use std::collections::BTreeMap;

use gander_domain::sanitize;
use serde_json::Value;

use super::{Check, Flaw, InputType, Parameter, Recipe, Requirement, template};

/// Bytes of one value.
const MAX_VALUE_BYTES: usize = 256 << 10;

/// Values by parameter.
pub type Values = BTreeMap<String, String>;

/// What filling in may look at.
pub struct FillSources<'a> {
    /// The recipe's own folder, if it came from a file.
    pub folder: Option<&'a str>,
    /// Reads a file of the workspace.
    pub read: &'a dyn Fn(&str) -> Result<String, String>,
}

/// Fills in, or says which value is wrong or missing.
pub fn fill_recipe_parameters(recipe: &Recipe, given: &Values, ways: &FillSources<'_>) -> Result<Recipe, Flaw> {
    if let Some(unknown) = given.keys().find(|key| recipe.parameters.iter().all(|known| known.key != **key)) {
        let known: Vec<&str> = recipe.parameters.iter().map(|known| known.key.as_str()).collect();
        let reason = format!("unknown parameter, available: {}", known.join(", "));
        return Err(Flaw::new(sanitize::sanitized_line(unknown), reason));
    }
    let mut values = BTreeMap::new();
    let mut raw = Values::new();
    let mut missing = Vec::new();
    for parameter in &recipe.parameters {
        match given.get(&parameter.key).or(parameter.default.as_ref()) {
            Some(text) => {
                values.insert(parameter.key.clone(), parse_filled_parameter_value(parameter, text, ways)?);
                raw.insert(parameter.key.clone(), text.clone());
            }
            None if parameter.requirement == Requirement::Optional => {}
            None => missing.push(parameter.key.as_str()),
        }
    }
    if !missing.is_empty() {
        return Err(Flaw::new(
            "parameters",
            format!("missing required parameter (use --param NAME=VALUE): {}", missing.join(", ")),
        ));
    }
    let folder = ways.folder.unwrap_or(".");
    values.insert("recipe_dir".to_owned(), minijinja::Value::from(folder));
    render_filled_recipe(recipe, &values, &raw)
}

/// What a text means as a value of this type.
fn parse_filled_parameter_value(
    parameter: &Parameter,
    text: &str,
    ways: &FillSources<'_>,
) -> Result<minijinja::Value, Flaw> {
    let wrong = |reason: String| Flaw::new(parameter.key.clone(), reason);
    if text.len() > MAX_VALUE_BYTES {
        return Err(wrong(format!("its value is larger than {MAX_VALUE_BYTES} bytes: {}", text.len())));
    }
    if sanitize::has_hidden_chars(text) {
        return Err(wrong("its value holds characters that no reader sees".to_owned()));
    }
    match parameter.input_type {
        InputType::String => Ok(minijinja::Value::from(text)),
        InputType::Number => match text.trim().parse::<f64>() {
            // As it was written: 7 stays 7.
            Ok(number) if number.is_finite() => Ok(minijinja::Value::from(text.trim())),
            Ok(_) | Err(_) => Err(wrong(format!("it must be a number: {}", sanitize::sanitized_line(text)))),
        },
        InputType::Boolean => match text.trim() {
            "true" => Ok(minijinja::Value::from(true)),
            "false" => Ok(minijinja::Value::from(false)),
            other => Err(wrong(format!("it must be true or false: {}", sanitize::sanitized_line(other)))),
        },
        InputType::Date => match text.trim().parse::<jiff::civil::Date>() {
            Ok(date) => Ok(minijinja::Value::from(date.to_string())),
            Err(_) => Err(wrong(format!("it must be a day such as 2026-01-31: {}", sanitize::sanitized_line(text)))),
        },
        InputType::Select => match parameter.options.iter().flatten().any(|option| option == text) {
            true => Ok(minijinja::Value::from(text)),
            false => {
                let options = parameter.options.as_deref().unwrap_or_default().join(", ");
                Err(wrong(format!("it must be one of {options}: {}", sanitize::sanitized_line(text))))
            }
        },
        InputType::File => (ways.read)(text).map(minijinja::Value::from).map_err(wrong),
    }
}

fn render_filled_recipe(
    recipe: &Recipe,
    values: &BTreeMap<String, minijinja::Value>,
    raw: &Values,
) -> Result<Recipe, Flaw> {
    let texts = template::template_texts(recipe).len();
    let text = |field: &str, text: &str| template::render_template(field, text, values, texts);
    let maybe = |field: &str, given: &Option<String>| given.as_deref().map(|given| text(field, given)).transpose();
    let mut ready = recipe.clone();
    ready.title = text("title", &recipe.title)?;
    ready.description = text("description", &recipe.description)?;
    ready.instructions = maybe("instructions", &recipe.instructions)?;
    ready.prompt = maybe("prompt", &recipe.prompt)?;
    for (place, activity) in ready.activities.iter_mut().enumerate() {
        *activity = text(&format!("activities[{place}]"), activity)?;
    }
    if let Some(retry) = &mut ready.retry {
        for (place, Check::Shell { command }) in retry.checks.iter_mut().enumerate() {
            let field = format!("retry.checks[{place}].command");
            *command = filled_recipe_command_line(&field, command, values, raw, texts)?;
        }
        if let Some(command) = &mut retry.on_failure {
            *command = filled_recipe_command_line("retry.on_failure", command, values, raw, texts)?;
        }
    }
    for (place, sub) in ready.sub_recipes.iter_mut().enumerate() {
        for (key, value) in sub.values.iter_mut().flatten() {
            if let Value::String(given) = value {
                *given = text(&format!("sub_recipes[{place}].values.{key}"), given)?;
            }
        }
    }
    ready.parameters.clear();
    Ok(ready)
}

/// A value that a shell could take for more than a word has no place in a command.
fn filled_recipe_command_line(
    field: &str,
    command: &str,
    values: &BTreeMap<String, minijinja::Value>,
    raw: &Values,
    texts: usize,
) -> Result<String, Flaw> {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "_@%+=:,./-".contains(letter);
    for name in template::placeholder_names(command) {
        let Some(value) = raw.get(&name) else { continue };
        if value.starts_with('-') || !value.chars().all(plain) || value.contains("..") {
            let reason = format!("the value of {name} cannot stand in a command: {}", sanitize::sanitized_line(value));
            return Err(Flaw::new(field, reason));
        }
    }
    template::render_template(field, command, values, texts)
}
