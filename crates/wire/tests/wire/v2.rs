//! Version 2: what its clients are told of each scenario, and that the schema's types agree.

#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm)]

use std::path::Path;

use crate::common::{TestConnection, catalog, profile, view};
use agent_client_protocol_schema::v2 as schema;
use gander_domain::{Accepted, Command, Delta, DeltaKind, Entry, IfBusy, MessageId, Principal, Report};
use gander_testkit::vectors::{Scenario, scenarios};
use gander_testkit::{SessionScript, build};
use gander_wire::acp::{AgentProfile, Connection, Dialect, Intent};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

fn all() -> Vec<Scenario> {
    scenarios(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors")).unwrap()
}

fn hello() -> Value {
    json!({
        "protocolVersion": 2, "info": { "name": "c", "version": "1" },
        "capabilities": { "elicitation": { "form": {}, "url": {} } },
    })
}

fn ready() -> TestConnection {
    let mut test_connection = TestConnection::fresh();
    test_connection.connection = Connection::new(AgentProfile { v2: true, ..profile() }, Principal::owner());
    test_connection.call("initialize", hello());
    test_connection
}

/// What a client is told that made the session and sends its prompts.
fn live(log: &[Entry]) -> Vec<String> {
    let mut test_connection = ready();
    test_connection.call("session/new", json!({ "cwd": "/workspace" }));
    let Intent::NewSession { ticket, .. } = test_connection.intent() else { panic!("no session") };
    test_connection.connection.handle_opened(ticket, view(&log[..1]), catalog());
    test_connection.live(&log[1..]);
    test_connection.texts()
}

/// What a client is told that comes later and wants everything.
fn replayed(log: &[Entry]) -> Vec<String> {
    let mut test_connection = ready();
    test_connection.lines();
    let params = json!({ "sessionId": build::session(1), "cwd": "/workspace", "replayFrom": { "type": "start" } });
    test_connection.call("session/resume", params);
    let Intent::LoadSession { ticket, .. } = test_connection.intent() else { panic!("no replay") };
    test_connection.connection.handle_opened(ticket, view(log), catalog());
    test_connection.feed(log);
    test_connection.texts()
}

#[test]
fn every_scenario_is_told_as_expected_and_as_the_schema_says() {
    for scenario in all() {
        let (live, replayed) = (live(&scenario.log), replayed(&scenario.log));
        live.iter().chain(&replayed).for_each(|line| typed(line));
        scenario.check("acp_v2.jsonl", &live).unwrap();
        scenario.check("acp_v2_replay.jsonl", &replayed).unwrap();
    }
}

fn typed(line: &str) {
    let value: Value = serde_json::from_str(line).unwrap();
    let part = |key: &str| value[key].clone();
    match (value["method"].as_str(), value.get("result"), value.get("error")) {
        (Some("session/update"), ..) => same::<schema::UpdateSessionNotification>(part("params")),
        (Some("session/request_permission"), ..) => same::<schema::RequestPermissionRequest>(part("params")),
        (Some("elicitation/create"), ..) => same::<schema::CreateElicitationRequest>(part("params")),
        (Some("elicitation/complete"), ..) => same::<schema::CompleteElicitationNotification>(part("params")),
        (Some("$/cancel_request"), ..) => same::<schema::CancelRequestNotification>(part("params")),
        (None, Some(result), None) if result.get("messageId").is_some() => {
            same::<schema::PromptResponse>(part("result"))
        }
        (None, Some(result), None) if result.get("info").is_some() => {
            same::<schema::InitializeResponse>(part("result"))
        }
        (None, Some(result), None) if result.get("sessionId").is_some() => {
            same::<schema::NewSessionResponse>(part("result"));
        }
        (None, Some(_), None) => same::<schema::ResumeSessionResponse>(part("result")),
        (None, None, Some(_)) => same::<schema::Error>(part("error")),
        _ => panic!("unknown line: {line}"),
    }
}

fn same<T: DeserializeOwned + Serialize>(value: Value) {
    let read: T = serde_json::from_value(value.clone()).unwrap_or_else(|error| panic!("{error}: {value}"));
    assert_eq!(serde_json::to_value(read).unwrap(), value);
}

#[test]
fn version_2_is_spoken_only_with_the_switch_on_and_to_those_who_ask_for_it() {
    let table = [
        (true, hello(), Dialect::V2),
        (false, hello(), Dialect::Standard),
        (true, json!({ "protocolVersion": 2 }), Dialect::Standard),
    ];
    for (v2, hello, expected) in table {
        let mut test_connection = TestConnection::fresh();
        test_connection.connection = Connection::new(AgentProfile { v2, ..profile() }, Principal::owner());
        test_connection.call("initialize", hello);
        let version = if expected == Dialect::V2 { 2 } else { 1 };
        assert_eq!(
            (test_connection.connection.dialect(), &test_connection.line()["result"]["protocolVersion"]),
            (expected, &json!(version))
        );
    }
}

#[test]
fn a_prompt_is_acknowledged_with_the_id_of_its_message_before_anything_else() {
    let mut script = SessionScript::begin();
    let mut test_connection = ready();
    test_connection.call("session/new", json!({ "cwd": "/w" }));
    let Intent::NewSession { ticket, .. } = test_connection.intent() else { panic!("no session") };
    test_connection.connection.handle_opened(ticket, view(&script.log), catalog());
    test_connection.lines();
    let id = test_connection.call(
        "session/prompt",
        json!({ "sessionId": build::session(1), "prompt": [{ "type": "text", "text": "hi" }] }),
    );
    let Intent::Command { command: command @ Command::Prompt { .. }, .. } = test_connection.intent() else {
        panic!("no prompt")
    };
    script.command(command).unwrap();
    test_connection.feed(&script.log);
    let lines = test_connection.lines();
    let kinds: Vec<&Value> = lines.iter().map(|line| &line["params"]["update"]["sessionUpdate"]).collect();
    assert_eq!(kinds, [&json!("state_update"), &Value::Null, &json!("user_message")]);
    assert_eq!(
        (&lines[1]["id"], &lines[1]["result"]["messageId"]),
        (&json!(id), &lines[2]["params"]["update"]["messageId"])
    );
    assert!(!test_connection.connection.is_busy());
}

#[test]
fn a_command_is_a_turn_that_ends_at_once() {
    let script = SessionScript::begin();
    let mut test_connection = ready();
    test_connection.call("session/new", json!({ "cwd": "/w" }));
    let Intent::NewSession { ticket, .. } = test_connection.intent() else { panic!("no session") };
    test_connection.connection.handle_opened(ticket, view(&script.log), catalog());
    test_connection.lines();
    let prompt = json!([{ "type": "text", "text": "/clear" }]);
    test_connection.call("session/prompt", json!({ "sessionId": build::session(1), "prompt": prompt }));
    let Intent::Command { ticket: Some(ticket), .. } = test_connection.intent() else { panic!("no command") };
    test_connection.connection.handle_accepted(ticket, Accepted::Done);
    let lines = test_connection.lines();
    assert!(lines[0]["result"]["messageId"].is_string());
    let idle = json!({ "sessionUpdate": "state_update", "state": "idle", "stopReason": "end_turn" });
    assert_eq!(lines[1]["params"]["update"], idle);
}

#[test]
fn who_resumes_a_running_session_hears_its_state_and_the_message_that_grows() {
    let mut script = SessionScript::begin();
    script.prompt(build::run(5), IfBusy::Refuse).unwrap();
    script.report(build::run(5), Report::MessageStarted { message: MessageId::new(build::run(50).uuid()) });
    script.report(build::run(5), Report::Deltas(vec![Delta { growth: DeltaKind::Text, text: "Hal".into() }]));
    let mut test_connection = ready();
    test_connection.lines();
    test_connection.call("session/resume", json!({ "sessionId": build::session(1), "cwd": "/w" }));
    let Intent::ResumeSession { ticket, .. } = test_connection.intent() else { panic!("not resumed") };
    test_connection.connection.handle_opened(ticket, view(&script.log), catalog());
    let lines = test_connection.lines();
    let told = |line: &Value| line["params"]["update"].clone();
    assert_eq!(told(&lines[2])["content"][0]["text"], "Hal");
    assert_eq!(told(&lines[3]), json!({ "sessionUpdate": "state_update", "state": "running" }));
}

#[test]
fn logins_and_options_have_their_new_names() {
    let mut test_connection = ready();
    test_connection.lines();
    test_connection.call("auth/login", json!({ "methodId": "none" }));
    assert_eq!(crate::common::code(&test_connection.line()), -32602);
    test_connection.call("session/new", json!({ "cwd": "/w" }));
    let Intent::NewSession { ticket, .. } = test_connection.intent() else { panic!("no session") };
    test_connection.connection.handle_opened(ticket, view(&SessionScript::begin().log), catalog());
    let result = test_connection.lines().remove(0)["result"].clone();
    assert_eq!((&result["configOptions"][0]["configId"], result.get("modes")), (&json!("mode"), None));
    assert_eq!(result["availableCommands"][1]["input"]["type"], "text");
}
