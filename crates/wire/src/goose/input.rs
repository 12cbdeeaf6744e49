//! Messages of goose clients, read with leniency: of any version, and of clients that only knew their own mock.

use std::collections::HashMap;

use gander_domain::{Ids, Message, MessageId, Native, Part, Role, ToolCallId, ToolContent, ToolEnd, ToolResult};
use serde_json::{Map, Value, json};

use super::content::NATIVE;
use crate::check;

/// Why a message cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadMessage {
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
pub struct Prompt {
    /// For the model.
    pub parts: Vec<Part>,
    /// Answers to forms, by the id of their question.
    pub answers: Vec<(String, Value)>,
}

/// Reads the message of a prompt.
pub fn prompt(message: &Value) -> Result<Prompt, BadMessage> {
    let mut prompt = Prompt { parts: Vec::new(), answers: Vec::new() };
    let pieces = content(message)?;
    role(message)?;
    for piece in pieces {
        match kind(&piece)? {
            "actionRequired" if piece["data"]["actionType"] == "elicitationResponse" => {
                let data = &piece["data"];
                let id = data["id"].as_str().unwrap_or_default().to_owned();
                prompt.answers.push((id, data["user_data"].clone()));
            }
            "toolResponse" => prompt.parts.push(Part::text(result_text(&piece))),
            "image" => prompt.parts.push(media(&piece, |mime, data| Part::Image { mime, data, uri: None })?),
            "audio" => prompt.parts.push(media(&piece, |mime, data| Part::Audio { mime, data })?),
            "resource_link" => prompt.parts.push(link(&piece)?),
            "text" if !piece["text"].is_string() => return Err(BadMessage::NoText),
            known if TYPES.contains(&known) => prompt.parts.push(plain(&piece)),
            unknown => return Err(BadMessage::UnknownType(shortened(unknown))),
        }
    }
    if prompt.parts.is_empty() && prompt.answers.is_empty() { Err(BadMessage::Empty) } else { Ok(prompt) }
}

/// Types of content that goose's clients of any version send.
const TYPES: [&str; 12] = [
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
pub fn role(message: &Value) -> Result<Role, BadMessage> {
    match message.get("role") {
        None | Some(Value::Null) => Ok(Role::User),
        Some(Value::String(role)) if role == "user" => Ok(Role::User),
        Some(Value::String(role)) if role == "assistant" => Ok(Role::Agent),
        Some(Value::String(other)) => Err(BadMessage::BadRole(shortened(other))),
        Some(other) => Err(BadMessage::BadRole(shortened(&other.to_string()))),
    }
}

fn shortened(text: &str) -> String {
    text[..text.floor_char_boundary(64)].to_owned()
}

/// Reads a whole conversation. Each message keeps the form in which it came.
pub fn conversation(messages: &[Value], ids: &mut dyn Ids) -> Result<Vec<Message>, BadMessage> {
    let mut reader = Reader { ids, calls: HashMap::new() };
    messages.iter().map(|message| reader.message(message)).collect()
}

struct Reader<'a> {
    ids: &'a mut dyn Ids,
    /// A client's ids of tool calls, and ours.
    calls: HashMap<String, ToolCallId>,
}

impl Reader<'_> {
    fn message(&mut self, message: &Value) -> Result<Message, BadMessage> {
        let pieces = content(message)?;
        let role = role(message)?;
        let parts: Vec<Part> = pieces.iter().map(|piece| self.part(piece)).collect::<Result<_, _>>()?;
        let results = parts.iter().any(|part| matches!(part, Part::ToolResult { .. }));
        Ok(Message {
            id: MessageId::make(self.ids),
            role: if results { Role::Tool } else { role },
            parts,
            interrupted: visible(message, "agentVisible", "agent_visible") == Some(false),
            native: Some(Native { wire: NATIVE.to_owned(), items: whole(message) }),
        })
    }

    fn part(&mut self, piece: &Value) -> Result<Part, BadMessage> {
        Ok(match kind(piece)? {
            "toolRequest" | "frontendToolRequest" => self.tool_use(piece),
            "toolResponse" => {
                let call = self.call(piece["id"].as_str().unwrap_or_default());
                Part::ToolResult { call, result: result(&piece["toolResult"]) }
            }
            _ => stored(piece),
        })
    }

    fn tool_use(&mut self, piece: &Value) -> Part {
        let call = self.call(piece["id"].as_str().unwrap_or_default());
        let wanted = unwrapped(&piece["toolCall"]);
        let name = wanted["name"].as_str().unwrap_or("unknown").to_owned();
        let arguments = wanted.get("arguments").filter(|arguments| arguments.is_object()).cloned();
        Part::ToolUse { call, name, arguments: arguments.unwrap_or_else(|| json!({})) }
    }

    fn call(&mut self, id: &str) -> ToolCallId {
        match id.parse() {
            Ok(ours) => ours,
            Err(_) => *self.calls.entry(id.to_owned()).or_insert_with(|| ToolCallId::make(self.ids)),
        }
    }
}

