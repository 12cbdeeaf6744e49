//! Which goose session stands behind ours, and what becomes of requests that fail.

use std::sync::Arc;

use gander_domain::caller::Caller;
use gander_domain::{Outcome, Part};
use gander_runtime::backend::{RemoteContent, RemoteFile};
use gander_store::MemoryStore;
use gander_testkit::build;
use serde_json::{Value, json};

use super::test_server::{TestServer, hub, outcome, said};

#[tokio::test]
async fn a_session_is_started_with_ours_and_each_has_its_own() {
    let server = TestServer::open().await;
    let (first, second) = (server.session(1).await, server.session(2).await);
    assert_eq!(server.goose.heard("POST /agent/start"), vec![json!({"working_dir": "/workspace"}); 2]);
    server.run(first, 1, "one").await;
    server.run(second, 2, "two").await;
    let sessions: Vec<_> =
        server.goose.heard("POST /reply").iter().map(|body| body["session_id"].as_str().unwrap().to_owned()).collect();
    assert_eq!(sessions, ["20261116_1", "20261116_2"]);
}

#[tokio::test]
async fn the_same_session_goes_on_after_a_restart_and_is_resumed_once() {
    let mut server = TestServer::open().await;
    let session = server.session(1).await;
    server.run(session, 1, "one").await;
    server.restart();
    server.run(session, 2, "two").await;
    server.run(session, 3, "three").await;
    let resumed = json!({"session_id": "20261116_1", "load_model_and_extensions": true});
    assert_eq!(server.goose.heard("POST /agent/resume"), [resumed]);
    assert_eq!(server.goose.heard("POST /agent/start").len(), 1);
}

#[tokio::test]
async fn deleting_a_session_stops_the_one_behind_it() {
    let server = TestServer::open().await;
    let session = server.session(1).await;
    server.hub.delete_session(&Caller::local_owner(), session).await.unwrap();
    assert_eq!(server.goose.heard("POST /agent/stop"), [json!({"session_id": "20261116_1"})]);
}

#[tokio::test]
async fn a_lost_session_fails_once_and_then_another_one_begins() {
    let server = TestServer::open().await;
    let session = server.session(1).await;
    server.goose.forget();
    let events = server.run(session, 1, "one").await;
    assert_eq!(outcome(&events), &Outcome::failed("not_found", "Goose session not found"));
    server.run(session, 2, "two").await;
    let reply = &server.goose.heard("POST /reply")[1];
    assert_eq!(reply["session_id"], "20261116_2");
    assert_prompt_after_transcript(reply);
}

#[tokio::test]
async fn a_session_that_is_unknown_at_its_resume_is_forgotten_too() {
    let mut server = TestServer::open().await;
    let session = server.session(1).await;
    server.restart();
    server.goose.forget();
    let events = server.run(session, 1, "one").await;
    assert_eq!(outcome(&events), &Outcome::failed("not_found", "Goose session not found"));
    server.run(session, 2, "two").await;
    assert_prompt_after_transcript(server.goose.heard("POST /reply").last().unwrap());
}

/// A goose that begins anew is told what was said to the one before it.
fn assert_prompt_after_transcript(reply: &Value) {
    let texts: Vec<&str> =
        reply["user_message"]["content"].as_array().unwrap().iter().filter_map(|part| part["text"].as_str()).collect();
    assert!(texts[0].contains("User: one"), "{texts:?}");
    assert_eq!(texts[1..], ["two"]);
}

#[tokio::test]
async fn a_wrong_key_is_said_as_such() {
    let server = TestServer::open().await;
    let wrong = hub(&server.goose.url(), "wrong", Arc::new(MemoryStore::new()) as _);
    let server = TestServer { hub: wrong, ..server };
    let session = server.session(1).await;
    let events = server.run(session, 1, "one").await;
    assert_eq!(outcome(&events), &Outcome::failed("unauthorized", "Goose authentication failed"));
}

#[tokio::test]
async fn what_is_not_ready_gets_one_more_chance() {
    let server = TestServer::open().await;
    let session = server.session(1).await;
    server.goose.will_fail("POST /reply", &[424]);
    assert_eq!(said(&server.run(session, 1, "one").await), ["one"]);
    server.goose.will_fail("POST /reply", &[412, 412]);
    let events = server.run(session, 2, "two").await;
    assert_eq!(outcome(&events), &Outcome::failed("not_ready", "Goose agent is not ready: told to fail"));
    assert_eq!(server.goose.heard("POST /reply").len(), 4);
}

