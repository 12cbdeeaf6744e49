//! Listens to one ACP connection and notes which methods, updates, stop reasons and errors go by.

use std::collections::HashMap;

use serde_json::Value;

use super::ConformanceRecorder;

/// What goes by on one connection.
#[derive(Clone, Debug)]
pub struct Listener {
    how: &'static str,
    recorder: ConformanceRecorder,
    /// Requests of the client without an answer, by id.
    asked: HashMap<String, String>,
    cancelled: bool,
    took_back: bool,
}

impl Listener {
    /// On a connection of this kind, such as `stdio`.
    pub fn over(how: &'static str) -> Self {
        let recorder = ConformanceRecorder::for_protocol("acp");
        Self { how, recorder, asked: HashMap::new(), cancelled: false, took_back: false }
    }

    /// The client said this.
    pub fn sent(&mut self, message: &Value) {
        match (message["method"].as_str(), message.get("id")) {
            (Some(method), Some(id)) => drop(self.asked.insert(id.to_string(), method.to_owned())),
            (Some("session/cancel"), None) => self.cancelled = true,
            (Some("$/cancel_request"), None) => self.took_back = true,
            (Some(_) | None, _) => {}
        }
    }

    /// The agent said this.
    pub fn heard(&mut self, message: &Value) {
        if let Some(method) = message["method"].as_str() {
            self.shows("agent to client", method);
            if let Some(kind) = message["params"]["update"]["sessionUpdate"].as_str() {
                self.shows("update", kind);
            }
            self.stopped(&message["params"]["update"]["stopReason"]);
        } else if let Some(code) = message["error"]["code"].as_i64() {
            self.failed(code);
        } else if let Some(method) = self.asked.remove(&message["id"].to_string()) {
            self.answered(&method, &message["result"]);
        }
    }

    /// Only version 2 knows of versions it cannot speak, and says so before one is chosen.
    fn failed(&mut self, code: i64) {
        if code == -32022 {
            self.recorder = ConformanceRecorder::for_protocol("acp v2");
        }
        self.shows("error", &code.to_string());
    }

    fn answered(&mut self, method: &str, result: &Value) {
        if method == "initialize" && result["protocolVersion"] == 2 {
            self.recorder = ConformanceRecorder::for_protocol("acp v2");
        }
        self.shows("client to agent", method);
        self.stopped(&result["stopReason"]);
    }

    /// A cancel has no answer of its own: the turn's end is what it brings about.
    fn stopped(&mut self, reason: &Value) {
        let Some(reason) = reason.as_str() else { return };
        self.shows("stop reason", reason);
        if reason == "cancelled" && std::mem::take(&mut self.cancelled) {
            self.shows("client to agent", "session/cancel");
        }
        if reason == "cancelled" && std::mem::take(&mut self.took_back) {
            self.shows("client to agent", "$/cancel_request");
        }
    }

    fn shows(&mut self, group: &str, item: &str) {
        self.recorder.shows(group, item, self.how);
    }
}
