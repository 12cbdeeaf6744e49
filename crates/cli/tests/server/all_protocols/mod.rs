//! One session through every protocol at once: all see the same, the first answer counts, and each goes on where the last one was.

#![allow(clippy::unwrap_used)]

mod behind;
mod chaining;
mod deltas;
pub mod events;
mod floods;
mod matrix;
mod media;
mod protocols;
mod remote_agent;
mod slash_commands;
mod titles;

use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::sync::Arc;

use gander_domain::Event;
use gander_testkit::harness::{Launch, Server, binary, script};
use serde_json::json;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use protocols::{ProtocolClient, TestSession};

/// What the agent says at the end of the run that everybody watches.
const LAST: &str = "all done";

async fn test_server() -> anyhow::Result<(tempfile::TempDir, Server, TestSession)> {
    test_server_with("").await
}

/// With these settings in its file.
async fn test_server_with(settings: &str) -> anyhow::Result<(tempfile::TempDir, Server, TestSession)> {
    launch_test_server(settings, |launch| launch).await
}

/// With these settings in its file, launched like this.
async fn launch_test_server(
    settings: &str,
    launched: impl FnOnce(Launch) -> Launch,
) -> anyhow::Result<(tempfile::TempDir, Server, TestSession)> {
    let root = tempfile::tempdir()?;
    // The data directory is never a workspace: both lie side by side.
    let data = root.path().join("data");
    std::fs::create_dir_all(data.join("config/gander"))?;
    // What may hold keys is its owner's alone to read.
    let file = std::fs::File::options()
        .create(true)
        .truncate(true)
        .write(true)
        .mode(0o600)
        .open(data.join("config/gander/gander.toml"));
    file?.write_all(settings.as_bytes())?;
    let launch =
        Launch::demo(binary(env!("CARGO_BIN_EXE_gander")), data).with("GANDER_SERVER_FORWARD_RESOURCES", "true");
    let launch = launched(launch);
    let server = launch.serve().await?;
    let token = launch.stdout(&["token"]).await?.trim().to_owned();
    rustls::crypto::ring::default_provider().install_default().ok();
    let test_session = TestSession::begin(&server, root.path(), token).await?;
    Ok((root, server, test_session))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everybody_watches_one_run_and_the_first_answer_counts() -> anyhow::Result<()> {
    let (_root, server, test_session) = test_server().await?;
    watch_and_answer(&server, test_session).await
}

/// Every protocol watches a run that asks, all answer at once, and all see its end.
async fn watch_and_answer(server: &Server, mut test_session: TestSession) -> anyhow::Result<()> {
    let shell =
        json!([{ "text": "first I look " }, { "tool": "shell", "args": { "command": "echo x >> ran; cat ran" } }]);
    test_session.run = test_session.start(&script(&[shell, json!([{ "text": LAST, "chunks": 4 }])])).await?;
    let test_session = Arc::new(test_session);

    let (asked, mut told) = mpsc::channel(8);
    let mut watching = JoinSet::new();
    for protocol in protocols::all() {
        let (test_session, asked) = (Arc::clone(&test_session), asked.clone());
        watching.spawn(async move { anyhow::Ok((protocol.name(), protocol.watch(&test_session, asked).await?)) });
    }
    drop(asked);
    for _ in protocols::all() {
        told.recv().await.expect("every door tells the question");
    }

    let mut answering = JoinSet::new();
    for protocol in protocols::all() {
        let test_session = Arc::clone(&test_session);
        answering.spawn(async move { anyhow::Ok((protocol.name(), protocol.answer(&test_session).await?)) });
    }
    let mut taken = Vec::new();
    while let Some(answer) = answering.join_next().await {
        let (name, was_taken) = answer??;
        taken.extend(was_taken.then_some(name));
    }
    while let Some(watched) = watching.join_next().await {
        let (name, text) = watched??;
        assert!(text.contains("first I look") && text.contains(LAST), "{name}: {text}");
    }

    let log = server.launch.export(&test_session.session).await?;
    let answers = log.iter().filter(|entry| matches!(entry.event, Event::QuestionAnswered { .. })).count();
    assert_eq!(answers, 1, "one answer counts");
    // An editor is not told whether its answer counted; of the others no more than one is told so.
    assert!(taken.len() <= 1, "{taken:?}");
    let tool_ends = log.iter().filter(|entry| matches!(entry.event, Event::ToolDone { .. })).count();
    assert_eq!(tool_ends, 1, "the tool ran once");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_protocol_goes_on_where_the_last_one_was() -> anyhow::Result<()> {
    let (_root, _server, test_session) = test_server().await?;
    say_through_each(test_session).await
}

/// Every protocol says something in the same session and sees what was said before.
async fn say_through_each(mut test_session: TestSession) -> anyhow::Result<()> {
    test_session.run = test_session.start(&script(&[json!([{ "text": "begun" }])])).await?;
    test_session.settled().await?;
    let mut said = vec!["begun".to_owned()];
    for protocol in protocols::all() {
        check(&*protocol, &test_session, &said).await?;
        let answer = format!("answer through {}", protocol.name());
        protocol.say(&test_session, &script(&[json!([{ "text": answer }])])).await?;
        said.push(answer);
    }
    for protocol in protocols::all() {
        check(&*protocol, &test_session, &said).await?;
    }
    Ok(())
}

/// The door shows everything that was said, in order.
async fn check(protocol: &dyn ProtocolClient, test_session: &TestSession, said: &[String]) -> anyhow::Result<()> {
    let history = protocol.history(test_session).await?;
    let mut rest = history.as_str();
    for text in said {
        // What the demo model was told to say stands in the prompt too, in quotation marks.
        let found = rest.match_indices(text.as_str()).find(|(at, _)| !rest[..*at].ends_with('"'));
        let (at, _) = found.ok_or_else(|| anyhow::anyhow!("{}: no {text:?} in {history}", protocol.name()))?;
        rest = &rest[at + text.len()..];
    }
    Ok(())
}
