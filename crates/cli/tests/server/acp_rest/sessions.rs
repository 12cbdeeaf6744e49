//! Sessions: named by clients, gone on with, also across servers.

use serde_json::{Value, json};

use crate::acp_rest::test_server::{TestServer, new, said};

const NAME: &str = "0198c0de-0000-4000-8000-000000000042";

fn in_session(agent: &str, text: &str, session: &Value) -> Value {
    let mut body = new(agent, text, "sync");
    body["session"] = session.clone();
    body
}

#[tokio::test]
async fn a_session_is_named_by_its_client_and_spans_agents() {
    let server = TestServer::open().await;
    let path = format!("/sessions/{NAME}");
    assert_eq!(server.get(&path).await.status, 404);
    let fresh = json!({ "id": NAME, "history": [], "state": null });
    let run = server.post("/runs", &in_session("echo", "one", &fresh)).await.ok();
    assert_eq!(run["session_id"], NAME);
    assert_eq!(server.get(&path).await.ok()["id"], NAME);
    let mut next = new("history_echo", "two", "sync");
    next["session_id"] = json!(NAME);
    let run = server.post("/runs", &next).await.ok();
    assert_eq!(
        (said(&run), &run["agent_name"]),
        (vec!["one".into(), "one".into(), "two".into()], &json!("history_echo"))
    );
    assert_eq!(server.get(&TestServer::path(&run, "")).await.ok(), run);
}

#[tokio::test]
async fn a_talk_that_comes_along_is_history() {
    let server = TestServer::open().await;
    let line = |role: &str, text: &str| json!({ "role": role, "parts": [{ "content": text }] });
    let input = json!([line("user", "a"), line("agent", "b"), line("user", "c")]);
    let body = json!({ "agent_name": "history_echo", "input": input });
    assert_eq!(said(&server.post("/runs", &body).await.ok()), ["a", "b", "c"]);
}

#[tokio::test]
async fn a_session_goes_on_at_another_server_and_comes_back() {
    let settings = [("GANDER_SERVER_FORWARD_RESOURCES", "true"), ("GANDER_SERVER_RESOURCE_PEERS", "['127.0.0.1']")];
    let (one, two) = (TestServer::with(&settings).await, TestServer::with(&settings).await);
    let path = format!("/sessions/{NAME}");
    let mut session = json!({ "id": NAME, "history": [], "state": null });
    for (server, expected) in [(&one, 1), (&two, 3), (&one, 7), (&one, 15)] {
        let run = server.post("/runs", &in_session("history_echo", "x", &session)).await.ok();
        assert_eq!(said(&run), vec!["x".to_owned(); expected]);
        session = server.get(&path).await.ok();
        assert_eq!(session["history"].as_array().unwrap().len(), expected * 2);
    }
    let address = session["history"][0].as_str().unwrap();
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let message: Value = client.get(address).send().await.unwrap().json().await.unwrap();
    assert_eq!((&message["role"], &message["parts"][0]["content"]), (&json!("user"), &json!("x")));
    let id = address.rsplit('/').next().unwrap();
    assert_eq!(one.get(&format!("/resources/{id}")).await.ok(), message);
    let forged = format!("{}A", &address[..address.len() - 1]);
    assert_eq!(client.get(forged.replace("AA", "BB")).send().await.unwrap().status().as_u16(), 404);
}

#[tokio::test]
async fn history_is_not_fetched_from_where_it_may_not_be() {
    let (one, two) = (TestServer::with(&[("GANDER_SERVER_FORWARD_RESOURCES", "true")]).await, TestServer::open().await);
    let mut session = json!({ "id": NAME, "history": [], "state": null });
    one.post("/runs", &in_session("echo", "x", &session)).await.ok();
    session = one.get(&format!("/sessions/{NAME}")).await.ok();
    let refused = two.post("/runs", &in_session("history_echo", "x", &session)).await;
    assert_eq!(refused.error(), (422, "invalid_input".to_owned()));
    assert!(refused.text.contains("blocked"), "{}", refused.text);
    session["history"] = json!(["file:///etc/passwd"]);
    assert_eq!(two.post("/runs", &in_session("echo", "x", &session)).await.status, 422);
    let own: &str = &two.get(&format!("/sessions/{NAME}")).await.text;
    assert!(own.contains("not_found"), "{own}");
}
