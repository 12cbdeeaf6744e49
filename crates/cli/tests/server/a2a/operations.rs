//! Every operation in every binding that speaks JSON, and what the protocol consists of.

use gander_testkit::conformance::ConformanceRecorder;
use reqwest::{Method, Response};
use serde_json::{Value, json};

use crate::a2a::test_server::{TestServer, message};

/// Operations of 1.0, with their addresses.
const OPERATIONS: [(&str, &str, &str); 11] = [
    ("SendMessage", "POST", "message:send"),
    ("SendStreamingMessage", "POST", "message:stream"),
    ("GetTask", "GET", "tasks/{task}"),
    ("ListTasks", "GET", "tasks"),
    ("SubscribeToTask", "GET", "tasks/{task}:subscribe"),
    ("CreateTaskPushNotificationConfig", "POST", "tasks/{task}/pushNotificationConfigs"),
    ("GetTaskPushNotificationConfig", "GET", "tasks/{task}/pushNotificationConfigs/c"),
    ("ListTaskPushNotificationConfigs", "GET", "tasks/{task}/pushNotificationConfigs"),
    ("DeleteTaskPushNotificationConfig", "DELETE", "tasks/{task}/pushNotificationConfigs/c"),
    ("GetExtendedAgentCard", "GET", "extendedAgentCard"),
    ("CancelTask", "POST", "tasks/{task}:cancel"),
];

/// The methods of 0.3, in the same order where there is one.
const OLD: [&str; 10] = [
    "message/send",
    "message/stream",
    "tasks/get",
    "tasks/resubscribe",
    "tasks/pushNotificationConfig/set",
    "tasks/pushNotificationConfig/get",
    "tasks/pushNotificationConfig/list",
    "tasks/pushNotificationConfig/delete",
    "agent/getAuthenticatedExtendedCard",
    "tasks/cancel",
];

const STATES: [&str; 8] = [
    "TASK_STATE_SUBMITTED",
    "TASK_STATE_WORKING",
    "TASK_STATE_COMPLETED",
    "TASK_STATE_FAILED",
    "TASK_STATE_CANCELED",
    "TASK_STATE_INPUT_REQUIRED",
    "TASK_STATE_REJECTED",
    "TASK_STATE_AUTH_REQUIRED",
];

const EVENTS: [&str; 4] = ["task", "message", "statusUpdate", "artifactUpdate"];

const ERRORS: [&str; 13] = [
    "-32001", "-32002", "-32003", "-32004", "-32005", "-32006", "-32007", "-32008", "-32009", "-32600", "-32601",
    "-32602", "-32700",
];

#[test]
fn what_the_protocol_consists_of() {
    let mut recorder = ConformanceRecorder::for_protocol("a2a");
    recorder.lists("operation", OPERATIONS.map(|(name, _, _)| name));
    recorder.lists("operation of 0.3", OLD);
    recorder.lists("state", STATES);
    recorder.lists("event", EVENTS);
    recorder.lists("error", ERRORS);
}

/// The parameters of an operation beyond what its address says.
fn params(name: &str, task: &Value) -> Value {
    match name {
        "SendMessage" => json!({ "message": message("tck-complete-task", "x") }),
        "SendStreamingMessage" => json!({ "message": message("tck-stream-001", "x") }),
        "CreateTaskPushNotificationConfig" => json!({ "taskId": task, "id": "c", "url": "http://127.0.0.1:9/hook" }),
        "GetTaskPushNotificationConfig" | "DeleteTaskPushNotificationConfig" => json!({ "taskId": task, "id": "c" }),
        "ListTaskPushNotificationConfigs" => json!({ "taskId": task }),
        "ListTasks" | "GetExtendedAgentCard" => json!({}),
        _ => json!({ "id": task }),
    }
}

fn old_params(name: &str, task: &Value) -> Value {
    let said = |id: &str| {
        json!({ "message": { "kind": "message", "messageId": id, "role": "user",
            "parts": [{ "kind": "text", "text": "x" }] } })
    };
    let config = json!({ "id": "c", "url": "http://127.0.0.1:9/hook" });
    match name {
        "message/send" => said("tck-complete-task"),
        "message/stream" => said("tck-stream-001"),
        "tasks/pushNotificationConfig/set" => json!({ "taskId": task, "pushNotificationConfig": config }),
        "tasks/pushNotificationConfig/get" | "tasks/pushNotificationConfig/delete" => {
            json!({ "id": task, "pushNotificationConfigId": "c" })
        }
        "agent/getAuthenticatedExtendedCard" => json!({}),
        _ => json!({ "id": task }),
    }
}

