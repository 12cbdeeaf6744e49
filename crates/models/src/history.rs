//! A conversation as every wire needs it: strict turns, every tool use answered, provider ids in place.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use gander_domain::{Message, Part, Role, ToolCallId, ToolContent, ToolEnd, ToolResult};
use serde_json::Value;

use super::ModelInfo;

/// One turn of the conversation. Two turns of a person never follow each other.
#[derive(Debug, PartialEq)]
pub enum Turn<'a> {
    /// A person spoke.
    User(Vec<ContentPiece<'a>>),
    /// The agent spoke.
    Agent(AgentTurn<'a>),
    /// Its tools answered, in the order of the calls.
    Tool(Vec<ToolReturn<'a>>),
}

/// What the agent said.
#[derive(Debug, PartialEq)]
pub struct AgentTurn<'a> {
    /// In neutral form.
    pub parts: &'a [Part],
    /// In the form of the provider that is asked now.
    pub native: Option<&'a [Value]>,
    /// The provider's ids of its tool uses, in order.
    pub ids: Vec<String>,
}

/// What a tool gave back.
#[derive(Debug, PartialEq)]
pub struct ToolReturn<'a> {
    /// The provider's id of the call.
    pub id: String,
    /// True unless it did what was asked.
    pub failed: bool,
    /// What it said and showed.
    pub pieces: Vec<ContentPiece<'a>>,
}

/// Something a model can read.
#[derive(Clone, Debug, PartialEq)]
pub enum ContentPiece<'a> {
    /// Words.
    Text(Cow<'a, str>),
    /// A picture in base64.
    Image {
        /// Its type.
        mime: &'a str,
        /// Base64.
        data: &'a str,
    },
    /// A sound in base64, only for models that hear.
    Audio {
        /// `wav` or `mp3`.
        format: &'static str,
        /// Base64.
        data: &'a str,
    },
}

/// How one wire reads a conversation.
pub struct HistoryReader<'a> {
    /// The tag of its native items.
    pub wire: &'static str,
    /// The model that is asked.
    pub info: &'a ModelInfo,
    /// Finds the ids of tool calls in native items.
    pub native_ids: fn(&[Value]) -> Vec<String>,
    /// Makes an id for a call that another provider, or nobody, named.
    pub make_id: fn(ToolCallId) -> String,
}

/// `call_` and the bare id: within the alphabet of every provider but one.
pub fn history_provider_call_id(call: ToolCallId) -> String {
    format!("call_{}", call.uuid().simple())
}

