//! Frames cut at every byte, and every way to break the protocol.
#![allow(clippy::unwrap_used)]

use gander_wire::jsonrpc::Outbox;
use proptest::prelude::*;

use super::header::{FrameHeader, Opcode, unmask, write_frame_header};
use super::{WebSocketFrames, websocket_accept_key};
use crate::message_framing::{ConnectionStage, Framing, InboundMessage};

const FIN: u8 = 0x80;

/// A client's frame.
fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mask = [7, 0, 255, 42];
    let mut bytes = Vec::new();
    write_frame_header(&mut bytes, Opcode::Text, payload.len());
    bytes[0] = first;
    bytes[1] |= 0x80;
    bytes.extend_from_slice(&mask);
    let from = bytes.len();
    bytes.extend_from_slice(payload);
    unmask(&mut bytes[from..], mask);
    bytes
}

/// What came in and what is said in reply, if the bytes arrive in pieces of this size.
fn play(bytes: &[u8], size: usize) -> (Vec<String>, Vec<u8>) {
    let mut frames = WebSocketFrames::default();
    let (mut heard, mut said) = (Vec::new(), Vec::new());
    for piece in bytes.chunks(size) {
        frames.push_bytes(piece);
        while let Some(piece) = frames.next_message() {
            match piece {
                InboundMessage::Message(message) => heard.push(String::from_utf8(message.to_vec()).unwrap()),
                InboundMessage::TooLong => heard.push("too long".to_owned()),
            }
        }
    }
    frames.encode_outbox(&mut Outbox::default(), &mut said);
    (heard, said)
}

fn close(code: u16) -> Vec<u8> {
    [&[FIN | 8, 2][..], &code.to_be_bytes()].concat()
}

#[test]
fn the_key_of_the_rfc_gets_the_answer_of_the_rfc() {
    assert_eq!(websocket_accept_key("dGhlIHNhbXBsZSBub25jZQ==").as_deref(), Some("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="));
    assert_eq!(
        [websocket_accept_key(""), websocket_accept_key("c2hvcnQ="), websocket_accept_key("not base64!")],
        [None, None, None]
    );
}

#[test]
fn messages_come_whole_however_they_arrive() {
    let pieces = [
        frame(FIN | 1, b"one"),
        frame(1, b"t"),
        frame(FIN | 9, b"ping"),
        frame(0, b"w"),
        frame(FIN, b"o"),
        frame(FIN | 2, b"\xff binary is ignored"),
        frame(2, b"\xff in"),
        frame(FIN, b" pieces, too"),
        frame(2, b"text as "),
        frame(FIN, b"binary"),
        frame(FIN | 1, "x".repeat(70_000).as_bytes()),
        frame(FIN | 1, b""),
        frame(FIN | 10, b"pong"),
    ]
    .concat();
    let text = "text as binary".to_owned();
    let expected = vec!["one".to_owned(), "two".to_owned(), text, "x".repeat(70_000), String::new()];
    for size in [1, 2, 3, 7, 1_000, 100_000] {
        assert_eq!(play(&pieces, size), (expected.clone(), [&[FIN | 10, 4][..], b"ping"].concat()), "{size}");
    }
}

#[test]
fn whoever_breaks_the_protocol_is_told_so_and_heard_no_more() {
    let unmasked = [&[FIN | 1, 2][..], b"{}"].concat();
    let cases: Vec<(&str, Vec<u8>, u16)> = vec![
        ("unmasked", unmasked, 1002),
        ("reserved bit", frame(FIN | 0x40 | 1, b"{}"), 1002),
        ("opcode 3", frame(FIN | 3, b""), 1002),
        ("opcode 11", frame(FIN | 11, b""), 1002),
        ("ping of 126 bytes", frame(FIN | 9, &[0; 126]), 1002),
        ("ping in pieces", frame(9, b"a"), 1002),
        ("continuation of nothing", frame(FIN, b"a"), 1002),
        ("a message inside a message", [frame(1, b"a"), frame(FIN | 1, b"b")].concat(), 1002),
        ("close 999", frame(FIN | 8, &999_u16.to_be_bytes()), 1002),
        ("close 1005", frame(FIN | 8, &1005_u16.to_be_bytes()), 1002),
        ("close 1006", frame(FIN | 8, &1006_u16.to_be_bytes()), 1002),
        ("close of one byte", frame(FIN | 8, b"x"), 1002),
        ("reason not UTF-8", frame(FIN | 8, b"\x03\xe8\xff"), 1002),
        ("not UTF-8", frame(FIN | 1, b"\"\xed\xa0\x80\""), 1007),
        ("UTF-8 broken over two pieces", [frame(1, b"\xc3"), frame(FIN, b"(")].concat(), 1007),
        ("length in the wrong form", vec![FIN | 1, 0x80 | 126, 0, 5, 0, 0, 0, 0], 1002),
        ("too large", vec![FIN | 1, 0x80 | 127, 0, 0, 0, 0, 1, 0, 0, 1, 0, 0, 0, 0], 1009),
        ("100 EiB", vec![FIN | 1, 0x80 | 127, 0x7f, 255, 255, 255, 255, 255, 255, 255, 0, 0, 0, 0], 1009),
    ];
    for (what, bytes, code) in cases {
        let after = [bytes, frame(FIN | 1, b"after")].concat();
        assert_eq!(play(&after, 3), (vec![], close(code)), "{what}");
    }
    let whole = frame(1, &vec![b'a'; 16 << 20]);
    assert_eq!(play(&[whole, frame(FIN, b"b")].concat(), 1 << 20), (vec![], close(1009)));
    let million = [frame(1, b"a"), frame(0, b"a").repeat(1_000_000)].concat();
    assert_eq!(play(&million, 8_192), (vec![], close(1009)));
}

