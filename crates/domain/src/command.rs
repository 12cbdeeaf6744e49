//! What a door may ask of a session.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::trace::{TRACE_META, TraceContext};
use crate::{
    MAX_STATE_BYTES, Message, Part, QuestionId, Reply, ResetReason, RunId, RunOrigin, Seq, SettingsPatch, State,
    TextMark,
};

/// The longest title in characters.
pub const MAX_TITLE_CHARS: usize = 200;

/// An imperative to a session. Its JSON travels between nodes of one version or of two that follow each other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case")]
pub enum Command {
    /// Start a run, or whatever `if_busy` says.
    Prompt {
        /// Chosen by the caller or made for it: the same id twice is one run.
        run: RunId,
        /// Who asks.
        origin: RunOrigin,
        /// What is asked.
        parts: Vec<Part>,
        /// What to do if a run is under way.
        if_busy: IfBusy,
        /// Kept for the door in the run's first entry, or in that of a message to the running turn.
        meta: Option<Value>,
    },
    /// Stop a run that is active or waits for its turn.
    Cancel {
        /// Which; absent: the active one, if there is one. If that one is being cancelled already: what the same
        /// caller has in the queue.
        run: Option<RunId>,
        /// Who wants it.
        origin: RunOrigin,
    },
    /// Answer a question.
    Answer {
        question: QuestionId,
        /// With what. [`Reply::Chosen`] names a choice of the question.
        reply: Reply,
        /// Who answers.
        origin: RunOrigin,
        /// Kept in the answer's entry for the door.
        meta: Option<Box<Value>>,
    },
    /// Change settings.
    Configure {
        /// What changes.
        patch: SettingsPatch,
    },
    /// Give it a title.
    SetTitle {
        /// The title.
        title: String,
    },
    /// Change values that are kept by name.
    SetState {
        /// The new values.
        delta: State,
        /// Kept in the entry for the door.
        meta: Option<Box<Value>>,
    },
    /// Put it away, or take it out.
    Archive {
        /// Put away?
        archived: bool,
    },
    /// Say where the text of the next prompt, or of the history that was just set, comes from.
    MarkText {
        /// The origin.
        mark: TextMark,
    },
    /// Begin the history anew. Only while no run is active.
    Reset {
        /// Entries up to here still count.
        keep_to: Seq,
        /// What stands in place of the rest.
        replacement: Vec<Message>,
        reason: ResetReason,
    },
}

impl Command {
    /// The run that a prompt begins.
    pub fn prompted_run(&self) -> Option<RunId> {
        if let Self::Prompt { run, .. } = self { Some(*run) } else { None }
    }

    /// The same, with the span of the request that it came with noted in what is kept of a prompt.
    #[must_use]
    pub fn with_trace(mut self, trace: Option<TraceContext>) -> Self {
        if let (Self::Prompt { meta, .. }, Some(trace)) = (&mut self, trace) {
            let meta = meta.get_or_insert_with(|| Value::Object(serde_json::Map::new()));
            if let Value::Object(fields) = meta {
                fields.insert(TRACE_META.to_owned(), Value::String(trace.to_string()));
            }
        }
        self
    }
}

/// What a prompt does when a run is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IfBusy {
    /// It is refused. Behind a run that is being cancelled it waits for its turn instead.
    Refuse,
    /// It waits for its turn, also behind a run that awaits an answer.
    Queue,
    /// It waits for its turn; a run that awaits an answer is superseded instead.
    QueueOrSupersede,
    /// It is handed to the running turn. Behind a run that is being cancelled it waits for its turn instead.
    Steer,
    /// It is handed to this run, and refused if that one is not under way or is being cancelled.
    SteerRun(RunId),
}

/// What became of an accepted command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Accepted {
    /// The run started.
    Started(RunId),
    /// The run waits for its turn.
    Queued(RunId),
    /// The message was handed to this running turn.
    Steered(RunId),
    /// This run was accepted before: nothing new happened.
    Repeated(RunId),
    /// It is done, or there was nothing to do.
    Done,
}

/// Why a command was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CommandError {
    /// One run at a time.
    #[error("session already has an active run: {0}")]
    RunActive(RunId),
    /// The run waits for a person first.
    #[error("session awaits an answer before it takes another prompt, run: {0}")]
    RunAwaiting(RunId),
    /// The queue has an end.
    #[error("too many prompts wait in this session: {0}")]
    QueueFull(usize),
    /// Nothing to steer.
    #[error("session has no running turn to steer")]
    NotRunning,
    /// No such run here, or it is over.
    #[error("no active or waiting run with this id: {0}")]
    NoSuchRun(RunId),
    /// Unknown, or answered already.
    #[error("no open question with this id: {0}")]
    NoSuchQuestion(QuestionId),
    /// The answer does not fit the question.
    #[error("answer does not fit the question: {0}")]
    BadAnswer(String),
    /// Nothing was said.
    #[error("prompt has no content")]
    EmptyPrompt,
    /// No title that people could read.
    #[error("title must have 1 to {} characters on one line", MAX_TITLE_CHARS)]
    BadTitle,
    /// Values that are kept by name have an end.
    #[error("values kept in this session would take more than {MAX_STATE_BYTES} bytes: {0}")]
    StateFull(usize),
    /// The place is not in the log.
    #[error("no such place in the log: {0}")]
    NoSuchSeq(Seq),
}
