//! Server-sent events, read without IO: bytes arrive in any pieces, events come out whole.

/// One event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SseEvent {
    /// The id to resume after, the last one that was given on this stream.
    pub id: Option<String>,
    /// Its data; lines are joined by a line feed.
    pub data: Vec<u8>,
}

/// An event above the limit: the stream cannot be read on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an event is too long")]
pub struct EventTooLong;

/// Takes a stream of events apart. Names and retry times are not kept: no protocol here uses them.
#[derive(Debug)]
pub struct SseParser {
    line: Vec<u8>,
    data: Option<Vec<u8>>,
    id: Option<String>,
    /// The last line ended with a carriage return, whose line feed may follow.
    returned: bool,
    begun: bool,
    limit: usize,
}

impl SseParser {
    /// Events of at most this many bytes.
    pub fn with_limit(limit: usize) -> Self {
        Self { line: Vec::new(), data: None, id: None, returned: false, begun: false, limit }
    }

    /// Takes in bytes and gives the events that are whole now.
    pub fn push_bytes(&mut self, bytes: &[u8]) -> Result<Vec<SseEvent>, EventTooLong> {
        let mut events = Vec::new();
        let mut rest = bytes;
        while let Some(end) = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            // The second half of a line end that was cut in two, or came in one piece.
            let half = end == 0 && rest[0] == b'\n' && self.returned;
            self.line.extend_from_slice(&rest[..end]);
            self.returned = rest[end] == b'\r';
            rest = &rest[end + 1..];
            if !half {
                // Before the line is taken apart: what it says may be dropped, and it was too long all the same.
                self.check_limit()?;
                let line = std::mem::take(&mut self.line);
                events.extend(self.handle_line(&line));
            }
        }
        if !rest.is_empty() {
            self.returned = false;
        }
        self.line.extend_from_slice(rest);
        self.check_limit()?;
        Ok(events)
    }

    /// The id to resume after.
    pub fn last_id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    fn handle_line(&mut self, line: &[u8]) -> Option<SseEvent> {
        let line = if self.begun { line } else { line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line) };
        self.begun = true;
        if line.is_empty() {
            return self.data.take().map(|data| SseEvent { id: self.id.clone(), data });
        }
        let colon = line.iter().position(|byte| *byte == b':').unwrap_or(line.len());
        let (name, value) = (&line[..colon], line.get(colon + 1..).unwrap_or_default());
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match name {
            b"data" => match &mut self.data {
                Some(data) => {
                    data.push(b'\n');
                    data.extend_from_slice(value);
                }
                None => self.data = Some(value.to_vec()),
            },
            b"id" if !value.contains(&0) => self.id = String::from_utf8(value.to_vec()).ok(),
            _ => {}
        }
        None
    }

    fn check_limit(&self) -> Result<(), EventTooLong> {
        let length = self.line.len() + self.data.as_ref().map_or(0, Vec::len);
        if length > self.limit { Err(EventTooLong) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const STREAM: &[u8] =
        b"\xef\xbb\xbf: hello\nid: 1\ndata: a\n\ndata:b\r\ndata: c\r\n\r\nevent: x\nid: 3\rdata\r\rdata: lost";

    fn event(id: &str, data: &str) -> SseEvent {
        SseEvent { id: Some(id.to_owned()), data: data.into() }
    }

    #[test]
    fn events_are_the_same_however_the_stream_is_cut() {
        let wanted = [event("1", "a"), event("1", "b\nc"), event("3", "")];
        for cut in 0..=STREAM.len() {
            let mut events = SseParser::with_limit(64);
            let mut seen = events.push_bytes(&STREAM[..cut]).unwrap();
            seen.extend(events.push_bytes(&STREAM[cut..]).unwrap());
            assert_eq!(seen, wanted, "cut at {cut}");
            assert_eq!(events.last_id(), Some("3"));
        }
        let mut bytewise = SseParser::with_limit(64);
        let seen: Vec<SseEvent> = STREAM.chunks(1).flat_map(|byte| bytewise.push_bytes(byte).unwrap()).collect();
        assert_eq!(seen, wanted);
    }

    #[test]
    fn a_stream_without_an_end_is_refused() {
        let mut events = SseParser::with_limit(8);
        assert_eq!(events.push_bytes(b"data: 123456789"), Err(EventTooLong));
        let mut events = SseParser::with_limit(8);
        assert_eq!(events.push_bytes(b"data: 1234\ndata: 5678\n"), Err(EventTooLong));
    }
}
