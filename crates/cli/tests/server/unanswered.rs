//! Clients that do not answer permission requests: their person is told what waits, and somebody else can answer.

use anyhow::{Context, ensure};
use gander_testkit::harness::{Agent, Background, Client, Launch, binary, data, workspace};
use serde_json::{Value, json};

use crate::acp_net::dialects::Goosed;
use crate::acp_net::test_server::TestServer;

const GANDER: &str = env!("CARGO_BIN_EXE_gander");
const REMIND_AFTER: &str = "GANDER_PERMISSIONS_REMIND_AFTER";

/// The text of an update, whatever its dialect calls it.
fn text(message: &Value) -> &str {
    let update = &message["params"]["update"];
    let texts = [&update["content"]["text"], &update["text"], &update["chunk"]];
    texts.into_iter().find_map(Value::as_str).unwrap_or_default()
}

/// Reads until the stream says that something waits.
async fn reminder(client: &mut Client) -> anyhow::Result<String> {
    let message = client.until(|message| text(message).contains("Waiting for")).await?;
    Ok(text(&message).to_owned())
}

/// Another client of the same server allows what waits.
async fn allow_elsewhere(launch: &Launch, session: &str, folder: &std::path::Path) -> anyhow::Result<()> {
    let mut other = Client::attach(&launch.socket(), folder).await?;
    other.initialize().await?;
    other.load(session, folder).await?;
    let request = other.asked("session/request_permission").await?;
    other.choose(&request, "allow_once").await?;
    // Whoever leaves with something unread may take its answer along.
    other.update("tool_call_update").await.map(drop)
}

/// `goose acp` under the default policy, and a client that reads `session/update` and nothing else.
#[tokio::test]
async fn a_client_of_goose_that_ignores_permission_requests_is_told_how_to_answer() -> anyhow::Result<()> {
    let root = tempfile::tempdir()?;
    let goose = root.path().join("goose");
    std::os::unix::fs::symlink(binary(GANDER), &goose)?;
    let launch = Launch::demo(goose, data(root.path())?).with(REMIND_AFTER, "1ms");
    let _background = Background(launch.data.clone());
    let folder = workspace(root.path())?;
    let mut agent = Agent::spawn(launch.command(["acp"]))?;
    let hello = json!({"protocolVersion": 1, "clientInfo": {"name": "vscode-goose", "version": "0.1.0"},
        "clientCapabilities": {"fs": {"readTextFile": false, "writeTextFile": false}, "terminal": false}});
    agent.client.call("initialize", hello).await?;
    let session = agent.client.new_session(&folder).await?;
    let prompt = agent.client.prompt(&session, "ask").await?;
    let told = reminder(&mut agent.client).await?;
    ensure!(told.contains("gander-hello.txt") && told.contains(&format!("gander watch {session}")), "{told}");
    ensure!(!folder.join("gander-hello.txt").exists(), "nothing runs without an answer");
    allow_elsewhere(&launch, &session, &folder).await?;
    assert_eq!(agent.client.answer_to(prompt).await?["stopReason"], "end_turn");
    ensure!(folder.join("gander-hello.txt").exists());
    Ok(())
}

/// The same in every legacy dialect over stdio, each in its own words.
#[tokio::test]
async fn legacy_dialects_are_told_too() -> anyhow::Result<()> {
    for dialect in ["goosed", "aptove", "agentkit"] {
        let root = tempfile::tempdir()?;
        let launch = Launch::demo(GANDER, data(root.path())?).with(REMIND_AFTER, "1ms");
        let _background = Background(launch.data.clone());
        let mut agent = launch.editor(&["--dialect", dialect]).await?;
        let made = agent.client.call("session/new", json!({"cwd": workspace(root.path())?})).await?;
        let ids = [&made["sessionId"], &made["session_id"], &made["session"]["id"]];
        let session = ids.into_iter().find_map(Value::as_str).with_context(|| format!("{dialect}: {made}"))?;
        agent.client.prompt(session, "ask").await?;
        let told = reminder(&mut agent.client).await.with_context(|| dialect.to_owned())?;
        ensure!(told.contains(&format!("gander watch {session}")), "{dialect}: {told}");
    }
    Ok(())
}

/// Over HTTP this dialect has no stream: a prompt that would wait for ever is answered with what it waits for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_prompt_in_the_body_of_a_request_ends_with_what_it_waits_for() -> anyhow::Result<()> {
    let server = TestServer::with(REMIND_AFTER, "1ms").await?;
    let (client, _) = Goosed::begin(&server.http_client, json!({})).await?;
    let answer = client.call("prompt", json!({"prompt": "ask"})).await?;
    let result = &answer["result"];
    assert_eq!(result["stop_reason"], "awaiting", "{answer}");
    ensure!(result["question"]["id"].is_string(), "{answer}");
    ensure!(result["message"].as_str().is_some_and(|said| said.contains("gander watch")), "{answer}");
    allow_elsewhere(&server.server.launch, &client.session, &server.folder).await?;
    let ended =
        server.server.client().await?.call("_gander/session/wait", json!({"sessionId": client.session})).await?;
    ensure!(ended["stopReason"] == "end_turn" || ended["lastOutcome"]["outcome"] == "completed", "{ended}");
    Ok(())
}

/// Whoever answers that it knows no such request is told as well: the request stays open for others.
#[tokio::test]
async fn a_client_that_knows_no_permission_requests_is_told_how_to_answer() -> anyhow::Result<()> {
    let root = tempfile::tempdir()?;
    let launch = Launch::demo(GANDER, data(root.path())?).with(REMIND_AFTER, "200ms");
    let _background = Background(launch.data.clone());
    let mut agent = launch.editor(&[]).await?;
    let session = agent.client.new_session(&workspace(root.path())?).await?;
    agent.client.prompt(&session, "ask").await?;
    let request = agent.client.asked("session/request_permission").await?;
    let unknown = json!({"code": -32601, "message": "method not found"});
    let answer = json!({"jsonrpc": "2.0", "id": request["id"], "error": unknown});
    agent.client.write_raw(format!("{answer}\n").as_bytes()).await?;
    ensure!(reminder(&mut agent.client).await?.contains("gander watch"));
    Ok(())
}
