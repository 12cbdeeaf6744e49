//! WebSocket frames to messages.

use gander_http::message_framing::{Framing, InboundMessage};
use gander_http::websocket::WebSocketFrames;
use gander_wire::jsonrpc::Outbox;

use crate::split_at_first_byte;

/// What a WebSocket gave us.
#[derive(Debug, PartialEq)]
struct Received {
    messages: Vec<Option<Vec<u8>>>,
    answered: Vec<u8>,
    closed: bool,
}

/// Messages and the way the connection ends are the same wherever the bytes are cut, and what is written is made of frames.
pub fn fuzz_websocket(data: &[u8]) {
    let Some((cut, bytes)) = split_at_first_byte(data) else { return };
    let whole = receive(&[bytes]);
    let halves = receive(&[&bytes[..cut], &bytes[cut..]]);
    assert_eq!((&whole.messages, whole.closed), (&halves.messages, halves.closed), "cut at {cut}");
    assert!(server_frames(&whole.answered), "what is written is made of frames: {:?}", whole.answered);
    assert!(server_frames(&halves.answered), "what is written is made of frames: {:?}", halves.answered);
}

fn receive(pieces: &[&[u8]]) -> Received {
    let mut frames = WebSocketFrames::default();
    let (mut messages, mut answered) = (Vec::new(), Vec::new());
    for piece in pieces {
        frames.push_bytes(piece);
        frames.answer_control_frames();
        while let Some(message) = frames.next_message() {
            messages.push(match message {
                InboundMessage::Message(message) => {
                    assert!(std::str::from_utf8(message).is_ok(), "a message is UTF-8");
                    Some(message.to_vec())
                }
                InboundMessage::TooLong => None,
            });
        }
        frames.encode_outbox(&mut Outbox::default(), &mut answered);
    }
    Received { messages, answered, closed: frames.is_closed() }
}

/// True if these are whole frames without a mask, none of them long.
fn server_frames(mut bytes: &[u8]) -> bool {
    while let [first, length, rest @ ..] = bytes {
        let length = usize::from(*length);
        if first & 0x80 == 0 || first & 0x70 != 0 || length > 125 || rest.len() < length {
            return false;
        }
        bytes = &rest[length..];
    }
    bytes.is_empty()
}
