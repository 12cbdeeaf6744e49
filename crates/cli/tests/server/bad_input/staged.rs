//! Rows that need a turn under way, a pause or a flood.

use std::time::Duration;

use anyhow::{Context, ensure};
use gander_testkit::harness::{Agent, Refusal, Transcript, eventually, script};
use serde_json::{Value, json};

use crate::bad_input::{TestServer, is_answer};

/// The rows that are shown here.
pub(crate) const ROWS: [&str; 8] = ["J14", "R14", "R20", "L07", "L08", "L16", "L22", "L23"];

/// A question waits while this plays, and the file is made only if somebody says yes.
fn asking() -> String {
    script(&[json!([{"tool": "shell", "args": {"command": "touch made"}}]), json!([{"text": "I see."}])])
}

fn endless() -> String {
    script(&[json!([{"text": "~", "repeat": 100_000, "delay_ms": 2}])])
}

#[tokio::test]
async fn j14_a_line_without_end_is_thrown_away_as_it_comes() -> anyhow::Result<()> {
    let server = TestServer::open()?;
    let (mut agent, _) = server.ready().await?;
    let before = agent.process().memory();
    let chunk = vec![b'a'; 1 << 20];
    for _ in 0..100 {
        agent.client.write_raw(&chunk).await?;
    }
    let grown = agent.process().peak_memory().saturating_sub(before);
    agent.client.write_raw(b"\n").await?;
    let answer = agent.client.until(is_answer).await?;
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&Value::Null, &json!(-32600)));
    ensure!(answer["error"]["message"].to_string().contains("message too large"), "{answer}");
    ensure!(grown < 48 << 20, "100 MiB of input cost {} MiB", grown >> 20);
    server.probe(&mut agent).await
}

#[tokio::test]
async fn r14_an_id_may_be_used_again_after_its_answer() -> anyhow::Result<()> {
    let server = TestServer::open()?;
    let (mut agent, _) = server.ready().await?;
    for _ in 0..2 {
        agent.client.write_raw(b"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"session/list\",\"params\":{}}\n").await?;
        let answer = agent.client.until(|message| message["id"] == 7).await?;
        ensure!(answer["result"]["sessions"].is_array(), "{answer}");
    }
    server.probe(&mut agent).await
}

#[tokio::test]
async fn r20_an_answer_that_is_none_never_allows() -> anyhow::Result<()> {
    for answer in [json!({"error": {"code": "no number", "message": 1}}), json!({}), json!({"result": {"outcome": 1}})]
    {
        let server = TestServer::open()?;
        let (mut agent, session) = server.ready().await?;
        agent.client.prompt(&session, &asking()).await?;
        let question = agent.client.asked("session/request_permission").await?;
        let mut message = answer.clone();
        message["jsonrpc"] = json!("2.0");
        message["id"] = question["id"].clone();
        agent.client.write_raw(format!("{message}\n").as_bytes()).await?;
        server.probe(&mut agent).await.with_context(|| format!("after {answer}"))?;
        ensure!(!server.folder.join("made").exists(), "the tool ran after {answer}");
    }
    Ok(())
}

#[tokio::test]
async fn l07_a_second_prompt_is_refused_while_a_turn_runs() -> anyhow::Result<()> {
    let server = TestServer::open()?;
    let (mut agent, session) = server.ready().await?;
    let first = agent.client.prompt(&session, &endless()).await?;
    agent.client.update("agent_message_chunk").await?;
    let error = agent.client.turn(&session, "me too").await.expect_err("the session is busy");
    let refusal = error.downcast_ref::<Refusal>().context("a refusal")?;
    let reason = refusal.data.as_ref().map(|data| &data["reason"]);
    assert_eq!((refusal.code, reason), (-32600, Some(&json!("session_busy"))));
    cancel(&mut agent, &session).await?;
    assert_eq!(agent.client.answer_to(first).await?["stopReason"], "cancelled");
    server.probe(&mut agent).await
}

