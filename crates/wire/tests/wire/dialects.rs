//! Dialects: what clients of the papers say is understood, and they are answered in their own words.

#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm)]

use std::path::Path;

use gander_domain::{Command, Entry, Outcome, Part, Principal, Report, ServiceError, SettingsPatch, Timestamp};
use gander_testkit::vectors::scenarios;
use gander_testkit::{CountingIds, SessionScript, build};
use gander_wire::acp::{Connection, Dialect, Intent, ListedSession};
use serde_json::{Value, json};

use crate::common::{TestConnection, catalog, code, profile, view};

/// Each dialect, its expected files, and how its clients introduce themselves.
fn dialects() -> [(Dialect, &'static str, Value); 3] {
    let agentkit = json!({
        "protocolVersion": "2025-06-01", "clientInfo": { "name": "c", "version": "1" },
        "capabilities": { "terminal": true, "fs.readTextFile": true },
    });
    let aptove = json!({ "protocolVersion": 1, "capabilities": { "terminal": true } });
    [
        (Dialect::Goosed, "acp_000.jsonl", json!({})),
        (Dialect::Aptove, "acp_002.jsonl", aptove),
        (Dialect::Agentkit, "acp_004.jsonl", agentkit),
    ]
}

/// A client that introduced itself; the second paper's words must be forced.
fn introduced(dialect: Dialect, hello: Value, log: &[Entry]) -> TestConnection {
    let mut test_connection = TestConnection::fresh();
    if dialect == Dialect::Aptove {
        test_connection.connection = Connection::new(profile(), Principal::owner()).with_dialect(dialect);
    }
    test_connection.call("initialize", hello);
    if let Some(Intent::FirstSession { ticket }) = test_connection.connection.poll_intent() {
        test_connection.connection.handle_opened(ticket, view(log), catalog());
    }
    test_connection
}

/// What such a client is told: its introduction, its session, everything that happens, and the list of sessions.
fn told(dialect: Dialect, hello: Value, log: &[Entry]) -> Vec<String> {
    let mut test_connection = introduced(dialect, hello, &log[..1]);
    test_connection.call("session/new", json!({ "metadata": { "branch": "main" } }));
    let Intent::NewSession { ticket, .. } = test_connection.intent() else { panic!("no session") };
    test_connection.connection.handle_opened(ticket, view(&log[..1]), catalog());
    test_connection.live(&log[1..]);
    test_connection.call("session/list", json!({}));
    let Intent::ListSessions { ticket, .. } = test_connection.intent() else { panic!("no list") };
    test_connection.connection.handle_listed(ticket, vec![listed()], None);
    test_connection.texts()
}

fn listed() -> ListedSession {
    ListedSession {
        session: build::session(1),
        workspace: "/workspace".to_owned(),
        folders: vec![],
        title: Some("Title".to_owned()),
        created_at: Timestamp::from_micros(1_600_000_000_000_000),
        updated_at: Timestamp::from_micros(1_700_000_000_000_000),
        archived: false,
    }
}

#[test]
fn every_dialect_is_told_as_expected() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors");
    let subset =
        ["cancel", "diff", "failed", "image", "permission_allowed", "plan", "settings", "stop_reasons", "text"];
    let subset = [&subset[..], &["thought", "tools"]].concat();
    let mut checked = 0;
    for scenario in scenarios(&root).unwrap().iter().filter(|scenario| subset.contains(&scenario.name.as_str())) {
        for (dialect, file, hello) in dialects() {
            scenario.check(file, &told(dialect, hello, &scenario.log)).unwrap();
            checked += 1;
        }
    }
    assert_eq!(checked, 33);
}

#[test]
fn a_standard_client_hears_nothing_of_any_dialect() {
    let words = [
        "session_id",
        "_session_id",
        "agentMessageChunk",
        "messageChunk",
        "endTurn",
        "\"config\"",
        "\"type\":\"text\",\"text\":\"Hi\",\"role\"",
    ];
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors");
    for scenario in scenarios(&root).unwrap() {
        let mut test_connection = TestConnection::open(&scenario.log[..1]);
        test_connection.feed(&scenario.log);
        for line in test_connection.texts() {
            assert!(words.iter().all(|word| !line.contains(word)), "{line}");
        }
    }
    let mut test_connection = TestConnection::fresh();
    test_connection.call("initialize", crate::common::hello());
    let answer = test_connection.line();
    let keys: Vec<&String> = answer["result"].as_object().unwrap().keys().collect();
    assert_eq!(keys, ["protocolVersion", "agentCapabilities", "authMethods", "agentInfo", "_meta"]);
    assert_eq!(test_connection.connection.dialect(), Dialect::Standard);
}

