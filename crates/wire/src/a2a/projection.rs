//! The entries of one run as the updates of one task: pure, the same live and replayed.

use gander_domain::{
    self as domain, Answer, DeltaKind, Entry, Event, MessageId, Outcome, Question, QuestionId, RunId, StopReason,
    Timestamp,
};
use serde_json::{Map, Value, json};

use super::update::{TaskUpdate, TextChunk};
use super::{
    A2aArtifact, A2aMessage, A2aPart, A2aRole, A2aTask, ArtifactUpdate, EXTENSION, PROTOCOL_NAME, StatusUpdate,
    TaskState, TaskStatus, content, question,
};
use crate::saved_artifact::SavedArtifact;

/// Which task, in which context, under the names that the client knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskSubject {
    /// The run.
    pub task: RunId,
    /// The session, or the name that the client gave it.
    pub context: String,
    /// Where the client can read what was put away, if it can.
    pub artifacts_url: Option<String>,
}

/// How much a client wants to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DetailLevel {
    /// What every client understands.
    Plain,
    /// Also what our extension adds: thoughts, tool calls and plans as data.
    Full,
}

/// When a task shows first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskOpening {
    /// At once.
    AtOnce,
    /// When it is known that the agent does not answer with a mere message.
    WhenKnown,
}

/// Turns the entries of one run into updates. Feed it every entry from the run's first one.
#[derive(Clone, Debug)]
pub struct A2aProjection {
    subject: TaskSubject,
    detail: DetailLevel,
    opening: TaskOpening,
    held: Vec<TaskUpdate<'static>>,
    began: RunStage,
    open: Option<OpenMessage>,
    questions: Vec<Question>,
    closing: Option<A2aMessage>,
}

/// How far a run has begun.
#[derive(Clone, Debug, PartialEq)]
enum RunStage {
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
struct OpenMessage {
    parts: u32,
    shown: bool,
    thought: String,
}

impl A2aProjection {
    /// Nothing was seen yet.
    pub fn new(subject: TaskSubject, detail: DetailLevel, opening: TaskOpening) -> Self {
        Self {
            subject,
            detail,
            opening,
            held: Vec::new(),
            began: RunStage::Not,
            open: None,
            questions: Vec::new(),
            closing: None,
        }
    }

    /// Which task it watches.
    pub fn subject(&self) -> &TaskSubject {
        &self.subject
    }

