//! Google's Agent Development Kit: requests to commands, a session's entries to ADK events.
//!
//! Checked against `adk api_server` 2.13 (python): camelCase goes out, snake_case is taken too.

pub mod agent_info;
pub mod client;
pub mod content;
pub mod eval_metrics;
pub mod evaluation;
mod key_case;
pub mod live;
mod part_check;
pub mod projection;
pub mod question;
mod refusal;
pub mod requests;
pub mod run_meta;
pub mod trace;
pub mod types;

pub use projection::{AdkProjection, RunStage, StreamMode, join_adk_events};
pub use refusal::{AdkBodyProblem, AdkRefusal};
pub use requests::{AdkRunRequest, NewAdkArtifact, NewAdkSession, RunInput};
pub use types::{AdkActions, AdkContent, AdkEvent, AdkSession, ArtifactVersion};

/// The name of this protocol in the log.
pub const PROTOCOL_NAME: &str = "adk";

/// Longest id of a user or session that a client may choose.
pub const MAX_ID: usize = 256;
