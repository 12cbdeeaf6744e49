//! Parts of messages, both ways, and what A2A keeps of a message beside its content.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use gander_domain as domain;
use serde_json::{Map, Value, json};

use super::error::{A2aError, A2aErrorKind};
use super::{A2aMessage, A2aPart, A2aPartContent, A2aRole, PROTOCOL_NAME};
use crate::check::{self, BadMedia};

/// The name of a resource that is JSON sent as such.
const DATA_RESOURCE: &str = "a2a:data";

/// What an agent is told, or why it cannot read it. `takes` are the types that it reads, such as `image/*`.
pub fn a2a_prompt_parts(message: &A2aMessage, takes: &[String]) -> Result<Vec<domain::Part>, A2aError> {
    message.parts.iter().map(|part| a2a_prompt_part(part, takes)).collect()
}

/// What is kept of a message in the log beside its content, so that it is shown again as it came.
pub fn a2a_message_meta(message: &A2aMessage) -> Value {
    let mut kept = Map::new();
    kept.insert("messageId".to_owned(), message.message_id.clone().into());
    if let Some(metadata) = &message.metadata {
        kept.insert("metadata".to_owned(), metadata.clone().into());
    }
    if !message.extensions.is_empty() {
        kept.insert("extensions".to_owned(), message.extensions.clone().into());
    }
    if !message.reference_task_ids.is_empty() {
        kept.insert("referenceTaskIds".to_owned(), message.reference_task_ids.clone().into());
    }
    let labels: Vec<Value> = message.parts.iter().map(a2a_part_labels).collect();
    if labels.iter().any(|labels| !labels.is_null()) {
        kept.insert("parts".to_owned(), labels.into());
    }
    json!({ PROTOCOL_NAME: kept })
}

/// The id of the message that an entry with this meta keeps.
pub fn a2a_message_id_in_meta(meta: &Value) -> Option<&str> {
    meta.get(PROTOCOL_NAME)?.get("messageId")?.as_str()
}

/// A person's message as it came, or as it would have come by A2A.
pub(super) fn a2a_user_message(
    id: &str,
    parts: Vec<A2aPart>,
    meta: Option<&Value>,
    task: &str,
    context: &str,
) -> A2aMessage {
    let kept = meta.and_then(|meta| meta.get(PROTOCOL_NAME));
    let field = |name: &str| kept.and_then(|kept| kept.get(name));
    let texts = |name: &str| -> Vec<String> {
        let values = field(name).and_then(Value::as_array).into_iter().flatten();
        values.filter_map(|value| value.as_str().map(str::to_owned)).collect()
    };
    let labels = field("parts").and_then(Value::as_array);
    let parts = parts.into_iter().enumerate();
    A2aMessage {
        message_id: field("messageId").and_then(Value::as_str).unwrap_or(id).to_owned(),
        context_id: Some(context.to_owned()),
        task_id: Some(task.to_owned()),
        role: A2aRole::User,
        parts: parts
            .map(|(index, part)| with_a2a_part_labels(part, labels.and_then(|labels| labels.get(index))))
            .collect(),
        metadata: field("metadata").and_then(Value::as_object).cloned(),
        extensions: texts("extensions"),
        reference_task_ids: texts("referenceTaskIds"),
    }
}

/// Parts of a message as a client sees them. What tools are used for is told apart.
pub(super) fn a2a_visible_parts(parts: &[domain::Part]) -> Vec<A2aPart> {
    parts.iter().filter_map(a2a_part).collect()
}

pub(super) fn a2a_prompt_part(part: &A2aPart, takes: &[String]) -> Result<domain::Part, A2aError> {
    let mime = part.media_type.clone();
    if let Some(mime) = mime.as_deref().filter(|mime| !is_accepted_a2a_media(mime, takes)) {
        return Err(A2aError::new(
            A2aErrorKind::ContentTypeNotSupported,
            format!("content type is not supported: {mime}"),
        ));
    }
    let name = || part.filename.clone().unwrap_or_else(|| "file".to_owned());
    Ok(match &part.content {
        A2aPartContent::Text(text) => domain::Part::text(text.clone()),
        A2aPartContent::Url(url) if !check::is_web_link(url) => {
            return Err(A2aError::invalid_field("message.parts.url", "must be http or https"));
        }
        A2aPartContent::Url(url) => domain::Part::Link {
            uri: url.clone(),
            name: part.filename.clone().unwrap_or_else(|| url.clone()),
            mime,
            more: None,
        },
        A2aPartContent::Data(data) => domain::Part::Resource {
            uri: DATA_RESOURCE.to_owned(),
            mime: Some("application/json".to_owned()),
            text: Some(data.to_string()),
            blob: None,
        },
        A2aPartContent::Raw(raw) => {
            let bytes =
                decode_a2a_base64(raw).ok_or_else(|| A2aError::invalid_field("message.parts.raw", "must be base64"))?;
            let data = STANDARD.encode(&bytes);
            let part = match mime {
                Some(mime) if check::is_in_media_family(&mime, "image") => {
                    domain::Part::Image { mime, data, uri: part.filename.clone() }
                }
                Some(mime) if check::is_in_media_family(&mime, "audio") => domain::Part::Audio { mime, data },
                mime => match String::from_utf8(bytes) {
                    Ok(text) => domain::Part::Resource { uri: name(), mime, text: Some(text), blob: None },
                    Err(_) => domain::Part::Resource { uri: name(), mime, text: None, blob: Some(data) },
                },
            };
            check::check_media_for(&part, takes).map_err(a2a_media_error)?;
            part
        }
    })
}

