//! The log's entries: past facts, in one order.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::{
    Answer, ArtifactContent, DeltaKind, Message, MessageId, Part, Plan, Principal, Question, QuestionId, Role, Route,
    RunId, SessionId, Settings, SettingsPatch, State, TextMark, Timestamp, ToolCall, ToolCallId, ToolContent,
    ToolResult,
};

/// A place in a session's log. The first entry is 1; 0 is before everything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Seq(pub u64);

impl Seq {
    /// Before the first entry.
    pub const ZERO: Self = Self(0);

    /// The place after this one.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// One fact of a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// Its place: grows by one, without gaps, never reused.
    pub seq: Seq,
    /// When the machine wrote it.
    pub at: Timestamp,
    /// The run it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// What happened.
    pub event: Event,
    /// What a door wants to find again and nobody else understands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Box<Value>>,
}

/// What happened.
///
/// A field that only one protocol could show does not belong here.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Event {
    /// The session began. Always entry 1.
    SessionCreated {
        /// Its id, so that an exported log is whole.
        session: SessionId,
        /// Whose it is.
        owner: Principal,
        /// Absolute path of the folder it works in.
        workspace: String,
        /// Further folders it may use.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        folders: Vec<String>,
        /// What it is set to.
        settings: Settings,
        /// The session it was forked from, or that started it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent: Option<SessionId>,
        /// What is known about the origin of the text that it begins with.
        #[serde(default, skip_serializing_if = "TextMark::is_empty")]
        inherited: Box<TextMark>,
    },
    /// It got a title.
    TitleSet {
        /// The title.
        title: String,
    },
    /// Settings changed.
    SettingsChanged {
        /// What changed.
        patch: SettingsPatch,
    },
    /// It was put away, or taken out again.
    ArchiveSet {
        /// Put away?
        archived: bool,
    },
    /// The history begins anew: older entries stay readable by cursor.
    HistoryReset {
        /// Entries up to here still count (0: none).
        keep_to: Seq,
        /// What stands in place of the rest.
        replacement: Vec<Message>,
        reason: ResetReason,
    },
    /// Something worth telling a person.
    Noticed { notice: Notice },
    /// The plan is now this.
    PlanSet {
        /// The whole plan.
        plan: Plan,
    },
    /// Values that are kept by name changed.
    StateChanged {
        /// The new values. Names of a wider scope than the session are told here and kept elsewhere.
        delta: State,
        /// The tool call that did it, if one did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call: Option<ToolCallId>,
    },
    /// Something was put away under a name, in the server's store of artifacts.
    ArtifactSaved {
        /// Its name.
        name: String,
        /// Its version, from 0.
        version: u64,
        /// Its media type, if known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mime: Option<String>,
        /// What it is, unless it is large.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        content: Option<ArtifactContent>,
        /// The tool call that did it, if one did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call: Option<ToolCallId>,
    },
    /// Text that came into the context, or comes with the next message, has this origin.
    TextMarked {
        /// The origin.
        mark: TextMark,
    },
    /// The prompt was given to this agent, in this mode.
    Routed {
        /// Where to, and why.
        route: Route,
    },
    /// A model call was paid for.
    UsageAdded {
        /// What it used.
        usage: Usage,
    },
    /// A prompt waits for its turn.
    RunQueued {
        /// Who asks.
        origin: RunOrigin,
        /// What is asked.
        parts: Vec<Part>,
    },
    /// A run began; the prompt is the next message.
    RunStarted {
        /// Who asks.
        origin: RunOrigin,
    },
    /// An open run was picked up after its process had died.
    RunRecovered {
        /// The how manieth time.
        attempt: u32,
    },
    /// Somebody wants the run to stop.
    CancelRequested { by: Principal },
    /// The run is over.
    RunEnded { outcome: Outcome },
    /// A message opens; its parts follow.
    MessageStarted {
        /// Its id.
        message: MessageId,
        /// Who speaks.
        role: Role,
    },
    /// The last part of the open message grew.
    PartDelta {
        /// The open message.
        message: MessageId,
        /// Which of its parts, from 0.
        part: u32,
        /// What grows.
        growth: DeltaKind,
        /// By how much.
        text: String,
    },
    /// A message is whole (and closed, if it was open).
    MessageDone {
        /// All of it.
        message: Message,
    },
    /// The agent wants to use a tool.
    ToolCalled {
        /// The call.
        call: ToolCall,
    },
    /// It is about to run. Committed before it does.
    ToolStarted { call: ToolCallId },
    /// It shows something while it runs; replaces what it showed before.
    ToolUpdated {
        call: ToolCallId,
        /// What it shows now.
        content: Vec<ToolContent>,
    },
    /// It is over.
    ToolDone {
        call: ToolCallId,
        /// How, and what it gave.
        result: ToolResult,
    },
    /// The agent told something in its own protocol for which there is no event: kept as it came, for clients that speak
    /// that protocol. The one fact that does not close an open message, as agents tell such things in mid-sentence.
    OpaqueUpdate {
        /// The protocol, such as `acp`.
        protocol: String,
        /// What was told.
        body: Box<Value>,
    },
    /// A person is asked.
    QuestionAsked { question: Question },
    /// The one answer.
    QuestionAnswered {
        /// Which question.
        question: QuestionId,
        /// The answer.
        answer: Answer,
    },
    /// Written by a newer version: kept as it is.
    #[serde(untagged)]
    Unknown(Value),
}

