//! Reading JSON as clients send it: names in either spelling, `null` is nothing, and every wrong field is told.

use serde_json::{Map, Value};

use super::error::{A2aError, FieldViolation};
use crate::key_case::snake_case;

/// A longer id is never repeated.
pub(super) const MAX_ID_LEN: usize = 256;

/// An object that is read field by field. Whatever is left over is nobody's business.
#[derive(Debug)]
pub(super) struct ObjectReader {
    object: Map<String, Value>,
    path: String,
    violations: Vec<FieldViolation>,
}

impl ObjectReader {
    /// Reads the object at the root.
    pub(super) fn new(object: Map<String, Value>) -> Self {
        Self::at_path(object, String::new())
    }

    /// Reads an object that stands somewhere.
    pub(super) fn at_path(object: Map<String, Value>, path: String) -> Self {
        Self { object, path, violations: Vec::new() }
    }

    /// What was read, unless something was wrong.
    pub(super) fn finish<T>(self, value: T) -> Result<T, A2aError> {
        if self.violations.is_empty() { Ok(value) } else { Err(A2aError::invalid_fields(self.violations)) }
    }

    /// What this reader and one further down found wrong belongs together.
    pub(super) fn absorb_violations(&mut self, other: Self) {
        self.violations.extend(other.violations);
    }

    /// Something is wrong here.
    pub(super) fn add_violation(&mut self, field: &str, description: impl Into<String>) {
        let field = self.field_path(field);
        self.violations.push(FieldViolation { field, description: description.into() });
    }

    /// Where a field stands.
    pub(super) fn field_path(&self, field: &str) -> String {
        if self.path.is_empty() { field.to_owned() } else { format!("{}.{field}", self.path) }
    }

    /// Takes a field, whichever way its name is spelled.
    pub(super) fn take_field(&mut self, name: &str) -> Option<Value> {
        let value = match self.object.remove(name) {
            Some(value) => Some(value),
            None => self.object.remove(&snake_case(name)),
        };
        value.filter(|value| !value.is_null())
    }

    pub(super) fn read_text(&mut self, name: &str) -> Option<String> {
        let value = self.take_field(name)?;
        if let Value::String(text) = value {
            Some(self.bounded_id(name, text))
        } else {
            self.wrong_type(name, "must be a string")
        }
    }

    /// A text that is there and not empty.
    pub(super) fn required_text(&mut self, name: &str) -> String {
        match self.take_field(name) {
            Some(Value::String(text)) if !text.is_empty() => self.bounded_id(name, text),
            Some(Value::String(_)) | None => self.wrong_type(name, "is required").unwrap_or_default(),
            Some(_) => self.wrong_type(name, "must be a string").unwrap_or_default(),
        }
    }

    /// Ids are kept and said back, so they have an end.
    fn bounded_id(&mut self, name: &str, text: String) -> String {
        if text.len() <= MAX_ID_LEN || !(name == "id" || name.ends_with("Id")) {
            return text;
        }
        self.add_violation(name, format!("has at most {MAX_ID_LEN} bytes"));
        String::new()
    }

    /// A text; an empty one is as good as none.
    pub(super) fn non_empty_text(&mut self, name: &str) -> Option<String> {
        self.read_text(name).filter(|text| !text.is_empty())
    }

    /// An integer, also one in quotes: addresses know only text.
    pub(super) fn read_integer(&mut self, name: &str) -> Option<i64> {
        let found = match self.take_field(name)? {
            Value::Number(number) => number.as_i64().or_else(|| object_whole_number(number.as_f64()?)),
            Value::String(text) => text.parse().ok(),
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
        };
        found.or_else(|| self.wrong_type(name, "must be an integer"))
    }

    pub(super) fn read_boolean(&mut self, name: &str) -> Option<bool> {
        match self.take_field(name)? {
            Value::Bool(value) => Some(value),
            Value::String(text) if text == "true" || text == "false" => Some(text == "true"),
            Value::Null | Value::Number(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => {
                self.wrong_type(name, "must be true or false")
            }
        }
    }

    pub(super) fn read_object(&mut self, name: &str) -> Option<Map<String, Value>> {
        let value = self.take_field(name)?;
        if let Value::Object(object) = value { Some(object) } else { self.wrong_type(name, "must be an object") }
    }

    pub(super) fn read_array(&mut self, name: &str) -> Vec<Value> {
        match self.take_field(name) {
            Some(Value::Array(values)) => values,
            None => Vec::new(),
            Some(_) => self.wrong_type(name, "must be an array").unwrap_or_default(),
        }
    }

    pub(super) fn read_texts(&mut self, name: &str) -> Vec<String> {
        let values = self.read_array(name);
        let count = values.len();
        let texts: Vec<String> = values
            .into_iter()
            .filter_map(|value| if let Value::String(text) = value { Some(text) } else { None })
            .collect();
        if texts.len() < count {
            self.add_violation(name, "must hold strings");
        }
        texts
    }

    fn wrong_type<T>(&mut self, name: &str, description: &str) -> Option<T> {
        self.add_violation(name, description);
        None
    }
}

#[expect(clippy::cast_possible_truncation, reason = "only whole numbers that fit are cast")]
fn object_whole_number(number: f64) -> Option<i64> {
    (number.fract() == 0.0 && number.abs() < 9e15).then_some(number as i64)
}
