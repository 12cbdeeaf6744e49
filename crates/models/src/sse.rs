//! Server-sent events: bytes in, `data` payloads out, without copying what came in one piece.

use std::mem;

use memchr::memchr;

use super::ModelError;

/// No single event is larger: an image of a few megabytes fits, a stream without line ends does not.
const MAX_EVENT_BYTES: usize = 32 * 1024 * 1024;

/// Takes a byte stream apart at any cut. Event names and ids are ignored: every wire repeats the name in its data.
#[derive(Debug, Default)]
pub struct Sse {
    /// The begin of a line whose end has not come yet.
    tail: Vec<u8>,
    /// Data lines of an event that could not be handed over at once.
    data: Vec<u8>,
    has_data: bool,
    begun: bool,
}

impl Sse {
    /// Calls `each` with the data of every event that is whole now.
    pub fn feed_bytes(
        &mut self,
        mut bytes: &[u8],
        mut each: impl FnMut(&[u8]) -> Result<(), ModelError>,
    ) -> Result<(), ModelError> {
        if !self.tail.is_empty() {
            let Some(end) = memchr(b'\n', bytes) else { return self.buffer_bytes(bytes) };
            self.tail.extend_from_slice(&bytes[..end]);
            let line = mem::take(&mut self.tail);
            self.handle_line(&line, &mut each)?;
            bytes = &bytes[end + 1..];
        }
        while let Some(end) = memchr(b'\n', bytes) {
            let (line, rest) = (&bytes[..end], &bytes[end + 1..]);
            bytes = rest;
            match (self.lone_data(line), after_blank_sse_line(rest)) {
                (Some(data), Some(rest)) => {
                    each(data)?;
                    bytes = rest;
                }
                (Some(_), None) | (None, _) => self.handle_line(line, &mut each)?,
            }
        }
        self.buffer_bytes(bytes)
    }

    /// The stream is over: hands over what lacks only its line end.
    pub fn finish_stream(&mut self, mut each: impl FnMut(&[u8]) -> Result<(), ModelError>) -> Result<(), ModelError> {
        let line = mem::take(&mut self.tail);
        self.handle_line(&line, &mut each)?;
        self.handle_line(b"", &mut each)
    }

    /// True once the first line proved that this is a stream of events.
    pub fn has_begun(&self) -> bool {
        self.begun
    }

    /// The data of this line, if it is the first data line of an event and the stream is known to be one.
    fn lone_data<'a>(&self, line: &'a [u8]) -> Option<&'a [u8]> {
        if self.has_data || !self.begun { None } else { sse_data_field(trim_sse_line_end(line)) }
    }

    fn handle_line(
        &mut self,
        line: &[u8],
        each: &mut impl FnMut(&[u8]) -> Result<(), ModelError>,
    ) -> Result<(), ModelError> {
        let mut line = trim_sse_line_end(line);
        if !self.begun {
            line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
            self.begun = !line.is_empty();
            if self.begun && !is_sse_field(line) {
                return Err(not_an_sse_stream(line));
            }
        }
        if line.is_empty() {
            let data = mem::take(&mut self.data);
            return if mem::take(&mut self.has_data) { each(&data) } else { Ok(()) };
        }
        if let Some(more) = sse_data_field(line) {
            if mem::replace(&mut self.has_data, true) {
                self.data.push(b'\n');
            }
            self.data.extend_from_slice(more);
        }
        self.check_size()
    }

    fn buffer_bytes(&mut self, bytes: &[u8]) -> Result<(), ModelError> {
        self.tail.extend_from_slice(bytes);
        self.check_size()
    }

    fn check_size(&self) -> Result<(), ModelError> {
        if self.tail.len() + self.data.len() <= MAX_EVENT_BYTES {
            return Ok(());
        }
        Err(ModelError::BadStream(format!("one event of the stream is larger than allowed, bytes: {MAX_EVENT_BYTES}")))
    }
}

fn trim_sse_line_end(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

fn sse_data_field(line: &[u8]) -> Option<&[u8]> {
    let data = line.strip_prefix(b"data:")?;
    Some(data.strip_prefix(b" ").unwrap_or(data))
}

fn after_blank_sse_line(rest: &[u8]) -> Option<&[u8]> {
    rest.strip_prefix(b"\n").or_else(|| rest.strip_prefix(b"\r\n"))
}

fn is_sse_field(line: &[u8]) -> bool {
    let name = line.split(|byte| *byte == b':').next().unwrap_or_default();
    name.is_empty() || [b"data".as_slice(), b"event", b"id", b"retry"].contains(&name)
}

fn not_an_sse_stream(line: &[u8]) -> ModelError {
    let start = String::from_utf8_lossy(&line[..line.len().min(300)]).into_owned();
    let what = if line.starts_with(b"<") { "a web page" } else { "something else" };
    ModelError::BadStream(format!(
        "expected a stream of events but got {what}, is the base URL right? it begins: {start}"
    ))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    fn read(pieces: &[&[u8]]) -> Result<Vec<String>, ModelError> {
        let (mut sse, mut seen) = (Sse::default(), Vec::new());
        let mut each = |data: &[u8]| {
            seen.push(String::from_utf8_lossy(data).into_owned());
            Ok(())
        };
        for piece in pieces {
            sse.feed_bytes(piece, &mut each)?;
        }
        sse.finish_stream(&mut each)?;
        Ok(seen)
    }

    const STREAM: &str = "\u{feff}: hello\r\n\r\nevent: x\r\ndata: one\r\n\r\ndata:two\n\nid: 7\ndata: a\ndata:  b\ndata\n\n\
                          : ping\n\ndata: grüße\n\ndata: last";

    #[test]
    fn comments_marks_line_ends_and_long_data_are_understood() {
        assert_eq!(read(&[STREAM.as_bytes()]).unwrap(), ["one", "two", "a\n b", "grüße", "last"]);
    }

    #[test]
    fn every_cut_reads_the_same() {
        let whole = read(&[STREAM.as_bytes()]);
        for at in 0..STREAM.len() {
            let (one, two) = STREAM.as_bytes().split_at(at);
            assert_eq!(read(&[one, two]), whole, "cut at {at}");
        }
    }

    #[test]
    fn a_web_page_is_named_as_one() {
        let error = read(&[b"<!doctype html>\n<html>"]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "expected a stream of events but got a web page, is the base URL right? it begins: <!doctype html>"
        );
    }

    #[test]
    fn a_line_without_end_is_cut_off() {
        let mut sse = Sse::default();
        let piece = vec![b'x'; 1024 * 1024];
        let error = (0..40).find_map(|_| sse.feed_bytes(&piece, |_| Ok(())).err()).unwrap();
        assert_eq!(error.to_string(), "one event of the stream is larger than allowed, bytes: 33554432");
    }

    proptest! {
        #[test]
        fn any_bytes_in_any_pieces_never_panic(pieces in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..40), 0..20)) {
            let pieces: Vec<&[u8]> = pieces.iter().map(Vec::as_slice).collect();
            let whole = pieces.concat();
            prop_assert_eq!(read(&pieces).ok(), read(&[&whole]).ok());
        }
    }
}
