//! Bad input about runs, row by row of `interop/data/bad-inputs.tsv`: the stated answer, and the next run works.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use gander_testkit::conformance::ConformanceRecorder;
use serde_json::{Value, json};

use crate::acp_rest::test_server::{TestServer, new, resume, said};

const ROWS: &str = include_str!("../../../../../interop/data/bad-inputs.tsv");

/// Which test shows a row.
const SHOWN: [(&str, &str); 20] = [
    ("S01", "errors_have_the_reference_forms"),
    ("S02", "bodies_that_are_no_run"),
    ("S04", "bodies_that_are_no_run"),
    ("S05", "bodies_that_are_no_run"),
    ("S07", "bodies_that_are_no_run"),
    ("S08", "bodies_that_are_no_run"),
    ("S10", "errors_have_the_reference_forms"),
    ("S11", "s11_a_run_that_awaits_nothing_takes_no_answer"),
    ("S13", "of_two_answers_one_wins"),
    ("S14", "s14_an_answer_of_another_kind_changes_nothing"),
    ("S16", "a_run_is_cancelled_once"),
    ("S17", "a_run_is_cancelled_once"),
    ("S19", "a_stream_goes_on_after_any_of_its_events"),
    ("S20", "a_stream_goes_on_after_any_of_its_events"),
    ("S22", "s22_a_path_has_its_methods_and_says_which"),
    ("S23", "s23_a_client_that_hangs_up_stops_nothing"),
    ("S25", "s25_an_answer_counts_once"),
    ("S26", "S26: about A2A"),
    ("S28", "s28_metadata_is_data_and_has_an_end"),
    ("S29", "bodies_that_are_no_run"),
];

#[test]
fn every_row_about_runs_is_claimed_by_a_test_that_exists() {
    let rows = ROWS.lines().map(|row| row.split('\t').collect::<Vec<_>>());
    let rows: BTreeSet<&str> = rows.filter(|row| ["run", "a2a"].contains(&row[1])).map(|row| row[0]).collect();
    let claims = BTreeMap::from(SHOWN);
    assert_eq!(claims.keys().copied().collect::<BTreeSet<_>>(), rows);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/server/acp_rest");
    let files = std::fs::read_dir(folder).unwrap().map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap());
    let sources: String = files.collect();
    for (row, test) in claims {
        assert!(test.starts_with(row) || sources.contains(&format!("fn {test}(")), "{row}: no such test: {test}");
    }
}

fn with(change: impl FnOnce(&mut Value)) -> Value {
    let mut body = new("echo", "x", "sync");
    change(&mut body);
    body
}

#[tokio::test]
async fn bodies_that_are_no_run() {
    let server = TestServer::open().await;
    let part = |part: Value| with(|body| body["input"][0]["parts"] = json!([part]));
    let mut cases: Vec<(&str, Value, u16)> = ["Chat", "-a", "", "a.b", &"a".repeat(64)]
        .into_iter()
        .map(|name| ("S02", with(|body| body["agent_name"] = json!(name)), 422))
        .collect();
    for mode in [json!("batch"), json!(1)] {
        cases.push(("S07", with(|body| body["mode"] = mode), 422));
    }
    for time in ["0000-01-01T00:00:00Z", "99999-01-01T00:00:00Z", "2026-01-01T00:00:00"] {
        cases.push(("S29", with(|body| body["input"][0]["created_at"] = json!(time)), 422));
    }
    let session = json!({ "id": "0198c0de-0000-7000-8000-000000000002", "history": [] });
    cases.extend([
        ("S04", with(|body| body["input"] = json!([])), 422),
        ("S04", with(|body| body["input"][0]["parts"] = json!([])), 422),
        ("S04", json!({ "agent_name": "echo", "mode": "sync" }), 422),
        ("S05", part(json!({ "content": "x", "content_url": "http://example.com" })), 422),
        ("S05", part(json!({ "content": "not base64!", "content_encoding": "base64" })), 422),
        (
            "S08",
            with(|body| {
                body["session_id"] = json!("0198c0de-0000-7000-8000-000000000001");
                body["session"] = session;
            }),
            400,
        ),
    ]);
    for (row, body, status) in cases {
        assert_eq!(server.post("/runs", &body).await.error(), (status, "invalid_input".to_owned()), "{row} {body}");
    }
    let nulls = part(json!({ "content": "x", "content_type": null, "content_encoding": null, "name": null }));
    assert_eq!(said(&server.post("/runs", &nulls).await.ok()), ["x"], "what acp-sdk's types let be null");
    assert_eq!(said(&server.run("echo", "still here").await), ["still here"]);
}

