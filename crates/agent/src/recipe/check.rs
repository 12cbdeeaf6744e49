//! What a recipe must be beyond its form: nothing hidden in it, every name known, every schema a schema.

use std::collections::HashSet;

use gander_domain::sanitize;
use serde_json::Value;

use super::{Check, Flaw, InputType, Parameter, Recipe, Requirement, template};

/// Refuses texts that hold what no reader sees.
pub(super) fn check_recipe_visible(value: &Value) -> Result<(), Flaw> {
    match recipe_hidden_characters(value) {
        Some(field) => Err(Flaw::new(field, "it holds characters that no reader sees")),
        None => Ok(()),
    }
}

/// The first field of a recipe whose name or text holds characters that no reader sees.
pub fn recipe_hidden_characters(value: &Value) -> Option<String> {
    fn check_recipe_schema(value: &Value, path: &str) -> Option<String> {
        match value {
            Value::String(text) => sanitize::has_hidden_chars(text).then(|| path.to_owned()),
            Value::Array(items) => items
                .iter()
                .enumerate()
                .find_map(|(place, item)| check_recipe_schema(item, &format!("{path}[{place}]"))),
            Value::Object(fields) => fields.iter().find_map(|(name, value)| {
                let path = if path.is_empty() {
                    sanitize::sanitized_line(name)
                } else {
                    format!("{path}.{}", sanitize::sanitized_line(name))
                };
                if sanitize::has_hidden_chars(name) { Some(path) } else { check_recipe_schema(value, &path) }
            }),
            Value::Null | Value::Bool(_) | Value::Number(_) => None,
        }
    }
    check_recipe_schema(value, "").map(|path| if path.is_empty() { "recipe".to_owned() } else { path })
}

/// Everything that can be said before a value is filled in.
pub(super) fn check_recipe(recipe: &Recipe) -> Result<(), Flaw> {
    if recipe.all_text().is_empty() {
        return Err(Flaw::new("prompt", "there is neither a prompt nor instructions"));
    }
    let mut keys = HashSet::new();
    for (place, parameter) in recipe.parameters.iter().enumerate() {
        let field = format!("parameters[{place}]");
        check_recipe_parameter(&field, parameter)?;
        if !keys.insert(parameter.key.as_str()) {
            return Err(Flaw::new(format!("{field}.key"), format!("there are two of this name: {}", parameter.key)));
        }
    }
    keys.insert("recipe_dir");
    for (field, text) in template::template_texts(recipe) {
        template::check_template(&field, text, &keys)?;
    }
    if let Some(schema) = recipe.response_schema() {
        let wrong = |error: String| Flaw::new("response.json_schema", format!("it is no JSON schema: {error}"));
        if !schema.is_object() {
            return Err(wrong("it is not an object".to_owned()));
        }
        jsonschema::validator_for(schema).map_err(|error| wrong(error.to_string()))?;
    }
    let temperature = recipe.settings.as_ref().and_then(|settings| settings.temperature);
    if temperature.is_some_and(|degrees| !(0.0..=2.0).contains(&degrees)) {
        return Err(Flaw::new("settings.temperature", "it must be from 0 to 2"));
    }
    check_recipe_extensions(recipe)?;
    check_recipe_retry(recipe)?;
    check_sub_recipes_of_recipe(recipe)
}

fn check_recipe_parameter(field: &str, parameter: &Parameter) -> Result<(), Flaw> {
    let Parameter { key, input_type, requirement, default, options, .. } = parameter;
    let first = key.chars().next().is_some_and(|letter| letter.is_ascii_alphabetic() || letter == '_');
    if !first || key.len() > 64 || !key.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_') {
        return Err(Flaw::new(format!("{field}.key"), format!("it is not a name of letters, digits and _: {key:?}")));
    }
    if *input_type == InputType::Select && options.as_ref().is_none_or(Vec::is_empty) {
        return Err(Flaw::new(format!("{field}.options"), "a parameter of type select needs them"));
    }
    if *input_type == InputType::File && default.is_some() {
        return Err(Flaw::new(
            format!("{field}.default"),
            "a parameter of type file has none: it would be read unasked",
        ));
    }
    if *requirement == Requirement::Optional && default.is_none() {
        return Err(Flaw::new(format!("{field}.default"), "an optional parameter needs one"));
    }
    Ok(())
}

fn check_recipe_extensions(recipe: &Recipe) -> Result<(), Flaw> {
    for (place, extension) in recipe.extensions.iter().enumerate() {
        let field = |name: &str| format!("extensions[{place}].{name}");
        match extension.kind.as_str() {
            "stdio" if extension.cmd.as_ref().is_none_or(|cmd| cmd.trim().is_empty()) => {
                return Err(Flaw::new(field("cmd"), "an extension of type stdio needs it"));
            }
            "streamable_http" if extension.uri.is_none() => {
                return Err(Flaw::new(field("uri"), "an extension of type streamable_http needs it"));
            }
            "stdio" | "streamable_http" | "builtin" | "platform" => {}
            other => return Err(Flaw::new(field("type"), format!("extensions of this type are not used: {other}"))),
        }
    }
    Ok(())
}

fn check_recipe_retry(recipe: &Recipe) -> Result<(), Flaw> {
    let Some(retry) = &recipe.retry else { return Ok(()) };
    if retry.max_retries > 20 {
        return Err(Flaw::new("retry.max_retries", format!("more than 20 are not tried: {}", retry.max_retries)));
    }
    if retry.checks.is_empty() || retry.checks.len() > 20 {
        return Err(Flaw::new("retry.checks", "there must be 1 to 20 of them"));
    }
    for (place, Check::Shell { command }) in retry.checks.iter().enumerate() {
        if command.trim().is_empty() {
            return Err(Flaw::new(format!("retry.checks[{place}].command"), "it is empty"));
        }
    }
    Ok(())
}

fn check_sub_recipes_of_recipe(recipe: &Recipe) -> Result<(), Flaw> {
    let mut names = HashSet::new();
    for (place, sub) in recipe.sub_recipes.iter().enumerate() {
        let field = |name: &str| format!("sub_recipes[{place}].{name}");
        let plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-');
        if sub.name.is_empty() || sub.name.len() > 50 || !sub.name.chars().all(plain) || sub.name.contains("__") {
            return Err(Flaw::new(field("name"), format!("it is not of letters, digits, _ and -: {:?}", sub.name)));
        }
        if !names.insert(sub.name.as_str()) {
            return Err(Flaw::new(field("name"), format!("there are two of this name: {}", sub.name)));
        }
        let path = sub.path.trim_start_matches("{{ recipe_dir }}").trim_start_matches("{{recipe_dir}}");
        let path = if path.len() < sub.path.len() { path.trim_start_matches('/') } else { path };
        let inside = std::path::Path::new(path)
            .components()
            .all(|part| matches!(part, std::path::Component::Normal(_) | std::path::Component::CurDir));
        if path.is_empty() || !inside || path.contains("{{") || path.contains("{%") {
            return Err(Flaw::new(
                field("path"),
                format!("it leads out of the recipe's folder: {}", sanitize::sanitized_line(&sub.path)),
            ));
        }
    }
    Ok(())
}
