//! Laws of the door: replay is live at every split, and nothing that arrives stops a connection.

#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm)]

use std::path::Path;

use gander_domain::{
    ChoiceKind, Command, Delta, DeltaKind, Entry, Event, IfBusy, Outcome, Part, Plan, Recovery, Reply, Report,
    ResetReason, ServiceError, StopReason, ToolEnd, ToolGate, ToolResult, Usage,
};
use gander_testkit::vectors::scenarios;
use gander_testkit::{SessionScript, build};
use gander_wire::acp::Intent;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::common::{TestConnection, items};

/// What a client holds that watched from the first entry, fed in batches of these sizes.
fn watched(log: &[Entry], sizes: &[usize]) -> Vec<Value> {
    let mut test_connection = TestConnection::open(&log[..1]);
    feed(&mut test_connection, &log[1..], sizes);
    held(&mut test_connection)
}

/// What a client holds that loaded the session while it was at `head`, fed in batches of these sizes.
fn loaded(log: &[Entry], head: usize, sizes: &[usize]) -> Vec<Value> {
    let mut test_connection = TestConnection::loading(&log[..head]);
    feed(&mut test_connection, log, sizes);
    held(&mut test_connection)
}

fn feed(test_connection: &mut TestConnection, mut log: &[Entry], sizes: &[usize]) {
    let mut sizes = sizes.iter().copied().cycle();
    while !log.is_empty() {
        let (batch, rest) = log.split_at(sizes.next().unwrap_or(1).clamp(1, log.len()));
        test_connection.feed(batch);
        log = rest;
    }
}

/// Notices are no part of a history.
fn held(test_connection: &mut TestConnection) -> Vec<Value> {
    items(&test_connection.lines()).into_iter().filter(|item| item["sessionUpdate"] != "notice").collect()
}

fn resets(log: &[Entry]) -> bool {
    log.iter().any(|entry| match &entry.event {
        Event::HistoryReset { reason, .. } => *reason != ResetReason::Compacted,
        _ => false,
    })
}

#[test]
fn law_7_replay_is_live_for_every_vector_at_every_head_and_split() {
    let mut compared = 0;
    for scenario in scenarios(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors")).unwrap() {
        let log = &scenario.log;
        let live = watched(log, &[1]);
        for size in 1..=log.len() {
            assert_eq!(watched(log, &[size]), live, "{} in batches of {size}", scenario.name);
            if !resets(log) {
                assert_eq!(loaded(log, size, &[1]), live, "{} loaded at {size}", scenario.name);
                assert_eq!(loaded(log, log.len(), &[size]), live, "{} loaded in batches of {size}", scenario.name);
                compared += 1;
            }
        }
    }
    assert!(compared > 100, "{compared}");
}

#[test]
fn law_7_holds_for_what_a_reset_leaves() {
    for scenario in scenarios(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors")).unwrap() {
        let log = &scenario.log;
        for size in 1..=log.len() {
            let whole = loaded(log, log.len(), &[log.len()]);
            assert_eq!(loaded(log, log.len(), &[size]), whole, "{} in batches of {size}", scenario.name);
        }
    }
}

/// One thing that happens to a session.
#[derive(Clone, Debug)]
enum Step {
    Prompt,
    Say(Vec<(bool, String)>, bool),
    Tool { asked: bool, ends: bool },
    Answer(bool),
    Plan,
    Usage,
    Title(String),
    Cancel,
    End,
    Crash,
}

fn step() -> impl Strategy<Value = Step> {
    let text = "[a-z\"\\\\ \n\u{e4}\u{1F600}]{0,12}";
    prop_oneof![
        2 => Just(Step::Prompt),
        5 => (prop::collection::vec((any::<bool>(), text), 0..6), any::<bool>()).prop_map(|(deltas, done)| Step::Say(deltas, done)),
        3 => (any::<bool>(), any::<bool>()).prop_map(|(asked, ends)| Step::Tool { asked, ends }),
        2 => any::<bool>().prop_map(Step::Answer),
        1 => Just(Step::Plan),
        1 => Just(Step::Usage),
        1 => text.prop_map(Step::Title),
        1 => Just(Step::Cancel),
        2 => Just(Step::End),
        1 => Just(Step::Crash),
    ]
}

