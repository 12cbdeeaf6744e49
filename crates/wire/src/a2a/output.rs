//! The entries of one run as the updates of one task: pure, the same live and replayed.

use gander_domain::{
    self as domain, Answer, Entry, Event, Growth, MessageId, Outcome, Question, QuestionId, RunId, StopReason,
    Timestamp,
};
use serde_json::{Map, Value, json};

use super::update::{Chunk, Update};
use super::{
    Artifact, ArtifactUpdate, DOOR, EXTENSION, Message, Part, Role, StatusUpdate, Task, TaskState, TaskStatus, content,
    question,
};
use crate::saved_artifact::Saved;

/// Which task, in which context, under the names that the client knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    /// The run.
    pub task: RunId,
    /// The session, or the name that the client gave it.
    pub context: String,
    /// Where the client can read what was put away, if it can.
    pub shelf: Option<String>,
}

/// How much a client wants to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Detail {
    /// What every client understands.
    Plain,
    /// Also what our extension adds: thoughts, tool calls and plans as data.
    Full,
}

/// When a task shows first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opening {
    /// At once.
    AtOnce,
    /// When it is known that the agent does not answer with a mere message.
    WhenKnown,
}

/// Turns the entries of one run into updates. Feed it every entry from the run's first one.
#[derive(Clone, Debug)]
pub struct Watch {
    subject: Subject,
    detail: Detail,
    opening: Opening,
    held: Vec<Update<'static>>,
    began: Began,
    open: Option<Open>,
    questions: Vec<Question>,
    closing: Option<Message>,
}

/// How far a run has begun.
#[derive(Clone, Debug, PartialEq)]
enum Began {
    Not,
    /// It started, its prompt is the next message.
    Started(Timestamp, Option<Value>),
    /// It waits for its turn, and showed its prompt.
    Queued,
    /// It started after it had waited: its prompt comes once more.
    Repeats,
    Done,
}

/// The agent's open message.
#[derive(Clone, Debug, Default, PartialEq)]
struct Open {
    parts: u32,
    shown: bool,
    thought: String,
}

impl Watch {
    /// Nothing was seen yet.
    pub fn new(subject: Subject, detail: Detail, opening: Opening) -> Self {
        Self {
            subject,
            detail,
            opening,
            held: Vec::new(),
            began: Began::Not,
            open: None,
            questions: Vec::new(),
            closing: None,
        }
    }

    /// Which task it watches.
    pub fn subject(&self) -> &Subject {
        &self.subject
    }

