//! A run as it is read from its session's log: what it is now, and the events that led there.

use gander_domain::{
    Answer, DeltaKind, Entry, Event as Fact, Message as Said, Outcome, Part, Question, QuestionId, Role, RunId,
    SessionId, StopReason, ToolCall,
};
use serde_json::{Value, json};

use super::content::{
    acp_rest_message_part, acp_rest_thought_part, acp_rest_tool_call_part, acp_rest_tool_result_part,
};
use super::question::acp_rest_question_await_request;
use super::refusal::{AcpRestError, ErrorCode};
use super::types::{AcpRestEvent, AcpRestMessage, AcpRestRun, MessagePart, RunStatus, WireTime};
use crate::saved_artifact::SavedArtifact;

/// So many bytes of a run's output are kept while its events are told: who reads slowly must not hold all of it.
const MAX_KEPT_OUTPUT: usize = 64 * 1024;

/// Every kind of generic event. The name of its kind is also the name of its content.
pub const GENERIC_KINDS: [&str; 16] = [
    "answered",
    "artifact",
    "history",
    "notice",
    "plan",
    "question",
    "recovered",
    "routed",
    "settings",
    "state",
    "steered",
    "stopped",
    "title",
    "tool",
    "update",
    "usage",
];

/// Whoever hears the events.
type EventSink<'a> = &'a mut dyn FnMut(&AcpRestEvent<'_>);

/// A run, folded from the entries of its session in order. Entries of other runs pass by.
#[derive(Clone, Debug)]
pub struct AcpRestProjection {
    run: AcpRestRun,
    role: String,
    stage: RunStage,
    open: Option<OpenMessage>,
    /// Calls that have not ended.
    calls: Vec<ToolCall>,
    questions: Vec<Question>,
    prompt: SentPrompt,
    /// Where the client can read what was put away.
    artifacts_url: Option<String>,
    output: OutputKept,
}

/// Whether a run's output is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OutputKept {
    /// All of it, always.
    Complete,
    /// All of it so far: about so many bytes.
    Counted(usize),
    /// It became too long, and was let go; about so many bytes came since.
    LetGo(usize),
}

/// What the client sent, with its own times.
#[derive(Clone, Debug, Default)]
struct SentPrompt {
    times: Option<[WireTime; 2]>,
    parts: Vec<Part>,
}

/// What was read of the run so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RunStage {
    Nothing,
    Queued,
    Started,
    Prompted,
}

/// The message that grows.
#[derive(Clone, Copy, Debug)]
struct OpenMessage {
    at: WireTime,
    /// Its place in the output, once there is something to show.
    position: Option<usize>,
}

impl AcpRestProjection {
    /// A run of which nothing was read yet.
    pub fn new(session: SessionId, agent: &str, run: RunId) -> Self {
        let run = AcpRestRun {
            run_id: run,
            agent_name: agent.to_owned(),
            session_id: session.to_string(),
            status: RunStatus::Created,
            await_request: None,
            output: Vec::new(),
            error: None,
            created_at: WireTime::default(),
            finished_at: None,
        };
        let role = format!("agent/{agent}");
        let (calls, questions, prompt) = (Vec::new(), Vec::new(), SentPrompt::default());
        Self {
            run,
            role,
            stage: RunStage::Nothing,
            open: None,
            calls,
            questions,
            prompt,
            artifacts_url: None,
            output: OutputKept::Complete,
        }
    }

    /// What is put away and too large to be told can be read at this address.
    pub fn with_artifacts_url(self, artifacts_url: String) -> Self {
        Self { artifacts_url: Some(artifacts_url), ..self }
    }

    /// Lets a long output go while events are told. Where it is [lacking](Self::lacks), another reading of the same
    /// entries takes this one's place.
    pub fn without_output(self) -> Self {
        let weight = self.run.output.iter().flat_map(|message| &message.parts).map(acp_rest_part_size).sum();
        Self { output: OutputKept::Counted(weight), ..self }
    }

