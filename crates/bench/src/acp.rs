//! The ACP path by itself: what one more client of a running stream costs, and what an idle WebSocket holds.

use std::path::Path;

use anyhow::{Context, ensure};
use gander_testkit::harness::{Server, workspace};
use gander_testkit::upstream::Pace;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::Bench;
use crate::load::{Driver, Lines, Reader};
use crate::report::{Bounds, Report, Row};

const STREAM: Pace = Pace { deltas: 2_000, between_ms: 0, first_ms: 0, size: 8, word: 0 };

/// Clients that only watch.
const WATCHERS: usize = 50;

/// Sockets that are open before the counting begins.
const WARM: usize = 50;

/// The first message of a client, masked with zeros as one WebSocket frame.
const HELLO: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}"#;

pub(crate) async fn measure(bench: &Bench, report: &mut Report) -> anyhow::Result<()> {
    watched(bench, report).await.context("watched")?;
    sockets(bench, report).await.context("sockets")
}

/// The same stream without and with watchers: the difference is the ACP path's.
async fn watched(bench: &Bench, report: &mut Report) -> anyhow::Result<()> {
    let root = tempfile::tempdir()?;
    let server = bench.launch(root.path())?.serve().await?;
    let folder = workspace(root.path())?;
    let mut driver = Driver::open(&server.launch, &folder).await?;
    driver.turn(STREAM).await?;
    let rounds = bench.scale.rounds;
    let alone = cpu_of(&server, &mut driver, rounds).await?;
    let wanted = rounds * STREAM.deltas * STREAM.size;
    let mut watchers = JoinSet::new();
    for _ in 0..WATCHERS {
        let watcher = watcher(&server, &driver.session, &folder).await?;
        watchers.spawn(count(watcher, wanted));
    }
    let mut together = cpu_of(&server, &mut driver, rounds).await?;
    let last = server.process().cpu();
    let mut messages = 0;
    while let Some(counted) = watchers.join_next().await {
        messages += counted??;
    }
    together += server.process().cpu().saturating_sub(last).as_secs_f64();
    let (cost, deltas) = ((together - alone) * 1e6, (rounds * STREAM.deltas * WATCHERS) as f64);
    let name = format!("one more ACP client of a stream, {WATCHERS} of them, server CPU per update");
    report.add(Row::new(name, cost / deltas, "µs").bounds(Bounds::Most(3.0, 3.0)));
    report.add(Row::new(
        "the same, per message written (updates that wait together are one)",
        cost / messages as f64,
        "µs",
    ));
    server.kill().await?;
    Ok(())
}

async fn cpu_of(server: &Server, driver: &mut Driver, rounds: usize) -> anyhow::Result<f64> {
    let before = server.process().cpu();
    for _ in 0..rounds {
        driver.turn(STREAM).await?;
    }
    Ok((server.process().cpu() - before).as_secs_f64())
}

async fn watcher(server: &Server, session: &str, folder: &Path) -> anyhow::Result<Lines> {
    let mut lines = Lines::open(&server.launch).await?;
    lines.call("session/resume", &json!({"sessionId": session, "cwd": folder, "mcpServers": []})).await?;
    Ok(lines)
}

/// Reads until so much text has come, and says in how many messages it did.
async fn count(mut lines: Lines, wanted: usize) -> anyhow::Result<usize> {
    let (mut text, mut messages) = (0, 0);
    while text < wanted {
        let line: serde_json::Value = serde_json::from_str(&lines.line().await?)?;
        let update = &line["params"]["update"];
        if update["sessionUpdate"] == "agent_message_chunk" {
            text += update["content"]["text"].as_str().map_or(0, str::len);
            messages += 1;
        }
    }
    Ok(messages)
}

async fn sockets(bench: &Bench, report: &mut Report) -> anyhow::Result<()> {
    let root = tempfile::tempdir()?;
    let count = bench.scale.sockets;
    let launch = bench.launch(root.path())?.with("GANDER_LIMITS_LOCAL_STREAMS", "10000");
    let server = launch.serve().await?;
    let token = server.launch.stdout(&["token"]).await?.trim().to_owned();
    let mut open = Vec::new();
    for _ in 0..WARM {
        open.push(socket(&server, &token).await?);
    }
    let before = server.process().memory();
    for _ in 0..count {
        open.push(socket(&server, &token).await?);
    }
    let each = server.process().memory().saturating_sub(before) as f64 / 1024.0 / count as f64;
    let name = format!("memory per idle WebSocket connection, {count} open");
    report.add(Row::new(name, each, "KiB").bounds(Bounds::Most(167.0, 25.0)));
    drop(open);
    server.kill().await?;
    Ok(())
}

/// A WebSocket whose client has introduced itself and was answered.
async fn socket(server: &Server, token: &str) -> anyhow::Result<TcpStream> {
    let mut stream = TcpStream::connect(server.address).await?;
    let head = format!(
        "GET /acp HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {token}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
        server.address
    );
    let length = u8::try_from(HELLO.len()).ok().filter(|length| *length < 126).context("a longer frame")?;
    let frame = [&[0x81, 0x80 | length, 0, 0, 0, 0], HELLO.as_bytes()].concat();
    stream.write_all(&[head.as_bytes(), &frame].concat()).await?;
    let mut read = Vec::new();
    while !read.windows(14).any(|bytes| bytes == b"\"protocolVersi") {
        ensure!(stream.read_buf(&mut read).await? > 0, "refused: {}", String::from_utf8_lossy(&read));
    }
    Ok(stream)
}
