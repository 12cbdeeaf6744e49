//! A reader that only counts: cheap enough to measure a server beside it.

use std::io;
use std::time::Instant;

use tokio::io::{AsyncRead, AsyncReadExt};

/// Counts the deltas that a stream of bytes carries.
#[derive(Debug)]
pub struct DeltaStream<R> {
    reader: R,
    buffer: Vec<u8>,
    tail: Vec<u8>,
}

/// What was counted until the end of a turn.
#[derive(Clone, Copy, Debug)]
pub struct Finished {
    /// How many deltas.
    pub deltas: usize,
    /// When the first one came.
    pub first: Option<Instant>,
    /// When the end came.
    pub end: Instant,
}

impl<R: AsyncRead + Unpin> DeltaStream<R> {
    /// Reads from here.
    pub fn new(reader: R) -> Self {
        Self { reader, buffer: vec![0; 64 * 1024], tail: Vec::new() }
    }

    /// Counts until these bytes come by, or the stream ends.
    pub async fn count_until(&mut self, end: &[u8]) -> io::Result<Finished> {
        let (mut deltas, mut first) = (0, None);
        loop {
            let length = self.reader.read(&mut self.buffer).await?;
            let fresh = &self.buffer[..length];
            let found = fresh.iter().filter(|byte| **byte == b'~').count();
            if found > 0 && first.is_none() {
                first = Some(Instant::now());
            }
            deltas += found;
            // The end may be cut in two by the buffer's edge.
            self.tail.extend_from_slice(fresh);
            if length == 0 || contains(&self.tail, end) {
                self.tail.clear();
                return Ok(Finished { deltas, first, end: Instant::now() });
            }
            self.tail.drain(..self.tail.len().saturating_sub(end.len()));
        }
    }
}

fn contains(bytes: &[u8], wanted: &[u8]) -> bool {
    let first = wanted.first().copied().unwrap_or_default();
    let starts = bytes.iter().enumerate().filter(|(_, byte)| **byte == first);
    starts.into_iter().any(|(at, _)| bytes[at..].starts_with(wanted))
}
