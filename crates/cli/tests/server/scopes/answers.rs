//! Every way on which an answer can reach a question, with a token that prompts and one that approves.

use bytes::Bytes;
use futures::StreamExt as _;
use futures::stream::BoxStream;
use gander_domain::caller::Scope;
use gander_domain::{QuestionId, RunId, SessionId};
use reqwest::Method;
use serde_json::{Value, json};

use crate::scopes::{TestServer, is_denied};

/// A run that awaits an answer.
struct Awaiting {
    run: RunId,
    session: SessionId,
    question: QuestionId,
}

async fn awaiting(server: &TestServer, token: &str) -> Awaiting {
    let calls = json!([[{ "tool": "shell", "args": { "command": "touch asked" } }], [{ "text": "Done." }]]);
    let input = json!([{ "role": "user", "parts": [{ "content": format!("[[script:{calls}]]") }] }]);
    let agent = agent(server);
    let run = server.ok(token, "/runs", &json!({ "agent_name": agent, "mode": "sync", "input": input })).await;
    assert_eq!(run["status"], "awaiting", "{run}");
    let session = run["session_id"].as_str().unwrap().parse().unwrap();
    let view = server.app.services().hub.session_view(session).await.unwrap();
    let open = view.run.unwrap();
    Awaiting { run: open.id, session, question: open.questions[0].id }
}

/// The native agent, at the default policy.
fn agent(server: &TestServer) -> String {
    server.app.services().agents.default_manifest().name.clone()
}

async fn is_open(server: &TestServer, asked: &Awaiting) -> bool {
    let view = server.app.services().hub.session_view(asked.session).await.unwrap();
    view.run.is_some_and(|run| run.questions.iter().any(|question| question.id == asked.question))
}

/// Every request that answers, under a name.
fn requests(server: &TestServer, asked: &Awaiting) -> Vec<(&'static str, String, Value)> {
    let Awaiting { run, session, question } = asked;
    let confirm = json!({ "id": question, "session_id": session, "action": "allow_once" });
    let form = json!({ "type": "actionRequired", "data": {
        "actionType": "elicitationResponse", "id": question, "user_data": { "x": 1 },
    } });
    let said = json!({ "role": "user", "created": 1, "content": [form] });
    let response = json!({ "functionResponse": {
        "id": format!("adk-{question}"), "name": "adk_request_confirmation", "response": { "confirmed": true },
    } });
    let adk = json!({
        "appName": agent(server), "userId": "user", "sessionId": session,
        "newMessage": { "role": "user", "parts": [response] },
    });
    let message = json!({ "message": {
        "messageId": "m1", "taskId": run, "role": "ROLE_USER", "parts": [{ "text": "allow_once" }],
        "metadata": { "gander": { "question": question } },
    } });
    let rpc = |method: &str| json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": message });
    let resume = json!({ "run_id": run, "mode": "sync", "await_resume": {
        "type": "message", "message": { "role": "user", "parts": [{ "content": "allow_once" }] },
    } });
    vec![
        ("ACP-REST", format!("/runs/{run}"), resume.clone()),
        ("ACP-REST below its prefix", format!("/acp-rest/runs/{run}"), resume),
        ("goose confirmation", "/action-required/tool-confirmation".to_owned(), confirm.clone()),
        ("goose confirmation of old", "/confirm".to_owned(), confirm),
        ("goose reply", "/reply".to_owned(), json!({ "session_id": session, "user_message": said })),
        (
            "goose session reply",
            format!("/sessions/{session}/reply"),
            json!({ "request_id": "019bffff-0000-7000-8000-000000000001", "user_message": said }),
        ),
        ("ADK run", "/run".to_owned(), adk.clone()),
        ("ADK run_sse", "/run_sse".to_owned(), adk.clone()),
        ("ADK below its prefix", "/api/run".to_owned(), adk),
        ("A2A JSON-RPC", "/a2a".to_owned(), rpc("SendMessage")),
        ("A2A JSON-RPC stream", "/a2a".to_owned(), rpc("SendStreamingMessage")),
        ("A2A REST", "/a2a/message:send".to_owned(), message.clone()),
        ("A2A REST stream", "/a2a/message:stream".to_owned(), message),
    ]
}

const CHOSEN: &str = r#"{"outcome":{"outcome":"selected","optionId":"allow_once"}}"#;

