//! A server in this process, reached over HTTP and over a pipe that speaks ACP.

use std::path::PathBuf;
use std::time::Duration;

use gander_domain::{Entry, Event, Outcome, Principal, Seq, SessionId, SessionView, Settings};
use gander_store::{DeltaForm, SessionQuery, sessions_of};
use gander_testkit::harness::{Client, policy_auto};
use reqwest::Method;
use serde_json::{Value, json};

use crate::served::pipe;

/// Long enough for a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(60);

crate::served::test_server!();

/// Why a test sets the policy `auto`.
pub const UNATTENDED: &str = "agents that work side by side for a long time are left alone";

impl TestServer {
    /// With the policy `auto`.
    pub async fn unattended() -> Self {
        Self::with(&[policy_auto(UNATTENDED)]).await
    }

    /// The owner's folder of agents.
    pub fn agents(&self) -> PathBuf {
        self.app.config().agents_folder()
    }

    /// An editor that has introduced itself.
    pub async fn editor(&self) -> Client {
        pipe::client(&self.app, Principal::owner()).await
    }

    pub async fn send(&self, method: Method, path: &str, body: Option<&Value>) -> (u16, Value) {
        let request = self.client.request(method, self.url(path));
        let request = request.bearer_auth(&self.token).header("A2A-Version", "1.0");
        let request = match body {
            Some(body) => request.json(body),
            None => request,
        };
        let response = request.send().await.unwrap();
        let status = response.status().as_u16();
        let text = response.text().await.unwrap();
        (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
    }

    pub async fn get(&self, path: &str) -> Value {
        let (status, value) = self.send(Method::GET, path, None).await;
        assert_eq!(status, 200, "{path}: {value}");
        value
    }

    pub async fn post(&self, path: &str, body: Value) -> Value {
        let (status, value) = self.send(Method::POST, path, Some(&body)).await;
        assert_eq!(status, 200, "{path}: {value}");
        value
    }

    pub async fn view(&self, session: &str) -> SessionView {
        self.app.services().hub.session_view(session.parse().unwrap()).await.unwrap()
    }

    /// How a session's first run ended, once it has.
    pub async fn ended(&self, session: SessionId) -> Outcome {
        let mut follower = self.app.services().hub.follow_session(session, Seq::ZERO, DeltaForm::Joined);
        let ended = async {
            loop {
                let batch = follower.next_batch().await.unwrap().unwrap();
                let outcome = |entry: &Entry| {
                    if let Event::RunEnded { outcome } = &entry.event { Some(outcome.clone()) } else { None }
                };
                if let Some(outcome) = batch.iter().find_map(outcome) {
                    return outcome;
                }
            }
        };
        tokio::time::timeout(PATIENCE, ended).await.unwrap()
    }

    pub async fn settings(&self, session: &str) -> Settings {
        self.view(session).await.settings
    }
}

/// A prompt that makes the demo model say these words.
pub fn says(text: &str) -> String {
    format!(r#"[[script:[[{{"text":"{text}"}}]]]]"#)
}

/// A run over ACP-REST, to its end.
pub async fn run(server: &TestServer, agent: &str, session: Option<&str>, text: &str) -> Value {
    let part = json!({ "content_type": "text/plain", "content": text });
    let mut body = json!({ "agent_name": agent, "input": [{ "role": "user", "parts": [part] }], "mode": "sync" });
    if let Some(session) = session {
        body["session_id"] = json!(session);
    }
    server.post("/runs", body).await
}

/// A prompt that makes the demo model play these calls.
pub fn plays(calls: &Value) -> String {
    format!("[[script:{calls}]]")
}

/// A prompt that makes the demo model hand out these tasks.
pub fn delegates(tasks: Value) -> String {
    plays(&json!([[{ "tool": "delegate", "args": { "tasks": tasks } }], [{ "results": true }]]))
}

/// The sub-agents of a session.
pub async fn children(server: &TestServer, parent: &str) -> Vec<SessionId> {
    let store = server.app.services().hub.store();
    let query = SessionQuery { limit: 50, ..sessions_of(Principal::owner()) };
    let cards = store.sessions(query).await.unwrap().sessions;
    let parent: SessionId = parent.parse().unwrap();
    cards.into_iter().filter(|card| card.parent == Some(parent)).map(|card| card.session).collect()
}

/// Until all of these lie there.
pub async fn wait_for(folder: &std::path::Path, names: &[&str]) {
    let patience = tokio::time::Instant::now() + PATIENCE;
    while !names.iter().all(|name| folder.join(name).exists()) {
        assert!(tokio::time::Instant::now() < patience, "only these came: {:?}", listed(folder));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Cancels a prompt that three sub-agents work at: it ends so, and so do they.
pub async fn cancelled_with_three(server: &TestServer, editor: &mut Client, session: &str, prompt: u64) {
    editor.notify("session/cancel", json!({ "sessionId": session })).await.unwrap();
    assert_eq!(editor.answer_to(prompt).await.unwrap()["stopReason"], "cancelled");
    let children = children(server, session).await;
    assert_eq!(children.len(), 3);
    for child in children {
        assert_eq!(server.ended(child).await, Outcome::Cancelled);
    }
}

/// What lies in a folder, by name.
pub fn listed(folder: &std::path::Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}
