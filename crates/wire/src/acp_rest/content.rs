//! Parts of messages, both ways.

use gander_domain::{Part, ToolCall, ToolContent, ToolEnd, ToolResult};
use serde_json::{Map, Value, json};

use super::refusal::AcpRestError;
use super::types::{ContentEncoding, MessagePart};
use crate::check;

/// A part that the agent is shown.
pub fn read_acp_rest_part(part: &MessagePart) -> Result<Part, AcpRestError> {
    let MessagePart { name, content_type: mime, content, content_encoding, content_url, metadata } = part;
    if content.is_some() && content_url.is_some() {
        return Err(AcpRestError::invalid("only one of content or content_url can be given"));
    }
    if let Some(thought) = metadata.as_ref().and_then(acp_rest_trajectory_thought) {
        return Ok(Part::Thought { text: thought.or(content.as_deref()).unwrap_or_default().to_owned() });
    }
    if let Some(url) = content_url {
        let name = name.clone().unwrap_or_default();
        return Ok(Part::Link { uri: url.clone(), name, mime: Some(mime.clone()), more: None });
    }
    let content = content.clone().unwrap_or_default();
    let named = name.as_deref().is_some_and(|name| !name.is_empty());
    match content_encoding {
        ContentEncoding::Base64 => {
            let part = acp_rest_binary_part(name.clone(), mime, content);
            check::check_media(&part).map_err(|error| AcpRestError::invalid(error.to_string()))?;
            Ok(part)
        }
        ContentEncoding::Plain if !named && is_acp_rest_plain_text_part(mime) => Ok(Part::Text { text: content }),
        ContentEncoding::Plain => {
            let uri = name.clone().unwrap_or_default();
            Ok(Part::Resource { uri, mime: Some(mime.clone()), text: Some(content), blob: None })
        }
    }
}

/// A part as a client is shown it. `None` if it is told in another way.
pub fn acp_rest_message_part(part: &Part) -> Option<MessagePart> {
    let plain = MessagePart::text;
    Some(match part {
        Part::Text { text } => plain(text.clone()),
        Part::Thought { text } => acp_rest_thought_part(text.clone()),
        Part::Image { mime, data, uri } => acp_rest_encoded_part(mime, data, uri.as_deref()),
        Part::Audio { mime, data } => acp_rest_encoded_part(mime, data, None),
        Part::Link { uri, name, mime, .. } => MessagePart {
            name: Some(name.clone()).filter(|name| !name.is_empty()),
            content_type: mime.clone().unwrap_or_else(|| "application/octet-stream".to_owned()),
            content: None,
            content_url: Some(uri.clone()),
            ..plain(String::new())
        },
        Part::Resource { uri, mime, text, blob } => {
            acp_rest_resource_part(uri, mime.as_deref(), text.as_deref(), blob.as_deref())
        }
        Part::ToolUse { .. } | Part::ToolResult { .. } => return None,
        Part::Unknown(value) => MessagePart {
            content_type: "application/json".to_owned(),
            content: Some(value.to_string()),
            ..plain(String::new())
        },
    })
}

/// A thought, or a piece of one.
pub fn acp_rest_thought_part(text: String) -> MessagePart {
    acp_rest_trajectory_part(json!({ "kind": "trajectory", "message": text }))
}

/// A tool is wanted.
pub fn acp_rest_tool_call_part(call: &ToolCall) -> MessagePart {
    let (name, input) = (&call.name, acp_rest_keyed_object("value", &call.arguments));
    acp_rest_trajectory_part(
        json!({ "kind": "trajectory", "message": call.title, "tool_name": name, "tool_input": input }),
    )
}

/// What came of it.
pub fn acp_rest_tool_result_part(call: &ToolCall, result: &ToolResult) -> MessagePart {
    let output = result.raw.as_ref().map(|raw| acp_rest_keyed_object("value", raw)).unwrap_or_default();
    let mut output: Map<String, Value> = output;
    output.entry("status").or_insert_with(|| json!(acp_rest_tool_status(result.end)));
    let text = acp_rest_tool_text(&result.content);
    if !text.is_empty() {
        output.entry("text").or_insert(Value::String(text));
    }
    let (name, input) = (&call.name, acp_rest_keyed_object("value", &call.arguments));
    acp_rest_trajectory_part(
        json!({ "kind": "trajectory", "tool_name": name, "tool_input": input, "tool_output": output }),
    )
}