    /// What a client is told of the next entry.
    pub fn take<'a>(&mut self, entry: &'a Entry) -> Vec<Update<'a>> {
        if entry.run != Some(self.subject.task) {
            return Vec::new();
        }
        let updates = self.project(entry);
        match self.opening {
            Opening::AtOnce => updates,
            Opening::WhenKnown => self.hold(updates),
        }
    }

    fn project<'a>(&mut self, entry: &'a Entry) -> Vec<Update<'a>> {
        let at = entry.at;
        match &entry.event {
            Event::PartDelta { message, part, growth: Growth::Text, text } => self.chunk(entry, *message, *part, text),
            Event::PartDelta { part, growth: Growth::Thought, text, .. } => self.thinks(entry, *part, text),
            Event::RunQueued { parts, .. } => {
                self.began = Began::Queued;
                vec![self.begin(at, &format!("{}-prompt", self.subject.task), parts, entry.meta.as_deref())]
            }
            Event::RunStarted { .. } => self.started(entry),
            Event::MessageDone { message } => self.message(entry, message),
            Event::ToolCalled { call } => vec![self.tool_called(entry, call)],
            Event::ToolStarted { call } => self.detailed(entry, || json!({ "kind": "tool_started", "call": call })),
            Event::ToolUpdated { call, content } => {
                self.detailed(entry, || json!({ "kind": "tool_updated", "call": call, "content": content }))
            }
            Event::ToolDone { call, result } => {
                self.detailed(entry, || json!({ "kind": "tool_done", "call": call, "result": result }))
            }
            Event::PlanSet { plan } => self.detailed(entry, || json!({ "kind": "plan", "items": plan.items })),
            Event::StateChanged { delta, .. } => self.detailed(entry, || json!({ "kind": "state", "delta": delta })),
            Event::ArtifactSaved { name, version, mime, content, .. } => {
                let saved = Saved { name, version: *version, mime: mime.as_deref(), content: content.as_ref() };
                self.saved(entry, saved)
            }
            Event::Routed { route } => self.detailed(entry, || json!({ "kind": "routed", "route": route })),
            Event::Noticed { notice } => self.detailed(entry, || json!({ "kind": "notice", "notice": notice })),
            Event::QuestionAsked { question } if question.is_aside() => {
                vec![self.status(at, TaskState::Working, Some(self.wording(entry, question)))]
            }
            Event::QuestionAsked { question } => {
                self.questions.push(question.clone());
                self.asks(entry).into_iter().collect()
            }
            Event::QuestionAnswered { question, answer } => self.answered(entry, *question, answer),
            Event::RunEnded { outcome } => vec![self.ended(entry, outcome)],
            Event::SessionCreated { .. }
            | Event::TitleSet { .. }
            | Event::SettingsChanged { .. }
            | Event::ArchiveSet { .. }
            | Event::HistoryReset { .. }
            | Event::UsageAdded { .. }
            | Event::RunRecovered { .. }
            | Event::CancelRequested { .. }
            | Event::MessageStarted { .. }
            | Event::Unknown(_) => vec![], // not about a task, or told by what follows
        }
    }

    /// Whoever answers with a mere message has no task to show.
    fn hold<'a>(&mut self, updates: Vec<Update<'a>>) -> Vec<Update<'a>> {
        let (mut mere, mut decided) = (None, false);
        for update in &updates {
            match update {
                Update::Reply(message) => mere = Some(message.clone()),
                Update::Chunk(_) | Update::Artifact(_) => decided = true,
                Update::Status(status) => {
                    decided |= status.status.state != TaskState::Working || status.status.message.is_some();
                }
                Update::Begin(_) | Update::Said(_) => {}
            }
        }
        if let Some(message) = mere {
            self.held.clear();
            return vec![Update::Reply(message)];
        }
        if !decided {
            self.held.extend(updates.into_iter().map(Update::into_owned));
            return Vec::new();
        }
        self.opening = Opening::AtOnce;
        let mut all: Vec<Update<'a>> = std::mem::take(&mut self.held);
        all.extend(updates);
        all
    }

    fn chunk<'a>(&mut self, entry: &Entry, message: MessageId, part: u32, text: &'a str) -> Vec<Update<'a>> {
        let open = self.open.get_or_insert_default();
        open.parts = open.parts.max(part + 1);
        let append = std::mem::replace(&mut open.shown, true);
        let chunk = Update::Chunk(Chunk { artifact: message, append, text: text.into() });
        match self.thought(entry) {
            None => vec![chunk],
            Some(thought) => vec![thought, chunk],
        }
    }

    /// A thought is told when it is whole.
    fn thinks(&mut self, entry: &Entry, part: u32, text: &str) -> Vec<Update<'static>> {
        let fresh = self.open.as_ref().is_none_or(|open| open.parts <= part);
        let before = if fresh { self.thought(entry) } else { None };
        let open = self.open.get_or_insert_default();
        open.parts = open.parts.max(part + 1);
        if self.detail == Detail::Full {
            open.thought.push_str(text);
        }
        before.into_iter().collect()
    }

    fn thought(&mut self, entry: &Entry) -> Option<Update<'static>> {
        let text = std::mem::take(&mut self.open.as_mut()?.thought);
        (!text.is_empty()).then(|| self.thinking(entry, text))
    }

    fn thinking(&self, entry: &Entry, text: String) -> Update<'static> {
        let part = Part { metadata: Some(extension(json!({ "kind": "thought" }))), ..Part::text(text) };
        let message = self.agent_message(entry, vec![part], vec![EXTENSION.to_owned()]);
        self.status(entry.at, TaskState::Working, Some(message))
    }

    fn started(&mut self, entry: &Entry) -> Vec<Update<'static>> {
        if self.began == Began::Queued {
            self.began = Began::Repeats;
            return vec![self.status(entry.at, TaskState::Working, None)];
        }
        self.began = Began::Started(entry.at, entry.meta.as_deref().cloned());
        Vec::new()
    }

    fn message<'a>(&mut self, entry: &Entry, message: &domain::Message) -> Vec<Update<'a>> {
        match message.role {
            domain::Role::User => self.said(entry, message),
            domain::Role::Agent => self.spoke(entry, message),
            domain::Role::Tool => Vec::new(), // in resets only
        }
    }

    fn said(&mut self, entry: &Entry, message: &domain::Message) -> Vec<Update<'static>> {
        let id = message.id.to_string();
        match std::mem::replace(&mut self.began, Began::Done) {
            Began::Started(at, meta) => {
                let begin = self.begin(at, &id, &message.parts, meta.as_ref());
                vec![begin, self.status(entry.at, TaskState::Working, None)]
            }
            Began::Repeats => Vec::new(),
            Began::Not | Began::Queued | Began::Done => {
                let said = self.person(&id, content::shown(&message.parts), entry.meta.as_deref());
                vec![Update::Said(Box::new(said))]
            }
        }
    }

    /// Its text was told as it came; what is left is what does not grow, and that it is whole.
    fn spoke<'a>(&mut self, entry: &Entry, message: &domain::Message) -> Vec<Update<'a>> {
        let mut updates: Vec<Update<'a>> = self.thought(entry).into_iter().collect();
        let open = self.open.take().unwrap_or_default();
        let tail = message.parts.get(open.parts as usize..).unwrap_or_default();
        if self.detail == Detail::Full {
            updates.extend(tail.iter().filter_map(|part| match part {
                domain::Part::Thought { text } => Some(self.thinking(entry, text.clone())),
                domain::Part::Text { .. }
                | domain::Part::Image { .. }
                | domain::Part::Audio { .. }
                | domain::Part::Link { .. }
                | domain::Part::Resource { .. }
                | domain::Part::ToolUse { .. }
                | domain::Part::ToolResult { .. }
                | domain::Part::Unknown(_) => None,
            }));
        }
        let mut parts = content::shown(tail);
        match face(message) {
            Face::Reply if !open.shown => {
                let mut reply = self.agent_message(entry, parts, Vec::new());
                (reply.message_id, reply.task_id) = (message.id.to_string(), None);
                updates.push(Update::Reply(Box::new(reply)));
            }
            Face::Status if !open.shown => self.closing = Some(self.agent_message(entry, parts, Vec::new())),
            Face::Artifact | Face::Reply | Face::Status => {
                if parts.is_empty() && open.shown {
                    parts.push(Part::text(""));
                }
                if !parts.is_empty() {
                    let artifact = Artifact { artifact_id: message.id.to_string(), name: None, parts };
                    updates.push(self.made(artifact, open.shown));
                }
            }
        }
        updates
    }

    /// Something put away is an artifact of its own; a new version of it takes its place.
    fn saved(&self, entry: &Entry, saved: Saved<'_>) -> Vec<Update<'static>> {
        let Saved { name, version, mime, .. } = saved;
        let data = || json!({ "kind": "artifact_saved", "name": name, "version": version, "mediaType": mime });
        let mut updates = self.detailed(entry, data);
        if let Some(part) = saved.part(self.subject.shelf.as_deref()) {
            let (artifact_id, parts) = (format!("saved:{name}"), content::shown(&[part]));
            updates.push(self.made(Artifact { artifact_id, name: Some(name.to_owned()), parts }, false));
        }
        updates
    }

    fn made(&self, artifact: Artifact, append: bool) -> Update<'static> {
        let (task_id, context_id) = (self.subject.task.to_string(), self.subject.context.clone());
        Update::Artifact(Box::new(ArtifactUpdate { task_id, context_id, artifact, append, last_chunk: true }))
    }

    fn tool_called(&self, entry: &Entry, call: &domain::ToolCall) -> Update<'static> {
        let words = Part::text(if call.title == call.name || call.title.is_empty() {
            call.name.clone()
        } else {
            format!("{}: {}", call.name, call.title)
        });
        match self.detail {
            Detail::Plain => {
                let message = self.agent_message(entry, vec![words], Vec::new());
                self.status(entry.at, TaskState::Working, Some(message))
            }
            Detail::Full => {
                let data = Part::data(json!({ "kind": "tool_called", "call": call }));
                let message = self.agent_message(entry, vec![words, data], vec![EXTENSION.to_owned()]);
                self.status(entry.at, TaskState::Working, Some(message))
            }
        }
    }

    fn detailed(&self, entry: &Entry, data: impl FnOnce() -> Value) -> Vec<Update<'static>> {
        match self.detail {
            Detail::Plain => Vec::new(),
            Detail::Full => {
                let message = self.agent_message(entry, vec![Part::data(data())], vec![EXTENSION.to_owned()]);
                vec![self.status(entry.at, TaskState::Working, Some(message))]
            }
        }
    }

    /// The oldest open question is the one that is asked.
    fn asks(&self, entry: &Entry) -> Option<Update<'static>> {
        let question = self.questions.first()?;
        Some(self.status(entry.at, question::state(question), Some(self.wording(entry, question))))
    }

    fn wording(&self, entry: &Entry, question: &Question) -> Message {
        let mut parts = vec![Part::text(question::words(question))];
        let mut extensions = Vec::new();
        if self.detail == Detail::Full {
            parts.push(Part::data(question::data(question)));
            extensions.push(EXTENSION.to_owned());
        }
        let mut message = self.agent_message(entry, parts, extensions);
        message.message_id = question.id.to_string();
        message
    }

    fn answered(&mut self, entry: &Entry, id: QuestionId, answer: &Answer) -> Vec<Update<'static>> {
        let held = self.questions.len();
        self.questions.retain(|question| question.id != id);
        if answer.by.is_none() {
            return Vec::new(); // nobody answered: the run is about to end
        }
        let said = self.person(&format!("{id}-answer"), question::answered(answer), entry.meta.as_deref());
        if self.questions.len() == held {
            return vec![Update::Said(Box::new(said))]; // asked aside: the run went on anyway
        }
        let next = self.asks(entry).unwrap_or_else(|| self.status(entry.at, TaskState::Working, None));
        vec![Update::Said(Box::new(said)), next]
    }

    fn ended(&mut self, entry: &Entry, outcome: &Outcome) -> Update<'static> {
        let (state, metadata) = match outcome {
            Outcome::Completed { stop: StopReason::EndTurn } => (TaskState::Completed, None),
            Outcome::Completed { stop: StopReason::Refusal } => (TaskState::Rejected, None),
            Outcome::Completed { stop: stop @ StopReason::MaxTokens } => {
                (TaskState::Completed, Some(extension(json!({ "stopReason": stop }))))
            }
            Outcome::Completed { stop: stop @ StopReason::MaxTurns } => {
                // A client that looks at nothing but the state must not take half of the work for all of it.
                let limit = stop.limit().unwrap_or_default();
                self.closing = Some(self.agent_message(entry, vec![Part::text(limit)], Vec::new()));
                (TaskState::Failed, Some(extension(json!({ "stopReason": stop }))))
            }
            Outcome::Cancelled => (TaskState::Canceled, None),
            Outcome::Failed { reason, message } => {
                self.closing = Some(self.agent_message(entry, vec![Part::text(message.clone())], Vec::new()));
                (TaskState::Failed, Some(extension(json!({ "reason": reason }))))
            }
        };
        let message = self.closing.take();
        match self.status(entry.at, state, message) {
            Update::Status(status) => Update::Status(Box::new(StatusUpdate { metadata, ..*status })),
            other
            @ (Update::Begin(_) | Update::Chunk(_) | Update::Artifact(_) | Update::Reply(_) | Update::Said(_)) => other,
        }
    }

    fn begin(&self, at: Timestamp, id: &str, parts: &[domain::Part], meta: Option<&Value>) -> Update<'static> {
        Update::Begin(Box::new(Task {
            id: self.subject.task.to_string(),
            context_id: self.subject.context.clone(),
            status: TaskStatus { state: TaskState::Submitted, message: None, timestamp: time(at) },
            artifacts: Vec::new(),
            history: vec![self.person(id, content::shown(parts), meta)],
            metadata: None,
        }))
    }

    fn status(&self, at: Timestamp, state: TaskState, message: Option<Message>) -> Update<'static> {
        Update::Status(Box::new(StatusUpdate {
            task_id: self.subject.task.to_string(),
            context_id: self.subject.context.clone(),
            status: TaskStatus { state, message, timestamp: time(at) },
            metadata: None,
        }))
    }

    fn agent_message(&self, entry: &Entry, parts: Vec<Part>, extensions: Vec<String>) -> Message {
        Message {
            message_id: format!("{}-{}", self.subject.task, entry.seq),
            context_id: Some(self.subject.context.clone()),
            task_id: Some(self.subject.task.to_string()),
            role: Role::Agent,
            parts,
            metadata: None,
            extensions,
            reference_task_ids: Vec::new(),
        }
    }

    fn person(&self, id: &str, parts: Vec<Part>, meta: Option<&Value>) -> Message {
        content::said(id, parts, meta, &self.subject.task.to_string(), &self.subject.context)
    }
}

/// How an agent that knows A2A wants its message shown: it says so in the message's own form.
enum Face {
    Artifact,
    Status,
    Reply,
}

fn face(message: &domain::Message) -> Face {
    let native = message.native.as_ref().filter(|native| native.wire == DOOR);
    match native.and_then(|native| native.items.get("as")?.as_str()) {
        Some("message") => Face::Reply,
        Some("status") => Face::Status,
        Some(_) | None => Face::Artifact,
    }
}

fn extension(value: Value) -> Map<String, Value> {
    Map::from_iter([(EXTENSION.to_owned(), value)])
}

/// Microseconds since 1970 as text.
pub(super) fn time(at: Timestamp) -> String {
    jiff::Timestamp::from_microsecond(at.micros()).unwrap_or_default().to_string()
}
