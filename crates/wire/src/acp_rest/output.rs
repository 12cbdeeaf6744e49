//! A run as it is read from its session's log: what it is now, and the events that led there.

use gander_domain::{
    Answer, Entry, Event as Fact, Growth, Message as Said, Outcome, Part, Question, QuestionId, Role, RunId, SessionId,
    StopReason, ToolCall,
};
use serde_json::{Value, json};

use super::content::{message_part, thought, tool_call, tool_result};
use super::error::{Error, ErrorCode};
use super::question::await_request;
use super::types::{Event, Message, MessagePart, Run, RunStatus, Time};
use crate::saved_artifact::Saved;

/// So many bytes of a run's output are kept while its events are told: who reads slowly must not hold all of it.
const KEPT: usize = 64 * 1024;

/// Whoever hears the events.
type Tell<'a> = &'a mut dyn FnMut(&Event<'_>);

/// A run, folded from the entries of its session in order. Entries of other runs pass by.
#[derive(Clone, Debug)]
pub struct RunReading {
    run: Run,
    role: String,
    stage: Stage,
    open: Option<Open>,
    /// Calls that have not ended.
    calls: Vec<ToolCall>,
    questions: Vec<Question>,
    prompt: Prompt,
    /// Where the client can read what was put away.
    shelf: Option<String>,
    output: Output,
}

/// Whether a run's output is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Output {
    /// All of it, always.
    Complete,
    /// All of it so far: about so many bytes.
    Counted(usize),
    /// It became too long, and was let go; about so many bytes came since.
    LetGo(usize),
}

/// What the client sent, with its own times.
#[derive(Clone, Debug, Default)]
struct Prompt {
    times: Option<[Time; 2]>,
    parts: Vec<Part>,
}

/// What was read of the run so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Nothing,
    Queued,
    Started,
    Prompted,
}

/// The message that grows.
#[derive(Clone, Copy, Debug)]
struct Open {
    at: Time,
    /// Its place in the output, once there is something to show.
    place: Option<usize>,
}

impl RunReading {
    /// A run of which nothing was read yet.
    pub fn new(session: SessionId, agent: &str, run: RunId) -> Self {
        let run = Run {
            run_id: run,
            agent_name: agent.to_owned(),
            session_id: session.to_string(),
            status: RunStatus::Created,
            await_request: None,
            output: Vec::new(),
            error: None,
            created_at: Time::default(),
            finished_at: None,
        };
        let role = format!("agent/{agent}");
        let (calls, questions, prompt) = (Vec::new(), Vec::new(), Prompt::default());
        Self {
            run,
            role,
            stage: Stage::Nothing,
            open: None,
            calls,
            questions,
            prompt,
            shelf: None,
            output: Output::Complete,
        }
    }

    /// What is put away and too large to be told can be read at this address.
    pub fn with_shelf(self, shelf: String) -> Self {
        Self { shelf: Some(shelf), ..self }
    }

    /// Lets a long output go while events are told. Where it is [lacking](Self::lacks), another reading of the same
    /// entries takes this one's place.
    pub fn sparing(self) -> Self {
        let weight = self.run.output.iter().flat_map(|message| &message.parts).map(weight).sum();
        Self { output: Output::Counted(weight), ..self }
    }

    /// True if this entry's events tell the whole output, and it was let go.
    pub fn lacks(&self, entry: &Entry) -> bool {
        let whole = matches!(
            entry.event,
            Fact::RunQueued { .. }
                | Fact::RunStarted { .. }
                | Fact::RunEnded { .. }
                | Fact::QuestionAsked { .. }
                | Fact::QuestionAnswered { .. }
        );
        whole && matches!(self.output, Output::LetGo(_)) && entry.run == Some(self.run.run_id)
    }

    /// The run as it is now.
    pub fn run(&self) -> &Run {
        &self.run
    }

