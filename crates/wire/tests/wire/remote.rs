//! Turns of agents behind other servers: what their events report, told once however often they are told.

use gander_domain::{DeltaKind, Outcome, Part, QuestionId, Reply, Report, StopReason, ToolGate};
use gander_testkit::ids::CountingIds;
use gander_wire::a2a::client::{A2aClientTurn, A2aInterface};
use gander_wire::acp_rest::client::AcpRestClientTurn;
use gander_wire::adk::client::{AdkClientTurn, RemoteSession};
use gander_wire::remote::{RemoteTurn, TurnStage};
use serde_json::{Value, json};

const DONE: Outcome = Outcome::Completed { stop: StopReason::EndTurn };

/// The words of these reports, thoughts in brackets.
fn said(reports: &[Report]) -> String {
    let deltas =
        reports.iter().filter_map(|report| if let Report::Deltas(deltas) = report { Some(deltas) } else { None });
    let text = |delta: &gander_domain::Delta| match delta.growth {
        DeltaKind::Text => delta.text.clone(),
        DeltaKind::Thought => format!("[{}]", delta.text),
    };
    deltas.flatten().map(text).collect()
}

fn feed(turn: &mut dyn RemoteTurn, ids: &mut CountingIds, events: &[Value]) -> Vec<Report> {
    events.iter().flat_map(|event| turn.handle_event(event, ids)).collect()
}

fn question(reports: &[Report]) -> Option<QuestionId> {
    let asked = |report: &Report| {
        if let Report::ToolWanted { gate: ToolGate::Ask(question), .. } | Report::Asked(question) = report {
            return Some(question.id);
        }
        None
    };
    reports.iter().find_map(asked)
}

#[test]
fn events_of_acp_rest_that_are_told_again_count_once_however_text_is_cut() {
    let part =
        |content: &str| json!({ "type": "message.part", "part": { "content_type": "text/plain", "content": content } });
    let (mut turn, mut ids) = (AcpRestClientTurn::new("a", None, &[], &[Part::text("hi")]), CountingIds::default());
    let run = json!({ "run_id": "r", "session_id": "s" });
    let created = json!({ "type": "run.created", "run": run });
    let begun = json!({ "type": "message.created", "message": { "parts": [] } });
    feed(&mut turn, &mut ids, &[created.clone(), begun.clone(), part("one "), part("tw")]);
    assert_eq!(turn.resume_request().map(|request| request.path), Some("/runs/r/events".to_owned()));
    let done = json!({ "type": "message.completed", "message": { "parts": [{ "content": "one two three" }] } });
    let ended = json!({ "type": "run.completed", "run": run });
    let all = json!({ "events": [created, begun, part("one two"), part(" three"), done, ended] });
    let reports = feed(&mut turn, &mut ids, &[all]);
    assert_eq!(said(&reports), "o three");
    assert_eq!(reports.last(), Some(&Report::Ended(DONE)));
    assert_eq!((turn.remote_session(), turn.stage()), (Some("s"), TurnStage::Over));
}

#[test]
fn a_server_of_acp_rest_that_asks_in_words_gets_words() {
    let (mut turn, mut ids) = (AcpRestClientTurn::new("a", None, &[], &[]), CountingIds::default());
    let message = json!({ "parts": [{ "content_type": "text/plain", "content": "Which city?" }] });
    let run = json!({ "run_id": "r", "await_request": { "type": "message", "message": message } });
    let reports = feed(&mut turn, &mut ids, &[json!({ "type": "run.awaiting", "run": run })]);
    assert_eq!(turn.stage(), TurnStage::Asking);
    let id = question(&reports).expect("it asks");
    let answer = turn.answer_question(id, &Reply::Filled { content: json!({ "text": "Bonn" }) });
    let body = answer.request.and_then(|request| request.body).unwrap_or_default();
    assert_eq!(body["await_resume"]["message"]["parts"], json!([{ "content_type": "text/plain", "content": "Bonn" }]));
}

