//! The peer and its framing: joined in memory, split, batched, malformed, half-closed.

#![allow(clippy::unwrap_used)]

use gander_wire::jsonrpc::{Code, Counters, Error, Incoming, Line, Lines, Malformed, Outbox, Peer, RequestId};
use proptest::prelude::*;
use serde_json::{Value, json};

/// Lines out of pieces.
fn framed(pieces: &[&[u8]], limit: usize) -> Vec<Option<String>> {
    let mut lines = Lines::with_limit(limit);
    let mut found = Vec::new();
    for piece in pieces {
        lines.push(piece);
        while let Some(line) = lines.next_line() {
            found.push(owned(line));
        }
    }
    found.extend(lines.finish().map(owned));
    found
}

fn owned(line: Line<'_>) -> Option<String> {
    match line {
        Line::Whole(line) => Some(String::from_utf8_lossy(line).into_owned()),
        Line::TooLong => None,
    }
}

#[test]
fn lines_come_out_whole_wherever_they_are_cut() {
    let text = "one\r\n\n  \r\ntwo\nthree \u{e4}\nlast without end";
    let expected: Vec<_> = ["one", "two", "three \u{e4}", "last without end"].map(|line| Some(line.to_owned())).into();
    for cut in 0..=text.len() {
        let (head, tail) = text.as_bytes().split_at(cut);
        assert_eq!(framed(&[head, tail], 100), expected, "cut at {cut}");
    }
    let bytes: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
    assert_eq!(framed(&bytes, 100), expected);
}

#[test]
fn a_line_above_the_limit_is_told_once_and_the_next_one_is_whole() {
    let text = b"0123456789\n01234567890\nok\n";
    let expected = vec![Some("0123456789".to_owned()), None, Some("ok".to_owned())];
    for cut in 0..=text.len() {
        let (head, tail) = text.split_at(cut);
        assert_eq!(framed(&[head, tail], 10), expected, "cut at {cut}");
    }
}

proptest! {
    #[test]
    fn no_cut_changes_what_is_framed(text in "[ab\r\n ]{0,40}", cuts in prop::collection::vec(0_usize..40, 0..6)) {
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(text.len())).collect();
        cuts.extend([0, text.len()]);
        cuts.sort_unstable();
        let pieces: Vec<&[u8]> = cuts.windows(2).map(|cut| &text.as_bytes()[cut[0]..cut[1]]).collect();
        prop_assert_eq!(framed(&pieces, 8), framed(&[text.as_bytes()], 8));
    }
}

/// Moves what one side wrote to the other, which echoes requests and reports answers.
fn deliver(from: &mut Outbox, to: &mut Peer<&'static str>) -> Vec<String> {
    let mut lines = Lines::default();
    lines.push(from.bytes());
    from.clear();
    let mut heard = Vec::new();
    while let Some(Line::Whole(line)) = lines.next_line() {
        match to.handle_message(line) {
            Some(Incoming::Request { method, params, responder }) => {
                heard.push(format!("request {method}"));
                match params.parse::<Value>() {
                    Ok(params) if method == "echo" => to.respond_result(responder, &params),
                    _ => to.respond_error(responder, &Error::method_not_found(&method)),
                }
            }
            Some(Incoming::Notification { method, .. }) => heard.push(format!("notification {method}")),
            Some(Incoming::Cancelled(id)) => heard.push(format!("cancelled {id}")),
            Some(Incoming::Answer { context, result }) => {
                let result = result.map_or_else(|error| error.to_string(), |result| result.get().to_owned());
                heard.push(format!("answer to {context}: {result}"));
            }
            Some(Incoming::Malformed(Malformed { error, .. })) => heard.push(format!("malformed {}", error.code)),
            None => heard.push("nothing".to_owned()),
        }
    }
    heard
}

#[test]
fn two_peers_talk_both_ways_at_once() {
    let (mut here, mut there) = (Peer::default(), Peer::default());
    assert!(here.send_request(RequestId::from(1), "echo", &json!({ "a": 1 }), "first"));
    assert!(here.send_request(RequestId::text("x"), "nope", &json!({}), "second"));
    assert!(!here.send_request(RequestId::text("x"), "echo", &json!({}), "not while one waits"));
    here.out.push_notification("hint", &json!({}));
    assert!(there.send_request(RequestId::from(1), "echo", &json!({ "b": [1, null] }), "theirs"));
    assert_eq!(deliver(&mut here.out, &mut there), ["request echo", "request nope", "notification hint"]);
    let heard = deliver(&mut there.out, &mut here);
    let expected = ["request echo", "answer to first: {\"a\":1}", "answer to second: method not found: nope (-32601)"];
    assert_eq!(heard, expected);
    assert_eq!(deliver(&mut here.out, &mut there), ["answer to theirs: {\"b\":[1,null]}"]);
    assert_eq!((here.counters, there.counters), (Counters::default(), Counters::default()));
}

