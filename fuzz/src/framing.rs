//! Bytes to messages: lines of JSON-RPC, server-sent events.

use gander_wire::jsonrpc::{Incoming, Line, Lines, Peer};
use gander_wire::sse::{SseEvent, SseParser};

use crate::split_at_first_byte;

/// Short limits are reached by short inputs.
const LIMIT: usize = 64;

/// Lines are the same wherever they are cut, and each becomes a message or a refusal.
pub fn fuzz_json_rpc_line(data: &[u8]) {
    let Some((cut, bytes)) = split_at_first_byte(data) else { return };
    assert_eq!(lines_of(&[bytes]), lines_of(&[&bytes[..cut], &bytes[cut..]]), "cut at {cut}");
    let mut peer: Peer<()> = Peer::default();
    for line in lines_with_limit(&[bytes], 1 << 20).into_iter().flatten() {
        handle_line(&mut peer, &line);
    }
}

fn handle_line(peer: &mut Peer<()>, line: &[u8]) {
    let answers = match peer.handle_message(line) {
        Some(Incoming::Request { params, responder, .. }) => {
            match params.value() {
                Ok(value) => peer.respond_result(responder, &value),
                Err(error) => peer.respond_error(responder, &error),
            }
            1
        }
        Some(Incoming::Malformed(malformed)) => {
            peer.respond_malformed(&malformed);
            1
        }
        Some(Incoming::Notification { params, .. }) => {
            drop(params.value());
            0
        }
        Some(Incoming::Cancelled(_) | Incoming::Answer { .. }) | None => 0,
    };
    let written: Vec<_> = peer.out.messages().map(|(_, message)| message.to_vec()).collect();
    assert!(written.len() <= answers, "more answers than requests: {line:?}");
    for message in written {
        serde_json::from_slice::<serde_json::Value>(&message).expect("an answer is JSON");
        assert!(!message.contains(&b'\n'), "an answer is one line");
    }
    peer.out.clear();
}

fn lines_of(pieces: &[&[u8]]) -> Vec<Option<Vec<u8>>> {
    lines_with_limit(pieces, LIMIT)
}

/// The lines; none in place of one that is too long.
fn lines_with_limit(pieces: &[&[u8]], limit: usize) -> Vec<Option<Vec<u8>>> {
    let (mut lines, mut found) = (Lines::with_limit(limit), Vec::new());
    let own = |line: Line<'_>| match line {
        Line::Whole(line) => Some(line.to_vec()),
        Line::TooLong => None,
    };
    for piece in pieces {
        lines.push(piece);
        while let Some(line) = lines.next_line() {
            found.push(own(line));
        }
    }
    found.extend(lines.finish().map(own));
    found
}

/// Events are the same wherever the stream is cut.
pub fn fuzz_sse(data: &[u8]) {
    let Some((cut, bytes)) = split_at_first_byte(data) else { return };
    assert_eq!(events_of(&[bytes]), events_of(&[&bytes[..cut], &bytes[cut..]]), "cut at {cut}");
    let mut byte_by_byte = SseParser::with_limit(1 << 20);
    let single: Vec<SseEvent> = bytes.iter().flat_map(|byte| byte_by_byte.push_bytes(&[*byte]).unwrap()).collect();
    assert_eq!(SseParser::with_limit(1 << 20).push_bytes(bytes).unwrap(), single);
}

/// Whether a stream can be read to its end, and what it says if so.
fn events_of(pieces: &[&[u8]]) -> Option<Vec<SseEvent>> {
    let mut parser = SseParser::with_limit(LIMIT);
    let mut events = Vec::new();
    for piece in pieces {
        events.extend(parser.push_bytes(piece).ok()?);
    }
    Some(events)
}
