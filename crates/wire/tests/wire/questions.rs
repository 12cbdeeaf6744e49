//! Questions and the editor's services: what is asked of a client, and what its answers mean.

#![allow(clippy::unwrap_used)]

use crate::common::{TestConnection, asking, catalog, question, short, view};
use gander_domain::{Accepted, Command};
use gander_testkit::{SessionScript, build};
use gander_wire::acp::host_calls::TerminalExit;
use gander_wire::acp::{HostAnswer, HostCall, HostCallError, Intent, ReminderForm, Withdrawal};
use serde_json::{Value, json};

#[test]
fn an_open_question_is_asked_after_resume() {
    let script = asking();
    let mut test_connection = TestConnection::ready();
    test_connection.call("session/resume", json!({ "sessionId": build::session(1), "cwd": "/w" }));
    let Intent::ResumeSession { ticket, .. } = test_connection.intent() else { panic!("no resume") };
    test_connection.connection.handle_opened(ticket, view(&script.log), catalog());
    assert_eq!(
        short(&test_connection.lines()),
        ["result other", "session/request_permission", "available_commands_update"]
    );
}

/// A client that offers nothing, asked a question; gives what it is reminded with.
fn remind(test_connection: &mut TestConnection, form: ReminderForm) -> Vec<Value> {
    test_connection.lines();
    test_connection.connection.remind_of_question((build::session(1), build::question_id(7)), form);
    test_connection.lines()
}

#[test]
fn who_is_silent_is_told_once_what_waits_and_who_answers_is_not() {
    let mut script = asking();
    let mut silent = TestConnection::plain(&script.log[..1]);
    silent.feed(&script.log[1..]);
    assert_eq!(silent.connection.poll_asked(), Some((build::session(1), build::question_id(7))));
    assert_eq!(silent.connection.poll_asked(), None, "each question comes once");
    let told = remind(&mut silent, ReminderForm::Update);
    assert_eq!(short(&told), ["agent_message_chunk"]);
    assert!(told[0].to_string().contains(&format!("gander watch {}", build::session(1))), "{told:?}");
    let mut able = TestConnection::open(&script.log[..1]);
    able.feed(&script.log[1..]);
    assert_eq!(remind(&mut able, ReminderForm::Update), Vec::<Value>::new(), "who shows notices shows questions");
    let chosen = json!({ "outcome": { "outcome": "selected", "optionId": "allow" } });
    silent.send(&json!({ "jsonrpc": "2.0", "id": question(), "result": chosen }));
    let Intent::Command { command, .. } = silent.intent() else { panic!("no answer") };
    assert_eq!(remind(&mut silent, ReminderForm::Update), Vec::<Value>::new(), "it has shown that it answers");
    script.command(command).unwrap();
    silent.feed(&script.log);
    assert_eq!(remind(&mut silent, ReminderForm::Update), Vec::<Value>::new(), "nothing waits any more");
}

#[test]
fn a_client_without_a_stream_is_told_by_the_answer_to_its_prompt() {
    let script = asking();
    let mut test_connection = TestConnection::plain(&script.log[..1]);
    test_connection.prompt(test_connection.session(), build::run(5));
    test_connection.feed(&script.log[1..]);
    let told = remind(&mut test_connection, ReminderForm::PromptAnswer);
    assert_eq!(
        (told.len(), &told[0]["result"]["stopReason"], &told[0]["result"]["question"]["id"]),
        (1, &json!("awaiting"), &json!(question()))
    );
    assert!(!test_connection.connection.is_busy());
}

#[test]
fn two_clients_are_asked_the_first_answer_wins_and_the_other_is_told() {
    let mut script = asking();
    let (mut first, mut second) = (TestConnection::open(&script.log[..1]), TestConnection::open(&script.log[..1]));
    first.feed(&script.log[1..]);
    second.feed(&script.log[1..]);
    assert_eq!(first.texts().last(), second.texts().last(), "the same question under the same id");
    let answer = |option: &str| json!({ "jsonrpc": "2.0", "id": question(), "result": { "outcome": { "outcome": "selected", "optionId": option } } });
    first.send(&answer("allow"));
    second.send(&answer("reject"));
    let mut take = |test_connection: &mut TestConnection| {
        let Intent::Command { command, ticket: None, .. } = test_connection.intent() else { panic!("no answer") };
        script.command(command)
    };
    assert_eq!(take(&mut first), Ok(Accepted::Done));
    assert!(take(&mut second).is_err());
    let head = script.log.len() - 1;
    first.feed(&script.log[head..]);
    second.feed(&script.log[head..]);
    assert_eq!((first.texts().len(), second.texts().len()), (0, 0), "both have answered, nobody is asked any more");
}

