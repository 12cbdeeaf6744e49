//! Anthropic Messages: signed thinking, typed content blocks, cache marks.

mod decode;
mod encode;

pub use decode::MessagesDecoder;
pub use encode::{encode_anthropic_conversation, encode_anthropic_envelope, encode_anthropic_tools};

/// The tag of native items: the content blocks as they came.
pub const WIRE: &str = "anthropic";
