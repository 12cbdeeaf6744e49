//! Messages on their way out: one growing buffer, so that many of them leave with one write.

use std::io::Write;

use gander_domain::{Seq, SessionId};
use serde::Serialize;

use super::{Error, RequestId};

/// Above this a drained buffer is given back.
const KEEP_CAPACITY: usize = 32 * 1024;

/// Messages that wait to be written, each ended by a line feed.
#[derive(Debug, Default)]
pub struct Outbox {
    bytes: Vec<u8>,
    frames: Vec<BufferedMessage>,
    origin: MessageOrigin,
    /// How many of the messages are in the reader's own words already.
    translated: usize,
}

/// Where a message belongs: which stream of a connection carries it, and from where that stream resumes after it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MessageOrigin {
    /// The session it is about.
    pub session: Option<SessionId>,
    /// The last entry that it shows; zero for a message that no entry made.
    pub seq: Seq,
    /// Its index among the messages of that entry.
    pub index: u32,
}

/// One message in the buffer.
#[derive(Clone, Copy, Debug)]
struct BufferedMessage {
    end: usize,
    origin: MessageOrigin,
}

impl Outbox {
    /// Everything that waits, newline-delimited: what a line transport writes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// True if nothing waits.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Each message without its line feed, and where it belongs: what a framed transport writes.
    pub fn messages(&self) -> impl Iterator<Item = (MessageOrigin, &[u8])> {
        let starts = std::iter::once(0).chain(self.frames.iter().map(|frame| frame.end));
        starts.zip(&self.frames).map(|(start, frame)| (frame.origin, &self.bytes[start..frame.end - 1]))
    }

    /// Forgets what was written, keeps a sensible buffer.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(KEEP_CAPACITY);
        self.frames.clear();
        self.translated = 0;
    }

    /// Moves everything that waits to the end of `bytes`. Buffers are exchanged where that saves copying.
    pub fn drain_into(&mut self, bytes: &mut Vec<u8>) {
        if bytes.is_empty() {
            std::mem::swap(&mut self.bytes, bytes);
        } else {
            bytes.extend_from_slice(&self.bytes);
        }
        self.clear();
    }

    /// Puts what was added since the last time into other words; what has none is dropped.
    pub fn translate(&mut self, mut words: impl FnMut(MessageOrigin, &[u8]) -> Option<Vec<u8>>) {
        let start = self.translated.checked_sub(1).map_or(0, |last| self.frames[last].end);
        let added = self.frames.split_off(self.translated);
        let bytes = self.bytes.split_off(start);
        let mut from = start;
        for BufferedMessage { end, origin } in added {
            if let Some(message) = words(origin, &bytes[from - start..end - 1 - start]) {
                self.bytes.extend_from_slice(&message);
                self.bytes.push(b'\n');
                self.frames.push(BufferedMessage { end: self.bytes.len(), origin });
            }
            from = end;
        }
        self.translated = self.frames.len();
    }

    /// Sets where the following messages belong.
    pub fn set_origin(&mut self, origin: MessageOrigin) {
        self.origin = origin;
    }

    /// Takes over everything from another outbox.
    pub fn append(&mut self, other: &mut Self) {
        let offset = self.bytes.len();
        self.bytes.append(&mut other.bytes);
        self.frames.extend(other.frames.drain(..).map(|frame| BufferedMessage { end: frame.end + offset, ..frame }));
    }

    /// Drops the messages of entries after this one.
    pub fn truncate_after(&mut self, seq: Seq) {
        let kept = self.frames.iter().position(|frame| frame.origin.seq > seq).unwrap_or(self.frames.len());
        self.frames.truncate(kept);
        self.bytes.truncate(self.frames.last().map_or(0, |frame| frame.end));
    }

    /// Adds one message, written by the closure without a line feed.
    pub fn push_message(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.bytes);
        self.bytes.push(b'\n');
        self.frames.push(BufferedMessage { end: self.bytes.len(), origin: self.origin });
        self.origin.index += 1;
    }

    /// Adds a request.
    pub fn push_request(&mut self, id: &RequestId, method: &str, params: &impl Serialize) {
        self.push_message(|out| {
            out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
            write_json_to_outbox(out, id);
            write_method_and_params(out, method, params);
        });
    }

    /// Adds a notification.
    pub fn push_notification(&mut self, method: &str, params: &impl Serialize) {
        self.push_message(|out| {
            out.extend_from_slice(br#"{"jsonrpc":"2.0""#);
            write_method_and_params(out, method, params);
        });
    }

    /// Adds a result.
    pub fn push_result(&mut self, id: &RequestId, result: &impl Serialize) {
        self.push_message(|out| {
            out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
            write_json_to_outbox(out, id);
            out.extend_from_slice(br#","result":"#);
            write_json_to_outbox(out, result);
            out.push(b'}');
        });
    }

    /// Adds an error. Without an id it goes out with `null`.
    pub fn push_error(&mut self, id: Option<&RequestId>, error: &Error) {
        self.push_message(|out| {
            out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
            write_json_to_outbox(out, &id);
            out.extend_from_slice(br#","error":"#);
            write_json_to_outbox(out, error);
            out.push(b'}');
        });
    }
}

fn write_method_and_params(out: &mut Vec<u8>, method: &str, params: &impl Serialize) {
    out.extend_from_slice(br#","method":"#);
    write_json_to_outbox(out, method);
    out.extend_from_slice(br#","params":"#);
    write_json_to_outbox(out, params);
    out.push(b'}');
}

/// Appends JSON. A value that cannot be written (a foreign map with keys that are no strings) becomes `null`.
pub(crate) fn write_json_to_outbox<T: Serialize + ?Sized>(out: &mut Vec<u8>, value: &T) {
    let from = out.len();
    if serde_json::to_writer(&mut *out, value).is_err() {
        out.truncate(from);
        out.write_all(b"null").expect("writing to memory cannot fail");
    }
}
