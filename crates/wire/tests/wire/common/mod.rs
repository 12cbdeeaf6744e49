//! A connection on a string: what tests of the ACP door share.

#![allow(dead_code, clippy::unwrap_used, unreachable_pub)]

use std::sync::Arc;

use gander_domain::{
    Accepted, AgentManifest, Effort, Entry, Event, IfBusy, Mode, ModelChoice, Principal, Report, Roster, RunId,
    SessionCatalog, SessionId, SessionView, ToolGate,
};
use gander_testkit::conformance::acp::Listener;
use gander_testkit::{CountingIds, SessionScript, build};
use gander_wire::acp::{AgentProfile, Connection, Intent};
use serde_json::{Value, json};

/// The first run id that a door makes.
pub const FIRST_RUN: u128 = 9001;

/// One client's connection, already introduced.
pub struct TestConnection {
    pub connection: Connection,
    pub ids: CountingIds,
    calls: i64,
    listener: Listener,
}

pub fn profile() -> AgentProfile {
    AgentProfile {
        name: "gander".to_owned(),
        title: "Gander".to_owned(),
        version: "0.0.0".to_owned(),
        image: true,
        ..AgentProfile::default()
    }
}

pub fn catalog() -> Arc<SessionCatalog> {
    let mode = |id: &str, name: &str| Mode {
        id: id.into(),
        name: name.into(),
        description: format!("{name} mode"),
        category: gander_domain::ModeCategory::default(),
    };
    let modes = vec![mode("assistant", "Assistant"), mode("planner", "Planner")];
    let agent = AgentManifest { modes, ..AgentManifest::new("gander", "Gander", "") };
    let model = |id: &str| ModelChoice { id: id.into(), name: id.into() };
    Arc::new(SessionCatalog {
        roster: Arc::new(Roster::new(vec![Arc::new(agent)])),
        models: vec![model("demo/scripted"), model("demo/other")],
        default_model: Some("demo/scripted".to_owned()),
        efforts: vec![Effort::Low, Effort::High],
        agent_models: Default::default(),
        agent_options: Default::default(),
        policy: None,
    })
}

pub fn hello() -> Value {
    json!({
        "protocolVersion": 1,
        "clientCapabilities": {
            "fs": { "readTextFile": true, "writeTextFile": true }, "terminal": true,
            "elicitation": { "form": {}, "url": {} }, "session": { "notices": {}, "compaction": {} },
        },
    })
}

/// The view after these entries.
pub fn view(log: &[Entry]) -> SessionView {
    SessionView::replay(log).unwrap()
}

impl TestConnection {
    /// A connection on which nobody has said anything.
    pub fn fresh() -> Self {
        let connection = Connection::new(profile(), Principal::owner());
        Self { connection, ids: CountingIds::after(FIRST_RUN - 1), calls: 0, listener: Listener::over("in memory") }
    }

    /// A connection after `initialize`, of a client that can do everything.
    pub fn ready() -> Self {
        let mut test_connection = Self::fresh();
        test_connection.call("initialize", hello());
        test_connection.lines();
        test_connection
    }

    /// A connection with this session open, as a client that made it sees it.
    pub fn open(log: &[Entry]) -> Self {
        let mut test_connection = Self::ready();
        test_connection.call("session/new", json!({ "cwd": "/workspace", "mcpServers": [] }));
        let Some(Intent::NewSession { ticket, .. }) = test_connection.connection.poll_intent() else {
            panic!("no session wanted")
        };
        test_connection.connection.handle_opened(ticket, view(log), catalog());
        test_connection.lines();
        test_connection
    }

    /// A connection of a client that offers nothing.
    pub fn plain(log: &[Entry]) -> Self {
        let mut test_connection = Self::fresh();
        test_connection.call("initialize", json!({ "protocolVersion": 1 }));
        test_connection.call("session/new", json!({}));
        let Intent::NewSession { ticket, .. } = test_connection.intent() else { panic!("no session") };
        test_connection.connection.handle_opened(ticket, view(log), catalog());
        test_connection.lines();
        test_connection
    }

    /// A connection that asked to load this session; nothing is fed yet.
    pub fn loading(log: &[Entry]) -> Self {
        let mut test_connection = Self::ready();
        test_connection
            .call("session/load", json!({ "sessionId": log_session(log), "cwd": "/workspace", "mcpServers": [] }));
        let Some(Intent::LoadSession { ticket, .. }) = test_connection.connection.poll_intent() else {
            panic!("no load wanted")
        };
        test_connection.connection.handle_opened(ticket, view(log), catalog());
        test_connection
    }

    /// Sends a request and returns its id.
    pub fn call(&mut self, method: &str, params: Value) -> i64 {
        self.calls += 1;
        self.send(&json!({ "jsonrpc": "2.0", "id": self.calls, "method": method, "params": params }));
        self.calls
    }

