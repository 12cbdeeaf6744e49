//! Anthropic Messages: signed thinking, typed content blocks, cache marks.

mod decode;
mod encode;

pub use decode::Messages;
pub use encode::{conversation, frame};

/// The tag of native items: the content blocks as they came.
pub const WIRE: &str = "anthropic";
