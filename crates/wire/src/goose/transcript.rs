//! The fold of a session's log into goose's conversation.

use gander_domain::{
    Command, Entry, Event, Message as Said, MessageId, Part, Question, ResetReason, Role, Seq, Spoken, Timestamp,
    ToolCall,
};
use serde_json::Value;

use super::content::{NATIVE, action_required, content};
use super::types::{Message, Metadata, seconds};

/// What people see of a session, told entry by entry and not kept.
#[derive(Clone, Debug, Default)]
pub struct Recital(Transcript);

impl Recital {
    /// What an entry says.
    pub fn tell(&mut self, entry: &Entry) -> Vec<Value> {
        self.0.apply(entry);
        std::mem::take(&mut self.0.said).iter().filter_map(as_told).collect()
    }

    /// What waits for an answer.
    pub fn asked(&self) -> Vec<Value> {
        self.0.messages()
    }
}

/// What people see of a session: whole messages, results of tools among them, and what waits for an answer.
#[derive(Clone, Debug, Default)]
pub struct Transcript {
    said: Vec<Spoken>,
    open: Vec<(Timestamp, Question)>,
    calls: Vec<ToolCall>,
}

/// The conversation that a whole log tells.
pub fn conversation<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> Vec<Value> {
    Transcript::replay(entries).messages()
}

impl Transcript {
    /// What a whole log tells.
    pub fn replay<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> Self {
        let mut transcript = Self::default();
        entries.into_iter().for_each(|entry| transcript.apply(entry));
        transcript
    }

    /// Takes in the next entry.
    pub fn apply(&mut self, entry: &Entry) {
        match &entry.event {
            Event::MessageDone { message } => self.say(entry, message.clone()),
            Event::ToolCalled { call } => self.calls.push(call.clone()),
            Event::ToolDone { call, result } => {
                let parts = vec![Part::ToolResult { call: *call, result: result.clone() }];
                let id = MessageId::new(call.uuid());
                self.say(entry, Said { id, role: Role::Tool, parts, interrupted: false, native: None });
            }
            Event::QuestionAsked { question } => self.open.push((entry.at, question.clone())),
            Event::QuestionAnswered { question, .. } => self.open.retain(|(_, open)| open.id != *question),
            Event::RunEnded { .. } => self.calls.clear(),
            Event::HistoryReset { .. } => Spoken::reset(&mut self.said, entry),
            Event::SessionCreated { .. }
            | Event::TitleSet { .. }
            | Event::SettingsChanged { .. }
            | Event::ArchiveSet { .. }
            | Event::Noticed { .. }
            | Event::PlanSet { .. }
            | Event::StateChanged { .. }
            | Event::ArtifactSaved { .. }
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
            | Event::Unknown(_) => {} // not said by anybody
        }
    }

    /// All messages, and at the end what waits for an answer.
    pub fn messages(&self) -> Vec<Value> {
        let asked = self.open.iter().map(|(at, question)| {
            let call = self.calls.iter().find(|call| Some(call.id) == question.call);
            serde_json::to_value(asking(*at, question, call)).unwrap_or_default()
        });
        self.said.iter().filter_map(as_told).chain(asked).collect()
    }

    /// The first so many messages, as they are in the log.
    pub fn first(&self, count: usize) -> Vec<Said> {
        self.said.iter().take(count).map(|spoken| spoken.message.clone()).collect()
    }

    /// How many messages come before this second.
    pub fn before_second(&self, second: i64) -> usize {
        self.said.iter().position(|spoken| created(spoken) >= second).unwrap_or(self.said.len())
    }

    /// How many messages come before the one with this id, if there is one.
    pub fn before_message(&self, id: &str) -> Option<usize> {
        self.said.iter().position(|spoken| as_told(spoken).is_some_and(|told| told["id"] == id))
    }

    /// What goes back to the first so many messages. Those of a reset stand at one place and are said again.
    pub fn rewind(&self, count: usize) -> Command {
        let kept = &self.said[..count.min(self.said.len())];
        let cut_at = self.said.get(count).map(|spoken| spoken.seq);
        let whole = kept.iter().rposition(|spoken| Some(spoken.seq) != cut_at).map_or(0, |last| last + 1);
        let keep_to = whole.checked_sub(1).map_or(Seq::ZERO, |last| kept[last].seq);
        let replacement = kept[whole..].iter().map(|spoken| spoken.message.clone()).collect();
        Command::Reset { keep_to, replacement, reason: ResetReason::Rewound }
    }

    fn say(&mut self, entry: &Entry, message: Said) {
        self.said.push(Spoken::only(entry, message));
    }
}

/// What goose itself wrote is given back as it was.
fn as_told(spoken: &Spoken) -> Option<Value> {
    match own(spoken) {
        Some(own) => Some(own.clone()),
        None => told(&spoken.message, spoken.at).and_then(|message| serde_json::to_value(message).ok()),
    }
}

fn created(spoken: &Spoken) -> i64 {
    own(spoken).and_then(|own| own["created"].as_i64()).unwrap_or_else(|| seconds(spoken.at))
}

fn own(spoken: &Spoken) -> Option<&Value> {
    spoken.message.native.as_ref().filter(|native| native.wire == NATIVE).map(|native| &native.items)
}

/// A whole message, unless nothing is said in it.
pub(super) fn told(message: &Said, at: Timestamp) -> Option<Message> {
    let content: Vec<Value> = message.parts.iter().map(content).collect();
    let metadata = if message.interrupted { Metadata::PEOPLE } else { Metadata::ALL };
    let whole = || Message {
        id: Some(message.id.to_string()),
        role: role(message.role),
        created: seconds(at),
        content: content.clone(),
        metadata,
    };
    (!content.is_empty()).then(whole)
}

/// A message that asks for an answer: no part of the history, and nothing for the model.
pub(super) fn asking(at: Timestamp, question: &Question, call: Option<&ToolCall>) -> Message {
    let tool = call.map(|call| (call.name.as_str(), &call.arguments));
    let content = vec![action_required(question, tool)];
    Message { id: None, role: "assistant", created: seconds(at), content, metadata: Metadata::PEOPLE }
}

/// Results of tools are said by the user's side.
pub(super) fn role(role: Role) -> &'static str {
    match role {
        Role::User | Role::Tool => "user",
        Role::Agent => "assistant",
    }
}