/// A message in full, as goose demands it on input: what a lenient client left out is filled in.
fn whole(message: &Value) -> Value {
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

fn visible(message: &Value, camel: &str, snake: &str) -> Option<bool> {
    let metadata = message.get("metadata")?;
    metadata.get(camel).or_else(|| metadata.get(snake))?.as_bool()
}

/// The content as a list; old clients sent a bare text.
fn content(message: &Value) -> Result<Vec<Value>, BadMessage> {
    let object = message.as_object().ok_or(BadMessage::NoObject("message"))?;
    let is_a_time = |time: &Value| time.is_null() || time.is_i64() && time.as_f64().is_some_and(check::is_a_time);
    if let Some(time) = object.get("created").filter(|time| !is_a_time(time)) {
        return Err(BadMessage::BadTime(time.clone()));
    }
    match object.get("content") {
        Some(Value::Array(pieces)) => Ok(pieces.clone()),
        Some(Value::String(text)) => Ok(vec![json!({ "type": "text", "text": text })]),
        Some(_) => Err(BadMessage::NoObject("content")),
        None => Err(BadMessage::Empty),
    }
}

fn kind(piece: &Value) -> Result<&str, BadMessage> {
    piece.get("type").and_then(Value::as_str).ok_or(BadMessage::NoType)
}

/// Content without tools. What nobody here knows is kept as it came.
pub(super) fn plain(piece: &Value) -> Part {
    let text = |key: &str| piece[key].as_str().map(str::to_owned);
    let known = match piece["type"].as_str() {
        Some("text") => text("text").map(|text| Part::Text { text: without_tags(&text) }),
        Some("thinking" | "reasoning") => text("thinking").or_else(|| text("text")).map(|text| Part::Thought { text }),
        Some("image") => text("data")
            .zip(text("mimeType").or_else(|| text("mime_type")))
            .map(|(data, mime)| Part::Image { mime, data, uri: None }),
        Some(_) | None => None,
    };
    known.unwrap_or_else(|| Part::Unknown(piece.clone()))
}

/// A stored history comes in as it is, but what is no picture is not shown to a model as one.
fn stored(piece: &Value) -> Part {
    Some(plain(piece)).filter(|part| check::media(part).is_ok()).unwrap_or_else(|| Part::Unknown(piece.clone()))
}

/// A picture or a sound that is one.
fn media(piece: &Value, make: impl FnOnce(String, String) -> Part) -> Result<Part, BadMessage> {
    let text = |keys: [&str; 2]| keys.iter().find_map(|key| piece[*key].as_str()).unwrap_or_default();
    let (mime, data) = (check::normalised(text(["mimeType", "mime_type"])), text(["data", "data"]).to_owned());
    let part = make(mime, data);
    check::media(&part).map_err(|error| BadMessage::BadMedia(error.to_string()))?;
    Ok(part)
}

/// A link to the web, kept as it came. Files of this machine and other schemes are no client's to name; what a stored
/// history points to is not asked about.
fn link(piece: &Value) -> Result<Part, BadMessage> {
    let uri = piece["uri"].as_str().unwrap_or_default();
    if check::is_web_link(uri) { Ok(plain(piece)) } else { Err(BadMessage::BadLink(shortened(uri))) }
}

/// Unicode tag characters hide text from people: they are taken out, as goose does.
fn without_tags(text: &str) -> String {
    text.chars().filter(|letter| !('\u{E0000}'..='\u{E007F}').contains(letter)).collect()
}

/// `{status, value}`, or the bare value as adk2goose and old sessions have it.
pub(super) fn unwrapped(outcome: &Value) -> &Value {
    outcome.get("value").filter(|_| outcome.get("status").is_some()).unwrap_or(outcome)
}

pub(super) fn result(outcome: &Value) -> ToolResult {
    if let Some(error) = outcome["error"].as_str() {
        return ToolResult::text(ToolEnd::Failed, error);
    }
    let value = unwrapped(outcome);
    let pieces = value.as_array().or_else(|| value["content"].as_array()).cloned().unwrap_or_default();
    let end = if value["isError"] == true { ToolEnd::Failed } else { ToolEnd::Completed };
    let content = pieces.iter().map(|piece| ToolContent::Part { part: stored(piece) }).collect();
    ToolResult { end, content, raw: value.get("structuredContent").filter(|raw| !raw.is_null()).cloned() }
}

/// The result of a tool that a client ran, as the model is told of it in a prompt.
fn result_text(piece: &Value) -> String {
    let ToolResult { content, raw, .. } = result(&piece["toolResult"]);
    let texts: Vec<String> = content
        .iter()
        .filter_map(|content| match content {
            ToolContent::Part { part: Part::Text { text } } => Some(text.clone()),
            ToolContent::Part { .. } | ToolContent::Diff { .. } | ToolContent::Terminal { .. } => None,
        })
        .chain(raw.map(|raw| raw.to_string()))
        .collect();
    format!("[result of tool call {}]\n{}", piece["id"].as_str().unwrap_or_default(), texts.join("\n"))
}

/// What an exported session says about itself besides its conversation.
pub fn kept(exported: &Map<String, Value>) -> Map<String, Value> {
    const KEPT: [&str; 5] = ["extension_data", "recipe", "user_recipe_values", "schedule_id", "project_id"];
    let said = exported.iter().filter(|(key, value)| KEPT.contains(&key.as_str()) && !value.is_null());
    said.map(|(key, value)| (key.clone(), value.clone())).collect()
}
