//! Renames the keys of a message, at every depth.

use serde_json::Value;

/// What a peer may put anything into: its keys are not ours to rename.
const OPAQUE_KEYS: [&str; 4] = ["_meta", "metadata", "rawInput", "rawOutput"];

/// All keys renamed, at every depth.
pub(super) fn rename_keys_deep(value: Value, rename: fn(&str) -> String) -> Value {
    match value {
        Value::Array(items) => Value::Array(items.into_iter().map(|item| rename_keys_deep(item, rename)).collect()),
        Value::Object(members) => {
            Value::Object(members.into_iter().map(|(key, value)| rename_key_of_member(key, value, rename)).collect())
        }
        plain @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => plain,
    }
}

fn rename_key_of_member(key: String, value: Value, rename: fn(&str) -> String) -> (String, Value) {
    match OPAQUE_KEYS.contains(&key.as_str()) {
        true if key.starts_with('_') => (key, value),
        true => (rename(&key), value),
        false => (rename(&key), rename_keys_deep(value, rename)),
    }
}