fn a2a_media_error(error: BadMedia) -> A2aError {
    match error {
        BadMedia::OtherType(_) | BadMedia::Unsupported(_) => {
            A2aError::new(A2aErrorKind::ContentTypeNotSupported, error.to_string())
        }
        BadMedia::TooLarge | BadMedia::NotBase64(_) | BadMedia::TooManyPixels(..) | BadMedia::NoPixels => {
            A2aError::invalid_field("message.parts.raw", error.to_string())
        }
    }
}

/// Text and JSON are read by everybody.
fn is_accepted_a2a_media(mime: &str, takes: &[String]) -> bool {
    let mime = mime.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let fits = |mode: &str| match mode.strip_suffix('*') {
        Some("*/") => true,
        Some(family) => mime.starts_with(family),
        None => mode == mime,
    };
    fits("text/*") || fits("application/json") || takes.iter().any(|mode| fits(mode))
}

/// Bytes come in either alphabet, padded or not.
fn decode_a2a_base64(raw: &str) -> Option<Vec<u8>> {
    [&STANDARD, &URL_SAFE, &STANDARD_NO_PAD, &URL_SAFE_NO_PAD].into_iter().find_map(|engine| engine.decode(raw).ok())
}

fn a2a_part(part: &domain::Part) -> Option<A2aPart> {
    Some(match part {
        domain::Part::Text { text } => A2aPart::text(text.clone()),
        domain::Part::Image { mime, data, uri } => {
            a2a_file_part(A2aPartContent::Raw(data.clone()), uri.clone(), Some(mime.clone()))
        }
        domain::Part::Audio { mime, data } => {
            a2a_file_part(A2aPartContent::Raw(data.clone()), None, Some(mime.clone()))
        }
        domain::Part::Link { uri, name, mime, .. } => {
            a2a_file_part(A2aPartContent::Url(uri.clone()), (name != uri).then(|| name.clone()), mime.clone())
        }
        domain::Part::Resource { uri, text: Some(text), .. } if uri == DATA_RESOURCE => {
            A2aPart::data(serde_json::from_str(text).unwrap_or_else(|_| text.clone().into()))
        }
        domain::Part::Resource { uri, mime, text, blob } => {
            let raw = blob.clone().unwrap_or_else(|| STANDARD.encode(text.as_deref().unwrap_or_default()));
            a2a_file_part(A2aPartContent::Raw(raw), Some(uri.clone()), mime.clone())
        }
        domain::Part::Unknown(value) => A2aPart::data(value.clone()),
        domain::Part::Thought { .. } | domain::Part::ToolUse { .. } | domain::Part::ToolResult { .. } => return None,
    })
}

fn a2a_file_part(content: A2aPartContent, filename: Option<String>, media_type: Option<String>) -> A2aPart {
    A2aPart { content, metadata: None, filename, media_type }
}

fn a2a_part_labels(part: &A2aPart) -> Value {
    let mut labels = Map::new();
    let mut keep = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            labels.insert(name.to_owned(), value);
        }
    };
    keep("metadata", part.metadata.clone().map(Value::Object));
    keep("filename", part.filename.clone().map(Value::String));
    keep("mediaType", part.media_type.clone().map(Value::String));
    if labels.is_empty() { Value::Null } else { labels.into() }
}

fn with_a2a_part_labels(part: A2aPart, labels: Option<&Value>) -> A2aPart {
    let Some(labels) = labels.filter(|labels| labels.is_object()) else { return A2aPart { filename: None, ..part } };
    let text = |name: &str| labels.get(name).and_then(Value::as_str).map(str::to_owned);
    A2aPart {
        content: part.content,
        metadata: labels.get("metadata").and_then(Value::as_object).cloned(),
        filename: text("filename"),
        media_type: text("mediaType"),
    }
}
