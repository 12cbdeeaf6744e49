//! A session's entries as ADK events: one run as it happens, or everything that is stored.

mod history;
mod live;
mod questions;
mod tools;

use gander_domain::{
    DeltaKind, Entry, Event as Fact, Message, Outcome, Part, Role, Route, RunId, StopReason, Timestamp, ToolCallId,
    Usage,
};
use serde_json::{Map, Value, json};
use uuid::Uuid;

pub use history::{HistoryProjection, adk_session_history, adk_session_history_of};
pub use questions::adk_question_call_id;

use super::PROTOCOL_NAME;
use super::content::{adk_function_call_id, write_adk_part};
use super::types::{AdkEvent, AdkUsageMetadata, adk_epoch_seconds};
use questions::OpenQuestion;
use tools::OpenToolCalls;

/// A longer piece of text is not joined any further: some readers stop at lines of 64 KiB.
const MAX_JOINED_TEXT: usize = 32 * 1024;

/// In pieces, or whole things only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamMode {
    /// Pieces, then the whole.
    Pieces,
    /// Whole things.
    Whole,
}

/// How far a run is.
#[derive(Clone, Debug, PartialEq)]
pub enum RunStage {
    /// It did not begin yet.
    Waiting,
    /// It is under way.
    Running,
    /// It waits for an answer, and everything is told.
    Asking,
    /// It is over.
    Ended(Outcome),
}

/// Tells one run, entry by entry.
#[derive(Clone, Debug)]
pub struct AdkProjection {
    run: RunId,
    author: String,
    /// Who began to speak, if that is another.
    root: Option<String>,
    tone: StreamMode,
    stage: RunStage,
    beside: Map<String, Value>,
    /// What the next whole event carries beside.
    next_beside: Map<String, Value>,
    model: Option<String>,
    speaking: bool,
    /// Parts of the open message that were told in pieces.
    grown: usize,
    /// A whole message, kept back until it is known what it cost.
    held: Option<AdkEvent>,
    tools: OpenToolCalls,
    questions: Vec<OpenQuestion>,
    superseded: bool,
    /// Begun over a live connection.
    live: bool,
    /// The run that this one goes on with: clients see one.
    continues: Option<RunId>,
    /// Tools whose first result is not their last.
    long_running: Vec<String>,
}

impl AdkProjection {
    /// Tells this run of an agent.
    pub fn new(run: RunId, author: &str, tone: StreamMode) -> Self {
        Self {
            run,
            author: author.to_owned(),
            root: None,
            tone,
            stage: RunStage::Waiting,
            beside: Map::new(),
            next_beside: Map::new(),
            model: None,
            speaking: false,
            grown: 0,
            held: None,
            tools: OpenToolCalls::default(),
            questions: Vec::new(),
            superseded: false,
            live: false,
            continues: None,
            long_running: Vec::new(),
        }
    }

    /// Some tools of the agent give their last result later.
    pub fn with_long_running(self, tools: &[String]) -> Self {
        Self { long_running: tools.to_vec(), ..self }
    }

    /// How the run is named to clients.
    pub fn invocation_id(&self) -> String {
        adk_invocation_id(self.continues.unwrap_or(self.run))
    }

    /// Which run.
    pub fn run(&self) -> RunId {
        self.run
    }

    /// How far it is.
    pub fn stage(&self) -> &RunStage {
        &self.stage
    }

    /// Takes in the next entry of the session; tells what the agent says by it.
    pub fn project_entry(&mut self, entry: &Entry, events: &mut Vec<AdkEvent>) {
        if entry.run != Some(self.run) || matches!(self.stage, RunStage::Ended(_)) {
            return self.note_settings_change(entry);
        }
        let from = events.len();
        self.project_own_entry(entry, events);
        if self.live {
            self.mark_live_events(entry, events, from);
        }
    }

