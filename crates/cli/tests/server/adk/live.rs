//! `/run_live` with a WebSocket client that nobody here wrote: the captured turn, questions, queues, refusals.

use std::time::Duration;

use futures::{SinkExt as _, StreamExt as _};
use gander_testkit::conformance::ConformanceRecorder;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::{Error, Message};

use crate::adk::client::{SESSIONS, asked, begin, texts};
use crate::adk::test_server::TestServer;

const CAPTURED: &str = include_str!("../../../../../interop/data/adk/run_live.json");

const PATIENCE: Duration = Duration::from_secs(60);

struct Live(WebSocketStream<TcpStream>);

impl Live {
    async fn open(server: &TestServer, query: &str) -> Result<Self, u16> {
        let mut request = format!("ws://{}/run_live?{query}", server.address).into_client_request().unwrap();
        request.headers_mut().insert("Authorization", format!("Bearer {}", server.token).parse().unwrap());
        let stream = TcpStream::connect(server.address).await.unwrap();
        match tokio_tungstenite::client_async(request, stream).await {
            Ok((socket, _)) => Ok(Self(socket)),
            Err(Error::Http(refused)) => Err(refused.status().as_u16()),
            Err(other) => panic!("{other}"),
        }
    }

    async fn at(server: &TestServer, session: &str) -> Self {
        let query = format!("app_name=wire&user_id=u1&session_id={session}&modalities=TEXT");
        Self::open(server, &query).await.unwrap()
    }

    async fn send(&mut self, frame: &Value) {
        self.0.send(Message::text(frame.to_string())).await.unwrap();
    }

    async fn say(&mut self, text: &str) {
        self.send(&json!({ "content": { "role": "user", "parts": [{ "text": text }] } })).await;
    }

    /// The next event, or the code and words of the goodbye.
    async fn next(&mut self) -> Result<Value, (u16, String)> {
        tokio::time::timeout(PATIENCE, self.heard()).await.expect("silence but for pings")
    }

    async fn heard(&mut self) -> Result<Value, (u16, String)> {
        loop {
            let frame = self.0.next().await;
            match frame.expect("a close frame comes first").unwrap() {
                Message::Text(text) => return Ok(serde_json::from_str(&text).unwrap()),
                Message::Close(Some(why)) => return Err((why.code.into(), why.reason.to_string())),
                Message::Close(None) => return Err((1005, String::new())),
                Message::Ping(_) | Message::Pong(_) | Message::Binary(_) | Message::Frame(_) => {}
            }
        }
    }

    async fn turn(&mut self) -> Vec<Value> {
        self.until(|event| event["turnComplete"] == true).await
    }

    async fn until(&mut self, last: impl Fn(&Value) -> bool) -> Vec<Value> {
        let mut events = Vec::new();
        while !events.last().is_some_and(&last) {
            events.push(self.next().await.unwrap());
        }
        events
    }
}

/// The keys of an event in their order, without what a scripted model of another kind says.
fn keys(event: &Value) -> Vec<&str> {
    let beside = ["modelVersion", "finishReason", "usageMetadata"];
    event.as_object().unwrap().keys().map(String::as_str).filter(|key| !beside.contains(key)).collect()
}

#[tokio::test]
async fn a_turn_in_words_is_told_as_the_capture_tells_it() {
    let captured: Value = serde_json::from_str(CAPTURED).unwrap();
    let frames = captured[0]["frames"].as_array().unwrap().iter().filter(|frame| frame["dir"] == "server");
    let captured: Vec<Value> =
        frames.map(|frame| serde_json::from_str(frame["text"].as_str().unwrap()).unwrap()).collect();
    let server = TestServer::open().await;
    begin(&server, "live").await;
    let mut live = Live::at(&server, "live").await;
    live.say("hi").await;
    let told = live.turn().await;
    let partial = |event: &Value| event["partial"] == true;
    assert_eq!(told.iter().filter(|event| partial(event)).count(), 3);
    assert_eq!(keys(&told[0]), keys(&captured[0]), "a piece");
    assert_eq!(keys(&told[3]), keys(&captured[2]), "the whole");
    assert_eq!(keys(&told[4]), keys(&captured[3]), "the end");
    assert_eq!(texts(&told), ["Hello", ", ", "world!", "Hello, world!"]);
    let mut ids: Vec<&Value> = told.iter().map(|event| &event["id"]).collect();
    ids.dedup();
    assert_eq!(ids.len(), 5, "every event has an id of its own");
    assert!(told.iter().all(|event| event["invocationId"] == told[0]["invocationId"]));
    assert!(told.iter().all(|event| event["nodeInfo"] == captured[0]["nodeInfo"]));
    let stored = server.get(&format!("{SESSIONS}/live")).await.ok();
    let stored = stored["events"].as_array().unwrap();
    assert_eq!(stored[1..], told[3..], "what is stored is what was told");
}

