//! The Agent Communication Protocol: every scenario's runs as events, requests as they come in, and their errors.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::path::Path;

use gander_domain::{Entry, Event, Part, Role, RunId, SessionView};
use gander_testkit::build;
use gander_testkit::vectors::{Scenario, scenarios};
use gander_wire::acp_rest::projection::GENERIC_KINDS;
use gander_wire::acp_rest::{
    AcpRestDialect, AcpRestProjection, AcpRestRefusal, AcpRestRunRequest, HistoryMessage, RequestedSession,
    ResumeRequest, RunMode, RunStatus, content, question,
};
use serde_json::{Value, json};

/// Where the client would read what was put away.
const SHELF: &str = "https://here/acp-rest/sessions/1/artifacts";

fn all() -> Vec<Scenario> {
    scenarios(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors")).unwrap()
}

fn runs(log: &[Entry]) -> Vec<RunId> {
    let mut runs: Vec<RunId> = Vec::new();
    let begins = |entry: &&Entry| matches!(entry.event, Event::RunStarted { .. } | Event::RunQueued { .. });
    for run in log.iter().filter(begins).filter_map(|entry| entry.run) {
        if !runs.contains(&run) {
            runs.push(run);
        }
    }
    runs
}

/// All events of all runs, each run read by itself.
fn told(log: &[Entry]) -> Vec<String> {
    told_in(AcpRestDialect::Standard, log)
}

fn told_in(dialect: AcpRestDialect, log: &[Entry]) -> Vec<String> {
    let view = SessionView::from_created(&log[0]).unwrap();
    let mut lines = Vec::new();
    for run in runs(log) {
        let mut reading =
            AcpRestProjection::new(view.session, &view.settings.agent, run).with_artifacts_url(SHELF.to_owned());
        for entry in log {
            reading.project_entry(entry, &mut |event| match dialect {
                AcpRestDialect::Standard => lines.push(serde_json::to_string(event).unwrap()),
                AcpRestDialect::Goosed => lines.extend(dialect.event_objects(event).iter().map(Value::to_string)),
            });
        }
    }
    lines
}

#[test]
fn every_scenario_is_told_as_expected() {
    for scenario in all() {
        scenario.check("acp_rest.jsonl", &told(&scenario.log)).unwrap();
        let goosed = told_in(AcpRestDialect::Goosed, &scenario.log);
        scenario.check("acp_rest_goosed.jsonl", &goosed).unwrap();
    }
}

/// `docs/acp-rest.md` has a row for every kind, and every kind is in a scenario.
#[test]
fn every_kind_of_generic_event_is_documented_and_in_a_scenario() {
    let docs = include_str!("../../../../docs/acp-rest.md");
    let table = docs.split_once("## Generic events").unwrap().1.split_once("\n## ").unwrap().0;
    let documented: BTreeSet<String> =
        table.lines().filter_map(|line| Some(line.strip_prefix("| `")?.split_once('`')?.0.to_owned())).collect();
    let mut told_kinds = BTreeSet::new();
    for line in all().iter().flat_map(|scenario| told(&scenario.log)) {
        let event: Value = serde_json::from_str(&line).unwrap();
        told_kinds.extend(event["generic"]["kind"].as_str().map(str::to_owned));
    }
    assert_eq!(documented, told_kinds);
    assert_eq!(told_kinds, GENERIC_KINDS.into_iter().map(str::to_owned).collect());
}

#[test]
fn the_last_event_holds_the_run_as_it_is_read_later() {
    for scenario in all() {
        let view = SessionView::from_created(&scenario.log[0]).unwrap();
        for run in runs(&scenario.log) {
            let (mut live, mut last) =
                (AcpRestProjection::new(view.session, "gander", run).with_artifacts_url(SHELF.to_owned()), Value::Null);
            for entry in &scenario.log {
                live.project_entry(entry, &mut |event| {
                    let event = serde_json::to_value(event).unwrap();
                    if event.get("run").is_some() {
                        last = event["run"].clone();
                    }
                });
            }
            // Whoever comes after the deltas were joined into their message reads the same run.
            let mut later = AcpRestProjection::new(view.session, "gander", run).with_artifacts_url(SHELF.to_owned());
            scenario.log.iter().filter(|entry| !entry.event.is_delta()).for_each(|entry| later.handle_entry(entry));
            if later.run().status.is_terminal() {
                assert_eq!(serde_json::to_value(later.run()).unwrap(), last, "{}", scenario.name);
            }
        }
    }
}

#[test]
fn every_event_is_of_a_kind_that_clients_know() {
    let known = [
        "message.created",
        "message.part",
        "message.completed",
        "generic",
        "run.created",
        "run.in-progress",
        "run.awaiting",
        "run.completed",
        "run.cancelled",
        "run.failed",
    ];
    let mut seen = std::collections::BTreeSet::new();
    for line in all().iter().flat_map(|scenario| told(&scenario.log)) {
        let event: Value = serde_json::from_str(&line).unwrap();
        let kind = event["type"].as_str().unwrap().to_owned();
        assert!(known.contains(&kind.as_str()), "{line}");
        for part in parts(&event) {
            let metadata = &part["metadata"];
            assert!(metadata.is_null() || metadata["kind"] == "trajectory", "{line}");
            assert!(metadata["tool_output"].is_null() || metadata["tool_output"].is_object(), "{line}");
        }
        seen.insert(kind);
    }
    assert_eq!(seen.len(), known.len(), "{seen:?}");
}

fn parts(event: &Value) -> Vec<Value> {
    let of = |value: &Value| value["parts"].as_array().cloned().unwrap_or_default();
    let output = event["run"]["output"].as_array().cloned().unwrap_or_default();
    let mut parts: Vec<Value> = output.iter().chain([&event["message"]]).flat_map(of).collect();
    parts.extend(event.get("part").cloned());
    parts
}

fn read(body: &Value) -> Result<AcpRestRunRequest, AcpRestRefusal> {
    AcpRestRunRequest::from_body(body.to_string().as_bytes())
}

fn message(role: &str, text: &str) -> Value {
    json!({ "role": role, "parts": [{ "content": text }] })
}

#[test]
fn a_request_is_read() {
    let body = json!({ "agent_name": "echo", "input": [{ "parts": [{ "content": "hi" }] }] });
    let expected = AcpRestRunRequest {
        agent: "echo".to_owned(),
        before: Vec::new(),
        parts: vec![Part::text("hi")],
        times: None,
        mode: RunMode::Sync,
        session: RequestedSession::New,
        run: None,
    };
    assert_eq!(read(&body), Ok(expected.clone()));
    let (run, session) = (build::run(7), build::session(8));
    let full = json!({
        "agent_name": "echo", "mode": "stream", "run_id": run, "session_id": session, "future": true,
        "session": { "id": session, "history": ["http://a/1"], "state": null },
        "input": [message("user", "one"), message("agent/echo", "two"), message("user", "hi")],
    });
    let line = |role, text: &str| HistoryMessage { role, parts: vec![Part::text(text)] };
    let expected = AcpRestRunRequest {
        before: vec![line(Role::User, "one"), line(Role::Agent, "two")],
        mode: RunMode::Stream,
        session: RequestedSession::Described(session, vec!["http://a/1".to_owned()]),
        run: Some(run),
        ..expected
    };
    assert_eq!(read(&full), Ok(expected));
}

#[test]
fn a_wrong_request_is_refused() {
    let input = json!([message("user", "hi")]);
    let with = |key: &str, value: Value| {
        let mut body = json!({ "agent_name": "echo", "input": input });
        body[key] = value;
        read(&body).map(|_| ()).unwrap_err().status
    };
    let part = |part: Value| with("input", json!([{ "role": "user", "parts": [part] }]));
    let wrong = [
        with("agent_name", json!(1)),
        with("input", json!([])),
        with("input", Value::Null),
        with("input", json!([{ "role": "user", "parts": [] }])),
        with("input", json!([message("system", "hi")])),
        with("input", json!([message("agent/a.b", "hi")])),
        with("mode", json!("batch")),
        with("mode", Value::Null),
        with("mode", json!(1)),
        with("session_id", json!("20261115_1")),
        with("session", json!({ "id": "x" })),
        with("run_id", json!("x")),
        part(json!({ "content": "x", "content_url": "https://example.com/" })),
        part(json!({ "content": "%%", "content_encoding": "base64" })),
        part(json!({ "content": 1 })),
        with("input", json!([{ "parts": [{ "content": "x" }], "created_at": "2026-01-01T00:00:00" }])),
        with("input", json!([{ "parts": [{ "content": "x" }], "created_at": "0000-01-01T00:00:00Z" }])),
        with("input", json!([{ "parts": [{ "content": "x" }], "created_at": "99999-01-01T00:00:00Z" }])),
    ];
    assert_eq!(wrong, [422; 18]);
    let body = json!({ "agent_name": "echo", "input": input, "session_id": build::session(1),
        "session": { "id": build::session(2), "history": [] } });
    assert_eq!(read(&body).unwrap_err().status, 400);
    let lone_surrogate = br#"{"agent_name":"echo","input":[{"role":"user","parts":[{"content":"\ud800"}]}]}"#;
    for bytes in [lone_surrogate.as_slice(), b"", b"{", b"[]", b"\xff\xfe", b"null"] {
        assert_eq!(AcpRestRunRequest::from_body(bytes).unwrap_err().status, 422, "{bytes:?}");
    }
}

#[test]
fn parts_come_back_as_they_went() {
    let there_and_back = [
        json!({ "content_type": "text/plain", "content": "hi", "content_encoding": "plain" }),
        json!({ "content_type": "text/html", "content": "<p>", "content_encoding": "plain" }),
        json!({ "name": "a.json", "content_type": "application/json", "content": "{}", "content_encoding": "plain" }),
        json!({ "name": "a.txt", "content_type": "text/plain", "content": "x", "content_encoding": "plain" }),
        json!({ "content_type": "image/png", "content": "iVBORw0KGgo=", "content_encoding": "base64" }),
        json!({ "name": "x.png", "content_type": "image/png", "content": "iVBORw0KGgo=", "content_encoding": "base64" }),
        json!({ "content_type": "audio/wav", "content": "AAAA", "content_encoding": "base64" }),
        json!({ "content_type": "application/pdf", "content": "AAAA", "content_encoding": "base64" }),
        json!({ "content_type": "application/pdf", "content_encoding": "plain", "content_url": "https://e.com/d.pdf" }),
        json!({ "content_type": "text/plain", "content_encoding": "plain",
            "metadata": { "kind": "trajectory", "message": "hm" } }),
    ];
    for value in there_and_back {
        let read = content::read_acp_rest_part(&serde_json::from_value(value.clone()).unwrap()).unwrap();
        assert_eq!(serde_json::to_value(content::acp_rest_message_part(&read).unwrap()).unwrap(), value);
    }
    let older: Value = json!({ "content": "hm", "metadata": { "thinking": true } });
    let read = content::read_acp_rest_part(&serde_json::from_value(older).unwrap()).unwrap();
    assert_eq!(read, Part::Thought { text: "hm".to_owned() });
    assert_eq!(serde_json::from_str::<RunStatus>("\"in_progress\"").unwrap(), RunStatus::InProgress);
    assert_eq!(serde_json::to_string(&RunStatus::InProgress).unwrap(), "\"in-progress\"");
}

#[test]
fn only_a_clear_word_is_an_answer() {
    let asked = build::permission(build::question_id(1), build::call_id(1));
    let answer = |parts: Value| {
        let body = json!({ "mode": "sync", "await_resume": { "type": "message", "message": { "parts": parts } } });
        let resume = ResumeRequest::from_body(build::run(1), body.to_string().as_bytes())?;
        question::read_acp_rest_reply(&asked, &resume.message).map_err(AcpRestRefusal::from)
    };
    let allows = |parts: Value| answer(parts).map(|reply| reply.is_allowed()).map_err(|refusal| refusal.status);
    assert_eq!(allows(json!([{ "content": "yes" }])), Ok(true));
    assert_eq!(allows(json!([{ "content": " Allow " }])), Ok(true));
    assert_eq!(allows(json!([{ "content": "no" }])), Ok(false));
    let choice = json!({ "choice": "no" }).to_string();
    let by_id = allows(json!([{ "content_type": "application/json", "content": choice }]));
    assert_eq!(by_id, Ok(false));
    for vague in [json!([]), json!([{ "content": "maybe" }]), json!([{ "content": "yes, but" }])] {
        assert_eq!(allows(vague), Err(422));
    }
    let shapes = [
        (json!({ "mode": "sync" }), 422),
        (json!({ "mode": "sync", "await_resume": null }), 422),
        (json!({ "mode": "sync", "await_resume": {} }), 422),
        (json!({ "mode": "sync", "await_resume": { "type": "form" } }), 403),
        (json!({ "mode": "sync", "await_resume": { "type": "message" } }), 422),
        (json!({ "await_resume": { "type": "message", "message": { "parts": [] } } }), 422),
    ];
    for (body, status) in shapes {
        assert_eq!(
            ResumeRequest::from_body(build::run(1), body.to_string().as_bytes()).unwrap_err().status,
            status,
            "{body}"
        );
    }
}