    fn project_own_entry(&mut self, entry: &Entry, events: &mut Vec<AdkEvent>) {
        if !matches!(entry.event, Fact::UsageAdded { .. } | Fact::RunEnded { .. }) {
            events.extend(self.release_held_message("STOP"));
        }
        match &entry.event {
            Fact::RunStarted { .. } => self.run_started(entry),
            Fact::MessageStarted { .. } => (self.speaking, self.grown) = (true, 0),
            Fact::PartDelta { message, part, growth, text } => {
                (self.speaking, self.grown) = (true, *part as usize + 1);
                if self.tone == StreamMode::Pieces {
                    events.push(self.partial_event(message.uuid(), entry.at, *growth, text));
                }
            }
            Fact::MessageDone { message } if message.role == Role::Agent => self.message_done(entry.at, message, events),
            Fact::UsageAdded { usage } => self.add_usage(usage),
            Fact::ToolCalled { call } => {
                if let Some(part) = self.tools.tool_called(call) {
                    let mut event = self.next_event(entry.at, call.id.uuid(), 1).with_content("model", vec![part]);
                    event.long_running_tool_ids = Some(self.long_running_ids([(call.id, call.name.as_str())]));
                    events.push(event);
                }
            }
            Fact::StateChanged { delta, call } => {
                let actions = self.tools.result_actions(*call);
                actions.state_delta.extend(delta.clone());
                events.extend(self.unattached_actions(entry));
            }
            Fact::ArtifactSaved { name, version, call, .. } => {
                let actions = self.tools.result_actions(*call);
                actions.artifact_delta.insert(name.clone(), json!(version));
                events.extend(self.unattached_actions(entry));
            }
            Fact::ToolDone { call, result } => {
                self.tools.tool_done(*call, result);
                events.extend(self.results_when_done(entry.at));
            }
            Fact::QuestionAsked { question } => self.question_asked(question),
            Fact::QuestionAnswered { question, answer } => self.question_answered(*question, answer),
            Fact::PlanSet { plan } => self.add_state_change("plan", json!(plan)),
            Fact::Routed { route } => events.push(self.mode_transfer(entry, route)),
            Fact::RunEnded { outcome } => self.run_ended(entry.at, outcome, events),
            Fact::SettingsChanged { .. }
            | Fact::MessageDone { .. } // what a person says is not told to who said it
            | Fact::SessionCreated { .. }
            | Fact::TitleSet { .. }
            | Fact::ArchiveSet { .. }
            | Fact::HistoryReset { .. }
            | Fact::Noticed { .. }
            | Fact::TextMarked { .. }
            | Fact::RunQueued { .. }
            | Fact::RunRecovered { .. }
            | Fact::CancelRequested { .. }
            | Fact::ToolStarted { .. }
            | Fact::ToolUpdated { .. }
            | Fact::OpaqueUpdate { .. }
            | Fact::Unknown(_) => {}
        }
        self.emit_questions(entry.at, events);
    }

    /// The model or the agent changed while the run was under way.
    fn note_settings_change(&mut self, entry: &Entry) {
        if let Fact::SettingsChanged { patch } = &entry.event {
            if let Some(agent) = &patch.agent {
                self.author.clone_from(agent);
            }
            if matches!(self.stage, RunStage::Running | RunStage::Asking) {
                self.add_state_change("settings", json!(patch));
            }
        }
    }

    fn add_state_change(&mut self, name: &str, value: Value) {
        self.next_beside.insert(name.to_owned(), value);
    }

    fn run_started(&mut self, entry: &Entry) {
        self.stage = RunStage::Running;
        let Some(note) = entry.meta.as_ref().and_then(|meta| meta.get(PROTOCOL_NAME)) else { return };
        self.beside = note.get("customMetadata").and_then(Value::as_object).cloned().unwrap_or_default();
        self.live = note.get("live").is_some();
        self.continues = note.get("continues").and_then(|run| run.as_str()?.parse().ok());
    }

    /// The prompt goes to another mode, which speaks from now on, below whoever was asked.
    fn mode_transfer(&mut self, entry: &Entry, route: &Route) -> AdkEvent {
        self.add_state_change("routed", json!(route));
        let salt = (u128::from(entry.seq.0) << 8) | 1;
        let mut event = self.next_event(entry.at, self.run.uuid(), salt);
        event.actions.transfer_to_agent = Some(route.mode.clone());
        let before = std::mem::replace(&mut self.author, route.mode.clone());
        self.root.get_or_insert(before);
        event
    }