#[tokio::test]
async fn l08_cancel_is_silent_and_ends_a_turn_once() -> anyhow::Result<()> {
    let server = TestServer::open()?;
    let (mut agent, session) = server.ready().await?;
    cancel(&mut agent, "0199aaaa-0000-7000-8000-000000000000").await?;
    cancel(&mut agent, &session).await?;
    let turn = agent.client.prompt(&session, &endless()).await?;
    agent.client.update("agent_message_chunk").await?;
    cancel(&mut agent, &session).await?;
    cancel(&mut agent, &session).await?;
    assert_eq!(agent.client.answer_to(turn).await?["stopReason"], "cancelled");
    server.probe(&mut agent).await?;
    let answers = agent.client.seen.iter().filter(|message| message["id"] == turn && is_answer(message)).count();
    assert_eq!(answers, 1);
    Ok(())
}

#[tokio::test]
async fn l16_a_late_permission_runs_nothing() -> anyhow::Result<()> {
    let server = TestServer::open()?;
    let (mut agent, session) = server.ready().await?;
    let turn = agent.client.prompt(&session, &asking()).await?;
    let question = agent.client.asked("session/request_permission").await?;
    cancel(&mut agent, &session).await?;
    assert_eq!(agent.client.answer_to(turn).await?["stopReason"], "cancelled");
    agent.client.choose(&question, "allow_once").await?;
    server.probe(&mut agent).await?;
    ensure!(!server.folder.join("made").exists(), "a stale answer ran the tool");
    Ok(())
}

#[tokio::test]
async fn l22_stdin_may_close_in_the_middle_of_a_turn() -> anyhow::Result<()> {
    let mut server = TestServer::open()?;
    // Inside of bubblewrap processes have numbers of their own, which say nothing here.
    server.launch = server.launch.with("GANDER_SANDBOX_BUBBLEWRAP", "false");
    let (mut agent, session) = server.ready().await?;
    let command = json!([{"tool": "shell", "args": {"command": "echo $$ > pid; sleep 600"}}]);
    agent.client.prompt(&session, &script(&[command])).await?;
    let question = agent.client.asked("session/request_permission").await?;
    agent.client.choose(&question, "allow_once").await?;
    let pid = server.folder.join("pid");
    eventually("the command runs", || async { std::fs::read_to_string(&pid).is_ok_and(|text| text.ends_with('\n')) })
        .await?;
    let child: u32 = std::fs::read_to_string(&pid)?.trim().parse()?;
    let (status, took) = agent.leave().await?;
    ensure!(status.success() && took < Duration::from_secs(20), "it ended with {status} after {took:?}");
    let child = gander_testkit::harness::Process(child);
    eventually("the command is gone", || async { !child.is_alive() }).await?;
    let mut next = server.launch.editor(&["--standalone"]).await?;
    next.client.load(&session, &server.folder).await?;
    assert_eq!(Transcript::of(&next.client.seen, &session).prompts.len(), 1);
    server.probe(&mut next).await
}

#[tokio::test]
async fn l23_a_question_that_nobody_answers_holds_up_nothing() -> anyhow::Result<()> {
    let server = TestServer::open()?;
    let (mut agent, session) = server.ready().await?;
    agent.client.prompt(&session, &asking()).await?;
    agent.client.asked("session/request_permission").await?;
    server.probe(&mut agent).await?;
    ensure!(!server.folder.join("made").exists(), "nobody said yes");
    agent.leave().await?;
    let mut next = server.launch.editor(&["--standalone"]).await?;
    let id = next
        .client
        .request("session/load", json!({"sessionId": session, "cwd": server.folder, "mcpServers": []}))
        .await?;
    let question = next.client.asked("session/request_permission").await?;
    next.client.choose(&question, "allow_once").await?;
    if !next.client.seen.iter().any(|message| message["id"] == id && is_answer(message)) {
        next.client.answer_to(id).await?;
    }
    eventually("the tool runs", || async { server.folder.join("made").exists() }).await
}

async fn cancel(agent: &mut Agent, session: &str) -> anyhow::Result<()> {
    Ok(agent.client.notify("session/cancel", json!({"sessionId": session})).await?)
}
