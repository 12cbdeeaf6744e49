//! The protocol's own forms. What is absent is not sent: both SDKs take that for null, but for the times of a message.

use std::fmt;

use gander_domain::{RunId, Timestamp};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::{Map, Value};

use super::refusal::AcpRestError;

/// A run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AcpRestRun {
    pub run_id: RunId,
    /// Who serves it.
    pub agent_name: String,
    /// The session it belongs to.
    pub session_id: String,
    /// How far it is.
    pub status: RunStatus,
    /// What it asked last. Stays after the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub await_request: Option<AwaitRequest>,
    /// What the agent said.
    pub output: Vec<AcpRestMessage>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<AcpRestError>,
    /// When it was accepted.
    pub created_at: WireTime,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<WireTime>,
}

/// How far a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunStatus {
    /// It waits for its turn.
    Created,
    /// It is under way.
    #[serde(alias = "in_progress")]
    InProgress,
    /// It waits for an answer.
    Awaiting,
    /// It is about to be cancelled.
    Cancelling,
    /// It was cancelled.
    Cancelled,
    /// It came to its end.
    Completed,
    /// It could not go on.
    Failed,
}

/// How a client wants to hear of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunMode {
    /// In one answer, once it ended or awaits.
    #[default]
    Sync,
    /// Later, by asking.
    Async,
    /// As a stream of events.
    Stream,
}

/// A message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AcpRestMessage {
    /// `user`, `agent` or `agent/{name}`.
    #[serde(default = "default_acp_rest_role")]
    pub role: String,
    /// What is said.
    pub parts: Vec<MessagePart>,
    /// When it began. Said even if it is not known: the Python SDK puts its own time where there is nothing.
    #[serde(default)]
    pub created_at: Option<WireTime>,
    /// When it was whole. Said even if it is not yet.
    #[serde(default)]
    pub completed_at: Option<WireTime>,
}

/// A piece of a message. One with a name is an artifact.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MessagePart {
    /// An artifact's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The media type of the content.
    #[serde(default = "default_acp_rest_content_type", deserialize_with = "default_if_null")]
    pub content_type: String,
    /// The content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    /// How it is written.
    #[serde(default, deserialize_with = "default_encoding_if_null")]
    pub content_encoding: ContentEncoding,
    /// Where the content is, if it is not here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_url: Option<String>,
    /// A citation or a trajectory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Map<String, Value>>,
}

/// How content is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ContentEncoding {
    /// As it is.
    #[default]
    Plain,
    /// In base64.
    Base64,
}

/// What an agent waits for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum AwaitRequest {
    /// A message, in answer to this one.
    Message {
        /// What it asks.
        message: AcpRestMessage,
    },
}

/// A session: where its history is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AcpRestSession {
    pub id: String,
    /// The addresses of its messages, oldest first.
    #[serde(default)]
    pub history: Vec<String>,
    /// The address of its state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
}

/// An event of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type")]
pub enum AcpRestEvent<'a> {
    /// A message begins.
    #[serde(rename = "message.created")]
    MessageCreated {
        /// As far as it is.
        message: &'a AcpRestMessage,
    },
    /// A piece of it.
    #[serde(rename = "message.part")]
    MessagePart {
        /// The piece.
        part: &'a MessagePart,
    },
    /// It is whole.
    #[serde(rename = "message.completed")]
    MessageCompleted {
        /// All of it.
        message: &'a AcpRestMessage,
    },
    /// What this protocol has no word for.
    #[serde(rename = "generic")]
    Generic {
        /// A `kind`, and more.
        generic: &'a Value,
    },
    /// The run was accepted.
    #[serde(rename = "run.created")]
    RunCreated {
        /// As it is now.
        run: &'a AcpRestRun,
    },
    /// It is under way.
    #[serde(rename = "run.in-progress")]
    RunInProgress {
        /// As it is now.
        run: &'a AcpRestRun,
    },
    /// It waits for an answer.
    #[serde(rename = "run.awaiting")]
    RunAwaiting {
        /// As it is now.
        run: &'a AcpRestRun,
    },
    /// It came to its end.
    #[serde(rename = "run.completed")]
    RunCompleted {
        /// As it is now.
        run: &'a AcpRestRun,
    },
    /// It was cancelled.
    #[serde(rename = "run.cancelled")]
    RunCancelled {
        /// As it is now.
        run: &'a AcpRestRun,
    },
    /// It could not go on.
    #[serde(rename = "run.failed")]
    RunFailed {
        /// As it is now.
        run: &'a AcpRestRun,
    },
    /// The stream is broken.
    #[serde(rename = "error")]
    Error { error: &'a AcpRestError },
}

/// A time, written in UTC with a `Z`: the npm client takes no other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WireTime(pub Timestamp);

impl RunStatus {
    /// True if nothing comes after it.
    pub fn is_terminal(self) -> bool {
        match self {
            Self::Completed | Self::Cancelled | Self::Failed => true,
            Self::Created | Self::InProgress | Self::Awaiting | Self::Cancelling => false,
        }
    }
}

impl fmt::Display for RunStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Created => "created",
            Self::InProgress => "in-progress",
            Self::Awaiting => "awaiting",
            Self::Cancelling => "cancelling",
            Self::Cancelled => "cancelled",
            Self::Completed => "completed",
            Self::Failed => "failed",
        })
    }
}

impl Serialize for WireTime {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match jiff::Timestamp::from_microsecond(self.0.as_micros()) {
            Ok(time) => serializer.collect_str(&format_args!("{time:.6}")),
            Err(_) => Err(serde::ser::Error::custom("time out of range")),
        }
    }
}

impl<'de> Deserialize<'de> for WireTime {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let time: jiff::Timestamp = text.parse().map_err(|_| de::Error::custom(format!("not a time: {text}")))?;
        if !(YEAR_1..YEAR_10000).contains(&time.as_microsecond()) {
            return Err(de::Error::custom(format!("not a time of our age: {text}")));
        }
        Ok(Self(Timestamp::from_micros(time.as_microsecond())))
    }
}

/// In microseconds.
const YEAR_1: i64 = -62_135_596_800_000_000;
const YEAR_10000: i64 = 253_402_300_800_000_000;

fn default_acp_rest_role() -> String {
    "user".to_owned()
}

fn default_acp_rest_content_type() -> String {
    "text/plain".to_owned()
}

/// acp-sdk's own types let it be null.
fn default_if_null<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_else(default_acp_rest_content_type))
}

fn default_encoding_if_null<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ContentEncoding, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}
