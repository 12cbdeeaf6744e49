//! Between a session and whatever runs its agent: orders go out, reports come back.

use serde_json::Value;

use crate::{
    Answer, ArtifactContent, Delta, Message, MessageId, Notice, Outcome, Part, Plan, ProviderPayload, Question,
    QuestionId, Route, RunId, Seq, Settings, State, TextMark, ToolCall, ToolCallId, ToolContent, ToolResult, Usage,
};

/// What a back-end is told.
#[derive(Clone, Debug, PartialEq)]
pub enum Order {
    /// Begin this run: its prompt is in the log.
    Begin { run: RunId },
    /// Go on with this run from what the log says.
    Resume { run: RunId },
    /// The call's start is committed: run the tool now.
    RunTool { call: ToolCallId },
    /// A question was answered.
    Answered {
        question: QuestionId,
        /// With what.
        answer: Answer,
    },
    /// A person said something into the running turn.
    Steer { message: Message },
    /// Settings changed while the run is under way.
    Configured {
        /// All of them, as they are now.
        settings: Settings,
    },
    /// Stop. Whatever is reported afterwards, the run is cancelled.
    Cancel,
}

/// What a back-end tells.
#[derive(Clone, Debug, PartialEq)]
pub enum Report {
    /// The agent begins to speak.
    MessageStarted {
        /// Under this id.
        message: MessageId,
    },
    /// The open message grew. Many at once.
    Deltas(Vec<Delta>),
    /// The open message is whole. Its grown parts are the machine's; these come after them.
    MessageDone {
        /// Parts that do not grow: tool uses, pictures.
        tail: Vec<Part>,
        /// The provider's own form.
        native: Option<ProviderPayload>,
        /// Was it cut off?
        interrupted: bool,
    },
    /// The agent wants a tool.
    ToolWanted {
        /// The call.
        call: ToolCall,
        /// Whether it may run.
        gate: ToolGate,
    },
    /// An asked-for call was allowed by its answer: start it.
    ToolReady { call: ToolCallId },
    /// A running tool shows something.
    ToolUpdated {
        call: ToolCallId,
        /// What it shows now.
        content: Vec<ToolContent>,
    },
    /// A tool call is over.
    ToolDone { call: ToolCallId, result: ToolResult },
    /// A question that is about no tool call.
    Asked(Question),
    /// A held question is moot.
    Withdrawn(QuestionId),
    /// The plan is now this.
    PlanSet(Plan),
    /// Values that are kept by name changed.
    StateChanged {
        /// The new values.
        delta: State,
        /// The tool call that did it, if one did.
        call: Option<ToolCallId>,
    },
    /// Something was put away under a name: it is in the server's store of artifacts already.
    ArtifactSaved {
        /// Its name.
        name: String,
        /// Its version, from 0.
        version: u64,
        /// Its media type, if known.
        mime: Option<String>,
        /// What it is, unless it is large.
        content: Option<ArtifactContent>,
        /// The tool call that did it, if one did.
        call: Option<ToolCallId>,
    },
    /// Text that comes into the context has this origin.
    TextMarked(TextMark),
    /// The prompt goes to this agent, in this mode.
    Routed(Route),
    /// A model call was paid for.
    UsageAdded(Usage),
    /// The session deserves this title, unless a person chose one.
    Titled(String),
    /// Something worth telling.
    Noticed(Notice),
    /// Something in words of the agent's protocol that no other report says.
    OpaqueUpdate {
        /// The protocol, such as `acp`.
        protocol: String,
        /// What was told.
        body: Box<Value>,
    },
    /// A report whose entry keeps what only the agent's protocol could say.
    WithMeta {
        report: Box<Report>,
        /// For the door of that protocol, opaque to everybody else.
        meta: Box<Value>,
    },
    /// The window was full: the model's context is now this.
    Compacted {
        /// Entries up to here still count.
        keep_to: Seq,
        /// What stands for the rest.
        replacement: Vec<Message>,
    },
    /// Nothing is left to do but wait for answers: the back-end is gone, `Order::Resume` brings one back.
    Parked,
    /// The run is over.
    Ended(Outcome),
}

/// Whether a wanted tool may run.
#[derive(Clone, Debug, PartialEq)]
pub enum ToolGate {
    /// Yes, after its start is committed.
    Open,
    /// Ask first.
    Ask(Question),
    /// The back-end's own agent runs it and only tells us.
    External,
    /// No: a policy or its arguments forbid it, and this is its result.
    Denied(ToolResult),
}
