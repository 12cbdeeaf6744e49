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

use crate::common::{Door, asking, catalog, code, profile, question, view};

fn fresh() -> Door {
    let login = LoginMethod { id: "key".to_owned(), name: "Key".to_owned() };
    let mut door = Door::fresh();
    door.connection = Connection::new(AgentProfile { v2: true, logins: vec![login], ..profile() }, Principal::owner());
    door
}

fn ready() -> Door {
    let mut door = fresh();
    let capabilities = json!({ "elicitation": { "form": {}, "url": {} } });
    let info = json!({ "name": "c", "version": "1" });
    door.call("initialize", json!({ "protocolVersion": 2, "info": info, "capabilities": capabilities }));
    door.lines();
    door
}

/// A client with this session open.
fn open(script: &SessionScript) -> Door {
    let mut door = ready();
    door.call("session/new", json!({ "cwd": "/w" }));
    let Intent::NewSession { ticket, .. } = door.intent() else { panic!("no session") };
    door.connection.handle_opened(ticket, view(&script.log), catalog());
    door.lines();
    door
}

fn session() -> Value {
    json!({ "sessionId": build::session(1), "cwd": "/w" })
}

#[test]
fn sessions_are_listed_looked_at_put_away_and_left() {
    let script = SessionScript::begin();
    let mut door = open(&script);
    door.call("session/list", json!({}));
    let Intent::ListSessions { ticket, .. } = door.intent() else { panic!("no list") };
    door.connection.handle_listed(ticket, vec![], None);
    assert_eq!(door.line()["result"], json!({ "sessions": [] }));
    door.call("session/status", session());
    let Intent::SessionStatus { ticket, .. } = door.intent() else { panic!("no status") };
    door.connection.handle_status(ticket, Presence::Open);
    assert_eq!(door.line()["result"], json!({ "status": "open" }));
    for (method, result) in [("session/unarchive", json!({})), ("session/set_title", json!({ "title": "T" }))] {
        door.call(method, json!({ "sessionId": build::session(1), "title": "T" }));
        let Intent::Command { ticket: Some(ticket), .. } = door.intent() else { panic!("no command") };
        door.connection.handle_accepted(ticket, Accepted::Done);
        assert_eq!(door.line()["result"], result);
    }
    for method in ["session/archive", "session/close", "session/delete"] {
        door.call(method, session());
        let (Intent::ArchiveSession { ticket, .. }
        | Intent::CloseSession { ticket, .. }
        | Intent::DeleteSession { ticket, .. }) = door.intent()
        else {
            panic!("{method} asks for nothing")
        };
        door.connection.handle_done(ticket);
        assert_eq!(door.line()["result"], json!({}));
    }
}

#[test]
fn a_fork_is_a_new_session_and_options_are_answered_whole() {
    let script = SessionScript::begin();
    let mut door = open(&script);
    door.call("session/fork", session());
    let Intent::ForkSession { ticket, .. } = door.intent() else { panic!("no fork") };
    door.connection.handle_opened(ticket, view(&script.log), catalog());
    assert_eq!(door.lines()[0]["result"]["sessionId"], json!(build::session(1)));
    door.call(
        "session/set_config_option",
        json!({ "sessionId": build::session(1), "configId": "mode", "value": "planner" }),
    );
    let Intent::Command { ticket: Some(ticket), .. } = door.intent() else { panic!("no command") };
    door.connection.handle_accepted(ticket, Accepted::Done);
    let options = door.line()["result"]["configOptions"].clone();
    assert_eq!((&options[0]["configId"], &options[0]["currentValue"]), (&json!("mode"), &json!("planner")));
}

#[test]
fn a_login_takes_a_logout_back() {
    let mut door = ready();
    door.call("auth/logout", json!({}));
    assert_eq!(door.line()["result"], json!({}));
    door.call("session/new", json!({ "cwd": "/w" }));
    assert_eq!(code(&door.line()), -32000);
    door.call("auth/login", json!({ "methodId": "key" }));
    assert_eq!(door.line()["result"], json!({}));
}

