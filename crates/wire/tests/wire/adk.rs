//! Rosetta vectors in the words of the Agent Development Kit, and the laws of that telling.

#![allow(clippy::unwrap_used)]

use std::path::Path;

use gander_domain::{Entry, Event as Fact, QuestionOrigin, RunId};
use gander_testkit::vectors::{Scenario, scenarios};
use gander_wire::adk::projection::{adk_failure_event, adk_session_history, join_adk_events};
use gander_wire::adk::{AdkEvent, AdkProjection, AdkRunRequest, NewAdkSession, RunInput, RunStage, StreamMode};
use serde_json::{Value, json};

fn all() -> Vec<Scenario> {
    scenarios(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors")).unwrap()
}

fn runs(log: &[Entry]) -> Vec<RunId> {
    let started = log.iter().filter(|entry| matches!(entry.event, Fact::RunStarted { .. }));
    started.filter_map(|entry| entry.run).collect()
}

/// Every run as it happens.
fn told(log: &[Entry], tone: StreamMode) -> Vec<AdkEvent> {
    let mut events = Vec::new();
    for run in runs(log) {
        let mut telling = AdkProjection::new(run, "gander", tone);
        log.iter().for_each(|entry| telling.project_entry(entry, &mut events));
    }
    events
}

fn lines(events: &[AdkEvent]) -> Vec<String> {
    events.iter().map(|event| serde_json::to_string(event).unwrap()).collect()
}

#[test]
fn every_scenario_is_told_as_expected() {
    for scenario in all() {
        let mut told: Vec<String> = Vec::new();
        for run in runs(&scenario.log) {
            let (mut telling, mut events) = (AdkProjection::new(run, "gander", StreamMode::Pieces), Vec::new());
            scenario.log.iter().for_each(|entry| telling.project_entry(entry, &mut events));
            told.extend(lines(&events));
            if let RunStage::Ended(outcome) = telling.stage() {
                told.extend(adk_failure_event(outcome, scenario.log[0].at).map(|last| last.to_string()));
            }
        }
        scenario.check("adk.jsonl", &told).unwrap();
        scenario.check("adk_session.jsonl", &lines(&adk_session_history(&scenario.log))).unwrap();
    }
}

/// Replay = live: what is stored is what was told whole, with what people said in between.
#[test]
fn what_is_stored_is_what_was_told() {
    for scenario in all() {
        let reset = scenario.log.iter().any(|entry| matches!(entry.event, Fact::HistoryReset { .. }));
        if reset || scenario.name == "other_door" {
            continue;
        }
        let whole = |event: &&AdkEvent| event.partial != Some(true);
        let strip = |event: &AdkEvent| AdkEvent { partial: None, ..event.clone() };
        let pieces = told(&scenario.log, StreamMode::Pieces);
        let live: Vec<AdkEvent> = pieces.iter().filter(whole).map(strip).collect();
        let stored = adk_session_history(&scenario.log);
        let agents: Vec<AdkEvent> = stored.into_iter().filter(|event| event.author != "user").collect();
        assert_eq!(live, agents, "{}", scenario.name);
    }
}

/// A server invites to log in, then the model calls a tool and speaks.
fn invitation() -> Vec<Entry> {
    let lines = include_str!("../data/invitation.jsonl").lines();
    lines.map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Nothing waits for a login that a server invites to: what the model says afterwards belongs to the same answer, and
/// so does a call that begins while the invitation is open.
#[test]
fn a_question_that_holds_nothing_up_is_told_and_the_run_goes_on() {
    let log = invitation();
    let (mut telling, mut events) = (AdkProjection::new(runs(&log)[0], "gander", StreamMode::Whole), Vec::new());
    for entry in &log[1..] {
        assert!(!matches!(telling.stage(), RunStage::Asking | RunStage::Ended(_)), "before {entry:?}");
        telling.project_entry(entry, &mut events);
    }
    assert!(matches!(telling.stage(), RunStage::Ended(_)));
    let part = |event: &AdkEvent| json!(event)["content"]["parts"][0].clone();
    let parts: Vec<Value> = events.iter().map(part).collect();
    assert_eq!(parts[0]["functionCall"]["args"]["message"], "Log in: https://example.org/login");
    assert_eq!(parts[1]["functionCall"]["name"], "read");
    assert_eq!(parts[2]["functionResponse"]["name"], "read");
    assert_eq!(parts[3], json!({ "text": "Done." }));
    assert_eq!(parts.len(), 4, "the question is told once: {parts:?}");
    assert_eq!(lines(&adk_session_history(&log))[1..], lines(&events));
}

/// What is asked while a tool runs ends the answer if a child waits for it, whatever it asks, and not if it is asked aside.
#[test]
fn a_question_that_a_tool_waits_for_ends_the_answer() {
    assert_eq!(asked_while_a_tool_runs(QuestionOrigin::Held), RunStage::Asking);
    assert_eq!(asked_while_a_tool_runs(QuestionOrigin::NonBlocking), RunStage::Running);
}

fn asked_while_a_tool_runs(origin: QuestionOrigin) -> RunStage {
    let log = invitation();
    let is_asked = |entry: &&Entry| matches!(entry.event, Fact::QuestionAsked { .. });
    let is_called = |entry: &Entry| matches!(entry.event, Fact::ToolCalled { .. });
    let called = log.iter().position(is_called).unwrap();
    let (mut telling, mut events) = (AdkProjection::new(runs(&log)[0], "gander", StreamMode::Whole), Vec::new());
    let before = log[..=called].iter().filter(|entry| !is_asked(entry));
    before.for_each(|entry| telling.project_entry(entry, &mut events));
    assert_eq!(telling.stage(), &RunStage::Running);
    let mut asked = log.iter().find(is_asked).unwrap().clone();
    if let Fact::QuestionAsked { question } = &mut asked.event {
        question.origin = origin;
    }
    events.clear();
    telling.project_entry(&asked, &mut events);
    assert_eq!(events.len(), 1, "it is told at once: {events:?}");
    telling.stage().clone()
}

#[test]
fn joined_pieces_say_the_same() {
    for scenario in all() {
        let mut joined: Vec<AdkEvent> = Vec::new();
        let texts = |events: &[AdkEvent]| -> String {
            let pieces = events.iter().filter(|event| event.partial == Some(true));
            let parts = pieces.flat_map(|event| event.content.iter().flat_map(|content| content.parts.iter()));
            parts.filter_map(|part| part["text"].as_str()).collect()
        };
        let told = told(&scenario.log, StreamMode::Pieces);
        for event in told.clone() {
            let rest = match joined.last_mut() {
                Some(last) => join_adk_events(last, event),
                None => Some(event),
            };
            joined.extend(rest);
        }
        assert!(joined.len() <= told.len());
        assert_eq!(texts(&joined), texts(&told), "{}", scenario.name);
    }
}

#[test]
fn requests_are_read_in_both_spellings() {
    let read = |value: Value| AdkRunRequest::from_body(value.to_string().as_bytes(), None).unwrap();
    let camel = read(json!({ "appName": "a", "userId": "u", "sessionId": "s", "newMessage": { "parts": [
        { "inlineData": { "mimeType": "audio/pcm", "data": "-_-_" } } ] }, "stateDelta": null }));
    let snake = read(json!({ "app_name": "a", "user_id": "u", "session_id": "s", "new_message": { "parts": [
        { "inline_data": { "mime_type": "audio/pcm", "data": "+/+/" } } ] } }));
    assert_eq!((&camel.address, &camel.said), (&snake.address, &snake.said));
    let RunInput::Parts(parts) = camel.said else { panic!("no parts") };
    assert_eq!(json!(parts)[0]["data"], "+/+/");
    assert_eq!(NewAdkSession::from_body(b"null").unwrap(), NewAdkSession::default());
    let wrapped = NewAdkSession::from_named_body("x", br#"{"state":{"a":1}}"#).unwrap();
    assert_eq!(wrapped, NewAdkSession::from_named_body("x", br#"{"a":1}"#).unwrap());
}
