//! Tasks: sent, looked at, listed, answered, cancelled, and sent twice.

use reqwest::Method;
use serde_json::{Value, json};

use crate::a2a::test_server::{BINDINGS, Binding, TestServer, message};

#[tokio::test]
async fn a_message_becomes_the_same_task_in_every_binding() -> anyhow::Result<()> {
    let server = TestServer::open().await?;
    for binding in BINDINGS {
        let id = format!("tck-artifact-text-{binding:?}");
        let task = server.send_by(binding, &id, "hello").await?;
        let (state, text, said) = match binding {
            Binding::Rpc | Binding::Rest => {
                ("TASK_STATE_COMPLETED", json!([{ "text": "Generated text content" }]), json!([{ "text": "hello" }]))
            }
            Binding::OldRest => {
                ("TASK_STATE_COMPLETED", json!([{ "text": "Generated text content" }]), json!([{ "text": "hello" }]))
            }
            Binding::OldRpc => (
                "completed",
                json!([{ "kind": "text", "text": "Generated text content" }]),
                json!([{ "kind": "text", "text": "hello" }]),
            ),
        };
        let parts = if binding == Binding::OldRest { "content" } else { "parts" };
        assert_eq!(task["status"]["state"], state, "{binding:?}: {task}");
        assert_eq!(task["artifacts"][0]["parts"], text, "{binding:?}");
        assert_eq!(task["history"][0]["messageId"], id);
        assert_eq!(task["history"][0][parts], said, "{binding:?}");
        let looked = server.call("GetTask", json!({ "id": task["id"] })).await?;
        assert_eq!(looked["status"]["state"], "TASK_STATE_COMPLETED");
    }
    Ok(())
}

#[tokio::test]
async fn every_kind_of_artifact_comes_as_it_is() -> anyhow::Result<()> {
    let server = TestServer::open().await?;
    let made = async |id: &str| -> anyhow::Result<Value> {
        Ok(server.send(id, "x").await?["artifacts"][0]["parts"][0].take())
    };
    assert_eq!(
        made("tck-artifact-file-1").await?,
        json!({ "raw": "R2VuZXJhdGVkIGZpbGUgY29udGVudA==", "filename": "output.txt", "mediaType": "text/plain" })
    );
    assert_eq!(
        made("tck-artifact-file-url-1").await?,
        json!({ "url": "https://example.com/output.txt", "filename": "output.txt", "mediaType": "text/plain" })
    );
    assert_eq!(made("tck-artifact-data-1").await?, json!({ "data": { "key": "value", "count": 42 } }));
    let reply = server.call("SendMessage", json!({ "message": message("tck-message-response-1", "x") })).await?;
    assert_eq!(reply["message"]["parts"], json!([{ "text": "Direct message response" }]));
    assert_eq!(server.send("tck-reject-task-1", "x").await?["status"]["state"], "TASK_STATE_REJECTED");
    let failed = server.send("tck-fail-task-1", "x").await?;
    assert_eq!(failed["status"]["state"], "TASK_STATE_FAILED");
    assert_eq!(failed["status"]["message"]["parts"], json!([{ "text": "failed as asked" }]));
    Ok(())
}

#[tokio::test]
async fn a_task_that_asks_is_answered_once_and_its_messages_are_kept() -> anyhow::Result<()> {
    let server = TestServer::open().await?;
    let task = server.send("tck-input-required-1", "start").await?;
    assert_eq!(task["status"]["state"], "TASK_STATE_INPUT_REQUIRED", "{task}");
    let in_context = |id: &str| {
        let mut said = message(id, "again");
        said["contextId"] = task["contextId"].clone();
        json!({ "message": said })
    };
    assert_eq!(server.code("SendMessage", in_context("m-2")).await?, -32004);
    let answer = |id: &str| {
        let mut said = message(id, "blue");
        said["taskId"] = task["id"].clone();
        json!({ "message": said })
    };
    let done = server.call("SendMessage", answer("m-3")).await?["task"].take();
    assert_eq!(done["status"]["state"], "TASK_STATE_COMPLETED");
    assert_eq!(done["status"]["message"]["parts"], json!([{ "text": "Heard: blue" }]));
    let ids: Vec<&Value> = done["history"].as_array().unwrap().iter().map(|said| &said["messageId"]).collect();
    assert!(ids.contains(&&json!("tck-input-required-1")) && ids.contains(&&json!("m-3")), "{ids:?}");
    // the same message again is the same answer, another one comes too late
    assert_eq!(server.call("SendMessage", answer("m-3")).await?["task"]["id"], done["id"]);
    assert_eq!(server.code("SendMessage", answer("m-4")).await?, -32004);
    let login = server.send("tck-auth-required-1", "start").await?;
    assert_eq!(login["status"]["state"], "TASK_STATE_AUTH_REQUIRED");
    Ok(())
}

