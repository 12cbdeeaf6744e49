//! Bad input: one row of `data/bad-inputs.tsv` per line, each with the stated answer and nothing else done.
//!
//! In the input `%XX` is a byte, `{S}` an open session, `{U}` an unknown one, `{Q}` a question,
//! `{REP:n:x}` n times x and `{MEMBERS:n}` n members. Expected: `code id [reason]` or `ok id` for each answer and
//! `asks method` for each request, in order, then what the server is asked to do.

#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm)]

use gander_domain::{CommandError, IfBusy, Report, ServiceError, ToolGate};
use gander_testkit::{SessionScript, build};
use gander_wire::acp::Intent;
use gander_wire::jsonrpc::{Line, Lines};
use serde_json::{Value, json};

use crate::common::{TestConnection, catalog, code, view};

#[test]
fn every_row_gets_its_answer_and_the_next_line_works() {
    let table = include_str!("../data/bad-inputs.tsv");
    let mut rows = 0;
    for row in table.lines().skip(1) {
        let columns: Vec<&str> = row.split('\t').collect();
        let [id, state, input, expected] = columns[..] else { panic!("not four columns: {row}") };
        let mut test_connection = in_state(state);
        write(&mut test_connection, &bytes(input));
        assert_eq!(outcome(&mut test_connection, state), expected, "{id}");
        test_connection.send(&json!({ "jsonrpc": "2.0", "id": "next", "method": "no/such" }));
        assert_eq!(outcome(&mut test_connection, state), "-32601 next", "after {id}");
        rows += 1;
    }
    assert!(rows >= 120, "{rows}");
}

#[test]
fn error_32700_is_told_of_text_that_is_not_json() {
    assert_eq!(answer("ready", b"{nope"), (-32700, Value::Null));
}

