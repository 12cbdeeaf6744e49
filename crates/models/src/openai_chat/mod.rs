//! OpenAI chat completions, as nearly every provider and local server speaks it.

mod chunk;
mod decode;
mod encode;

pub use decode::ChatDecoder;
pub use encode::{encode_openai_chat_conversation, encode_openai_chat_envelope, encode_openai_chat_tools};

/// The tag of native items: the assistant's message as it came, one item.
pub const WIRE: &str = "openai_chat";
