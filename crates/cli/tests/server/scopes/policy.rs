//! A policy is loosened by those who may approve, on whatever way.

use gander_domain::caller::Scope;
use gander_domain::{Policy, SessionId};
use serde_json::{Value, json};

use crate::scopes::{TestServer, is_denied};

const PROMPT: &[Scope] = &[Scope::Prompt];
const APPROVE: &[Scope] = &[Scope::Prompt, Scope::Approve];

async fn policy(server: &TestServer, session: &Value) -> Policy {
    let session: SessionId = session.as_str().unwrap().parse().unwrap();
    server.app.services().hub.session_view(session).await.unwrap().settings.policy
}

async fn start(server: &TestServer, token: &str) -> Value {
    server.ok(token, "/agent/start", &json!({})).await["id"].clone()
}

#[tokio::test]
async fn a_token_that_prompts_tightens_but_never_loosens() {
    let server = TestServer::open().await;
    let token = server.token("ann", PROMPT);
    let session = start(&server, &token).await;
    let mut socket = server.socket(&token).await.ok().unwrap();
    socket.call("session/resume", json!({ "sessionId": session, "mcpServers": [] })).await;
    for (config, value) in [("policy", "auto"), ("policy", "auto_edit"), ("mode", "auto"), ("mode", "smart_approve")] {
        let params = json!({ "sessionId": session, "configId": config, "value": value });
        let answer = socket.call("session/set_config_option", params).await;
        assert!(is_denied(&answer["error"]["message"].to_string()), "{config} {value}: {answer}");
        assert_eq!(answer["error"]["data"]["reason"], "forbidden");
    }
    let answer = socket.call("session/set_mode", json!({ "sessionId": session, "modeId": "auto" })).await;
    assert!(is_denied(&answer["error"]["message"].to_string()), "{answer}");
    let (status, text) =
        server.post(&token, "/agent/update_session", &json!({ "session_id": session, "goose_mode": "auto" })).await;
    assert_eq!((status, is_denied(&text)), (403, true), "{text}");
    assert_eq!(policy(&server, &session).await, Policy::Ask);
    let params = json!({ "sessionId": session, "configId": "policy", "value": "read_only" });
    let answer = socket.call("session/set_config_option", params).await;
    assert!(answer.get("error").is_none(), "{answer}");
    assert_eq!(policy(&server, &session).await, Policy::ReadOnly);
}

#[tokio::test]
async fn whoever_may_approve_loosens() {
    let server = TestServer::open().await;
    let token = server.token("ann", APPROVE);
    let session = start(&server, &token).await;
    server.ok(&token, "/agent/update_session", &json!({ "session_id": session, "goose_mode": "auto" })).await;
    assert_eq!(policy(&server, &session).await, Policy::Auto);
}

#[tokio::test]
async fn a_new_session_inherits_no_looser_policy_than_its_caller_may_set() {
    let server = TestServer::open().await;
    let approver = server.token("ann", APPROVE);
    let session = start(&server, &approver).await;
    server.ok(&approver, "/agent/update_session", &json!({ "session_id": session, "goose_mode": "auto" })).await;
    server.ok(&approver, "/config/upsert", &json!({ "key": "GOOSE_MODE", "value": "auto", "is_secret": false })).await;
    let token = server.token("ann", PROMPT);
    let started = start(&server, &token).await;
    let copy = json!({ "truncate": false, "copy": true });
    let copied =
        server.ok(&token, &format!("/sessions/{}/fork", session.as_str().unwrap()), &copy).await["sessionId"].clone();
    let mut socket = server.socket(&token).await.ok().unwrap();
    let made = socket.call("session/new", json!({ "mcpServers": [] })).await;
    let forked = socket.call("session/fork", json!({ "sessionId": session, "mcpServers": [] })).await;
    let inherited = [started, copied, made["result"]["sessionId"].clone(), forked["result"]["sessionId"].clone()];
    for session in &inherited {
        assert_eq!(policy(&server, session).await, Policy::Ask, "{inherited:?}");
    }
    assert_eq!(policy(&server, &session).await, Policy::Auto, "what was approved stays");
}
