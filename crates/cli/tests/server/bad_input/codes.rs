//! Each error code of JSON-RPC, provoked on its own.

use anyhow::{Context, ensure};
use gander_testkit::harness::{Agent, Refusal, script};
use rustix::process::{Pid, Resource, Rlimit, prlimit};
use serde_json::{Value, json};
use tokio::process::Command;

use crate::bad_input::{TestServer, is_answer};

#[tokio::test]
async fn minus_32700_for_what_is_no_json() -> anyhow::Result<()> {
    assert_eq!(code_of("{\"jsonrpc\"").await?, (Value::Null, json!(-32700)));
    Ok(())
}

#[tokio::test]
async fn minus_32600_for_what_is_no_request() -> anyhow::Result<()> {
    assert_eq!(code_of(r#"{"jsonrpc":"1.0","id":9,"method":"session/list"}"#).await?, (json!(9), json!(-32600)));
    Ok(())
}

#[tokio::test]
async fn minus_32601_for_a_method_that_is_not_there() -> anyhow::Result<()> {
    assert_eq!(code_of(r#"{"jsonrpc":"2.0","id":9,"method":"session/fly"}"#).await?, (json!(9), json!(-32601)));
    Ok(())
}

#[tokio::test]
async fn minus_32602_for_params_that_do_not_fit() -> anyhow::Result<()> {
    let line = r#"{"jsonrpc":"2.0","id":9,"method":"session/new","params":{"cwd":7}}"#;
    assert_eq!(code_of(line).await?, (json!(9), json!(-32602)));
    Ok(())
}

/// From some moment on no file may grow, as on a full disk: nothing is acknowledged, and what was is still there.
#[tokio::test]
async fn minus_32603_when_the_disk_takes_no_more() -> anyhow::Result<()> {
    let server = TestServer::open()?;
    let mut agent = Agent::spawn(without_file_size_signal(&server))?;
    agent.client.initialize().await?;
    let session = agent.client.new_session(&server.folder).await?;
    agent.client.turn(&session, &script(&[json!([{"text": "stored"}])])).await?;
    forbid_growth(&agent)?;
    let error = agent.client.turn(&session, "lost?").await.expect_err("nothing can be stored");
    assert_eq!(error.downcast_ref::<Refusal>().context("a refusal")?.code, -32603);
    let error = agent.client.new_session(&server.folder).await.expect_err("nothing can be stored");
    assert_eq!(error.downcast_ref::<Refusal>().context("a refusal")?.code, -32603);
    let (_, _) = agent.leave().await?;
    let mut next = server.launch.editor(&["--standalone"]).await?;
    next.client.load(&session, &server.folder).await?;
    let text = gander_testkit::harness::Transcript::of(&next.client.seen, &session);
    ensure!(text.prompts.len() == 1 && text.text() == "stored", "{text:?}");
    server.probe(&mut next).await
}

/// The id and the code of the answer to one line.
async fn code_of(line: &str) -> anyhow::Result<(Value, Value)> {
    let server = TestServer::open()?;
    let (mut agent, _) = server.ready().await?;
    agent.client.write_raw(format!("{line}\n").as_bytes()).await?;
    let answer = agent.client.until(is_answer).await?;
    server.probe(&mut agent).await?;
    Ok((answer["id"].clone(), answer["error"]["code"].clone()))
}

/// The agent, deaf to the signal that would end it instead of failing its write.
fn without_file_size_signal(server: &TestServer) -> Command {
    let plain = server.launch.command(["acp", "--standalone"]);
    let mut command = Command::new("sh");
    command.args(["-c", "trap '' XFSZ; exec \"$@\"", "sh"]).arg(plain.as_std().get_program());
    command.args(plain.as_std().get_args()).env_clear().kill_on_drop(true);
    command.envs(plain.as_std().get_envs().filter_map(|(name, value)| Some((name, value?))));
    command
}

fn forbid_growth(agent: &Agent) -> anyhow::Result<()> {
    let id = i32::try_from(agent.process().0).ok().and_then(Pid::from_raw).context("it has an id")?;
    prlimit(Some(id), Resource::Fsize, Rlimit { current: Some(1), maximum: None })?;
    Ok(())
}
