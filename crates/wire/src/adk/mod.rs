//! Google's Agent Development Kit: requests to commands, a session's entries to ADK events.
//!
//! Checked against `adk api_server` 2.13 (python): camelCase goes out, snake_case is taken too.

pub mod agent_info;
pub mod content;
mod error;
pub mod input;
mod key_case;
pub mod live;
pub mod output;
mod part_check;
pub mod question;
pub mod run_meta;
pub mod trace;
pub mod types;

pub use error::{AdkRefusal, BodyProblem};
pub use input::{AdkRunRequest, NewArtifact, NewSession, RunInput};
pub use output::{AdkProjection, RunStage, StreamMode, join_events};
pub use types::{Actions, ArtifactVersion, Content, Event, Session};

/// The name of this protocol in the log.
pub const PROTOCOL_NAME: &str = "adk";

/// Longest id of a user or session that a client may choose.
pub const MAX_ID: usize = 256;