impl HistoryReader<'_> {
    /// The conversation in turns. A half message is left out; a tool use without a result was interrupted.
    pub fn group_into_turns<'a>(&self, messages: &'a [Arc<Message>]) -> Vec<Turn<'a>> {
        let results = history_tool_results(messages);
        let mut turns: Vec<Turn<'a>> = Vec::with_capacity(messages.len() + 1);
        for message in messages.iter().filter(|message| !message.interrupted) {
            match message.role {
                Role::User => self.push_user(&mut turns, &message.parts),
                Role::Agent => self.push_agent(&mut turns, message, &results),
                Role::Tool => {}
            }
        }
        turns
    }

    fn push_user<'a>(&self, turns: &mut Vec<Turn<'a>>, parts: &'a [Part]) {
        let pieces = self.to_pieces(parts);
        if pieces.is_empty() {
            return;
        }
        if let Some(Turn::User(before)) = turns.last_mut() {
            before.extend(pieces);
        } else {
            turns.push(Turn::User(pieces));
        }
    }

    fn push_agent<'a>(&self, turns: &mut Vec<Turn<'a>>, message: &'a Message, results: &Results<'a>) {
        let calls: Vec<ToolCallId> = history_tool_uses(&message.parts).map(|(call, ..)| call).collect();
        let native = self.native_items(message).map(|items| (items, (self.native_ids)(items)));
        let (native, ids) = match native {
            Some((items, ids)) if ids.len() == calls.len() => (Some(items), ids),
            Some(_) | None => (None, calls.iter().map(|call| (self.make_id)(*call)).collect()),
        };
        let returned =
            calls.iter().zip(&ids).map(|(call, id)| self.tool_return(id, results.get(call).copied())).collect();
        if native.is_none() && calls.is_empty() && message.plain_text().is_empty() {
            return;
        }
        turns.push(Turn::Agent(AgentTurn { parts: &message.parts, native, ids }));
        if !calls.is_empty() {
            turns.push(Turn::Tool(returned));
        }
    }

    /// The native items, if this very provider and family of models made them.
    fn native_items<'a>(&self, message: &'a Message) -> Option<&'a [Value]> {
        let native = message.native.as_ref().filter(|native| native.wire == self.wire)?;
        let made_by = |field: &str| native.items.get(field).and_then(Value::as_str).unwrap_or_default();
        let same = made_by("provider") == self.info.provider
            && history_model_family(made_by("model")) == history_model_family(&self.info.model);
        let items = native.items.get("items")?.as_array()?;
        (same && !items.is_empty()).then_some(items.as_slice())
    }

    fn tool_return<'a>(&self, id: &str, result: Option<&'a ToolResult>) -> ToolReturn<'a> {
        let end = result.map_or(ToolEnd::Interrupted, |result| result.end);
        let mut pieces = result.map_or_else(Vec::new, |result| self.result_pieces(result));
        if pieces.is_empty() {
            pieces.push(ContentPiece::Text(empty_history_output_text(end).into()));
        }
        ToolReturn { id: id.to_owned(), failed: end != ToolEnd::Completed, pieces }
    }

    fn result_pieces<'a>(&self, result: &'a ToolResult) -> Vec<ContentPiece<'a>> {
        let mut pieces: Vec<ContentPiece<'a>> = Vec::new();
        let mut changes = Vec::new();
        for content in &result.content {
            match content {
                ToolContent::Part { part } => pieces.extend(self.to_piece(part)),
                ToolContent::Diff { path, old, .. } => changes.push(describe_change_in_history(path, old.as_deref())),
                ToolContent::Terminal { .. } => {}
            }
        }
        // A tool that says something itself tells of its changes, too.
        if pieces.is_empty() {
            pieces.extend(changes.into_iter().map(|change| ContentPiece::Text(change.into())));
        }
        match &result.raw {
            Some(raw) if pieces.is_empty() => vec![ContentPiece::Text(raw.to_string().into())],
            Some(_) | None => pieces,
        }
    }

    fn to_pieces<'a>(&self, parts: &'a [Part]) -> Vec<ContentPiece<'a>> {
        parts.iter().filter_map(|part| self.to_piece(part)).collect()
    }

    /// A sound that this model hears.
    fn audio_piece<'a>(&self, part: &'a Part) -> Option<ContentPiece<'a>> {
        let (mime, data) = match part {
            Part::Audio { mime, data } | Part::Resource { mime: Some(mime), blob: Some(data), .. } => (mime, data),
            Part::Text { .. }
            | Part::Thought { .. }
            | Part::Image { .. }
            | Part::Link { .. }
            | Part::Resource { .. }
            | Part::ToolUse { .. }
            | Part::ToolResult { .. }
            | Part::Unknown(_) => return None,
        };
        let format = match mime.split(';').next().unwrap_or_default().trim() {
            "audio/wav" | "audio/x-wav" | "audio/wave" => "wav",
            "audio/mpeg" | "audio/mp3" => "mp3",
            _ => return None,
        };
        self.info.audio.then_some(ContentPiece::Audio { format, data })
    }

    fn to_piece<'a>(&self, part: &'a Part) -> Option<ContentPiece<'a>> {
        let text = |text: String| Some(ContentPiece::Text(text.into()));
        if let Some(heard) = self.audio_piece(part) {
            return Some(heard);
        }
        match part {
            Part::Text { text } if text.is_empty() => None,
            Part::Text { text } => Some(ContentPiece::Text(text.into())),
            Part::Image { mime, data, .. } if self.info.images => Some(ContentPiece::Image { mime, data }),
            Part::Image { mime, .. } => text(format!("[an image of type {mime}, which this model cannot see]")),
            Part::Audio { mime, .. } => text(format!("[a sound of type {mime}, which this model cannot hear]")),
            Part::Link { uri, name, .. } => text(format!("[{name}]({uri})")),
            Part::Resource { uri, text: Some(body), .. } => {
                text(format!("<resource uri=\"{uri}\">\n{body}\n</resource>"))
            }
            Part::Resource { mime: Some(mime), blob: Some(data), .. }
                if self.info.images && mime.starts_with("image/") =>
            {
                Some(ContentPiece::Image { mime, data })
            }
            Part::Resource { uri, .. } => text(format!("[a file this model cannot read: {uri}]")),
            Part::Unknown(value) => text(value.to_string()),
            Part::Thought { .. } | Part::ToolUse { .. } | Part::ToolResult { .. } => None,
        }
    }
}

