//! What clients of adk2goose send, as they send it: the path form, `new_message`, sessions that were never made.

use gander_testkit::goosed::{Goosed, calls, finishes, gives, says};
use reqwest::Method;
use serde_json::{Value, json};

use crate::proxy_adk::test_server::{Proxy, functions, text};

const SESSIONS: &str = "/apps/myapp/users/user1/sessions";

/// `run_sse` of one session in the path, with nothing in the body but the message.
async fn run(proxy: &Proxy, session: &str, parts: Value) -> Vec<Value> {
    let body = json!({ "new_message": { "parts": parts, "role": "user" } });
    let request = proxy.request(Method::POST, &format!("{SESSIONS}/{session}/run_sse"));
    let response = request.json(&body).send().await.unwrap();
    assert_eq!(response.status(), 200);
    assert!(response.headers()["content-type"].to_str().unwrap().starts_with("text/event-stream"));
    let text = response.text().await.unwrap();
    // It reads line by line, and gives up at one of 64 KiB.
    assert!(text.lines().all(|line| line.len() < 64 << 10));
    text.lines().filter_map(|line| serde_json::from_str(line.strip_prefix("data: ")?).ok()).collect()
}

#[tokio::test]
async fn a_turn_of_adk2goose_ends_with_an_event_that_says_so() {
    let goose = Goosed::start(Some("hush")).await.unwrap();
    let proxy = Proxy::open(&goose, &[]).await;
    let (status, session) = proxy.send(Method::POST, SESSIONS, Some(json!({}))).await;
    assert_eq!((status, &session["appName"], &session["userId"]), (200, &json!("myapp"), &json!("user1")));
    let id = session["id"].as_str().unwrap();
    goose.will_reply(vec![says("Hello from "), says("Goose!"), finishes(10, 5)]);
    let events = run(&proxy, id, json!([{ "text": "hello" }])).await;
    assert_eq!(text(&events[..1]), "Hello from Goose!", "{events:?}");
    let last = events.last().unwrap();
    assert_eq!((events.len(), &last["turnComplete"]), (2, &json!(true)), "{events:?}");
    assert_eq!(last["usageMetadata"]["totalTokenCount"], 15, "{last}");
    assert_eq!(last["invocationId"], events[0]["invocationId"]);
    assert_ne!(last["id"], events[0]["id"]);
    let (status, listed) = proxy.get(SESSIONS).await;
    assert_eq!((status, &listed[0]["id"]), (200, &json!(id)));
    let (status, _) = proxy.send(Method::DELETE, &format!("{SESSIONS}/{id}"), None).await;
    assert_eq!((status, goose.heard("POST /agent/stop").len()), (200, 1));
}

#[tokio::test]
async fn the_first_run_makes_the_session() {
    let goose = Goosed::start(Some("hush")).await.unwrap();
    let proxy = Proxy::open(&goose, &[]).await;
    let name = "myapp_user1_1794844386522504000";
    for words in ["one", "two"] {
        assert_eq!(text(&run(&proxy, name, json!([{ "text": words }])).await), words);
    }
    assert_eq!(goose.heard("POST /agent/start").len(), 1);
    let (status, session) = proxy.get(&format!("{SESSIONS}/{name}")).await;
    assert_eq!((status, session["events"].as_array().map(Vec::len)), (200, Some(4)), "{session}");
}

#[tokio::test]
async fn calls_and_their_results_in_one_message_are_taken() {
    let goose = Goosed::start(Some("hush")).await.unwrap();
    let proxy = Proxy::open(&goose, &[]).await;
    goose.will_reply(vec![calls("call_1", "lookup", &json!({ "q": 1 })), gives("call_1", "pending"), finishes(1, 1)]);
    let asked = functions(&run(&proxy, "s", json!([{ "text": "look it up" }])).await, "functionCall");
    let answer = json!({ "id": asked[0]["id"], "name": "lookup", "response": { "found": 42 } });
    run(&proxy, "s", json!([{ "functionResponse": answer }])).await;
    let told = &goose.heard("POST /reply")[1]["user_message"]["content"][0];
    assert_eq!((&told["type"], &told["id"]), (&json!("toolResponse"), &json!("call_1")), "{told}");
}