#[tokio::test]
async fn one_connection_holds_many_turns_and_the_answer_to_a_question() {
    let server = TestServer::open().await;
    begin(&server, "live").await;
    let mut live = Live::at(&server, "live").await;
    live.say("hello").await;
    live.say("many 2").await; // waits for its turn
    assert_eq!(texts(&live.turn().await).last().unwrap(), "Hello, world!");
    assert_eq!(texts(&live.turn().await).last().unwrap(), "word0 word1 ");
    live.say("confirm").await;
    let waits = |event: &Value| event["actions"]["skipSummarization"] == true;
    let questions = live.until(waits).await;
    let answer =
        json!({ "id": asked(&questions), "name": "adk_request_confirmation", "response": { "confirmed": true } });
    live.send(&json!({ "content": { "parts": [{ "functionResponse": answer }] } })).await;
    let rest = live.turn().await;
    assert_eq!(rest[0]["content"]["parts"][0]["functionResponse"]["response"], json!({ "deleted": "/data/a.txt" }));
    assert_eq!(rest[0]["invocationId"], questions[0]["invocationId"]);
    live.send(&json!({ "state_delta": { "k": 1 } })).await;
    live.say("hello").await;
    live.send(&json!({ "close": true })).await;
    assert_eq!(texts(&live.turn().await).last().unwrap(), "Hello, world!", "what was begun is told to its end");
    assert_eq!(live.next().await, Err((1000, String::new())));
    assert_eq!(server.get(&format!("{SESSIONS}/live")).await.ok()["state"]["k"], 1);
}

#[tokio::test]
async fn what_cannot_be_served_is_said_with_a_code_and_a_reason() {
    let server = TestServer::open().await;
    begin(&server, "live").await;
    let mut ghost = Live::at(&server, "ghost").await;
    assert_eq!(ghost.next().await, Err((1002, "Session not found".to_owned())));
    let mut nobody = Live::open(&server, "app_name=nobody&user_id=u1&session_id=live").await.unwrap();
    assert_eq!(nobody.next().await, Err((1002, "Agent not found: 'nobody'".to_owned())));
    for (frame, code, words) in [
        (r#"{"blob":{"mime_type":"audio/pcm","data":"AAEC"}}"#, 1011, "only text"),
        ("{nope", 1007, "no JSON"),
        (r#"{"content":{"parts":[{"nonsense":1}]}}"#, 1007, "nonsense"),
        (r#"{"content":{"parts":[{"functionResponse":{"id":"adk-1","name":"x","response":{}}}]}}"#, 1007, "adk-1"),
    ] {
        let mut live = Live::at(&server, "live").await;
        live.0.send(Message::text(frame)).await.unwrap();
        let (found, reason) = live.next().await.unwrap_err();
        assert!(found == code && reason.contains(words) && reason.len() <= 123, "{frame}: {found} {reason}");
    }
    for query in [
        "user_id=u1&session_id=live",
        "app_name=__x&user_id=u1&session_id=live",
        "app_name=wire&user_id=u1&session_id=live&modalities=SMELL",
    ] {
        assert_eq!(Live::open(&server, query).await.err(), Some(403), "{query}");
    }
    assert_eq!(server.get("/run_live?app_name=wire&user_id=u1&session_id=live").await.status, 426);
    let camel = Live::open(&server, "appName=wire&userId=u1&sessionId=live").await;
    assert!(camel.is_ok(), "Go's names are understood too");
}

/// Frames that are each small enough are not kept without end until the last one comes.
#[tokio::test]
async fn a_turn_in_many_frames_is_no_longer_than_a_prompt_may_be() {
    let server = TestServer::with(&[("GANDER_LIMITS_PROMPT_BODY", "64 KiB")]).await;
    begin(&server, "live").await;
    let mut live = Live::at(&server, "live").await;
    let frame = json!({ "partial": true, "content": { "parts": [{ "text": "x".repeat(30 << 10) }] } });
    for _ in 0..3 {
        live.send(&frame).await;
    }
    let told = live.next().await;
    assert_eq!(told, Err((1009, "a turn has at most 65536 bytes in all its frames".to_owned())));
}

/// What the captures try, and what the tests above saw of it.
#[test]
fn every_captured_connection_is_served_or_refused_for_a_reason() {
    let (captured, mut recorder) =
        (serde_json::from_str::<Value>(CAPTURED).unwrap(), ConformanceRecorder::for_protocol("adk"));
    for title in captured.as_array().unwrap().iter().filter_map(|one| one["title"].as_str()) {
        recorder.lists("live connection", [title]);
        match title {
            "text turn" | "close" | "state delta" | "no session" | "no app" | "camel query" | "session afterwards" => {
                recorder.shows("live connection", title, "WebSocket");
            }
            "bad json" => recorder.refuses("live connection", title, "1007 with a reason, in place of silence"),
            blob if blob.starts_with("blob") => {
                recorder.refuses("live connection", title, "1011: only text is understood")
            }
            other => panic!("nobody tried this: {other}"),
        }
    }
}

#[tokio::test]
async fn a_run_goes_on_when_its_live_client_is_gone() {
    let server = TestServer::open().await;
    begin(&server, "live").await;
    let mut live = Live::at(&server, "live").await;
    live.say("slow").await;
    live.next().await.unwrap();
    drop(live);
    let stored = async {
        loop {
            let session = server.get(&format!("{SESSIONS}/live")).await.ok();
            let events = session["events"].as_array().unwrap().clone();
            if events.last().unwrap()["turnComplete"] == true {
                return events;
            }
            tokio::task::yield_now().await;
        }
    };
    let events = tokio::time::timeout(PATIENCE, stored).await.unwrap();
    assert!(texts(&events).last().unwrap().ends_with("tick49 "));
}
