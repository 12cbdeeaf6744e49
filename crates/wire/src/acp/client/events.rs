//! What an agent tells a client.

use serde_json::Value;

use super::AgentRequest;
use crate::acp::schema::{
    ContentBlock, ContentChunk, Cost, InitializeResponse, Plan, RequestPermissionRequest, SessionNotification,
    SessionUpdate, StopReason, ToolCall, ToolCallUpdate,
};
use crate::jsonrpc::{Error, RequestId, Responder};

/// Which call an answer belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId(pub(super) i64);

/// A question of the agent that waits for an answer.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "an agent that is not answered waits"]
pub struct PermissionRequest(pub(super) Responder);

impl PermissionRequest {
    /// Its id, as [`AgentEvent::Withdrawn`] names it.
    pub fn id(&self) -> &RequestId {
        self.0.id()
    }
}

/// To answer it with something else than a choice.
impl From<PermissionRequest> for Responder {
    fn from(permission: PermissionRequest) -> Self {
        permission.0
    }
}

/// What an agent tells.
#[derive(Debug, PartialEq)]
pub enum AgentEvent {
    /// Who it is and what it can do.
    Initialized { call: CallId, agent: Box<InitializeResponse> },
    /// A session is open.
    Opened { call: CallId, session: String },
    /// A turn came to its end.
    Ended { call: CallId, stop: StopReason },
    /// Any other call was carried out.
    Answered { call: CallId, result: Value },
    /// A call was refused, or the agent is gone.
    Failed { call: CallId, error: Error },
    /// Something happened in a session: see [`ShownUpdate`].
    Updated(Box<SessionNotification>),
    /// The same, for what the types of the schema may not hold whole: `known` is what they hold, if anything.
    UpdatedWhole { params: Value, known: Option<Box<SessionNotification>> },
    /// It wants to know whether it may.
    Asked { permission: PermissionRequest, request: Box<RequestPermissionRequest> },
    /// It wants something that this client offered, or something of its own.
    Requested { responder: Responder, request: Box<AgentRequest> },
    /// It does not want to know any more: somebody else answered. The request is still to be answered, with anything.
    Withdrawn { request: RequestId },
    /// It says something else.
    Notified { method: String, params: Value },
}

impl AgentEvent {
    /// The call that this is the answer to.
    pub fn call(&self) -> Option<CallId> {
        match self {
            Self::Initialized { call, .. }
            | Self::Opened { call, .. }
            | Self::Ended { call, .. }
            | Self::Answered { call, .. }
            | Self::Failed { call, .. } => Some(*call),
            Self::Updated(_)
            | Self::UpdatedWhole { .. }
            | Self::Asked { .. }
            | Self::Requested { .. }
            | Self::Withdrawn { .. }
            | Self::Notified { .. } => None,
        }
    }
}

/// What happened in a session, for those who show it.
#[derive(Debug, PartialEq)]
pub enum ShownUpdate {
    /// A person speaks, as told by a replay or at another client.
    User(String),
    /// The agent speaks.
    Agent(String),
    /// The agent thinks.
    Thought(String),
    /// Content that is no text: who speaks is in the update.
    Content(Box<SessionUpdate>),
    /// A tool is wanted.
    Tool(Box<ToolCall>),
    /// A tool goes on.
    ToolChanged(Box<ToolCallUpdate>),
    /// The plan is now this.
    Plan(Plan),
    /// The title is now this.
    Title(Option<String>),
    /// The mode is now this.
    Mode(String),
    /// So much of the window is used.
    Usage { used: u64, size: u64, cost: Option<Cost> },
    /// Anything else.
    Other(Box<SessionUpdate>),
}

impl From<SessionUpdate> for ShownUpdate {
    #[expect(clippy::wildcard_enum_match_arm, reason = "the schema's enum is open")]
    fn from(update: SessionUpdate) -> Self {
        match update {
            SessionUpdate::UserMessageChunk(ContentChunk { content: ContentBlock::Text(text), .. }) => {
                Self::User(text.text)
            }
            SessionUpdate::AgentMessageChunk(ContentChunk { content: ContentBlock::Text(text), .. }) => {
                Self::Agent(text.text)
            }
            SessionUpdate::AgentThoughtChunk(ContentChunk { content: ContentBlock::Text(text), .. }) => {
                Self::Thought(text.text)
            }
            SessionUpdate::UserMessageChunk(_)
            | SessionUpdate::AgentMessageChunk(_)
            | SessionUpdate::AgentThoughtChunk(_) => Self::Content(Box::new(update)),
            SessionUpdate::ToolCall(call) => Self::Tool(Box::new(call)),
            SessionUpdate::ToolCallUpdate(change) => Self::ToolChanged(Box::new(change)),
            SessionUpdate::Plan(plan) => Self::Plan(plan),
            SessionUpdate::SessionInfoUpdate(info) => Self::Title(info.title.take()),
            SessionUpdate::CurrentModeUpdate(mode) => Self::Mode(mode.current_mode_id.0.to_string()),
            SessionUpdate::UsageUpdate(usage) => Self::Usage { used: usage.used, size: usage.size, cost: usage.cost },
            other => Self::Other(Box::new(other)),
        }
    }
}