    /// An event of this run that says and does nothing yet.
    fn empty_event(&self, id: String, at: Timestamp) -> AdkEvent {
        let mut event = AdkEvent::new(&self.invocation_id(), &self.author, id, at);
        if let Some(root) = &self.root {
            event.node_info.path.insert_str(0, &format!("{root}@1/"));
        }
        event
    }

    /// An event of this run that is no piece.
    fn next_event(&mut self, at: Timestamp, id: Uuid, salt: u128) -> AdkEvent {
        let mut event = self.empty_event(derived_adk_id(id, salt), at);
        event.custom_metadata.clone_from(&self.beside);
        if !self.next_beside.is_empty() {
            let mentioned = std::mem::take(&mut self.next_beside);
            event.custom_metadata.insert("gander".to_owned(), Value::Object(mentioned));
        }
        event
    }

    fn partial_event(&self, id: Uuid, at: Timestamp, growth: DeltaKind, text: &str) -> AdkEvent {
        let part = match growth {
            DeltaKind::Text => json!({ "text": text }),
            DeltaKind::Thought => json!({ "text": text, "thought": true }),
        };
        let event = self.empty_event(id.to_string(), at);
        let (partial, model_version) = (Some(true), self.model.clone());
        AdkEvent {
            partial,
            model_version,
            custom_metadata: self.beside.clone(),
            ..event.with_content("model", vec![part])
        }
    }

    /// Calls are told in pieces too, before the whole: who acts on them waits for that.
    fn message_done(&mut self, at: Timestamp, message: &Message, events: &mut Vec<AdkEvent>) {
        let grown = std::mem::take(&mut self.grown);
        self.speaking = false;
        if message.parts.is_empty() {
            return;
        }
        let calls = self.tools.expect_calls(&message.parts);
        let mut event = self.next_event(at, message.id.uuid(), 0);
        event.long_running_tool_ids = calls.then(|| self.long_running_ids(adk_called_tools(&message.parts)));
        event.interrupted = message.interrupted.then_some(true);
        let parts: Vec<Value> = message.parts.iter().map(write_adk_part).collect();
        if self.tone == StreamMode::Pieces {
            event.partial = Some(true);
            if grown < parts.len() {
                events.push(event.clone().with_content("model", parts[grown..].to_vec()));
            }
            event.partial = Some(false);
        }
        self.held = Some(event.with_content("model", parts));
    }

    /// An event carries what its own model call used: a sub-agent's calls are in its own session.
    fn add_usage(&mut self, usage: &Usage) {
        if usage.child.is_some() {
            return;
        }
        let model = usage.model.rsplit('/').next().filter(|name| !name.is_empty()).map(str::to_owned);
        self.model.clone_from(&model);
        if let Some(held) = &mut self.held {
            held.model_version = model;
            held.usage_metadata = Some(adk_usage_metadata(usage));
        }
    }

    /// Those of the calls that somebody else will give the last result of, by name.
    fn long_running_ids<'a>(&self, calls: impl IntoIterator<Item = (ToolCallId, &'a str)>) -> Vec<String> {
        let lasts = |name: &str| self.long_running.iter().any(|known| known == name);
        let calls = calls.into_iter().filter(|(_, name)| lasts(name));
        let mut ids: Vec<String> = calls.map(|(call, _)| adk_function_call_id(call)).collect();
        ids.sort_unstable();
        ids
    }

    /// The message that was kept back.
    fn release_held_message(&mut self, finish: &'static str) -> Option<AdkEvent> {
        let mut event = self.held.take()?;
        event.finish_reason = event.interrupted.is_none().then_some(finish);
        Some(event)
    }

    fn run_ended(&mut self, at: Timestamp, outcome: &Outcome, events: &mut Vec<AdkEvent>) {
        let stop = match outcome {
            Outcome::Completed { stop } => *stop,
            Outcome::Cancelled | Outcome::Failed { .. } => StopReason::EndTurn,
        };
        let mut last = self.release_held_message(match stop {
            StopReason::EndTurn | StopReason::MaxTurns | StopReason::StopSequence => "STOP",
            StopReason::MaxTokens => "MAX_TOKENS",
            StopReason::Refusal => "SAFETY",
        });
        if let (Some(event), StopReason::Refusal) = (&mut last, stop) {
            event.error_code = Some("SAFETY".to_owned());
        }
        events.extend(last);
        events.extend(self.flush_results(at));
        let failure = match outcome {
            Outcome::Completed { stop } => stop.limit_message().map(|limit| ("MAX_TURNS", limit)),
            Outcome::Cancelled if self.superseded => None,
            Outcome::Cancelled => Some(("INVOCATION_ABORTED", "the run was cancelled")),
            Outcome::Failed { reason, message } => Some((reason.as_str(), message.as_str())),
        };
        if let Some((code, message)) = failure {
            let mut event = self.next_event(at, self.run.uuid(), 2);
            event.error_code = Some(code.to_owned());
            event.error_message = Some(message.to_owned());
            events.push(event);
        }
        self.stage = RunStage::Ended(outcome.clone());
    }
}