    /// What a client is told of the next entry.
    pub fn project_entry<'a>(&mut self, entry: &'a Entry) -> Vec<TaskUpdate<'a>> {
        if entry.run != Some(self.subject.task) {
            return Vec::new();
        }
        let updates = self.project_event(entry);
        match self.opening {
            TaskOpening::AtOnce => updates,
            TaskOpening::WhenKnown => self.hold_until_task(updates),
        }
    }

    fn project_event<'a>(&mut self, entry: &'a Entry) -> Vec<TaskUpdate<'a>> {
        let at = entry.at;
        match &entry.event {
            Event::PartDelta { message, part, growth: DeltaKind::Text, text } => {
                self.text_chunk(entry, *message, *part, text)
            }
            Event::PartDelta { part, growth: DeltaKind::Thought, text, .. } => self.collect_thought(entry, *part, text),
            Event::RunQueued { parts, .. } => {
                self.began = RunStage::Queued;
                vec![self.task_begun(at, &format!("{}-prompt", self.subject.task), parts, entry.meta.as_deref())]
            }
            Event::RunStarted { .. } => self.run_started(entry),
            Event::MessageDone { message } => self.whole_message(entry, message),
            Event::ToolCalled { call } => vec![self.tool_called(entry, call)],
            Event::ToolStarted { call } => {
                self.detail_update(entry, || json!({ "kind": "tool_started", "call": call }))
            }
            Event::ToolUpdated { call, content } => {
                self.detail_update(entry, || json!({ "kind": "tool_updated", "call": call, "content": content }))
            }
            Event::ToolDone { call, result } => {
                self.detail_update(entry, || json!({ "kind": "tool_done", "call": call, "result": result }))
            }
            Event::PlanSet { plan } => self.detail_update(entry, || json!({ "kind": "plan", "items": plan.items })),
            Event::StateChanged { delta, .. } => {
                self.detail_update(entry, || json!({ "kind": "state", "delta": delta }))
            }
            Event::ArtifactSaved { name, version, mime, content, .. } => {
                let saved = SavedArtifact { name, version: *version, mime: mime.as_deref(), content: content.as_ref() };
                self.artifact_saved(entry, saved)
            }
            Event::TextMarked { .. } => vec![], // a question says it where it matters
            Event::Routed { route } => self.detail_update(entry, || json!({ "kind": "routed", "route": route })),
            Event::Noticed { notice } => self.detail_update(entry, || json!({ "kind": "notice", "notice": notice })),
            Event::QuestionAsked { question } if question.is_non_blocking() => {
                vec![self.status_update(at, TaskState::Working, Some(self.question_message(entry, question)))]
            }
            Event::QuestionAsked { question } => {
                self.questions.push(question.clone());
                self.ask_oldest(entry).into_iter().collect()
            }
            Event::QuestionAnswered { question, answer } => self.question_answered(entry, *question, answer),
            Event::RunEnded { outcome } => vec![self.run_ended(entry, outcome)],
            Event::SessionCreated { .. }
            | Event::TitleSet { .. }
            | Event::SettingsChanged { .. }
            | Event::ArchiveSet { .. }
            | Event::HistoryReset { .. }
            | Event::UsageAdded { .. }
            | Event::RunRecovered { .. }
            | Event::CancelRequested { .. }
            | Event::MessageStarted { .. }
            | Event::OpaqueUpdate { .. }
            | Event::Unknown(_) => vec![], // not about a task, or told by what follows
        }
    }

    /// Whoever answers with a mere message has no task to show.
    fn hold_until_task<'a>(&mut self, updates: Vec<TaskUpdate<'a>>) -> Vec<TaskUpdate<'a>> {
        let (mut mere, mut decided) = (None, false);
        for update in &updates {
            match update {
                TaskUpdate::Reply(message) => mere = Some(message.clone()),
                TaskUpdate::Chunk(_) | TaskUpdate::Artifact(_) => decided = true,
                TaskUpdate::Status(status) => {
                    decided |= status.status.state != TaskState::Working || status.status.message.is_some();
                }
                TaskUpdate::Begin(_) | TaskUpdate::Said(_) => {}
            }
        }
        if let Some(message) = mere {
            self.held.clear();
            return vec![TaskUpdate::Reply(message)];
        }
        if !decided {
            self.held.extend(updates.into_iter().map(TaskUpdate::into_owned));
            return Vec::new();
        }
        self.opening = TaskOpening::AtOnce;
        let mut all: Vec<TaskUpdate<'a>> = std::mem::take(&mut self.held);
        all.extend(updates);
        all
    }

    fn text_chunk<'a>(&mut self, entry: &Entry, message: MessageId, part: u32, text: &'a str) -> Vec<TaskUpdate<'a>> {
        let open = self.open.get_or_insert_default();
        open.parts = open.parts.max(part + 1);
        let append = std::mem::replace(&mut open.shown, true);
        let chunk = TaskUpdate::Chunk(TextChunk { artifact: message, append, text: text.into() });
        match self.flush_thought(entry) {
            None => vec![chunk],
            Some(thought) => vec![thought, chunk],
        }
    }

    /// A thought is told when it is whole.
    fn collect_thought(&mut self, entry: &Entry, part: u32, text: &str) -> Vec<TaskUpdate<'static>> {
        let fresh = self.open.as_ref().is_none_or(|open| open.parts <= part);
        let before = if fresh { self.flush_thought(entry) } else { None };
        let open = self.open.get_or_insert_default();
        open.parts = open.parts.max(part + 1);
        if self.detail == DetailLevel::Full {
            open.thought.push_str(text);
        }
        before.into_iter().collect()
    }

    fn flush_thought(&mut self, entry: &Entry) -> Option<TaskUpdate<'static>> {
        let text = std::mem::take(&mut self.open.as_mut()?.thought);
        (!text.is_empty()).then(|| self.thought_update(entry, text))
    }

    fn thought_update(&self, entry: &Entry, text: String) -> TaskUpdate<'static> {
        let part =
            A2aPart { metadata: Some(a2a_extension_metadata(json!({ "kind": "thought" }))), ..A2aPart::text(text) };
        let message = self.agent_message(entry, vec![part], vec![EXTENSION.to_owned()]);
        self.status_update(entry.at, TaskState::Working, Some(message))
    }

    fn run_started(&mut self, entry: &Entry) -> Vec<TaskUpdate<'static>> {
        if self.began == RunStage::Queued {
            self.began = RunStage::Repeats;
            return vec![self.status_update(entry.at, TaskState::Working, None)];
        }
        self.began = RunStage::Started(entry.at, entry.meta.as_deref().cloned());
        Vec::new()
    }

    fn whole_message<'a>(&mut self, entry: &Entry, message: &domain::Message) -> Vec<TaskUpdate<'a>> {
        match message.role {
            domain::Role::User => self.user_message(entry, message),
            domain::Role::Agent => self.agent_message_done(entry, message),
            domain::Role::Tool => Vec::new(), // in resets only
        }
    }

    fn user_message(&mut self, entry: &Entry, message: &domain::Message) -> Vec<TaskUpdate<'static>> {
        let id = message.id.to_string();
        match std::mem::replace(&mut self.began, RunStage::Done) {
            RunStage::Started(at, meta) => {
                let begin = self.task_begun(at, &id, &message.parts, meta.as_ref());
                vec![begin, self.status_update(entry.at, TaskState::Working, None)]
            }
            RunStage::Repeats => Vec::new(),
            RunStage::Not | RunStage::Queued | RunStage::Done => {
                let said =
                    self.user_message_as_sent(&id, content::a2a_visible_parts(&message.parts), entry.meta.as_deref());
                vec![TaskUpdate::Said(Box::new(said))]
            }
        }
    }

    /// Its text was told as it came; what is left is what does not grow, and that it is whole.
    fn agent_message_done<'a>(&mut self, entry: &Entry, message: &domain::Message) -> Vec<TaskUpdate<'a>> {
        let mut updates: Vec<TaskUpdate<'a>> = self.flush_thought(entry).into_iter().collect();
        let open = self.open.take().unwrap_or_default();
        let tail = message.parts.get(open.parts as usize..).unwrap_or_default();
        if self.detail == DetailLevel::Full {
            updates.extend(tail.iter().filter_map(|part| match part {
                domain::Part::Thought { text } => Some(self.thought_update(entry, text.clone())),
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
        let mut parts = content::a2a_visible_parts(tail);
        match a2a_message_placement(message) {
            MessagePlacement::Reply if !open.shown => {
                let mut reply = self.agent_message(entry, parts, Vec::new());
                (reply.message_id, reply.task_id) = (message.id.to_string(), None);
                updates.push(TaskUpdate::Reply(Box::new(reply)));
            }
            MessagePlacement::Status if !open.shown => {
                self.closing = Some(self.agent_message(entry, parts, Vec::new()))
            }
            MessagePlacement::Artifact | MessagePlacement::Reply | MessagePlacement::Status => {
                if parts.is_empty() && open.shown {
                    parts.push(A2aPart::text(""));
                }
                if !parts.is_empty() {
                    let artifact = A2aArtifact { artifact_id: message.id.to_string(), name: None, parts };
                    updates.push(self.artifact_update(artifact, open.shown));
                }
            }
        }
        updates
    }

    /// Something put away is an artifact of its own; a new version of it takes its place.
    fn artifact_saved(&self, entry: &Entry, saved: SavedArtifact<'_>) -> Vec<TaskUpdate<'static>> {
        let SavedArtifact { name, version, mime, .. } = saved;
        let data = || json!({ "kind": "artifact_saved", "name": name, "version": version, "mediaType": mime });
        let mut updates = self.detail_update(entry, data);
        if let Some(part) = saved.as_part(self.subject.artifacts_url.as_deref()) {
            let (artifact_id, parts) = (format!("saved:{name}"), content::a2a_visible_parts(&[part]));
            updates.push(self.artifact_update(A2aArtifact { artifact_id, name: Some(name.to_owned()), parts }, false));
        }
        updates
    }

    fn artifact_update(&self, artifact: A2aArtifact, append: bool) -> TaskUpdate<'static> {
        let (task_id, context_id) = (self.subject.task.to_string(), self.subject.context.clone());
        TaskUpdate::Artifact(Box::new(ArtifactUpdate { task_id, context_id, artifact, append, last_chunk: true }))
    }

    fn tool_called(&self, entry: &Entry, call: &domain::ToolCall) -> TaskUpdate<'static> {
        let words = A2aPart::text(if call.title == call.name || call.title.is_empty() {
            call.name.clone()
        } else {
            format!("{}: {}", call.name, call.title)
        });
        match self.detail {
            DetailLevel::Plain => {
                let message = self.agent_message(entry, vec![words], Vec::new());
                self.status_update(entry.at, TaskState::Working, Some(message))
            }
            DetailLevel::Full => {
                let data = A2aPart::data(json!({ "kind": "tool_called", "call": call }));
                let message = self.agent_message(entry, vec![words, data], vec![EXTENSION.to_owned()]);
                self.status_update(entry.at, TaskState::Working, Some(message))
            }
        }
    }

    fn detail_update(&self, entry: &Entry, data: impl FnOnce() -> Value) -> Vec<TaskUpdate<'static>> {
        match self.detail {
            DetailLevel::Plain => Vec::new(),
            DetailLevel::Full => {
                let message = self.agent_message(entry, vec![A2aPart::data(data())], vec![EXTENSION.to_owned()]);
                vec![self.status_update(entry.at, TaskState::Working, Some(message))]
            }
        }
    }

    /// The oldest open question is the one that is asked.
    fn ask_oldest(&self, entry: &Entry) -> Option<TaskUpdate<'static>> {
        let question = self.questions.first()?;
        Some(self.status_update(
            entry.at,
            question::a2a_question_task_state(question),
            Some(self.question_message(entry, question)),
        ))
    }

    fn question_message(&self, entry: &Entry, question: &Question) -> A2aMessage {
        let mut parts = vec![A2aPart::text(question::a2a_question_text(question))];
        let mut extensions = Vec::new();
        if self.detail == DetailLevel::Full {
            parts.push(A2aPart::data(question::a2a_question_data(question)));
            extensions.push(EXTENSION.to_owned());
        }
        let mut message = self.agent_message(entry, parts, extensions);
        message.message_id = question.id.to_string();
        message
    }

    fn question_answered(&mut self, entry: &Entry, id: QuestionId, answer: &Answer) -> Vec<TaskUpdate<'static>> {
        let held = self.questions.len();
        self.questions.retain(|question| question.id != id);
        if answer.by.is_none() {
            return Vec::new(); // nobody answered: the run is about to end
        }
        let said = self.user_message_as_sent(
            &format!("{id}-answer"),
            question::a2a_question_answer_parts(answer),
            entry.meta.as_deref(),
        );
        if self.questions.len() == held {
            return vec![TaskUpdate::Said(Box::new(said))]; // asked aside: the run went on anyway
        }
        let next = self.ask_oldest(entry).unwrap_or_else(|| self.status_update(entry.at, TaskState::Working, None));
        vec![TaskUpdate::Said(Box::new(said)), next]
    }

    fn run_ended(&mut self, entry: &Entry, outcome: &Outcome) -> TaskUpdate<'static> {
        let (state, metadata) = match outcome {
            Outcome::Completed { stop: StopReason::EndTurn } => (TaskState::Completed, None),
            Outcome::Completed { stop: StopReason::Refusal } => (TaskState::Rejected, None),
            Outcome::Completed { stop: stop @ (StopReason::MaxTokens | StopReason::StopSequence) } => {
                (TaskState::Completed, Some(a2a_extension_metadata(json!({ "stopReason": stop }))))
            }
            Outcome::Completed { stop: stop @ StopReason::MaxTurns } => {
                // A client that looks at nothing but the state must not take half of the work for all of it.
                let limit = stop.limit_message().unwrap_or_default();
                self.closing = Some(self.agent_message(entry, vec![A2aPart::text(limit)], Vec::new()));
                (TaskState::Failed, Some(a2a_extension_metadata(json!({ "stopReason": stop }))))
            }
            Outcome::Cancelled => (TaskState::Canceled, None),
            Outcome::Failed { reason, message } => {
                self.closing = Some(self.agent_message(entry, vec![A2aPart::text(message.clone())], Vec::new()));
                (TaskState::Failed, Some(a2a_extension_metadata(json!({ "reason": reason }))))
            }
        };
        let message = self.closing.take();
        match self.status_update(entry.at, state, message) {
            TaskUpdate::Status(status) => TaskUpdate::Status(Box::new(StatusUpdate { metadata, ..*status })),
            other @ (TaskUpdate::Begin(_)
            | TaskUpdate::Chunk(_)
            | TaskUpdate::Artifact(_)
            | TaskUpdate::Reply(_)
            | TaskUpdate::Said(_)) => other,
        }
    }

    fn task_begun(&self, at: Timestamp, id: &str, parts: &[domain::Part], meta: Option<&Value>) -> TaskUpdate<'static> {
        TaskUpdate::Begin(Box::new(A2aTask {
            id: self.subject.task.to_string(),
            context_id: self.subject.context.clone(),
            status: TaskStatus { state: TaskState::Submitted, message: None, timestamp: a2a_timestamp_text(at) },
            artifacts: Vec::new(),
            history: vec![self.user_message_as_sent(id, content::a2a_visible_parts(parts), meta)],
            metadata: None,
        }))
    }

    fn status_update(&self, at: Timestamp, state: TaskState, message: Option<A2aMessage>) -> TaskUpdate<'static> {
        TaskUpdate::Status(Box::new(StatusUpdate {
            task_id: self.subject.task.to_string(),
            context_id: self.subject.context.clone(),
            status: TaskStatus { state, message, timestamp: a2a_timestamp_text(at) },
            metadata: None,
        }))
    }

    fn agent_message(&self, entry: &Entry, parts: Vec<A2aPart>, extensions: Vec<String>) -> A2aMessage {
        A2aMessage {
            message_id: format!("{}-{}", self.subject.task, entry.seq),
            context_id: Some(self.subject.context.clone()),
            task_id: Some(self.subject.task.to_string()),
            role: A2aRole::Agent,
            parts,
            metadata: None,
            extensions,
            reference_task_ids: Vec::new(),
        }
    }

    fn user_message_as_sent(&self, id: &str, parts: Vec<A2aPart>, meta: Option<&Value>) -> A2aMessage {
        content::a2a_user_message(id, parts, meta, &self.subject.task.to_string(), &self.subject.context)
    }
}

/// How an agent that knows A2A wants its message shown: it says so in the message's own form.
enum MessagePlacement {
    Artifact,
    Status,
    Reply,
}

fn a2a_message_placement(message: &domain::Message) -> MessagePlacement {
    let native = message.native.as_ref().filter(|native| native.wire == PROTOCOL_NAME);
    match native.and_then(|native| native.items.get("as")?.as_str()) {
        Some("message") => MessagePlacement::Reply,
        Some("status") => MessagePlacement::Status,
        Some(_) | None => MessagePlacement::Artifact,
    }
}

fn a2a_extension_metadata(value: Value) -> Map<String, Value> {
    Map::from_iter([(EXTENSION.to_owned(), value)])
}

/// Microseconds since 1970 as text.
pub(super) fn a2a_timestamp_text(at: Timestamp) -> String {
    jiff::Timestamp::from_microsecond(at.as_micros()).unwrap_or_default().to_string()
}
