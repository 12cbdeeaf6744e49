//! Version 2, method by method and error by error.

#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm)]

use gander_domain::{
    Accepted, Command, Outcome, Principal, Question, QuestionKind, QuestionOrigin, Reply, Report, ServiceError,
    StopReason, Usage,
};
use gander_testkit::conformance::ConformanceRecorder;
use gander_testkit::{SessionScript, build};
use gander_wire::acp::{AgentProfile, Connection, Intent, LoginMethod, Presence};
use serde_json::{Value, json};

use crate::common::{TestConnection, asking, catalog, code, profile, question, view};

fn fresh() -> TestConnection {
    let login = LoginMethod { id: "key".to_owned(), name: "Key".to_owned() };
    let mut test_connection = TestConnection::fresh();
    test_connection.connection =
        Connection::new(AgentProfile { v2: true, logins: vec![login], ..profile() }, Principal::owner());
    test_connection
}

fn ready() -> TestConnection {
    let mut test_connection = fresh();
    let capabilities = json!({ "elicitation": { "form": {}, "url": {} } });
    let info = json!({ "name": "c", "version": "1" });
    test_connection.call("initialize", json!({ "protocolVersion": 2, "info": info, "capabilities": capabilities }));
    test_connection.lines();
    test_connection
}

/// A client with this session open.
fn open(script: &SessionScript) -> TestConnection {
    let mut test_connection = ready();
    test_connection.call("session/new", json!({ "cwd": "/w" }));
    let Intent::NewSession { ticket, .. } = test_connection.intent() else { panic!("no session") };
    test_connection.connection.handle_opened(ticket, view(&script.log), catalog());
    test_connection.lines();
    test_connection
}

fn session() -> Value {
    json!({ "sessionId": build::session(1), "cwd": "/w" })
}

#[test]
fn sessions_are_listed_looked_at_put_away_and_left() {
    let script = SessionScript::begin();
    let mut test_connection = open(&script);
    test_connection.call("session/list", json!({}));
    let Intent::ListSessions { ticket, .. } = test_connection.intent() else { panic!("no list") };
    test_connection.connection.handle_listed(ticket, vec![], None);
    assert_eq!(test_connection.line()["result"], json!({ "sessions": [] }));
    test_connection.call("session/status", session());
    let Intent::SessionStatus { ticket, .. } = test_connection.intent() else { panic!("no status") };
    test_connection.connection.handle_status(ticket, Presence::Open);
    assert_eq!(test_connection.line()["result"], json!({ "status": "open" }));
    for (method, result) in [("session/unarchive", json!({})), ("session/set_title", json!({ "title": "T" }))] {
        test_connection.call(method, json!({ "sessionId": build::session(1), "title": "T" }));
        let Intent::Command { ticket: Some(ticket), .. } = test_connection.intent() else { panic!("no command") };
        test_connection.connection.handle_accepted(ticket, Accepted::Done);
        assert_eq!(test_connection.line()["result"], result);
    }
    for method in ["session/archive", "session/close", "session/delete"] {
        test_connection.call(method, session());
        let (Intent::ArchiveSession { ticket, .. }
        | Intent::CloseSession { ticket, .. }
        | Intent::DeleteSession { ticket, .. }) = test_connection.intent()
        else {
            panic!("{method} asks for nothing")
        };
        test_connection.connection.handle_done(ticket);
        assert_eq!(test_connection.line()["result"], json!({}));
    }
}

#[test]
fn a_fork_is_a_new_session_and_options_are_answered_whole() {
    let script = SessionScript::begin();
    let mut test_connection = open(&script);
    test_connection.call("session/fork", session());
    let Intent::ForkSession { ticket, .. } = test_connection.intent() else { panic!("no fork") };
    test_connection.connection.handle_opened(ticket, view(&script.log), catalog());
    assert_eq!(test_connection.lines()[0]["result"]["sessionId"], json!(build::session(1)));
    test_connection.call(
        "session/set_config_option",
        json!({ "sessionId": build::session(1), "configId": "mode", "value": "planner" }),
    );
    let Intent::Command { ticket: Some(ticket), .. } = test_connection.intent() else { panic!("no command") };
    test_connection.connection.handle_accepted(ticket, Accepted::Done);
    let options = test_connection.line()["result"]["configOptions"].clone();
    assert_eq!((&options[0]["configId"], &options[0]["currentValue"]), (&json!("mode"), &json!("planner")));
}

#[test]
fn a_login_takes_a_logout_back() {
    let mut test_connection = ready();
    test_connection.call("auth/logout", json!({}));
    assert_eq!(test_connection.line()["result"], json!({}));
    test_connection.call("session/new", json!({ "cwd": "/w" }));
    assert_eq!(code(&test_connection.line()), -32000);
    test_connection.call("auth/login", json!({ "methodId": "key" }));
    assert_eq!(test_connection.line()["result"], json!({}));
}