#[test]
fn the_dialect_is_settled_by_the_introduction() {
    let caps = json!({ "fs.readTextFile": true });
    let table = [
        (json!({ "protocolVersion": 1 }), Dialect::Standard),
        (json!({ "protocolVersion": 1, "capabilities": caps }), Dialect::Standard),
        (json!({ "protocolVersion": 7, "info": {} }), Dialect::Standard),
        (json!({ "protocolVersion": "1", "clientCapabilities": {} }), Dialect::Standard),
        (json!({ "protocolVersion": "2025-01-01", "capabilities": caps }), Dialect::Agentkit),
        (json!({}), Dialect::Goosed),
        (json!({ "protocol_version": "2024-11-05" }), Dialect::Goosed),
    ];
    for (hello, expected) in table {
        let mut test_connection = TestConnection::fresh();
        test_connection.call("initialize", hello.clone());
        assert_eq!(test_connection.connection.dialect(), expected, "{hello}");
    }
}

#[test]
fn a_version_that_is_a_text_is_echoed_as_that_text() {
    for version in ["1", "2025-06-01"] {
        let mut test_connection = TestConnection::fresh();
        test_connection.call("initialize", json!({ "protocolVersion": version, "clientCapabilities": {} }));
        assert_eq!(test_connection.line()["result"]["protocolVersion"], version);
    }
}

#[test]
fn capabilities_are_understood_under_any_name() {
    for hello in [
        json!({ "protocolVersion": 1, "clientCapabilities": { "fs": { "readTextFile": true }, "terminal": true } }),
        json!({ "protocolVersion": 1, "capabilities": { "fs": { "readTextFile": true }, "terminal": true } }),
        json!({ "protocolVersion": "1", "capabilities": { "fs.readTextFile": true, "terminal": true } }),
        json!({ "protocol_version": 1, "client_capabilities": { "fs": { "read_text_file": true }, "terminal": true } }),
    ] {
        let mut test_connection = TestConnection::fresh();
        test_connection.call("initialize", hello.clone());
        let abilities = test_connection.connection.abilities().unwrap();
        assert_eq!((abilities.read_file, abilities.write_file, abilities.terminal), (true, false, true), "{hello}");
    }
}

#[test]
fn a_prompt_is_understood_in_any_form() {
    let image = json!({ "type": "image", "mime_type": "image/png", "data": "iVBORw0KGgo=" });
    for (method, said) in [
        ("session/prompt", json!({ "prompt": [{ "type": "text", "text": "hi" }] })),
        ("session/prompt", json!({ "prompt": "hi" })),
        ("session/prompt", json!({ "text": "hi" })),
        ("session/prompt", json!({ "content": [{ "type": "text", "text": "hi" }] })),
        ("prompt", json!({ "prompt": [{ "type": "text", "content": "hi" }] })),
        ("prompt", json!({ "prompt": [{ "text": "hi" }] })),
        ("prompt", json!({ "prompt": [{ "text": "hi" }, image] })),
    ] {
        for key in ["sessionId", "session_id"] {
            let mut test_connection = TestConnection::open(&SessionScript::begin().log);
            let mut params = said.clone();
            params[key] = json!(build::session(1));
            test_connection.call(method, params);
            let Intent::Command { command: Command::Prompt { parts, .. }, .. } = test_connection.intent() else {
                panic!("{said}")
            };
            assert_eq!(parts[0], Part::text("hi"), "{said}");
        }
    }
}