/// What a stream says last when a run failed: pages show it on top.
pub fn adk_failure_event(outcome: &Outcome, at: Timestamp) -> Option<Value> {
    let Outcome::Failed { reason, message } = outcome else { return None };
    Some(json!({
        "error": format!("{reason}: {message}"),
        "error_details": { "error_type": reason, "error_message": message, "timestamp": adk_epoch_seconds(at) },
    }))
}

/// How a run is named here.
pub fn adk_invocation_id(run: RunId) -> String {
    format!("e-{run}")
}

/// The run behind a name, if it is one of ours.
pub fn adk_run_of_invocation(invocation: &str) -> Option<RunId> {
    invocation.strip_prefix("e-")?.parse().ok()
}

/// Pages expect what a tool said and what it put away as two events of one id.
pub fn split_adk_artifact_event(event: AdkEvent) -> (AdkEvent, Option<AdkEvent>) {
    if event.content.is_none() || event.actions.artifact_delta.is_empty() {
        return (event, None);
    }
    let mut said = event.clone();
    let mut saved = AdkEvent { content: None, ..event };
    said.actions.artifact_delta = Map::new();
    saved.actions.state_delta = Map::new();
    (said, Some(saved))
}

/// Grows the first piece by the second if both are pieces of one part, else gives the second back.
pub fn join_adk_events(first: &mut AdkEvent, second: AdkEvent) -> Option<AdkEvent> {
    let text = |event: &AdkEvent| match (event.partial, event.content.as_ref().map(|content| content.parts.as_slice()))
    {
        (Some(true), Some([part])) => {
            part.get("text").and_then(Value::as_str).map(str::len).map(|length| (length, part.get("thought").is_some()))
        }
        _ => None,
    };
    match (text(first), text(&second)) {
        (Some((length, thought)), Some((_, other)))
            if thought == other && first.id == second.id && length < MAX_JOINED_TEXT =>
        {
            let more = second.content.and_then(|content| content.parts.into_iter().next());
            let part = first.content.as_mut().and_then(|content| content.parts.first_mut());
            if let (Some(part), Some(Value::String(more))) = (part, more.map(|mut more| more["text"].take()))
                && let Value::String(text) = &mut part["text"]
            {
                text.push_str(&more);
            }
            None
        }
        _ => Some(second),
    }
}

/// An id that is the same whenever the same entries are told.
pub(super) fn derived_adk_id(id: Uuid, salt: u128) -> String {
    Uuid::from_u128(id.as_u128() ^ salt).to_string()
}

fn adk_usage_metadata(usage: &Usage) -> AdkUsageMetadata {
    let some = |count: u64| (count > 0).then_some(count);
    AdkUsageMetadata {
        candidates_token_count: usage.output.saturating_sub(usage.thinking),
        prompt_token_count: usage.input,
        cached_content_token_count: some(usage.cached),
        thoughts_token_count: some(usage.thinking),
        total_token_count: usage.input + usage.output,
    }
}

/// The names of the calls among these parts.
pub(super) fn adk_called_tools(parts: &[Part]) -> impl Iterator<Item = (ToolCallId, &str)> {
    parts.iter().filter_map(|part| match part {
        Part::ToolUse { call, name, .. } => Some((*call, name.as_str())),
        Part::Text { .. }
        | Part::Thought { .. }
        | Part::Image { .. }
        | Part::Audio { .. }
        | Part::Link { .. }
        | Part::Resource { .. }
        | Part::ToolResult { .. }
        | Part::Unknown(_) => None,
    })
}
