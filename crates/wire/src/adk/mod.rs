//! Google's Agent Development Kit: requests to commands, a session's entries to ADK events.
//!
//! Checked against `adk api_server` 2.13 (python): camelCase goes out, snake_case is taken too.

pub mod agent_info;
pub mod client;
pub mod content;
mod error;
pub mod eval_metrics;
pub mod evaluation;
pub mod input;
mod key_case;
pub mod live;
pub mod output;
mod part_check;
pub mod question;
pub mod run_meta;
pub mod trace;
pub mod types;

pub use error::{AdkBodyProblem, AdkRefusal};
pub use input::{AdkRunRequest, NewAdkArtifact, NewAdkSession, RunInput};
pub use output::{AdkProjection, RunStage, StreamMode, join_adk_events};
pub use types::{AdkActions, AdkContent, AdkEvent, AdkSession, ArtifactVersion};

/// The name of this protocol in the log.
pub const PROTOCOL_NAME: &str = "adk";

/// Longest id of a user or session that a client may choose.
pub const MAX_ID: usize = 256;