/// Where a conversation can be cut: before an answer of the agent to somebody else's words or to its tools.
///
/// What is before it is written the same whatever follows, and the other way round. 0 if there is no such place.
pub fn stable_history_prefix_len(messages: &[Arc<Message>]) -> usize {
    let speaks = |message: &Message| {
        let tells = |part: &Part| matches!(part, Part::Text { text } if !text.trim().is_empty());
        !message.interrupted && message.parts.iter().any(|part| tells(part) || matches!(part, Part::ToolUse { .. }))
    };
    let answers = |pair: &[Arc<Message>]| match pair[0].role {
        Role::User => speaks(&pair[0]) && pair[1].role == Role::Agent && speaks(&pair[1]),
        Role::Tool => pair[1].role == Role::Agent && speaks(&pair[1]),
        Role::Agent => false,
    };
    messages.windows(2).rposition(answers).map_or(0, |place| place + 1)
}

/// The tool uses of a message, in order.
pub fn history_tool_uses(parts: &[Part]) -> impl Iterator<Item = (ToolCallId, &str, &Value)> {
    parts.iter().filter_map(|part| {
        if let Part::ToolUse { call, name, arguments } = part { Some((*call, name.as_str(), arguments)) } else { None }
    })
}

/// All words of the pieces, joined by line breaks.
pub fn join_history_text<'a>(pieces: &[ContentPiece<'a>]) -> Cow<'a, str> {
    let mut texts =
        pieces.iter().filter_map(|piece| if let ContentPiece::Text(text) = piece { Some(text) } else { None });
    match (texts.next(), texts.next()) {
        (None, _) => Cow::Borrowed(""),
        (Some(only), None) => only.clone(),
        (Some(first), Some(second)) => {
            let rest: String = texts.map(|text| format!("\n{text}")).collect();
            format!("{first}\n{second}{rest}").into()
        }
    }
}

/// What came of each tool call.
pub type Results<'a> = HashMap<ToolCallId, &'a ToolResult>;

/// What came of each tool call, wherever its result stands.
pub fn history_tool_results(messages: &[Arc<Message>]) -> Results<'_> {
    let parts = messages.iter().flat_map(|message| &message.parts);
    parts
        .filter_map(|part| if let Part::ToolResult { call, result } = part { Some((*call, result)) } else { None })
        .collect()
}

fn describe_change_in_history(path: &str, old: Option<&str>) -> String {
    if old.is_some() { format!("changed {path}") } else { format!("created {path}") }
}

fn empty_history_output_text(end: ToolEnd) -> &'static str {
    match end {
        ToolEnd::Completed => "done, without output",
        ToolEnd::Failed => "failed, without output",
        ToolEnd::Rejected => "not run: it was not allowed",
        ToolEnd::Cancelled => "cancelled",
        ToolEnd::Interrupted => "interrupted: it may or may not have run, and its output is lost",
    }
}

/// A model's name without its date, so that an alias and its snapshot are one family.
pub fn history_model_family(model: &str) -> &str {
    let model = model.strip_suffix("-latest").unwrap_or(model);
    let undated = |length: usize| {
        let (name, date) = model.split_at_checked(model.len().checked_sub(length)?)?;
        let is_date = date.starts_with('-') && date.bytes().filter(u8::is_ascii_digit).count() == 8;
        is_date.then_some(name)
    };
    undated("-20250929".len()).or_else(|| undated("-2025-09-29".len())).unwrap_or(model)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_is_of_the_family_of_its_alias() {
        let names = ["claude-sonnet-4-5-20250929", "gpt-5.4-2026-03-05", "gpt-4o", "mistral-large-latest", "o3", ""];
        assert_eq!(
            names.map(history_model_family),
            ["claude-sonnet-4-5", "gpt-5.4", "gpt-4o", "mistral-large", "o3", ""]
        );
    }
}
