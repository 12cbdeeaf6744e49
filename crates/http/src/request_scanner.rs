//! Where the requests of an HTTP/1 connection begin and end, as far as two readers could disagree about it.
//!
//! The library below takes the last word where there are two, and waits for whatever a chunk announces. Neither is safe
//! behind a proxy that reads otherwise, so both are found here, as the bytes pass.

/// A larger chunk is no body that anybody takes.
const MAX_CHUNK: u64 = 1 << 32;

/// So much of a line is looked at: enough for a length.
const MAX_SCANNED_LINE: usize = 256;

/// What is wrong with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FramingError {
    /// Its body has a length and no length.
    TwoLengths,
    /// A chunk is larger than any body.
    Chunk,
}

/// Where in a request the next byte is.
#[derive(Debug)]
pub struct RequestScanner {
    position: ScanPosition,
    line: Vec<u8>,
    length: Option<u64>,
    chunked: bool,
    upgrade: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ScanPosition {
    /// Before or in its first line.
    Begin,
    Header,
    /// So many bytes of the body are left.
    Body(u64),
    /// In the line that says how long a chunk is.
    Size,
    /// So many bytes of a chunk and its end are left.
    Chunk(u64),
    Trailer,
    /// What follows may be anything.
    Opaque,
}

impl Default for RequestScanner {
    fn default() -> Self {
        Self { position: ScanPosition::Begin, line: Vec::new(), length: None, chunked: false, upgrade: false }
    }
}

impl RequestScanner {
    /// Takes in the next bytes.
    pub fn scan(&mut self, mut bytes: &[u8]) -> Result<(), FramingError> {
        while let [first, rest @ ..] = bytes {
            match &mut self.position {
                ScanPosition::Opaque => return Ok(()),
                ScanPosition::Body(left) | ScanPosition::Chunk(left) => {
                    let taken = usize::try_from(*left).unwrap_or(usize::MAX).min(bytes.len());
                    *left -= taken as u64;
                    bytes = &bytes[taken..];
                    if let ScanPosition::Body(0) = self.position {
                        self.position = ScanPosition::Begin;
                    } else if let ScanPosition::Chunk(0) = self.position {
                        self.position = ScanPosition::Size;
                    }
                }
                ScanPosition::Begin | ScanPosition::Header | ScanPosition::Size | ScanPosition::Trailer => {
                    bytes = rest;
                    if *first == b'\n' {
                        let line = std::mem::take(&mut self.line);
                        let ended = self.handle_line(line.trim_ascii_end());
                        self.line = line;
                        self.line.clear();
                        ended?;
                    } else if self.line.len() < MAX_SCANNED_LINE {
                        self.line.push(*first);
                    }
                }
            }
        }
        Ok(())
    }

    fn handle_line(&mut self, line: &[u8]) -> Result<(), FramingError> {
        match (self.position, line.is_empty()) {
            (ScanPosition::Begin, true) => {}
            (ScanPosition::Begin, false) => {
                (self.position, self.length, self.chunked, self.upgrade) = (ScanPosition::Header, None, false, false);
            }
            (ScanPosition::Header, false) => self.handle_header(line),
            (ScanPosition::Header, true) => return self.handle_head_end(),
            (ScanPosition::Size, _) => {
                let digits = line.split(|byte| !byte.is_ascii_hexdigit()).next().unwrap_or_default();
                let size = std::str::from_utf8(digits).ok().and_then(|digits| u64::from_str_radix(digits, 16).ok());
                self.position = match size {
                    Some(0) => ScanPosition::Trailer,
                    Some(size) if size <= MAX_CHUNK => ScanPosition::Chunk(size + 2),
                    Some(_) => return Err(FramingError::Chunk),
                    None => ScanPosition::Opaque, // the library below refuses what is no number
                };
            }
            (ScanPosition::Trailer, true) => self.position = ScanPosition::Begin,
            (ScanPosition::Trailer, false) => {}
            (ScanPosition::Body(_) | ScanPosition::Chunk(_) | ScanPosition::Opaque, _) => {}
        }
        Ok(())
    }

    fn handle_header(&mut self, line: &[u8]) {
        let Some(colon) = line.iter().position(|byte| *byte == b':') else { return };
        let (name, value) = (line[..colon].trim_ascii(), line[colon + 1..].trim_ascii());
        if name.eq_ignore_ascii_case(b"content-length") {
            let length = std::str::from_utf8(value).ok().and_then(|value| value.parse().ok());
            self.length = Some(length.unwrap_or(0));
        } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
            self.chunked = true;
        } else if name.eq_ignore_ascii_case(b"upgrade") {
            self.upgrade = true;
        }
    }

    fn handle_head_end(&mut self) -> Result<(), FramingError> {
        self.position = match (self.length, self.chunked) {
            (Some(_), true) => return Err(FramingError::TwoLengths),
            _ if self.upgrade => ScanPosition::Opaque,
            (None, true) => ScanPosition::Size,
            (None | Some(0), false) => ScanPosition::Begin,
            (Some(length), false) => ScanPosition::Body(length),
        };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(requests: &str, cut: usize) -> Result<(), FramingError> {
        let mut read = RequestScanner::default();
        requests.as_bytes().chunks(cut).try_for_each(|piece| read.scan(piece))
    }

    #[test]
    fn a_request_with_a_length_and_none_is_found_wherever_it_stands() {
        let good = "\r\nPOST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nte:\r\n";
        let chunked = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5;x=y\r\n\r\n\r\n\r\r\n0\r\nA: b\r\n\r\n";
        let get = "GET / HTTP/1.1\nHost: a\n\n";
        let bad = "POST / HTTP/1.1\r\nTransfer-Encoding : chunked\r\nX: y\r\ncontent-LENGTH:3\r\n\r\n";
        for cut in [1, 3, 1_000] {
            for before in ["", good, chunked, get] {
                let both = [before, good, chunked, get].concat();
                assert_eq!(verdict(&both, cut), Ok(()), "{both}");
                assert_eq!(verdict(&[&both, bad].concat(), cut), Err(FramingError::TwoLengths), "{both}");
            }
        }
    }

    #[test]
    fn a_chunk_has_an_end() {
        let chunk = |size: &str| format!("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n{size}\r\n");
        let verdicts = ["ffffffffffffffff", "FFFFFFFFFFF", "10", "0", "x"].map(|size| verdict(&chunk(size), 7));
        assert_eq!(verdicts, [Err(FramingError::Chunk), Err(FramingError::Chunk), Ok(()), Ok(()), Ok(())]);
    }

    #[test]
    fn what_follows_an_upgrade_is_not_read() {
        let upgrade =
            "GET / HTTP/1.1\r\nUpgrade: websocket\r\n\r\nA: b\r\nContent-Length: 1\r\nTransfer-Encoding: x\r\n\r\n";
        assert_eq!(verdict(upgrade, 5), Ok(()));
    }
}
