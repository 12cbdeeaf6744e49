//! One client's connection, step by step.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use expect_test::expect;
use gander_domain::{
    Accepted, Command, Delta, DeltaKind, IfBusy, Notice, Outcome, Report, RunId, ServiceError, SessionCatalog,
    SettingsPatch, Severity, StopReason, Timestamp,
};
use gander_testkit::{SessionScript, build};
use gander_wire::acp::{Intent, ListFilter, ListedSession};
use serde_json::{Value, json};

use crate::common::{TestConnection, asking, catalog, code, short, view};

const RUN: u128 = 5;
const END: Report = Report::Ended(Outcome::Completed { stop: StopReason::EndTurn });

fn run() -> RunId {
    build::run(RUN)
}

/// A session whose run has said something.
fn speaking() -> SessionScript {
    let mut script = SessionScript::begin();
    script.prompt(run(), IfBusy::Refuse).unwrap();
    script.report(run(), Report::MessageStarted { message: gander_domain::MessageId::new(build::run(50).uuid()) });
    script.report(run(), Report::Deltas(vec![Delta { growth: DeltaKind::Text, text: "Hi".into() }]));
    script
}

#[test]
fn initialize_says_what_works() {
    let mut test_connection = TestConnection::fresh();
    test_connection.call("initialize", json!({ "protocolVersion": 1 }));
    expect![[r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"agentCapabilities":{"loadSession":true,"promptCapabilities":{"image":true,"audio":false,"embeddedContext":true},"mcpCapabilities":{"http":false,"sse":false,"acp":false},"sessionCapabilities":{"list":{},"delete":{},"additionalDirectories":{},"fork":{},"archive":{},"status":{},"title":{},"resume":{},"close":{}},"auth":{}},"authMethods":[],"agentInfo":{"name":"gander","title":"Gander","version":"0.0.0"},"_meta":{"steering":{"supported":true}}}}"#]]
    .assert_eq(&test_connection.texts().join("\n"));
    assert_eq!(test_connection.connection.abilities(), Some(gander_wire::acp::ClientAbilities::default()));
}