#[test]
fn sessions_are_opened_and_changed_in_any_words() {
    let mut test_connection = TestConnection::open(&SessionScript::begin().log);
    let id = build::session(1);
    test_connection.call("set_session_mode", json!({ "session_id": id, "mode_id": "planner" }));
    let planner = SettingsPatch { mode: Some("planner".to_owned()), ..SettingsPatch::default() };
    assert!(
        matches!(test_connection.intent(), Intent::Command { command: Command::Configure { patch }, .. } if patch == planner)
    );
    test_connection.call("set_session_model", json!({ "session_id": id, "model_id": "demo/other" }));
    let other = SettingsPatch { model: Some("demo/other".to_owned()), ..SettingsPatch::default() };
    assert!(
        matches!(test_connection.intent(), Intent::Command { command: Command::Configure { patch }, .. } if patch == other)
    );
    test_connection.call("session/load", json!({ "workspace_id": build::session(8) }));
    assert!(matches!(test_connection.intent(), Intent::LoadSession { session, .. } if session == build::session(8)));
    test_connection.call("new_session", json!({}));
    assert!(
        matches!(test_connection.intent(), Intent::NewSession { params, .. } if params.cwd.is_none() && params.mcp_servers.is_empty())
    );
    test_connection.call("session/new", json!({ "metadata": { "workDir": "/w", "branch": "b" } }));
    let Intent::NewSession { params, .. } = test_connection.intent() else { panic!("no session") };
    let kept = json!({ "acp": { "metadata": { "workDir": "/w", "branch": "b" } } });
    assert_eq!((params.cwd.as_deref(), params.meta), (Some("/w"), Some(kept)));
    test_connection.call("session/new", json!({ "device_id": "phone" }));
    assert!(
        matches!(test_connection.intent(), Intent::NewSession { params, .. } if params.reuse.as_deref() == Some("phone"))
    );
}

#[test]
fn the_legacy_goose_dialect_needs_no_session_id_after_its_introduction() {
    let mut test_connection = introduced(Dialect::Goosed, json!({}), &SessionScript::begin().log);
    let hello = test_connection.line();
    assert_eq!(hello["result"]["_session_id"], json!(build::session(1)));
    assert_eq!(hello["result"]["protocol_version"], "2024-11-05");
    assert_eq!(hello["result"]["modes"]["default"], "assistant");
    assert_eq!(hello["result"]["agent_capabilities"]["prompt_capabilities"]["embedded_context"], true);
    test_connection.call("prompt", json!({ "prompt": "hi" }));
    let Intent::Command { session, .. } = test_connection.intent() else { panic!("no prompt") };
    assert_eq!(session, build::session(1));
    test_connection.call("cancel", json!({}));
    assert!(matches!(test_connection.intent(), Intent::Command { command: Command::Cancel { .. }, .. }));
    assert_eq!(test_connection.line()["result"], json!({}));
    test_connection.send(&json!({ "jsonrpc": "2.0", "method": "cancel" }));
    assert!(matches!(test_connection.intent(), Intent::Command { command: Command::Cancel { .. }, .. }));
    test_connection.connection.set_current_session(build::session(2));
    test_connection.call("prompt", json!({ "prompt": "hi" }));
    assert!(matches!(test_connection.intent(), Intent::Attach { session, .. } if session == build::session(2)));
}

#[test]
fn a_bare_method_right_after_a_standard_introduction_tells_the_legacy_goose_dialect() {
    let mut test_connection = TestConnection::ready();
    test_connection.call("new_session", json!({}));
    let Intent::NewSession { ticket, .. } = test_connection.intent() else { panic!("no session") };
    test_connection.connection.handle_opened(ticket, view(&SessionScript::begin().log), catalog());
    assert_eq!(test_connection.lines()[0]["result"]["session_id"], json!(build::session(1)));
    let mut late = TestConnection::open(&SessionScript::begin().log);
    late.call("set_session_mode", json!({ "session_id": build::session(1), "mode_id": "planner" }));
    assert_eq!(late.connection.dialect(), Dialect::Standard);
}

#[test]
fn an_introduction_whose_session_cannot_be_made_may_be_tried_again() {
    let mut test_connection = TestConnection::fresh();
    test_connection.call("initialize", json!({}));
    let Intent::FirstSession { ticket } = test_connection.intent() else { panic!("no session") };
    test_connection.connection.handle_refusal(ticket, &ServiceError::Unavailable("full".to_owned()));
    assert_eq!((code(&test_connection.line()), test_connection.connection.abilities()), (-32603, None));
    test_connection.call("initialize", json!({}));
    assert!(matches!(test_connection.intent(), Intent::FirstSession { .. }));
}

