//! Messages of goose clients, read with leniency: of any version, and of clients that only knew their own mock.

use std::collections::HashMap;

use gander_domain::{IdGenerator, Message, MessageId, Part, ProviderPayload, Role, ToolCallId};
use serde_json::{Map, Value, json};

use super::content::{
    PAYLOAD_NAME, goose_tool_result_content_text, read_goose_plain_content, read_goose_stored_content,
    read_goose_tool_result, unwrap_goose_content_outcome,
};
use crate::check;

/// Why a message cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadGooseMessage {
    /// Not the kind of thing it should be.
    #[error("must be an object: {0}")]
    NoObject(&'static str),
    /// It has no content.
    #[error("message has no content")]
    Empty,
    /// Neither user nor assistant.
    #[error("role must be user or assistant: {0}")]
    BadRole(String),
    /// Content has a type, also where its type is not known here.
    #[error("content without a type")]
    NoType,
    /// A prompt's content is of a type that this server can hand to a model. A stored history may have others.
    #[error("no such type of content: {0}")]
    UnknownType(String),
    /// Text content whose text is none.
    #[error("content of type text has no text")]
    NoText,
    /// Made at no time.
    #[error("created must be whole seconds since 1970: {0}")]
    BadTime(Value),
    /// Not what it claims to be.
    #[error("{0}")]
    BadMedia(String),
    /// Nothing that a client may point an agent to.
    #[error("a link leads to http or https: {0}")]
    BadLink(String),
}

/// What a prompt asks: words and pictures for the model, or an answer to a question.
#[derive(Clone, Debug, PartialEq)]
pub struct GoosePrompt {
    /// For the model.
    pub parts: Vec<Part>,
    /// Answers to forms, by the id of their question.
    pub answers: Vec<(String, Value)>,
}

/// Reads the message of a prompt.
pub fn read_goose_prompt(message: &Value) -> Result<GoosePrompt, BadGooseMessage> {
    let mut prompt = GoosePrompt { parts: Vec::new(), answers: Vec::new() };
    let pieces = goose_request_content_list(message)?;
    read_goose_role(message)?;
    for piece in pieces {
        match goose_request_content_type(&piece)? {
            "actionRequired" if piece["data"]["actionType"] == "elicitationResponse" => {
                let data = &piece["data"];
                let id = data["id"].as_str().unwrap_or_default().to_owned();
                prompt.answers.push((id, data["user_data"].clone()));
            }
            "toolResponse" => prompt.parts.push(Part::text(goose_tool_result_content_text(&piece))),
            "image" => {
                prompt.parts.push(read_goose_request_media(&piece, |mime, data| Part::Image { mime, data, uri: None })?)
            }
            "audio" => prompt.parts.push(read_goose_request_media(&piece, |mime, data| Part::Audio { mime, data })?),
            "resource_link" => prompt.parts.push(read_goose_request_link(&piece)?),
            "text" if !piece["text"].is_string() => return Err(BadGooseMessage::NoText),
            known if CONTENT_TYPES.contains(&known) => prompt.parts.push(read_goose_plain_content(&piece)),
            unknown => return Err(BadGooseMessage::UnknownType(shorten_bad_goose_request(unknown))),
        }
    }
    if prompt.parts.is_empty() && prompt.answers.is_empty() { Err(BadGooseMessage::Empty) } else { Ok(prompt) }
}

/// Types of content that goose's clients of any version send.
const CONTENT_TYPES: [&str; 12] = [
    "text",
    "image",
    "resource",
    "toolRequest",
    "toolResponse",
    "toolConfirmationRequest",
    "actionRequired",
    "frontendToolRequest",
    "thinking",
    "redactedThinking",
    "reasoning",
    "systemNotification",
];

/// Who says a message; nobody named is the user.
pub fn read_goose_role(message: &Value) -> Result<Role, BadGooseMessage> {
    match message.get("role") {
        None | Some(Value::Null) => Ok(Role::User),
        Some(Value::String(role)) if role == "user" => Ok(Role::User),
        Some(Value::String(role)) if role == "assistant" => Ok(Role::Agent),
        Some(Value::String(other)) => Err(BadGooseMessage::BadRole(shorten_bad_goose_request(other))),
        Some(other) => Err(BadGooseMessage::BadRole(shorten_bad_goose_request(&other.to_string()))),
    }
}

fn shorten_bad_goose_request(text: &str) -> String {
    text[..text.floor_char_boundary(64)].to_owned()
}

/// Reads a whole conversation. Each message keeps the form in which it came.
pub fn read_goose_conversation(messages: &[Value], ids: &mut dyn IdGenerator) -> Result<Vec<Message>, BadGooseMessage> {
    let mut reader = ConversationReader { ids, calls: HashMap::new() };
    messages.iter().map(|message| reader.read_message(message)).collect()
}

struct ConversationReader<'a> {
    ids: &'a mut dyn IdGenerator,
    /// A client's ids of tool calls, and ours.
    calls: HashMap<String, ToolCallId>,
}

