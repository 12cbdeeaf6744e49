//! Two answers to one request, compared after what changes from run to run is replaced.

use std::collections::HashMap;

use serde_json::{Map, Value};
use uuid::Uuid;

/// Keys of pieces that the original knows before its model call ends. We know them when it has ended.
const LATE: [&str; 3] = ["modelVersion", "finishReason", "usageMetadata"];

/// Keys whose values are times.
const TIMES: [&str; 3] = ["timestamp", "lastUpdateTime", "createTime"];

/// Which id of a capture is which of ours.
#[derive(Default)]
pub struct Ids(HashMap<String, String>);

impl Ids {
    /// Learns from an answer and its counterpart.
    pub fn learn(&mut self, expected: &Value, found: &Value) {
        match (expected, found) {
            (Value::String(one), Value::String(other)) => {
                for (one, other) in ids(one).into_iter().zip(ids(other)) {
                    self.0.entry(one).or_insert(other);
                }
            }
            (Value::Array(one), Value::Array(other)) => {
                one.iter().zip(other).for_each(|(one, other)| self.learn(one, other));
            }
            (Value::Object(one), Value::Object(other)) => {
                for (key, one) in one {
                    self.learn(one, other.get(key).unwrap_or(&Value::Null));
                }
            }
            _ => {}
        }
    }

    /// A request with our ids in place of the captured ones.
    pub fn translate(&self, text: &str) -> String {
        ids(text).into_iter().fold(text.to_owned(), |text, id| match self.0.get(&id) {
            Some(ours) => text.replace(&id, ours),
            None => text,
        })
    }
}

/// An answer without what changes from run to run.
pub fn steady(value: &Value) -> Value {
    match value {
        Value::String(text) => Value::String(named(&hidden(text))),
        Value::Array(items) => items.iter().map(steady).collect(),
        Value::Object(fields) => Value::Object(steady_fields(fields)),
        plain @ (Value::Null | Value::Bool(_) | Value::Number(_)) => plain.clone(),
    }
}

fn steady_fields(fields: &Map<String, Value>) -> Map<String, Value> {
    let piece = fields.get("partial") == Some(&Value::Bool(true));
    let kept = fields.iter().filter(|(key, _)| !piece || !LATE.contains(&key.as_str()));
    let steady = |(key, value): (&String, &Value)| match (TIMES.contains(&key.as_str()), value) {
        (true, Value::Number(_)) => (key.clone(), Value::from(0)),
        _ => (named(&hidden(key)), steady(value)),
    };
    let mut fields: Map<String, Value> = kept.map(steady).collect();
    if let Some(Value::Array(events)) = fields.get_mut("events") {
        events.iter_mut().filter_map(Value::as_object_mut).for_each(stored);
    }
    fields.sort_keys();
    fields
}

/// Whether a stored event was told in pieces before is not kept.
fn stored(event: &mut Map<String, Value>) {
    if event.get("partial") == Some(&Value::Bool(false)) {
        event.remove("partial");
    }
}

/// Agents are called like their apps here; artifacts are at another address.
fn named(text: &str) -> String {
    text.replace("wire_agent", "wire").replace("res_agent", "resumable").replace("memory://", "gander://")
}

fn hidden(text: &str) -> String {
    ids(text).into_iter().fold(text.to_owned(), |text, id| text.replace(&id, "#"))
}

/// Every UUID in a text.
fn ids(text: &str) -> Vec<String> {
    let (mut found, mut from) = (Vec::new(), 0);
    while let Some(piece) = text.get(from..from + 36).or_else(|| text.get(from..).filter(|rest| rest.len() > 36)) {
        let id = piece.get(..36).filter(|id| Uuid::try_parse(id).is_ok());
        from += if id.is_some() { 36 } else { 1 };
        while !text.is_char_boundary(from) {
            from += 1;
        }
        found.extend(id.map(str::to_owned));
    }
    found
}
