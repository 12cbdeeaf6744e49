//! Bad input on stdio, row by row of `interop/data/bad-inputs.tsv`: the stated answer, no panic, and the next prompt works.

mod claims;
mod codes;
mod plain;
mod staged;

use std::collections::BTreeSet;
use std::path::PathBuf;

use anyhow::{Context, ensure};
use gander_testkit::harness::{Agent, Background, Launch, binary, data, script, workspace};
use serde_json::{Value, json};

const GANDER: &str = env!("CARGO_BIN_EXE_gander");
const ROWS: &str = include_str!("../../../../../interop/data/bad-inputs.tsv");

/// Rows of the table that say nothing about an agent on stdio, and why.
const ELSEWHERE: [(&str, &str); 5] = [
    ("L10", "session/load is advertised; a test below says so"),
    ("L14", "stdio needs no authentication"),
    ("L17", "stdio has one principal"),
    ("L19", "about HTTP headers"),
    ("L20", "about HTTP headers"),
];

#[test]
fn every_row_has_its_case() {
    // What is about HTTP and WebSocket alone is shown in `acp_net`, floods of frames in `http2`, what is about runs in
    // `acp_rest`, `a2a` and `rest_rows`, content and streams of events in the last, what is about the agent's hands in
    // `claims`.
    let rows = ROWS.lines().skip(1).map(|row| row.split('\t').collect::<Vec<_>>());
    let spoken = rows.filter(|row| {
        row.len() > 1
            && !["http", "http2", "ws", "run", "a2a", "content", "sse-out"].contains(&row[1])
            && !claims::CLASSES.contains(&row[1])
    });
    let rows: BTreeSet<&str> = spoken.map(|row| row[0]).collect();
    let mut cases: BTreeSet<&str> = plain::cases().iter().map(|case| case.row).collect();
    cases.extend(staged::ROWS);
    cases.extend(ELSEWHERE.iter().map(|(row, _)| row));
    assert_eq!(rows.into_iter().filter(|row| !row.is_empty()).collect::<BTreeSet<_>>(), cases);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_row_gets_its_answer_and_the_next_prompt_works() -> anyhow::Result<()> {
    let mut failures = Vec::new();
    for case in plain::cases() {
        if let Err(error) = plain::run(&case).await {
            failures.push(format!("{}: {error:#}", case.row));
        }
    }
    ensure!(failures.is_empty(), "{} rows failed:\n{}", failures.len(), failures.join("\n"));
    Ok(())
}

#[tokio::test]
async fn loading_sessions_is_advertised() -> anyhow::Result<()> {
    let server = TestServer::open()?;
    let mut agent = server.launch.acp(&["--standalone"])?;
    assert_eq!(agent.client.initialize().await?["agentCapabilities"]["loadSession"], true);
    Ok(())
}

/// A data directory with the demo model, a folder to work in, and one agent on stdio at a time.
pub(crate) struct TestServer {
    pub(crate) launch: Launch,
    pub(crate) folder: PathBuf,
    _background: Background,
    _root: tempfile::TempDir,
}

impl TestServer {
    pub(crate) fn open() -> anyhow::Result<Self> {
        let root = tempfile::tempdir()?;
        let launch = Launch::demo(binary(GANDER), data(root.path())?);
        let folder = workspace(root.path())?;
        std::fs::write(folder.join("a-file"), "")?;
        Ok(Self { launch, folder, _background: Background(root.path().to_owned()), _root: root })
    }

    /// An agent that is past `initialize`, and a session of it.
    pub(crate) async fn ready(&self) -> anyhow::Result<(Agent, String)> {
        let mut agent = self.launch.editor(&["--standalone"]).await?;
        let session = agent.client.new_session(&self.folder).await?;
        Ok((agent, session))
    }

    /// A normal session with a normal prompt works, and nothing else was answered meanwhile.
    pub(crate) async fn probe(&self, agent: &mut Agent) -> anyhow::Result<()> {
        let from = agent.client.seen.len();
        let session = agent.client.new_session(&self.folder).await.context("the probe's session")?;
        let reason = agent.client.turn(&session, &script(&[json!([{"text": "fine"}])])).await.context("the probe")?;
        let late: Vec<&Value> = agent.client.seen[from..].iter().filter(|message| is_answer(message)).collect();
        ensure!(reason == "end_turn" && late.len() == 2, "the probe stopped with {reason}, answers: {late:?}");
        Ok(())
    }
}

pub(crate) fn is_answer(message: &Value) -> bool {
    message.get("method").is_none()
}
