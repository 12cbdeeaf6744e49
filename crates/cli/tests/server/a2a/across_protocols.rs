//! Two protocols on one session: an editor sees what a service asked, and the other way round.

use serde_json::json;

use crate::a2a::test_server::{TestServer, message};

#[tokio::test]
async fn an_editor_and_a_service_share_a_session() -> anyhow::Result<()> {
    let server = TestServer::with(&[("GANDER_A2A_AGENT", "gander")]).await?;
    let task = server.send("m-1", "hello from a service").await?;
    assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED", "{task}");
    let session = task["contextId"].as_str().unwrap().to_owned();
    let mut editor = server.server.client().await?;
    let folder = tempfile::tempdir()?;
    editor.load(&session, folder.path()).await?;
    assert!(editor.seen.iter().any(|line| line.to_string().contains("hello from a service")));
    editor.turn(&session, "hello from an editor").await?;
    let listed = server.call("ListTasks", json!({ "contextId": session })).await?;
    assert_eq!(listed["totalSize"], 2);
    assert_eq!(listed["tasks"][0]["history"][0]["parts"][0]["text"], "hello from an editor");
    let mut again = message("m-2", "once more");
    again["contextId"] = json!(session);
    server.call("SendMessage", json!({ "message": again })).await?;
    editor.until(|line| line.to_string().contains("once more")).await?;
    Ok(())
}
