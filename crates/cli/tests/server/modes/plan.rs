//! Plan mode: proposed, shown, changed, approved, then carried out; nothing is written before.

use std::path::PathBuf;

use gander_domain::{Outcome, PlanStatus, QuestionId};
use serde_json::{Value, json};

use crate::modes::test_server::{PATIENCE, TestServer, listed, plays};

/// Tries to write, proposes, writes what the plan says, ends.
fn script() -> String {
    plays(&json!([
        [{ "tool": "write", "args": { "path": "early.txt", "content": "too early" } },
         { "tool": "shell", "args": { "command": "touch early-too.txt" } }],
        [{ "tool": "propose_plan", "args": { "items": [{ "text": "write done.txt" }, { "text": "check it" }] } }],
        [{ "tool": "write", "args": { "path": "done.txt", "content": "as planned" } },
         { "tool": "plan", "args": { "items": [{ "text": "write done.txt", "status": "completed" }] } }],
        [{ "text": "carried out" }],
    ]))
}

fn edited() -> Value {
    json!({ "items": ["write done.txt", { "text": "tell everybody", "priority": "high" }] })
}

/// The folder of a session that waits for approval: nothing is in it.
async fn untouched(server: &TestServer, session: &str) -> PathBuf {
    let view = server.view(session).await;
    let folder = PathBuf::from(&view.workspace);
    assert_eq!(listed(&folder), Vec::<String>::new(), "nothing may be written before the plan is approved");
    assert_eq!((view.settings.agent.as_str(), view.settings.mode.as_str()), ("gander", "planner"));
    let texts: Vec<&str> = view.plan.items.iter().map(|item| item.text.as_str()).collect();
    assert_eq!(texts, ["write done.txt", "check it"], "the proposal is shown");
    let question = &view.run.as_ref().unwrap().questions[0];
    assert_eq!(question.plan.as_ref().unwrap().plan, view.plan);
    folder
}

/// Waits for the end of the run, and finds what the plan said.
async fn carried_out(server: &TestServer, session: &str, folder: &std::path::Path) {
    let patience = tokio::time::Instant::now() + PATIENCE;
    let view = loop {
        let view = server.view(session).await;
        if view.run.is_none() {
            break view;
        }
        assert!(tokio::time::Instant::now() < patience, "the plan is not carried out: {:?}", view.run);
        tokio::task::yield_now().await;
    };
    assert!(matches!(view.ended.last(), Some((_, Outcome::Completed { .. }))), "{:?}", view.ended);
    assert_eq!(listed(folder), ["done.txt"]);
    assert_eq!(view.settings.mode, "assistant", "approval hands over to whoever carries it out");
    assert_eq!(view.plan.items[0].status, PlanStatus::Completed, "the plan goes on living");
}

#[tokio::test]
async fn from_an_editor_with_a_changed_plan() {
    let server = TestServer::open().await;
    let mut editor = server.editor().await;
    let session = editor.new_session(&server.work()).await.unwrap();
    editor.call("session/set_mode", json!({ "sessionId": session, "modeId": "planner" })).await.unwrap();
    let prompt = editor.prompt(&session, &script()).await.unwrap();
    let shown = editor.update("plan").await.unwrap();
    assert_eq!(shown["entries"][1]["content"], "check it");
    let asked = editor.asked("session/request_permission").await.unwrap();
    let folder = untouched(&server, &session).await;
    let outcome = json!({ "outcome": "selected", "optionId": "approve" });
    editor.respond(&asked["id"], json!({ "outcome": outcome, "_meta": { "gander/plan": edited() } })).await.unwrap();
    let changed = editor.update("plan").await.unwrap();
    assert_eq!(changed["entries"][1]["content"], "tell everybody");
    assert_eq!(changed["entries"][1]["priority"], "high");
    assert_eq!(editor.update("current_mode_update").await.unwrap()["currentModeId"], "assistant");
    // A plan is no leave to write: that is asked as ever.
    let asked = editor.asked("session/request_permission").await.unwrap();
    editor.choose(&asked, "allow_once").await.unwrap();
    assert_eq!(editor.answer_to(prompt).await.unwrap()["stopReason"], "end_turn");
    carried_out(&server, &session, &folder).await;
    let told = editor.seen.iter().rev().find(|seen| {
        seen["params"]["update"]["status"] == "completed" && seen.to_string().contains("approved this plan")
    });
    assert!(told.unwrap().to_string().contains("2. tell everybody"), "the model is told the plan as it was approved");
}