    /// True if this entry's events tell the whole output, and it was let go.
    pub fn needs_restore(&self, entry: &Entry) -> bool {
        let whole = matches!(
            entry.event,
            Fact::RunQueued { .. }
                | Fact::RunStarted { .. }
                | Fact::RunEnded { .. }
                | Fact::QuestionAsked { .. }
                | Fact::QuestionAnswered { .. }
        );
        whole && matches!(self.output, OutputKept::LetGo(_)) && entry.run == Some(self.run.run_id)
    }

    /// The run as it is now.
    pub fn run(&self) -> &AcpRestRun {
        &self.run
    }

    /// The run as it is now.
    pub fn into_run(self) -> AcpRestRun {
        self.run
    }

    /// What it waits for.
    pub fn question(&self) -> Option<&Question> {
        self.questions.first()
    }

    /// True if it goes on no further by itself.
    pub fn is_settled(&self) -> bool {
        self.run.status.is_terminal() || self.run.status == RunStatus::Awaiting
    }

    /// Takes in the next entry.
    pub fn handle_entry(&mut self, entry: &Entry) {
        self.project_entry(entry, &mut |_| {});
    }

    /// Takes in the next entry and tells its events, in order.
    pub fn project_entry(&mut self, entry: &Entry, emit: EventSink<'_>) {
        let ours = entry.run == Some(self.run.run_id);
        let between = entry.run.is_none() && self.stage != RunStage::Nothing && !self.run.status.is_terminal();
        if ours || between {
            self.project_own_entry(entry, emit);
            self.drop_output(entry);
        }
    }

    fn project_own_entry(&mut self, entry: &Entry, emit: EventSink<'_>) {
        let at = WireTime(entry.at);
        match &entry.event {
            Fact::RunQueued { .. } => self.run_created(entry, RunStage::Queued, emit),
            Fact::RunStarted { .. } => self.run_started(entry, emit),
            Fact::CancelRequested { .. } => self.run.status = RunStatus::Cancelling,
            Fact::RunEnded { outcome } => self.run_ended(at, outcome, emit),
            Fact::MessageStarted { .. } => self.open = Some(OpenMessage { at, position: None }),
            Fact::PartDelta { growth, text, part, .. } => self.append_delta(*part as usize, *growth, text, emit),
            Fact::MessageDone { message } if message.role == Role::Agent => self.message_done(at, message, emit),
            Fact::MessageDone { message } => self.user_message(message, emit),
            Fact::ToolCalled { call } => {
                self.calls.push(call.clone());
                self.emit_message(at, acp_rest_tool_call_part(call), emit);
            }
            Fact::ToolDone { call, result } => {
                if let Some(index) = self.calls.iter().position(|open| open.id == *call) {
                    let call = self.calls.remove(index);
                    self.emit_message(at, acp_rest_tool_result_part(&call, result), emit);
                }
            }
            Fact::QuestionAsked { question } => self.question_asked(at, question, emit),
            Fact::QuestionAnswered { question, answer } => self.question_answered(*question, answer, emit),
            Fact::TitleSet { title } => emit_acp_rest_generic_event("title", json!(title), emit),
            Fact::SettingsChanged { patch } => emit_acp_rest_generic_event("settings", json!(patch), emit),
            Fact::Noticed { notice } => emit_acp_rest_generic_event("notice", json!(notice), emit),
            Fact::PlanSet { plan } => emit_acp_rest_generic_event("plan", json!(plan), emit),
            Fact::StateChanged { delta, .. } => emit_acp_rest_generic_event("state", json!(delta), emit),
            Fact::ArtifactSaved { name, version, mime, content, .. } => {
                let saved = SavedArtifact { name, version: *version, mime: mime.as_deref(), content: content.as_ref() };
                self.artifact_saved(at, saved, emit);
            }
            Fact::Routed { route } => emit_acp_rest_generic_event("routed", json!(route), emit),
            Fact::UsageAdded { usage } => emit_acp_rest_generic_event("usage", json!(usage), emit),
            Fact::RunRecovered { attempt } => emit_acp_rest_generic_event("recovered", json!(attempt), emit),
            Fact::HistoryReset { reason, .. } => emit_acp_rest_generic_event("history", json!(reason), emit),
            Fact::ToolUpdated { call, content } => {
                emit_acp_rest_generic_event("tool", json!({ "call": call, "content": content }), emit)
            }
            Fact::OpaqueUpdate { protocol, body } => {
                emit_acp_rest_generic_event("update", json!({ "protocol": protocol, "body": body }), emit)
            }
            Fact::SessionCreated { .. }
            | Fact::ArchiveSet { .. }
            | Fact::TextMarked { .. }
            | Fact::ToolStarted { .. }
            | Fact::Unknown(_) => {}
        }
    }