    /// The run as it is now.
    pub fn into_run(self) -> Run {
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
    pub fn take(&mut self, entry: &Entry) {
        self.tell(entry, &mut |_| {});
    }

    /// Takes in the next entry and tells its events, in order.
    pub fn tell(&mut self, entry: &Entry, tell: Tell<'_>) {
        let ours = entry.run == Some(self.run.run_id);
        let between = entry.run.is_none() && self.stage != Stage::Nothing && !self.run.status.is_terminal();
        if ours || between {
            self.tell_own(entry, tell);
            self.let_go(entry);
        }
    }

    fn tell_own(&mut self, entry: &Entry, tell: Tell<'_>) {
        let at = Time(entry.at);
        match &entry.event {
            Fact::RunQueued { .. } => self.created(entry, Stage::Queued, tell),
            Fact::RunStarted { .. } => self.started(entry, tell),
            Fact::CancelRequested { .. } => self.run.status = RunStatus::Cancelling,
            Fact::RunEnded { outcome } => self.ended(at, outcome, tell),
            Fact::MessageStarted { .. } => self.open = Some(Open { at, place: None }),
            Fact::PartDelta { growth, text, part, .. } => self.grow(*part as usize, *growth, text, tell),
            Fact::MessageDone { message } if message.role == Role::Agent => self.message(at, message, tell),
            Fact::MessageDone { message } => self.heard(message, tell),
            Fact::ToolCalled { call } => {
                self.calls.push(call.clone());
                self.say(at, tool_call(call), tell);
            }
            Fact::ToolDone { call, result } => {
                if let Some(index) = self.calls.iter().position(|open| open.id == *call) {
                    let call = self.calls.remove(index);
                    self.say(at, tool_result(&call, result), tell);
                }
            }
            Fact::QuestionAsked { question } => self.asked(at, question, tell),
            Fact::QuestionAnswered { question, answer } => self.answered(*question, answer, tell),
            Fact::TitleSet { title } => other("title", json!(title), tell),
            Fact::SettingsChanged { patch } => other("settings", json!(patch), tell),
            Fact::Noticed { notice } => other("notice", json!(notice), tell),
            Fact::PlanSet { plan } => other("plan", json!(plan), tell),
            Fact::StateChanged { delta, .. } => other("state", json!(delta), tell),
            Fact::ArtifactSaved { name, version, mime, content, .. } => {
                let saved = Saved { name, version: *version, mime: mime.as_deref(), content: content.as_ref() };
                self.saved(at, saved, tell);
            }
            Fact::Routed { route } => other("routed", json!(route), tell),
            Fact::UsageAdded { usage } => other("usage", json!(usage), tell),
            Fact::RunRecovered { attempt } => other("recovered", json!(attempt), tell),
            Fact::HistoryReset { reason, .. } => other("history", json!(reason), tell),
            Fact::ToolUpdated { call, content } => other("tool", json!({ "call": call, "content": content }), tell),
            Fact::SessionCreated { .. } | Fact::ArchiveSet { .. } | Fact::ToolStarted { .. } | Fact::Unknown(_) => {}
        }
    }

    /// Keeps no more of the output than is worth keeping: of the message that grows, how many parts it has.
    fn let_go(&mut self, entry: &Entry) {
        let counted = |bytes| {
            if let Fact::PartDelta { text, .. } = &entry.event {
                return bytes + text.len();
            }
            self.run.output.iter().flat_map(|message| &message.parts).map(weight).sum()
        };
        self.output = match self.output {
            Output::Complete => return,
            Output::Counted(bytes) => Output::Counted(counted(bytes)),
            Output::LetGo(bytes) => Output::LetGo(counted(bytes)),
        };
        if let Output::Counted(bytes) | Output::LetGo(bytes) = self.output
            && bytes > KEPT
        {
            self.output = Output::LetGo(0);
            let open = self.open.as_mut().and_then(|open| open.place.as_mut()).map(|place| std::mem::replace(place, 0));
            let open = open.map(|place| self.run.output.swap_remove(place));
            self.run.output = open.map(emptied).into_iter().collect();
        }
    }

    /// The door that took the run in left word for itself: who serves it, and how the client calls its session.
    fn created(&mut self, entry: &Entry, stage: Stage, tell: Tell<'_>) {
        self.stage = stage;
        self.run.created_at = Time(entry.at);
        let note = |key: &str| entry.meta.as_ref()?.get(super::DOOR)?.get(key)?.as_str().map(str::to_owned);
        let times = entry.meta.as_ref().and_then(|meta| meta.get(super::DOOR)?.get("times").cloned());
        self.prompt.times = times.and_then(|times| serde_json::from_value(times).ok());
        if let Some(session) = note("session") {
            self.run.session_id = session;
        }
        if let Some(agent) = note("agent") {
            self.role = format!("agent/{agent}");
            self.run.agent_name = agent;
        }
        tell(&Event::RunCreated { run: &self.run });
    }

    fn started(&mut self, entry: &Entry, tell: Tell<'_>) {
        if self.stage == Stage::Nothing {
            self.created(entry, Stage::Started, tell);
        }
        self.stage = Stage::Started;
        self.run.status = RunStatus::InProgress;
        tell(&Event::RunInProgress { run: &self.run });
    }

    fn ended(&mut self, at: Time, outcome: &Outcome, tell: Tell<'_>) {
        self.run.finished_at = Some(at);
        self.run.status = match outcome {
            Outcome::Completed { stop: StopReason::Refusal } => {
                self.run.error = Some(Error::server("the model refused").because("refusal"));
                RunStatus::Failed
            }
            Outcome::Completed { stop: StopReason::MaxTurns } => {
                let limit = StopReason::MaxTurns.limit().unwrap_or_default();
                self.run.error = Some(Error::server(limit).because("max_turns"));
                RunStatus::Failed
            }
            Outcome::Completed { stop } => {
                if *stop != StopReason::EndTurn {
                    other("stopped", json!(stop), tell);
                }
                RunStatus::Completed
            }
            Outcome::Cancelled => RunStatus::Cancelled,
            Outcome::Failed { reason, message } => {
                self.run.error = Some(failure(reason, message));
                RunStatus::Failed
            }
        };
        let run = &self.run;
        tell(&match run.status {
            RunStatus::Completed => Event::RunCompleted { run },
            RunStatus::Cancelled => Event::RunCancelled { run },
            RunStatus::Failed
            | RunStatus::Created
            | RunStatus::InProgress
            | RunStatus::Awaiting
            | RunStatus::Cancelling => Event::RunFailed { run },
        });
    }

    fn grow(&mut self, part: usize, growth: Growth, text: &str, tell: Tell<'_>) {
        let piece = match growth {
            Growth::Text => MessagePart::text(text.to_owned()),
            Growth::Thought => thought(text.to_owned()),
        };
        let place = self.shown(tell);
        tell(&Event::MessagePart { part: &piece });
        let parts = &mut self.run.output[place].parts;
        match parts.get_mut(part) {
            Some(grown) => extend(grown, text),
            None => parts.push(piece),
        }
    }

    /// The place of the open message, which is shown from now on.
    fn shown(&mut self, tell: Tell<'_>) -> usize {
        let at = self.open.map_or(self.run.created_at, |open| open.at);
        if let Some(place) = self.open.and_then(|open| open.place) {
            return place;
        }
        let place = self.run.output.len();
        self.run.output.push(Message {
            role: self.role.clone(),
            parts: Vec::new(),
            created_at: Some(at),
            completed_at: None,
        });
        self.open = Some(Open { at, place: Some(place) });
        tell(&Event::MessageCreated { message: &self.run.output[place] });
        place
    }

    /// What is whole is authoritative. A message of which nothing is to be seen never was.
    fn message(&mut self, at: Time, message: &Said, tell: Tell<'_>) {
        let parts: Vec<MessagePart> = message.parts.iter().filter_map(message_part).collect();
        self.open = self.open.or(Some(Open { at, place: None }));
        // Whoever passes on what it was told passes on its times.
        let passed_on = self.prompt.times.filter(|_| message.parts == self.prompt.parts);
        if let (Some([created, _]), Some(open)) = (passed_on, &mut self.open) {
            open.at = created;
        }
        if !parts.is_empty() {
            let place = self.shown(tell);
            let grown = self.run.output[place].parts.len();
            parts.iter().skip(grown).for_each(|part| tell(&Event::MessagePart { part }));
            let shown = &mut self.run.output[place];
            shown.parts = parts;
            if !message.interrupted {
                shown.completed_at = Some(passed_on.map_or(at, |[_, completed]| completed));
                tell(&Event::MessageCompleted { message: &self.run.output[place] });
            }
        }
        self.open = None;
    }

    /// A message of one part.
    fn say(&mut self, at: Time, part: MessagePart, tell: Tell<'_>) {
        self.open = Some(Open { at, place: None });
        let place = self.shown(tell);
        tell(&Event::MessagePart { part: &part });
        let shown = &mut self.run.output[place];
        shown.parts.push(part);
        shown.completed_at = Some(at);
        tell(&Event::MessageCompleted { message: &self.run.output[place] });
        self.open = None;
    }

    /// Something put away is a message of one part with a name: an artifact. Which version it is has no place in it.
    fn saved(&mut self, at: Time, saved: Saved<'_>, tell: Tell<'_>) {
        let Saved { name, version, mime, .. } = saved;
        other("artifact", json!({ "name": name, "version": version, "content_type": mime }), tell);
        if let Some(part) = saved.part(self.shelf.as_deref()).as_ref().and_then(message_part) {
            self.say(at, part, tell);
        }
    }

    /// The first thing a person says is the prompt; everything later was said into the running turn.
    fn heard(&mut self, message: &Said, tell: Tell<'_>) {
        if self.stage == Stage::Prompted {
            let parts: Vec<MessagePart> = message.parts.iter().filter_map(message_part).collect();
            return other("steered", json!(parts), tell);
        }
        self.stage = Stage::Prompted;
        if self.prompt.times.is_some() {
            self.prompt.parts.clone_from(&message.parts);
        }
    }

    /// A run goes on without the answer to what is asked aside: it is told, and not awaited.
    fn asked(&mut self, at: Time, question: &Question, tell: Tell<'_>) {
        if question.is_aside() {
            return other("question", json!(question), tell);
        }
        self.questions.push(question.clone());
        if self.questions.len() == 1 {
            self.run.await_request = Some(await_request(&self.role, question, at));
            self.run.status = RunStatus::Awaiting;
            tell(&Event::RunAwaiting { run: &self.run });
        }
    }

    /// An answer sets the run going; if it asked more than one thing, the next one is awaited at once.
    fn answered(&mut self, question: QuestionId, _answer: &Answer, tell: Tell<'_>) {
        if self.questions.iter().all(|open| open.id != question) {
            return other("answered", json!(question), tell);
        }
        self.questions.retain(|open| open.id != question);
        if self.run.status != RunStatus::Awaiting {
            return; // it is being cancelled
        }
        self.run.status = RunStatus::InProgress;
        tell(&Event::RunInProgress { run: &self.run });
        if let Some(next) = self.questions.first() {
            let at = self.run.created_at;
            self.run.await_request = Some(await_request(&self.role, next, at));
            self.run.status = RunStatus::Awaiting;
            tell(&Event::RunAwaiting { run: &self.run });
        }
    }
}

/// The same message of parts in which nothing is said.
fn emptied(message: Message) -> Message {
    let part = |part: MessagePart| {
        if part.content.is_some() { MessagePart::text(String::new()) } else { thought(String::new()) }
    };
    Message { parts: message.parts.into_iter().map(part).collect(), ..message }
}

/// About the size of a part.
fn weight(part: &MessagePart) -> usize {
    let beside = part.metadata.as_ref().map_or(0, |metadata| json!(metadata).to_string().len());
    part.content.as_ref().map_or(0, String::len) + beside
}

fn other(kind: &str, value: Value, tell: Tell<'_>) {
    tell(&Event::Generic { generic: &json!({ "kind": kind, kind: value }) });
}

fn extend(part: &mut MessagePart, text: &str) {
    let message = part.metadata.as_mut().and_then(|metadata| metadata.get_mut("message"));
    match (&mut part.content, message) {
        (Some(content), _) => content.push_str(text),
        (None, Some(Value::String(message))) => message.push_str(text),
        (None, _) => {}
    }
}

fn failure(reason: &str, message: &str) -> Error {
    let code = match reason {
        "invalid_input" => ErrorCode::InvalidInput,
        "agent" => ErrorCode::NotFound,
        _ => ErrorCode::ServerError,
    };
    Error { code, message: message.to_owned(), data: None }.because(reason)
}
