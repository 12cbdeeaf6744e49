//! A policy is loosened by those who may approve, on whatever way.

use gander_domain::caller::Scope;
use gander_domain::{Policy, SessionId};
use serde_json::{Value, json};

use crate::scopes::{TestServer, is_denied};

const PROMPT: &[Scope] = &[Scope::Prompt];
const APPROVE: &[Scope] = &[Scope::Prompt, Scope::Approve];

async fn policy(house: &TestServer, session: &Value) -> Policy {
    let session: SessionId = session.as_str().unwrap().parse().unwrap();
    house.app.services().hub.view(session).await.unwrap().settings.policy
}

async fn start(house: &TestServer, token: &str) -> Value {
    house.ok(token, "/agent/start", &json!({})).await["id"].clone()
}

#[tokio::test]
async fn a_token_that_prompts_tightens_but_never_loosens() {
    let house = TestServer::open().await;
    let token = house.token("ann", PROMPT);
    let session = start(&house, &token).await;
    let mut socket = house.socket(&token).await.ok().unwrap();
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
        house.post(&token, "/agent/update_session", &json!({ "session_id": session, "goose_mode": "auto" })).await;
    assert_eq!((status, is_denied(&text)), (403, true), "{text}");
    assert_eq!(policy(&house, &session).await, Policy::Ask);
    let params = json!({ "sessionId": session, "configId": "policy", "value": "read_only" });
    let answer = socket.call("session/set_config_option", params).await;
    assert!(answer.get("error").is_none(), "{answer}");
    assert_eq!(policy(&house, &session).await, Policy::ReadOnly);
}

#[tokio::test]
async fn whoever_may_approve_loosens() {
    let house = TestServer::open().await;
    let token = house.token("ann", APPROVE);
    let session = start(&house, &token).await;
    house.ok(&token, "/agent/update_session", &json!({ "session_id": session, "goose_mode": "auto" })).await;
    assert_eq!(policy(&house, &session).await, Policy::Auto);
}

#[tokio::test]
async fn a_new_session_inherits_no_looser_policy_than_its_caller_may_set() {
    let house = TestServer::open().await;
    let approver = house.token("ann", APPROVE);
    let session = start(&house, &approver).await;
    house.ok(&approver, "/agent/update_session", &json!({ "session_id": session, "goose_mode": "auto" })).await;
    house.ok(&approver, "/config/upsert", &json!({ "key": "GOOSE_MODE", "value": "auto", "is_secret": false })).await;
    let token = house.token("ann", PROMPT);
    let started = start(&house, &token).await;
    let copy = json!({ "truncate": false, "copy": true });
    let copied =
        house.ok(&token, &format!("/sessions/{}/fork", session.as_str().unwrap()), &copy).await["sessionId"].clone();
    let mut socket = house.socket(&token).await.ok().unwrap();
    let made = socket.call("session/new", json!({ "mcpServers": [] })).await;
    let forked = socket.call("session/fork", json!({ "sessionId": session, "mcpServers": [] })).await;
    let inherited = [started, copied, made["result"]["sessionId"].clone(), forked["result"]["sessionId"].clone()];
    for session in &inherited {
        assert_eq!(policy(&house, session).await, Policy::Ask, "{inherited:?}");
    }
    assert_eq!(policy(&house, &session).await, Policy::Auto, "what was approved stays");
}
