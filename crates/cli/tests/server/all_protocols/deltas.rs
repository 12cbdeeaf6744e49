//! A long delta reaches every client in events that a buffer of 64 KiB holds.

use gander_testkit::harness::script;
use serde_json::{Value, json};

use crate::all_protocols::protocols::TestSession;

/// As much as the window of the demo model holds twice.
const LENGTH: usize = 150_000;
const MAX_EVENT: usize = 64 << 10;

/// Protocol, route, body, and the text of an event that is a delta.
type Case = (&'static str, &'static str, Value, fn(&Value) -> Option<&str>);

fn cases(test_session: &TestSession, text: &str) -> Vec<Case> {
    let session = &test_session.session;
    let part = json!({ "content": text });
    let input = json!([{ "role": "user", "parts": [part] }]);
    let acp_rest = json!({ "agent_name": "gander", "mode": "stream", "input": input });
    let message = json!({
        "messageId": "m-long", "role": "ROLE_USER", "parts": [{ "text": text }],
    });
    let adk = json!({
        "appName": "gander", "userId": "user", "sessionId": session, "streaming": true,
        "newMessage": { "role": "user", "parts": [{ "text": text }] },
    });
    let content = json!([{ "type": "text", "text": text }]);
    let said = json!({ "role": "user", "created": 1, "content": content, "metadata": {} });
    vec![
        ("acp_rest", "/runs", acp_rest, |event| {
            event["part"]["content"].as_str().filter(|_| event["type"] == "message.part")
        }),
        ("a2a", "/a2a/message:stream", json!({ "message": message }), |event| {
            event["artifactUpdate"]["artifact"]["parts"][0]["text"].as_str()
        }),
        ("adk", "/run_sse", adk, |event| {
            event["content"]["parts"][0]["text"].as_str().filter(|_| event["partial"] == true)
        }),
        ("goose", "/reply", json!({ "session_id": session, "user_message": said }), |event| {
            event["message"]["content"][0]["text"].as_str().filter(|_| event["message"]["role"] == "assistant")
        }),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_delta_comes_in_events_that_fit_a_buffer() -> anyhow::Result<()> {
    let (_root, _server, test_session) = crate::all_protocols::test_server().await?;
    let long = "y".repeat(LENGTH);
    for (protocol, path, body, delta) in cases(&test_session, &script(&[json!([{ "text": long }])])) {
        let request = test_session.post(path, &body).header("A2A-Version", "1.0").header("Accept", "text/event-stream");
        let text = request.send().await?.text().await?;
        let lines: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("data: ")).collect();
        let events: Vec<Value> = lines.iter().filter_map(|line| serde_json::from_str(line).ok()).collect();
        let sizes = lines.iter().zip(&events).filter(|(_, event)| delta(event).is_some()).map(|(line, _)| line.len());
        let largest = sizes.max().unwrap_or_default();
        let said: usize = events.iter().filter_map(delta).map(|text| text.matches('y').count()).sum();
        assert_eq!((said, largest <= MAX_EVENT), (LENGTH, true), "{protocol}: the largest has {largest} bytes");
    }
    Ok(())
}
