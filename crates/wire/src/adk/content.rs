//! Parts of a message, in and out.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use gander_domain::{Part, ToolCallId, ToolContent, ToolEnd, ToolResult};
use serde_json::{Map, Value, json};

use super::key_case::{either_key_case_field, is_either_key_case};
use super::part_check::{WrongMember, check_adk_part_member};
use super::refusal::AdkBodyProblem;
use crate::check;

/// Keys of a part that clients send. Others are refused, as the original does.
const KNOWN_PART_KEYS: [&str; 14] = [
    "text",
    "thought",
    "thoughtSignature",
    "inlineData",
    "fileData",
    "functionCall",
    "functionResponse",
    "executableCode",
    "codeExecutionResult",
    "videoMetadata",
    "mediaResolution",
    "toolCall",
    "toolResponse",
    "partMetadata",
];

/// Keys of data inside a part.
const BLOB_KEYS: [&str; 3] = ["data", "displayName", "mimeType"];

/// What a client answered in a function's place.
#[derive(Clone, Debug, PartialEq)]
pub struct FunctionResponse {
    /// Of which call.
    pub id: String,
    /// Of which function.
    pub name: String,
    /// The answer.
    pub response: Value,
}

/// A part as a client sent it.
#[derive(Clone, Debug, PartialEq)]
pub enum SentPart {
    /// Something said.
    Part(Part),
    /// An answer.
    Response(FunctionResponse),
}

