//! The messages of A2A 1.0, as far as we say or understand them. Their JSON is that of the protobuf messages.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// What a run looks like from outside.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct A2aTask {
    /// The run.
    pub id: String,
    /// The session.
    pub context_id: String,
    /// How far it is.
    pub status: TaskStatus,
    /// What it made.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<A2aArtifact>,
    /// What was said.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<A2aMessage>,
    /// More, by extension.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Map<String, Value>>,
}

/// How far a task is.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TaskStatus {
    /// In one word.
    pub state: TaskState,
    /// In more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<A2aMessage>,
    /// Since when.
    pub timestamp: String,
}

/// How far a task is, in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum TaskState {
    /// It waits for its turn.
    #[serde(rename = "TASK_STATE_SUBMITTED")]
    Submitted,
    /// It is under way.
    #[serde(rename = "TASK_STATE_WORKING")]
    Working,
    /// It came to its end.
    #[serde(rename = "TASK_STATE_COMPLETED")]
    Completed,
    /// It could not go on.
    #[serde(rename = "TASK_STATE_FAILED")]
    Failed,
    /// Somebody stopped it.
    #[serde(rename = "TASK_STATE_CANCELED")]
    Canceled,
    /// It asks.
    #[serde(rename = "TASK_STATE_INPUT_REQUIRED")]
    InputRequired,
    /// The agent does not want to.
    #[serde(rename = "TASK_STATE_REJECTED")]
    Rejected,
    /// It asks somebody to log in somewhere.
    #[serde(rename = "TASK_STATE_AUTH_REQUIRED")]
    AuthRequired,
}

/// Something said.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct A2aMessage {
    /// Chosen by whoever said it.
    pub message_id: String,
    /// In which context.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_id: Option<String>,
    /// About which task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_id: Option<String>,
    /// Who speaks.
    pub role: A2aRole,
    pub parts: Vec<A2aPart>,
    /// More, by extension.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Map<String, Value>>,
    /// Extensions that matter to it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub extensions: Vec<String>,
    /// Tasks it refers to.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reference_task_ids: Vec<String>,
}

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum A2aRole {
    /// The client.
    #[serde(rename = "ROLE_USER")]
    User,
    /// The agent.
    #[serde(rename = "ROLE_AGENT")]
    Agent,
}

/// A piece of a message or an artifact.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct A2aPart {
    /// What it is.
    #[serde(flatten)]
    pub content: A2aPartContent,
    /// More, by extension.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Map<String, Value>>,
    /// Its name as a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filename: Option<String>,
    /// Its type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
}

/// What a part is.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum A2aPartContent {
    /// Words.
    Text(String),
    /// Bytes, as base64.
    Raw(String),
    /// Where it is.
    Url(String),
    /// JSON.
    Data(Value),
}

/// Something a task made.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct A2aArtifact {
    /// Unique in its task.
    pub artifact_id: String,
    /// For people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What it consists of.
    pub parts: Vec<A2aPart>,
}

/// A task is now here.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StatusUpdate {
    /// Which task.
    pub task_id: String,
    /// In which context.
    pub context_id: String,
    pub status: TaskStatus,
    /// More, by extension.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Map<String, Value>>,
}

/// A task made this, or more of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ArtifactUpdate {
    /// Which task.
    pub task_id: String,
    /// In which context.
    pub context_id: String,
    pub artifact: A2aArtifact,
    /// Its parts come after those that are there.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub append: bool,
    /// There will be no more.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub last_chunk: bool,
}

/// Where the updates of a task are sent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PushConfig {
    /// Unique in its task.
    #[serde(default)]
    pub id: String,
    /// Which task.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub task_id: String,
    /// Where to.
    pub url: String,
    /// Repeated to the receiver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// How the receiver wants to be spoken to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authentication: Option<Authentication>,
}

/// How a receiver wants to be spoken to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Authentication {
    /// Such as `Bearer`.
    pub scheme: String,
    /// What follows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credentials: Option<String>,
}

/// Some tasks of a list.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskPage {
    /// They.
    pub tasks: Vec<A2aTask>,
    /// Where the next page begins; empty at the end.
    pub next_page_token: String,
    /// How many were asked for.
    pub page_size: u32,
    /// How many there are on all pages.
    pub total_size: u64,
}

impl TaskState {
    /// Every state, in the order of the protobuf enumeration, which begins with 1.
    pub const ALL: [Self; 8] = [
        Self::Submitted,
        Self::Working,
        Self::Completed,
        Self::Failed,
        Self::Canceled,
        Self::InputRequired,
        Self::Rejected,
        Self::AuthRequired,
    ];

    /// Its name in 0.3; in 1.0 the same in capitals after `TASK_STATE_`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Submitted => "submitted",
            Self::Working => "working",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Canceled => "canceled",
            Self::InputRequired => "input-required",
            Self::Rejected => "rejected",
            Self::AuthRequired => "auth-required",
        }
    }

    /// The state of this name, in the spelling of either version.
    pub fn parse(name: &str) -> Option<Self> {
        let plain = name.strip_prefix("TASK_STATE_").unwrap_or(name).to_ascii_lowercase().replace('_', "-");
        Self::ALL.into_iter().find(|state| state.name() == plain)
    }

    /// Nothing follows.
    pub const fn is_terminal(self) -> bool {
        match self {
            Self::Completed | Self::Failed | Self::Canceled | Self::Rejected => true,
            Self::Submitted | Self::Working | Self::InputRequired | Self::AuthRequired => false,
        }
    }

    /// Nothing follows until somebody answers.
    pub const fn is_interrupted(self) -> bool {
        match self {
            Self::InputRequired | Self::AuthRequired => true,
            Self::Submitted | Self::Working | Self::Completed | Self::Failed | Self::Canceled | Self::Rejected => false,
        }
    }
}

impl A2aPart {
    /// Words.
    pub fn text(text: impl Into<String>) -> Self {
        Self::new(A2aPartContent::Text(text.into()))
    }

    /// JSON.
    pub fn data(data: Value) -> Self {
        Self::new(A2aPartContent::Data(data))
    }

    /// A part with nothing but its content.
    pub fn new(content: A2aPartContent) -> Self {
        Self { content, metadata: None, filename: None, media_type: None }
    }

    /// True if it is words and nothing else.
    pub fn is_plain_text(&self) -> bool {
        matches!(self.content, A2aPartContent::Text(_))
            && self.metadata.is_none()
            && self.filename.is_none()
            && self.media_type.is_none()
    }
}
