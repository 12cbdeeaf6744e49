//! OpenAI Responses, without storage at the provider: encrypted reasoning comes back with each request.

mod decode;
mod encode;

pub use decode::ResponsesDecoder;
pub use encode::{encode_openai_responses_conversation, encode_openai_responses_envelope};

/// The tag of native items: the output items as they came.
pub const WIRE: &str = "openai_responses";
