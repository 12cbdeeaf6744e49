//! What has another form than the protocol's own is refused in the protocol's own form.

use serde_json::{Value, json};

use crate::semantics::test_server::{JSON, TestServer, a2a, goose, text};

#[tokio::test]
async fn a_goose_message_has_a_role_and_content_that_goose_knows() {
    let server = TestServer::open().await;
    let session = server.goose_session().await;
    let reply = async |message: &Value| {
        server.goose("/reply", &json!({ "session_id": session, "user_message": message })).await
    };
    for role in [json!("system2"), json!("system"), json!(""), json!(7), json!(["user"])] {
        let mut message = goose("hi");
        message["role"] = role.clone();
        let refused = reply(&message).await;
        assert_eq!(refused.status, 422, "{role}: {}", refused.text);
        assert!(refused.json()["message"].as_str().unwrap().contains("role"), "{}", refused.text);
        let all = json!({ "session_id": session, "messages": [message, goose("hi")] });
        assert_eq!(server.goose("/reply", &all).await.status, 422, "{role} in a list of messages");
        let history = json!({ "session_id": session, "user_message": goose("hi"), "override_conversation": [message] });
        assert_eq!(server.goose("/reply", &history).await.status, 422, "{role} in a history");
        let added = json!({ "message": message });
        assert_eq!(server.goose(&format!("/sessions/{session}/messages"), &added).await.status, 422, "{role} added");
    }
    for content in [json!([{ "type": "hologram", "x": 1 }]), json!([{ "type": "text", "text": "hi" }, { "type": "" }])]
    {
        let mut message = goose("hi");
        message["content"] = content.clone();
        let refused = reply(&message).await;
        assert_eq!(refused.status, 422, "{content}: {}", refused.text);
        assert!(refused.json()["message"].as_str().unwrap().contains("type"), "{}", refused.text);
    }
    for text in [Value::Null, json!(7), json!({})] {
        let mut message = goose("hi");
        message["content"][0]["text"] = text.clone();
        assert_eq!(reply(&message).await.status, 422, "{text}");
    }
    assert_eq!(server.user_texts(&session).await, Vec::<String>::new());
}

#[tokio::test]
async fn a_folder_to_start_in_is_a_text_or_left_out() {
    let server = TestServer::open().await;
    for folder in [Value::Null, json!(7), json!(["/"])] {
        let refused = server.goose("/agent/start", &json!({ "working_dir": folder })).await;
        assert_eq!(refused.status, 422, "{folder}: {}", refused.text);
        assert!(refused.json()["message"].as_str().unwrap().contains("working_dir"), "{}", refused.text);
    }
    assert_eq!(server.get("/sessions").await.ok()["sessions"], json!([]));
    server.goose("/agent/start", &json!({})).await.ok();
}

#[tokio::test]
async fn a_deleted_context_is_not_begun_anew() {
    let server = TestServer::open().await;
    let task = server.send(a2a("m-1", "hi")).await.unwrap();
    let context = text(&task["contextId"]);
    server.task(&text(&task["id"]), "TASK_STATE_COMPLETED").await;
    assert_eq!(server.delete(&format!("/sessions/{context}")).await.status, 200);
    let mut again = a2a("m-2", "hi");
    again["contextId"] = json!(context);
    assert_eq!(server.send(again.clone()).await, Err(-32001));
    assert_eq!(server.send(again).await, Err(-32001));
    // A name that the client chose is free again.
    let mut named = a2a("m-3", "hi");
    named["contextId"] = json!("of the client");
    let task = server.send(named.clone()).await.unwrap();
    server.task(&text(&task["id"]), "TASK_STATE_COMPLETED").await;
    let run = server.get(&format!("/runs/{}", text(&task["id"]))).await.ok();
    assert_eq!(server.delete(&format!("/sessions/{}", text(&run["session_id"]))).await.status, 200);
    named["messageId"] = json!("m-4");
    assert_ne!(server.send(named).await.unwrap()["id"], task["id"]);
}

fn adk(message: Option<Value>, invocation: &str) -> Value {
    let mut body = json!({ "appName": "gander", "userId": "u1", "sessionId": "s", "invocationId": invocation });
    if let Some(message) = message {
        body["newMessage"] = message;
    }
    body
}