    /// Keeps no more of the output than is worth keeping: of the message that grows, how many parts it has.
    fn drop_output(&mut self, entry: &Entry) {
        let counted = |bytes| {
            if let Fact::PartDelta { text, .. } = &entry.event {
                return bytes + text.len();
            }
            self.run.output.iter().flat_map(|message| &message.parts).map(acp_rest_part_size).sum()
        };
        self.output = match self.output {
            OutputKept::Complete => return,
            OutputKept::Counted(bytes) => OutputKept::Counted(counted(bytes)),
            OutputKept::LetGo(bytes) => OutputKept::LetGo(counted(bytes)),
        };
        if let OutputKept::Counted(bytes) | OutputKept::LetGo(bytes) = self.output
            && bytes > MAX_KEPT_OUTPUT
        {
            self.output = OutputKept::LetGo(0);
            let open = self
                .open
                .as_mut()
                .and_then(|open| open.position.as_mut())
                .map(|position| std::mem::replace(position, 0));
            let open = open.map(|position| self.run.output.swap_remove(position));
            self.run.output = open.map(acp_rest_message_without_content).into_iter().collect();
        }
    }

    /// This protocol left a note for itself when it took the run in: who serves it, and how the client calls its session.
    fn run_created(&mut self, entry: &Entry, stage: RunStage, emit: EventSink<'_>) {
        self.stage = stage;
        self.run.created_at = WireTime(entry.at);
        let note = |key: &str| entry.meta.as_ref()?.get(super::PROTOCOL_NAME)?.get(key)?.as_str().map(str::to_owned);
        let times = entry.meta.as_ref().and_then(|meta| meta.get(super::PROTOCOL_NAME)?.get("times").cloned());
        self.prompt.times = times.and_then(|times| serde_json::from_value(times).ok());
        if let Some(session) = note("session") {
            self.run.session_id = session;
        }
        if let Some(agent) = note("agent") {
            self.role = format!("agent/{agent}");
            self.run.agent_name = agent;
        }
        emit(&AcpRestEvent::RunCreated { run: &self.run });
    }

    fn run_started(&mut self, entry: &Entry, emit: EventSink<'_>) {
        if self.stage == RunStage::Nothing {
            self.run_created(entry, RunStage::Started, emit);
        }
        self.stage = RunStage::Started;
        self.run.status = RunStatus::InProgress;
        emit(&AcpRestEvent::RunInProgress { run: &self.run });
    }

    fn run_ended(&mut self, at: WireTime, outcome: &Outcome, emit: EventSink<'_>) {
        self.run.finished_at = Some(at);
        self.run.status = match outcome {
            Outcome::Completed { stop: StopReason::Refusal } => {
                self.run.error = Some(AcpRestError::server_error("the model refused").with_reason("refusal"));
                RunStatus::Failed
            }
            Outcome::Completed { stop: StopReason::MaxTurns } => {
                let limit = StopReason::MaxTurns.limit_message().unwrap_or_default();
                self.run.error = Some(AcpRestError::server_error(limit).with_reason("max_turns"));
                RunStatus::Failed
            }
            Outcome::Completed { stop } => {
                if *stop != StopReason::EndTurn {
                    emit_acp_rest_generic_event("stopped", json!(stop), emit);
                }
                RunStatus::Completed
            }
            Outcome::Cancelled => RunStatus::Cancelled,
            Outcome::Failed { reason, message } => {
                self.run.error = Some(acp_rest_run_error(reason, message));
                RunStatus::Failed
            }
        };
        let run = &self.run;
        emit(&match run.status {
            RunStatus::Completed => AcpRestEvent::RunCompleted { run },
            RunStatus::Cancelled => AcpRestEvent::RunCancelled { run },
            RunStatus::Failed
            | RunStatus::Created
            | RunStatus::InProgress
            | RunStatus::Awaiting
            | RunStatus::Cancelling => AcpRestEvent::RunFailed { run },
        });
    }

