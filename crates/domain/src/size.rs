//! How much memory things of a session take, about: for caches that are bounded in bytes.

use serde_json::Value;

use crate::{Entry, Event, Message, Part, SessionView, ToolCall, ToolContent, ToolResult};

impl Entry {
    /// Its size in bytes, about.
    pub fn approximate_bytes(&self) -> usize {
        self.event.approximate_bytes() + self.meta.as_deref().map_or(0, json_size)
    }
}

impl Event {
    /// Its size in bytes, about: of what may be large; the rest counts as much as it is at most.
    pub fn approximate_bytes(&self) -> usize {
        match self {
            Self::PartDelta { text, .. } => text.len(),
            Self::MessageDone { message } => SMALL_EVENT_BYTES + message.approximate_bytes(),
            Self::ToolCalled { call } => SMALL_EVENT_BYTES + call.approximate_bytes(),
            Self::ToolDone { result, .. } => SMALL_EVENT_BYTES + result.approximate_bytes(),
            Self::ToolUpdated { content, .. } => SMALL_EVENT_BYTES + tool_content_size(content),
            Self::OpaqueUpdate { body, .. } => SMALL_EVENT_BYTES + json_size(body),
            Self::RunQueued { parts, .. } => {
                SMALL_EVENT_BYTES + parts.iter().map(Part::approximate_bytes).sum::<usize>()
            }
            Self::HistoryReset { replacement, .. } => {
                SMALL_EVENT_BYTES + replacement.iter().map(Message::approximate_bytes).sum::<usize>()
            }
            Self::SessionCreated { .. }
            | Self::TitleSet { .. }
            | Self::ArchiveSet { .. }
            | Self::SettingsChanged { .. }
            | Self::Routed { .. }
            | Self::Noticed { .. }
            | Self::PlanSet { .. }
            | Self::StateChanged { .. }
            | Self::ArtifactSaved { .. }
            | Self::TextMarked { .. }
            | Self::UsageAdded { .. }
            | Self::RunStarted { .. }
            | Self::RunRecovered { .. }
            | Self::CancelRequested { .. }
            | Self::RunEnded { .. }
            | Self::MessageStarted { .. }
            | Self::ToolStarted { .. }
            | Self::QuestionAsked { .. }
            | Self::QuestionAnswered { .. }
            | Self::Unknown(_) => SMALL_EVENT_BYTES,
        }
    }
}

/// What an event of a bounded kind takes.
const SMALL_EVENT_BYTES: usize = 512;

impl Message {
    /// Its size in bytes, about.
    pub fn approximate_bytes(&self) -> usize {
        let native = self.native.as_ref().map_or(0, |native| native.wire.len() + json_size(&native.items));
        size_of::<Self>() + self.parts.iter().map(Part::approximate_bytes).sum::<usize>() + native
    }
}

impl Part {
    /// Its size in bytes, about.
    pub fn approximate_bytes(&self) -> usize {
        let heap = match self {
            Self::Text { text } | Self::Thought { text } => text.len(),
            Self::Image { mime, data, uri } => mime.len() + data.len() + optional_text_size(uri),
            Self::Audio { mime, data } => mime.len() + data.len(),
            Self::Link { uri, name, mime, more } => {
                uri.len() + name.len() + optional_text_size(mime) + more.as_ref().map_or(0, json_size)
            }
            Self::Resource { uri, mime, text, blob } => {
                uri.len() + optional_text_size(mime) + optional_text_size(text) + optional_text_size(blob)
            }
            Self::ToolUse { name, arguments, .. } => name.len() + json_size(arguments),
            Self::ToolResult { result, .. } => result.approximate_bytes(),
            Self::Unknown(value) => json_size(value),
        };
        size_of::<Self>() + heap
    }
}

impl ToolResult {
    /// Its size in bytes, about.
    pub fn approximate_bytes(&self) -> usize {
        size_of::<Self>() + tool_content_size(&self.content) + self.raw.as_ref().map_or(0, json_size)
    }
}

impl ToolCall {
    /// Its size in bytes, about.
    pub fn approximate_bytes(&self) -> usize {
        let locations = self.locations.iter().map(|location| size_of_val(location) + location.path.len());
        size_of::<Self>() + self.name.len() + self.title.len() + json_size(&self.arguments) + locations.sum::<usize>()
    }
}

impl SessionView {
    /// Its size in bytes, about: of what may be large, which is what is open and what waits.
    pub fn approximate_bytes(&self) -> usize {
        let open = self.run.as_ref().map_or(0, |run| {
            let tools = run.tools.iter().map(|tool| tool.call.approximate_bytes());
            let questions = run.questions.iter().map(|question| size_of_val(question) + question.title.len());
            run.open.as_ref().map_or(0, Message::approximate_bytes)
                + tools.sum::<usize>()
                + questions.sum::<usize>()
                + run.meta.as_ref().map_or(0, json_size)
        });
        let queued = self.queue.iter().map(|queued| {
            let parts = queued.parts.iter().map(Part::approximate_bytes).sum::<usize>();
            size_of_val(queued) + parts + queued.meta.as_ref().map_or(0, json_size)
        });
        let state = self.state.iter().map(|(name, value)| name.len() + json_size(value));
        let ended = size_of_val(self.ended.as_slice());
        size_of::<Self>() + open + queued.sum::<usize>() + state.sum::<usize>() + ended
    }
}

fn tool_content_size(content: &[ToolContent]) -> usize {
    let bytes = content.iter().map(|content| match content {
        ToolContent::Part { part } => part.approximate_bytes(),
        ToolContent::Diff { path, old, new } => path.len() + optional_text_size(old) + new.len(),
        ToolContent::Terminal { id } => id.len(),
    });
    bytes.sum()
}

fn optional_text_size(text: &Option<String>) -> usize {
    text.as_ref().map_or(0, String::len)
}

/// A value's own size and what it holds on to.
fn json_size(value: &Value) -> usize {
    let held = match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(json_size).sum(),
        Value::Object(fields) => fields.iter().map(|(key, value)| key.len() + json_size(value)).sum(),
    };
    size_of::<Value>() + held
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_large_is_counted_wherever_it_stands() {
        let long = "x".repeat(10_000);
        let result = ToolResult {
            raw: Some(json!({ "a": [long] })),
            ..ToolResult::text(crate::ToolEnd::Completed, long.clone())
        };
        let parts = [
            (Part::text(long.clone()), 1),
            (Part::Image { mime: "image/png".to_owned(), data: long.clone(), uri: None }, 1),
            (Part::Resource { uri: long.clone(), mime: None, text: Some(long.clone()), blob: Some(long.clone()) }, 3),
            (Part::Unknown(json!({ "deep": [{ "er": long }] })), 1),
            (Part::ToolResult { call: crate::ToolCallId::new(uuid::Uuid::nil()), result }, 2),
        ];
        for (part, times) in parts {
            let bytes = part.approximate_bytes();
            assert!((times * 10_000..times * 10_000 + 1_000).contains(&bytes), "{bytes}");
        }
    }
}