#[test]
fn a_turn_ends_with_what_it_used_and_a_cancel_ends_it_too() {
    let mut script = SessionScript::begin();
    let mut door = open(&script);
    for cancel in [None, Some("session/cancel"), Some("$/cancel_request")] {
        let prompt = json!([{ "type": "text", "text": "hi" }]);
        let id = door.call("session/prompt", json!({ "sessionId": build::session(1), "prompt": prompt }));
        let Intent::Command { command: command @ Command::Prompt { run, .. }, .. } = door.intent() else {
            panic!("no prompt")
        };
        script.command(command).unwrap();
        let usage = Usage { model: "demo/scripted".to_owned(), input: 10, output: 5, ..Usage::default() };
        script.report(run, Report::UsageAdded(usage));
        let stop = match cancel {
            None => "end_turn",
            Some(method) => {
                door.send(&json!({ "jsonrpc": "2.0", "method": method,
                    "params": { "sessionId": build::session(1), "requestId": id } }));
                let Intent::Command { command, .. } = door.intent() else { panic!("no cancel: {method}") };
                script.command(command).unwrap();
                "cancelled"
            }
        };
        script.report(run, Report::Ended(Outcome::Completed { stop: StopReason::EndTurn }));
        door.feed(&script.log);
        let idle = door.lines().pop().unwrap()["params"]["update"].clone();
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
    let mut door = open(&script);
    let origin = gander_domain::RunOrigin { by: Principal::owner(), door: "x".to_owned() };
    let reply = Reply::Filled { content: json!({}) };
    script.command(Command::Answer { question: build::question_id(8), reply, origin, meta: None }).unwrap();
    door.feed(&script.log);
    let complete = door.lines().into_iter().find(|line| line["method"] == "elicitation/complete").unwrap();
    assert_eq!(complete["params"], json!({ "elicitationId": build::question_id(8) }));
}

#[test]
fn errors_are_those_of_version_1_and_one_more() {
    let mut door = fresh();
    door.call("initialize", json!({ "protocolVersion": 0, "info": { "name": "c", "version": "1" } }));
    let line = door.line();
    assert_eq!((code(&line), &line["error"]["data"]["supported"]), (-32022, &json!([1, 2])));
    let mut door = open(&asking());
    door.raw(b"{nope");
    assert_eq!(code(&door.line()), -32700);
    door.raw(br#"{"jsonrpc":"1.0","id":4,"method":"session/list"}"#);
    assert_eq!(code(&door.line()), -32600);
    door.call("session/close", json!({ "sessionId": "no session of ours" }));
    assert_eq!(code(&door.line()), -32002);
    door.call("session/list", json!({}));
    let Intent::ListSessions { ticket, .. } = door.intent() else { panic!("no list") };
    door.connection.handle_refusal(ticket, &ServiceError::Internal("broken".to_owned()));
    assert_eq!(code(&door.line()), -32603);
    let id = door.call("session/list", json!({}));
    door.send(&json!({ "jsonrpc": "2.0", "method": "$/cancel_request", "params": { "requestId": id } }));
    assert_eq!(code(&door.line()), -32800);
}

#[test]
fn no_call_and_no_terminal_is_cancelled_alone() {
    let mut door = open(&asking());
    let mut witness = ConformanceRecorder::for_protocol("acp v2");
    for (method, key) in [("tool_call/cancel", "toolCallId"), ("terminal/cancel", "terminalId")] {
        door.call(method, json!({ "sessionId": build::session(1), key: question() }));
        assert_eq!(code(&door.line()), -32602);
        witness.refuses("client to agent", method, "none offers it: a turn is cancelled as a whole");
        let mut first = Door::ready();
        first.call(method, json!({}));
        assert_eq!(code(&first.line()), -32601);
    }
}
