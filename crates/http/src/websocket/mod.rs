//! WebSockets: the handshake's answer, and frames as a way to carry messages.

mod frames;
mod header;
mod socket;
#[cfg(test)]
mod tests;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha1::{Digest as _, Sha1};

pub use frames::{CloseCode, WebSocketFrames};
pub use socket::{SocketEvent, WebSocket};

/// What RFC 6455 has both sides add to the key.
const GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// The answer to a client's `Sec-WebSocket-Key`; `None` if that is none.
pub fn websocket_accept_key(key: &str) -> Option<String> {
    STANDARD.decode(key).ok().filter(|nonce| nonce.len() == 16)?;
    let digest = Sha1::new().chain_update(key.as_bytes()).chain_update(GUID).finalize();
    Some(STANDARD.encode(digest))
}
