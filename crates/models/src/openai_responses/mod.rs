//! OpenAI Responses, without storage at the provider: encrypted reasoning comes back with each request.

mod decode;
mod encode;

pub use decode::ResponsesDecoder;
pub use encode::{
    encode_openai_responses_conversation, encode_openai_responses_envelope, encode_openai_responses_tools,
};

/// The tag of native items: the output items as they came.
pub const WIRE: &str = "openai_responses";
