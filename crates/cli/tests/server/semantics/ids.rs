//! Ids in path, header and body agree, or the request is refused and nothing happens.

use serde_json::{Value, json};

use crate::semantics::test_server::{TestServer, VERSION, a2a, asking, goose, message, resume, text};
use crate::served::answer::new;

#[tokio::test]
async fn an_answer_that_names_another_run_is_refused() {
    let server = TestServer::open().await;
    let (one, other) = (server.prompt(&asking()).await, server.prompt(&asking()).await);
    assert_eq!((&one["status"], &other["status"]), (&json!("awaiting"), &json!("awaiting")), "{one}");
    let path = format!("/runs/{}", text(&one["run_id"]));
    let with = |name: &str, value: &Value| {
        let mut body = resume("allow_once");
        body[name] = value.clone();
        body
    };
    for body in [with("run_id", &other["run_id"]), with("session_id", &other["session_id"])] {
        let refused = server.post(&path, &body).await;
        assert_eq!(refused.error(), (400, "invalid_input".to_owned()), "{body}: {}", refused.text);
    }
    // The question that the other run asks.
    let detail = text(&other["await_request"]["message"]["parts"][1]["content"]);
    let question = serde_json::from_str::<Value>(&detail).unwrap()["question"].take();
    let chosen = json!({ "question": question, "choice": "allow_once" }).to_string();
    let mut body = resume("");
    body["await_resume"]["message"]["parts"] = json!([{ "content": chosen, "content_type": "application/json" }]);
    let refused = server.post(&path, &body).await;
    assert_eq!(refused.status, 403, "{}", refused.text);
    for run in [&one, &other] {
        let now = server.get(&format!("/runs/{}", text(&run["run_id"]))).await.ok();
        assert_eq!(now["status"], "awaiting", "nothing was answered");
    }
    let mut body = with("run_id", &one["run_id"]);
    body["session_id"] = one["session_id"].clone();
    assert_eq!(server.post(&path, &body).await.ok()["status"], "completed", "ids that agree are fine");
}

#[tokio::test]
async fn header_body_and_path_name_one_run() {
    let server = TestServer::open().await;
    let (one, other) = ("0198c0de-0000-7000-8000-000000000001", "0198c0de-0000-7000-8000-000000000002");
    let mut body = new("echo", "hi", "sync");
    body["run_id"] = json!(other);
    let refused = server.post_with("/runs", &body, &[("run-id", one)]).await;
    assert_eq!(refused.error(), (400, "invalid_input".to_owned()), "{}", refused.text);
    for id in [one, other] {
        assert_eq!(server.get(&format!("/runs/{id}")).await.status, 404, "no run was begun");
    }
    let run = server.prompt(&asking()).await;
    let path = format!("/runs/{}/cancel", text(&run["run_id"]));
    let refused = server.post(&path, &json!({ "run_id": other })).await;
    assert_eq!(refused.error(), (400, "invalid_input".to_owned()), "{}", refused.text);
    let answered = format!("/runs/{}", text(&run["run_id"]));
    for (path, body) in [(&path, json!({})), (&answered, resume("allow_once"))] {
        for (header, expected) in [(other, 400), ("no-id", 422)] {
            let refused = server.post_with(path, &body, &[("run-id", header)]).await;
            assert_eq!(refused.error(), (expected, "invalid_input".to_owned()), "{path}: {}", refused.text);
        }
    }
    assert_eq!(server.get(&answered).await.ok()["status"], "awaiting");
    assert_eq!(server.post(&path, &json!({ "run_id": run["run_id"] })).await.status, 202);
}

#[tokio::test]
async fn goose_takes_no_body_about_another_session() {
    let server = TestServer::open().await;
    let (one, other) = (server.goose_session().await, server.goose_session().await);
    let request = "0198c0de-0000-7000-8000-000000000003";
    let cases = [
        ("reply", json!({ "session_id": other, "request_id": request, "user_message": goose("hi") })),
        ("reply", json!({ "sessionId": other, "request_id": request, "user_message": goose("hi") })),
        ("cancel", json!({ "session_id": other, "request_id": request })),
        ("fork", json!({ "session_id": other, "truncate": false, "copy": true })),
        ("messages", json!({ "session_id": other, "message": goose("hi") })),
    ];
    for (verb, body) in cases {
        let refused = server.goose(&format!("/sessions/{one}/{verb}"), &body).await;
        assert_eq!(refused.status, 400, "{verb}: {}", refused.text);
        assert!(refused.json()["message"].as_str().unwrap().contains("differ"), "{}", refused.text);
    }
    let refused = server.put(&format!("/sessions/{one}/name"), &json!({ "session_id": other, "name": "x" })).await;
    assert_eq!(refused.status, 400, "{}", refused.text);
    for session in [&one, &other] {
        assert_eq!(server.user_texts(session).await, Vec::<String>::new());
    }
    let body = json!({ "session_id": one, "request_id": request, "user_message": goose("hi") });
    assert_eq!(server.goose(&format!("/sessions/{one}/reply"), &body).await.status, 200, "ids that agree are fine");
}

