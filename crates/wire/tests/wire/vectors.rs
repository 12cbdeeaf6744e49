//! Rosetta vectors: what a client that is there and a client that comes later are told of each scenario's log.

#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm)]

use std::path::Path;

use crate::common::TestConnection;
use agent_client_protocol_schema::v1 as schema;
use gander_domain::{Answer, Command, Entry, Event, Principal, Reply};
use gander_testkit::skip::skipped;
use gander_testkit::vectors::{Scenario, scenarios};
use gander_wire::acp::Intent;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

fn all() -> Vec<Scenario> {
    scenarios(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors")).unwrap()
}

/// What a client is told that made the session, sends every prompt of the ACP door and answers what the owner answered.
fn live(log: &[Entry]) -> Vec<String> {
    let mut test_connection = TestConnection::open(&log[..1]);
    for entry in &log[1..] {
        match &entry.event {
            Event::RunStarted { origin } if origin.door == "acp" => {
                test_connection.prompt(test_connection.session(), entry.run.unwrap());
            }
            Event::QuestionAnswered { question, answer: Answer { by: Some(by), door: None, reply } }
                if *by == Principal::owner() =>
            {
                answers(&mut test_connection, &question.to_string(), reply);
            }
            _ => {}
        }
        test_connection.feed(std::slice::from_ref(entry));
    }
    test_connection.texts()
}

/// The client answers, and that is what the server is asked to do.
fn answers(test_connection: &mut TestConnection, id: &str, reply: &Reply) {
    let result = match reply {
        Reply::Chosen { choice, .. } => json!({ "outcome": { "outcome": "selected", "optionId": choice } }),
        Reply::Filled { content } => json!({ "action": "accept", "content": content }),
        _ => panic!("no client answers this: {reply:?}"),
    };
    test_connection.send(&json!({ "jsonrpc": "2.0", "id": id, "result": result }));
    let Intent::Command { command: Command::Answer { reply: found, .. }, .. } = test_connection.intent() else {
        panic!("not an answer")
    };
    assert_eq!(found, *reply);
}

/// What a client is told that loads the session afterwards.
fn loaded(log: &[Entry]) -> Vec<String> {
    let mut test_connection = TestConnection::loading(log);
    test_connection.feed(log);
    test_connection.texts()
}

#[test]
fn every_scenario_is_told_as_expected() {
    for scenario in all() {
        scenario.check("acp.jsonl", &live(&scenario.log)).unwrap();
        scenario.check("acp_load.jsonl", &loaded(&scenario.log)).unwrap();
    }
}

#[test]
fn every_line_is_what_the_schema_crate_would_have_written() {
    let mut checked = 0;
    for scenario in all() {
        for line in live(&scenario.log).iter().chain(&loaded(&scenario.log)) {
            typed(line);
            checked += 1;
        }
    }
    assert!(checked > 150, "{checked}");
}

/// Set `GANDER_ACP_SCHEMA` to the official `schema.json`.
#[test]
fn every_line_validates_against_the_official_schema() {
    let Some(path) = std::env::var_os("GANDER_ACP_SCHEMA") else {
        return skipped("vectors::every_line_validates_against_the_official_schema", "GANDER_ACP_SCHEMA is not set");
    };
    let mut schema: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    // an agent says nothing that only a client may say
    schema["anyOf"].as_array_mut().unwrap().retain(|side| side["title"] != "Client");
    let validator = jsonschema::validator_for(&schema).unwrap();
    for scenario in all() {
        for line in live(&scenario.log).iter().chain(&loaded(&scenario.log)) {
            let value = serde_json::from_str(line).unwrap();
            assert!(validator.is_valid(&value), "{}: {line}", scenario.name);
        }
    }
}

fn typed(line: &str) {
    let value: Value = serde_json::from_str(line).unwrap();
    assert_eq!(value["jsonrpc"], "2.0");
    let part = |key: &str| value[key].clone();
    match (value["method"].as_str(), value.get("result"), value.get("error")) {
        (Some("session/update"), ..) => same::<schema::SessionNotification>(part("params")),
        (Some("session/request_permission"), ..) => same::<schema::RequestPermissionRequest>(part("params")),
        (Some("elicitation/create"), ..) => same::<schema::CreateElicitationRequest>(part("params")),
        (Some("$/cancel_request"), ..) => same::<schema::CancelRequestNotification>(part("params")),
        (None, Some(result), None) if result.get("stopReason").is_some() => {
            same::<schema::PromptResponse>(part("result"))
        }
        (None, Some(_), None) => same::<schema::LoadSessionResponse>(part("result")),
        (None, None, Some(_)) => same::<schema::Error>(part("error")),
        _ => panic!("unknown line: {line}"),
    }
}

fn same<T: DeserializeOwned + Serialize>(value: Value) {
    let read: T = serde_json::from_value(value.clone()).unwrap_or_else(|error| panic!("{error}: {value}"));
    assert_eq!(serde_json::to_value(read).unwrap(), value);
}