impl ConversationReader<'_> {
    fn read_message(&mut self, message: &Value) -> Result<Message, BadGooseMessage> {
        let pieces = goose_request_content_list(message)?;
        let role = read_goose_role(message)?;
        let parts: Vec<Part> = pieces.iter().map(|piece| self.read_content(piece)).collect::<Result<_, _>>()?;
        let results = parts.iter().any(|part| matches!(part, Part::ToolResult { .. }));
        Ok(Message {
            id: MessageId::make(self.ids),
            role: if results { Role::Tool } else { role },
            parts,
            interrupted: goose_visibility_flag(message, "agentVisible", "agent_visible") == Some(false),
            native: Some(ProviderPayload { wire: PAYLOAD_NAME.to_owned(), items: complete_goose_message(message) }),
        })
    }

    fn read_content(&mut self, piece: &Value) -> Result<Part, BadGooseMessage> {
        Ok(match goose_request_content_type(piece)? {
            "toolRequest" | "frontendToolRequest" => self.read_tool_use(piece),
            "toolResponse" => {
                let call = self.tool_call_id(piece["id"].as_str().unwrap_or_default());
                Part::ToolResult { call, result: read_goose_tool_result(&piece["toolResult"]) }
            }
            _ => read_goose_stored_content(piece),
        })
    }

    fn read_tool_use(&mut self, piece: &Value) -> Part {
        let call = self.tool_call_id(piece["id"].as_str().unwrap_or_default());
        let wanted = unwrap_goose_content_outcome(&piece["toolCall"]);
        let name = wanted["name"].as_str().unwrap_or("unknown").to_owned();
        let arguments = wanted.get("arguments").filter(|arguments| arguments.is_object()).cloned();
        Part::ToolUse { call, name, arguments: arguments.unwrap_or_else(|| json!({})) }
    }

    fn tool_call_id(&mut self, id: &str) -> ToolCallId {
        match id.parse() {
            Ok(ours) => ours,
            Err(_) => *self.calls.entry(id.to_owned()).or_insert_with(|| ToolCallId::make(self.ids)),
        }
    }
}

/// A message in full, as goose demands it on input: what a lenient client left out is filled in.
fn complete_goose_message(message: &Value) -> Value {
    let mut whole = message.as_object().cloned().unwrap_or_default();
    whole.entry("id").or_insert(Value::Null);
    whole.entry("role").or_insert(json!("user"));
    whole.entry("created").or_insert(json!(0));
    let mut metadata = whole.get("metadata").and_then(Value::as_object).cloned().unwrap_or_default();
    for (ours, theirs) in [("userVisible", "user_visible"), ("agentVisible", "agent_visible")] {
        let said = metadata.remove(theirs);
        metadata.entry(ours).or_insert(said.unwrap_or(json!(true)));
    }
    whole.insert("metadata".to_owned(), Value::Object(metadata));
    Value::Object(whole)
}

fn goose_visibility_flag(message: &Value, camel: &str, snake: &str) -> Option<bool> {
    let metadata = message.get("metadata")?;
    metadata.get(camel).or_else(|| metadata.get(snake))?.as_bool()
}

/// The content as a list; old clients sent a bare text.
fn goose_request_content_list(message: &Value) -> Result<Vec<Value>, BadGooseMessage> {
    let object = message.as_object().ok_or(BadGooseMessage::NoObject("message"))?;
    let is_a_time =
        |time: &Value| time.is_null() || time.is_i64() && time.as_f64().is_some_and(check::is_calendar_time);
    if let Some(time) = object.get("created").filter(|time| !is_a_time(time)) {
        return Err(BadGooseMessage::BadTime(time.clone()));
    }
    match object.get("content") {
        Some(Value::Array(pieces)) => Ok(pieces.clone()),
        Some(Value::String(text)) => Ok(vec![json!({ "type": "text", "text": text })]),
        Some(_) => Err(BadGooseMessage::NoObject("content")),
        None => Err(BadGooseMessage::Empty),
    }
}

fn goose_request_content_type(piece: &Value) -> Result<&str, BadGooseMessage> {
    piece.get("type").and_then(Value::as_str).ok_or(BadGooseMessage::NoType)
}

/// A picture or a sound that is one.
fn read_goose_request_media(piece: &Value, make: impl FnOnce(String, String) -> Part) -> Result<Part, BadGooseMessage> {
    let text = |keys: [&str; 2]| keys.iter().find_map(|key| piece[*key].as_str()).unwrap_or_default();
    let (mime, data) = (check::normalize_mime(text(["mimeType", "mime_type"])), text(["data", "data"]).to_owned());
    let part = make(mime, data);
    check::check_media(&part).map_err(|error| BadGooseMessage::BadMedia(error.to_string()))?;
    Ok(part)
}

/// A link to the web, kept as it came. Files of this machine and other schemes are no client's to name; what a stored
/// history points to is not asked about.
fn read_goose_request_link(piece: &Value) -> Result<Part, BadGooseMessage> {
    let uri = piece["uri"].as_str().unwrap_or_default();
    if check::is_web_link(uri) {
        Ok(read_goose_plain_content(piece))
    } else {
        Err(BadGooseMessage::BadLink(shorten_bad_goose_request(uri)))
    }
}

/// What an exported session says about itself besides its conversation.
pub fn goose_exported_meta(exported: &Map<String, Value>) -> Map<String, Value> {
    const KEPT: [&str; 5] = ["extension_data", "recipe", "user_recipe_values", "schedule_id", "project_id"];
    let said = exported.iter().filter(|(key, value)| KEPT.contains(&key.as_str()) && !value.is_null());
    said.map(|(key, value)| (key.clone(), value.clone())).collect()
}
