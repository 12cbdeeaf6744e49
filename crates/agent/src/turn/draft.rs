//! What the model has said so far in one call.

use gander_domain::{Delta, DeltaKind, IdGenerator, Message, MessageId, Part, Role, ToolCallId};
use gander_models::{ModelEvent, ModelStop};
use serde_json::Value;

/// An answer that grows.
#[derive(Default)]
pub(super) struct Draft {
    /// Set once anybody has seen some of it.
    pub message: Option<MessageId>,
    grown: Vec<Part>,
    whole: Vec<Part>,
    tools: Vec<DraftCall>,
}

#[derive(Default)]
struct DraftCall {
    name: String,
    arguments: String,
}

/// An answer that came to its end.
pub(super) struct FinishedDraft {
    /// All of it.
    pub parts: Vec<Part>,
    /// The parts after those that grew in the open.
    pub tail: Vec<Part>,
    /// The tool whose call was cut off.
    pub half: Option<String>,
}

impl Draft {
    /// Takes in an event that is not the end; gives back what people see at once.
    pub(super) fn apply_event(&mut self, event: ModelEvent) -> Option<Delta> {
        match event {
            ModelEvent::Delta(delta) if delta.text.is_empty() => None,
            ModelEvent::Delta(delta) => {
                append_delta_to_draft(&mut self.grown, &delta);
                Some(delta)
            }
            ModelEvent::ToolStarted { index, name } => {
                self.call_at(index).name = name;
                None
            }
            ModelEvent::ToolArguments { index, text } => {
                self.call_at(index).arguments.push_str(&text);
                None
            }
            ModelEvent::Part(part) => {
                self.whole.push(part);
                None
            }
            ModelEvent::Done(_) => None,
        }
    }

    /// The answer, with an id for each tool call. A refusal calls no tools.
    pub(super) fn finish_draft(self, stop: ModelStop, ids: &mut dyn IdGenerator) -> FinishedDraft {
        let Self { grown, mut whole, tools, .. } = self;
        let mut half = None;
        whole.retain(|part| !matches!(part, Part::ToolUse { .. } | Part::ToolResult { .. }));
        for tool in tools.into_iter().filter(|tool| !tool.name.is_empty() && stop != ModelStop::Refusal) {
            let arguments = serde_json::from_str(&tool.arguments);
            if arguments.is_err() && stop == ModelStop::MaxTokens {
                half = Some(tool.name);
                continue;
            }
            let arguments = arguments.unwrap_or_else(|_| unparsed_draft_arguments(tool.arguments));
            whole.push(Part::ToolUse { call: ToolCallId::make(ids), name: tool.name, arguments });
        }
        let parts = grown.into_iter().chain(whole.iter().cloned()).collect();
        FinishedDraft { parts, tail: whole, half }
    }

    /// What people have seen, as a message; `None` if nothing.
    pub(super) fn into_message(self) -> Option<Message> {
        let Self { message, grown, .. } = self;
        Some(drafted_message(message?, grown))
    }

    fn call_at(&mut self, index: u32) -> &mut DraftCall {
        // A peer may send any index: a gap costs one empty call, a wild one joins the last.
        let index = (index as usize).min(self.tools.len());
        if index == self.tools.len() {
            self.tools.push(DraftCall::default());
        }
        &mut self.tools[index]
    }
}

/// Some providers send nothing for no arguments. Other text is kept, so that the tool's complaint can name it.
fn unparsed_draft_arguments(text: String) -> Value {
    if text.trim().is_empty() { Value::Object(serde_json::Map::new()) } else { Value::String(text) }
}

/// A whole message of the agent.
pub(super) fn drafted_message(id: MessageId, parts: Vec<Part>) -> Message {
    Message { id, role: Role::Agent, parts, interrupted: false, native: None }
}

/// The session joins deltas in the same way: a change of kind opens the next part.
fn append_delta_to_draft(parts: &mut Vec<Part>, delta: &Delta) {
    match (parts.last_mut(), delta.growth) {
        (Some(Part::Text { text }), DeltaKind::Text) | (Some(Part::Thought { text }), DeltaKind::Thought) => {
            text.push_str(&delta.text);
        }
        (_, DeltaKind::Text) => parts.push(Part::Text { text: delta.text.clone() }),
        (_, DeltaKind::Thought) => parts.push(Part::Thought { text: delta.text.clone() }),
    }
}