async fn server() -> anyhow::Result<TestServer> {
    TestServer::with(&[("GANDER_A2A_PUSH_ALLOW", "[\"127.0.0.1\"]")]).await
}

/// True if it went well: a stream began, or there is an answer that is no error.
async fn went_well(response: Response) -> anyhow::Result<bool> {
    if response.headers()["content-type"].to_str()?.starts_with("text/event-stream") {
        return Ok(response.status() == 200);
    }
    let status = response.status();
    let body: Value = response.json().await?;
    Ok(status == 200 && body.get("error").is_none())
}

#[tokio::test]
async fn every_operation_over_json_rpc_and_http() -> anyhow::Result<()> {
    let (server, mut recorder) = (server().await?, ConformanceRecorder::for_protocol("a2a"));
    for binding in ["JSON-RPC", "HTTP+JSON"] {
        let task = server.send(&format!("tck-input-required-{binding}"), "x").await?["id"].take();
        for (name, verb, path) in OPERATIONS {
            let params = params(name, &task);
            let request = if binding == "JSON-RPC" {
                let body = json!({ "jsonrpc": "2.0", "id": 1, "method": name, "params": params });
                server.request(Method::POST, "/a2a").json(&body)
            } else {
                let path = format!("/a2a/{}", path.replace("{task}", task.as_str().unwrap()));
                let request = server.request(Method::from_bytes(verb.as_bytes())?, &path);
                if verb == "POST" { request.json(&params) } else { request }
            };
            assert!(went_well(request.header("A2A-Version", "1.0").send().await?).await?, "{binding} {name}");
            recorder.shows("operation", name, binding);
        }
    }
    Ok(())
}

#[tokio::test]
async fn every_operation_of_the_version_before() -> anyhow::Result<()> {
    let (server, mut recorder) = (server().await?, ConformanceRecorder::for_protocol("a2a"));
    let task = server.send("tck-input-required-1", "x").await?["id"].take();
    for name in OLD {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": name, "params": old_params(name, &task) });
        let response = server.request(Method::POST, "/a2a").json(&body).send().await?;
        assert!(went_well(response).await?, "{name}");
        recorder.shows("operation of 0.3", name, "JSON-RPC");
    }
    Ok(())
}

#[tokio::test]
async fn every_error_is_given_or_has_no_occasion() -> anyhow::Result<()> {
    let (server, mut recorder) = (server().await?, ConformanceRecorder::for_protocol("a2a"));
    let body = |text: &'static str| server.request(Method::POST, "/a2a").header("A2A-Version", "1.0").body(text);
    for (text, code) in [("{nope", -32700), ("[]", -32600)] {
        let answer: Value = body(text).send().await?.json().await?;
        assert_eq!(answer["error"]["code"], code, "{text}");
        recorder.shows("error", &code.to_string(), "JSON-RPC");
    }
    let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": { "id": "x" } });
    let later = server.request(Method::POST, "/a2a").header("A2A-Version", "9.9").json(&ping).send().await?;
    assert_eq!(later.json::<Value>().await?["error"]["code"], -32009);
    recorder.shows("error", "-32009", "JSON-RPC");
    let card = server.call("GetExtendedAgentCard", json!({})).await?;
    let capabilities = &card["capabilities"];
    assert_eq!((&capabilities["pushNotifications"], &capabilities["extendedAgentCard"]), (&json!(true), &json!(true)));
    assert!(capabilities["extensions"].as_array().unwrap().iter().all(|extension| extension["required"] != true));
    recorder.refuses("error", "-32003", "never given: updates are always pushed to whoever asks");
    recorder.refuses("error", "-32007", "never given: every agent has an extended card");
    recorder.refuses("error", "-32008", "never given: no extension is required");
    recorder.refuses("error", "-32006", "never given: what an agent says is checked before it is stored");
    Ok(())
}