#[tokio::test]
async fn a2a_takes_no_body_about_another_task() {
    let server = TestServer::open().await;
    let mut tasks = Vec::new();
    for n in 0..2 {
        let task = server.send(a2a(&format!("m-{n}"), &asking())).await.unwrap();
        let id = text(&task["id"]);
        server.task(&id, "TASK_STATE_INPUT_REQUIRED").await;
        tasks.push(id);
    }
    let [one, other] = [&tasks[0], &tasks[1]];
    let push = json!({ "taskId": other, "url": "https://example.org/hook" });
    let posts = [
        (format!("/a2a/gander/tasks/{one}:cancel"), json!({ "id": other })),
        (format!("/a2a/gander/tasks/{one}:cancel"), json!({ "name": format!("tasks/{other}") })),
        (format!("/a2a/gander/tasks/{one}:subscribe"), json!({ "id": other })),
        (format!("/a2a/gander/tasks/{one}:cancel?id={other}"), json!({})),
        (format!("/a2a/gander/tasks/{one}/pushNotificationConfigs"), push),
        ("/a2a/gander/message:send".to_owned(), json!({ "tenant": "echo", "message": a2a("m", "x") })),
    ];
    for (path, body) in posts {
        let refused = server.post_with(&path, &body, &[VERSION]).await;
        assert_eq!(refused.status, 400, "{path} {body}: {}", refused.text);
        assert!(refused.text.contains("differ"), "{path}: {}", refused.text);
    }
    let refused = server.get_with(&format!("/a2a/gander/tasks/{one}?id={other}"), &[VERSION]).await;
    assert_eq!(refused.status, 400, "{}", refused.text);
    for task in &tasks {
        server.task(task, "TASK_STATE_INPUT_REQUIRED").await;
    }
    // A task is in one context.
    let mut said = crate::semantics::test_server::to_task(one, "m-9", "allow_once");
    said["contextId"] = server.task(other, "TASK_STATE_INPUT_REQUIRED").await["contextId"].clone();
    assert_eq!(server.send(said).await, Err(-32602));
    let cancelled =
        server.post_with(&format!("/a2a/gander/tasks/{one}:cancel"), &json!({ "id": one }), &[VERSION]).await;
    assert_eq!(cancelled.ok()["status"]["state"], "TASK_STATE_CANCELED");
}

#[tokio::test]
async fn adk_takes_no_body_about_another_session() {
    let server = TestServer::open().await;
    let sessions = "/apps/gander/users/u1/sessions";
    for id in ["one", "other"] {
        server.post(sessions, &json!({ "sessionId": id })).await.ok();
    }
    let said = json!({ "role": "user", "parts": [{ "text": "hi" }] });
    for (name, value) in [("sessionId", "other"), ("session_id", "other"), ("userId", "u2"), ("appName", "echo")] {
        for verb in ["run", "run_sse"] {
            let mut body = json!({ "newMessage": said });
            body[name] = json!(value);
            let refused = server.post(&format!("{sessions}/one/{verb}"), &body).await;
            assert_eq!(refused.status, 422, "{name} {verb}: {}", refused.text);
            assert_eq!(refused.json()["detail"][0]["loc"][0], "body", "{}", refused.text);
        }
    }
    for id in ["one", "other"] {
        assert_eq!(server.get(&format!("{sessions}/{id}")).await.ok()["events"], json!([]));
    }
    let body = json!({ "newMessage": said, "sessionId": "one", "userId": "u1", "appName": "gander" });
    assert_eq!(server.post(&format!("{sessions}/one/run"), &body).await.status, 200, "ids that agree are fine");
}

