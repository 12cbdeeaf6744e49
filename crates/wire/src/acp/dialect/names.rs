//! camelCase and `snake_case`, both ways.

use serde_json::Value;

/// What a peer may put anything into: its keys are not ours to rename.
const OPAQUE: [&str; 4] = ["_meta", "metadata", "rawInput", "rawOutput"];

/// A name in camelCase.
pub(super) fn camel(name: &str) -> String {
    let mut upper = false;
    let letters = name.chars().filter_map(|letter| match letter {
        '_' => {
            upper = true;
            None
        }
        _ if std::mem::take(&mut upper) => Some(letter.to_ascii_uppercase()),
        _ => Some(letter),
    });
    letters.collect()
}

/// A name in `snake_case`.
pub(super) fn snake(name: &str) -> String {
    let mut snake = String::with_capacity(name.len() + 4);
    for letter in name.chars() {
        if letter.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
    }
    snake
}

/// All keys renamed, at every depth.
pub(super) fn keys(value: Value, rename: fn(&str) -> String) -> Value {
    match value {
        Value::Array(items) => Value::Array(items.into_iter().map(|item| keys(item, rename)).collect()),
        Value::Object(members) => {
            Value::Object(members.into_iter().map(|(key, value)| member(key, value, rename)).collect())
        }
        plain @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => plain,
    }
}

fn member(key: String, value: Value, rename: fn(&str) -> String) -> (String, Value) {
    match OPAQUE.contains(&key.as_str()) {
        true if key.starts_with('_') => (key, value),
        true => (rename(&key), value),
        false => (rename(&key), keys(value, rename)),
    }
}
