//! A server at default settings with the demo model, and requests to it in the words of each protocol.

use gander_testkit::harness::script;
use serde_json::{Value, json};

use crate::served::answer::{Answer, new};

crate::served::test_server!(crate::served::CONFORMANCE_AGENTS);

/// An agent that asks whether it may run a command, and then says that it is done.
pub fn asking() -> String {
    script(&[json!([{ "tool": "shell", "args": { "command": "echo x >> ran" } }]), json!([{ "text": "done" }])])
}

/// The same, but after the answer it speaks for a long time.
pub fn asking_then_slow() -> String {
    let slow = json!([{ "text": "~", "repeat": 2000, "delay_ms": 10 }]);
    script(&[json!([{ "tool": "shell", "args": { "command": "echo x >> ran" } }]), slow])
}

/// A resumption of an ACP-REST run.
pub fn resume(text: &str) -> Value {
    json!({ "mode": "sync", "await_resume": { "type": "message", "message": message(text) } })
}

/// A message of ACP-REST.
pub fn message(text: &str) -> Value {
    json!({ "role": "user", "parts": [{ "content": text }] })
}

/// A message of A2A.
pub fn a2a(id: &str, text: &str) -> Value {
    json!({ "messageId": id, "role": "ROLE_USER", "parts": [{ "text": text }] })
}

/// A message of A2A to a task.
pub fn to_task(task: &str, id: &str, text: &str) -> Value {
    let mut message = a2a(id, text);
    message["taskId"] = json!(task);
    message
}

/// A goose user message.
pub fn goose(text: &str) -> Value {
    json!({ "role": "user", "created": 1, "content": [{ "type": "text", "text": text }] })
}

pub const VERSION: (&str, &str) = ("A2A-Version", "1.0");
pub const JSON: (&str, &str) = ("content-type", "application/json");

impl TestServer {
    /// An ACP-REST run of the demo agent, until it ends or awaits.
    pub async fn prompt(&self, text: &str) -> Value {
        self.post("/runs", &new("gander", text, "sync")).await.ok()
    }

    /// A JSON-RPC call of A2A 1.0.
    pub async fn rpc(&self, method: &str, params: Value) -> Value {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        self.post_with("/a2a/gander", &body, &[VERSION]).await.json()
    }

    /// The result of an A2A `SendMessage`, or its error's code.
    pub async fn send(&self, message: Value) -> Result<Value, i64> {
        let params = json!({ "message": message, "configuration": { "returnImmediately": true } });
        let mut answer = self.rpc("SendMessage", params).await;
        match answer["error"]["code"].as_i64() {
            Some(code) => Err(code),
            None => Ok(answer["result"]["task"].take()),
        }
    }

    /// The task once it is in this state.
    pub async fn task(&self, id: &str, state: &str) -> Value {
        loop {
            let task = self.rpc("GetTask", json!({ "id": id })).await["result"].take();
            if task["status"]["state"] == state {
                return task;
            }
            let ended = ["TASK_STATE_COMPLETED", "TASK_STATE_FAILED", "TASK_STATE_CANCELED"];
            assert!(!ended.contains(&task["status"]["state"].as_str().unwrap()), "not {state}: {task}");
            tokio::task::yield_now().await;
        }
    }

    /// A goose session.
    pub async fn goose_session(&self) -> String {
        let made = self.goose("/agent/start", &json!({})).await.ok();
        made["id"].as_str().unwrap().to_owned()
    }

    /// A POST with JSON, as goose's clients send it.
    pub async fn goose(&self, path: &str, body: &Value) -> Answer {
        self.post_with(path, body, &[JSON]).await
    }

    /// Any other verb with JSON.
    pub async fn put(&self, path: &str, body: &Value) -> Answer {
        let request = self.client.put(self.url(path)).bearer_auth(&self.token).header(JSON.0, JSON.1);
        Answer::of(request.body(body.to_string()).send().await.unwrap()).await
    }

    pub async fn delete(&self, path: &str) -> Answer {
        let request = self.client.delete(self.url(path)).bearer_auth(&self.token);
        Answer::of(request.send().await.unwrap()).await
    }

    /// What users said in a session, as goose's export tells it.
    pub async fn user_texts(&self, session: &str) -> Vec<String> {
        let export = self.get(&format!("/sessions/{session}/export")).await.ok();
        let export: Value = serde_json::from_str(export.as_str().unwrap()).unwrap();
        let messages = export["conversation"].as_array().unwrap().iter().filter(|message| message["role"] == "user");
        let texts = messages.flat_map(|message| message["content"].as_array().unwrap().clone());
        texts.filter_map(|content| content["text"].as_str().map(str::to_owned)).collect()
    }
}

/// The id of a value.
pub fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}")).to_owned()
}
