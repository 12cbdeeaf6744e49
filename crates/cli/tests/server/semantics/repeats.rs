//! An idempotency key stands for one request: the same again changes nothing, another one is refused.

use serde_json::{Value, json};

use crate::semantics::test_server::{TestServer, a2a, asking_then_slow, goose, text, to_task};
use crate::served::answer::new;

const KEY: &str = "0198c0de-0000-7000-8000-00000000000a";

#[tokio::test]
async fn a_run_id_of_acp_rest_is_one_request() {
    let server = TestServer::open().await;
    let body = |agent: &str, words: &str, session: Option<&Value>| {
        let mut body = new(agent, words, "sync");
        body["run_id"] = json!(KEY);
        if let Some(session) = session {
            body["session_id"] = session.clone();
        }
        body
    };
    let first = server.post("/runs", &body("echo", "one", None)).await.ok();
    let other = server.run("echo", "elsewhere").await;
    assert_eq!(server.post("/runs", &body("echo", "one", None)).await.ok(), first, "the same request again");
    let cases = [
        body("echo", "two", None),
        body("slow_echo", "one", None),
        body("echo", "one", Some(&other["session_id"])),
        body("echo", "two", Some(&first["session_id"])),
        body("echo", "one", Some(&json!("0198c0de-0000-7000-8000-00000000000b"))),
    ];
    for body in cases {
        let refused = server.post("/runs", &body).await;
        assert_eq!(refused.error(), (409, "invalid_input".to_owned()), "{body}: {}", refused.text);
        assert_eq!(refused.json()["data"]["reason"], "run_id_reused");
    }
    assert_eq!(server.user_texts(&text(&first["session_id"])).await, ["one"]);
    assert_eq!(server.user_texts(&text(&other["session_id"])).await, ["elsewhere"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_requests_with_one_run_id_at_once_one_is_refused() {
    let server = TestServer::open().await;
    let session = text(&server.run("echo", "begin").await["session_id"]);
    for n in 0..20 {
        let body = |words: &str| {
            let mut body = new("echo", words, "sync");
            body["run_id"] = json!(format!("0198c0de-0000-7000-8000-0000000001{n:02}"));
            body["session_id"] = json!(session);
            body
        };
        let (one, two) = (body("one"), body("two"));
        let (one, two) = tokio::join!(server.post("/runs", &one), server.post("/runs", &two));
        let mut statuses = [one.status, two.status];
        statuses.sort_unstable();
        assert_eq!(statuses, [200, 409], "{} {}", one.text, two.text);
    }
}

#[tokio::test]
async fn a_request_id_of_goose_is_one_request() {
    let server = TestServer::open().await;
    let (one, other) = (server.goose_session().await, server.goose_session().await);
    let reply = async |session: &str, body: &Value| server.goose(&format!("/sessions/{session}/reply"), body).await;
    let body = json!({ "request_id": KEY, "user_message": goose("one") });
    assert_eq!(reply(&one, &body).await.ok(), json!({ "request_id": KEY }));
    ended(&server, KEY).await;
    assert_eq!(reply(&one, &body).await.ok(), json!({ "request_id": KEY }), "the same request again");
    let two = json!({ "request_id": KEY, "user_message": goose("two") });
    let history = json!({ "request_id": KEY, "user_message": goose("one"), "override_conversation": [] });
    for body in [&two, &history] {
        let refused = reply(&one, body).await;
        assert_eq!(refused.status, 409, "{body}: {}", refused.text);
        assert!(refused.json()["message"].as_str().unwrap().contains(KEY), "{}", refused.text);
    }
    assert_eq!(reply(&other, &body).await.status, 409, "of another session");
    assert_eq!(server.user_texts(&one).await, ["one"]);
    assert_eq!(server.user_texts(&other).await, Vec::<String>::new());
}

async fn ended(server: &TestServer, run: &str) {
    while server.get(&format!("/runs/{run}")).await.ok()["status"] != "completed" {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_message_id_of_a2a_is_one_message() {
    let server = TestServer::open().await;
    let said = |words: &str| {
        let mut message = a2a("m-1", words);
        message["contextId"] = json!("of the client");
        message
    };
    let task = server.send(said("one")).await.unwrap();
    assert_eq!(server.send(said("one")).await.unwrap()["id"], task["id"], "the same message again");
    assert_eq!(server.send(said("two")).await, Err(-32602));
    let mut marked = said("one");
    marked["metadata"] = json!({ "x": 1 });
    assert_eq!(server.send(marked).await, Err(-32602));
    let elsewhere = server.send(a2a("m-1", "two")).await.unwrap();
    assert_ne!(elsewhere["id"], task["id"], "a key is one of its context");
}

#[tokio::test]
async fn answers_and_what_is_said_to_a_running_task_have_their_message_ids_too() {
    let server = TestServer::open().await;
    let task = server.send(a2a("m-0", &asking_then_slow())).await.unwrap();
    let (id, session) = (text(&task["id"]), text(&task["contextId"]));
    server.task(&id, "TASK_STATE_INPUT_REQUIRED").await;
    server.send(to_task(&id, "m-1", "allow_once")).await.unwrap();
    assert_eq!(server.send(to_task(&id, "m-1", "allow_once")).await.unwrap()["id"], json!(id), "the same answer again");
    assert_eq!(server.send(to_task(&id, "m-1", "reject_once")).await, Err(-32602));
    server.send(to_task(&id, "m-2", "go on")).await.unwrap();
    server.send(to_task(&id, "m-2", "go on")).await.unwrap();
    assert_eq!(server.send(to_task(&id, "m-2", "stop")).await, Err(-32602));
    assert_eq!(server.user_texts(&session).await, [asking_then_slow(), "go on".to_owned()]);
    server.rpc("CancelTask", json!({ "id": id })).await;
    assert_eq!(server.send(to_task(&id, "m-2", "go on")).await.unwrap()["id"], json!(id), "also when it is over");
    assert_eq!(server.send(to_task(&id, "m-2", "stop")).await, Err(-32602));
}

#[tokio::test]
async fn a_key_of_the_first_version_without_a_hash_still_counts() {
    let server = TestServer::open().await;
    // An editor's prompt has no hash, as every run had before there were any.
    let mut client = crate::served::pipe::client(&server.app, gander_domain::Principal::owner()).await;
    let session = client.new_session(&server.work()).await.unwrap();
    client.turn(&session, "one").await.unwrap();
    let page = server.rpc("ListTasks", json!({ "contextId": session })).await;
    let run = page["result"]["tasks"][0]["id"].clone();
    let mut body = new("gander", "one", "sync");
    (body["run_id"], body["session_id"]) = (run.clone(), json!(session));
    assert_eq!(server.post("/runs", &body).await.ok()["run_id"], run);
}
