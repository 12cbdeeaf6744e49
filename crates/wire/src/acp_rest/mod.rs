//! The Agent Communication Protocol (REST), as the shipped SDKs speak it: pure functions from requests to commands and
//! from a run's entries to its events.

pub mod client;
pub mod content;
pub mod dialect;
pub mod error;
pub mod input;
pub mod manifest;
pub mod output;
pub mod question;
pub mod types;

pub use dialect::AcpRestDialect;
pub use error::{AcpRestError, AcpRestRefusal, ErrorCode};
pub use input::{AcpRestRunRequest, HistoryMessage, RequestedSession, ResumeRequest};
pub use manifest::{AgentList, AgentStats, agent_manifest};
pub use output::AcpRestProjection;
pub use types::{
    AcpRestEvent, AcpRestMessage, AcpRestRun, AcpRestSession, AwaitRequest, MessagePart, RunMode, RunStatus,
};

/// The name of this protocol in a log: in the origin of its runs, and in what it leaves for itself.
pub const PROTOCOL_NAME: &str = "acp_rest";
