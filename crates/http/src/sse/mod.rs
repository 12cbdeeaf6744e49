//! Server-sent events: their framing, their ids, and a log followed as a stream of them.

mod driver;
mod event_id;
mod keep_alive;
mod stream;
mod writer;

use std::fmt::Display;
use std::io::Write as _;
use std::time::Duration;

use bytes::Bytes;

pub use driver::{EventSource, drive_event_stream};
pub use event_id::{EventId, InvalidEventId, StreamPosition};
pub use keep_alive::KeepAlive;
pub use stream::{SseProjection, SseStream};
pub use writer::SseWriter;

/// After so much silence a comment is sent, so that nothing in between hangs up.
pub const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(15);

/// A comment: every client skips it.
pub const KEEP_ALIVE: Bytes = Bytes::from_static(b":\n\n");

/// Adds one event. JSON needs no other framing: between its tokens a line end means no more than a blank.
pub fn append_sse_event(bytes: &mut Vec<u8>, id: Option<&dyn Display>, json: &[u8]) {
    if let Some(id) = id {
        writeln!(bytes, "id: {id}").expect("writing to memory cannot fail");
    }
    bytes.extend_from_slice(b"data: ");
    let from = bytes.len();
    bytes.extend_from_slice(json);
    bytes[from..].iter_mut().filter(|byte| matches!(byte, b'\n' | b'\r')).for_each(|byte| *byte = b' ');
    bytes.extend_from_slice(b"\n\n");
}
