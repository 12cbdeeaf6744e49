//! A model that calls a thousand tools at once, and one that never stops: both are bounded, and every protocol says so.

use gander_domain::Event;
use gander_testkit::harness::script;
use serde_json::{Value, json};

use crate::all_protocols::protocols::TestSession;
use crate::all_protocols::{test_server, test_server_with};

/// Calls of one answer.
const CALLS: usize = 1_000;

/// Of these so many run at the same time, unless the settings say otherwise.
const AT_ONCE: usize = 8;

fn look() -> Value {
    json!({ "tool": "list", "args": { "path": "." } })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_calls_of_one_answer_are_carried_out_a_few_at_a_time() -> anyhow::Result<()> {
    let (_root, server, test_session) = test_server().await?;
    let flood = script(&[json!(vec![look(); CALLS]), json!([{ "text": "all seen" }])]);
    let mut editor = test_session.editor().await?;
    assert_eq!(editor.turn(&test_session.session, &flood).await?, "end_turn");
    let (mut running, mut most, mut ended) = (0_usize, 0, 0);
    for entry in server.launch.export(&test_session.session).await? {
        running += usize::from(matches!(entry.event, Event::ToolStarted { .. }));
        if matches!(entry.event, Event::ToolDone { .. }) {
            (running, ended) = (running - 1, ended + 1);
        }
        most = most.max(running);
    }
    assert_eq!((ended, running), (CALLS, 0));
    assert!((2..=AT_ONCE).contains(&most), "so many ran at the same time: {most}");
    Ok(())
}

/// What a request is told, whatever its status.
async fn told(test_session: &TestSession, path: &str, body: &Value) -> anyhow::Result<String> {
    Ok(test_session.post(path, body).header("A2A-Version", "1.0").send().await?.text().await?)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turn_that_hits_its_limit_is_completed_at_no_protocol() -> anyhow::Result<()> {
    let (_root, _server, test_session) = test_server_with("[agent]\nmax_turns = 3\n").await?;
    let endless = script(&vec![json!([look()]); 9]);
    let session = &test_session.session;
    let why = "limit of model calls";
    let mut editor = test_session.editor().await?;
    assert_eq!(editor.turn(session, &endless).await?, "max_turn_requests", "ACP");
    let parts = json!([{ "text": endless }]);
    let message = json!({ "messageId": "m-1", "role": "ROLE_USER", "contextId": session, "parts": parts });
    let sent = json!({ "jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": { "message": message } });
    let a2a = told(&test_session, "/a2a", &sent).await?;
    assert!(a2a.contains("TASK_STATE_FAILED") && a2a.contains(why) && !a2a.contains("COMPLETED"), "{a2a}");
    let input = json!([{ "role": "user", "parts": [{ "content": endless }] }]);
    let run = json!({ "agent_name": "gander", "mode": "sync", "session_id": session, "input": input });
    let acp_rest: Value = serde_json::from_str(&told(&test_session, "/runs", &run).await?)?;
    assert_eq!((&acp_rest["status"], &acp_rest["error"]["data"]["reason"]), (&json!("failed"), &json!("max_turns")));
    let run = json!({
        "appName": "gander", "userId": "user", "sessionId": session,
        "newMessage": { "role": "user", "parts": parts },
    });
    let adk = told(&test_session, "/run", &run).await?;
    assert!(adk.contains("\"errorCode\":\"MAX_TURNS\"") && adk.contains(why), "{adk}");
    let content = json!([{ "type": "text", "text": endless }]);
    let message = json!({ "role": "user", "created": 1, "content": content, "metadata": {} });
    let goose = told(&test_session, "/reply", &json!({ "session_id": session, "user_message": message })).await?;
    assert!(goose.contains("\"type\":\"Error\"") && goose.contains(why), "{goose}");
    Ok(())
}