#[tokio::test]
async fn a_finished_invocation_is_not_run_again() {
    let server = TestServer::open().await;
    server.post("/apps/gander/users/u1/sessions", &json!({ "sessionId": "s" })).await.ok();
    let said = json!({ "role": "user", "parts": [{ "text": "hi" }] });
    let body = json!({ "appName": "gander", "userId": "u1", "sessionId": "s", "newMessage": said });
    let events = server.post("/run", &body).await.ok();
    let invocation = text(&events[0]["invocationId"]);
    let before = server.get("/apps/gander/users/u1/sessions/s").await.ok()["events"].clone();
    let other = json!({ "role": "user", "parts": [{ "text": "something else" }] });
    let messages = [None, Some(said), Some(other)];
    for (verb, message) in ["/run", "/run_sse"].iter().flat_map(|verb| messages.iter().map(move |said| (verb, said))) {
        let refused = server.post(verb, &adk(message.clone(), &invocation)).await;
        assert_eq!(refused.status, 400, "{verb} {message:?}: {}", refused.text);
        assert!(text(&refused.json()["detail"]).contains("finished"), "{}", refused.text);
    }
    for (unknown, message) in ["e-0198c0de-0000-7000-8000-000000000009", "x"].iter().zip(messages) {
        let refused = server.post("/run", &adk(message, unknown)).await;
        assert_eq!(refused.status, 404, "{unknown}: {}", refused.text);
    }
    assert_eq!(server.get("/apps/gander/users/u1/sessions/s").await.ok()["events"], before, "nothing was begun");
    let asked = server
        .post(
            "/run",
            &json!({ "appName": "gander", "userId": "u1", "sessionId": "s",
        "newMessage": { "role": "user", "parts": [{ "text": crate::semantics::test_server::asking() }] } }),
        )
        .await
        .ok();
    let asking = text(&asked[0]["invocationId"]);
    assert_eq!(server.post("/run", &adk(None, &asking)).await.status, 409, "it waits for an answer");
}

#[tokio::test]
async fn adk_says_what_is_wrong_and_where_as_a_list() {
    let server = TestServer::open().await;
    let sessions = "/apps/gander/users/u1/sessions";
    server.post(sessions, &json!({ "sessionId": "s" })).await.ok();
    let part = |part: Value| {
        json!({ "appName": "gander", "userId": "u1", "sessionId": "s",
            "newMessage": { "role": "user", "parts": [part] } })
    };
    let code = |language: Value| part(json!({ "executableCode": { "code": "x", "language": language } }));
    let refused = server.post("/run", &code(json!("rust"))).await;
    let expected = json!([{ "type": "enum", "loc": ["body", "newMessage", "parts", 0, "executableCode", "language"],
        "msg": "Input should be 'LANGUAGE_UNSPECIFIED' or 'PYTHON'", "input": "rust" }]);
    assert_eq!((refused.status, &refused.json()["detail"]), (422, &expected));
    let outcome = part(json!({ "codeExecutionResult": { "outcome": "FINE", "output": "x" } }));
    let wrong = [
        code(json!(7)),
        outcome,
        part(json!({ "executableCode": "print()" })),
        part(json!({ "executableCode": { "language": "PYTHON", "bogus": 1 } })),
        part(json!({ "inlineData": "x" })),
        part(json!({ "fileData": [] })),
        part(json!({ "functionResponse": 7 })),
        part(json!({ "functionCall": "x" })),
    ];
    for body in wrong {
        let refused = server.post("/run", &body).await;
        assert_eq!(refused.status, 422, "{body}: {}", refused.text);
        is_list(&refused.json()["detail"]);
    }
    for id in [json!(""), json!("a/b"), json!("x".repeat(2000)), json!("a\u{7}")] {
        let refused = server.post(sessions, &json!({ "sessionId": id })).await;
        assert_eq!(refused.status, 422, "{id}: {}", refused.text);
        is_list(&refused.json()["detail"]);
    }
    let huge = json!({ "state": { "x": "y".repeat(2 << 20) } });
    let refused = server.post_with(sessions, &huge, &[JSON]).await;
    assert_eq!(refused.status, 422, "{}", refused.text);
    is_list(&refused.json()["detail"]);
    let python = server.post("/run", &code(json!("python"))).await;
    assert_eq!(python.status, 200, "google-genai does not mind the case: {}", python.text);
}

fn is_list(detail: &Value) {
    let problems = detail.as_array().unwrap_or_else(|| panic!("no list: {detail}"));
    for problem in problems {
        for key in ["type", "loc", "msg", "input"] {
            assert!(problem.get(key).is_some(), "{key}: {problem}");
        }
    }
    assert!(!problems.is_empty());
}
