//! What is wrong is told in each binding's own form, and nothing breaks.

use reqwest::Method;
use serde_json::{Value, json};

use crate::a2a::test_server::{TestServer, message};

#[tokio::test]
async fn each_error_has_its_code_in_json_rpc_and_its_status_in_rest() -> anyhow::Result<()> {
    let server = TestServer::open().await?;
    let over = server.send("tck-complete-task-1", "x").await?["id"].as_str().unwrap().to_owned();
    let about = |task: &str| {
        let mut said = message("m", "x");
        said["taskId"] = json!(task);
        json!({ "message": said })
    };
    let mut elsewhere = about(&over);
    elsewhere["message"]["contextId"] = json!("another");
    let unread = json!({ "tenant": "gander", "message": { "messageId": "m", "role": "ROLE_USER",
        "parts": [{ "raw": "aGk=", "mediaType": "application/x-unsupported" }] } });
    let cases = [
        ("GetTask", json!({ "id": "nope" }), -32001),
        ("SubscribeToTask", json!({ "id": "nope" }), -32001),
        ("CancelTask", json!({ "id": over }), -32002),
        ("SendMessage", about(&over), -32004),
        ("SendMessage", about("00000000-0000-7000-8000-000000000000"), -32001),
        ("SendMessage", elsewhere, -32602),
        ("SendMessage", unread, -32005),
        ("SubscribeToTask", json!({ "id": over }), -32004),
        ("SendMessage", json!({}), -32602),
        ("GetTaskPushNotificationConfig", json!({ "taskId": over, "id": "none" }), -32001),
        ("Nope", json!({}), -32601),
    ];
    for (method, params, code) in cases {
        assert_eq!(server.code(method, params.clone()).await?, code, "{method} {params}");
    }
    let rest = async |method: Method, path: &str, version: &str, body: &str| -> anyhow::Result<(u16, Value)> {
        let request = server.request(method, path).header("A2A-Version", version).body(body.to_owned());
        let response = request.send().await?;
        Ok((response.status().as_u16(), response.json().await.unwrap_or_default()))
    };
    for (method, path, version, body, status, reason) in [
        (Method::GET, "/a2a/tasks/nope".to_owned(), "1.0", "", 404, "TASK_NOT_FOUND"),
        (Method::POST, format!("/a2a/tasks/{over}:cancel"), "1.0", "", 400, "TASK_NOT_CANCELABLE"),
        (Method::GET, format!("/a2a/tasks/{over}:subscribe"), "1.0", "", 400, "UNSUPPORTED_OPERATION"),
        (Method::GET, format!("/a2a/tasks/{over}"), "9.9", "", 400, "VERSION_NOT_SUPPORTED"),
        (Method::GET, format!("/a2a/tasks/{over}"), "", "", 400, "VERSION_NOT_SUPPORTED"),
        (Method::POST, "/a2a/message:send".to_owned(), "1.0", "{nope", 400, "INVALID_REQUEST"),
        (Method::POST, "/a2a/message:send".to_owned(), "1.0", "[]", 400, "INVALID_REQUEST"),
        (Method::POST, "/a2a/message:send".to_owned(), "1.0", "{}", 400, "INVALID_PARAMS"),
        (Method::POST, "/a2a/message:send".to_owned(), "1.0", "{\"a\":\"\\ud800\"}", 400, "INVALID_REQUEST"),
    ] {
        let (found, body) = rest(method, &path, version, body).await?;
        assert_eq!((found, &body["error"]["details"][0]["reason"]), (status, &json!(reason)), "{path}: {body}");
    }
    assert_eq!(rest(Method::GET, "/a2a/nobody/tasks", "1.0", "").await?.0, 404);
    assert_eq!(rest(Method::GET, "/a2a/tasks/a/b/c/d", "1.0", "").await?.0, 404);
    Ok(())
}

#[tokio::test]
async fn nobody_comes_in_without_a_token_or_into_anothers_task() -> anyhow::Result<()> {
    let server = TestServer::open().await?;
    let task = server.send("tck-complete-task-1", "x").await?;
    let path = server.url(&format!("/a2a/tasks/{}", task["id"].as_str().unwrap()));
    assert_eq!(server.client.get(&path).header("A2A-Version", "1.0").send().await?.status(), 401);
    let token = server.server.launch.stdout(&["token", "add", "anna", "--scopes", "prompt"]).await?;
    let token = token.split_whitespace().last().unwrap_or_default().to_owned();
    let other = server.client.get(&path).header("A2A-Version", "1.0").bearer_auth(&token).send().await?;
    assert_eq!(other.status(), 404);
    Ok(())
}
