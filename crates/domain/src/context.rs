//! `Context`: the fold of a session's log into what a model is shown, and what its agent still has to do.

use std::sync::Arc;

use serde_json::Value;

use crate::{
    Answer, Entry, Event, Message, MessageId, Part, Provenance, Question, QuestionId, Role, RunId, Seq, SessionCommand,
    Settings, ToolCall, ToolCallId, ToolResult,
};

/// What a model is shown, and what its agent still has to do.
///
/// Feed it every entry from the session's first one, or from any place at or before the last reset
/// together with [`Context::empty`].
#[derive(Clone, Debug, PartialEq)]
pub struct Context {
    /// The conversation since the last reset, without what was interrupted.
    /// Results of tools are messages of [`Role::Tool`] right after the message that asked for them.
    pub messages: Vec<Arc<Message>>,
    /// What the session is set to.
    pub settings: Settings,
    /// The folder it works in.
    pub workspace: String,
    /// Further folders it may use.
    pub folders: Vec<String>,
    /// The active run.
    pub run: Option<RunId>,
    /// Calls of the active run without a result, in the order in which they were wanted.
    pub pending: Vec<PendingCall>,
    /// What the active run asked that is about no call, in order.
    pub asked: Vec<AskedQuestion>,
    /// The last entry taken in.
    pub head: Seq,
    /// Model calls in the active run that came to an end.
    pub turns: u32,
    /// Tokens that the last model call read and wrote, if known.
    pub tokens: Option<u64>,
    /// The active run's first message: where it stands in `messages`, see [`Context::run_start_index`].
    pub run_first_message: Option<MessageId>,
    /// Does the session have a title?
    pub has_title: bool,
    /// Where the text in it comes from. One that is read from its middle gets it from the session's view.
    pub provenance: Provenance,
    /// Where in the log each of `messages` stands.
    positions: Vec<Seq>,
    /// The size of `messages`, kept up so that nobody has to walk a long conversation for it.
    bytes: usize,
}

/// A question that is about no call.
#[derive(Clone, Debug, PartialEq)]
pub struct AskedQuestion {
    /// The question.
    pub question: Question,
    /// Its answer, once it has one.
    pub answer: Option<Answer>,
}

/// A call without a result.
#[derive(Clone, Debug, PartialEq)]
pub struct PendingCall {
    /// Its id.
    pub id: ToolCallId,
    /// The tool's name.
    pub name: String,
    /// Its arguments as the model gave them.
    pub arguments: Value,
    /// The call as people saw it, once it was called.
    pub call: Option<ToolCall>,
    /// How far it is.
    pub stage: CallStage,
}

/// How far a call without a result is.
#[derive(Clone, Debug, PartialEq)]
pub enum CallStage {
    /// The model asked for it, nothing was decided.
    Requested,
    /// A person is asked.
    Asked(Question),
    /// A person answered, it did not start.
    Answered(Question, Answer),
    /// Its start is in the log, its end is not.
    Started,
}

impl Context {
    /// An empty context, for a log that is read from its middle.
    pub fn empty(settings: Settings, workspace: String, folders: Vec<String>) -> Self {
        Self {
            messages: Vec::new(),
            settings,
            workspace,
            folders,
            run: None,
            pending: Vec::new(),
            asked: Vec::new(),
            head: Seq::ZERO,
            turns: 0,
            tokens: None,
            run_first_message: None,
            has_title: false,
            provenance: Provenance::default(),
            positions: Vec::new(),
            bytes: 0,
        }
    }

    /// The size of its messages in bytes, about.
    pub fn message_bytes(&self) -> usize {
        self.bytes
    }

    /// The context after all these entries, the first of which began the session.
    pub fn replay<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> Option<Self> {
        let mut entries = entries.into_iter();
        let first = entries.next()?;
        let Event::SessionCreated { workspace, folders, settings, .. } = &first.event else { return None };
        let mut context = Self::empty(settings.clone(), workspace.clone(), folders.clone());
        context.head = first.seq;
        context.provenance.apply(first);
        entries.for_each(|entry| context.apply(entry));
        Some(context)
    }

    /// Takes in the next entry.
    pub fn apply(&mut self, entry: &Entry) {
        self.head = entry.seq;
        self.provenance.apply(entry);
        match &entry.event {
            Event::TitleSet { .. } => self.has_title = true,
            Event::SettingsChanged { patch } => self.settings.apply_patch(patch),
            Event::Routed { route } => self.settings.apply_route(route),
            Event::HistoryReset { keep_to, replacement, .. } => self.reset_history(entry.seq, *keep_to, replacement),
            // A sub-agent's call says nothing about how full this window is.
            Event::UsageAdded { usage } if usage.child.is_some() => {}
            Event::UsageAdded { usage } => self.tokens = Some(usage.input + usage.output),
            Event::RunStarted { .. } => self.start_run(entry.run),
            Event::RunEnded { .. } if entry.run == self.run => self.run = None,
            // What the session carried out itself is no matter for the model.
            Event::MessageDone { message } if is_session_command_in_context(message) => {}
            Event::MessageDone { message } => self.add_message(entry.seq, message),
            Event::ToolCalled { call } => self.update_pending(call.id, |pending| pending.call = Some(call.clone())),
            Event::ToolStarted { call } => self.update_pending(*call, |pending| pending.stage = CallStage::Started),
            Event::ToolDone { call, result } => self.add_tool_result(entry.seq, *call, result),
            Event::QuestionAsked { question } => self.add_question(question),
            Event::QuestionAnswered { question, answer } => self.record_answer(*question, answer),
            Event::SessionCreated { .. }
            | Event::ArchiveSet { .. }
            | Event::Noticed { .. }
            | Event::PlanSet { .. }
            | Event::StateChanged { .. }
            | Event::ArtifactSaved { .. }
            | Event::TextMarked { .. }
            | Event::RunQueued { .. }
            | Event::RunRecovered { .. }
            | Event::CancelRequested { .. }
            | Event::RunEnded { .. }
            | Event::MessageStarted { .. }
            | Event::PartDelta { .. }
            | Event::ToolUpdated { .. }
            | Event::OpaqueUpdate { .. }
            | Event::Unknown(_) => {} // no model needs to know
        }
    }

