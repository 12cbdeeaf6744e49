//! Runs in every mode, at both places.

use serde_json::{Value, json};

use crate::acp_rest::test_server::{Answer, TestServer, new, resume, said};

const WHOLE: [&str; 6] =
    ["run.created", "run.in-progress", "message.created", "message.part", "message.completed", "run.completed"];

#[tokio::test]
async fn a_run_is_served_in_every_mode_at_both_places() {
    let server = TestServer::open().await;
    for base in ["", "/acp-rest"] {
        let runs = format!("{base}/runs");
        let answer = server.post(&runs, &new("echo", "hi", "sync")).await;
        let run = answer.ok();
        assert_eq!((answer.status, answer.headers["run-id"].to_str().unwrap()), (200, run["run_id"].as_str().unwrap()));
        assert_eq!((run["status"].as_str().unwrap(), said(&run)), ("completed", vec!["hi".to_owned()]));
        assert_eq!(run["output"][0]["role"], "agent/echo");
        let path = format!("{base}{}", TestServer::path(&run, ""));
        assert_eq!(server.get(&path).await.ok(), run);
        let events = server.get(&format!("{path}/events")).await.ok();
        let kinds: Vec<&str> =
            events["events"].as_array().unwrap().iter().map(|e| e["type"].as_str().unwrap()).collect();
        assert_eq!(kinds, WHOLE);
        assert_eq!(events["events"][5]["run"], run);

        let answer = server.post(&runs, &new("echo", "hi", "async")).await;
        assert_eq!((answer.status, answer.ok()["status"].clone()), (202, json!("created")));
        assert_eq!(said(&server.until(&answer.ok(), "completed").await), ["hi"]);

        let answer = server.post(&runs, &new("echo", "hi", "stream")).await;
        assert_eq!(answer.kinds(), WHOLE);
        let last = answer.events().pop().unwrap().1;
        let run = server.get(&format!("{base}{}", TestServer::path(&last["run"], ""))).await.ok();
        assert_eq!(run, last["run"]);

        assert_eq!(server.get(&format!("{base}/ping")).await.ok(), json!({}));
        let agents = server.get(&format!("{base}/agents")).await.ok();
        let first = &agents["agents"][0];
        assert_eq!(server.get(&format!("{base}/agents/gander")).await.ok(), *first);
        assert_eq!(first["name"], "gander");
        let paged = server.get(&format!("{base}/agents?limit=2&offset=1")).await.ok();
        assert_eq!(paged["agents"].as_array().unwrap()[..], agents["agents"].as_array().unwrap()[1..3]);
        for path in ["session", "sessions"] {
            let session = server.get(&format!("{base}/{path}/{}", run["session_id"].as_str().unwrap())).await.ok();
            assert_eq!((&session["id"], &session["history"]), (&run["session_id"], &json!([])));
        }
    }
}

/// acp-sdk's own tests ask for names that the protocol's paper does not allow, and expect them back.
#[tokio::test]
async fn whoever_asks_for_an_agent_is_answered_in_their_own_spelling() {
    let server = TestServer::open().await;
    for name in ["history_echo", "history-echo"] {
        assert_eq!(server.get(&format!("/agents/{name}")).await.ok()["name"], name);
        let run = server.run(name, "hi").await;
        let role = format!("agent/{name}");
        assert_eq!((&run["agent_name"], &run["output"][0]["role"]), (&json!(name), &json!(role)));
        assert_eq!(server.get(&TestServer::path(&run, "")).await.ok(), run);
    }
    let agents = server.get("/agents").await.ok();
    let names: Vec<&str> = agents["agents"].as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap()).collect();
    assert!(names.contains(&"history-echo") && names.iter().all(|name| !name.contains('_')), "{names:?}");
}

