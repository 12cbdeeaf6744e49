//! A command that plants a file which makes something run, and a server that is killed before it could look: the next server
//! takes the file away and asks about it before anything else runs, at default settings.

#![allow(clippy::unwrap_used)]

use std::path::Path;

use gander_testkit::harness::{Client, Launch, binary, eventually, script};
use serde_json::{Value, json};

const PLANTED: &str = "echo planted";

fn shell(command: &str) -> String {
    script(&[json!([{"tool": "shell", "args": {"command": command}}]), json!([{"text": "done"}])])
}

/// The folder's `.envrc`, which direnv would run.
fn envrc(work: &Path) -> Option<String> {
    std::fs::read_to_string(work.join(".envrc")).ok().map(|text| text.trim().to_owned())
}

/// Answers questions in this order until the turn ends; gives what was asked.
async fn answer_all(client: &mut Client, prompt: u64, kinds: &[&str]) -> anyhow::Result<Vec<Value>> {
    let mut asked = Vec::new();
    loop {
        let message = client
            .until(|message| message["method"] == "session/request_permission" || message["id"] == json!(prompt))
            .await?;
        if message["method"] != "session/request_permission" {
            return Ok(asked);
        }
        let kind = kinds.get(asked.len()).copied().unwrap_or("reject_once");
        client.choose(&message, kind).await?;
        asked.push(message["params"].clone());
    }
}

/// Kills a server in the middle of a command that has written the file; gives the questions of the next server's first command.
async fn questions_after_a_kill(launch: &Launch, work: &Path, kind: &str) -> anyhow::Result<Vec<Value>> {
    let server = launch.serve().await?;
    let mut client = server.client().await?;
    let session = client.new_session(work).await?;
    client.prompt(&session, &shell(&format!("echo '{PLANTED}' > .envrc; while true; do sleep 1; done"))).await?;
    let request = client.asked("session/request_permission").await?;
    client.choose(&request, "allow_once").await?;
    eventually("the command writes", || async { envrc(work).is_some() }).await?;
    server.kill().await?;

    let server = launch.serve().await?;
    let mut client = server.client().await?;
    let session = client.new_session(work).await?;
    let prompt = client.prompt(&session, &shell("touch ran")).await?;
    let asked = answer_all(&mut client, prompt, &["allow_once", kind]).await?;
    server.stop().await?;
    Ok(asked)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_command_planted_before_a_kill_is_asked_about_by_the_next_server() -> anyhow::Result<()> {
    for (kind, kept) in [("allow_once", Some(PLANTED)), ("reject_once", None)] {
        let root = tempfile::tempdir()?;
        let [data, work] = ["data", "work"].map(|name| root.path().join(name));
        std::fs::create_dir(&data)?;
        std::fs::create_dir(&work)?;
        let launch = Launch::demo(binary(env!("CARGO_BIN_EXE_gander")), data);
        let asked = questions_after_a_kill(&launch, &work, kind).await?;
        let about: Vec<String> = asked.iter().map(Value::to_string).collect();
        assert_eq!(about.len(), 2, "{about:?}");
        assert!(about[0].contains("touch ran") && about[1].contains(".envrc"), "{about:?}");
        assert_eq!(envrc(&work).as_deref(), kept, "{kind}");
    }
    Ok(())
}