fn play(steps: &[Step]) -> Vec<Entry> {
    let mut script = SessionScript::begin();
    for (n, step) in steps.iter().enumerate() {
        let n = n as u128 + 1;
        let active = script.session.view().run.as_ref().map(|run| run.id);
        let question = script.session.view().run.as_ref().and_then(|run| run.questions.first().map(|first| first.id));
        match (step, active) {
            (Step::Prompt, _) => drop(script.prompt(build::run(n), IfBusy::Queue)),
            (Step::Title(title), _) => drop(script.command(Command::SetTitle { title: title.clone() })),
            (Step::Cancel, _) => drop(script.command(Command::Cancel { run: None, origin: build::origin() })),
            (Step::Crash, _) => script.crash(&Recovery::default()),
            (_, None) => {}
            (Step::Say(deltas, done), Some(run)) => {
                script.report(
                    run,
                    Report::MessageStarted { message: gander_domain::MessageId::new(build::run(n).uuid()) },
                );
                let deltas = deltas.iter().map(|(thought, text)| Delta {
                    growth: if *thought { DeltaKind::Thought } else { DeltaKind::Text },
                    text: text.clone(),
                });
                script.report(run, Report::Deltas(deltas.collect()));
                if *done {
                    let tail = vec![Part::Link { uri: "file:///a".into(), name: "a".into(), mime: None, more: None }];
                    script.report(run, Report::MessageDone { tail, native: None, interrupted: false });
                }
            }
            (Step::Tool { asked, ends }, Some(run)) => {
                let call = build::shell(build::call_id(n));
                let gate = if *asked {
                    ToolGate::Ask(build::permission(build::question_id(n), call.id))
                } else {
                    ToolGate::Open
                };
                script.report(run, Report::ToolWanted { call, gate });
                if *ends {
                    let result = ToolResult::text(ToolEnd::Completed, "hi");
                    script.report(run, Report::ToolDone { call: build::call_id(n), result });
                }
            }
            (Step::Answer(yes), Some(_)) => {
                let Some(question) = question else { continue };
                let (choice, kind) =
                    if *yes { ("allow", ChoiceKind::AllowOnce) } else { ("reject", ChoiceKind::RejectOnce) };
                let reply = Reply::Chosen { choice: choice.into(), kind };
                drop(script.command(Command::Answer { question, reply, origin: build::origin(), meta: None }));
            }
            (Step::Plan, Some(run)) => script.report(run, Report::PlanSet(Plan::default())),
            (Step::Usage, Some(run)) => {
                let usage = Usage { model: "demo/x".into(), input: 1, output: 2, window: Some(9), ..Usage::default() };
                script.report(run, Report::UsageAdded(usage));
            }
            (Step::End, Some(run)) => {
                script.report(run, Report::Ended(Outcome::Completed { stop: StopReason::EndTurn }));
            }
        }
    }
    script.log
}

