//! The dialect of Aptove's mobile clients.

use gander_domain::Policy;
use serde_json::{Map, Value, json};

use super::{dialect_result_object, dialect_session_update, dialect_stop_of_failed_run};
use crate::acp::error::STOP_REASON_META;
use crate::key_case::camel_case;

/// The config option by which text comes as it is written, or each message whole.
pub(in crate::acp) const STREAMING: &str = "streaming";

/// What its modes are called here, and the policy that comes with one.
pub(in crate::acp) fn aptove_mode_alias(mode: &str) -> Option<(&'static str, Option<Policy>)> {
    match mode {
        "plan" => Some(("planner", None)),
        "code" => Some(("backend", None)),
        "chat" => Some(("assistant", Some(Policy::ReadOnly))),
        _ => None,
    }
}

/// One message.
pub(super) fn translate_to_aptove(message: &mut Value, streams: bool) -> Option<()> {
    dialect_stop_of_failed_run(message);
    if let Some(update) = dialect_session_update(message) {
        *update = aptove_update(std::mem::take(update));
        if let Some(Value::Array(options)) = update.get_mut("configOptions") {
            options.push(aptove_streaming_option(streams));
        }
    } else if let Some(result) = dialect_result_object(message) {
        if let Some(stop) = result.get("_meta").and_then(|meta| meta.get(STOP_REASON_META)).cloned() {
            result.insert("stopReason".to_owned(), stop);
        }
        if let Some(mut options) = result.remove("configOptions") {
            if let Some(options) = options.as_array_mut() {
                options.push(aptove_streaming_option(streams));
            }
            result.insert("config".to_owned(), options);
        }
        if let Some(Value::Array(sessions)) = result.get_mut("sessions") {
            sessions.iter_mut().for_each(|session| *session = aptove_session(session));
        }
    }
    Some(())
}

fn aptove_streaming_option(streams: bool) -> Value {
    let choices = [("enabled", "As it is written"), ("disabled", "Whole messages")];
    json!({
        "id": STREAMING, "name": "Streaming", "type": "select",
        "currentValue": if streams { "enabled" } else { "disabled" },
        "options": choices.map(|(value, name)| json!({ "value": value, "name": name })),
    })
}

fn aptove_update(update: Map<String, Value>) -> Map<String, Value> {
    let rename = |(key, value): (String, Value)| match key.as_str() {
        "sessionUpdate" => ("type".to_owned(), aptove_camel_case(value)),
        "status" => (key, aptove_camel_case(value)),
        "content" => (key, aptove_bare_blocks(value)),
        _ => (key, value),
    };
    update.into_iter().map(rename).collect()
}

fn aptove_camel_case(value: Value) -> Value {
    value.as_str().map(|text| json!(camel_case(text))).unwrap_or(value)
}

/// What a tool shows are blocks without a wrapping.
fn aptove_bare_blocks(content: Value) -> Value {
    let bare = |mut item: Value| match item["type"].as_str() {
        Some("content") => item["content"].take(),
        Some(_) | None => item,
    };
    let Value::Array(items) = content else { return content };
    Value::Array(items.into_iter().map(bare).collect())
}

fn aptove_session(session: &Value) -> Value {
    json!({
        "sessionId": session["sessionId"],
        "name": session.get("title").unwrap_or(&session["cwd"]),
        "created": session["_meta"]["gander/createdAt"],
        "lastAccessed": session["updatedAt"],
    })
}