#[tokio::test]
async fn the_native_agent_is_served_too_and_its_figures_come_from_the_log() {
    let server = TestServer::open().await;
    assert_eq!(server.get("/agents/gander").await.ok()["status"], Value::Null);
    let run = server.run("gander", "hello").await;
    assert_eq!(run["status"], "completed", "{run}");
    assert!(!said(&run).concat().is_empty(), "{run}");
    let told = server.post("/runs", &new("gander", "hello", "stream")).await.kinds();
    assert!(told.contains(&"generic".to_owned()), "what only we have: {told:?}");
    let other = TestServer::open().await;
    other.run("echo", "hi").await;
    other.run("failer", "hi").await;
    other.run("failer", "hi").await;
    let status = other.get("/agents/echo").await.ok()["status"].clone();
    assert_eq!((&status["success_rate"], &status["avg_run_tokens"]), (&json!(100.0), &json!(0.0)));
    assert_eq!(other.get("/agents/failer").await.ok()["status"]["success_rate"], 0.0);
}

#[tokio::test]
async fn every_form_of_content_has_its_part() {
    let server = TestServer::open().await;
    let answer = server.post("/runs", &new("rich", "go", "stream")).await;
    let parts: Vec<Value> = answer.events().into_iter().filter_map(|(_, event)| event.get("part").cloned()).collect();
    let plain = |value: Value| {
        let mut part = json!({ "content_type": "text/plain", "content_encoding": "plain" });
        part.as_object_mut().unwrap().extend(value.as_object().unwrap().clone());
        part
    };
    let calc = |more: Value| {
        let mut metadata = json!({ "kind": "trajectory", "tool_name": "calc", "tool_input": { "x": 1 } });
        metadata.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        plain(json!({ "metadata": metadata }))
    };
    assert_eq!(
        parts[..4],
        [
            plain(json!({ "metadata": { "kind": "trajectory", "message": "thinking about it" } })),
            calc(json!({ "message": "Calculate" })),
            calc(json!({ "tool_output": { "y": 2, "status": "completed", "text": "2" } })),
            plain(json!({ "content": "Snow is white." })),
        ]
    );
    let names: Vec<&Value> = parts[4..].iter().map(|part| &part["name"]).collect();
    assert_eq!(names, [&json!("result.json"), &json!("dot.png"), &Value::Null]);
    assert_eq!(parts[6]["content_url"], "https://example.com/doc.pdf");
}

#[tokio::test]
async fn a_run_that_awaits_is_resumed_in_every_mode() {
    let server = TestServer::open().await;
    let awaiting = async || {
        let run = server.run("approve", "x").await;
        assert_eq!((&run["status"], &run["output"]), (&json!("awaiting"), &json!([])));
        assert_eq!(run["await_request"]["message"]["parts"][0]["content"], "May I?");
        run
    };
    let run = awaiting().await;
    let done = server.post(&TestServer::path(&run, ""), &resume("yes", "sync")).await.ok();
    assert_eq!((&done["status"], said(&done)), (&json!("completed"), vec!["you said: yes".to_owned()]));
    assert_eq!(done["await_request"], run["await_request"]);

    let run = awaiting().await;
    let answer = server.post(&TestServer::path(&run, ""), &resume("yes", "async")).await;
    assert_eq!((answer.status, answer.ok()["status"].clone()), (202, json!("in-progress")));
    server.until(&run, "completed").await;

    let run = awaiting().await;
    let streamed = server.post(&TestServer::path(&run, ""), &resume("yes", "stream")).await;
    assert_eq!(streamed.kinds(), WHOLE[1..]);
    let stream = server.post("/runs", &new("approve", "x", "stream")).await;
    assert_eq!(stream.kinds(), ["run.created", "run.in-progress", "run.awaiting"]);
    let events = server.get(&TestServer::path(&run, "/events")).await.ok();
    assert_eq!(events["events"].as_array().unwrap().len(), 3 + WHOLE.len() - 1);
}

#[tokio::test]
async fn of_two_answers_one_wins() {
    let server = TestServer::open().await;
    for _ in 0..20 {
        let run = server.run("approve", "x").await;
        let path = TestServer::path(&run, "");
        let (yes, no) = (resume("one", "sync"), resume("two", "sync"));
        let (a, b) = tokio::join!(server.post(&path, &yes), server.post(&path, &no));
        let mut statuses = [a.status, b.status];
        statuses.sort_unstable();
        assert_eq!(statuses, [200, 403]);
        let heard = if a.status == 200 { "you said: one" } else { "you said: two" };
        assert_eq!(said(&server.get(&path).await.ok()), [heard]);
    }
}

