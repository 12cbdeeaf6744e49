//! Private data and text from outside in one context: a call that reaches out is asked about, also under the policy
//! `auto`, with the reason at each protocol, after a restart, and until the history is cleared.

use anyhow::{Context as _, ensure};
use gander_testkit::harness::{Background, Launch, data, script, workspace};
use serde_json::{Value, json};

const GANDER: &str = env!("CARGO_BIN_EXE_gander");

/// Brings both kinds of text: what a command with the network says may come from anywhere.
fn reads_both() -> Value {
    json!([{"tool": "shell", "args": {"command": "true", "network": true}}])
}

/// Reaches out. No address: one that a person's prompt names is fetched unasked, and the script is the prompt.
fn reaches_out() -> Value {
    json!([{"tool": "shell", "args": {"command": "echo out", "network": true}}])
}

fn done() -> Value {
    json!([{"text": "done"}])
}

fn reason(shown: &Value) -> anyhow::Result<String> {
    let text = shown["content"][0]["content"]["text"].as_str().with_context(|| shown.to_string())?;
    ensure!(text.contains("private data") && text.contains("a command with network access"), "{shown}");
    Ok(text.to_owned())
}

#[tokio::test]
async fn an_outward_call_is_asked_about_under_the_policy_auto_also_after_a_restart() -> anyhow::Result<()> {
    let root = tempfile::tempdir()?;
    let launch = Launch::demo(GANDER, data(root.path())?)
        .with_policy_auto("it is what everything was allowed by that must not count");
    let folder = workspace(root.path())?;
    let server = launch.serve().await?;
    let mut client = server.client().await?;
    let session = client.new_session(&folder).await?;
    // Before there is text from outside nobody is asked.
    client.turn(&session, &script(&[reads_both(), done()])).await?;
    server.kill().await?;
    let server = launch.serve().await?;
    let mut client = server.client().await?;
    client.load(&session, &folder).await?;
    client.prompt(&session, &script(&[reaches_out(), done()])).await?;
    let request = client.asked("session/request_permission").await?;
    reason(&request["params"]["toolCall"])?;
    let options: Vec<&str> = request["params"]["options"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|option| option["optionId"].as_str())
        .collect();
    assert_eq!(options, ["allow_once", "allow_session", "reject_once"]);
    client.choose(&request, "allow_always").await?;
    client.update("agent_message_chunk").await?;
    // Exactly this command is allowed for the session by now; another one is not.
    client.until(|message| message["result"]["stopReason"].is_string()).await?;
    client.turn(&session, &script(&[reaches_out(), done()])).await?;
    client.turn(&session, "/clear").await?;
    client.turn(&session, &script(&[reads_both(), done()])).await?;
    Ok(())
}

#[tokio::test]
async fn at_default_settings_the_question_says_why() -> anyhow::Result<()> {
    let root = tempfile::tempdir()?;
    let launch = Launch::demo(GANDER, data(root.path())?);
    let _background = Background(launch.data.clone());
    let folder = workspace(root.path())?;
    let mut agent = launch.editor(&[]).await?;
    let session = agent.client.new_session(&folder).await?;
    agent.client.prompt(&session, &script(&[reads_both(), reaches_out(), done()])).await?;
    let first = agent.client.asked("session/request_permission").await?;
    agent.client.respond(&first["id"], json!({"outcome": {"outcome": "selected", "optionId": "allow_once"}})).await?;
    let second = agent.client.asked("session/request_permission").await?;
    reason(&second["params"]["toolCall"])?;
    Ok(())
}