#[test]
fn a_task_that_is_read_again_adds_what_is_new() {
    let card =
        json!({ "name": "x", "capabilities": { "streaming": true }, "url": "http://x/", "protocolVersion": "0.3.0" });
    let interface = A2aInterface::from_card(&card, None).expect("0.3 over JSON-RPC");
    let (mut turn, mut ids) = (A2aClientTurn::new(interface, None, "m", &[Part::text("hi")]), CountingIds::default());
    let first = turn.first_request();
    let body = first.body.unwrap_or_default();
    assert_eq!(
        (body["method"].as_str(), body["params"]["message"]["kind"].as_str()),
        (Some("message/stream"), Some("message"))
    );
    let result = |result: Value| json!({ "jsonrpc": "2.0", "id": 1, "result": result });
    let working = json!({ "messageId": "w", "role": "agent", "parts": [{ "kind": "text", "text": "looking" }] });
    let artifact = |text: &str| json!({ "artifactId": "a", "parts": [{ "kind": "text", "text": text }] });
    let reports = feed(
        &mut turn,
        &mut ids,
        &[
            result(json!({ "kind": "task", "id": "t", "contextId": "c", "status": { "state": "submitted" } })),
            result(json!({ "kind": "status-update", "taskId": "t", "contextId": "c",
                "status": { "state": "working", "message": working } })),
            result(json!({ "kind": "artifact-update", "taskId": "t", "contextId": "c", "artifact": artifact("one ") })),
        ],
    );
    assert_eq!(said(&reports), "[looking]one ");
    let subscribed = turn.resume_request().and_then(|request| request.body).unwrap_or_default();
    assert_eq!(subscribed["method"], "tasks/resubscribe");
    let whole = json!({ "kind": "task", "id": "t", "contextId": "c", "status": { "state": "completed" },
        "history": [working], "artifacts": [artifact("one two")] });
    let reports = feed(&mut turn, &mut ids, &[result(whole)]);
    assert_eq!((said(&reports).as_str(), reports.last()), ("two", Some(&Report::Ended(DONE))));
    assert_eq!(turn.remote_session(), Some("c"));
}

#[test]
fn what_adk_tells_in_pieces_and_whole_counts_once_and_a_confirmation_is_a_question() {
    let address = RemoteSession { app: "a".into(), user: "u".into(), session: "s".into() };
    let mut turn = AdkClientTurn::new(address, &[Part::text("hi")], "m", Default::default());
    let mut ids = CountingIds::default();
    let event = |id: &str, partial: bool, parts: Value| json!({ "id": id, "author": "a", "partial": partial, "content": { "role": "model", "parts": parts } });
    let call = json!({ "id": "c1", "name": "shell", "args": { "command": "ls" } });
    let asks = json!({ "id": "q1", "name": "adk_request_confirmation",
        "args": { "originalFunctionCall": call, "toolConfirmation": { "hint": "ok?" } } });
    let reports = feed(
        &mut turn,
        &mut ids,
        &[
            event("e1", true, json!([{ "text": "one " }])),
            event("e1", true, json!([{ "text": "two" }])),
            event("e2", false, json!([{ "text": "one two" }, { "functionCall": call }])),
            event("e3", false, json!([{ "functionCall": asks }])),
            event(
                "e4",
                false,
                json!([{ "functionResponse": { "id": "c1", "name": "shell",
                "response": { "error": "This tool call requires confirmation" } } }]),
            ),
        ],
    );
    assert_eq!(said(&reports), "one two");
    let id = question(&reports).expect("it asks about the call");
    assert!(reports.iter().all(|report| !matches!(report, Report::ToolDone { .. })), "what waits has no result");
    assert_eq!(turn.handle_stream_end(), []);
    assert_eq!(turn.stage(), TurnStage::Asking);
    let answer = turn.answer_question(id, &Reply::Declined);
    let body = answer.request.and_then(|request| request.body).unwrap_or_default();
    let response = &body["newMessage"]["parts"][0]["functionResponse"];
    assert_eq!((&response["id"], &response["response"]), (&json!("q1"), &json!({ "confirmed": false })));
    feed(&mut turn, &mut ids, &[event("e5", false, json!([{ "text": "well then" }]))]);
    assert_eq!(turn.handle_stream_end().last(), Some(&Report::Ended(DONE)));
}
