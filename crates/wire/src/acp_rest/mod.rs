//! The Agent Communication Protocol (REST), as the shipped SDKs speak it: pure functions from requests to commands and
//! from a run's entries to its events.

pub mod client;
pub mod content;
pub mod dialect;
pub mod manifest;
pub mod projection;
pub mod question;
pub mod refusal;
pub mod requests;
pub mod types;

pub use dialect::AcpRestDialect;
pub use manifest::{AgentList, AgentStats, acp_rest_agent_manifest};
pub use projection::AcpRestProjection;
pub use refusal::{AcpRestError, AcpRestRefusal, ErrorCode};
pub use requests::{AcpRestRunRequest, HistoryMessage, RequestedSession, ResumeRequest};
pub use types::{
    AcpRestEvent, AcpRestMessage, AcpRestRun, AcpRestSession, AwaitRequest, MessagePart, RunMode, RunStatus,
};

/// The name of this protocol in a log: in the origin of its runs, and in what it leaves for itself.
pub const PROTOCOL_NAME: &str = "acp_rest";