#[test]
fn error_32600_is_told_of_json_that_is_no_message() {
    assert_eq!(answer("ready", br#"{"jsonrpc":"1.0","id":4,"method":"session/list"}"#), (-32600, json!(4)));
}

#[test]
fn error_32601_is_told_of_an_unknown_method() {
    assert_eq!(answer("ready", br#"{"jsonrpc":"2.0","id":4,"method":"session/teleport"}"#), (-32601, json!(4)));
}

#[test]
fn error_32602_is_told_of_parameters_that_do_not_fit() {
    let request = br#"{"jsonrpc":"2.0","id":4,"method":"session/list","params":{"cursor":7}}"#;
    assert_eq!(answer("ready", request), (-32602, json!(4)));
}

#[test]
fn error_32603_is_told_of_what_broke_here() {
    let mut test_connection = in_state("ready");
    write(&mut test_connection, br#"{"jsonrpc":"2.0","id":4,"method":"session/list"}"#);
    let Intent::ListSessions { ticket, .. } = test_connection.intent() else { panic!("no list wanted") };
    test_connection.connection.handle_refusal(ticket, &ServiceError::Internal("disk is on fire".to_owned()));
    let line = test_connection.line();
    assert_eq!((code(&line), &line["id"]), (-32603, &json!(4)));
}

#[test]
fn error_32000_is_told_where_a_login_is_needed() {
    let mut test_connection = in_state("ready");
    test_connection.call("session/new", json!({}));
    let Intent::NewSession { ticket, .. } = test_connection.intent() else { panic!("no session wanted") };
    test_connection.connection.handle_refusal(ticket, &ServiceError::AuthRequired);
    assert_eq!(code(&test_connection.line()), -32000);
}

#[test]
fn j14_a_line_without_end_is_refused_once_and_dropped() {
    let mut test_connection = in_state("ready");
    let mut lines = Lines::with_limit(1000);
    for _ in 0..500 {
        lines.push(&[b'x'; 64]);
        drain(&mut test_connection, &mut lines);
    }
    lines.push(b"xx\n{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"no/such\"}\n");
    drain(&mut test_connection, &mut lines);
    assert_eq!(outcome(&mut test_connection, "ready"), "-32600 null, -32601 1");
}

#[test]
fn an_unknown_session_is_named_in_the_error() {
    let mut test_connection = in_state("ready");
    let id =
        test_connection.call("session/load", json!({ "sessionId": build::session(77), "cwd": "/w", "mcpServers": [] }));
    let Intent::LoadSession { ticket, session, .. } = test_connection.intent() else { panic!("no load wanted") };
    test_connection.connection.handle_refusal(ticket, &ServiceError::UnknownSession(session));
    let error = json!({ "code": -32002, "message": "session not found", "data": { "sessionId": build::session(77) } });
    assert_eq!(test_connection.line(), json!({ "jsonrpc": "2.0", "id": id, "error": error }));
}

fn answer(state: &str, input: &[u8]) -> (i64, Value) {
    let mut test_connection = in_state(state);
    write(&mut test_connection, input);
    let line = test_connection.line();
    (code(&line), line["id"].clone())
}

fn in_state(state: &str) -> TestConnection {
    let mut script = SessionScript::begin();
    match state {
        "fresh" => TestConnection::fresh(),
        "ready" => TestConnection::ready(),
        "open" => TestConnection::open(&script.log),
        "running" => {
            let mut test_connection = TestConnection::open(&script.log);
            test_connection.prompt(test_connection.session(), build::run(5));
            script.prompt(build::run(5), IfBusy::Refuse).unwrap();
            test_connection.feed(&script.log[1..]);
            test_connection
        }
        "asked" => {
            script.prompt(build::run(5), IfBusy::Refuse).unwrap();
            let call = build::shell(build::call_id(6));
            let gate = ToolGate::Ask(build::permission(build::question_id(7), call.id));
            script.report(build::run(5), Report::ToolWanted { call, gate });
            TestConnection::open(&script.log)
        }
        _ => panic!("unknown state: {state}"),
    }
}

fn write(test_connection: &mut TestConnection, input: &[u8]) {
    let mut lines = Lines::default();
    lines.push(input);
    lines.push(b"\n");
    drain(test_connection, &mut lines);
}

fn drain(test_connection: &mut TestConnection, lines: &mut Lines) {
    while let Some(line) = lines.next_line() {
        match line {
            Line::Whole(line) => test_connection.raw(line),
            Line::TooLong => test_connection.connection.refuse_oversized(),
        }
    }
}

/// Everything answered and wanted, in one line of text.
fn outcome(test_connection: &mut TestConnection, state: &str) -> String {
    let wants = serve(test_connection, state);
    let lines = test_connection.lines();
    let answers: Vec<String> = lines.iter().filter(|line| line["method"] != "session/update").map(summary).collect();
    [answers.join(", "), wants].iter().filter(|text| !text.is_empty()).cloned().collect::<Vec<_>>().join(" ")
}

fn summary(line: &Value) -> String {
    if let Some(method) = line["method"].as_str() {
        return format!("asks {method}");
    }
    let id = line["id"].as_str().map_or_else(|| line["id"].to_string(), str::to_owned);
    match line.get("error") {
        None => format!("ok {id}"),
        Some(error) => {
            let reason = error["data"]["reason"].as_str().filter(|reason| *reason != "not_initialized");
            format!("{} {id}{}", error["code"], reason.map(|reason| format!(" {reason}")).unwrap_or_default())
        }
    }
}

/// A server with one session, which may be busy, and one folder that is a file.
fn serve(test_connection: &mut TestConnection, state: &str) -> String {
    let mut wants = String::new();
    while let Some(intent) = test_connection.connection.poll_intent() {
        let debug = format!("{intent:?}");
        wants += &format!("wants {}", debug.split([' ', '{']).next().unwrap());
        let unknown = || ServiceError::UnknownSession(build::session(404));
        match intent {
            Intent::ListSessions { ticket, .. } => test_connection.connection.handle_listed(ticket, Vec::new(), None),
            Intent::NewSession { ticket, params } if params.cwd.as_deref() == Some("/file") => {
                test_connection.connection.handle_refusal(ticket, &ServiceError::BadWorkspace("/file".to_owned()));
            }
            Intent::NewSession { ticket, .. } | Intent::FirstSession { ticket } => {
                test_connection.connection.handle_opened(ticket, view(&SessionScript::begin().log), catalog());
            }
            Intent::LoadSession { ticket, .. }
            | Intent::ResumeSession { ticket, .. }
            | Intent::Attach { ticket, .. }
            | Intent::CloseSession { ticket, .. } => test_connection.connection.handle_refusal(ticket, &unknown()),
            Intent::Command { ticket: Some(ticket), .. } if state == "running" => {
                test_connection.connection.handle_refusal(ticket, &CommandError::RunActive(build::run(5)).into());
            }
            _ => {}
        }
    }
    wants
}

fn bytes(input: &str) -> Vec<u8> {
    let text = expand(input)
        .replace("{S}", &build::session(1).to_string())
        .replace("{U}", &build::session(404).to_string())
        .replace("{Q}", &build::question_id(7).to_string());
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let hex = (*first == b'%').then(|| u8::from_str_radix(std::str::from_utf8(&after[..2]).unwrap(), 16).unwrap());
        bytes.push(hex.unwrap_or(*first));
        rest = if hex.is_some() { &after[2..] } else { after };
    }
    bytes
}

fn expand(input: &str) -> String {
    let Some((before, rest)) = input.split_once("{REP:").or_else(|| input.split_once("{MEMBERS:")) else {
        return input.to_owned();
    };
    let (inside, after) = rest.split_once('}').unwrap();
    let middle = match inside.split_once(':') {
        Some((times, what)) => what.repeat(times.parse().unwrap()),
        None => {
            let members = (0..inside.parse().unwrap()).map(|n: u32| format!("\"m{n}\":{n}"));
            members.collect::<Vec<_>>().join(",")
        }
    };
    format!("{before}{middle}{}", expand(after))
}