#[tokio::test]
async fn from_the_agent_communication_protocol() {
    let server = TestServer::open().await;
    let run = crate::modes::test_server::run(&server, "planner", None, &script()).await;
    assert_eq!(run["status"], "awaiting", "{run}");
    let detail = run["await_request"]["message"]["parts"][1]["content"].as_str().unwrap();
    assert_eq!(serde_json::from_str::<Value>(detail).unwrap()["plan"]["items"][0]["text"], "write done.txt");
    let session = run["session_id"].as_str().unwrap();
    let folder = untouched(&server, session).await;
    let answer = |part: Value| {
        let message = json!({ "role": "user", "parts": [part] });
        json!({ "run_id": run["run_id"], "mode": "sync", "await_resume": { "type": "message", "message": message } })
    };
    let path = format!("/runs/{}", run["run_id"].as_str().unwrap());
    let bad = json!({ "content_type": "application/json", "content": json!({ "items": [7] }).to_string() });
    let (status, refused) = server.send(reqwest::Method::POST, &path, Some(&answer(bad))).await;
    assert_eq!(status, 422, "{refused}");
    untouched(&server, session).await;
    let part = json!({ "content_type": "application/json", "content": edited().to_string() });
    let writes = server.post(&path, answer(part)).await;
    assert_eq!(writes["status"], "awaiting", "a plan is no leave to write: {writes}");
    let ended = server.post(&path, answer(json!({ "content": "yes" }))).await;
    assert_eq!(ended["status"], "completed", "{ended}");
    carried_out(&server, session, &folder).await;
}

/// The first question of a session that is not this one, once it is there.
async fn asked(server: &TestServer, session: &str, before: Option<QuestionId>) -> QuestionId {
    loop {
        let run = server.view(session).await.run;
        let mut questions = run.iter().flat_map(|run| &run.questions);
        if let Some(question) = questions.find(|question| Some(question.id) != before) {
            return question.id;
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn from_goose_with_the_mode_plan() {
    let server = TestServer::open().await;
    let started = server.post("/agent/start", json!({ "working_dir": server.work() })).await;
    let session = started["id"].as_str().unwrap().to_owned();
    let content = json!([{ "type": "text", "text": script() }]);
    let body = json!({
        "session_id": session, "mode": "plan", "messages": [{ "role": "user", "created": 1, "content": content }],
    });
    let confirm = async {
        let allow = async |question: QuestionId| {
            let body = json!({ "id": question, "action": "allow_once", "sessionId": session, "principalType": "Tool" });
            server.post("/action-required/tool-confirmation", body).await
        };
        let plan = asked(&server, &session, None).await;
        let folder = untouched(&server, &session).await;
        allow(plan).await;
        allow(asked(&server, &session, Some(plan)).await).await;
        folder
    };
    let (reply, folder) = tokio::join!(server.post("/reply", body), confirm);
    let told = reply.as_str().unwrap();
    assert!(told.contains("PlanProposal") && told.contains("carried out"), "{told}");
    carried_out(&server, &session, &folder).await;
}

#[tokio::test]
async fn from_a2a_and_turned_down() {
    let server = TestServer::open().await;
    let message = |text: &str, more: Value| {
        let id: String = text.chars().rev().take(100).collect();
        let mut message = json!({ "messageId": id, "role": "ROLE_USER", "parts": [{ "text": text }] });
        message.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({ "message": message })
    };
    let sent = server.post("/a2a/planner/message:send", message(&script(), json!({}))).await;
    let task = &sent["task"];
    assert_eq!(task["status"]["state"], "TASK_STATE_INPUT_REQUIRED", "{sent}");
    let session = task["contextId"].as_str().unwrap();
    let folder = untouched(&server, session).await;
    server.post("/a2a/planner/message:send", message("reject", json!({ "taskId": task["id"] }))).await;
    let view = server.view(session).await;
    assert_eq!(view.settings.mode, "planner", "a plan that is turned down changes nothing");
    assert_eq!(listed(&folder), Vec::<String>::new());
}

#[tokio::test]
async fn from_adk_with_a_changed_plan_as_payload() {
    let server = TestServer::open().await;
    let sessions = "/apps/planner/users/u1/sessions";
    let made = server.post(sessions, json!({})).await;
    let session = made["id"].as_str().unwrap();
    let says = |parts: Value| json!({ "appName": "planner", "userId": "u1", "sessionId": session, "newMessage": { "parts": parts } });
    let asks = |told: &Value| {
        let calls = told.as_array().unwrap().iter().flat_map(|event| event["content"]["parts"].as_array().cloned());
        let asks = calls.flatten().find(|part| part["functionCall"]["name"] == "adk_request_confirmation");
        asks.unwrap_or_else(|| panic!("nothing is asked: {told}"))["functionCall"].clone()
    };
    let asked = asks(&server.post("/run", says(json!([{ "text": script() }]))).await);
    let payload = &asked["args"]["toolConfirmation"]["payload"];
    assert_eq!(payload["items"][1]["text"], "check it");
    let folder = untouched(&server, session).await;
    let answer = |asked: &Value, response: Value| json!([{ "functionResponse": { "id": asked["id"], "name": asked["name"], "response": response } }]);
    let plan = json!({ "confirmed": true, "payload": edited() });
    let write = asks(&server.post("/run", says(answer(&asked, plan))).await);
    server.post("/run", says(answer(&write, json!({ "confirmed": true })))).await;
    carried_out(&server, session, &folder).await;
}
