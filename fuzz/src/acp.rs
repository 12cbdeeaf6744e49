//! Requests of an ACP client, in both versions: a connection with an open session takes in lines.

use std::sync::{Arc, OnceLock};

use gander_domain::{AgentManifest, Mode, ModeCategory, ModelChoice, Principal, Roster, ServiceError, SessionCatalog};
use gander_wire::acp::{AgentProfile, Connection, Intent, IntentTicket, Presence};
use serde_json::{Value, json};

use crate::sample_session::{CountingIds, session_id, session_log, session_view};

/// The first id that the connection makes.
const FIRST_ID: u128 = 9001;

/// Lines of a client of version 1.
pub fn fuzz_acp_v1(data: &[u8]) {
    let hello = json!({ "protocolVersion": 1, "clientCapabilities": {
        "fs": { "readTextFile": true, "writeTextFile": true }, "terminal": true,
        "elicitation": { "form": {}, "url": {} }, "session": { "notices": {}, "compaction": {} } } });
    AcpClient::introduced(&hello).handle_lines(data);
}

/// Lines of a client of the draft of version 2.
pub fn fuzz_acp_v2(data: &[u8]) {
    let hello = json!({ "protocolVersion": 2, "info": { "name": "fuzz", "version": "0" }, "capabilities": {},
        "clientInfo": { "name": "fuzz", "version": "0" }, "clientCapabilities": {} });
    AcpClient::introduced(&hello).handle_lines(data);
}

struct AcpClient {
    connection: Connection,
    ids: CountingIds,
}

impl AcpClient {
    /// A client that said this and has a session in which a question is open.
    fn introduced(hello: &Value) -> Self {
        let profile = AgentProfile {
            name: "gander".into(),
            version: "0".into(),
            image: true,
            v2: true,
            ..AgentProfile::default()
        };
        let connection = Connection::new(profile, Principal::owner());
        let mut client = Self { connection, ids: CountingIds(FIRST_ID - 1) };
        client.call("first", "initialize", hello);
        client.call("second", "session/new", &json!({ "cwd": "/workspace", "mcpServers": [] }));
        client.carry_out_intents();
        client.connection.handle_entries(session_id(), session_log());
        client.connection.outbox().clear();
        client
    }

    fn call(&mut self, id: &str, method: &str, params: &Value) {
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.connection.handle_message(message.to_string().as_bytes(), &mut self.ids);
    }

    /// Takes in lines; what the client wants is granted or refused in turn. It must still answer in the end.
    fn handle_lines(mut self, data: &[u8]) {
        for line in data.split(|byte| *byte == b'\n').take(16) {
            self.connection.handle_message(line, &mut self.ids);
            self.carry_out_intents();
            self.check_written();
        }
        self.call("still there?", "no/such", &json!({}));
        let written = self.check_written();
        let answered = |line: &&Value| line["id"] == "still there?" && line.get("method").is_none();
        assert_eq!(written.iter().filter(answered).count(), 1, "it does not answer any more: {written:?}");
        self.connection.handle_disconnect();
        while self.connection.poll_intent().is_some() {}
    }

    fn check_written(&mut self) -> Vec<Value> {
        let out = self.connection.outbox();
        let lines: Vec<Value> = out.messages().map(|(_, line)| serde_json::from_slice(line).unwrap()).collect();
        out.clear();
        lines
    }

    /// A server that opens every session as the one it has, accepts no command, and has nothing else.
    fn carry_out_intents(&mut self) {
        while let Some(intent) = self.connection.poll_intent() {
            match intent {
                Intent::NewSession { ticket, .. }
                | Intent::FirstSession { ticket }
                | Intent::LoadSession { ticket, .. }
                | Intent::ResumeSession { ticket, .. }
                | Intent::Attach { ticket, .. }
                | Intent::ForkSession { ticket, .. } => {
                    self.connection.handle_opened(ticket, session_view(), catalog())
                }
                Intent::ListSessions { ticket, .. } => self.connection.handle_listed(ticket, Vec::new(), None),
                Intent::SessionStatus { ticket, .. } => self.connection.handle_status(ticket, Presence::Open),
                Intent::ArchiveSession { ticket, .. }
                | Intent::CloseSession { ticket, .. }
                | Intent::DeleteSession { ticket, .. } => self.connection.handle_done(ticket),
                Intent::Command { ticket: Some(ticket), .. } | Intent::Extension { ticket, .. } => self.refuse(ticket),
                Intent::Command { ticket: None, .. }
                | Intent::Withdrew { .. }
                | Intent::HostReply { .. }
                | Intent::Detach { .. } => {}
            }
        }
    }

    fn refuse(&mut self, ticket: IntentTicket) {
        self.connection.handle_refusal(ticket, &ServiceError::Unavailable("closed".to_owned()));
    }
}

fn catalog() -> Arc<SessionCatalog> {
    static CATALOG: OnceLock<Arc<SessionCatalog>> = OnceLock::new();
    Arc::clone(CATALOG.get_or_init(|| {
        let mode = Mode {
            id: "planner".into(),
            name: "Planner".into(),
            description: "plans".into(),
            category: ModeCategory::default(),
        };
        let agent = AgentManifest { modes: vec![mode], ..AgentManifest::new("gander", "Gander", "") };
        Arc::new(SessionCatalog {
            roster: Arc::new(Roster::new(vec![Arc::new(agent)])),
            models: vec![ModelChoice { id: "demo/scripted".into(), name: "scripted".into() }],
            default_model: Some("demo/scripted".to_owned()),
            efforts: Vec::new(),
            agent_models: Default::default(),
            agent_options: Default::default(),
            policy: None,
        })
    }))
}
