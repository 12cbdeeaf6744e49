//! Turns, temperature and budget of a session: set by options, in force from the next model call on.

use gander_domain::Budget;
use gander_testkit::harness::Client;
use serde_json::{Value, json};

use crate::modes::test_server::{TestServer, plays, run};

/// Looks around again and again, and claims what it costs.
fn looks(times: usize) -> String {
    let look = json!([{ "tool": "list", "args": { "path": "." }, "usage": { "input": 600, "output": 100 } }]);
    let calls: Vec<Value> = std::iter::repeat_n(look, times).chain([json!([{ "text": "seen" }])]).collect();
    plays(&Value::Array(calls))
}

async fn set(editor: &mut Client, session: &str, option: &str, value: &str) -> anyhow::Result<Value> {
    let params = json!({ "sessionId": session, "configId": option, "value": value });
    editor.call("session/set_config_option", params).await
}

#[tokio::test]
async fn a_budget_stops_the_loop_and_says_so() {
    let server = TestServer::open().await;
    let mut editor = server.editor().await;
    let session = editor.new_session(&server.work()).await.unwrap();
    set(&mut editor, &session, "budget", "1400").await.unwrap();
    assert_eq!(server.settings(&session).await.budget, Budget { tokens: Some(1_400), cost: None });
    let ran = run(&server, "gander", Some(&session), &looks(5)).await;
    assert_eq!(ran["status"], "failed", "{ran}");
    let why = ran["error"]["message"].as_str().unwrap();
    assert!(why.contains("budget is used up: 1400 of 1400 tokens"), "{why}");
    set(&mut editor, &session, "budget", "none").await.unwrap();
    let ran = run(&server, "gander", Some(&session), &looks(3)).await;
    assert_eq!(ran["status"], "completed", "{ran}");
}

#[tokio::test]
async fn turns_are_counted_and_what_is_set_is_shown() {
    let server = TestServer::open().await;
    let mut editor = server.editor().await;
    let session = editor.new_session(&server.work()).await.unwrap();
    set(&mut editor, &session, "temperature", "0.35").await.unwrap();
    let shown = set(&mut editor, &session, "max_turns", "2").await.unwrap();
    let value = |id: &str| {
        let options = shown["configOptions"].as_array().unwrap();
        options.iter().find(|option| option["id"] == id).unwrap()["currentValue"].clone()
    };
    assert_eq!((value("temperature"), value("max_turns"), value("budget")), (json!("0.35"), json!("2"), json!("none")));
    assert_eq!(server.settings(&session).await.temperature, Some(35));
    assert_eq!(editor.turn(&session, &looks(5)).await.unwrap(), "max_turn_requests");
    for (option, value) in [("max_turns", "0"), ("temperature", "3"), ("budget", "-1"), ("budget", "$"), ("turns", "1")]
    {
        assert!(set(&mut editor, &session, option, value).await.is_err(), "{option} = {value}");
    }
}