#[test]
fn a_client_that_did_not_answer_is_told_that_somebody_else_did() {
    let mut script = asking();
    let mut test_connection = TestConnection::open(&script.log);
    test_connection.lines();
    let reply = gander_domain::Reply::Chosen { choice: "allow".into(), kind: gander_domain::ChoiceKind::AllowOnce };
    script
        .command(Command::Answer { question: build::question_id(7), reply, origin: build::origin(), meta: None })
        .unwrap();
    test_connection.feed(&script.log);
    let line = test_connection.line();
    assert_eq!((&line["method"], &line["params"]["requestId"]), (&json!("$/cancel_request"), &json!(question())));
    let late = json!({ "jsonrpc": "2.0", "id": question(), "result": { "outcome": { "outcome": "selected", "optionId": "allow" } } });
    test_connection.send(&late);
    assert_eq!(
        (test_connection.connection.poll_intent(), test_connection.connection.counters().stray_answers),
        (None, 1)
    );
}

#[test]
fn only_a_chosen_option_is_an_answer() {
    let cancelled = json!({ "result": { "outcome": { "outcome": "cancelled" } } });
    let refused = json!({ "error": { "code": -32601, "message": "method not found" } });
    for (mut answer, expected) in [(cancelled, Withdrawal::Cancelled), (refused, Withdrawal::Failed)] {
        let mut test_connection = TestConnection::open(&asking().log);
        answer["id"] = json!(question());
        test_connection.send(&answer);
        let expected = Intent::Withdrew { session: build::session(1), question: build::question_id(7), how: expected };
        assert_eq!(test_connection.intent(), expected);
    }
}

#[test]
fn an_option_that_is_not_offered_is_asked_again_and_the_next_answer_counts() {
    let answer = |result: Value| json!({ "jsonrpc": "2.0", "id": question(), "result": result });
    let selected = |option: &str| answer(json!({ "outcome": { "outcome": "selected", "optionId": option } }));
    let unfit = [
        (selected("nobody offered this"), "no such option: nobody offered this"),
        (answer(json!({})), "the result is no outcome of session/request_permission"),
        (answer(json!([])), "the result is no outcome of session/request_permission"),
    ];
    for (wrong, why) in unfit {
        let log = asking().log;
        let mut test_connection = TestConnection::open(&log[..1]);
        test_connection.feed(&log[1..]);
        let asked = test_connection.lines().pop().unwrap();
        test_connection.send(&wrong);
        let mut again = test_connection.line();
        assert_eq!(again["params"].as_object_mut().unwrap().remove("_meta"), Some(json!({ "gander/refused": why })));
        assert_eq!(
            (again, test_connection.connection.poll_intent()),
            (asked, None),
            "the same question under the same id"
        );
        test_connection.send(&selected("allow"));
        let Intent::Command { command: Command::Answer { question, .. }, .. } = test_connection.intent() else {
            panic!("no answer")
        };
        assert_eq!(question, build::question_id(7));
    }
}

#[test]
fn a_client_that_never_gets_it_right_is_not_asked_for_ever() {
    let mut test_connection = TestConnection::open(&asking().log);
    test_connection.lines();
    let selected = |option: &str| json!({ "jsonrpc": "2.0", "id": question(), "result": { "outcome": { "outcome": "selected", "optionId": option } } });
    let asked: usize = (0..100)
        .map(|_| {
            test_connection.send(&selected("x"));
            test_connection.lines().len()
        })
        .sum();
    assert_eq!(asked, 8);
    test_connection.send(&selected("allow"));
    assert!(
        matches!(test_connection.intent(), Intent::Command { command: Command::Answer { .. }, .. }),
        "its answer still counts"
    );
}

