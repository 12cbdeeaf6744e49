//! `Context`: the fold of a session's log into what a model is shown, and what its agent still has to do.

use std::sync::Arc;

use serde_json::Value;

use crate::{
    Answer, Entry, Event, Message, MessageId, Part, Question, QuestionId, Role, RunId, Seq, Settings, ToolCall,
    ToolCallId, ToolResult,
};

/// What a model is shown, and what its agent still has to do.
///
/// Feed it every entry from the session's first one, or from any place at or before the last reset
/// together with [`Context::begin`].
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
    pub asked: Vec<Asked>,
    /// The last entry taken in.
    pub head: Seq,
    /// Model calls in the active run that came to an end.
    pub turns: u32,
    /// Tokens that the last model call read and wrote, if known.
    pub tokens: Option<u64>,
    /// The active run's first message: where it stands in `messages`, see [`Context::run_from`].
    pub run_first: Option<MessageId>,
    /// Does the session have a title?
    pub titled: bool,
    /// Where in the log each of `messages` stands.
    places: Vec<Seq>,
    /// The size of `messages`, kept up so that nobody has to walk a long conversation for it.
    bytes: usize,
}

/// A question that is about no call.
#[derive(Clone, Debug, PartialEq)]
pub struct Asked {
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
    pub stage: Stage,
}

/// How far a call without a result is.
#[derive(Clone, Debug, PartialEq)]
pub enum Stage {
    /// The model asked for it, nothing was decided.
    Wanted,
    /// A person is asked.
    Asked(Question),
    /// A person answered, it did not start.
    Answered(Question, Answer),
    /// Its start is in the log, its end is not.
    Started,
}

