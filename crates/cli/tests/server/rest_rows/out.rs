//! Streams that a strict reader understands, whatever a model says. Rows E.

use std::time::{Duration, Instant};

use gander_testkit::harness::script;
use reqwest::Method;
use serde_json::{Value, json};

use crate::rest_rows::family::{FAMILIES, Family};
use crate::rest_rows::test_server::TestServer;

const NASTY: &str = "a\n\ndata: {\"type\":\"Finish\"}\n\nevent: x\r\nid: 7\r: y\u{2028}z\u{2029}\u{85}:";

/// The data of every event, by the letter of the specification; a line that has no place in it is a failure.
fn strict(text: &str) -> Vec<Value> {
    assert!(!text.contains('\r') && !text.contains('\0'), "no line ends but one kind");
    let (mut events, mut data) = (Vec::new(), None::<String>);
    for line in text.split('\n') {
        match line.split_once(':') {
            None if line.is_empty() => events.extend(data.take()),
            Some(("", _)) => {}
            Some(("data", rest)) => {
                assert!(data.is_none(), "one line per event");
                data = Some(rest.strip_prefix(' ').unwrap_or(rest).to_owned());
            }
            Some(("id", rest)) => {
                let id = rest.trim();
                let numbers = id.split('.').all(|number| number.parse::<u64>().is_ok());
                assert!(numbers, "E02: ids are made of numbers: {id}");
            }
            Some(_) | None => panic!("no line of a stream: {line:?}"),
        }
    }
    events.iter().map(|event| serde_json::from_str(event).expect("every event is JSON")).collect()
}

/// What the agent said, joined.
fn said(family: Family, events: &[Value]) -> String {
    let text = |part: &Value| part["text"].as_str().unwrap_or_default().to_owned();
    let pieces = |event: &Value| match family {
        Family::Goose => event["message"]["content"].as_array().cloned(),
        Family::Adk if event["partial"] == true => event["content"]["parts"].as_array().cloned(),
        Family::Adk => None,
    };
    events.iter().filter_map(pieces).flatten().map(|part| text(&part)).collect()
}

#[tokio::test]
async fn e01_e02_whatever_a_model_says_is_data() {
    let server = TestServer::open().await;
    for family in FAMILIES {
        let session = family.begin(&server).await;
        let told = script(&[json!([{ "text": NASTY, "chunks": 9 }])]);
        let mut body = family.says(&session, &told);
        body["streaming"] = json!(true);
        let answer = server.post(family, family.stream(), &body).await;
        assert_eq!(answer.headers["content-type"], "text/event-stream; charset=utf-8");
        let events = strict(&answer.text);
        assert_eq!(said(family, &events), NASTY, "{family:?}: {events:?}");
        let ends = events.iter().filter(|event| event["type"] == "Finish").count();
        assert_eq!(ends, usize::from(family == Family::Goose), "{family:?}");
        if family == Family::Goose {
            let path = format!("/sessions/{session}/events");
            let mut stream = server.request(family, Method::GET, &path).send().await.unwrap();
            let mut text = String::new();
            while !text.contains("\"Finish\",") && !text.contains("\"type\":\"Finish\"") {
                text.push_str(std::str::from_utf8(&stream.chunk().await.unwrap().unwrap()).unwrap());
            }
            let whole = &text[..text.rfind("\n\n").unwrap() + 2];
            assert_eq!(said(family, &strict(whole)), NASTY, "the session's own stream: {whole}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn e04_a_silent_stream_gives_signs_of_life() {
    let server = TestServer::open().await;
    let watch = async |family: Family| {
        let session = family.begin(&server).await;
        let told = script(&[json!([{ "text": "a" }, { "text": "b", "delay_ms": 120_000 }])]);
        let mut body = family.says(&session, &told);
        body["streaming"] = json!(true);
        let mut stream = server.request(family, Method::POST, family.stream()).json(&body).send().await.unwrap();
        for (name, value) in [("cache-control", "no-cache, no-transform"), ("x-accel-buffering", "no")] {
            assert_eq!(stream.headers()[name], value, "{family:?}");
        }
        let (mut text, begun) = (String::new(), Instant::now());
        let sign = match family {
            Family::Goose => "data: {\"type\":\"Ping\"}\n\n",
            Family::Adk => ":\n\n",
        };
        while !text.contains(sign) {
            text.push_str(std::str::from_utf8(&stream.chunk().await.unwrap().unwrap()).unwrap());
        }
        assert!(!text.contains("id:"), "{family:?}: a sign of life is no place: {text}");
        assert!(begun.elapsed() < Duration::from_secs(30), "{family:?}: before a proxy gives up");
    };
    tokio::join!(watch(FAMILIES[0]), watch(FAMILIES[1]));
}
