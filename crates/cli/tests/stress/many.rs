//! Two hundred sessions stream at once through the real binary: nothing fails, nothing is lost, memory stays bounded.

#![allow(clippy::print_stderr, clippy::wildcard_enum_match_arm)]

use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use gander_domain::Event;
use gander_testkit::harness::{Client, Launch, PATIENCE, Server, Transcript, binary, data, eventually, workspace};
use gander_testkit::upstream::{Pace, Upstream};
use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::task::JoinSet;

const GANDER: &str = env!("CARGO_BIN_EXE_gander");
const SESSIONS: usize = 200;
const DELTAS: usize = 500;

/// What a debug build may use for all of it; the benchmark measures the release build.
const MEMORY: u64 = 256 << 20;

/// What one reader that never reads may cost, however much is streamed.
const MEMORY_PER_SLEEPER: u64 = 256 << 10;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_streams_lose_nothing() -> anyhow::Result<()> {
    let test_server = TestServer::open().await?;
    let mut streams = JoinSet::new();
    for _ in 0..SESSIONS {
        streams.spawn(stream(test_server.server.client().await?, test_server.folder.clone()));
    }
    let mut sessions = Vec::new();
    while let Some(stream) = streams.join_next().await {
        let (session, deltas) = stream??;
        ensure!(deltas == DELTAS, "{session} saw {deltas} of {DELTAS} deltas");
        sessions.push(session);
    }
    let peak = test_server.server.process().peak_memory();
    eprintln!("{SESSIONS} x {DELTAS} deltas, {} MiB at the most", peak >> 20);
    ensure!(peak < MEMORY, "the server used {} MiB", peak >> 20);
    for session in sessions.iter().step_by(20) {
        ensure!(test_server.stored(session).await? == DELTAS, "the log of {session} is not what was seen");
    }
    test_server.close().await
}

/// What turns cost by themselves is paid before the first sleeper comes, so all that is counted is theirs, and there is
/// no allowance beside it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_that_never_read_change_nothing_for_the_others() -> anyhow::Result<()> {
    const SLEEPERS: usize = 200;
    let test_server = TestServer::open().await?;
    let mut client = test_server.server.client().await?;
    let session = client.new_session(&test_server.folder).await?;
    for _ in 0..3 {
        long_turn(&mut client, &session).await?;
    }
    let before = test_server.server.process().peak_memory();
    let mut sleepers = Vec::new();
    for _ in 0..SLEEPERS {
        sleepers.push(sleeper(&test_server.server, &session, &test_server.folder).await?);
    }
    for _ in 0..3 {
        long_turn(&mut client, &session).await?;
    }
    let grown = test_server.server.process().peak_memory().saturating_sub(before);
    eprintln!("{SLEEPERS} readers that never read: {} KiB each", (grown / SLEEPERS as u64) >> 10);
    ensure!(grown < SLEEPERS as u64 * MEMORY_PER_SLEEPER, "{} KiB each", (grown / SLEEPERS as u64) >> 10);
    drop(sleepers);
    test_server.close().await
}

/// A turn of 500 KB, of which nothing may be missing.
async fn long_turn(client: &mut Client, session: &str) -> anyhow::Result<()> {
    let pace = Pace { deltas: 5_000, size: 100, ..Pace::default() };
    client.seen.clear();
    let reason = client.turn(session, &pace.marker()).await?;
    let deltas = Transcript::of(&client.seen, session).text().matches('~').count();
    ensure!((reason.as_str(), deltas) == ("end_turn", 5_000), "{reason}, {deltas} deltas");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_leaves_does_not_end_its_turn() -> anyhow::Result<()> {
    let test_server = TestServer::open().await?;
    let mut client = test_server.server.client().await?;
    let session = client.new_session(&test_server.folder).await?;
    client.prompt(&session, &Pace { deltas: 50, between_ms: 5, ..Pace::default() }.marker()).await?;
    client.update("agent_message_chunk").await?;
    drop(client);
    eventually("the run ends", || async { test_server.stored(&session).await.is_ok_and(|deltas| deltas == 50) })
        .await?;
    test_server.close().await
}

/// A server with a model, and a folder to work in.
struct TestServer {
    server: Server,
    folder: PathBuf,
    _upstream: Upstream,
    _root: tempfile::TempDir,
}

impl TestServer {
    async fn open() -> anyhow::Result<Self> {
        let root = tempfile::tempdir()?;
        let upstream = Upstream::start().await?;
        let server = Launch::openai(binary(GANDER), data(root.path())?, &upstream.base_url()).serve().await?;
        Ok(Self { server, folder: workspace(root.path())?, _upstream: upstream, _root: root })
    }

    /// How many deltas the whole messages of the log hold, if its run has ended.
    async fn stored(&self, session: &str) -> anyhow::Result<usize> {
        let entries = self.server.launch.export(session).await?;
        ensure!(entries.iter().any(|entry| matches!(entry.event, Event::RunEnded { .. })), "the run is still open");
        let texts = entries.iter().filter_map(|entry| match &entry.event {
            Event::MessageDone { message } => serde_json::to_string(message).ok(),
            _ => None,
        });
        Ok(texts.map(|text| text.matches('~').count()).sum())
    }

    async fn close(self) -> anyhow::Result<()> {
        ensure!(self.server.stop().await?.success(), "the server did not end well");
        Ok(())
    }
}

/// One session and its turn: how many deltas were seen.
async fn stream(mut client: Client, folder: PathBuf) -> anyhow::Result<(String, usize)> {
    let session = client.new_session(&folder).await?;
    let reason = client.turn(&session, &Pace { deltas: DELTAS, ..Pace::default() }.marker()).await?;
    ensure!(reason == "end_turn", "{session} stopped with {reason}");
    let deltas = Transcript::of(&client.seen, &session).text().matches('~').count();
    Ok((session, deltas))
}

/// Attaches to a session and reads no byte of what follows.
async fn sleeper(server: &Server, session: &str, folder: &Path) -> anyhow::Result<UnixStream> {
    let mut stream = UnixStream::connect(server.launch.socket()).await?;
    let hello = json!({"gander": 1, "version": env!("CARGO_PKG_VERSION"), "cwd": folder});
    let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}});
    let params = json!({"sessionId": session, "cwd": folder, "mcpServers": []});
    let resume = json!({"jsonrpc": "2.0", "id": 2, "method": "session/resume", "params": params});
    stream.write_all(format!("{hello}\n{initialize}\n{resume}\n").as_bytes()).await?;
    let mut lines = BufReader::with_capacity(512, &mut stream).lines();
    let attached = async {
        while let Some(line) = lines.next_line().await? {
            if line.contains("\"id\":2") {
                return Ok(());
            }
        }
        anyhow::bail!("the server hung up")
    };
    tokio::time::timeout(PATIENCE, attached).await.context("not attached")??;
    Ok(stream)
}