#[test]
fn a_message_asks_or_answers_and_never_both() {
    let mut peer = Peer::default();
    assert!(peer.send_request(RequestId::from(1), "echo", &json!({}), "ours"));
    peer.out.clear();
    for both in [
        json!({ "jsonrpc": "2.0", "id": 1, "method": "echo", "result": {} }),
        json!({ "jsonrpc": "2.0", "id": 1, "method": "echo", "error": { "code": 1, "message": "no" } }),
    ] {
        let text = both.to_string();
        let taken = peer.handle_message(text.as_bytes());
        assert!(matches!(taken, Some(Incoming::Malformed(Malformed { error, .. })) if error.code == -32_600), "{both}");
    }
    let answer = json!({ "jsonrpc": "2.0", "id": 1, "result": {} }).to_string();
    assert!(
        matches!(peer.handle_message(answer.as_bytes()), Some(Incoming::Answer { context: "ours", .. })),
        "it is still awaited"
    );
}

#[test]
fn a_withdrawn_request_is_told_and_its_late_answer_dropped() {
    let (mut here, mut there) = (Peer::default(), Peer::<&str>::default());
    here.send_request(RequestId::from(1), "slow", &json!({}), "slow");
    let line = here.out.bytes().to_vec();
    here.out.clear();
    let Some(Incoming::Request { responder, .. }) = there.handle_message(line.trim_ascii()) else {
        panic!("no request")
    };
    assert_eq!(here.cancel_request(&RequestId::from(1)), Some("slow"));
    assert_eq!(here.cancel_request(&RequestId::from(1)), None);
    assert_eq!(deliver(&mut here.out, &mut there), ["cancelled 1"]);
    there.respond_error(responder, &Error::new(Code::Cancelled, "request cancelled"));
    assert_eq!(deliver(&mut there.out, &mut here), ["nothing"]);
    assert_eq!(here.counters, Counters { stray_answers: 1, ..Counters::default() });
}

#[test]
fn an_id_is_free_again_after_its_answer_and_not_before() {
    let mut peer = Peer::<()>::default();
    let request = br#"{"id":7,"method":"x"}"#;
    let Some(Incoming::Request { responder, .. }) = peer.handle_message(request) else { panic!("no request") };
    let Some(Incoming::Malformed(malformed)) = peer.handle_message(request) else { panic!("taken twice") };
    assert_eq!((malformed.id, malformed.error.code), (Some(RequestId::from(7)), -32600));
    peer.respond_result(responder, &json!({}));
    assert!(matches!(peer.handle_message(request), Some(Incoming::Request { .. })));
}

#[test]
fn a_closed_connection_gives_back_everything_that_waits() {
    let mut peer = Peer::default();
    peer.send_request(RequestId::from(1), "a", &json!({}), "a");
    peer.send_request(RequestId::from(2), "b", &json!({}), "b");
    let mut waiting: Vec<_> = peer.take_pending().collect();
    waiting.sort_unstable();
    assert_eq!(waiting, ["a", "b"]);
    assert_eq!(peer.take_pending().count(), 0);
}

#[test]
fn an_outbox_knows_its_messages() {
    let mut out = Outbox::default();
    out.push_notification("a", &json!({}));
    out.push_result(&RequestId::text("\"q\""), &json!(1));
    out.push_error(None, &Error::new(Code::Parse, "no"));
    let messages: Vec<&[u8]> = out.messages().map(|(_, message)| message).collect();
    let expected = [
        r#"{"jsonrpc":"2.0","method":"a","params":{}}"#,
        r#"{"jsonrpc":"2.0","id":"\"q\"","result":1}"#,
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no"}}"#,
    ];
    assert_eq!(messages, expected.map(str::as_bytes));
    assert_eq!(out.bytes(), (expected.join("\n") + "\n").as_bytes());
}