#[tokio::test]
async fn a_run_is_cancelled_once() {
    let server = TestServer::open().await;
    for agent in ["slow", "awaiter"] {
        let run = server.post("/runs", &new(agent, "x", "async")).await.ok();
        let cancel = TestServer::path(&run, "/cancel");
        let answer = server.post(&cancel, &Value::Null).await;
        assert_eq!((answer.status, answer.ok()["status"].clone()), (202, json!("cancelling")), "{agent}");
        let run = server.until(&run, "cancelled").await;
        assert_eq!(server.post(&cancel, &Value::Null).await.error(), (403, "invalid_input".to_owned()));
        assert_eq!(server.post(&TestServer::path(&run, ""), &resume("x", "sync")).await.status, 403);
        let events = server.get(&TestServer::path(&run, "/events")).await.ok();
        let last = events["events"].as_array().unwrap().last().unwrap().clone();
        assert_eq!((&last["type"], &last["run"]), (&json!("run.cancelled"), &run));
        assert!(run["output"].as_array().unwrap().iter().all(|message| message["completed_at"].is_null()));
    }
}

#[tokio::test]
async fn a_stream_goes_on_after_any_of_its_events() {
    let server = TestServer::open().await;
    let whole = server.post("/runs", &new("parts", "5", "stream")).await;
    let events = whole.events();
    assert_eq!(events.len(), 2 + 1 + 5 + 1 + 1);
    let path = TestServer::path(&events[0].1["run"], "/events");
    let stream = [("accept", "text/event-stream")];
    assert_eq!(server.get_with(&path, &stream).await.events(), events);
    for (index, (id, _)) in events.iter().enumerate().take(events.len() - 1) {
        let again = server.get_with(&path, &[stream[0], ("last-event-id", id)]).await;
        assert_eq!(again.events(), events[index + 1..], "{id}");
    }
    for (id, expected) in [("abc", 400), ("-1", 400), ("0.1.0", 409), ("1.999999.0", 409), (&"1".repeat(10_000), 400)] {
        let answer = server.get_with(&path, &[stream[0], ("last-event-id", id)]).await;
        assert_eq!(answer.error(), (expected, "invalid_input".to_owned()), "{}", &id[..4.min(id.len())]);
    }
}

#[tokio::test]
async fn the_same_run_id_is_one_run() {
    let server = TestServer::open().await;
    let id = "0198c0de-0000-7000-8000-000000000001";
    let mut body = new("echo", "hi", "sync");
    let first = server.post_with("/runs", &body, &[("run-id", id)]).await.ok();
    assert_eq!(first["run_id"], id);
    body["run_id"] = json!(id);
    assert_eq!(server.post("/runs", &body).await.ok(), first);
    body["mode"] = json!("stream");
    let stream: Answer = server.post("/runs", &body).await;
    assert_eq!(stream.events().last().unwrap().1["run"], first);
    let bad = server.post_with("/runs", &body, &[("run-id", "x")]).await;
    assert_eq!(bad.error(), (422, "invalid_input".to_owned()));
}

#[tokio::test]
async fn what_is_passed_on_keeps_its_times() {
    let server = TestServer::open().await;
    let mut body = new("echo", "hi", "sync");
    let times = json!({ "created_at": "2026-11-15T22:18:58.858453Z", "completed_at": "2026-11-15T22:18:58.858460Z" });
    body["input"][0].as_object_mut().unwrap().extend(times.as_object().unwrap().clone());
    let run = server.post("/runs", &body).await.ok();
    assert_eq!(run["output"][0]["created_at"], times["created_at"]);
    assert_eq!(run["output"][0]["completed_at"], times["completed_at"]);
    assert_eq!(server.get(&TestServer::path(&run, "")).await.ok(), run);
}
