//! All captured exchanges, sent to us: the same status, keys, values and order, or a known difference.

use std::collections::{BTreeMap, BTreeSet};

use gander_testkit::conformance::ConformanceRecorder;
use serde_json::{Value, json};

use crate::adk::client::{SESSIONS, events};
use crate::adk::compare::{Ids, steady};
use crate::adk::known::DIFFERENT;
use crate::adk::test_server::{Answer, TestServer};

const VECTORS: &str = include_str!("../../../../../interop/data/adk/vectors.jsonl");

/// Exchanges of `adk web`, which had a memory of its own.
const WEB: usize = 126;

struct Replay {
    server: TestServer,
    client: reqwest::Client,
    ids: Ids,
    sessions: BTreeSet<String>,
}

impl Replay {
    async fn open() -> Self {
        let server = TestServer::with(&[("GANDER_ADK_JOIN", "0s")]).await;
        let client = reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none()).build().unwrap();
        Self { server, client, ids: Ids::default(), sessions: BTreeSet::new() }
    }

    async fn send(&mut self, id: &str, request: &Value) -> Answer {
        let text = |key: &str| request[key].as_str().unwrap_or_default().to_owned();
        let body = match &request["body"] {
            Value::Null => String::new(),
            Value::String(text) => text.clone(),
            json @ (Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
                self.ids.translate(&json.to_string())
            }
        };
        self.prepare(&text("path"), &request["body"]).await;
        let url = self.server.url(&self.ids.translate(&text("path")));
        let method = text("method").parse::<reqwest::Method>().unwrap();
        let mut sent = self.client.request(method, url).bearer_auth(&self.server.token).body(body);
        for (name, value) in request["headers"].as_object().unwrap() {
            let value = value.as_str().unwrap().replace("127.0.0.1:8101", &self.server.address.to_string());
            if !name.eq_ignore_ascii_case("content-length") && !name.eq_ignore_ascii_case("host") {
                sent = sent.header(name, value);
            }
        }
        if id.ends_with("host-foreign") {
            sent = sent.header("Host", "evil.example");
        }
        let response = sent.send().await.unwrap();
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        Answer { status, headers, text: response.text().await.unwrap() }
    }

    /// The captures made their sessions unseen.
    async fn prepare(&mut self, path: &str, body: &Value) {
        let (app, session) = (body["appName"].as_str().unwrap_or("wire"), body["sessionId"].as_str());
        let Some(session) = session.filter(|session| path.starts_with("/run") && *session != "ghost") else { return };
        if self.sessions.insert(session.to_owned()) && app != "nope" {
            let path = SESSIONS.replace("wire", app);
            let answer = self.server.post(&path, &json!({ "sessionId": session })).await;
            assert!([200, 409].contains(&answer.status), "{} {}", answer.status, answer.text);
        }
    }
}

/// What was answered, in one value: errors by their `detail`, since ours say more.
fn body(expected: &Value, answer: &Answer) -> (Value, Value) {
    if let Some(captured) = expected.get("sse_events") {
        return (captured.clone(), Value::Array(events(answer)));
    }
    let found: Value = serde_json::from_str(&answer.text).unwrap_or_else(|_| json!(answer.text));
    let captured = expected.get("json").unwrap_or(&expected["text"]).clone();
    if answer.status < 400 || captured.get("detail").is_none() || found.get("detail").is_none() {
        return (captured, found);
    }
    assert!(found["error"].is_string(), "{found}");
    match (&captured["detail"], &found["detail"]) {
        (Value::String(_), Value::String(_)) => (Value::Null, Value::Null), // each says it in its own words
        (captured, found) => (captured.clone(), found.clone()),
    }
}

fn difference(expected: &Value, answer: &Answer, ids: &mut Ids) -> Option<String> {
    if expected["status"] != answer.status {
        return Some(format!("status {} is {}: {}", expected["status"], answer.status, answer.text));
    }
    let (captured, found) = body(expected, answer);
    ids.learn(&captured, &found);
    let (captured, found) = (steady(&captured), steady(&found));
    (captured != found).then(|| format!("\n  captured {captured}\n  found    {found}"))
}

#[tokio::test]
async fn all_149_exchanges_are_answered_alike_or_differ_for_a_known_reason() {
    let (mut replay, mut recorder) = (Replay::open().await, ConformanceRecorder::for_protocol("adk"));
    let (mut seen, mut strange) = (BTreeMap::new(), Vec::new());
    let lines: Vec<&str> = VECTORS.lines().collect();
    for (index, line) in lines.iter().enumerate() {
        if index == WEB {
            replay = Replay::open().await;
        }
        let vector: Value = serde_json::from_str(line).unwrap();
        let id = vector["id"].as_str().unwrap().to_owned();
        recorder.lists("captured exchange", [id.as_str()]);
        let answer = replay.send(&id, &vector["request"]).await;
        let difference = difference(&vector["response"], &answer, &mut replay.ids);
        let known = DIFFERENT.iter().find(|(known, _)| *known == id);
        match (known, difference) {
            (None, None) => recorder.shows("captured exchange", &id, "replayed"),
            (Some((_, reason)), Some(_)) => {
                seen.insert(id.clone(), ());
                recorder.refuses("captured exchange", &id, reason);
            }
            (None, Some(difference)) => strange.push(format!("{id}: {difference}")),
            (Some(_), None) => strange.push(format!("{id}: is alike by now, take it off the list")),
        }
    }
    assert_eq!(lines.len(), 149);
    assert!(strange.is_empty(), "{}", strange.join("\n"));
    assert_eq!(seen.len(), DIFFERENT.len(), "the list names what there is not");
}
