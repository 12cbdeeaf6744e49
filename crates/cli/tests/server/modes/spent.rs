//! What sub-agents use is paid for by their parent: it is in its figures and counts against its budget.

use gander_domain::Outcome;
use serde_json::{Value, json};

use crate::modes::test_server::{TestServer, children, delegates, plays, run};

/// A sub-task that looks around so often, at 700 tokens each time.
fn looks(name: &str, times: usize) -> Value {
    let usage = json!({ "input": 600, "output": 100 });
    let look = json!([{ "tool": "list", "args": { "path": "." }, "usage": usage }]);
    let calls = std::iter::repeat_n(look, times).chain([json!([{ "text": "seen", "usage": { "input": 1 } }])]);
    json!({ "name": name, "prompt": plays(&calls.collect()) })
}

#[tokio::test]
async fn what_sub_agents_use_is_added_to_their_parents_figures() {
    let server = TestServer::open().await;
    let mut editor = server.editor().await;
    let session = editor.new_session(&server.work()).await.unwrap();
    let prompt = editor.prompt(&session, &delegates(json!([looks("one", 2), looks("two", 3)]))).await.unwrap();
    let answer = editor.answer_to(prompt).await.unwrap();
    let view = server.view(&session).await;
    let own = view.last_usage.clone().unwrap();
    assert_eq!(own.child, None, "how full the window is says only a call of its own");
    let mut used = 0;
    for child in children(&server, &session).await {
        let spent = server.app.services().hub.session_view(child).await.unwrap().spent;
        used += spent.input + spent.output;
    }
    assert_eq!(used, 2 * 700 + 1 + 3 * 700 + 1);
    let all = view.spent.input + view.spent.output;
    assert!(all > used, "{all} of them and itself, {used} of them");
    assert_eq!(answer["usage"]["totalTokens"], all, "ACP tells the whole turn's: {answer}");
    let object = server.get(&format!("/sessions/{session}")).await;
    assert_eq!(object["accumulated_total_tokens"], all, "so does goose: {object}");
}

#[tokio::test]
async fn sub_agents_share_one_budget_and_all_stop_when_it_is_used_up() {
    let server = TestServer::open().await;
    let mut editor = server.editor().await;
    let session = editor.new_session(&server.work()).await.unwrap();
    let begins = json!([[{ "tool": "delegate", "args": { "tasks": [looks("one", 400), looks("two", 400), looks("three", 400)] },
        "usage": { "input": 100 } }], [{ "text": "never" }]]);
    let option = json!({ "sessionId": session, "configId": "budget", "value": "5000" });
    editor.call("session/set_config_option", option).await.unwrap();
    let ran = run(&server, "gander", Some(&session), &plays(&begins)).await;
    assert_eq!(ran["status"], "failed", "{ran}");
    let why = ran["error"]["message"].as_str().unwrap();
    assert!(why.contains("budget is used up: 5000 of 5000 tokens"), "{why}");
    let spent = server.view(&session).await.spent;
    assert_eq!(spent.input + spent.output, 5000, "7 calls of 700 and its own");
    for child in children(&server, &session).await {
        let outcome = server.ended(child).await;
        assert_eq!(outcome, Outcome::Cancelled, "none goes on without money");
    }
}