impl Context {
    /// An empty context, for a log that is read from its middle.
    pub fn begin(settings: Settings, workspace: String, folders: Vec<String>) -> Self {
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
            run_first: None,
            titled: false,
            places: Vec::new(),
            bytes: 0,
        }
    }

    /// The size of its messages in bytes, about.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The context after all these entries, the first of which began the session.
    pub fn replay<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> Option<Self> {
        let mut entries = entries.into_iter();
        let first = entries.next()?;
        let Event::SessionCreated { workspace, folders, settings, .. } = &first.event else { return None };
        let mut context = Self::begin(settings.clone(), workspace.clone(), folders.clone());
        context.head = first.seq;
        entries.for_each(|entry| context.apply(entry));
        Some(context)
    }

    /// Takes in the next entry.
    pub fn apply(&mut self, entry: &Entry) {
        self.head = entry.seq;
        match &entry.event {
            Event::TitleSet { .. } => self.titled = true,
            Event::SettingsChanged { patch } => self.settings.apply(patch),
            Event::Routed { route } => self.settings.follow(route),
            Event::HistoryReset { keep_to, replacement, .. } => self.reset(entry.seq, *keep_to, replacement),
            // A sub-agent's call says nothing about how full this window is.
            Event::UsageAdded { usage } if usage.child.is_some() => {}
            Event::UsageAdded { usage } => self.tokens = Some(usage.input + usage.output),
            Event::RunStarted { .. } => self.start(entry.run),
            Event::RunEnded { .. } if entry.run == self.run => self.run = None,
            Event::MessageDone { message } => self.message(entry.seq, message),
            Event::ToolCalled { call } => self.stage(call.id, |pending| pending.call = Some(call.clone())),
            Event::ToolStarted { call } => self.stage(*call, |pending| pending.stage = Stage::Started),
            Event::ToolDone { call, result } => self.result(entry.seq, *call, result),
            Event::QuestionAsked { question } => self.ask(question),
            Event::QuestionAnswered { question, answer } => self.answered(*question, answer),
            Event::SessionCreated { .. }
            | Event::ArchiveSet { .. }
            | Event::Noticed { .. }
            | Event::PlanSet { .. }
            | Event::StateChanged { .. }
            | Event::ArtifactSaved { .. }
            | Event::RunQueued { .. }
            | Event::RunRecovered { .. }
            | Event::CancelRequested { .. }
            | Event::RunEnded { .. }
            | Event::MessageStarted { .. }
            | Event::PartDelta { .. }
            | Event::ToolUpdated { .. }
            | Event::Unknown(_) => {} // no model needs to know
        }
    }

    /// Index in `messages` of the active run's first message; their number if it has none.
    pub fn run_from(&self) -> usize {
        let first = self.run_first;
        self.messages.iter().position(|message| Some(message.id) == first).unwrap_or(self.messages.len())
    }

    fn start(&mut self, run: Option<RunId>) {
        self.run = run;
        self.pending.clear();
        self.asked.clear();
        self.turns = 0;
        self.run_first = None;
    }

    /// A compaction in the middle of a run brings the run's own messages along in its replacement.
    fn reset(&mut self, at: Seq, keep_to: Seq, replacement: &[Message]) {
        let kept = self.places.iter().take_while(|place| **place <= keep_to).count();
        self.bytes -= self.messages[kept..].iter().map(|message| message.bytes()).sum::<usize>();
        self.messages.truncate(kept);
        self.places.truncate(kept);
        for message in replacement.iter().filter(|message| !message.interrupted) {
            self.insert(self.messages.len(), at, message.clone());
        }
        self.tokens = None;
    }

    fn message(&mut self, at: Seq, message: &Message) {
        // What was cut off before it said anything may have been no model's either.
        let nothing = message.interrupted && message.parts.is_empty();
        if message.role == Role::Agent && !message.is_unasked() && !nothing {
            self.turns += 1;
        }
        if message.interrupted {
            return;
        }
        if self.run.is_some() && self.run_first.is_none() {
            self.run_first = Some(message.id);
        }
        self.pending.extend(message.parts.iter().filter_map(wanted));
        self.insert(self.messages.len(), at, message.clone());
    }

    fn insert(&mut self, index: usize, at: Seq, message: Message) {
        self.bytes += message.bytes();
        self.messages.insert(index, Arc::new(message));
        self.places.insert(index, at);
    }

    fn stage(&mut self, call: ToolCallId, change: impl FnOnce(&mut PendingCall)) {
        if let Some(pending) = self.pending.iter_mut().find(|pending| pending.id == call) {
            change(pending);
        }
    }

    fn ask(&mut self, question: &Question) {
        match question.call {
            Some(call) => self.stage(call, |pending| pending.stage = Stage::Asked(question.clone())),
            None => self.asked.push(Asked { question: question.clone(), answer: None }),
        }
    }

    fn answered(&mut self, id: QuestionId, answer: &Answer) {
        for asked in self.asked.iter_mut().filter(|asked| asked.question.id == id) {
            asked.answer = Some(answer.clone());
        }
        for pending in &mut self.pending {
            if let Stage::Asked(question) = &pending.stage
                && question.id == id
            {
                pending.stage = Stage::Answered(question.clone(), answer.clone());
            }
        }
    }

    /// Results stand right behind the message that asked, also when a person spoke in between.
    fn result(&mut self, at: Seq, call: ToolCallId, result: &ToolResult) {
        let Some(asked) = self.messages.iter().rposition(|message| asks_for(message, call)) else { return };
        let known = self.pending.len();
        self.pending.retain(|pending| pending.id != call);
        if self.pending.len() == known {
            return; // it has a result already
        }
        let part = Part::ToolResult { call, result: result.clone() };
        match self.messages.get_mut(asked + 1).filter(|next| next.role == Role::Tool) {
            Some(results) => {
                self.bytes += part.bytes();
                Arc::make_mut(results).parts.push(part);
            }
            None => self.insert(asked + 1, at, results(call, part)),
        }
    }
}

fn asks_for(message: &Message, id: ToolCallId) -> bool {
    message.parts.iter().any(|part| matches!(part, Part::ToolUse { call, .. } if *call == id))
}

/// A message of tool results has no id of its own in the log: it borrows that of its first call.
fn results(call: ToolCallId, part: Part) -> Message {
    Message { id: MessageId::new(call.uuid()), role: Role::Tool, parts: vec![part], interrupted: false, native: None }
}

fn wanted(part: &Part) -> Option<PendingCall> {
    let Part::ToolUse { call, name, arguments } = part else { return None };
    Some(PendingCall { id: *call, name: name.clone(), arguments: arguments.clone(), call: None, stage: Stage::Wanted })
}
