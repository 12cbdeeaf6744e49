//! goose's own forms: messages, sessions and events of its REST server, and its session files.
//!
//! A frozen protocol (goose 1.8 to 1.39): [`input`] takes what any of these versions sent, and what clients that were
//! only ever tested against their own mock send; [`translate`] writes what 1.35 wrote.

pub mod client;
mod content;
pub mod mode;
pub mod projection;
pub mod question;
pub mod requests;
pub mod session;
mod transcript;
pub mod types;

pub use transcript::{ConversationProjection, GooseTranscript, whole_goose_transcript};
pub use types::{GooseMessage, Metadata, TokenState};