    /// Index in `messages` of the active run's first message; their number if it has none.
    pub fn run_start_index(&self) -> usize {
        let first = self.run_first_message;
        self.messages.iter().position(|message| Some(message.id) == first).unwrap_or(self.messages.len())
    }

    fn start_run(&mut self, run: Option<RunId>) {
        self.run = run;
        self.pending.clear();
        self.asked.clear();
        self.turns = 0;
        self.run_first_message = None;
    }

    /// A compaction in the middle of a run brings the run's own messages along in its replacement.
    fn reset_history(&mut self, at: Seq, keep_to: Seq, replacement: &[Message]) {
        let kept = self.positions.iter().take_while(|place| **place <= keep_to).count();
        self.bytes -= self.messages[kept..].iter().map(|message| message.approximate_bytes()).sum::<usize>();
        self.messages.truncate(kept);
        self.positions.truncate(kept);
        for message in replacement.iter().filter(|message| !message.interrupted) {
            self.insert(self.messages.len(), at, message.clone());
        }
        self.tokens = None;
    }

    fn add_message(&mut self, at: Seq, message: &Message) {
        // What was cut off before it said anything may have been no model's either.
        let nothing = message.interrupted && message.parts.is_empty();
        if message.role == Role::Agent && !message.is_synthetic() && !nothing {
            self.turns += 1;
        }
        if message.interrupted {
            return;
        }
        if self.run.is_some() && self.run_first_message.is_none() {
            self.run_first_message = Some(message.id);
        }
        self.pending.extend(message.parts.iter().filter_map(pending_call_in_context));
        self.insert(self.messages.len(), at, message.clone());
    }

    fn insert(&mut self, index: usize, at: Seq, message: Message) {
        self.bytes += message.approximate_bytes();
        self.messages.insert(index, Arc::new(message));
        self.positions.insert(index, at);
    }

    fn update_pending(&mut self, call: ToolCallId, change: impl FnOnce(&mut PendingCall)) {
        if let Some(pending) = self.pending.iter_mut().find(|pending| pending.id == call) {
            change(pending);
        }
    }

    fn add_question(&mut self, question: &Question) {
        match question.call {
            Some(call) => self.update_pending(call, |pending| pending.stage = CallStage::Asked(question.clone())),
            None => self.asked.push(AskedQuestion { question: question.clone(), answer: None }),
        }
    }

    fn record_answer(&mut self, id: QuestionId, answer: &Answer) {
        for asked in self.asked.iter_mut().filter(|asked| asked.question.id == id) {
            asked.answer = Some(answer.clone());
        }
        for pending in &mut self.pending {
            if let CallStage::Asked(question) = &pending.stage
                && question.id == id
            {
                pending.stage = CallStage::Answered(question.clone(), answer.clone());
            }
        }
    }

    /// Results stand right behind the message that asked, also when a person spoke in between.
    fn add_tool_result(&mut self, at: Seq, call: ToolCallId, result: &ToolResult) {
        let Some(asked) = self.messages.iter().rposition(|message| context_requests_tool_call(message, call)) else {
            return;
        };
        let known = self.pending.len();
        self.pending.retain(|pending| pending.id != call);
        if self.pending.len() == known {
            return; // it has a result already
        }
        let part = Part::ToolResult { call, result: result.clone() };
        match self.messages.get_mut(asked + 1).filter(|next| next.role == Role::Tool) {
            Some(results) => {
                self.bytes += part.approximate_bytes();
                Arc::make_mut(results).parts.push(part);
            }
            None => self.insert(asked + 1, at, tool_results_context_message(call, part)),
        }
    }
}

fn context_requests_tool_call(message: &Message, id: ToolCallId) -> bool {
    message.parts.iter().any(|part| matches!(part, Part::ToolUse { call, .. } if *call == id))
}

/// A message of tool results has no id of its own in the log: it borrows that of its first call.
fn tool_results_context_message(call: ToolCallId, part: Part) -> Message {
    Message { id: MessageId::new(call.uuid()), role: Role::Tool, parts: vec![part], interrupted: false, native: None }
}

/// True for a command that the session carried out, and for what it said about it.
fn is_session_command_in_context(message: &Message) -> bool {
    match message.role {
        Role::User => matches!(SessionCommand::in_prompt(&message.parts), Ok(Some(_))),
        Role::Agent | Role::Tool => message.is_by_session(),
    }
}

fn pending_call_in_context(part: &Part) -> Option<PendingCall> {
    let Part::ToolUse { call, name, arguments } = part else { return None };
    Some(PendingCall {
        id: *call,
        name: name.clone(),
        arguments: arguments.clone(),
        call: None,
        stage: CallStage::Requested,
    })
}
