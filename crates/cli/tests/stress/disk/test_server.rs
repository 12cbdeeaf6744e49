//! A server on a disk and a clock that a test can break, and clients that remember what was acknowledged to them.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};
use gander_domain::Event;
use gander_testkit::harness::{Client, Launch, Server, binary, script, workspace};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const GANDER: &str = env!("CARGO_BIN_EXE_gander");

/// What a client was told is done.
#[derive(Clone, Debug)]
pub(crate) struct Acknowledged {
    pub(crate) session: String,
    pub(crate) said: String,
}

/// A data directory, and the shim that stands between the server and the system.
pub(crate) struct TestServer {
    pub(crate) root: tempfile::TempDir,
    pub(crate) data: PathBuf,
    pub(crate) folder: PathBuf,
    shim: PathBuf,
}

impl TestServer {
    pub(crate) fn open() -> anyhow::Result<Self> {
        let root = tempfile::tempdir()?;
        let shim = root.path().join("shim.so");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/stress/disk/shim.c");
        let made = Command::new("cc").args(["-shared", "-fPIC", "-O1", "-o"]).arg(&shim).arg(source).status()?;
        ensure!(made.success(), "the C compiler that SQLite is built with does not build the shim");
        let data = root.path().join("data");
        std::fs::create_dir(&data)?;
        Ok(Self { folder: workspace(root.path())?, root, data, shim })
    }

    /// The server as everybody has it.
    pub(crate) fn plain(&self) -> Launch {
        Launch::demo(binary(GANDER), &self.data)
    }

    /// The server with the shim.
    pub(crate) fn shimmed(&self) -> Launch {
        self.plain().with("LD_PRELOAD", &self.shim.display().to_string()).with("SHIM_ARMED", &self.armed())
    }

    /// Puts words in force.
    pub(crate) fn arm(&self, words: &str) -> anyhow::Result<()> {
        let written = self.root.path().join("arming");
        std::fs::write(&written, words)?;
        Ok(std::fs::rename(written, self.armed())?)
    }

    pub(crate) fn disarm(&self) -> anyhow::Result<()> {
        Ok(std::fs::remove_file(self.armed())?)
    }

    fn armed(&self) -> String {
        self.root.path().join("armed").display().to_string()
    }

    /// Every acknowledged turn is in the log, whole and ended.
    pub(crate) async fn check(&self, launch: &Launch, all: &[Acknowledged]) -> anyhow::Result<()> {
        for Acknowledged { session, said } in all {
            let entries = launch.export(session).await.with_context(|| format!("lost: {session}"))?;
            let gap = entries.iter().zip(1..).find(|(entry, seq)| entry.seq.0 != *seq);
            ensure!(gap.is_none(), "numbers are not in order: {gap:?}");
            let ended = entries.iter().any(|entry| matches!(entry.event, Event::RunEnded { .. }));
            let told = entries.iter().filter_map(|entry| serde_json::to_string(&entry.event).ok());
            let whole = told.into_iter().any(|event| event.contains("message_done") && event.contains(said));
            ensure!(ended && whole, "an acknowledged turn is not whole: {session} {said} {entries:?}");
        }
        Ok(())
    }
}

/// Makes sessions and takes a turn in each, until something is refused or the server is gone.
pub(crate) async fn work(mut client: Client, folder: PathBuf, name: String) -> Vec<Acknowledged> {
    let mut done = Vec::new();
    while let Ok(acknowledged) = turn(&mut client, &folder, &format!("{name}-{}", done.len())).await {
        done.push(acknowledged);
    }
    done
}

/// One session and one turn in it.
pub(crate) async fn turn(client: &mut Client, folder: &Path, said: &str) -> anyhow::Result<Acknowledged> {
    let session = client.new_session(folder).await?;
    let reason = client.turn(&session, &script(&[json!([{"text": said, "chunks": 3}])])).await?;
    ensure!(reason == "end_turn", "{reason}");
    client.seen.clear();
    Ok(Acknowledged { session, said: said.to_owned() })
}

/// The status of `GET /health`.
pub(crate) async fn health(server: &Server) -> anyhow::Result<u16> {
    let mut stream = TcpStream::connect(server.address).await?;
    let request = format!("GET /health HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n\r\n", server.address);
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    answer.split(' ').nth(1).and_then(|status| status.parse().ok()).with_context(|| answer.clone())
}

/// A number from the environment.
pub(crate) fn number(variable: &str, usual: usize) -> usize {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}
