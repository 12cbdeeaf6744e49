//! The frames of HTTP/2, written and read one by one.
#![allow(dead_code, clippy::unwrap_used)]

use tokio::io::{AsyncRead, AsyncReadExt as _};

pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

pub const DATA: u8 = 0;
pub const HEADERS: u8 = 1;
pub const PRIORITY: u8 = 2;
pub const RESET: u8 = 3;
pub const SETTINGS: u8 = 4;
pub const PING: u8 = 6;
pub const GOAWAY: u8 = 7;
pub const CONTINUATION: u8 = 9;

pub const END_STREAM: u8 = 1;
pub const END_HEADERS: u8 = 4;

/// The setting of how much of a stream may be sent before its reader allows more.
pub const INITIAL_WINDOW: [u8; 2] = [0, 4];

/// A frame.
pub fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let head = [&length[1..], &[kind, flags], &stream.to_be_bytes()].concat();
    [&head, payload].concat()
}

/// A field of the static table (RFC 7541) with this value, not to be remembered.
pub fn literal(name: u8, value: &str) -> Vec<u8> {
    let name = if name < 15 { vec![name] } else { vec![15, name - 15] };
    [&name[..], &[u8::try_from(value.len()).unwrap()], value.as_bytes()].concat()
}

/// The next frame's type and payload, if there is one.
pub async fn next_frame(reader: &mut (impl AsyncRead + Unpin)) -> Option<(u8, Vec<u8>)> {
    let mut head = [0; 9];
    reader.read_exact(&mut head).await.ok()?;
    let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
    let mut payload = vec![0; length as usize];
    reader.read_exact(&mut payload).await.ok()?;
    Some((head[3], payload))
}