#[test]
fn a_session_of_the_go_acp_package_gives_its_metadata_back() {
    let [.., (dialect, _, hello)] = dialects();
    let mut test_connection = introduced(dialect, hello, &SessionScript::begin().log);
    test_connection.lines();
    test_connection.call("session/new", json!({ "metadata": { "workDir": "/w", "branch": "b" } }));
    let Intent::NewSession { ticket, .. } = test_connection.intent() else { panic!("no session") };
    test_connection.connection.handle_opened(ticket, view(&SessionScript::begin().log), catalog());
    let answer = test_connection.lines().remove(0);
    let session = json!({ "id": build::session(1), "metadata": { "workDir": "/w", "branch": "b" } });
    assert_eq!((&answer["result"]["session"], &answer["result"]["sessionId"]), (&session, &session["id"]));
}

#[test]
fn a_failed_run_is_a_stop_reason_for_papers_002_and_004_and_an_error_for_all_others() {
    for (dialect, _, hello) in dialects() {
        let mut script = SessionScript::begin();
        let mut test_connection = introduced(dialect, hello, &script.log);
        test_connection.call("session/resume", json!({ "sessionId": build::session(1), "cwd": "/w" }));
        let Intent::ResumeSession { ticket, .. } = test_connection.intent() else { panic!("not resumed") };
        test_connection.connection.handle_opened(ticket, view(&script.log), catalog());
        test_connection.prompt(build::session(1), build::run(5));
        test_connection.lines();
        script.prompt(build::run(5), gander_domain::IfBusy::Refuse).unwrap();
        script.report(build::run(5), Report::Ended(Outcome::failed("model", "no model answers")));
        test_connection.feed(&script.log);
        let line = test_connection.line();
        match dialect {
            Dialect::Goosed | Dialect::Standard | Dialect::V2 => assert_eq!(code(&line), -32603),
            Dialect::Aptove | Dialect::Agentkit => assert_eq!(line["result"]["stopReason"], "error"),
        }
    }
}

#[test]
fn dialects_are_chosen_by_name() {
    for dialect in [Dialect::Standard, Dialect::Goosed, Dialect::Aptove, Dialect::Agentkit] {
        assert_eq!(dialect.to_string().parse(), Ok(dialect));
    }
    assert!("klingon".parse::<Dialect>().is_err());
    let mut test_connection = TestConnection::fresh();
    test_connection.connection = Connection::new(profile(), Principal::owner()).with_dialect(Dialect::Agentkit);
    test_connection.ids = CountingIds::after(900);
    test_connection.call("initialize", json!({ "protocolVersion": 1 }));
    assert_eq!(test_connection.line()["result"]["protocolVersion"], "2025-01-01");
}

#[test]
fn an_unknown_command_of_the_go_acp_package_ends_with_an_error() {
    let mut test_connection = TestConnection::fresh();
    test_connection.call("initialize", json!({ "protocolVersion": "2025-01-01", "capabilities": {} }));
    test_connection.call("session/new", json!({ "metadata": {} }));
    let Intent::NewSession { ticket, .. } = test_connection.intent() else { panic!("no session") };
    test_connection.connection.handle_opened(ticket, view(&SessionScript::begin().log), catalog());
    test_connection.lines();
    let command = json!({ "name": "fix", "input": "it" });
    test_connection.call("session/prompt", json!({ "sessionId": build::session(1), "command": command }));
    let Intent::Command { command: Command::Prompt { parts, .. }, ticket: Some(ticket), .. } = test_connection.intent()
    else {
        panic!("no prompt")
    };
    assert_eq!(parts, [Part::text("/fix it")]);
    test_connection.connection.handle_refusal(ticket, &ServiceError::UnknownCommand("fix".to_owned()));
    let answer = test_connection.line();
    assert_eq!(answer["result"]["stopReason"], "error");
    assert_eq!(answer["result"]["_meta"]["error"]["message"], "no such command: fix");
}