impl MessagePart {
    /// Words.
    pub fn text(text: String) -> Self {
        Self {
            name: None,
            content_type: "text/plain".to_owned(),
            content: Some(text),
            content_encoding: ContentEncoding::Plain,
            content_url: None,
            metadata: None,
        }
    }
}

fn acp_rest_trajectory_part(metadata: Value) -> MessagePart {
    let Value::Object(metadata) = metadata else { unreachable!("made of an object just now") };
    MessagePart { content: None, metadata: Some(metadata), ..MessagePart::text(String::new()) }
}

/// What a thought's metadata say: a trajectory of words, or the older form that names no kind.
fn acp_rest_trajectory_thought(metadata: &Map<String, Value>) -> Option<Option<&str>> {
    let is = |key: &str, value: &Value| metadata.get(key) == Some(value);
    let thought = is("kind", &json!("trajectory")) && metadata.get("tool_name").is_none_or(Value::is_null);
    (thought || is("thinking", &json!(true))).then(|| metadata.get("message").and_then(Value::as_str))
}

/// Media types that need no name of their own: a model reads them all the same.
fn is_acp_rest_plain_text_part(mime: &str) -> bool {
    mime.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("text/plain")
}

fn acp_rest_binary_part(name: Option<String>, mime: &str, data: String) -> Part {
    let mime = mime.to_owned();
    match mime.split('/').next() {
        Some("image") => Part::Image { mime, data, uri: name },
        Some("audio") if name.is_none() => Part::Audio { mime, data },
        Some(_) | None => {
            Part::Resource { uri: name.unwrap_or_default(), mime: Some(mime), text: None, blob: Some(data) }
        }
    }
}

fn acp_rest_encoded_part(mime: &str, data: &str, name: Option<&str>) -> MessagePart {
    MessagePart {
        name: name.map(str::to_owned).filter(|name| !name.is_empty()),
        content_type: mime.to_owned(),
        content: Some(data.to_owned()),
        content_encoding: ContentEncoding::Base64,
        ..MessagePart::text(String::new())
    }
}

fn acp_rest_resource_part(uri: &str, mime: Option<&str>, text: Option<&str>, blob: Option<&str>) -> MessagePart {
    if let Some(blob) = blob {
        return acp_rest_encoded_part(mime.unwrap_or("application/octet-stream"), blob, Some(uri));
    }
    MessagePart {
        name: Some(uri.to_owned()).filter(|uri| !uri.is_empty()),
        content_type: mime.unwrap_or("text/plain").to_owned(),
        ..MessagePart::text(text.unwrap_or_default().to_owned())
    }
}

/// Clients take nothing but an object here.
fn acp_rest_keyed_object(key: &str, value: &Value) -> Map<String, Value> {
    match value {
        Value::Object(object) => object.clone(),
        Value::Null => Map::new(),
        other @ (Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => {
            Map::from_iter([(key.to_owned(), other.clone())])
        }
    }
}

fn acp_rest_tool_status(end: ToolEnd) -> &'static str {
    match end {
        ToolEnd::Completed => "completed",
        ToolEnd::Failed => "failed",
        ToolEnd::Rejected => "rejected",
        ToolEnd::Cancelled => "cancelled",
        ToolEnd::Interrupted => "interrupted",
    }
}

fn acp_rest_tool_text(content: &[ToolContent]) -> String {
    let text = |content: &ToolContent| match content {
        ToolContent::Part { part: Part::Text { text } } => Some(text.clone()),
        ToolContent::Diff { path, .. } => Some(format!("changed {path}")),
        ToolContent::Part { .. } | ToolContent::Terminal { .. } => None,
    };
    content.iter().filter_map(text).collect::<Vec<_>>().join("\n")
}