#[test]
fn the_editor_lends_its_files_and_terminals() {
    let mut test_connection = TestConnection::open(&SessionScript::begin().log);
    let terminal = || "t1".to_owned();
    let create = HostCall::CreateTerminal {
        command: "ls".into(),
        args: vec!["-l".into()],
        env: vec![("A".into(), "b".into())],
        cwd: Some("/w".into()),
        output_limit: Some(9),
    };
    let exit = TerminalExit { code: Some(3), signal: None };
    let cases = [
        (
            HostCall::ReadFile { path: "/a".into(), line: Some(2), limit: None },
            "fs/read_text_file",
            json!({ "content": "x" }),
            HostAnswer::Text("x".into()),
        ),
        (
            HostCall::WriteFile { path: "/a".into(), content: "y".into() },
            "fs/write_text_file",
            json!({}),
            HostAnswer::Done,
        ),
        (create, "terminal/create", json!({ "terminalId": "t1" }), HostAnswer::Terminal("t1".into())),
        (
            HostCall::Output { terminal: terminal() },
            "terminal/output",
            json!({ "output": "o", "truncated": true, "exitStatus": { "exitCode": 3 } }),
            HostAnswer::Output { text: "o".into(), truncated: true, exit: Some(exit.clone()) },
        ),
        (
            HostCall::WaitForExit { terminal: terminal() },
            "terminal/wait_for_exit",
            json!({ "exitCode": 3 }),
            HostAnswer::Exit(exit),
        ),
        (HostCall::Kill { terminal: terminal() }, "terminal/kill", Value::Null, HostAnswer::Done),
        (HostCall::Release { terminal: terminal() }, "terminal/release", json!({}), HostAnswer::Done),
    ];
    for (call, method, result, answer) in cases {
        let id = test_connection.connection.send_host_call(build::session(1), call).unwrap();
        let line = test_connection.line();
        assert_eq!((&line["method"], &line["params"]["sessionId"]), (&json!(method), &json!(build::session(1))));
        test_connection.send(&json!({ "jsonrpc": "2.0", "id": line["id"], "result": result }));
        assert_eq!(test_connection.intent(), Intent::HostReply { call: id, result: Ok(answer) });
    }
}

#[test]
fn an_editor_is_asked_only_for_what_it_offers_and_its_errors_are_told() {
    let read = || HostCall::ReadFile { path: "/a".into(), line: None, limit: None };
    let mut poor = TestConnection::fresh();
    poor.call("initialize", json!({ "protocolVersion": 1 }));
    poor.lines();
    assert_eq!(poor.connection.send_host_call(build::session(1), read()), Err(HostCallError::NotOffered));
    assert_eq!(poor.texts(), Vec::<String>::new());

    let mut test_connection = TestConnection::open(&SessionScript::begin().log);
    let call = test_connection.connection.send_host_call(build::session(1), read()).unwrap();
    let id = test_connection.line()["id"].clone();
    test_connection.send(&json!({ "id": id, "result": { "content": 7 } }));
    assert!(
        matches!(test_connection.intent(), Intent::HostReply { call: found, result: Err(HostCallError::Unreadable(_)) } if found == call)
    );
    let call = test_connection.connection.send_host_call(build::session(1), read()).unwrap();
    test_connection.lines();
    test_connection.connection.cancel_host_call(call);
    assert_eq!(short(&test_connection.lines()), ["$/cancel_request"]);
}

#[test]
fn a_client_that_leaves_lets_go_of_everything_but_the_run() {
    let script = asking();
    let mut test_connection = TestConnection::open(&script.log);
    let call =
        test_connection.connection.send_host_call(build::session(1), HostCall::Kill { terminal: "t".into() }).unwrap();
    test_connection.connection.handle_disconnect();
    let mut intents: Vec<String> =
        std::iter::from_fn(|| test_connection.connection.poll_intent()).map(|intent| format!("{intent:?}")).collect();
    intents.sort();
    let session = build::session(1);
    let mut expected = [
        Intent::Withdrew { session, question: build::question_id(7), how: Withdrawal::Failed },
        Intent::HostReply { call, result: Err(HostCallError::Gone) },
        Intent::Detach { session },
    ]
    .map(|intent| format!("{intent:?}"));
    expected.sort();
    assert_eq!(intents, expected);
}
