//! A2A (Agent2Agent) 1.0, and beside it the names and shapes of 0.3.
//!
//! A task is a run and a context is a session. Every binding makes a request into a [`A2aRequest`]; [`A2aProjection`] makes the
//! entries of one run into [`TaskUpdate`]s, and a [`A2aTask`] is nothing but these updates applied in order: whoever comes late and asks for
//! the task has what a subscriber saw.

pub mod card;
pub mod client;
pub mod content;
mod error;
pub mod json;
pub mod json_rpc;
mod object_reader;
mod projection;
pub mod protobuf;
pub mod question;
pub mod requests;
mod task_fold;
mod types;
mod update;
pub mod v03_json;

pub use error::{A2aError, A2aErrorKind, ErrorCodes, FieldViolation};
pub use projection::{A2aProjection, DetailLevel, TaskOpening, TaskSubject};
pub use requests::{A2aMethod, A2aRequest};
pub use types::{
    A2aArtifact, A2aMessage, A2aPart, A2aPartContent, A2aRole, A2aTask, ArtifactUpdate, Authentication, PushConfig,
    StatusUpdate, TaskPage, TaskState, TaskStatus,
};
pub use update::{TaskUpdate, TextChunk};

/// Our extension: thoughts, tool calls, plans and questions as data.
pub const EXTENSION: &str = "urn:gander:a2a:activity:v1";

/// The name of this protocol in the log.
pub const PROTOCOL_NAME: &str = "a2a";

/// Which version of the protocol a client speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum A2aDialect {
    /// 1.0, in every binding.
    V1,
    /// 0.3 over JSON-RPC, whose JSON has its own form.
    V03,
    /// 0.3 over HTTP+JSON, which is the JSON of its protobuf messages.
    V03Rest,
}

impl A2aDialect {
    /// The dialect of a version as clients name it; nothing means 0.3. Only major and minor count.
    pub fn from_version(version: &str) -> Option<Self> {
        let mut numbers = version.trim().split('.');
        match (numbers.next(), numbers.next()) {
            (Some("1"), Some("0") | None) => Some(Self::V1),
            (Some("0"), Some("3")) | (Some(""), None) => Some(Self::V03),
            (Some(_) | None, _) => None,
        }
    }
}
