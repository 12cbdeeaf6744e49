//! Everything that is stored of a session, as events.

use gander_domain::{Entry, Event as Fact, Message, Reply, ResetReason, Role, Seq, SessionId};
use serde_json::{Value, json};

use super::{AdkProjection, StreamMode, adk_invocation_id, derived_adk_id};
use crate::adk::PROTOCOL_NAME;
use crate::adk::content::{adk_function_response_part, write_adk_part};
use crate::adk::projection::questions::adk_question_call_id;
use crate::adk::types::AdkEvent;

/// All events of a session, from all its entries.
pub fn adk_session_history(entries: &[Entry]) -> Vec<AdkEvent> {
    adk_session_history_of(entries, &[])
}

/// The same, of an agent some of whose tools give their last result later.
pub fn adk_session_history_of(entries: &[Entry], long_running: &[String]) -> Vec<AdkEvent> {
    let mut history = HistoryProjection::new(long_running);
    entries.iter().for_each(|entry| history.apply_entry(entry));
    history.events.into_iter().map(|(_, event)| event).collect()
}

/// Tells the events of a session entry by entry.
#[derive(Default)]
pub struct HistoryProjection {
    session: Option<SessionId>,
    agent: String,
    long_running: Vec<String>,
    telling: Option<AdkProjection>,
    /// What this protocol noted when the active run began.
    note: Value,
    events: Vec<(Seq, AdkEvent)>,
}

impl HistoryProjection {
    /// Of an agent some of whose tools give their last result later.
    pub fn new(long_running: &[String]) -> Self {
        Self { long_running: long_running.to_vec(), ..Self::default() }
    }

    /// The events that an entry tells, whether or not they are taken back later.
    pub fn project_entry(&mut self, entry: &Entry) -> Vec<AdkEvent> {
        self.apply_entry(entry);
        std::mem::take(&mut self.events).into_iter().map(|(_, event)| event).collect()
    }

    fn apply_entry(&mut self, entry: &Entry) {
        match &entry.event {
            Fact::SessionCreated { session, settings, .. } => {
                self.session = Some(*session);
                self.agent.clone_from(&settings.agent);
            }
            Fact::SettingsChanged { patch } => {
                if let Some(agent) = &patch.agent {
                    self.agent.clone_from(agent);
                }
            }
            Fact::RunStarted { .. } => self.run_started(entry),
            Fact::Routed { route } => self.agent.clone_from(&route.agent),
            Fact::MessageDone { message } if message.role == Role::User => self.user_message(entry, message),
            Fact::QuestionAnswered { question, answer } if answer.by.is_some() => {
                self.question_answered(entry, &adk_question_call_id(*question), &answer.reply);
            }
            Fact::StateChanged { delta, .. } if entry.run.is_none() => self.state_changed(entry, delta),
            Fact::HistoryReset { keep_to, replacement, reason } => {
                self.history_reset(entry, *keep_to, replacement, *reason)
            }
            Fact::MessageDone { .. }
            | Fact::QuestionAnswered { .. }
            | Fact::StateChanged { .. }
            | Fact::TitleSet { .. }
            | Fact::ArchiveSet { .. }
            | Fact::Noticed { .. }
            | Fact::PlanSet { .. }
            | Fact::ArtifactSaved { .. }
            | Fact::TextMarked { .. }
            | Fact::UsageAdded { .. }
            | Fact::RunQueued { .. }
            | Fact::RunRecovered { .. }
            | Fact::CancelRequested { .. }
            | Fact::RunEnded { .. }
            | Fact::MessageStarted { .. }
            | Fact::PartDelta { .. }
            | Fact::ToolCalled { .. }
            | Fact::ToolStarted { .. }
            | Fact::ToolUpdated { .. }
            | Fact::ToolDone { .. }
            | Fact::QuestionAsked { .. }
            | Fact::OpaqueUpdate { .. }
            | Fact::Unknown(_) => {} // told by the run, if at all
        }
        if let Some(telling) = &mut self.telling {
            let mut told = Vec::new();
            telling.project_entry(entry, &mut told);
            self.events.extend(told.into_iter().map(|event| (entry.seq, event)));
        }
    }

