//! Both ways to chat.

use gander_testkit::harness::eventually;
use reqwest::Method;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::goose_rest::test_server::{Events, TestServer, kinds, message, said, text};

#[tokio::test]
async fn a_reply_is_a_stream_of_one_run() {
    let server = TestServer::open().await;
    let session = server.start().await;
    let says = json!([[{"thought": "hm"}, {"text": "one two three", "chunks": 3, "delay_ms": 20}]]);
    let body = json!({"session_id": session, "user_message": message(says)});
    let mut events = server.listen("/reply", body).await;
    assert_eq!(events.frame().await.unwrap(), r#"data: {"type":"Ping"}"#, "a sign of life comes at once");
    let told = events.rest().await;
    assert_eq!(text(&told), "one two three");
    assert_eq!(kinds(&told).last(), Some(&"Finish"));
    let ids: Vec<&Value> = told.iter().filter(|e| e["type"] == "Message").map(|e| &e["message"]["id"]).collect();
    assert!(ids.windows(2).all(|pair| pair[0] == pair[1]), "one message has one id: {ids:?}");
    let finish = told.last().unwrap();
    assert_eq!(finish["token_state"]["inputTokens"], finish["token_state"]["input_tokens"]);
    let stored = server.conversation(&session).await;
    let roles: Vec<&Value> = stored.iter().map(|message| &message["role"]).collect();
    assert_eq!(roles, ["user", "assistant"]);
    assert_eq!(stored[1]["content"][1]["text"], "one two three");
}

/// Every form of a prompt from 1.8 to 1.39, and what adk2goose sends.
#[tokio::test]
async fn prompts_of_all_versions() {
    let server = TestServer::open().await;
    let (asks, other) = (message(json!([[{"text": "heard"}]])), said("earlier"));
    let lenient = json!({"id": "", "role": "user", "content": asks["content"], "metadata": {"user_visible": true}});
    let forms = [
        json!({"user_message": asks}),
        json!({"messages": [other, asks]}),
        json!({"user_message": asks, "conversation_so_far": [other]}),
        json!({"user_message": asks, "override_conversation": [other], "recipe_name": "r"}),
        json!({"user_message": lenient, "override_conversation": null}),
    ];
    for mut form in forms {
        form["session_id"] = json!(server.start().await);
        assert_eq!(text(&server.reply(form.clone()).await), "heard", "{form}");
    }
}

#[tokio::test]
async fn an_overridden_history_is_the_history() {
    let server = TestServer::open().await;
    let session = server.start().await;
    server.reply(json!({"session_id": session, "user_message": message(json!([[{"text": "first"}]]))})).await;
    let history = json!([said("other"), {"role": "assistant", "content": "answer"}]);
    let again = json!({"session_id": session, "user_message": said("help"), "override_conversation": history});
    server.reply(again).await;
    let stored = server.conversation(&session).await;
    assert_eq!(stored.len(), 4, "{stored:?}");
    assert_eq!(stored[0], said_whole("other"));
}

fn said_whole(text: &str) -> Value {
    let mut message = said(text);
    message["id"] = Value::Null;
    message
}

#[tokio::test]
async fn a_failed_run_says_so_and_finishes() {
    let server = TestServer::with(&[("GANDER_AGENT_RETRIES", "0")]).await;
    let session = server.start().await;
    let told = server
        .reply(json!({"session_id": session, "user_message": message(json!([[{"error": "unauthorized"}]]))}))
        .await;
    assert_eq!(kinds(&told), ["Error", "Finish"]);
}

#[tokio::test]
async fn a_reply_to_nobody_is_an_event() {
    let server = TestServer::open().await;
    for session in ["20260101_1", "01890000-0000-7000-8000-000000000000"] {
        let told = server.reply(json!({"session_id": session, "user_message": said("hi")})).await;
        assert_eq!(told, [json!({"type": "Error", "error": "Failed to read session: Session not found"})]);
    }
}

/// The answer under the tool's own id lets it run; the same answer twice finds nothing.
#[tokio::test]
async fn a_confirmation_by_either_route() {
    let server = TestServer::open().await;
    for (route, yes) in [
        ("/action-required/tool-confirmation", json!({"action": "allow_once", "principalType": "Tool"})),
        ("/confirm", json!({"approved": true})),
    ] {
        let session = server.start().await;
        let file = format!("{}/{session}", server.work());
        let calls = json!([[{"tool": "shell", "args": {"command": format!("touch {file}")}}], [{"text": "done"}]]);
        let mut events = server.listen("/reply", json!({"session_id": session, "user_message": message(calls)})).await;
        let asked = events.until(|event| event["message"]["content"][0]["type"] == "actionRequired").await;
        let message = &asked["message"];
        assert_eq!((&message["id"], &message["metadata"]["agentVisible"]), (&Value::Null, &json!(false)));
        let data = &message["content"][0]["data"];
        assert_eq!((&data["actionType"], &data["toolName"]), (&json!("toolConfirmation"), &json!("shell")));
        assert!(!std::path::Path::new(&file).exists());
        let mut answer = yes.clone();
        answer["id"] = data["id"].clone();
        answer["sessionId"] = json!(session);
        assert_eq!(server.post(route, answer.clone()).await, (200, json!({})));
        assert_eq!(text(&events.rest().await), "done");
        assert!(std::path::Path::new(&file).exists());
        assert_eq!(server.post(route, answer).await.0, 404, "a question is answered once");
    }
}

#[tokio::test]
async fn a_denied_tool_never_runs() {
    let server = TestServer::open().await;
    let session = server.start().await;
    let calls = json!([[{"tool": "shell", "args": {"command": "touch no"}}], [{"text": "then not"}]]);
    let mut events = server.listen("/reply", json!({"session_id": session, "user_message": message(calls)})).await;
    let asked = events.until(|event| event["message"]["content"][0]["type"] == "actionRequired").await;
    let id = asked["message"]["content"][0]["data"]["id"].clone();
    let no = json!({"id": id, "sessionId": session, "action": "deny_once"});
    server.ok("/action-required/tool-confirmation", no).await;
    let told = events.rest().await;
    assert_eq!(text(&told), "then not");
    assert!(!std::path::Path::new(&server.work()).join("no").exists());
}

/// A session that is listened to: accepted at once, told with ids, and told again after a cut.
#[tokio::test]
async fn a_session_that_is_listened_to() {
    let server = TestServer::open().await;
    let session = server.start().await;
    let listen = server.request(Method::GET, &format!("/sessions/{session}/events")).send().await.unwrap();
    let mut events = Events::of(listen);
    let request = Uuid::now_v7().to_string();
    let says = message(json!([[{"text": "a b c d", "chunks": 4, "delay_ms": 30}]]));
    let body = json!({"request_id": request, "user_message": says});
    assert_eq!(server.ok(&format!("/sessions/{session}/reply"), body).await, json!({"request_id": request}));
    let mut frames = Vec::new();
    loop {
        let frame = events.frame().await.unwrap();
        if frame.starts_with("id: ") {
            frames.push(frame.clone());
        }
        if frame.contains("\"Finish\"") {
            break;
        }
    }
    let data = |frame: &str| -> Value { serde_json::from_str(frame.split_once("data: ").unwrap().1).unwrap() };
    let told: Vec<Value> = frames.iter().map(|frame| data(frame)).collect();
    assert_eq!(text(&told), "a b c d");
    assert!(told.iter().all(|event| event["request_id"] == request && event["chat_request_id"] == request));
    for cut in 0..frames.len() - 1 {
        let id = frames[cut].lines().next().unwrap().strip_prefix("id: ").unwrap();
        let again = server.request(Method::GET, &format!("/sessions/{session}/events")).header("last-event-id", id);
        let mut again = Events::of(again.send().await.unwrap());
        let mut rest = String::new();
        loop {
            let event = again.event().await.unwrap();
            rest.push_str(&text(std::slice::from_ref(&event)));
            if event["type"] == "Finish" {
                break;
            }
        }
        assert_eq!(rest, text(&told[cut + 1..]), "cut after {id}");
    }
}

#[tokio::test]
async fn one_request_at_a_time_and_cancelled() {
    let server = TestServer::open().await;
    let session = server.start().await;
    let (first, second) = (Uuid::now_v7().to_string(), Uuid::now_v7().to_string());
    let slow = message(json!([[{"text": "never", "delay_ms": 60000}]]));
    let path = format!("/sessions/{session}/reply");
    server.ok(&path, json!({"request_id": first, "user_message": slow})).await;
    assert_eq!(server.post(&path, json!({"request_id": second, "user_message": slow})).await.0, 400);
    assert_eq!(
        server.post(&path, json!({"request_id": first, "user_message": slow})).await.0,
        200,
        "a retry is no second"
    );
    let listen = server.request(Method::GET, &format!("/sessions/{session}/events")).send().await.unwrap();
    let mut events = Events::of(listen);
    assert_eq!(events.event().await.unwrap(), json!({"type": "ActiveRequests", "request_ids": [first]}));
    server
        .request(Method::POST, &format!("/sessions/{session}/cancel"))
        .json(&json!({"request_id": first}))
        .send()
        .await
        .unwrap();
    assert_eq!(events.until(|event| event["type"] == "Finish").await["request_id"], first.as_str());
}

#[tokio::test]
async fn a_request_right_behind_a_cancel_waits_for_the_end_of_the_cancelled_one() {
    let server = TestServer::open().await;
    let session = server.start().await;
    let path = format!("/sessions/{session}/reply");
    for round in 0..5 {
        let (first, second) = (Uuid::now_v7().to_string(), Uuid::now_v7().to_string());
        let slow = message(json!([[{"text": "never", "delay_ms": 60000}]]));
        server.ok(&path, json!({"request_id": first, "user_message": slow})).await;
        server.ok(&format!("/sessions/{session}/cancel"), json!({"request_id": first})).await;
        let next = message(json!([[{"text": format!("answer {round}")}]]));
        server.ok(&path, json!({"request_id": second, "user_message": next})).await;
        let saved = || async { server.get(&format!("/sessions/{session}")).await.1.to_string() };
        eventually("the answer", || async { saved().await.contains(&format!("answer {round}\"")) }).await.unwrap();
    }
}

/// Dropping the connection is the only Stop that clients of `/reply` have.
#[tokio::test]
async fn a_reply_that_nobody_reads_is_cancelled() {
    let server = TestServer::with(&[("GANDER_SERVER_REPLY_GRACE", "20ms")]).await;
    let session = server.start().await;
    let slow = json!({"session_id": session, "user_message": message(json!([[{"text": "x", "delay_ms": 60000}]]))});
    let mut events = server.listen("/reply", slow).await;
    events.frame().await.unwrap();
    drop(events);
    let listen = server.request(Method::GET, &format!("/sessions/{session}/events")).send().await.unwrap();
    drop(listen);
    let idle = || async {
        let view = server.app.services().hub.session_view(session.parse().unwrap()).await.unwrap();
        view.run.is_none() && !view.ended.is_empty()
    };
    gander_testkit::harness::eventually("the run is cancelled", idle).await.unwrap();
}

/// Somebody who listens when the time to come back is over keeps the run only for as long as it listens.
#[tokio::test]
async fn a_reply_is_cancelled_when_the_last_of_those_who_listen_leaves() {
    let server = TestServer::with(&[("GANDER_SERVER_REPLY_GRACE", "1ms")]).await;
    let session = server.start().await;
    let slow = json!([[{"text": "x", "delay_ms": 3600000}]]);
    let slow = |session: &str| json!({"session_id": session, "user_message": message(slow.clone())});
    let mut events = server.listen("/reply", slow(&session)).await;
    events.frame().await.unwrap();
    let listen = server.request(Method::GET, &format!("/sessions/{session}/events")).send().await.unwrap();
    drop(events);
    // Signs of life come twice a second: with the third one the time to come back has long been over.
    let other = server.start().await;
    let mut elsewhere = server.listen("/reply", slow(&other)).await;
    for _ in 0..3 {
        elsewhere.frame().await.unwrap();
    }
    let view = || async { server.app.services().hub.session_view(session.parse().unwrap()).await.unwrap() };
    assert!(view().await.run.is_some(), "it is cancelled though somebody listens");
    drop(listen);
    let cancelled = || async { view().await.run.is_none() };
    gander_testkit::harness::eventually("the run is cancelled", cancelled).await.unwrap();
}

#[tokio::test]
async fn clear_is_told_to_everybody_and_forgets_what_was_spent() {
    let server = TestServer::open().await;
    let session = server.start().await;
    server.reply(json!({"session_id": session, "user_message": said("help")})).await;
    let listen = server.request(Method::GET, &format!("/sessions/{session}/events")).send().await.unwrap();
    let mut events = Events::of(listen);
    events.until(|event| event["type"] == "Finish").await;
    let (status, cleared) = server.post(&format!("/sessions/{session}/clear"), Value::Null).await;
    assert_eq!((status, &cleared["conversation"], &cleared["accumulated_total_tokens"]), (200, &json!([]), &json!(0)));
    assert_eq!(events.event().await.unwrap(), json!({"type": "UpdateConversation", "conversation": []}));
    let told = server.reply(json!({"session_id": session, "user_message": said("/clear")})).await;
    assert_eq!(kinds(&told), ["Message", "UpdateConversation", "Finish"]);
    assert_eq!(told[1]["conversation"], json!([]));
}
