//! A form that an agent wants filled in, or a page that it wants opened: one field after the other.

use gander_wire::jsonrpc::Responder;
use serde_json::{Map, Value, json};

use super::form_limits::Limits;
use crate::output::{clean_output_text, reveal_output_text};

/// A form that waits for a person.
pub(super) struct ChatForm {
    pub(super) responder: Responder,
    message: String,
    /// The page to open; without one there are fields.
    url: Option<String>,
    fields: Vec<FormField>,
    values: Map<String, Value>,
    /// The field that is asked for.
    current: usize,
}

/// What became of a typed line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Filled {
    /// The next field is asked for.
    Next,
    /// Everything is there.
    Done,
    /// This is wrong with it.
    Wrong(String),
}

#[derive(Debug)]
struct FormField {
    name: String,
    label: String,
    description: String,
    required: bool,
    default: Option<Value>,
    limits: Limits,
    kind: FieldKind,
}

#[derive(Debug, PartialEq)]
enum FieldKind {
    Text,
    Number { whole: bool },
    Boolean,
    Choice(Vec<String>),
    Choices(Vec<String>),
}

impl ChatForm {
    /// Reads `elicitation/create`.
    pub(super) fn new(responder: Responder, request: &Value) -> Self {
        let schema = &request["requestedSchema"];
        let required = |name: &str| schema["required"].as_array().is_some_and(|all| all.iter().any(|one| one == name));
        let properties = schema["properties"].as_object().into_iter().flatten();
        Self {
            responder,
            message: reveal_output_text(request["message"].as_str().unwrap_or_default()),
            url: request["url"].as_str().map(reveal_output_text),
            fields: properties.map(|(name, property)| read_form_field(name, property, required(name))).collect(),
            values: Map::new(),
            current: 0,
        }
    }

    /// What it is about, and what is asked for now.
    pub(super) fn lines(&self) -> Vec<String> {
        let mut lines: Vec<String> = self.message.lines().map(|line| format!("? {line}")).collect();
        match (&self.url, self.fields.get(self.current)) {
            (Some(url), _) => lines.extend([format!("  {url}"), "  enter: I have opened it, esc: no".to_owned()]),
            (None, Some(field)) => {
                let place = format!("  {} of {}: {}", self.current + 1, self.fields.len(), field.label);
                lines.push(if field.required { place } else { format!("{place} (optional)") });
                lines.extend((!field.description.is_empty()).then(|| format!("  {}", field.description)));
                lines.extend(field.hint());
            }
            (None, None) => lines.push("  enter: yes, esc: no".to_owned()),
        }
        lines
    }

    /// Takes in what was typed for the field that is asked for.
    pub(super) fn fill(&mut self, line: &str) -> Filled {
        let Some(field) = self.fields.get(self.current).filter(|_| self.url.is_none()) else { return Filled::Done };
        match field.read(line.trim()) {
            Ok(value) => {
                self.values.extend(value.map(|value| (field.name.clone(), value)));
                self.current += 1;
            }
            Err(reason) => return Filled::Wrong(reason),
        }
        if self.current < self.fields.len() { Filled::Next } else { Filled::Done }
    }

    /// What was filled in, as the protocol takes it.
    pub(super) fn into_response(self) -> (Responder, Value) {
        let response = match self.url {
            Some(_) => json!({ "action": "accept" }),
            None => json!({ "action": "accept", "content": self.values }),
        };
        (self.responder, response)
    }
}

impl FormField {
    fn hint(&self) -> Option<String> {
        let default = self.default.as_ref().map(|default| format!(" [{}]", clean_output_text(&default.to_string())));
        let limits = |unit: &str| self.limits.hint(unit);
        let text = match &self.kind {
            FieldKind::Text => limits("characters").unwrap_or_default(),
            FieldKind::Number { .. } => {
                limits("").map_or_else(|| "a number".to_owned(), |range| format!("a number, {range}"))
            }
            FieldKind::Boolean => "y or n".to_owned(),
            FieldKind::Choice(choices) => format!("one of: {}", choices.join(", ")),
            FieldKind::Choices(choices) => {
                let some = limits("values").unwrap_or_else(|| "one or more".to_owned());
                format!("{some}, separated by commas: {}", choices.join(", "))
            }
        };
        let text = format!("{text}{}", default.unwrap_or_default());
        (!text.is_empty()).then(|| format!("  {text}"))
    }

    fn read(&self, line: &str) -> Result<Option<Value>, String> {
        if line.is_empty() {
            return match (&self.default, self.required) {
                (Some(default), _) => Ok(Some(default.clone())),
                (None, true) => Err(format!("{} is required", self.label)),
                (None, false) => Ok(None),
            };
        }
        let known = |choices: &[String], value: &str| match choices.iter().any(|choice| choice == value) {
            true => Ok(json!(value)),
            false => Err(format!("not one of the choices: {}", clean_output_text(value))),
        };
        let value = match &self.kind {
            FieldKind::Text => {
                self.limits.check_text(line)?;
                json!(line)
            }
            FieldKind::Number { whole } => self.read_number(line, *whole)?,
            FieldKind::Boolean => match line.to_lowercase().as_str() {
                "y" | "yes" | "true" => json!(true),
                "n" | "no" | "false" => json!(false),
                _ => return Err("y or n".to_owned()),
            },
            FieldKind::Choice(choices) => known(choices, line)?,
            FieldKind::Choices(choices) => {
                let chosen: Vec<Value> =
                    line.split(',').map(|one| known(choices, one.trim())).collect::<Result<_, _>>()?;
                self.limits.check_count(chosen.len(), "values")?;
                Value::Array(chosen)
            }
        };
        Ok(Some(value))
    }

    fn read_number(&self, line: &str, whole: bool) -> Result<Value, String> {
        let wrong = if whole { "not a whole number" } else { "not a number" };
        let number = line.parse::<f64>().ok().filter(|number| number.is_finite()).ok_or(wrong)?;
        let value = match whole {
            true => json!(line.parse::<i64>().map_err(|_| wrong)?),
            false => json!(number),
        };
        self.limits.check_number(number).map(|()| value)
    }
}

fn read_form_field(name: &str, property: &Value, required: bool) -> FormField {
    let text = |key: &str| reveal_output_text(property[key].as_str().unwrap_or_default());
    let kind = match property["type"].as_str() {
        Some("boolean") => FieldKind::Boolean,
        Some("integer") => FieldKind::Number { whole: true },
        Some("number") => FieldKind::Number { whole: false },
        Some("array") => FieldKind::Choices(form_field_choices(&property["items"])),
        Some(_) | None if form_field_choices(property).is_empty() => FieldKind::Text,
        Some(_) | None => FieldKind::Choice(form_field_choices(property)),
    };
    let label = Some(text("title")).filter(|title| !title.is_empty()).unwrap_or_else(|| reveal_output_text(name));
    let default = property.get("default").filter(|default| !default.is_null()).cloned();
    let (description, limits) = (text("description"), Limits::new(property));
    FormField { name: name.to_owned(), label, description, required, default, limits, kind }
}

fn form_field_choices(property: &Value) -> Vec<String> {
    let named = property["oneOf"].as_array().or(property["anyOf"].as_array()).into_iter().flatten();
    let plain = property["enum"].as_array().into_iter().flatten();
    plain.chain(named.map(|one| &one["const"])).filter_map(Value::as_str).map(str::to_owned).collect()
}
