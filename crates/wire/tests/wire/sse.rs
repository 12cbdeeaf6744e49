//! Streams of events that a fuzzer found.

use gander_wire::sse::{EventTooLong, SseParser};

/// Whether a stream is refused, read in one piece and byte by byte.
fn refused(limit: usize, stream: &[u8]) -> [bool; 2] {
    let mut byte_by_byte = SseParser::with_limit(limit);
    let single = stream.iter().any(|byte| byte_by_byte.push_bytes(&[*byte]) == Err(EventTooLong));
    [SseParser::with_limit(limit).push_bytes(stream) == Err(EventTooLong), single]
}

#[test]
fn a_line_that_is_too_long_is_refused_however_it_arrives_and_whatever_it_says() {
    for name in ["", ": ", "x: ", "id: ", "data: "] {
        let long = format!("{name}{}\n\n", "x".repeat(60));
        assert_eq!(refused(40, long.as_bytes()), [true, true], "{name:?}");
        assert_eq!(refused(80, long.as_bytes()), [false, false], "{name:?}");
    }
}
