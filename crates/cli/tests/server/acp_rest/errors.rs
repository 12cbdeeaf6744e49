//! What is refused, and how.

use gander_domain::caller::Scope;
use gander_services::token;
use gander_testkit::conformance::ConformanceRecorder;
use secrecy::ExposeSecret;
use serde_json::{Value, json};

use crate::acp_rest::test_server::{TestServer, new, resume};

fn error(status: u16, code: &str) -> (u16, String) {
    (status, code.to_owned())
}

#[tokio::test]
async fn errors_have_the_reference_forms() {
    let server = TestServer::open().await;
    let unknown = "0198c0de-0000-7000-8000-000000000009";
    assert_eq!(server.get("/agents/nobody").await.error(), error(404, "not_found"));
    assert_eq!(server.post("/runs", &new("nobody", "x", "sync")).await.error(), error(404, "not_found"));
    assert_eq!(server.post("/runs", &new("nobody", "x", "stream")).await.error(), error(404, "not_found"));
    assert_eq!(server.get(&format!("/runs/{unknown}")).await.error(), error(404, "not_found"));
    assert_eq!(server.get(&format!("/runs/{unknown}/events")).await.error(), error(404, "not_found"));
    assert_eq!(server.post(&format!("/runs/{unknown}/cancel"), &Value::Null).await.error(), error(404, "not_found"));
    assert_eq!(server.post(&format!("/runs/{unknown}"), &resume("x", "sync")).await.error(), error(404, "not_found"));
    assert_eq!(server.get(&format!("/sessions/{unknown}")).await.error(), error(404, "not_found"));
    assert_eq!(server.get("/sessions/20261115_1").await.error(), error(404, "not_found"));
    assert_eq!(server.get("/acp-rest/sessions/20261115_1").await.error(), error(422, "invalid_input"));
    assert_eq!(server.get("/runs/x").await.error(), error(422, "invalid_input"));
    assert_eq!(server.get("/agents?limit=0").await.error(), error(422, "invalid_input"));
    assert_eq!(server.get("/agents?limit=x").await.error(), error(422, "invalid_input"));
    assert_eq!(server.get("/resources/x").await.error(), error(404, "not_found"));
    assert_eq!(server.post("/runs", &json!({ "agent_name": "echo" })).await.error(), error(422, "invalid_input"));
    let run = server.run("echo", "x").await;
    assert_eq!(
        server.post(&TestServer::path(&run, ""), &resume("x", "sync")).await.error(),
        error(403, "invalid_input")
    );
    assert_eq!(
        server.post(&TestServer::path(&run, "/cancel"), &Value::Null).await.error(),
        error(403, "invalid_input")
    );
    let image = [("accept", "image/png")];
    assert_eq!(
        server.post_with("/runs", &new("echo", "x", "stream"), &image).await.error(),
        error(406, "invalid_input")
    );
    let latin = [("content-type", "application/json; charset=latin1")];
    assert_eq!(server.post_with("/runs", &new("echo", "x", "sync"), &latin).await.error(), error(415, "invalid_input"));
    for kind in ["application/json", "text/plain", "application/octet-stream; charset=UTF-8"] {
        let answer = server.post_with("/runs", &new("echo", "x", "sync"), &[("content-type", kind)]).await;
        assert_eq!(answer.status, 200, "{kind}");
    }
}

#[tokio::test]
async fn a_failed_run_is_an_answer_and_says_why() {
    let server = TestServer::open().await;
    for (agent, code) in [("failer", "invalid_input"), ("raiser", "invalid_input"), ("crash", "server_error")] {
        let run = server.run(agent, "x").await;
        assert_eq!((&run["status"], &run["error"]["code"]), (&json!("failed"), &json!(code)), "{agent}");
        let stream = server.post("/runs", &new(agent, "x", "stream")).await;
        assert_eq!(stream.kinds(), ["run.created", "run.in-progress", "run.failed"], "{agent}");
    }
    let why = "kept for a stream that breaks off: a failed run is told as such, for both SDKs give up at this event";
    ConformanceRecorder::for_protocol("acp_rest").refuses("event", "error", why);
}

#[tokio::test]
async fn a_prompt_waits_its_turn_but_not_behind_a_question() {
    let server = TestServer::open().await;
    let first = server.post("/runs", &new("slow_echo", "one", "async")).await.ok();
    let mut body = new("slow_echo", "two", "async");
    body["session_id"] = first["session_id"].clone();
    let second = server.post("/runs", &body).await.ok();
    assert_eq!(second["status"], "created");
    body["agent_name"] = json!("echo");
    assert_eq!(server.post("/runs", &body).await.error(), error(403, "invalid_input"));
    server.until(&second, "completed").await;
    assert_eq!(server.get(&TestServer::path(&first, "")).await.ok()["status"], "completed");
    let asked = server.run("awaiter", "x").await;
    let mut body = new("awaiter", "y", "sync");
    body["session_id"] = asked["session_id"].clone();
    let refused = server.post("/runs", &body).await;
    assert_eq!(refused.error(), error(403, "invalid_input"));
    assert!(refused.text.contains(asked["run_id"].as_str().unwrap()), "{}", refused.text);
}

#[tokio::test]
async fn nobody_sees_the_runs_of_another_and_a_scope_is_needed() {
    let server = TestServer::open().await;
    let run = server.run("awaiter", "x").await;
    let other = token::add_token(&server.config.paths, "other", &[Scope::Prompt], None).unwrap();
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let path = TestServer::path(&run, "");
    for path in [path.clone(), format!("{path}/events"), format!("/sessions/{}", run["session_id"].as_str().unwrap())] {
        let answer = client.get(server.url(&path)).bearer_auth(other.expose_secret()).send().await.unwrap();
        assert_eq!(answer.status().as_u16(), 404, "{path}");
    }
    let mut mine = new("echo", "x", "sync");
    mine["run_id"] = run["run_id"].clone();
    let taken = client.post(server.url("/runs")).bearer_auth(other.expose_secret()).body(mine.to_string());
    // A run id is the caller's own choice: that somebody else chose the same shows nowhere.
    assert_eq!(taken.send().await.unwrap().status().as_u16(), 200);
    let answer =
        client.post(server.url(&path)).bearer_auth(other.expose_secret()).body(resume("x", "sync").to_string());
    assert_eq!(answer.send().await.unwrap().status().as_u16(), 403);
}
