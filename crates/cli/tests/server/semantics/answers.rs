//! An answer counts for one question, once; whoever comes late or chooses what is not there is told so.

use gander_domain::Principal;
use serde_json::{Value, json};

use crate::semantics::test_server::{TestServer, a2a, asking, asking_then_slow, resume, text, to_task};
use crate::served::pipe;

const EXTENSION: &str = "urn:gander:a2a:activity:v1";

/// A task that waits for a permission: its id and its context.
async fn awaiting(server: &TestServer, n: usize, script: &str) -> (String, String) {
    let task = server.send(a2a(&format!("prompt-{n}"), script)).await.unwrap();
    let id = text(&task["id"]);
    server.task(&id, "TASK_STATE_INPUT_REQUIRED").await;
    (id, text(&task["contextId"]))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_losing_answer_over_a2a_never_becomes_a_prompt() {
    let server = TestServer::open().await;
    for n in 0..20 {
        let (task, session) = awaiting(&server, n, &asking()).await;
        let a2a = server.send(to_task(&task, &format!("answer-{n}"), "reject_once"));
        let path = format!("/runs/{task}");
        let body = resume("allow_once");
        let rest = server.post(&path, &body);
        let (a2a, rest) = tokio::join!(a2a, rest);
        match (&a2a, rest.status) {
            (Ok(_), 403) | (Err(-32004), 200) => {}
            other => panic!("one counts and the other is told so: {other:?} {}", rest.text),
        }
        let ended = server.task(&task, "TASK_STATE_COMPLETED").await;
        assert_eq!(server.user_texts(&session).await, [asking()], "{ended}");
    }
}

#[tokio::test]
async fn a_message_that_fits_an_answered_question_says_that_it_is_a_prompt() {
    let server = TestServer::open().await;
    let (task, session) = awaiting(&server, 1, &asking_then_slow()).await;
    server.send(to_task(&task, "m-1", "allow_once")).await.unwrap();
    server.task(&task, "TASK_STATE_WORKING").await;
    for (n, late) in ["reject_once", "Allow_Once", "yes", "no"].iter().enumerate() {
        assert_eq!(server.send(to_task(&task, &format!("late-{n}"), late)).await, Err(-32004), "{late}");
    }
    let answer = server.rpc("SendMessage", json!({ "message": to_task(&task, "late-9", "no") })).await;
    let error = text(&answer["error"]["message"]);
    assert!(error.contains("answered") && error.contains("prompt"), "it says what to do: {error}");
    let mut marked = to_task(&task, "m-2", "no");
    marked["metadata"] = json!({ EXTENSION: { "prompt": true } });
    server.send(marked).await.unwrap();
    assert_eq!(server.user_texts(&session).await, [asking_then_slow(), "no".to_owned()]);
    server.rpc("CancelTask", json!({ "id": task })).await;
}

#[tokio::test]
async fn other_words_to_a_running_task_are_a_prompt() {
    let server = TestServer::open().await;
    let (task, session) = awaiting(&server, 1, &asking_then_slow()).await;
    server.send(to_task(&task, "m-1", "allow_once")).await.unwrap();
    server.task(&task, "TASK_STATE_WORKING").await;
    server.send(to_task(&task, "m-2", "and more of it")).await.unwrap();
    assert_eq!(server.user_texts(&session).await, [asking_then_slow(), "and more of it".to_owned()]);
    server.rpc("CancelTask", json!({ "id": task })).await;
}

#[tokio::test]
async fn a_question_that_was_answered_is_told_from_one_that_never_was() {
    let server = TestServer::open().await;
    let (task, _) = awaiting(&server, 1, &asking_then_slow()).await;
    let asked = server.get(&format!("/runs/{task}")).await.ok();
    let detail = text(&asked["await_request"]["message"]["parts"][1]["content"]);
    let question = serde_json::from_str::<Value>(&detail).unwrap()["question"].take();
    server.send(to_task(&task, "m-1", "allow_once")).await.unwrap();
    server.task(&task, "TASK_STATE_WORKING").await;
    for (id, expected) in [(question, -32004), (json!("0198c0de-0000-7000-8000-000000000009"), -32602)] {
        let mut late = to_task(&task, "m-2", "reject_once");
        late["metadata"] = json!({ EXTENSION: { "question": id } });
        assert_eq!(server.send(late).await, Err(expected), "{id}");
    }
    server.rpc("CancelTask", json!({ "id": task })).await;
}

#[tokio::test]
async fn a_wrong_option_over_acp_is_asked_again_and_the_right_one_counts() {
    let server = TestServer::open().await;
    let mut client = pipe::client(&server.app, Principal::owner()).await;
    let session = client.new_session(&server.work()).await.unwrap();
    let prompt = client.prompt(&session, &asking()).await.unwrap();
    let asked = client.asked("session/request_permission").await.unwrap();
    let answer = |option: &str| json!({ "outcome": { "outcome": "selected", "optionId": option } });
    client.respond(&asked["id"], answer("nobody offered this")).await.unwrap();
    let again = client.asked("session/request_permission").await.unwrap();
    assert_eq!((&again["id"], &again["params"]["options"]), (&asked["id"], &asked["params"]["options"]));
    assert_eq!(again["params"]["_meta"]["gander/refused"], "no such option: nobody offered this");
    client.respond(&again["id"], answer("allow_once")).await.unwrap();
    assert_eq!(client.answer_to(prompt).await.unwrap()["stopReason"], "end_turn");
    let ran = std::fs::read_to_string(server.work().join("ran")).unwrap();
    assert_eq!(ran, "x\n", "it ran once");
}

#[tokio::test]
async fn a_wrong_option_leaves_the_question_open_at_every_protocol() {
    let server = TestServer::open().await;
    let run = server.prompt(&asking()).await;
    let (id, session) = (text(&run["run_id"]), text(&run["session_id"]));
    let refused = server.post(&format!("/runs/{id}"), &resume("nobody offered this")).await;
    assert_eq!(refused.error(), (422, "invalid_input".to_owned()));
    assert_eq!(server.send(to_task(&id, "m-1", "nobody offered this")).await, Err(-32602));
    let detail = text(&run["await_request"]["message"]["parts"][1]["content"]);
    let question = text(&serde_json::from_str::<Value>(&detail).unwrap()["question"]);
    let body = json!({ "id": question, "sessionId": session, "action": "perhaps" });
    assert_eq!(server.goose("/action-required/tool-confirmation", &body).await.status, 400);
    for response in [json!({ "choice": "nobody offered this" }), json!({ "choice": "x", "confirmed": true })] {
        let response = json!({ "id": format!("adk-{question}"), "name": "x", "response": response });
        let said = json!({ "role": "user", "parts": [{ "functionResponse": response }] });
        let body = json!({ "appName": "gander", "userId": "user", "sessionId": session, "newMessage": said });
        let refused = server.post("/run", &body).await;
        assert_eq!(refused.status, 400, "{}", refused.text);
    }
    assert_eq!(server.get(&format!("/runs/{id}")).await.ok()["status"], "awaiting");
    assert_eq!(server.post(&format!("/runs/{id}"), &resume("allow_once")).await.ok()["status"], "completed");
}
