//! Every method of A2A with every scope, in three bindings.

use gander_domain::caller::Scope;
use reqwest::Method;
use serde_json::{Value, json};

use crate::scopes::{SETS, TestServer, is_denied, suffices};

/// No task has it.
const NOTHING: &str = "019bffff-0000-7000-8000-000000000000";

/// Name in 1.0, name in 0.3, address in the REST binding, and what is needed.
pub const METHODS: [(&str, &str, &str, &str, Scope); 11] = [
    ("SendMessage", "message/send", "POST", "message:send", Scope::Prompt),
    ("SendStreamingMessage", "message/stream", "POST", "message:stream", Scope::Prompt),
    ("GetTask", "tasks/get", "GET", "tasks/{id}", Scope::Read),
    ("ListTasks", "", "GET", "tasks", Scope::Read),
    ("CancelTask", "tasks/cancel", "POST", "tasks/{id}:cancel", Scope::Prompt),
    ("SubscribeToTask", "tasks/resubscribe", "POST", "tasks/{id}:subscribe", Scope::Read),
    (
        "CreateTaskPushNotificationConfig",
        "tasks/pushNotificationConfig/set",
        "POST",
        "tasks/{id}/pushNotificationConfigs",
        Scope::Prompt,
    ),
    (
        "GetTaskPushNotificationConfig",
        "tasks/pushNotificationConfig/get",
        "GET",
        "tasks/{id}/pushNotificationConfigs/p1",
        Scope::Prompt,
    ),
    (
        "ListTaskPushNotificationConfigs",
        "tasks/pushNotificationConfig/list",
        "GET",
        "tasks/{id}/pushNotificationConfigs",
        Scope::Prompt,
    ),
    (
        "DeleteTaskPushNotificationConfig",
        "tasks/pushNotificationConfig/delete",
        "DELETE",
        "tasks/{id}/pushNotificationConfigs/p1",
        Scope::Prompt,
    ),
    ("GetExtendedAgentCard", "agent/getAuthenticatedExtendedCard", "GET", "extendedAgentCard", Scope::Read),
];

pub fn params(task: &str) -> Value {
    json!({
        "id": task, "taskId": task, "pushNotificationConfigId": "p1", "url": "https://example.com/hook",
        "config": { "url": "https://example.com/hook" },
        "pushNotificationConfig": { "url": "https://example.com/hook" },
        "message": { "messageId": "m", "taskId": task, "role": "ROLE_USER", "parts": [{ "text": "x" }] },
    })
}

#[tokio::test]
async fn every_method_in_every_binding_needs_what_the_table_says() {
    let server = TestServer::with(&[("GANDER_A2A_GRPC", "true")]).await;
    let mut wrong = Vec::new();
    for (name, scopes) in SETS {
        let token = server.token("ann", scopes);
        for (method, old, verb, rest, needed) in METHODS {
            let may = suffices(scopes, &[needed]);
            let call = |method: &str| json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params(NOTHING) });
            let new = server.post(&token, "/a2a", &call(method)).await;
            let verb: Method = verb.parse().unwrap();
            let body = (verb == Method::POST).then(|| params(NOTHING));
            let path = format!("/a2a/{}", rest.replace("{id}", NOTHING));
            let rest = server.ask(Some(&token), &verb, &path, body.as_ref()).await;
            let mut answers = vec![("JSON-RPC", new), ("REST", rest)];
            if !old.is_empty() {
                let mut message = params(NOTHING);
                message.as_object_mut().unwrap().remove("config");
                message["message"] = json!({ "kind": "message", "messageId": "m", "taskId": NOTHING, "role": "user",
                    "parts": [{ "kind": "text", "text": "x" }] });
                let call = json!({ "jsonrpc": "2.0", "id": 1, "method": old, "params": message });
                let request = server.client.post(server.url("/a2a")).bearer_auth(&token).header("a2a-version", "0.3");
                let response = request.json(&call).send().await.unwrap();
                answers.push(("JSON-RPC 0.3", (response.status().as_u16(), response.text().await.unwrap())));
            }
            for (binding, (status, text)) in answers {
                if is_denied(&text) == may || (status == 403) == may && binding == "REST" {
                    wrong.push(format!("{method} in {binding} as {name}: {status} {text:.160}"));
                }
            }
            let status = grpc(&server, &token, method).await;
            if (status == Some(7)) == may {
                wrong.push(format!("{method} in gRPC as {name}: {status:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of them:\n{}", wrong.len(), wrong.join("\n"));
}

#[tokio::test]
async fn a_stream_of_grpc_counts_like_any_other_stream() {
    for (most, is_refused) in [("0", true), ("1", false)] {
        let server = TestServer::with(&[("GANDER_A2A_GRPC", "true"), ("GANDER_LIMITS_LOCAL_STREAMS", most)]).await;
        let status = grpc(&server, &server.token, "SendStreamingMessage").await;
        assert_eq!(status == Some(8), is_refused, "{most} streams: {status:?}");
    }
}

/// The status of a gRPC call about no task; none if it succeeds.
async fn grpc(server: &TestServer, token: &str, method: &str) -> Option<u8> {
    let client = reqwest::Client::builder().no_proxy().http2_prior_knowledge().build().unwrap();
    let message = message(method);
    let mut body = vec![0, 0, 0, 0, u8::try_from(message.len()).unwrap()];
    body.extend_from_slice(&message);
    let request = client.post(server.url(&format!("/lf.a2a.v1.A2AService/{method}"))).bearer_auth(token);
    let request = request.header("content-type", "application/grpc").header("te", "trailers").body(body);
    let response = request.header("a2a-version", "1.0").send().await.unwrap();
    let status = response.headers().get("grpc-status")?;
    status.to_str().ok()?.parse().ok()
}

/// A request of this method in protocol buffers, with the field numbers of the specification.
fn message(method: &str) -> Vec<u8> {
    let text = |field: u8, text: &[u8]| [&[field << 3 | 2, u8::try_from(text.len()).unwrap()], text].concat();
    let nothing = NOTHING.as_bytes();
    match method {
        "SendMessage" | "SendStreamingMessage" => {
            let part = text(1, b"x");
            let said = [text(1, b"m"), text(3, nothing), vec![4 << 3, 1], text(5, &part)].concat();
            text(2, &said)
        }
        "CreateTaskPushNotificationConfig" => [text(3, nothing), text(4, b"https://example.com/hook")].concat(),
        "GetTaskPushNotificationConfig" | "DeleteTaskPushNotificationConfig" => {
            [text(2, nothing), text(3, b"p1")].concat()
        }
        "ListTaskPushNotificationConfigs" => text(1, nothing),
        "ListTasks" | "GetExtendedAgentCard" => Vec::new(),
        _ => text(2, nothing),
    }
}