#[tokio::test]
async fn a_busy_goose_gets_three_more_chances() {
    let server = TestServer::open().await;
    let session = server.session(1).await;
    server.goose.will_fail("POST /reply", &[429, 429, 429]);
    assert_eq!(said(&server.run(session, 1, "one").await), ["one"]);
    server.goose.will_fail("POST /reply", &[429; 4]);
    let events = server.run(session, 2, "two").await;
    assert_eq!(outcome(&events), &Outcome::failed("rate_limited", "Goose rate limit exceeded: told to fail"));
    assert_eq!(server.goose.heard("POST /reply").len(), 8);
}

#[tokio::test]
async fn failures_of_goose_are_told_apart() {
    let server = TestServer::open().await;
    let session = server.session(1).await;
    server.goose.will_fail("POST /reply", &[500]);
    let events = server.run(session, 1, "one").await;
    assert_eq!(outcome(&events), &Outcome::failed("internal", "Goose internal error: told to fail"));
    server.goose.will_fail("POST /reply", &[503]);
    let events = server.run(session, 2, "two").await;
    assert_eq!(outcome(&events), &Outcome::failed("unavailable", "Goose is unavailable: told to fail"));
}

#[tokio::test]
async fn a_goose_that_is_not_there_costs_a_session_nothing_but_its_runs() {
    let gone = hub("http://127.0.0.1:9", "k", Arc::new(MemoryStore::new()) as _);
    let server = TestServer { hub: gone, ..TestServer::open().await };
    let session = server.session(1).await;
    let events = server.run(session, 1, "one").await;
    let Outcome::Failed { reason, message } = outcome(&events) else { panic!("{events:?}") };
    assert_eq!(reason, "unavailable");
    assert!(message.starts_with("Goose is unavailable: no connection"), "{message}");
}

#[tokio::test]
async fn the_provider_is_told_what_the_prompt_wants_and_only_when_that_changes() {
    let server = TestServer::open().await;
    let session = server.session(1).await;
    let meta = |temperature: f64| {
        Some(json!({"adk": {"runConfig": {"model": "openai/gpt-5", "generationConfig": {"temperature": temperature}}}}))
    };
    for (run, temperature) in [(1, 0.5), (2, 0.5), (3, 1.0)] {
        let run = server.prompt(session, run, vec![Part::text("hi")], meta(temperature)).await;
        server.until(session, run, |event| matches!(event, gander_domain::Event::RunEnded { .. })).await;
    }
    let told = |temperature: f64| {
        json!({
            "session_id": "20261116_1", "provider": "openai", "model": "gpt-5",
            "request_params": {"temperature": temperature},
        })
    };
    assert_eq!(server.goose.heard("POST /agent/update_provider"), [told(0.5), told(1.0)]);
}

#[tokio::test]
async fn what_goose_keeps_for_a_session_can_be_read() {
    let server = TestServer::open().await;
    let session = server.session(1).await;
    let view = server.hub.session_view(session).await.unwrap();
    let backend = server.hub.backend();
    assert_eq!(backend.list_remote_files(&view).await, ["goose-session.json"]);
    let export = backend.read_remote_file(&view, "goose-session.json").await.unwrap();
    let file: serde_json::Value = serde_json::from_str(text_of(&export)).unwrap();
    assert_eq!((export.mime.as_str(), &file["id"]), ("application/json", &json!("20261116_1")));
    let resource = backend.read_remote_file(&view, "resource:apps:ui://clock").await.unwrap();
    assert_eq!((resource.mime.as_str(), text_of(&resource)), ("text/plain", r#"resource "ui://clock""#));
    let asked = json!({"session_id": "20261116_1", "extension_name": "apps", "uri": "ui://clock"});
    assert_eq!(server.goose.heard("POST /agent/read_resource"), [asked]);
    assert_eq!(backend.read_remote_file(&view, "anything").await, None);
}

#[tokio::test]
async fn a_run_that_was_under_way_at_a_crash_is_said_to_be_interrupted() {
    let mut server = TestServer::open().await;
    let session = server.session(1).await;
    server.goose.will_reply(vec![gander_testkit::goosed::says("half"), gander_testkit::goosed::Step::Hang]);
    let run = server.prompt(session, 1, vec![Part::text("go")], None).await;
    server.until(session, run, |event| matches!(event, gander_domain::Event::PartDelta { .. })).await;
    server.restart();
    server.hub.recover_open_runs().await.unwrap();
    let events =
        server.until(session, build::run(1), |event| matches!(event, gander_domain::Event::RunEnded { .. })).await;
    let why = "the way to goose broke while this server was stopped";
    assert_eq!(outcome(&events), &Outcome::failed("interrupted", why));
    assert_eq!(server.goose.heard("POST /reply").len(), 1, "the prompt is not sent twice");
}

fn text_of(file: &RemoteFile) -> &str {
    match &file.content {
        RemoteContent::Text(text) => text,
        RemoteContent::Base64(data) => panic!("no text: {data}"),
    }
}