#[test]
fn a_turn_ends_with_what_it_used_and_a_cancel_ends_it_too() {
    let mut script = SessionScript::begin();
    let mut test_connection = open(&script);
    for cancel in [None, Some("session/cancel"), Some("$/cancel_request")] {
        let prompt = json!([{ "type": "text", "text": "hi" }]);
        let id = test_connection.call("session/prompt", json!({ "sessionId": build::session(1), "prompt": prompt }));
        let Intent::Command { command: command @ Command::Prompt { run, .. }, .. } = test_connection.intent() else {
            panic!("no prompt")
        };
        script.command(command).unwrap();
        let usage = Usage { model: "demo/scripted".to_owned(), input: 10, output: 5, ..Usage::default() };
        script.report(run, Report::UsageAdded(usage));
        let stop = match cancel {
            None => "end_turn",
            Some(method) => {
                test_connection.send(&json!({ "jsonrpc": "2.0", "method": method,
                    "params": { "sessionId": build::session(1), "requestId": id } }));
                let Intent::Command { command, .. } = test_connection.intent() else { panic!("no cancel: {method}") };
                script.command(command).unwrap();
                "cancelled"
            }
        };
        script.report(run, Report::Ended(Outcome::Completed { stop: StopReason::EndTurn }));
        test_connection.feed(&script.log);
        let idle = test_connection.lines().pop().unwrap()["params"]["update"].clone();
        let usage = json!({ "totalTokens": 15, "inputTokens": 10, "outputTokens": 5 });
        let wanted = json!({ "sessionUpdate": "state_update", "state": "idle", "stopReason": stop, "usage": usage });
        assert_eq!(idle, wanted);
    }
}

#[test]
fn an_address_that_was_visited_is_told_to_be_complete() {
    let mut script = asking();
    let visit = Question {
        ask: QuestionKind::Visit { url: "https://example.org".to_owned() },
        call: None,
        origin: QuestionOrigin::Held,
        ..build::permission(build::question_id(8), build::call_id(6))
    };
    script.report(build::run(5), Report::Asked(visit));
    let mut test_connection = open(&script);
    let origin = gander_domain::RunOrigin { by: Principal::owner(), door: "x".to_owned() };
    let reply = Reply::Filled { content: json!({}) };
    script.command(Command::Answer { question: build::question_id(8), reply, origin, meta: None }).unwrap();
    test_connection.feed(&script.log);
    let complete = test_connection.lines().into_iter().find(|line| line["method"] == "elicitation/complete").unwrap();
    assert_eq!(complete["params"], json!({ "elicitationId": build::question_id(8) }));
}

#[test]
fn errors_are_those_of_version_1_and_one_more() {
    let mut test_connection = fresh();
    test_connection.call("initialize", json!({ "protocolVersion": 0, "info": { "name": "c", "version": "1" } }));
    let line = test_connection.line();
    assert_eq!((code(&line), &line["error"]["data"]["supported"]), (-32022, &json!([1, 2])));
    let mut test_connection = open(&asking());
    test_connection.raw(b"{nope");
    assert_eq!(code(&test_connection.line()), -32700);
    test_connection.raw(br#"{"jsonrpc":"1.0","id":4,"method":"session/list"}"#);
    assert_eq!(code(&test_connection.line()), -32600);
    test_connection.call("session/close", json!({ "sessionId": "no session of ours" }));
    assert_eq!(code(&test_connection.line()), -32002);
    test_connection.call("session/list", json!({}));
    let Intent::ListSessions { ticket, .. } = test_connection.intent() else { panic!("no list") };
    test_connection.connection.handle_refusal(ticket, &ServiceError::Internal("broken".to_owned()));
    assert_eq!(code(&test_connection.line()), -32603);
    let id = test_connection.call("session/list", json!({}));
    test_connection.send(&json!({ "jsonrpc": "2.0", "method": "$/cancel_request", "params": { "requestId": id } }));
    assert_eq!(code(&test_connection.line()), -32800);
}

#[test]
fn no_call_and_no_terminal_is_cancelled_alone() {
    let mut test_connection = open(&asking());
    let mut recorder = ConformanceRecorder::for_protocol("acp v2");
    for (method, key) in [("tool_call/cancel", "toolCallId"), ("terminal/cancel", "terminalId")] {
        test_connection.call(method, json!({ "sessionId": build::session(1), key: question() }));
        assert_eq!(code(&test_connection.line()), -32602);
        recorder.refuses("client to agent", method, "none offers it: a turn is cancelled as a whole");
        let mut first = TestConnection::ready();
        first.call(method, json!({}));
        assert_eq!(code(&first.line()), -32601);
    }
}