fn config() -> ProptestConfig {
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(256);
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

/// The connection still answers.
fn answers(test_connection: &mut TestConnection) -> bool {
    test_connection.lines();
    while test_connection.connection.poll_intent().is_some() {}
    test_connection.send(&json!({ "jsonrpc": "2.0", "id": "still there?", "method": "no/such" }));
    let line = test_connection.line();
    line["id"] == "still there?" && line["error"]["code"] == -32601
}

/// A server that has nothing.
fn refuse_all(test_connection: &mut TestConnection) {
    while let Some(intent) = test_connection.connection.poll_intent() {
        let ticket = match intent {
            Intent::NewSession { ticket, .. }
            | Intent::LoadSession { ticket, .. }
            | Intent::ResumeSession { ticket, .. }
            | Intent::Attach { ticket, .. }
            | Intent::ListSessions { ticket, .. }
            | Intent::CloseSession { ticket, .. }
            | Intent::DeleteSession { ticket, .. }
            | Intent::Extension { ticket, .. }
            | Intent::Command { ticket: Some(ticket), .. } => ticket,
            _ => continue,
        };
        test_connection.connection.handle_refusal(ticket, &ServiceError::Unavailable("closed".to_owned()));
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn law_7_replay_is_live_for_any_session(
        steps in prop::collection::vec(step(), 0..40),
        first in prop::collection::vec(1_usize..9, 1..5),
        second in prop::collection::vec(1_usize..40, 1..5),
        head in any::<prop::sample::Index>(),
    ) {
        let log = play(&steps);
        let live = watched(&log, &first);
        prop_assert_eq!(&watched(&log, &second), &live);
        prop_assert_eq!(&loaded(&log, head.index(log.len()) + 1, &second), &live);
    }

    #[test]
    fn every_request_gets_exactly_one_answer(messages in prop::collection::vec(hostile(), 0..24)) {
        let mut test_connection = TestConnection::open(&play(&[Step::Prompt]));
        for (id, message) in messages.iter().enumerate() {
            let mut message = message.clone();
            message["id"] = json!(100 + id);
            message["method"] = message.get("method").cloned().unwrap_or_else(|| json!("session/list"));
            test_connection.send(&message);
            refuse_all(&mut test_connection);
        }
        let mut answered: Vec<Value> = test_connection.lines().iter().filter(|line| line.get("method").is_none()).map(|line| line["id"].clone()).collect();
        answered.sort_by_key(Value::as_u64);
        let expected: Vec<Value> = (0..messages.len()).map(|id| json!(100 + id)).collect();
        prop_assert_eq!(answered, expected);
    }

    #[test]
    fn arbitrary_bytes_never_stop_a_connection(messages in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..64), 0..16)) {
        let mut test_connection = TestConnection::ready();
        for message in &messages {
            test_connection.raw(message);
        }
        prop_assert!(answers(&mut test_connection));
    }

    #[test]
    fn arbitrary_json_never_stops_a_connection(messages in prop::collection::vec(hostile(), 0..16)) {
        let mut test_connection = TestConnection::open(&play(&[Step::Prompt, Step::Tool { asked: true, ends: false }]));
        for message in &messages {
            test_connection.send(message);
        }
        prop_assert!(answers(&mut test_connection));
    }
}

/// Messages that look right from afar.
fn hostile() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<i64>().prop_map(Value::from),
        any::<bool>().prop_map(Value::from),
        Just(json!(build::session(1))),
        Just(json!(build::question_id(2))),
        "\\PC{0,8}".prop_map(Value::from),
    ];
    let value = leaf.prop_recursive(3, 24, 4, |inner| {
        let key = prop::sample::select(vec!["sessionId", "prompt", "cwd", "type", "text", "outcome", "optionId", "x"]);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((key, inner), 0..4)
                .prop_map(|members| members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()),
        ]
    });
    let method = prop::sample::select(vec![
        "initialize",
        "session/new",
        "session/load",
        "session/prompt",
        "session/cancel",
        "session/close",
        "session/list",
        "session/set_mode",
        "$/cancel_request",
        "_gander/x",
        "session/update",
    ]);
    let member = prop_oneof![
        value.clone().prop_map(|value| ("id", value)),
        method.prop_map(|method| ("method", json!(method))),
        value.clone().prop_map(|value| ("params", value)),
        value.clone().prop_map(|value| ("result", value)),
        value.prop_map(|value| ("error", value)),
    ];
    prop::collection::vec(member, 0..5)
        .prop_map(|members| members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
}