#[test]
fn a_goodbye_is_answered_with_its_own_code() {
    assert_eq!(play(&frame(FIN | 8, b"\x03\xe8bye"), 1), (vec![], close(1000)));
    assert_eq!(play(&frame(FIN | 8, b"\x0f\xa0"), 1), (vec![], close(4000)));
    assert_eq!(play(&frame(FIN | 8, b""), 1), (vec![], vec![FIN | 8, 0]));
}

#[test]
fn time_limits_close_and_a_live_client_is_pinged() {
    let said = |heartbeats: usize, stage, mut before: Box<dyn FnMut(&mut WebSocketFrames)>| {
        let (mut frames, mut said) = (WebSocketFrames::default(), Vec::new());
        for _ in 0..heartbeats {
            before(&mut frames);
            while frames.next_message().is_some() {}
            frames.on_heartbeat(stage);
            frames.encode_outbox(&mut Outbox::default(), &mut said);
        }
        said
    };
    let ping = [FIN | 9, 0];
    let pong = || Box::new(|frames: &mut WebSocketFrames| frames.push_bytes(&frame(FIN | 10, b"")));
    assert_eq!(said(4, ConnectionStage::Known, pong()), [ping, ping].concat());
    assert_eq!(said(3, ConnectionStage::Strange, pong()), [&ping[..], &close(1008)].concat());
    assert_eq!(said(9, ConnectionStage::Known, Box::new(|_| {})), [&ping.repeat(3)[..], &close(1001)].concat());
    let mut begun = false;
    let half = Box::new(move |frames: &mut WebSocketFrames| match std::mem::replace(&mut begun, true) {
        false => frames.push_bytes(&frame(1, b"half")),
        true => frames.push_bytes(&frame(FIN | 10, b"")),
    });
    assert_eq!(said(9, ConnectionStage::Known, half), [&ping.repeat(3)[..], &close(1008)].concat());
    let flood = Box::new(|frames: &mut WebSocketFrames| frames.push_bytes(&frame(FIN | 9, b"").repeat(1_001)));
    assert_eq!(said(1, ConnectionStage::Known, flood), [&[FIN | 10, 0][..], &close(1008)].concat());
}

proptest! {
    #[test]
    fn no_bytes_break_it(bytes in proptest::collection::vec(any::<u8>(), 0..400), size in 1..50_usize) {
        let (mut frames, mut whole) = (WebSocketFrames::default(), WebSocketFrames::default());
        for piece in bytes.chunks(size) {
            frames.push_bytes(piece);
            while frames.next_message().is_some() {}
        }
        whole.push_bytes(&bytes);
        while whole.next_message().is_some() {}
        let said = |frames: &mut WebSocketFrames| {
            let mut bytes = Vec::new();
            frames.encode_outbox(&mut Outbox::default(), &mut bytes);
            bytes
        };
        prop_assert_eq!(said(&mut frames), said(&mut whole));
    }

    #[test]
    fn a_header_reads_as_it_was_written(payload in 0..200_000_usize) {
        let mut bytes = Vec::new();
        write_frame_header(&mut bytes, Opcode::Text, payload);
        bytes[1] |= 0x80;
        bytes.extend_from_slice(&[1, 2, 3, 4]);
        let header = FrameHeader { fin: true, opcode: Opcode::Text, mask: [1, 2, 3, 4], payload };
        prop_assert_eq!(FrameHeader::parse(&bytes), Ok(Some((header, bytes.len()))));
        prop_assert_eq!(FrameHeader::parse(&bytes[..bytes.len() - 1]), Ok(None));
    }
}

#[test]
fn a_ping_is_answered_before_the_messages_that_nobody_takes_yet_and_only_once() {
    let bytes = [frame(FIN | 1, b"one"), frame(FIN | 9, b"there?"), frame(FIN | 1, b"two")].concat();
    let mut frames = WebSocketFrames::default();
    let (mut said, mut outbox) = (Vec::new(), Outbox::default());
    for piece in bytes.chunks(5) {
        frames.push_bytes(piece);
        frames.answer_control_frames();
    }
    frames.encode_outbox(&mut outbox, &mut said);
    assert_eq!(said, [&[FIN | 10, 6][..], b"there?"].concat());
    let mut heard = Vec::new();
    while let Some(InboundMessage::Message(message)) = frames.next_message() {
        heard.push(message.to_vec());
    }
    assert_eq!(heard, [b"one".to_vec(), b"two".to_vec()]);
    frames.encode_outbox(&mut outbox, &mut said);
    assert_eq!(said.len(), 8, "it was answered already");
    frames.push_bytes(&frame(FIN | 9, b"again?"));
    assert!(frames.next_message().is_none());
    frames.encode_outbox(&mut outbox, &mut said);
    assert!(said.ends_with(b"again?"));
}

#[test]
fn an_answer_that_is_ready_goes_before_the_close_and_nothing_after_it() {
    let (mut frames, mut outbox, mut said) = (WebSocketFrames::default(), Outbox::default(), Vec::new());
    outbox.push_message(|bytes| bytes.extend_from_slice(b"answer"));
    frames.shut_down();
    frames.encode_outbox(&mut outbox, &mut said);
    outbox.push_message(|bytes| bytes.extend_from_slice(b"late"));
    frames.encode_outbox(&mut outbox, &mut said);
    assert_eq!(said, [&[FIN | 1, 6][..], b"answer", &close(1012)].concat());
    assert!(outbox.is_empty());
}
