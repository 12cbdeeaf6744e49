//! Reading JSON as clients send it: names in either spelling, `null` is nothing, and every wrong field is told.

use serde_json::{Map, Value};

use super::error::{Error, Violation};
use crate::key_case::snake_case;

/// A longer id is never repeated.
pub(super) const LONGEST_ID: usize = 256;

/// An object that is read field by field. Whatever is left over is nobody's business.
#[derive(Debug)]
pub(super) struct Reader {
    object: Map<String, Value>,
    path: String,
    violations: Vec<Violation>,
}

impl Reader {
    /// Reads the object at the root.
    pub(super) fn new(object: Map<String, Value>) -> Self {
        Self::at(object, String::new())
    }

    /// Reads an object that stands somewhere.
    pub(super) fn at(object: Map<String, Value>, path: String) -> Self {
        Self { object, path, violations: Vec::new() }
    }

    /// What was read, unless something was wrong.
    pub(super) fn finish<T>(self, value: T) -> Result<T, Error> {
        if self.violations.is_empty() { Ok(value) } else { Err(Error::invalid(self.violations)) }
    }

    /// What this reader and one further down found wrong belongs together.
    pub(super) fn absorb(&mut self, other: Self) {
        self.violations.extend(other.violations);
    }

    /// Something is wrong here.
    pub(super) fn complain(&mut self, field: &str, description: impl Into<String>) {
        let field = self.place(field);
        self.violations.push(Violation { field, description: description.into() });
    }

    /// Where a field stands.
    pub(super) fn place(&self, field: &str) -> String {
        if self.path.is_empty() { field.to_owned() } else { format!("{}.{field}", self.path) }
    }

    /// Takes a field, whichever way its name is spelled.
    pub(super) fn take(&mut self, name: &str) -> Option<Value> {
        let value = match self.object.remove(name) {
            Some(value) => Some(value),
            None => self.object.remove(&snake_case(name)),
        };
        value.filter(|value| !value.is_null())
    }

    pub(super) fn text(&mut self, name: &str) -> Option<String> {
        let value = self.take(name)?;
        if let Value::String(text) = value {
            Some(self.bounded(name, text))
        } else {
            self.wrong(name, "must be a string")
        }
    }

    /// A text that is there and not empty.
    pub(super) fn required(&mut self, name: &str) -> String {
        match self.take(name) {
            Some(Value::String(text)) if !text.is_empty() => self.bounded(name, text),
            Some(Value::String(_)) | None => self.wrong(name, "is required").unwrap_or_default(),
            Some(_) => self.wrong(name, "must be a string").unwrap_or_default(),
        }
    }

    /// Ids are kept and said back, so they have an end.
    fn bounded(&mut self, name: &str, text: String) -> String {
        if text.len() <= LONGEST_ID || !(name == "id" || name.ends_with("Id")) {
            return text;
        }
        self.complain(name, format!("has at most {LONGEST_ID} bytes"));
        String::new()
    }

    /// A text; an empty one is as good as none.
    pub(super) fn filled(&mut self, name: &str) -> Option<String> {
        self.text(name).filter(|text| !text.is_empty())
    }

    /// An integer, also one in quotes: addresses know only text.
    pub(super) fn integer(&mut self, name: &str) -> Option<i64> {
        let found = match self.take(name)? {
            Value::Number(number) => number.as_i64().or_else(|| whole(number.as_f64()?)),
            Value::String(text) => text.parse().ok(),
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
        };
        found.or_else(|| self.wrong(name, "must be an integer"))
    }

    pub(super) fn boolean(&mut self, name: &str) -> Option<bool> {
        match self.take(name)? {
            Value::Bool(value) => Some(value),
            Value::String(text) if text == "true" || text == "false" => Some(text == "true"),
            Value::Null | Value::Number(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => {
                self.wrong(name, "must be true or false")
            }
        }
    }

    pub(super) fn object(&mut self, name: &str) -> Option<Map<String, Value>> {
        let value = self.take(name)?;
        if let Value::Object(object) = value { Some(object) } else { self.wrong(name, "must be an object") }
    }

    pub(super) fn array(&mut self, name: &str) -> Vec<Value> {
        match self.take(name) {
            Some(Value::Array(values)) => values,
            None => Vec::new(),
            Some(_) => self.wrong(name, "must be an array").unwrap_or_default(),
        }
    }

    pub(super) fn texts(&mut self, name: &str) -> Vec<String> {
        let values = self.array(name);
        let count = values.len();
        let texts: Vec<String> = values
            .into_iter()
            .filter_map(|value| if let Value::String(text) = value { Some(text) } else { None })
            .collect();
        if texts.len() < count {
            self.complain(name, "must hold strings");
        }
        texts
    }

    fn wrong<T>(&mut self, name: &str, description: &str) -> Option<T> {
        self.complain(name, description);
        None
    }
}

#[expect(clippy::cast_possible_truncation, reason = "only whole numbers that fit are cast")]
fn whole(number: f64) -> Option<i64> {
    (number.fract() == 0.0 && number.abs() < 9e15).then_some(number as i64)
}
