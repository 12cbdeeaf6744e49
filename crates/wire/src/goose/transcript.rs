//! The fold of a session's log into goose's conversation.

use gander_domain::{
    Command, Entry, Event, LoggedMessage, Message as Said, MessageId, Part, Question, ResetReason, Role, Seq,
    Timestamp, ToolCall,
};
use serde_json::Value;

use super::content::{PAYLOAD_NAME, goose_action_required_content, goose_content_object};
use super::types::{GooseMessage, Metadata, goose_epoch_seconds};

/// What people see of a session, told entry by entry and not kept.
#[derive(Clone, Debug, Default)]
pub struct ConversationProjection(GooseTranscript);

impl ConversationProjection {
    /// What an entry says.
    pub fn project_entry(&mut self, entry: &Entry) -> Vec<Value> {
        self.0.apply_entry(entry);
        std::mem::take(&mut self.0.said).iter().filter_map(goose_transcript_message_object).collect()
    }

    /// What waits for an answer.
    pub fn open_questions(&self) -> Vec<Value> {
        self.0.all_messages()
    }
}

/// What people see of a session: whole messages, results of tools among them, and what waits for an answer.
#[derive(Clone, Debug, Default)]
pub struct GooseTranscript {
    said: Vec<LoggedMessage>,
    open: Vec<(Timestamp, Question)>,
    calls: Vec<ToolCall>,
}

/// The conversation that a whole log tells.
pub fn whole_goose_transcript<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> Vec<Value> {
    GooseTranscript::replay(entries).all_messages()
}

impl GooseTranscript {
    /// What a whole log tells.
    pub fn replay<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> Self {
        let mut transcript = Self::default();
        entries.into_iter().for_each(|entry| transcript.apply_entry(entry));
        transcript
    }

    /// Takes in the next entry.
    pub fn apply_entry(&mut self, entry: &Entry) {
        match &entry.event {
            Event::MessageDone { message } => self.push_message(entry, message.clone()),
            Event::ToolCalled { call } => self.calls.push(call.clone()),
            Event::ToolDone { call, result } => {
                let parts = vec![Part::ToolResult { call: *call, result: result.clone() }];
                let id = MessageId::new(call.uuid());
                self.push_message(entry, Said { id, role: Role::Tool, parts, interrupted: false, native: None });
            }
            Event::QuestionAsked { question } => self.open.push((entry.at, question.clone())),
            Event::QuestionAnswered { question, .. } => self.open.retain(|(_, open)| open.id != *question),
            Event::RunEnded { .. } => self.calls.clear(),
            Event::HistoryReset { .. } => LoggedMessage::apply_reset(&mut self.said, entry),
            Event::SessionCreated { .. }
            | Event::TitleSet { .. }
            | Event::SettingsChanged { .. }
            | Event::ArchiveSet { .. }
            | Event::Noticed { .. }
            | Event::PlanSet { .. }
            | Event::StateChanged { .. }
            | Event::ArtifactSaved { .. }
            | Event::TextMarked { .. }
            | Event::Routed { .. }
            | Event::UsageAdded { .. }
            | Event::RunQueued { .. }
            | Event::RunStarted { .. }
            | Event::RunRecovered { .. }
            | Event::CancelRequested { .. }
            | Event::MessageStarted { .. }
            | Event::PartDelta { .. }
            | Event::ToolStarted { .. }
            | Event::ToolUpdated { .. }
            | Event::OpaqueUpdate { .. }
            | Event::Unknown(_) => {} // not said by anybody
        }
    }

    /// All messages, and at the end what waits for an answer.
    pub fn all_messages(&self) -> Vec<Value> {
        let asked = self.open.iter().map(|(at, question)| {
            let call = self.calls.iter().find(|call| Some(call.id) == question.call);
            serde_json::to_value(goose_transcript_question_message(*at, question, call)).unwrap_or_default()
        });
        self.said.iter().filter_map(goose_transcript_message_object).chain(asked).collect()
    }

    /// The first so many messages, as they are in the log.
    pub fn first_messages(&self, count: usize) -> Vec<Said> {
        self.said.iter().take(count).map(|spoken| spoken.message.clone()).collect()
    }

    /// How many messages come before this second.
    pub fn count_before_second(&self, second: i64) -> usize {
        self.said.iter().position(|spoken| goose_transcript_second(spoken) >= second).unwrap_or(self.said.len())
    }

    /// How many messages come before the one with this id, if there is one.
    pub fn count_before_message(&self, id: &str) -> Option<usize> {
        self.said.iter().position(|spoken| goose_transcript_message_object(spoken).is_some_and(|told| told["id"] == id))
    }

    /// What goes back to the first so many messages. Those of a reset stand at one place and are said again.
    pub fn rewind_command(&self, count: usize) -> Command {
        let kept = &self.said[..count.min(self.said.len())];
        let cut_at = self.said.get(count).map(|spoken| spoken.seq);
        let whole = kept.iter().rposition(|spoken| Some(spoken.seq) != cut_at).map_or(0, |last| last + 1);
        let keep_to = whole.checked_sub(1).map_or(Seq::ZERO, |last| kept[last].seq);
        let replacement = kept[whole..].iter().map(|spoken| spoken.message.clone()).collect();
        Command::Reset { keep_to, replacement, reason: ResetReason::Rewound }
    }

    fn push_message(&mut self, entry: &Entry, message: Said) {
        self.said.push(LoggedMessage::from_single_message(entry, message));
    }
}

/// What goose itself wrote is given back as it was.
fn goose_transcript_message_object(spoken: &LoggedMessage) -> Option<Value> {
    match original_goose_transcript_form(spoken) {
        Some(own) => Some(own.clone()),
        None => {
            goose_transcript_message(&spoken.message, spoken.at).and_then(|message| serde_json::to_value(message).ok())
        }
    }
}

fn goose_transcript_second(spoken: &LoggedMessage) -> i64 {
    original_goose_transcript_form(spoken)
        .and_then(|own| own["created"].as_i64())
        .unwrap_or_else(|| goose_epoch_seconds(spoken.at))
}

fn original_goose_transcript_form(spoken: &LoggedMessage) -> Option<&Value> {
    spoken.message.native.as_ref().filter(|native| native.wire == PAYLOAD_NAME).map(|native| &native.items)
}

/// A whole message, unless nothing is said in it.
pub(super) fn goose_transcript_message(message: &Said, at: Timestamp) -> Option<GooseMessage> {
    let content: Vec<Value> = message.parts.iter().map(goose_content_object).collect();
    let metadata = if message.interrupted { Metadata::PEOPLE } else { Metadata::ALL };
    let whole = || GooseMessage {
        id: Some(message.id.to_string()),
        role: goose_transcript_role(message.role),
        created: goose_epoch_seconds(at),
        content: content.clone(),
        metadata,
    };
    (!content.is_empty()).then(whole)
}

/// A message that asks for an answer: no part of the history, and nothing for the model.
pub(super) fn goose_transcript_question_message(
    at: Timestamp,
    question: &Question,
    call: Option<&ToolCall>,
) -> GooseMessage {
    let tool = call.map(|call| (call.name.as_str(), &call.arguments));
    let content = vec![goose_action_required_content(question, tool)];
    GooseMessage { id: None, role: "assistant", created: goose_epoch_seconds(at), content, metadata: Metadata::PEOPLE }
}

/// Results of tools are said by the user's side.
pub(super) fn goose_transcript_role(role: Role) -> &'static str {
    match role {
        Role::User | Role::Tool => "user",
        Role::Agent => "assistant",
    }
}