/// Why the history began anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResetReason {
    /// A person emptied it: views start here.
    Cleared,
    /// A person went back to an earlier place: views start here.
    Rewound,
    /// A client brought its own history: views start here.
    Replaced,
    /// The window was full: only the model's context starts here, people still see everything.
    Compacted,
}

/// Something worth telling a person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notice {
    /// How bad.
    pub severity: Severity,
    /// One line.
    pub title: String,
    /// More.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// How bad a notice is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Good to know.
    Info,
    /// Look at this.
    Warning,
    /// Something is wrong.
    Error,
}

/// What one model call used.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// `provider/model`.
    pub model: String,
    /// Tokens read, cached ones included.
    #[serde(deserialize_with = "deserialize_count")]
    pub input: u64,
    /// Tokens written, thinking included.
    #[serde(deserialize_with = "deserialize_count")]
    pub output: u64,
    /// Of the tokens read: from the provider's cache.
    #[serde(default, deserialize_with = "deserialize_count")]
    pub cached: u64,
    /// Of the tokens written: thinking.
    #[serde(default, deserialize_with = "deserialize_count")]
    pub thinking: u64,
    /// Price in millionths of a US dollar, if known.
    #[serde(default, deserialize_with = "deserialize_cost", skip_serializing_if = "Option::is_none")]
    pub cost: Option<u64>,
    /// Size of the model's window, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<u64>,
    /// The sub-agent that made the call, by its session; absent: the session itself did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub child: Option<SessionId>,
}

impl Usage {
    /// No call uses more. Whoever claims so, be it a provider or the file of a session, would make sums overflow, and what
    /// was spent would look like nothing.
    const MAX_COUNT: u64 = 1_000_000_000_000;

    /// The same with figures that can be added up.
    #[must_use]
    pub fn clamped(mut self) -> Self {
        for count in [&mut self.input, &mut self.output, &mut self.cached, &mut self.thinking] {
            *count = (*count).min(Self::MAX_COUNT);
        }
        self.cost = self.cost.map(|cost| cost.min(Self::MAX_COUNT));
        self
    }
}

fn deserialize_count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    Ok(u64::deserialize(deserializer)?.min(Usage::MAX_COUNT))
}

fn deserialize_cost<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    Ok(Option::<u64>::deserialize(deserializer)?.map(|cost| cost.min(Usage::MAX_COUNT)))
}

/// Who asks for a run, and from where.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunOrigin {
    pub by: Principal,
    /// Which door, such as `acp`.
    pub door: String,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Outcome {
    /// It came to its end.
    Completed {
        /// Why it stopped.
        stop: StopReason,
    },
    /// Somebody cancelled it.
    Cancelled,
    /// It could not go on.
    Failed {
        /// One lower-case word for programs, such as `interrupted` or `model`.
        reason: String,
        /// A sentence for people.
        message: String,
    },
}

/// Why a completed run stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// The model had nothing more to say.
    EndTurn,
    /// The model ran out of room.
    MaxTokens,
    /// It called the model as often as it may.
    MaxTurns,
    /// The model refused.
    Refusal,
    /// The model said what it was told to stop at.
    StopSequence,
}

impl StopReason {
    /// What a person is told if the run stopped before it was done; `None` if it was not a limit of ours.
    pub fn limit_message(self) -> Option<&'static str> {
        match self {
            Self::MaxTurns => Some("the run stopped at its limit of model calls (max_turns): send a message to go on"),
            Self::EndTurn | Self::MaxTokens | Self::Refusal | Self::StopSequence => None,
        }
    }
}

impl Event {
    /// True for the class of entries that are shown before they are synced.
    pub fn is_delta(&self) -> bool {
        matches!(self, Self::PartDelta { .. })
    }
}

impl Outcome {
    /// A failure.
    pub fn failed(reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self::Failed { reason: reason.into(), message: message.into() }
    }
}