#[test]
fn a_new_session_is_answered_with_its_modes_and_options() {
    let mut test_connection = TestConnection::ready();
    let params = json!({ "cwd": "/w", "additionalDirectories": ["/x"], "mcpServers": [{ "name": "m", "command": "/m", "args": [], "env": [] }] });
    test_connection.call("session/new", params);
    let Intent::NewSession { ticket, params } = test_connection.intent() else { panic!("no session wanted") };
    assert_eq!(
        (params.cwd.as_deref(), params.folders, params.mcp_servers.len()),
        (Some("/w"), vec!["/x".to_owned()], 1)
    );
    test_connection.connection.handle_opened(ticket, view(&SessionScript::begin().log), catalog());
    let lines = test_connection.lines();
    assert_eq!(short(&lines), ["result other", "available_commands_update", "notice"]);
    let result = &lines[0]["result"];
    assert_eq!(result["sessionId"], json!(build::session(1)));
    assert_eq!(result["modes"]["currentModeId"], "assistant");
    let options: Vec<(&str, &str)> = result["configOptions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|option| (option["id"].as_str().unwrap(), option["currentValue"].as_str().unwrap()))
        .collect();
    let expected = [("mode", "assistant"), ("model", "demo/scripted"), ("thought_level", "default"), ("policy", "ask")];
    let further = [("routing", "off"), ("temperature", "default"), ("max_turns", "default"), ("budget", "none")];
    assert_eq!(options, [expected, further].concat());
    assert!(test_connection.connection.is_attached(build::session(1)));
}

#[test]
fn all_updates_of_a_turn_go_out_before_its_answer() {
    let mut test_connection = TestConnection::open(&SessionScript::begin().log);
    let id = test_connection.prompt(test_connection.session(), run());
    let mut script = speaking();
    script.report(run(), END);
    test_connection.feed(&script.log[1..]);
    let lines = test_connection.lines();
    assert_eq!(short(&lines), ["agent_message_chunk", "result end_turn"]);
    assert_eq!(lines[1]["id"], json!(id));
}

#[test]
fn a_client_is_not_told_its_own_words_but_others_are() {
    let script = speaking();
    let mut here = TestConnection::open(&script.log[..1]);
    here.prompt(here.session(), run());
    here.feed(&script.log[1..]);
    let mut there = TestConnection::open(&script.log[..1]);
    there.feed(&script.log[1..]);
    assert_eq!(short(&here.lines()), ["agent_message_chunk"]);
    assert_eq!(short(&there.lines()), ["user_message_chunk", "agent_message_chunk"]);
}

#[test]
fn a_prompt_becomes_a_command_with_its_parts_and_meta() {
    let mut test_connection = TestConnection::open(&SessionScript::begin().log);
    let prompt = json!([
        { "type": "text", "text": "look" },
        { "type": "resource_link", "uri": "file:///a", "name": "a", "title": "A", "size": 3 },
        { "type": "resource", "resource": { "uri": "file:///b", "text": "beta" } },
        { "type": "image", "mimeType": "image/png", "data": "iVBORw0KGgo=" },
    ]);
    test_connection.call(
        "session/prompt",
        json!({ "sessionId": test_connection.session(), "prompt": prompt, "_meta": { "k": 1 } }),
    );
    let Intent::Command { command: Command::Prompt { run, origin, parts, if_busy, meta }, ticket: Some(_), .. } =
        test_connection.intent()
    else {
        panic!("no prompt")
    };
    assert_eq!((run, if_busy, origin.door.as_str()), (build::run(crate::common::FIRST_RUN), IfBusy::Refuse, "acp"));
    let expected = json!([
        { "type": "text", "text": "look" },
        { "type": "link", "uri": "file:///a", "name": "a", "more": { "title": "A", "size": 3 } },
        { "type": "resource", "uri": "file:///b", "text": "beta" },
        { "type": "image", "mime": "image/png", "data": "iVBORw0KGgo=" },
    ]);
    assert_eq!(serde_json::to_value(parts).unwrap(), expected);
    assert_eq!(meta, Some(json!({ "acp": { "_meta": { "k": 1 } } })));
}

#[test]
fn a_session_that_is_not_open_here_is_attached_first() {
    let script = SessionScript::begin();
    let mut test_connection = TestConnection::ready();
    let prompt = json!({ "sessionId": build::session(1), "prompt": [{ "type": "text", "text": "x" }] });
    test_connection.call("session/prompt", prompt);
    test_connection.call("session/set_mode", json!({ "sessionId": build::session(1), "modeId": "planner" }));
    let Intent::Attach { ticket, session } = test_connection.intent() else { panic!("not attached") };
    assert_eq!((session, test_connection.connection.poll_intent()), (build::session(1), None));
    test_connection.connection.handle_opened(ticket, view(&script.log), catalog());
    assert!(matches!(test_connection.intent(), Intent::Command { command: Command::Prompt { .. }, .. }));
    let patch = SettingsPatch { mode: Some("planner".to_owned()), ..SettingsPatch::default() };
    let Intent::Command { command, .. } = test_connection.intent() else { panic!("no command") };
    assert_eq!(command, Command::Configure { patch });
    assert_eq!(test_connection.texts(), Vec::<String>::new());
}

#[test]
fn all_that_wait_for_a_session_hear_that_there_is_none() {
    let mut test_connection = TestConnection::ready();
    let prompt = json!({ "sessionId": build::session(9), "prompt": [{ "type": "text", "text": "x" }] });
    let first = test_connection.call("session/prompt", prompt.clone());
    let second = test_connection.call("session/prompt", prompt);
    let Intent::Attach { ticket, session } = test_connection.intent() else { panic!("not attached") };
    test_connection.connection.handle_refusal(ticket, &ServiceError::UnknownSession(session));
    let answers: Vec<(Value, i64)> =
        test_connection.lines().iter().map(|line| (line["id"].clone(), code(line))).collect();
    assert_eq!(answers, [(json!(first), -32002), (json!(second), -32002)]);
}

#[test]
fn a_prompt_sent_while_a_load_is_under_way_waits_for_its_end() {
    let script = speaking();
    let mut test_connection = TestConnection::loading(&script.log);
    test_connection.call(
        "session/prompt",
        json!({ "sessionId": test_connection.session(), "prompt": [{ "type": "text", "text": "x" }] }),
    );
    let (first, rest) = script.log.split_at(2);
    test_connection.feed(first);
    assert_eq!(test_connection.connection.poll_intent(), None);
    test_connection.feed(rest);
    let told = ["user_message_chunk", "agent_message_chunk", "result other", "available_commands_update"];
    assert_eq!(short(&test_connection.lines()), told);
    assert!(matches!(test_connection.intent(), Intent::Command { command: Command::Prompt { .. }, .. }));
}

#[test]
fn a_cancel_reaches_a_prompt_that_still_waits_for_its_session() {
    let mut test_connection = TestConnection::ready();
    test_connection
        .call("session/prompt", json!({ "sessionId": build::session(1), "prompt": [{ "type": "text", "text": "x" }] }));
    test_connection
        .send(&json!({ "jsonrpc": "2.0", "method": "session/cancel", "params": { "sessionId": build::session(1) } }));
    assert_eq!(short(&test_connection.lines()), ["result cancelled"]);
}

#[test]
fn cancel_sent_as_a_request_is_answered_too() {
    let mut test_connection = TestConnection::open(&SessionScript::begin().log);
    test_connection.call("session/cancel", json!({ "sessionId": test_connection.session() }));
    assert_eq!(test_connection.line()["result"], json!({}));
    let Intent::Command { command: Command::Cancel { run: None, .. }, ticket: None, .. } = test_connection.intent()
    else {
        panic!("no cancel")
    };
}

#[test]
fn taking_a_prompt_back_cancels_its_run_and_the_answer_still_comes() {
    let mut script = speaking();
    let mut test_connection = TestConnection::open(&script.log[..1]);
    let id = test_connection.prompt(test_connection.session(), run());
    test_connection.send(&json!({ "jsonrpc": "2.0", "method": "$/cancel_request", "params": { "requestId": id } }));
    let Intent::Command { command: command @ Command::Cancel { run: Some(_), .. }, ticket: None, .. } =
        test_connection.intent()
    else {
        panic!("no cancel")
    };
    script.command(command).unwrap();
    script.report(run(), END);
    test_connection.feed(&script.log[1..]);
    assert_eq!(short(&test_connection.lines()).last().unwrap(), "result cancelled");
}

#[test]
fn taking_a_load_back_ends_it_in_silence_and_life_goes_on() {
    let mut script = speaking();
    let mut test_connection = TestConnection::loading(&script.log);
    test_connection.feed(&script.log[..2]);
    test_connection.lines();
    test_connection.send(&json!({ "jsonrpc": "2.0", "method": "$/cancel_request", "params": { "requestId": 2 } }));
    assert_eq!(code(&test_connection.line()), -32800);
    let head = script.log.len();
    test_connection.feed(&script.log[2..]);
    assert_eq!(test_connection.texts(), Vec::<String>::new());
    script.report(run(), Report::Deltas(vec![Delta { growth: DeltaKind::Text, text: "!".into() }]));
    test_connection.feed(&script.log[head..]);
    assert_eq!(short(&test_connection.lines()), ["agent_message_chunk"]);
}

#[test]
fn entries_that_were_seen_are_skipped() {
    let script = speaking();
    let mut test_connection = TestConnection::open(&script.log[..1]);
    test_connection.feed(&script.log);
    let once = test_connection.texts();
    test_connection.feed(&script.log);
    assert_eq!((once.len(), test_connection.texts().len()), (2, 0));
}

#[test]
fn options_are_changed_and_answered_whole() {
    let mut test_connection = TestConnection::open(&SessionScript::begin().log);
    let changes = [("mode", "planner"), ("model", "demo/other"), ("thought_level", "high"), ("policy", "auto")];
    for (place, (option, value)) in changes.into_iter().enumerate() {
        let params = json!({ "sessionId": test_connection.session(), "configId": option, "value": value });
        test_connection.call("session/set_config_option", params);
        let Intent::Command { command: Command::Configure { .. }, ticket: Some(ticket), .. } = test_connection.intent()
        else {
            panic!("no change of {option}")
        };
        test_connection.connection.handle_accepted(ticket, Accepted::Done);
        let line = test_connection.line();
        let options = line["result"]["configOptions"].as_array().unwrap();
        let changed = options.iter().find(|found| found["id"] == option).unwrap();
        assert_eq!((options.len(), &changed["currentValue"]), (8, &json!(value)));
        // None of them has gone by in the log yet.
        for (earlier, value) in &changes[..place] {
            let found = options.iter().find(|found| found["id"] == *earlier).unwrap();
            assert_eq!(found["currentValue"], *value, "{earlier} after {option}");
        }
    }
}

/// What a client set last is newer than what it was told last, also while nobody has answered yet.
#[test]
fn a_mode_is_set_back_though_the_change_before_was_not_told_yet() {
    for is_accepted in [true, false] {
        let script = SessionScript::begin();
        let (mut test_connection, first) = (TestConnection::open(&script.log), view(&script.log).settings.mode);
        let mut set = |mode: &str| {
            test_connection.call("session/set_mode", json!({ "sessionId": test_connection.session(), "modeId": mode }));
            let Intent::Command { command: Command::Configure { patch }, ticket: Some(ticket), .. } =
                test_connection.intent()
            else {
                panic!("no change to {mode}")
            };
            if is_accepted {
                test_connection.connection.handle_accepted(ticket, Accepted::Done);
            }
            patch.mode
        };
        assert_eq!(set(&first), None, "it is set so");
        assert_eq!(set("planner").as_deref(), Some("planner"));
        assert_eq!(set(&first), Some(first.clone()), "accepted: {is_accepted}");
    }
}

/// What changes nothing makes no entry, so it must not stand in the way of what others change later.
#[test]
fn options_that_are_set_to_what_they_are_hide_no_later_change() {
    let mut script = SessionScript::begin();
    let mut test_connection = TestConnection::open(&script.log);
    let set = |test_connection: &mut TestConnection, option: &str, value: &str| {
        test_connection.call(
            "session/set_config_option",
            json!({ "sessionId": test_connection.session(), "configId": option, "value": value }),
        );
        let Intent::Command { ticket: Some(ticket), .. } = test_connection.intent() else {
            panic!("no change of {option}")
        };
        test_connection.connection.handle_accepted(ticket, Accepted::Done);
        let options = test_connection.line()["result"]["configOptions"].clone();
        let policy = options.as_array().unwrap().iter().find(|found| found["id"] == "policy").cloned();
        policy.unwrap()["currentValue"].clone()
    };
    for _ in 0..2 {
        assert_eq!(set(&mut test_connection, "policy", "ask"), "ask");
    }
    let (head, policy) = (script.log.len(), Some(gander_domain::Policy::Auto));
    script.command(Command::Configure { patch: SettingsPatch { policy, ..SettingsPatch::default() } }).unwrap();
    test_connection.feed(&script.log[head..]);
    test_connection.lines();
    assert_eq!(set(&mut test_connection, "thought_level", "high"), "auto", "another client changed it");
}

#[test]
fn a_mode_is_changed_and_answered_with_nothing() {
    let mut test_connection = TestConnection::open(&SessionScript::begin().log);
    test_connection.call("session/set_mode", json!({ "sessionId": test_connection.session(), "modeId": "planner" }));
    let Intent::Command { ticket: Some(ticket), .. } = test_connection.intent() else { panic!("no change") };
    test_connection.connection.handle_accepted(ticket, Accepted::Done);
    assert_eq!(test_connection.line()["result"], json!({}));
}

#[test]
fn new_choices_are_offered() {
    let mut test_connection = TestConnection::open(&SessionScript::begin().log);
    test_connection.connection.handle_catalog_changed(build::session(1), Arc::new(SessionCatalog::default()));
    assert_eq!(short(&test_connection.lines()), ["config_option_update"]);
}

#[test]
fn sessions_are_listed_with_their_times() {
    let mut test_connection = TestConnection::ready();
    test_connection.call("session/list", json!({ "cwd": "/w", "cursor": "c" }));
    let Intent::ListSessions { ticket, cwd, cursor, filter } = test_connection.intent() else { panic!("no list") };
    assert_eq!((cwd.as_deref(), cursor.as_deref(), filter), (Some("/w"), Some("c"), ListFilter::default()));
    let listed = ListedSession {
        session: build::session(1),
        workspace: "/w".to_owned(),
        folders: vec![],
        title: Some("T".to_owned()),
        created_at: Timestamp::from_micros(1_600_000_000_000_000),
        updated_at: Timestamp::from_micros(1_700_000_000_000_000),
        archived: false,
    };
    test_connection.connection.handle_listed(ticket, vec![listed], Some("d".to_owned()));
    let sessions = json!([{ "sessionId": build::session(1), "cwd": "/w", "title": "T", "updatedAt": "2023-11-14T22:13:20Z", "archived": false, "_meta": { "gander/createdAt": "2020-09-13T12:26:40Z" } }]);
    assert_eq!(test_connection.line()["result"], json!({ "sessions": sessions, "nextCursor": "d" }));
}

#[test]
fn closing_answers_what_waits_and_withdraws_what_is_asked() {
    let script = asking();
    let mut test_connection = TestConnection::open(&script.log[..1]);
    test_connection.prompt(test_connection.session(), run());
    test_connection.feed(&script.log[1..]);
    test_connection.lines();
    test_connection.call("session/close", json!({ "sessionId": test_connection.session() }));
    let Intent::CloseSession { ticket, .. } = test_connection.intent() else { panic!("no close") };
    test_connection.connection.handle_done(ticket);
    assert_eq!(short(&test_connection.lines()), ["$/cancel_request", "result cancelled", "result other"]);
    assert!(!test_connection.connection.is_attached(build::session(1)));
    test_connection.feed(&script.log);
    assert_eq!(test_connection.texts(), Vec::<String>::new());
}

#[test]
fn a_session_deleted_elsewhere_fails_its_prompt() {
    let mut test_connection = TestConnection::open(&SessionScript::begin().log);
    test_connection.prompt(test_connection.session(), run());
    test_connection.connection.handle_session_gone(build::session(1));
    assert_eq!(code(&test_connection.line()), -32002);
}

#[test]
fn a_delete_is_asked_for_and_answered() {
    let mut test_connection = TestConnection::ready();
    test_connection.call("session/delete", json!({ "sessionId": build::session(3) }));
    let Intent::DeleteSession { ticket, session } = test_connection.intent() else { panic!("no delete") };
    assert_eq!(session, build::session(3));
    test_connection.connection.handle_done(ticket);
    assert_eq!(test_connection.line()["result"], json!({}));
}

#[test]
fn extensions_pass_through() {
    let mut test_connection = TestConnection::ready();
    test_connection.call("_gander/status", json!({ "deep": [1, { "x": null }] }));
    let Intent::Extension { ticket, method, params } = test_connection.intent() else { panic!("no extension") };
    assert_eq!((method.as_str(), params), ("_gander/status", json!({ "deep": [1, { "x": null }] })));
    test_connection.connection.handle_extension_result(ticket, &json!({ "ok": true }));
    assert_eq!(test_connection.line()["result"], json!({ "ok": true }));
}

#[test]
fn notices_go_to_those_who_show_them_and_never_into_a_replay() {
    let mut script = speaking();
    let notice = Notice { severity: Severity::Info, title: "n".into(), detail: None };
    script.report(run(), Report::Noticed(notice));
    let told = |test_connection: &mut TestConnection| {
        short(&test_connection.lines()).iter().filter(|line| *line == "notice").count()
    };
    let mut able = TestConnection::open(&script.log[..1]);
    able.feed(&script.log);
    let mut late = TestConnection::loading(&script.log);
    late.feed(&script.log);
    let mut poor = TestConnection::plain(&script.log[..1]);
    poor.feed(&script.log);
    assert_eq!((told(&mut able), told(&mut late), told(&mut poor)), (1, 0, 0));
}

#[test]
fn an_answer_that_does_not_fit_its_ticket_is_an_internal_error_at_once() {
    let mut test_connection = TestConnection::ready();
    test_connection.call("session/list", json!({}));
    let Intent::ListSessions { ticket, .. } = test_connection.intent() else { panic!("no list") };
    test_connection.connection.handle_extension_result(ticket, &json!({}));
    assert_eq!(code(&test_connection.line()), -32603);
}

#[test]
fn every_message_knows_its_session_and_its_entry() {
    let script = speaking();
    let mut test_connection = TestConnection::open(&script.log[..1]);
    test_connection.feed(&script.log);
    let places: Vec<(Option<_>, u64)> =
        test_connection.connection.outbox().messages().map(|(place, _)| (place.session, place.seq.0)).collect();
    assert_eq!(places, [(Some(build::session(1)), 3), (Some(build::session(1)), 5)]);
}