    fn run_started(&mut self, entry: &Entry) {
        let Some(run) = entry.run else { return };
        self.note = entry.meta.as_ref().and_then(|meta| meta.get(PROTOCOL_NAME)).cloned().unwrap_or_default();
        let telling = AdkProjection::new(run, &self.agent, StreamMode::Whole).with_long_running(&self.long_running);
        self.telling = Some(telling);
    }

    /// What was sent is shown as it was sent. A run without a message has none.
    fn user_message(&mut self, entry: &Entry, message: &Message) {
        let note = std::mem::take(&mut self.note);
        if note.get("silent").is_some() {
            return;
        }
        let sent = note.get("content").and_then(|content| content.get("parts")?.as_array().cloned());
        let parts = sent.unwrap_or_else(|| message.parts.iter().map(write_adk_part).collect());
        let mut event = self.user_event(entry, derived_adk_id(message.id.uuid(), 0)).with_content("user", parts);
        if let Some(Value::Object(delta)) = note.get("stateDelta") {
            event.actions.state_delta.clone_from(delta);
        }
        self.events.push((entry.seq, event));
    }

    fn question_answered(&mut self, entry: &Entry, id: &str, reply: &Reply) {
        let note = entry.meta.as_ref().and_then(|meta| meta.get(PROTOCOL_NAME)?.get("response").cloned());
        let name =
            entry.meta.as_ref().and_then(|meta| meta.get(PROTOCOL_NAME)?.get("name")?.as_str().map(str::to_owned));
        let response = note.unwrap_or_else(|| match reply {
            Reply::Filled { content } => content.clone(),
            Reply::Chosen { .. }
            | Reply::Rejected { .. }
            | Reply::Declined
            | Reply::Cancelled
            | Reply::Interrupted
            | Reply::Superseded => {
                json!({ "confirmed": reply.is_allowed() })
            }
        });
        let name = name.unwrap_or_else(|| "adk_request_confirmation".to_owned());
        let part = adk_function_response_part(id, &name, &response);
        let event = self.user_event(entry, self.entry_event_id(entry)).with_content("user", vec![part]);
        self.events.push((entry.seq, event));
    }

    /// Values that a run brought along are told with its message.
    fn state_changed(&mut self, entry: &Entry, delta: &gander_domain::State) {
        let of_run = entry.meta.as_ref().is_some_and(|meta| meta.get(PROTOCOL_NAME).is_some());
        if of_run || delta.is_empty() {
            return;
        }
        let mut event = self.user_event(entry, self.entry_event_id(entry));
        event.invocation_id = format!("p-{}", self.entry_event_id(entry));
        event.actions.state_delta.clone_from(delta);
        self.events.push((entry.seq, event));
    }

    fn history_reset(&mut self, entry: &Entry, keep_to: Seq, replacement: &[Message], reason: ResetReason) {
        match reason {
            ResetReason::Compacted => return, // people still see everything
            ResetReason::Cleared | ResetReason::Rewound | ResetReason::Replaced => {}
        }
        self.events.retain(|(seq, _)| *seq <= keep_to);
        for message in replacement {
            let (author, role) = match message.role {
                Role::User => ("user", "user"),
                Role::Agent => (self.agent.as_str(), "model"),
                Role::Tool => (self.agent.as_str(), "user"),
            };
            let id = message.id.uuid();
            let event = AdkEvent::new(&format!("e-{id}"), author, id.to_string(), entry.at);
            self.events.push((entry.seq, event.with_content(role, message.parts.iter().map(write_adk_part).collect())));
        }
    }

    fn user_event(&self, entry: &Entry, id: String) -> AdkEvent {
        let told = self.telling.as_ref().filter(|telling| entry.run.is_none_or(|run| run == telling.run()));
        let name = told.map(AdkProjection::invocation_id).or_else(|| entry.run.map(adk_invocation_id));
        AdkEvent::new(&name.unwrap_or_default(), "user", id, entry.at)
    }

    /// An id for an entry that has none of its own.
    fn entry_event_id(&self, entry: &Entry) -> String {
        let session = self.session.map(SessionId::uuid).unwrap_or_default();
        derived_adk_id(session, u128::from(entry.seq.0) << 4)
    }
}