/// What a client sent. `location` is the way to it.
pub fn read_adk_part(value: &Value, location: &[Value]) -> Result<Option<SentPart>, Box<AdkBodyProblem>> {
    let bad = |kind, more: &[&str], message: String, input: &Value| {
        let location = location.iter().cloned().chain(more.iter().copied().map(Value::from)).collect();
        Box::new(AdkBodyProblem { kind, location, message, input: input.clone() })
    };
    let Some(object) = value.as_object() else {
        return Err(bad("model_attributes_type", &[], "Input should be a valid dictionary".to_owned(), value));
    };
    if let Some((key, found)) =
        object.iter().find(|(key, _)| !KNOWN_PART_KEYS.iter().any(|known| is_either_key_case(known, key)))
    {
        return Err(bad("extra_forbidden", &[key], "Extra inputs are not permitted".to_owned(), found));
    }
    if let Some(WrongMember { kind, path, message, found }) = check_adk_part_member(object) {
        return Err(bad(kind, &path, message, found));
    }
    let thought = either_key_case_field(object, "thought") == Some(&Value::Bool(true));
    if let Some(text) = either_key_case_field(object, "text") {
        let Some(text) = text.as_str() else {
            return Err(bad("string_type", &["text"], "Input should be a valid string".to_owned(), text));
        };
        let text = text.to_owned();
        return Ok(Some(SentPart::Part(if thought { Part::Thought { text } } else { Part::Text { text } })));
    }
    if let Some(data) = either_key_case_field(object, "inlineData").and_then(Value::as_object) {
        // A size that it claims is not there to be believed.
        if let Some((key, found)) =
            data.iter().find(|(key, _)| !BLOB_KEYS.iter().any(|known| is_either_key_case(known, key)))
        {
            return Err(bad(
                "extra_forbidden",
                &["inlineData", key],
                "Extra inputs are not permitted".to_owned(),
                found,
            ));
        }
        let part = adk_inline_data_part(data).ok_or_else(|| {
            bad("value_error", &["inlineData"], "Input should be base64 with a media type".to_owned(), &Value::Null)
        })?;
        check::check_media(&part)
            .map_err(|error| bad("value_error", &["inlineData"], error.to_string(), &Value::Null))?;
        return Ok(Some(SentPart::Part(part)));
    }
    if let Some(file) = either_key_case_field(object, "fileData").and_then(Value::as_object) {
        return Ok(adk_file_data_part(file).map(SentPart::Part));
    }
    if let Some(response) = either_key_case_field(object, "functionResponse").and_then(Value::as_object) {
        let text = |name| either_key_case_field(response, name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let answer = either_key_case_field(response, "response").cloned().unwrap_or(Value::Null);
        let response = FunctionResponse { id: text("id"), name: text("name"), response: answer };
        return Ok(Some(SentPart::Response(response)));
    }
    Ok((!object.is_empty()).then(|| SentPart::Part(Part::Unknown(value.clone()))))
}

/// What somebody said, as a part of this protocol.
pub fn write_adk_part(part: &Part) -> Value {
    match part {
        Part::Text { text } => json!({ "text": text }),
        Part::Thought { text } => json!({ "text": text, "thought": true }),
        Part::Image { mime, data, uri } => adk_inline_data_object(mime, data, uri.as_deref()),
        Part::Audio { mime, data } => adk_inline_data_object(mime, data, None),
        Part::Link { uri, name, mime, .. } => {
            let mut file = json!({ "fileUri": uri });
            if !name.is_empty() {
                file["displayName"] = json!(name);
            }
            if let Some(mime) = mime {
                file["mimeType"] = json!(mime);
            }
            json!({ "fileData": file })
        }
        Part::Resource { text: Some(text), .. } => json!({ "text": text }),
        Part::Resource { uri, mime, blob: Some(blob), .. } => {
            adk_inline_data_object(mime.as_deref().unwrap_or("application/octet-stream"), blob, Some(uri))
        }
        Part::Resource { uri, .. } => json!({ "fileData": { "fileUri": uri } }),
        Part::ToolUse { call, name, arguments } => {
            adk_function_call_part(&adk_function_call_id(*call), name, arguments)
        }
        Part::ToolResult { call, result } => {
            adk_function_response_part(&adk_function_call_id(*call), "tool", &adk_tool_response(result))
        }
        Part::Unknown(value) if has_known_adk_part_keys(value) => value.clone(),
        Part::Unknown(value) => json!({ "text": value.to_string() }),
    }
}

/// A call of a function.
pub fn adk_function_call_part(id: &str, name: &str, arguments: &Value) -> Value {
    let args = if arguments.is_object() { arguments.clone() } else { json!({ "input": arguments }) };
    json!({ "functionCall": { "id": id, "args": args, "name": name } })
}

/// What a function gave back.
pub fn adk_function_response_part(id: &str, name: &str, response: &Value) -> Value {
    json!({ "functionResponse": { "id": id, "name": name, "response": response } })
}

/// A tool's result as the object that this protocol wants.
pub fn adk_tool_response(result: &ToolResult) -> Value {
    match result.end {
        ToolEnd::Completed => match &result.raw {
            Some(Value::Object(raw)) => with_adk_tool_text(raw.clone(), result),
            Some(raw) => json!({ "result": raw }),
            None => json!({ "result": adk_tool_text(result) }),
        },
        ToolEnd::Rejected => json!({ "error": "This tool call is rejected." }),
        ToolEnd::Failed => json!({ "error": adk_tool_text(result) }),
        ToolEnd::Cancelled => json!({ "error": "This tool call was cancelled." }),
        ToolEnd::Interrupted => json!({ "error": "This tool call was interrupted, its outcome is unknown." }),
    }
}

/// A tool's own object, and what it said beside it: an exit code alone tells nobody what a command printed.
fn with_adk_tool_text(mut raw: Map<String, Value>, result: &ToolResult) -> Value {
    let words = adk_tool_text(result);
    if !words.is_empty() {
        raw.entry("result").or_insert_with(|| words.into());
    }
    Value::Object(raw)
}

/// How a call is named here.
pub fn adk_function_call_id(call: ToolCallId) -> String {
    format!("adk-{call}")
}

/// Both alphabets, padded rightly or not at all, as standard base64.
pub fn normalize_adk_base64(text: &str) -> Option<String> {
    let bare = text.trim_end_matches('=');
    let padding = text.len() - bare.len();
    if padding > 0 && (padding > 2 || !text.len().is_multiple_of(4)) {
        return None;
    }
    let bare: String = bare.chars().map(adk_from_url_safe_base64).collect();
    Some(STANDARD.encode(URL_SAFE_NO_PAD.decode(bare).ok()?))
}

fn adk_from_url_safe_base64(letter: char) -> char {
    match letter {
        '+' => '-',
        '/' => '_',
        other => other,
    }
}

fn adk_inline_data_part(data: &Map<String, Value>) -> Option<Part> {
    let mime = either_key_case_field(data, "mimeType")
        .and_then(Value::as_str)
        .unwrap_or("application/octet-stream")
        .to_owned();
    let name = either_key_case_field(data, "displayName").and_then(Value::as_str).map(str::to_owned);
    let data = normalize_adk_base64(either_key_case_field(data, "data")?.as_str()?)?;
    Some(match mime.split('/').next() {
        Some("image") => Part::Image { mime, data, uri: name },
        Some("audio") => Part::Audio { mime, data },
        Some(_) | None => {
            Part::Resource { uri: name.unwrap_or_default(), mime: Some(mime), text: None, blob: Some(data) }
        }
    })
}

fn adk_file_data_part(file: &Map<String, Value>) -> Option<Part> {
    let text = |name| either_key_case_field(file, name).and_then(Value::as_str).map(str::to_owned);
    Some(Part::Link {
        uri: text("fileUri")?,
        name: text("displayName").unwrap_or_default(),
        mime: text("mimeType"),
        more: None,
    })
}

fn adk_inline_data_object(mime: &str, data: &str, name: Option<&str>) -> Value {
    match name.filter(|name| !name.is_empty()) {
        Some(name) => json!({ "inlineData": { "data": data, "displayName": name, "mimeType": mime } }),
        None => json!({ "inlineData": { "data": data, "mimeType": mime } }),
    }
}

fn adk_tool_text(result: &ToolResult) -> String {
    let shown = result.content.iter().map(|content| match content {
        ToolContent::Part { part: Part::Text { text } } => text.clone(),
        ToolContent::Part { part } => write_adk_part(part).to_string(),
        ToolContent::Diff { path, .. } => format!("changed {path}"),
        ToolContent::Terminal { id } => format!("terminal {id}"),
    });
    shown.collect::<Vec<_>>().join("\n")
}

/// True if clients that forbid what they do not know take this as it is.
fn has_known_adk_part_keys(value: &Value) -> bool {
    let Some(object) = value.as_object() else { return false };
    !object.is_empty() && object.keys().all(|key| KNOWN_PART_KEYS.contains(&key.as_str()))
}