#[tokio::test]
async fn s11_a_run_that_awaits_nothing_takes_no_answer() {
    let server = TestServer::open().await;
    let running = server.post("/runs", &new("slow", "x", "async")).await.ok();
    let mut waiting = new("slow", "y", "async");
    waiting["session_id"] = running["session_id"].clone();
    let waiting = server.post("/runs", &waiting).await.ok();
    for run in [&running, &waiting] {
        let answer = server.post(&TestServer::path(run, ""), &resume("yes", "sync")).await;
        assert_eq!(answer.error(), (403, "invalid_input".to_owned()));
    }
    server.until(&running, "in-progress").await;
    assert_eq!(server.get(&TestServer::path(&waiting, "")).await.ok()["status"], "created");
    for run in [&waiting, &running] {
        server.post(&TestServer::path(run, "/cancel"), &Value::Null).await.ok();
    }
}

#[tokio::test]
async fn s14_an_answer_of_another_kind_changes_nothing() {
    let server = TestServer::open().await;
    let run = server.run("approve", "x").await;
    let other = json!({ "mode": "sync", "await_resume": { "type": "form", "message": null } });
    let cases = [
        (other, 403),
        (json!({ "mode": "sync", "await_resume": {} }), 422),
        (json!({ "mode": "sync", "await_resume": null }), 422),
        (json!({ "mode": "sync", "await_resume": { "type": "message" } }), 422),
    ];
    for (body, status) in cases {
        assert_eq!(server.post(&TestServer::path(&run, ""), &body).await.status, status, "{body}");
        assert_eq!(server.get(&TestServer::path(&run, "")).await.ok()["status"], "awaiting");
    }
    let done = server.post(&TestServer::path(&run, ""), &resume("yes", "sync")).await.ok();
    assert_eq!(said(&done), ["you said: yes"]);
}

#[tokio::test]
async fn s22_a_path_has_its_methods_and_says_which() {
    let server = TestServer::open().await;
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    for method in ["PUT", "DELETE", "TRACE", "PATCH"] {
        let method = reqwest::Method::from_bytes(method.as_bytes()).unwrap();
        let answer =
            client.request(method.clone(), server.url("/runs")).bearer_auth(&server.token).send().await.unwrap();
        assert_eq!(answer.status().as_u16(), 405, "{method}");
        assert!(answer.headers()["allow"].to_str().unwrap().contains("POST"), "{method}");
        assert!(answer.json::<Value>().await.unwrap().is_object());
    }
    let nowhere = server.get("/runs/a/b/c").await;
    assert_eq!(nowhere.status, 404);
    assert!(nowhere.json().is_object());
}

#[tokio::test]
async fn s23_a_client_that_hangs_up_stops_nothing() {
    let server = TestServer::open().await;
    for (mode, id) in
        [("sync", "0198c0de-0000-7000-8000-00000000000a"), ("stream", "0198c0de-0000-7000-8000-00000000000b")]
    {
        let mut body = new("slow_echo", "said anyway", mode);
        body["run_id"] = json!(id);
        let asking = server.post("/runs", &body);
        let run = json!({ "run_id": id });
        tokio::select! {
            _ = asking => panic!("it takes a second"),
            () = async { while server.get(&TestServer::path(&run, "")).await.status != 200 {} } => {}
        }
        assert_eq!(said(&server.until(&run, "completed").await), ["said anyway"], "{mode}");
    }
}

#[tokio::test]
async fn s25_an_answer_counts_once() {
    let server = TestServer::open().await;
    let run = server.run("approve", "x").await;
    let path = TestServer::path(&run, "");
    server.post(&path, &resume("yes", "sync")).await.ok();
    assert_eq!(server.post(&path, &resume("yes", "sync")).await.error(), (403, "invalid_input".to_owned()));
    assert_eq!(said(&server.get(&path).await.ok()), ["you said: yes"]);
}

#[tokio::test]
async fn s28_metadata_is_data_and_has_an_end() {
    let server = TestServer::with(&[("GANDER_LIMITS_PROMPT_BODY", "64 KiB")]).await;
    let odd = json!({ "kind": "citation", "__proto__": { "x": 1 }, "constructor": "y" });
    let body = with(|body| body["input"][0]["parts"][0]["metadata"] = odd.clone());
    let run = server.post("/runs", &body).await.ok();
    assert_eq!((said(&run), &run["output"][0]["parts"][0]["metadata"]), (vec!["x".to_owned()], &Value::Null));
    ConformanceRecorder::for_protocol("acp_rest").refuses("metadata", "citation", "taken with its part, but not kept");
    let huge = with(|body| body["input"][0]["parts"][0]["metadata"] = json!({ "x": "y".repeat(70 << 10) }));
    assert_eq!(server.post("/runs", &huge).await.status, 413);
    assert_eq!(said(&server.run("echo", "still here").await), ["still here"]);
}
