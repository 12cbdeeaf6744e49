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
pub mod trace;
pub mod types;

pub use error::{Problem, Refusal};
pub use input::{NewArtifact, NewSession, RunRequest, Said};
pub use output::{Stage, Telling, Tone, join};
pub use types::{Actions, ArtifactVersion, Content, Event, Session};

/// The name of this door in the log.
pub const DOOR: &str = "adk";

/// Longest id of a user or session that a client may choose.
pub const LONGEST_ID: usize = 256;