#[tokio::test]
async fn an_adk_answer_belongs_to_the_invocation_that_it_names() {
    let server = TestServer::open().await;
    let sessions = "/apps/gander/users/u1/sessions";
    server.post(sessions, &json!({ "sessionId": "one" })).await.ok();
    let run = |message: Value, invocation: Option<&str>| {
        let mut body = json!({ "appName": "gander", "userId": "u1", "sessionId": "one", "newMessage": message });
        body["invocationId"] = json!(invocation);
        body
    };
    let said = |text: &str| json!({ "role": "user", "parts": [{ "text": text }] });
    let first = server.post("/run", &run(said("hi"), None)).await.ok();
    let finished = text(&first[0]["invocationId"]);
    let asked = server.post("/run", &run(said(&asking()), None)).await.ok();
    let asked = asked.as_array().unwrap().iter().rev();
    let call = asked.clone().map(|event| &event["content"]["parts"][0]["functionCall"]);
    let call = call.clone().find(|call| call["name"] == "adk_request_confirmation").unwrap();
    let invocation = text(&asked.clone().next().unwrap()["invocationId"]);
    let response = json!({ "id": call["id"], "name": call["name"], "response": { "confirmed": true } });
    let answer = json!({ "role": "user", "parts": [{ "functionResponse": response }] });
    let refused = server.post("/run", &run(answer.clone(), Some(&finished))).await;
    assert_eq!(refused.status, 400, "{}", refused.text);
    let answered = server.post("/run", &run(answer, Some(&invocation))).await.ok();
    assert!(answered.to_string().contains("done"), "{answered}");
}

#[tokio::test]
async fn an_unknown_session_in_a_resumption_is_no_session_of_the_run() {
    let server = TestServer::open().await;
    let run = server.prompt(&asking()).await;
    let mut body = json!({ "mode": "sync", "await_resume": { "type": "message", "message": message("allow_once") } });
    body["session_id"] = json!("0198c0de-0000-7000-8000-000000000009");
    let refused = server.post(&format!("/runs/{}", text(&run["run_id"])), &body).await;
    assert_eq!(refused.error(), (400, "invalid_input".to_owned()), "{}", refused.text);
}

#[tokio::test]
async fn an_acp_answer_belongs_to_the_session_of_its_header() {
    let server = TestServer::open().await;
    let (one, other) = (server.goose_session().await, server.goose_session().await);
    let post = async |headers: &[(&str, &str)], body: &Value| {
        let headers =
            [&[crate::semantics::test_server::JSON, ("accept", "application/json, text/event-stream")], headers]
                .concat();
        server.post_with("/acp", body, &headers).await
    };
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": { "protocolVersion": 1 } });
    let connection = post(&[], &hello).await.headers["acp-connection-id"].to_str().unwrap().to_owned();
    let of = |session: &str| {
        [("acp-connection-id".to_owned(), connection.clone()), ("acp-session-id".to_owned(), session.to_owned())]
    };
    let about = async |session: &str, body: &Value| {
        let headers = of(session);
        post(&headers.each_ref().map(|(name, value)| (name.as_str(), value.as_str())), body).await
    };
    let prompt = json!({ "sessionId": one, "prompt": [{ "type": "text", "text": asking() }] });
    let prompt = json!({ "jsonrpc": "2.0", "id": 2, "method": "session/prompt", "params": prompt });
    assert_eq!(about(&one, &prompt).await.status, 202);
    let task = loop {
        let page = server.rpc("ListTasks", json!({ "contextId": one })).await;
        if let Some(task) = page["result"]["tasks"].get(0) {
            break text(&task["id"]);
        }
        tokio::task::yield_now().await;
    };
    server.task(&task, "TASK_STATE_INPUT_REQUIRED").await;
    let run = server.get(&format!("/runs/{task}")).await.ok();
    let detail = text(&run["await_request"]["message"]["parts"][1]["content"]);
    let question = serde_json::from_str::<Value>(&detail).unwrap()["question"].take();
    let outcome = json!({ "outcome": { "outcome": "selected", "optionId": "allow_once" } });
    let answer = json!({ "jsonrpc": "2.0", "id": question, "result": outcome });
    let refused = about(&other, &answer).await;
    assert_eq!(
        (refused.status, &refused.json()["error"]["data"]["reason"]),
        (400, &json!("session_mismatch")),
        "{}",
        refused.text
    );
    assert_eq!(server.get(&format!("/runs/{task}")).await.ok()["status"], "awaiting");
    assert_eq!(about(&one, &answer).await.status, 202);
    server.task(&task, "TASK_STATE_COMPLETED").await;
}
