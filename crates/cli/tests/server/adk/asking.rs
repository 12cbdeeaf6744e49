//! What waits for somebody: tools that ask by themselves, tools whose last result comes later.

use serde_json::{Value, json};

use crate::adk::client::{SESSIONS, begin, events, says, texts};
use crate::adk::test_server::TestServer;

/// A run that answers in a function's place.
fn gives(session: &str, id: &Value, name: &str, response: Value) -> Value {
    let part = json!({ "functionResponse": { "id": id, "name": name, "response": response } });
    json!({ "appName": "wire", "userId": "u1", "sessionId": session, "newMessage": { "parts": [part] } })
}

#[tokio::test]
async fn a_tool_that_asks_while_it_runs_is_told_at_once_and_goes_on_in_the_same_invocation() {
    let server = TestServer::open().await;
    begin(&server, "e").await;
    let told = events(&server.post("/run_sse", &says("e", "elicit")).await);
    assert_eq!(told.len(), 2, "the call, then its question; the stream has ended: {told:?}");
    let question = &told[1]["content"]["parts"][0]["functionCall"];
    assert_eq!(
        (&question["name"], &question["args"]["message"]),
        (&json!("adk_request_input"), &json!("For how many?"))
    );
    assert_eq!(question["args"]["response_schema"]["properties"]["guests"]["type"], "integer");
    assert_eq!(told[1]["longRunningToolIds"], json!([question["id"]]));
    let answer = gives("e", &question["id"], "adk_request_input", json!({ "guests": 4 }));
    let rest = server.post("/run", &answer).await.ok();
    let rest = rest.as_array().unwrap();
    assert_eq!(rest[0]["content"]["parts"][0]["functionResponse"]["response"], json!({ "guests": 4 }));
    assert_eq!(texts(rest), ["Tool book_table said: {'guests': 4}"]);
    assert!(rest.iter().all(|event| event["invocationId"] == told[0]["invocationId"]));
    assert_eq!(server.post("/run", &answer).await.ok(), json!([]), "it was answered before");
}

#[tokio::test]
async fn a_question_that_nothing_waits_for_is_told_and_the_answer_goes_on() {
    let server = TestServer::open().await;
    begin(&server, "i").await;
    let whole = server.post("/run", &says("i", "invite")).await.ok();
    let streamed = events(&server.post("/run_sse", &says("i", "invite")).await);
    for told in [whole.as_array().unwrap(), &streamed] {
        let question = &told[0]["content"]["parts"][0]["functionCall"];
        assert_eq!(question["args"]["message"], "Log in: https://example.org/login");
        assert_eq!(texts(told).last().unwrap(), "Hello, world!", "{told:?}");
    }
    let stored = server.get(&format!("{SESSIONS}/i")).await.ok();
    assert_eq!(stored["events"][1], whole[0], "{stored}");
}

#[tokio::test]
async fn an_invitation_while_a_tool_runs_does_not_end_the_answer() {
    let server = TestServer::open().await;
    begin(&server, "j").await;
    for path in ["/run", "/run_sse"] {
        let answer = server.post(path, &says("j", "invite2")).await;
        let told = if path == "/run" { answer.ok().as_array().unwrap().clone() } else { events(&answer) };
        let names: Vec<&Value> =
            told.iter().map(|event| &event["content"]["parts"][0]["functionCall"]["name"]).collect();
        assert_eq!(names[..2], [&json!("get_weather"), &json!("adk_request_input")], "{path}: {told:?}");
        assert_eq!(told[2]["content"]["parts"][0]["functionResponse"]["name"], "get_weather", "{path}");
        assert!(texts(&told).last().unwrap().starts_with("Tool get_weather said:"), "{path}: {told:?}");
    }
}

/// The same run of the same agent, asked at the other doors: none of them takes it for one that waits.
#[tokio::test]
async fn no_other_protocol_takes_an_invitation_for_a_run_that_waits() {
    let server = TestServer::open().await;
    let run = server.run("wire", "invite2").await;
    assert_eq!((&run["status"], &run["await_request"]), (&json!("completed"), &Value::Null), "{run}");
    let message = json!({ "messageId": "m1", "role": "ROLE_USER", "parts": [{ "text": "invite2" }] });
    let request = json!({ "jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": { "message": message } });
    let task = server.post_with("/a2a/wire", &request, &[("a2a-version", "1.0")]).await.ok();
    assert_eq!(task["result"]["task"]["status"]["state"], "TASK_STATE_COMPLETED", "{task}");
}

#[tokio::test]
async fn a_late_result_goes_on_in_the_invocation_of_its_call_also_in_the_history() {
    let server = TestServer::open().await;
    begin(&server, "l").await;
    let first = server.post("/run", &says("l", "long")).await.ok();
    let call = &first[0]["content"]["parts"][0]["functionCall"];
    assert_eq!(first[0]["longRunningToolIds"], json!([call["id"]]));
    let other = server.post("/run", &says("l", "hello")).await.ok();
    assert_ne!(other[0]["invocationId"], first[0]["invocationId"]);
    let result = gives("l", &call["id"], "start_job", json!({ "status": "done" }));
    let second = server.post("/run", &result).await.ok();
    assert_eq!(texts(second.as_array().unwrap()), ["Tool start_job said: {'status': 'done'}"]);
    assert_eq!(second[0]["invocationId"], first[0]["invocationId"]);
    let stored = server.get(&format!("{SESSIONS}/l")).await.ok();
    let stored = stored["events"].as_array().unwrap();
    let (given, said) = (&stored[stored.len() - 2], &stored[stored.len() - 1]);
    assert_eq!(given["content"]["parts"][0]["functionResponse"]["response"], json!({ "status": "done" }));
    assert_eq!((&given["author"], &given["invocationId"]), (&json!("user"), &first[0]["invocationId"]));
    assert_eq!(said, &second[0]);
    assert_eq!(stored[1]["longRunningToolIds"], first[0]["longRunningToolIds"]);
}