#[tokio::test]
async fn a_token_that_prompts_answers_on_no_way() {
    let server = TestServer::open().await;
    let token = server.token("ann", &[Scope::Prompt]);
    let mut wrong = Vec::new();
    for way in 0..requests(&server, &awaiting(&server, &token).await).len() {
        let asked = awaiting(&server, &token).await;
        let (name, path, body) = requests(&server, &asked).swap_remove(way);
        let (status, text) = server.post(&token, &path, &body).await;
        if !is_denied(&text) || !is_open(&server, &asked).await {
            wrong.push(format!("{name}: {status} {text}"));
        }
    }
    assert!(wrong.is_empty(), "{} of them:\n{}", wrong.len(), wrong.join("\n"));
    // The same principal with the scope: nothing else was in the way.
    let asked = awaiting(&server, &token).await;
    let token = server.token("ann", &[Scope::Prompt, Scope::Approve]);
    let (_, path, body) = requests(&server, &asked).swap_remove(0);
    let run = server.ok(&token, &path, &body).await;
    assert_eq!(run["status"], "completed", "{run}");
}

/// Whole, and in an envelope that only the connection can read.
#[tokio::test]
async fn a_token_that_prompts_answers_in_no_envelope_of_acp() {
    let server = TestServer::open().await;
    let token = server.token("ann", &[Scope::Prompt]);
    let mut wrong = Vec::new();
    for beside in ["", r#","params":[1]"#, r#","params":{"sessionId":7}"#] {
        let asked = awaiting(&server, &token).await;
        let message = format!(r#"{{"jsonrpc":"2.0","id":"{}","result":{CHOSEN}{beside}}}"#, asked.question);
        let (connection, _events) = connected(&server, &token, &asked).await;
        let (status, text) = posted(&server, &token, &connection, message.clone()).await;
        let refused = (status == 403 && is_denied(&text)) || status == 400;
        if !refused || !is_open(&server, &asked).await {
            wrong.push(format!("{message}: {status} {text}"));
        }
    }
    assert!(wrong.is_empty(), "{} of them:\n{}", wrong.len(), wrong.join("\n"));
}

/// Nobody can answer an answer: one that does not count is ignored.
#[tokio::test]
async fn a_token_that_prompts_answers_on_no_websocket() {
    let server = TestServer::open().await;
    let token = server.token("ann", &[Scope::Prompt]);
    let asked = awaiting(&server, &token).await;
    let mut socket = server.socket(&token).await.ok().unwrap();
    socket.call("session/load", json!({ "sessionId": asked.session, "mcpServers": [] })).await;
    let chosen: Value = serde_json::from_str(CHOSEN).unwrap();
    socket.send(&json!({ "jsonrpc": "2.0", "id": asked.question, "result": chosen })).await;
    let params = json!({ "sessionId": asked.session, "elicitationId": asked.question, "userData": { "x": 1 } });
    for method in ["_goose/unstable/elicitation/respond", "_goose/elicitation/respond"] {
        let answer = socket.call(method, params.clone()).await;
        assert!(is_denied(&answer["error"]["message"].to_string()), "{answer}");
    }
    assert!(is_open(&server, &asked).await);
}

#[tokio::test]
async fn a_token_that_approves_is_in_nobodys_way() {
    let server = TestServer::open().await;
    let token = server.token("ann", &[Scope::Prompt, Scope::Approve]);
    for way in 0..requests(&server, &awaiting(&server, &token).await).len() {
        let asked = awaiting(&server, &token).await;
        let (name, path, body) = requests(&server, &asked).swap_remove(way);
        let (status, text) = server.post(&token, &path, &body).await;
        assert!(!is_denied(&text) && status != 403, "{name}: {status} {text}");
    }
}

/// A connection that was asked the question, and the stream on which it heard it.
async fn connected(
    server: &TestServer,
    token: &str,
    asked: &Awaiting,
) -> (String, BoxStream<'static, reqwest::Result<Bytes>>) {
    let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": { "protocolVersion": 1 } });
    let request = server.client.request(Method::POST, server.url("/acp")).bearer_auth(token).json(&hello);
    let response = request.send().await.unwrap();
    let connection = response.headers()["acp-connection-id"].to_str().unwrap().to_owned();
    let params = json!({ "sessionId": asked.session, "mcpServers": [] });
    let load = json!({ "jsonrpc": "2.0", "id": 1, "method": "session/load", "params": params });
    assert_eq!(posted(server, token, &connection, load.to_string()).await.0, 202);
    let request = server.client.get(server.url("/acp")).bearer_auth(token).header("accept", "text/event-stream");
    let request = request.header("acp-connection-id", &connection).header("acp-session-id", asked.session.to_string());
    let mut events = request.send().await.unwrap().bytes_stream();
    let mut text = String::new();
    while !text.contains("session/request_permission") {
        text.push_str(&String::from_utf8_lossy(&events.next().await.unwrap().unwrap()));
    }
    (connection, events.boxed())
}

async fn posted(server: &TestServer, token: &str, connection: &str, message: String) -> (u16, String) {
    let request = server.client.request(Method::POST, server.url("/acp")).bearer_auth(token);
    let request = request.header("acp-connection-id", connection).header("content-type", "application/json");
    let response = request.body(message).send().await.unwrap();
    (response.status().as_u16(), response.text().await.unwrap())
}
