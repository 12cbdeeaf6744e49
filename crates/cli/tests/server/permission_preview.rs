//! What a person sees before they allow something: the change of a file, a command with its folder.

use std::path::PathBuf;

use anyhow::{Context as _, ensure};
use gander_testkit::harness::{Background, Launch, data, script, workspace};
use serde_json::{Value, json};

use crate::acp_net::test_server::TestServer;

const GANDER: &str = env!("CARGO_BIN_EXE_gander");

/// A prompt that makes the demo model call this tool.
fn call(tool: &str, arguments: &Value) -> String {
    script(&[json!([{"tool": tool, "args": arguments}]), json!([{"text": "done"}])])
}

/// An editor that is asked for this call at default settings, and what it is shown.
async fn asked(files: &[(&str, &str)], tool: &str, arguments: Value) -> anyhow::Result<(Value, PathBuf)> {
    let root = tempfile::tempdir()?;
    let launch = Launch::demo(GANDER, data(root.path())?);
    let _background = Background(launch.data.clone());
    let folder = workspace(root.path())?;
    for (name, text) in files {
        std::fs::write(folder.join(name), text)?;
    }
    let mut agent = launch.editor(&[]).await?;
    let session = agent.client.new_session(&folder).await?;
    agent.client.prompt(&session, &call(tool, &arguments)).await?;
    let request = agent.client.asked("session/request_permission").await?;
    Ok((request["params"]["toolCall"].clone(), folder))
}

#[tokio::test]
async fn an_edit_is_asked_about_with_its_diff() -> anyhow::Result<()> {
    let arguments = json!({"path": "a.txt", "old": "two", "new": "2"});
    let (shown, folder) = asked(&[("a.txt", "one\ntwo\nthree\n")], "edit", arguments).await?;
    let diff = json!({"type": "diff", "path": folder.join("a.txt"), "oldText": "one\ntwo\nthree\n", "newText": "one\n2\nthree\n"});
    assert_eq!(shown["content"], json!([diff]));
    Ok(())
}

#[tokio::test]
async fn a_write_is_asked_about_with_what_it_replaces() -> anyhow::Result<()> {
    let (shown, folder) = asked(&[("a.txt", "old\n")], "write", json!({"path": "a.txt", "content": "new\n"})).await?;
    let diff = json!({"type": "diff", "path": folder.join("a.txt"), "oldText": "old\n", "newText": "new\n"});
    assert_eq!(shown["content"], json!([diff]));
    let (shown, folder) = asked(&[], "write", json!({"path": "b.txt", "content": "new\n"})).await?;
    assert_eq!(shown["content"], json!([{"type": "diff", "path": folder.join("b.txt"), "newText": "new\n"}]));
    Ok(())
}

#[tokio::test]
async fn a_command_is_asked_about_with_its_folder() -> anyhow::Result<()> {
    let (shown, folder) = asked(&[], "shell", json!({"command": "touch made.txt"})).await?;
    let text = shown["content"][0]["content"]["text"].as_str().with_context(|| shown.to_string())?;
    assert_eq!(text, format!("touch made.txt\n\nin {}", folder.display()));
    Ok(())
}

/// Editors open what a call names: a search names no folder, and a file that it searches it does.
#[tokio::test]
async fn a_search_names_files_and_no_folders() -> anyhow::Result<()> {
    let root = tempfile::tempdir()?;
    let launch = Launch::demo(GANDER, data(root.path())?);
    let _background = Background(launch.data.clone());
    let folder = workspace(root.path())?;
    std::fs::write(folder.join("a.txt"), "one\n")?;
    let mut agent = launch.editor(&[]).await?;
    let session = agent.client.new_session(&folder).await?;
    let calls = [
        ("list", json!({})),
        ("grep", json!({"pattern": "one"})),
        ("grep", json!({"pattern": "one", "path": "a.txt"})),
    ];
    let mut named = Vec::new();
    for (tool, arguments) in calls {
        agent.client.seen.clear();
        agent.client.turn(&session, &call(tool, &arguments)).await?;
        let updates = agent.client.seen.iter().map(|message| &message["params"]["update"]);
        let called = updates.rev().find(|update| update["sessionUpdate"] == "tool_call").context("no call")?;
        named.push(called["locations"].clone());
    }
    assert_eq!(named, [Value::Null, Value::Null, json!([{"path": folder.join("a.txt")}])]);
    Ok(())
}

/// The same at ACP-REST: people read a patch, programs the texts.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn acp_rest_shows_the_change_too() -> anyhow::Result<()> {
    let server = TestServer::asking().await?;
    rustls::crypto::ring::default_provider().install_default().ok();
    let said =
        json!({"role": "user", "parts": [{"content": call("write", &json!({"path": "a.txt", "content": "new\n"}))}]});
    let run = reqwest::Client::new()
        .post(format!("http://{}/runs", server.http_client.address))
        .bearer_auth(&server.http_client.token)
        .json(&json!({"agent_name": "gander", "mode": "sync", "input": [said]}))
        .send()
        .await?;
    let run: Value = run.json().await?;
    assert_eq!(run["status"], "awaiting", "{run}");
    let parts = &run["await_request"]["message"]["parts"];
    ensure!(parts[0]["content"].as_str().is_some_and(|text| text.contains("+++ b/") && text.contains("+new")), "{run}");
    let detail: Value = serde_json::from_str(parts[1]["content"].as_str().context("no detail")?)?;
    assert_eq!((&detail["preview"][0]["type"], &detail["preview"][0]["new"]), (&json!("diff"), &json!("new\n")));
    Ok(())
}