    fn append_delta(&mut self, part: usize, growth: DeltaKind, text: &str, emit: EventSink<'_>) {
        let piece = match growth {
            DeltaKind::Text => MessagePart::text(text.to_owned()),
            DeltaKind::Thought => acp_rest_thought_part(text.to_owned()),
        };
        let position = self.show_open_message(emit);
        emit(&AcpRestEvent::MessagePart { part: &piece });
        let parts = &mut self.run.output[position].parts;
        match parts.get_mut(part) {
            Some(grown) => extend_acp_rest_part(grown, text),
            None => parts.push(piece),
        }
    }

    /// The place of the open message, which is shown from now on.
    fn show_open_message(&mut self, emit: EventSink<'_>) -> usize {
        let at = self.open.map_or(self.run.created_at, |open| open.at);
        if let Some(position) = self.open.and_then(|open| open.position) {
            return position;
        }
        let position = self.run.output.len();
        self.run.output.push(AcpRestMessage {
            role: self.role.clone(),
            parts: Vec::new(),
            created_at: Some(at),
            completed_at: None,
        });
        self.open = Some(OpenMessage { at, position: Some(position) });
        emit(&AcpRestEvent::MessageCreated { message: &self.run.output[position] });
        position
    }

    /// What is whole is authoritative. A message of which nothing is to be seen never was.
    fn message_done(&mut self, at: WireTime, message: &Said, emit: EventSink<'_>) {
        let parts: Vec<MessagePart> = message.parts.iter().filter_map(acp_rest_message_part).collect();
        self.open = self.open.or(Some(OpenMessage { at, position: None }));
        // Whoever passes on what it was told passes on its times.
        let passed_on = self.prompt.times.filter(|_| message.parts == self.prompt.parts);
        if let (Some([created, _]), Some(open)) = (passed_on, &mut self.open) {
            open.at = created;
        }
        if !parts.is_empty() {
            let position = self.show_open_message(emit);
            let grown = self.run.output[position].parts.len();
            parts.iter().skip(grown).for_each(|part| emit(&AcpRestEvent::MessagePart { part }));
            let shown = &mut self.run.output[position];
            shown.parts = parts;
            if !message.interrupted {
                shown.completed_at = Some(passed_on.map_or(at, |[_, completed]| completed));
                emit(&AcpRestEvent::MessageCompleted { message: &self.run.output[position] });
            }
        }
        self.open = None;
    }

    /// A message of one part.
    fn emit_message(&mut self, at: WireTime, part: MessagePart, emit: EventSink<'_>) {
        self.open = Some(OpenMessage { at, position: None });
        let position = self.show_open_message(emit);
        emit(&AcpRestEvent::MessagePart { part: &part });
        let shown = &mut self.run.output[position];
        shown.parts.push(part);
        shown.completed_at = Some(at);
        emit(&AcpRestEvent::MessageCompleted { message: &self.run.output[position] });
        self.open = None;
    }

    /// Something put away is a message of one part with a name: an artifact. Which version it is has no place in it.
    fn artifact_saved(&mut self, at: WireTime, saved: SavedArtifact<'_>, emit: EventSink<'_>) {
        let SavedArtifact { name, version, mime, .. } = saved;
        emit_acp_rest_generic_event(
            "artifact",
            json!({ "name": name, "version": version, "content_type": mime }),
            emit,
        );
        if let Some(part) = saved.as_part(self.artifacts_url.as_deref()).as_ref().and_then(acp_rest_message_part) {
            self.emit_message(at, part, emit);
        }
    }

