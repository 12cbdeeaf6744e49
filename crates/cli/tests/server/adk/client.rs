//! Small helpers of a client.

use serde_json::{Value, json};

use crate::adk::test_server::{Answer, TestServer};

pub const SESSIONS: &str = "/apps/wire/users/u1/sessions";

/// The events of a stream.
pub fn events(answer: &Answer) -> Vec<Value> {
    assert_eq!(answer.headers["content-type"], "text/event-stream; charset=utf-8", "{}", answer.text);
    let blocks = answer.text.split("\n\n").filter(|block| !block.is_empty() && !block.starts_with(':'));
    blocks.map(|block| serde_json::from_str(block.strip_prefix("data: ").unwrap()).unwrap()).collect()
}

pub fn says(session: &str, text: &str) -> Value {
    run(session, json!([{ "text": text }]))
}

pub fn answers(session: &str, id: &str, response: Value) -> Value {
    run(
        session,
        json!([{ "functionResponse": { "id": id, "name": "adk_request_confirmation", "response": response } }]),
    )
}

fn run(session: &str, parts: Value) -> Value {
    json!({ "appName": "wire", "userId": "u1", "sessionId": session, "newMessage": { "role": "user", "parts": parts } })
}

/// A session of this name.
pub async fn begin(server: &TestServer, name: &str) {
    server.post(SESSIONS, &json!({ "sessionId": name })).await.ok();
}

/// All texts of events, joined per event.
pub fn texts(events: &[Value]) -> Vec<String> {
    let text = |event: &Value| {
        let parts = event["content"]["parts"].as_array()?;
        let texts: String = parts.iter().filter_map(|part| part["text"].as_str()).collect();
        (!texts.is_empty()).then_some(texts)
    };
    events.iter().filter_map(text).collect()
}

/// The id of the call that asks for a confirmation.
pub fn asked(events: &[Value]) -> String {
    let calls = events.iter().flat_map(|event| event["content"]["parts"].as_array().cloned().unwrap_or_default());
    let mut asks = calls.filter(|part| part["functionCall"]["name"] == "adk_request_confirmation");
    asks.next().unwrap()["functionCall"]["id"].as_str().unwrap().to_owned()
}
