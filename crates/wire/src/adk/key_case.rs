//! Keys of bodies, which clients write in camelCase or snake_case.

use serde_json::{Map, Value};

use crate::key_case::snake_case;

/// The value under a name in camelCase or snake_case.
pub fn either_key_case_field<'a>(object: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    object.get(name).or_else(|| object.get(&snake_case(name))).filter(|value| !value.is_null())
}

pub(super) fn is_either_key_case(name: &str, key: &str) -> bool {
    key == name || key == snake_case(name)
}
