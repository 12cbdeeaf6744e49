//! What is fuzzed: one plain function for each decoder, which takes bytes and must come back.
//!
//! A target says more than "it does not panic" wherever something can be said: the same result however the bytes are cut, one
//! answer to each request, what was read and written again is read the same.

#![allow(clippy::unwrap_used)]

mod acp;
mod bodies;
mod framing;
mod sample_session;
#[cfg(feature = "server")]
mod session_import;
#[cfg(feature = "server")]
mod shell;
#[cfg(feature = "server")]
mod texts;
#[cfg(feature = "server")]
mod websocket;

pub use acp::{fuzz_acp_v1, fuzz_acp_v2};
pub use bodies::{fuzz_a2a_grpc, fuzz_a2a_json_rpc, fuzz_a2a_rest, fuzz_acp_rest, fuzz_adk, fuzz_goose};
pub use framing::{fuzz_json_rpc_line, fuzz_sse};
#[cfg(feature = "server")]
pub use session_import::fuzz_session_import;
#[cfg(feature = "server")]
pub use shell::fuzz_shell_line;
#[cfg(feature = "server")]
pub use texts::{fuzz_recipe, fuzz_settings, fuzz_template};
#[cfg(feature = "server")]
pub use websocket::fuzz_websocket;

/// Cuts bytes in two halves at a place that the first byte names: how much comes first, and the pieces.
pub(crate) fn split_at_first_byte(data: &[u8]) -> Option<(usize, &[u8])> {
    let (&first, rest) = data.split_first()?;
    Some((usize::from(first) % (rest.len() + 1), rest))
}
