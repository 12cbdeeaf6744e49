//! Forms that a person fills in while a handler waits.

use gander_domain::{Question, QuestionId, QuestionKind, QuestionOrigin};
use gander_store::clock::SystemIds;
use serde_json::{Map, Value, json};

/// A question to a person, as a form of named fields.
///
/// ```
/// use gander::Form;
///
/// let form = Form::new("Where should it be deployed?")
///     .text("host", "Name of the machine")
///     .choice("stage", "Which stage", ["test", "production"])
///     .boolean("restart", "Restart it afterwards");
/// assert_eq!(form.schema()["required"], serde_json::json!(["host", "stage", "restart"]));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Form {
    title: String,
    schema: Value,
}

/// What a person made of a form.
#[derive(Clone, Debug, PartialEq)]
pub enum FormAnswer {
    /// The fields by name.
    Accepted(Value),
    /// The person does not want to answer.
    Declined,
}

impl Form {
    /// A form without fields, under this title.
    pub fn new(title: impl Into<String>) -> Self {
        Self::from_schema(title, json!({ "type": "object", "properties": {}, "required": [] }))
    }

    /// A form for an object of this JSON Schema, whose properties are texts, numbers, booleans or enumerations.
    pub fn from_schema(title: impl Into<String>, schema: Value) -> Self {
        Self { title: title.into(), schema }
    }

    /// With a field for text.
    #[must_use]
    pub fn text(self, name: &str, description: &str) -> Self {
        self.with_field(name, json!({ "type": "string", "description": description }))
    }

    /// With a field for a number.
    #[must_use]
    pub fn number(self, name: &str, description: &str) -> Self {
        self.with_field(name, json!({ "type": "number", "description": description }))
    }

    /// With a field for yes or no.
    #[must_use]
    pub fn boolean(self, name: &str, description: &str) -> Self {
        self.with_field(name, json!({ "type": "boolean", "description": description }))
    }

    /// With a field for one of these values.
    #[must_use]
    pub fn choice<'a>(self, name: &str, description: &str, values: impl IntoIterator<Item = &'a str>) -> Self {
        let values: Vec<&str> = values.into_iter().collect();
        self.with_field(name, json!({ "type": "string", "description": description, "enum": values }))
    }

    /// The JSON Schema of an answer.
    pub fn schema(&self) -> &Value {
        &self.schema
    }

    fn with_field(mut self, name: &str, field: Value) -> Self {
        if let Some(properties) = self.schema.get_mut("properties").and_then(Value::as_object_mut) {
            properties.insert(name.to_owned(), field);
        }
        if let Some(required) = self.schema.get_mut("required").and_then(Value::as_array_mut) {
            required.push(json!(name));
        }
        self
    }

    pub(super) fn into_question(self, origin: QuestionOrigin) -> Question {
        new_form_question(self.title, QuestionKind::Form { schema: self.schema }, origin)
    }
}

impl FormAnswer {
    /// A field of the answer as text; none if it was declined or left out.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.fields()?.get(name)?.as_str()
    }

    /// All fields; none if it was declined.
    pub fn fields(&self) -> Option<&Map<String, Value>> {
        match self {
            Self::Accepted(value) => value.as_object(),
            Self::Declined => None,
        }
    }
}

pub(super) fn new_form_question(title: String, ask: QuestionKind, origin: QuestionOrigin) -> Question {
    Question {
        id: QuestionId::make(&mut SystemIds),
        call: None,
        title,
        ask,
        origin,
        fingerprint: None,
        plan: None,
        subagent: None,
        preview: Vec::new(),
        outward: None,
        meta: None,
    }
}
