//! Newline-delimited framing: bytes arrive in any pieces, lines come out whole.

/// The longest line that is handled: 16 MiB.
pub const MAX_LINE: usize = 16 * 1024 * 1024;

/// Above this an empty buffer is given back.
const KEEP_CAPACITY: usize = 64 * 1024;

/// A line above this is a long one.
const LONG_LINE: usize = 1024 * 1024;

/// Cuts a byte stream into lines and never holds more than one line's limit plus what was pushed last.
#[derive(Debug)]
pub struct Lines {
    buffer: Vec<u8>,
    /// Where the next line begins.
    start: usize,
    /// Up to where no line feed was found.
    scanned: usize,
    /// Inside a line that was too long: dropped up to its end.
    discarding: bool,
    limit: usize,
}

/// One line of input.
#[derive(Debug, PartialEq, Eq)]
pub enum Line<'a> {
    /// A line that is not blank, without its end.
    Whole(&'a [u8]),
    /// A line above the limit; the rest of it is dropped.
    TooLong,
}

impl Default for Lines {
    fn default() -> Self {
        Self::with_limit(MAX_LINE)
    }
}

impl Lines {
    /// Lines of at most this many bytes.
    pub fn with_limit(limit: usize) -> Self {
        Self { buffer: Vec::new(), start: 0, scanned: 0, discarding: false, limit }
    }

    /// Takes in what arrived.
    pub fn push(&mut self, mut bytes: &[u8]) {
        if self.discarding {
            let Some(end) = find_line_feed(bytes) else { return };
            bytes = &bytes[end + 1..];
            self.discarding = false;
        }
        self.buffer.drain(..self.start);
        self.scanned -= self.start;
        self.start = 0;
        if self.buffer.is_empty() {
            self.buffer.shrink_to(KEEP_CAPACITY);
        }
        self.reserve(bytes.len());
        self.buffer.extend_from_slice(bytes);
    }

    /// Twice as large each time, but not beyond the longest line: nothing longer is ever held. A long line gets all of
    /// that at once: room that is not written to costs nothing, a copy into a larger one costs both.
    fn reserve(&mut self, more: usize) {
        let needed = self.buffer.len() + more;
        if needed > self.buffer.capacity() {
            let most = self.limit + more;
            let room = if needed > LONG_LINE { most } else { (self.buffer.capacity() * 2).min(most) };
            self.buffer.reserve_exact(room.max(needed) - self.buffer.len());
        }
    }

    /// The next line, if a whole one has arrived. Blank lines are skipped.
    pub fn next_line(&mut self) -> Option<Line<'_>> {
        while let Some(length) = find_line_feed(&self.buffer[self.scanned..]) {
            let (from, to) = (self.start, self.scanned + length);
            self.start = to + 1;
            self.scanned = self.start;
            if to - from > self.limit {
                return Some(Line::TooLong);
            }
            if !self.buffer[from..to].trim_ascii().is_empty() {
                return Some(Line::Whole(trim_carriage_return(&self.buffer[from..to])));
            }
        }
        self.scanned = self.buffer.len();
        if self.scanned - self.start > self.limit {
            self.reset();
            self.discarding = true;
            return Some(Line::TooLong);
        }
        None
    }

    /// The last line, if the input ended without a line feed.
    pub fn finish(&mut self) -> Option<Line<'_>> {
        let from = std::mem::replace(&mut self.start, self.buffer.len());
        self.scanned = self.start;
        let rest = &self.buffer[from..];
        (!rest.trim_ascii().is_empty()).then(|| Line::Whole(trim_carriage_return(rest)))
    }

    fn reset(&mut self) {
        self.buffer = Vec::new();
        self.start = 0;
        self.scanned = 0;
    }
}

fn find_line_feed(bytes: &[u8]) -> Option<usize> {
    bytes.iter().position(|byte| *byte == b'\n')
}

fn trim_carriage_return(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}
