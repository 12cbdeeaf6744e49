//! A server with agents of known behaviour, a client for it, and a record of everything that it answers.

use std::sync::Mutex;

use gander_testkit::conformance::ConformanceRecorder;
use serde_json::{Value, json};

use crate::acp_rest::recorder;
use crate::served::Heard;
pub use crate::served::answer::{Answer, new, said};

crate::served::test_server!(crate::served::CONFORMANCE_AGENTS, recorded());

impl TestServer {
    /// Asks until the run is in this state.
    pub async fn until(&self, run: &Value, status: &str) -> Value {
        let path = Self::path(run, "");
        loop {
            let now = self.get(&path).await.ok();
            if now["status"] == status {
                return now;
            }
            tokio::task::yield_now().await;
        }
    }

    /// The path of a run.
    pub fn path(run: &Value, more: &str) -> String {
        format!("/runs/{}{more}", run["run_id"].as_str().unwrap())
    }
}

fn recorded() -> Heard {
    let recorder = Mutex::new(ConformanceRecorder::for_protocol("acp_rest"));
    Box::new(move |asked, answer| heard(&mut recorder.lock().unwrap(), asked, answer))
}

fn heard(recorder: &mut ConformanceRecorder, asked: &reqwest::Request, answer: &Answer) {
    // What a dialect says in other words is not what the protocol consists of: its tests note it.
    if asked.url().query().is_some_and(|query| query.contains("dialect=")) {
        return;
    }
    recorder::heard(recorder, asked.method().as_str(), asked.url().path(), answer.status, &answer.text);
    let body = asked.body().and_then(|body| serde_json::from_slice::<Value>(body.as_bytes()?).ok());
    if let Some(mode) = body.as_ref().and_then(|body| body["mode"].as_str()).filter(|_| answer.status < 300) {
        recorder.shows("mode", mode, "HTTP");
    }
}

pub fn resume(text: &str, mode: &str) -> Value {
    let message = json!({ "role": "user", "parts": [{ "content": text }], "created_at": null });
    json!({ "mode": mode, "await_resume": { "type": "message", "message": message } })
}