    /// The first thing a person says is the prompt; everything later was said into the running turn.
    fn user_message(&mut self, message: &Said, emit: EventSink<'_>) {
        if self.stage == RunStage::Prompted {
            let parts: Vec<MessagePart> = message.parts.iter().filter_map(acp_rest_message_part).collect();
            return emit_acp_rest_generic_event("steered", json!(parts), emit);
        }
        self.stage = RunStage::Prompted;
        if self.prompt.times.is_some() {
            self.prompt.parts.clone_from(&message.parts);
        }
    }

    /// A run goes on without the answer to what is asked aside: it is told, and not awaited.
    fn question_asked(&mut self, at: WireTime, question: &Question, emit: EventSink<'_>) {
        if question.is_non_blocking() {
            return emit_acp_rest_generic_event("question", json!(question), emit);
        }
        self.questions.push(question.clone());
        if self.questions.len() == 1 {
            self.run.await_request = Some(acp_rest_question_await_request(&self.role, question, at));
            self.run.status = RunStatus::Awaiting;
            emit(&AcpRestEvent::RunAwaiting { run: &self.run });
        }
    }

    /// An answer sets the run going; if it asked more than one thing, the next one is awaited at once.
    fn question_answered(&mut self, question: QuestionId, _answer: &Answer, emit: EventSink<'_>) {
        if self.questions.iter().all(|open| open.id != question) {
            return emit_acp_rest_generic_event("answered", json!(question), emit);
        }
        self.questions.retain(|open| open.id != question);
        if self.run.status != RunStatus::Awaiting {
            return; // it is being cancelled
        }
        self.run.status = RunStatus::InProgress;
        emit(&AcpRestEvent::RunInProgress { run: &self.run });
        if let Some(next) = self.questions.first() {
            let at = self.run.created_at;
            self.run.await_request = Some(acp_rest_question_await_request(&self.role, next, at));
            self.run.status = RunStatus::Awaiting;
            emit(&AcpRestEvent::RunAwaiting { run: &self.run });
        }
    }
}

/// The same message of parts in which nothing is said.
fn acp_rest_message_without_content(message: AcpRestMessage) -> AcpRestMessage {
    let part = |part: MessagePart| {
        if part.content.is_some() { MessagePart::text(String::new()) } else { acp_rest_thought_part(String::new()) }
    };
    AcpRestMessage { parts: message.parts.into_iter().map(part).collect(), ..message }
}

/// About the size of a part.
fn acp_rest_part_size(part: &MessagePart) -> usize {
    let beside = part.metadata.as_ref().map_or(0, |metadata| json!(metadata).to_string().len());
    part.content.as_ref().map_or(0, String::len) + beside
}

fn emit_acp_rest_generic_event(kind: &str, value: Value, emit: EventSink<'_>) {
    debug_assert!(GENERIC_KINDS.contains(&kind), "a kind that nobody documents: {kind}");
    emit(&AcpRestEvent::Generic { generic: &json!({ "kind": kind, kind: value }) });
}

fn extend_acp_rest_part(part: &mut MessagePart, text: &str) {
    let message = part.metadata.as_mut().and_then(|metadata| metadata.get_mut("message"));
    match (&mut part.content, message) {
        (Some(content), _) => content.push_str(text),
        (None, Some(Value::String(message))) => message.push_str(text),
        (None, _) => {}
    }
}

fn acp_rest_run_error(reason: &str, message: &str) -> AcpRestError {
    let code = match reason {
        "invalid_input" => ErrorCode::InvalidInput,
        "agent" => ErrorCode::NotFound,
        _ => ErrorCode::ServerError,
    };
    AcpRestError { code, message: message.to_owned(), data: None }.with_reason(reason)
}
