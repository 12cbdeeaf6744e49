//! What the Agent Client Protocol consists of, from the schema's own types, and what of it is refused and why.

#![allow(clippy::unwrap_used)]

use std::path::Path;

use crate::common::{TestConnection, code, profile};
use agent_client_protocol_schema::{v1, v2};
use gander_domain::Principal;
use gander_testkit::conformance::ConformanceRecorder;
use gander_testkit::vectors::scenarios;
use gander_wire::acp::{AgentProfile, Connection};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

const UNUSED: &str = "nothing in a session's log would be told by it";

/// Methods of a client that no door of ours carries out.
const UNSUPPORTED: [(&str, &str); 5] = [
    ("providers/list", "models are chosen by a config option"),
    ("providers/set", "a client cannot change the server's providers"),
    ("providers/disable", "a client cannot change the server's providers"),
    ("mcp/message", "MCP servers behind the client itself are not used"),
    ("auth/status", "the transport decides who comes in"),
];

/// What an agent may send and this one never does, in either version.
const UNSENT: [&str; 2] = ["mcp/message", "auth/status_update"];

/// Updates that are never sent.
const UNTOLD: [&str; 5] =
    ["plan_removed", "compaction_summary_chunk", "subagent_update", "session_message", "session_message_chunk"];
const UNTOLD_V1: [&str; 1] = ["plan_update"];
const UNTOLD_V2: [&str; 3] = ["tool_call_content_chunk", "terminal_update", "terminal_output_chunk"];

#[test]
fn version_1_is_listed() {
    let mut recorder = ConformanceRecorder::for_protocol("acp");
    recorder.lists("client to agent", names(&v1::AGENT_METHOD_NAMES));
    recorder.lists("client to agent", names(&v1::PROTOCOL_LEVEL_METHOD_NAMES));
    recorder.lists("agent to client", names(&v1::CLIENT_METHOD_NAMES));
    let updates = variants::<v1::SessionUpdate>(&json!({ "sessionUpdate": "?" }));
    assert!(updates.contains(&"usage_update".to_owned()), "{updates:?}");
    recorder.lists("update", updates);
    recorder.lists("stop reason", variants::<v1::StopReason>(&json!("?")));
    let known = codes(|code| !matches!(v1::ErrorCode::from(code), v1::ErrorCode::Other(_)));
    assert_eq!(known.len(), 8);
    recorder.lists("error", known);
}

#[test]
fn version_2_is_listed() {
    let mut recorder = ConformanceRecorder::for_protocol("acp v2");
    recorder.lists("client to agent", names(&v2::AGENT_METHOD_NAMES));
    recorder.lists("client to agent", names(&v2::PROTOCOL_LEVEL_METHOD_NAMES));
    recorder.lists("agent to client", names(&v2::CLIENT_METHOD_NAMES));
    let known = codes(|code| !matches!(v2::ErrorCode::from(code), v2::ErrorCode::Other(_)));
    recorder.lists("error", known);
    // Its enums are open, so no refusal lists their names; but none of these may be an unknown one.
    for kind in V2_UPDATES {
        let read = serde_json::from_value::<v2::SessionUpdate>(json!({ "sessionUpdate": kind }));
        assert!(!matches!(read, Ok(v2::SessionUpdate::Other(_))), "{kind}");
    }
    recorder.lists("update", V2_UPDATES);
    recorder.lists("stop reason", ["end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled", "error"]);
}

#[test]
fn what_is_not_supported_is_refused_as_unknown() {
    for (mut test_connection, mut recorder) in test_connections() {
        for (method, reason) in UNSUPPORTED {
            test_connection.call(method, json!({}));
            assert_eq!(code(&test_connection.line()), -32601, "{method}");
            recorder.refuses("client to agent", method, reason);
        }
    }
}

#[test]
fn what_the_log_cannot_feed_is_never_told() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors");
    for scenario in scenarios(&root).unwrap() {
        for (file, own) in [("acp.jsonl", &UNTOLD_V1[..]), ("acp_v2.jsonl", &UNTOLD_V2[..])] {
            let text = std::fs::read_to_string(root.join(&scenario.name).join(file)).unwrap();
            for kind in UNTOLD.iter().chain(own) {
                assert!(!text.contains(&format!("\"sessionUpdate\":\"{kind}\"")), "{} {kind}", scenario.name);
            }
            assert!(UNSENT.iter().all(|method| !text.contains(&format!("\"method\":\"{method}\""))));
        }
    }
    for (protocol, own) in [("acp", &UNTOLD_V1[..]), ("acp v2", &UNTOLD_V2[..])] {
        let mut recorder = ConformanceRecorder::for_protocol(protocol);
        UNTOLD.iter().chain(own).for_each(|kind| recorder.refuses("update", kind, UNUSED));
        UNSENT.iter().for_each(|method| recorder.refuses("agent to client", method, "never sent"));
    }
}

/// A client of each version that has introduced itself.
fn test_connections() -> [(TestConnection, ConformanceRecorder); 2] {
    let mut second = TestConnection::fresh();
    second.connection = Connection::new(AgentProfile { v2: true, ..profile() }, Principal::owner());
    second.call("initialize", json!({ "protocolVersion": 2, "info": { "name": "c", "version": "1" } }));
    second.lines();
    [
        (TestConnection::ready(), ConformanceRecorder::for_protocol("acp")),
        (second, ConformanceRecorder::for_protocol("acp v2")),
    ]
}

/// The values of a table of names.
fn names(table: &impl Serialize) -> Vec<String> {
    let table = serde_json::to_value(table).unwrap();
    table.as_object().unwrap().values().map(|name| name.as_str().unwrap().to_owned()).collect()
}

/// The variants of an enum, as its own refusal of an unknown one names them.
fn variants<T: DeserializeOwned>(unknown: &Value) -> Vec<String> {
    let error = serde_json::from_value::<T>(unknown.clone()).err().unwrap().to_string();
    let named: Vec<String> = error.split('`').skip(1).step_by(2).skip(1).map(str::to_owned).collect();
    assert!(named.len() > 1, "{error}");
    named
}

fn codes(known: impl Fn(i32) -> bool) -> Vec<String> {
    (-33_000..0).filter(|code| known(*code)).map(|code| code.to_string()).collect()
}

const V2_UPDATES: [&str; 23] = [
    "user_message_chunk",
    "user_message",
    "agent_message_chunk",
    "agent_message",
    "agent_thought_chunk",
    "agent_thought",
    "state_update",
    "tool_call_content_chunk",
    "tool_call_update",
    "terminal_update",
    "terminal_output_chunk",
    "plan_update",
    "plan_removed",
    "available_commands_update",
    "config_option_update",
    "session_info_update",
    "usage_update",
    "notice",
    "compaction_update",
    "compaction_summary_chunk",
    "subagent_update",
    "session_message",
    "session_message_chunk",
];