#[tokio::test]
async fn the_same_message_in_a_context_is_one_task_also_after_a_kill() -> anyhow::Result<()> {
    let server = TestServer::open().await?;
    let mut said = message("tck-complete-task-1", "once");
    said["contextId"] = json!("my-own-context");
    let params = json!({ "message": said });
    let first = server.call("SendMessage", params.clone()).await?["task"].take();
    assert_eq!(first["contextId"], "my-own-context");
    assert_eq!(server.call("SendMessage", params.clone()).await?["task"], first);
    let server = server.restart().await?;
    assert_eq!(server.call("SendMessage", params).await?["task"], first);
    let listed = server.call("ListTasks", json!({ "contextId": "my-own-context" })).await?;
    assert_eq!(listed["totalSize"], 1);
    assert_eq!(listed["tasks"][0]["id"], first["id"]);
    Ok(())
}

#[tokio::test]
async fn lists_go_page_by_page_newest_first() -> anyhow::Result<()> {
    let server = TestServer::open().await?;
    let mut sent = Vec::new();
    for n in 0..5 {
        sent.push(server.send(&format!("tck-artifact-text-{n}"), "x").await?["id"].clone());
    }
    sent.reverse();
    let (mut seen, mut token) = (Vec::new(), String::new());
    loop {
        let page = server.call("ListTasks", json!({ "pageSize": 2, "pageToken": token })).await?;
        assert_eq!((page["totalSize"].as_u64(), page["pageSize"].as_u64()), (Some(5), Some(2)));
        for task in page["tasks"].as_array().unwrap() {
            assert!(task.get("artifacts").is_none());
            seen.push(task["id"].clone());
        }
        token = page["nextPageToken"].as_str().unwrap().to_owned();
        if token.is_empty() {
            break;
        }
    }
    assert_eq!(seen, sent);
    let with = server.call("ListTasks", json!({ "includeArtifacts": true, "pageSize": 1 })).await?;
    assert_eq!(with["tasks"][0]["artifacts"][0]["parts"][0]["text"], "Generated text content");
    let working = server.call("ListTasks", json!({ "status": "TASK_STATE_WORKING" })).await?;
    assert_eq!(working["tasks"], json!([]));
    let rest = server.request(Method::GET, "/a2a/tasks?pageSize=3").header("A2A-Version", "1.0").send().await?;
    let rest: Value = rest.json().await?;
    assert_eq!(rest["tasks"].as_array().unwrap().len(), 3);
    assert_eq!(server.code("ListTasks", json!({ "pageToken": "nonsense" })).await?, -32602);
    Ok(())
}

#[tokio::test]
async fn a_running_task_is_cancelled_once() -> anyhow::Result<()> {
    let server = TestServer::open().await?;
    let task = server.start("tck-long-running-1", "x").await?;
    assert!(["TASK_STATE_SUBMITTED", "TASK_STATE_WORKING"].contains(&task["status"]["state"].as_str().unwrap()));
    let cancelled = server.call("CancelTask", json!({ "id": task["id"] })).await?;
    assert_eq!(cancelled["status"]["state"], "TASK_STATE_CANCELED");
    assert_eq!(server.code("CancelTask", json!({ "id": task["id"] })).await?, -32002);
    let path = format!("/a2a/tasks/{}:cancel", task["id"].as_str().unwrap());
    let again = server.request(Method::POST, &path).header("A2A-Version", "1.0").send().await?;
    assert_eq!(again.status(), 400);
    assert_eq!(again.json::<Value>().await?["error"]["details"][0]["reason"], "TASK_NOT_CANCELABLE");
    Ok(())
}

#[tokio::test]
async fn history_is_as_long_as_asked() -> anyhow::Result<()> {
    let server = TestServer::open().await?;
    let task = server.send("tck-complete-task-1", "x").await?;
    let none = server.call("GetTask", json!({ "id": task["id"], "historyLength": 0 })).await?;
    assert!(none.get("history").is_none());
    let path = format!("/a2a/v1/tasks/{}?historyLength=1", task["id"].as_str().unwrap());
    let old: Value = server.request(Method::GET, &path).send().await?.json().await?;
    assert_eq!(old["history"].as_array().unwrap().len(), 1);
    Ok(())
}
