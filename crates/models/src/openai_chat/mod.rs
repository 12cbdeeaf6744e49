//! OpenAI chat completions, as nearly every provider and local server speaks it.

mod chunk;
mod decode;
mod encode;

pub use decode::Chat;
pub use encode::{conversation, frame};

/// The tag of native items: the assistant's message as it came, one item.
pub const WIRE: &str = "openai_chat";
