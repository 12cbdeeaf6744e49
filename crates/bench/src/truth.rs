//! What is really in the database and how often it was made safe, so that no figure stands on lost or unsynced data.

use std::path::Path;
use std::process::Stdio;

use anyhow::{Context, ensure};
use gander_testkit::harness::Server;
use gander_testkit::upstream::Pace;
use serde_json::Value;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{ConnectOptions, Row};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::process::Command;

use crate::load::{Driver, Reader};

/// What was stored.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Stored {
    pub(crate) rows: i64,
    pub(crate) deltas: i64,
}

/// Counts rows and deltas in a data directory.
pub(crate) async fn stored(data: &Path) -> anyhow::Result<Stored> {
    let options = SqliteConnectOptions::new().filename(data.join("log.db")).read_only(true);
    let mut connection: SqliteConnection = options.connect().await?;
    let query = "SELECT count(*), coalesce(sum(CASE WHEN kind IN (1, 2) THEN last - first + 1 END), 0) FROM entry";
    let row = sqlx::query(query).fetch_one(&mut connection).await?;
    Ok(Stored { rows: row.try_get(0)?, deltas: row.try_get(1)? })
}

/// What the server says of its store.
pub(crate) async fn store_status(server: &Server) -> anyhow::Result<Value> {
    let token = server.launch.stdout(&["token"]).await?;
    let mut stream = TcpStream::connect(server.address).await?;
    let head = format!("GET /gander/status HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n", server.address);
    stream.write_all(format!("{head}authorization: Bearer {}\r\n\r\n", token.trim()).as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    let body = answer.split_once("\r\n\r\n").context("no body")?.1;
    let status: Value = serde_json::from_str(body).with_context(|| format!("no status: {answer}"))?;
    Ok(status["app"]["store"].clone())
}

/// What one turn costs in the store.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PerTurn {
    /// Syncs that the kernel saw.
    pub(crate) kernel_syncs: f64,
    /// Syncs that the server counted.
    pub(crate) syncs: f64,
    pub(crate) commits: f64,
}

/// What a short turn costs in the store, in the kernel's words and in the server's; nothing without `strace`.
pub(crate) async fn per_turn(server: &Server, driver: &mut Driver, turns: u32) -> anyhow::Result<Option<PerTurn>> {
    let trace = server.launch.data.join("syncs.txt");
    let mut command = Command::new("strace");
    command.args(["-f", "-e", "trace=fsync,fdatasync", "-o"]).arg(&trace).arg("-p").arg(server.process().0.to_string());
    let Ok(mut tracer) =
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true).spawn()
    else {
        return Ok(None);
    };
    let mut attached = [0; 64];
    let words = tracer.stderr.as_mut().context("stderr is piped")?.read(&mut attached).await?;
    if !String::from_utf8_lossy(&attached[..words]).contains("attached") {
        return Ok(None);
    }
    let before = store_status(server).await?;
    for _ in 0..turns {
        driver.turn(Pace { deltas: 1, ..Pace::default() }).await?;
    }
    let after = store_status(server).await?;
    tracer.start_kill()?;
    tracer.wait().await?;
    let text = std::fs::read_to_string(&trace)?;
    let kernel = text.lines().filter(|line| line.contains("sync(") && !line.contains("resumed")).count();
    ensure!(kernel > 0, "the kernel saw no sync at all");
    let each = |count: u64| count as f64 / f64::from(turns);
    let grown = |name: &str| Some(each(after[name].as_u64()? - before[name].as_u64()?));
    let counted = grown("syncs").zip(grown("commits"));
    let (syncs, commits) = counted.context("the server counts its commits")?;
    Ok(Some(PerTurn { kernel_syncs: each(kernel as u64), syncs, commits }))
}