    /// Sends a message.
    pub fn send(&mut self, message: &Value) {
        self.listener.sent(message);
        self.raw(message.to_string().as_bytes());
    }

    /// Sends bytes.
    pub fn raw(&mut self, message: &[u8]) {
        self.connection.handle_message(message, &mut self.ids);
    }

    /// Sends a prompt that becomes this run, and has it accepted.
    pub fn prompt(&mut self, session: SessionId, run: RunId) -> i64 {
        self.ids = CountingIds::after(run.uuid().as_u128() - 1);
        let prompt = json!([{ "type": "text", "text": "hello" }]);
        let id = self.call("session/prompt", json!({ "sessionId": session, "prompt": prompt }));
        match self.connection.poll_intent() {
            Some(Intent::Command { ticket: Some(ticket), .. }) => {
                self.connection.handle_accepted(ticket, Accepted::Started(run));
            }
            other => panic!("no command wanted: {other:?}"),
        }
        id
    }

    /// Sends every prompt of the ACP door, and is fed everything as it happens.
    pub fn live(&mut self, log: &[Entry]) {
        for entry in log {
            if matches!(&entry.event, Event::RunStarted { origin } if origin.door == "acp") {
                self.prompt(self.session(), entry.run.unwrap());
            }
            self.feed(std::slice::from_ref(entry));
        }
    }

    /// What was written since the last time.
    pub fn lines(&mut self) -> Vec<Value> {
        self.texts().iter().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// What was written since the last time, as it was.
    pub fn texts(&mut self) -> Vec<String> {
        let out = self.connection.outbox();
        let lines: Vec<String> = out.messages().map(|(_, line)| String::from_utf8(line.to_vec()).unwrap()).collect();
        out.clear();
        let heard = lines.iter().filter_map(|line| serde_json::from_str(line).ok());
        heard.for_each(|line| self.listener.heard(&line));
        lines
    }

    /// The one line that was written since the last time.
    pub fn line(&mut self) -> Value {
        let mut lines = self.lines();
        assert_eq!(lines.len(), 1, "{lines:?}");
        lines.remove(0)
    }

    /// What the client wants next.
    pub fn intent(&mut self) -> Intent {
        self.connection.poll_intent().expect("an intent")
    }

    /// Feeds entries.
    pub fn feed(&mut self, log: &[Entry]) {
        self.connection.handle_entries(log_session(log), log);
    }

    pub fn session(&self) -> SessionId {
        build::session(1)
    }
}

/// Every test's session is number one.
fn log_session(_: &[Entry]) -> SessionId {
    build::session(1)
}

/// The code of an error line.
pub fn code(line: &Value) -> i64 {
    line["error"]["code"].as_i64().unwrap_or_else(|| panic!("no error: {line}"))
}

/// Updates as a client holds them: adjacent text of one message is one, requests and answers left out.
pub fn items(lines: &[Value]) -> Vec<Value> {
    let mut items: Vec<Value> = Vec::new();
    for line in lines.iter().filter(|line| line["method"] == "session/update") {
        let update = &line["params"]["update"];
        if update["sessionUpdate"] == "available_commands_update" {
            continue; // of the connection, not of the log
        }
        let text = update["content"]["text"].as_str();
        let same = |last: &&mut Value| {
            last["sessionUpdate"] == update["sessionUpdate"]
                && last["messageId"] == update["messageId"]
                && last["content"]["type"] == "text"
        };
        match (text.filter(|_| update["messageId"].is_string()), items.last_mut().filter(same)) {
            (Some(text), Some(last)) => {
                let joined = last["content"]["text"].as_str().unwrap().to_owned() + text;
                last["content"]["text"] = json!(joined);
            }
            _ => items.push(update.clone()),
        }
    }
    items
}

/// A session whose run asks whether a tool may run.
pub fn asking() -> SessionScript {
    let mut script = SessionScript::begin();
    script.prompt(build::run(5), IfBusy::Refuse).unwrap();
    let call = build::shell(build::call_id(6));
    let gate = ToolGate::Ask(build::permission(build::question_id(7), call.id));
    script.report(build::run(5), Report::ToolWanted { call, gate });
    script
}

pub fn question() -> String {
    build::question_id(7).to_string()
}

/// The methods, results and errors of these lines, in short.
pub fn short(lines: &[Value]) -> Vec<String> {
    let short = |line: &Value| match (line["method"].as_str(), line.get("result")) {
        (Some("session/update"), _) => line["params"]["update"]["sessionUpdate"].as_str().unwrap().to_owned(),
        (Some(method), _) => method.to_owned(),
        (None, Some(result)) => format!("result {}", result["stopReason"].as_str().unwrap_or("other")),
        (None, None) => format!("error {}", code(line)),
    };
    lines.iter().map(short).collect()
}
