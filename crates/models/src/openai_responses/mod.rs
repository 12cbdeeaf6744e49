//! OpenAI Responses, without storage at the provider: encrypted reasoning comes back with each request.

mod decode;
mod encode;

pub use decode::ResponsesDecoder;
pub use encode::{encode_conversation, encode_envelope};

/// The tag of native items: the output items as they came.
pub const WIRE: &str = "openai_responses";
