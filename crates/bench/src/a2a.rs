//! A2A: messages answered per second, and streams of 2,000 parts whose events are counted one by one.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use gander_testkit::harness::{Launch, Server};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::Bench;
use crate::load::{mebibytes, median};
use crate::report::{Bounds, Report, Row};

/// Parts of one stream.
const PARTS: usize = 2_000;
/// What a stream tells beside its parts: the task, that it works, that the artifact is whole, that it is over.
const AROUND: usize = 4;

pub(crate) async fn measure(bench: &Bench, report: &mut Report) -> anyhow::Result<()> {
    let root = tempfile::tempdir()?;
    let server = launch(bench, root.path()).serve().await?;
    report.add(Row::new("A2A: spawn to healthy", server.healthy_after.as_secs_f64() * 1e3, "ms"));
    report.add(Row::new("A2A: memory, idle", mebibytes(server.process().memory()), "MiB"));
    for connections in [1, 16] {
        let rate = sends(server.address, connections, bench.scale.sync_runs / 4).await?;
        let row = Row::new(format!("A2A: messages answered/s, {connections} connections"), rate, "/s");
        report.add(if connections == 16 { row.bounds(Bounds::Least(0.3 * 16.0 * report.disk, 5_000.0)) } else { row });
    }
    for streams in [1, 10] {
        let rate = streamed(bench, report, &server, streams).await?;
        report.add(Row::new(format!("A2A: events/s, {streams} streams of 2,000"), rate, "/s"));
    }
    report.add(Row::new("A2A: memory afterwards", mebibytes(server.process().memory()), "MiB"));
    server.kill().await?;
    Ok(())
}

fn launch(bench: &Bench, data: &std::path::Path) -> Launch {
    bench
        .launch(data)
        .with("GANDER_SERVER_CONFORMANCE_AGENTS", "true")
        .with("GANDER_SERVER_OPEN", "[\"a2a\"]")
        .with("GANDER_A2A_AGENT", "tck")
        .with("GANDER_LIMITS_REQUESTS_PER_SECOND", "1000000")
        .with("GANDER_LIMITS_REQUEST_BURST", "1000000")
}

async fn sends(address: SocketAddr, connections: usize, total: usize) -> anyhow::Result<f64> {
    let start = Instant::now();
    let mut all = JoinSet::new();
    for connection in 0..connections {
        all.spawn(async move {
            let mut stream = TcpStream::connect(address).await?;
            for n in 0..total / connections {
                let request = request(address, "message:send", &format!("b-{connection}-{n}"), "tck-complete-task");
                stream.write_all(request.as_bytes()).await?;
                let answer = sized(&mut stream).await?;
                ensure!(answer.contains("TASK_STATE_COMPLETED"), "{answer}");
            }
            anyhow::Ok(())
        });
    }
    while let Some(done) = all.join_next().await {
        done??;
    }
    Ok((total / connections * connections) as f64 / start.elapsed().as_secs_f64())
}

async fn streamed(bench: &Bench, report: &mut Report, server: &Server, streams: usize) -> anyhow::Result<f64> {
    let mut rates = Vec::new();
    for round in 0..bench.scale.rounds {
        let start = Instant::now();
        let mut all = JoinSet::new();
        for n in 0..streams {
            all.spawn(events(server.address, format!("s-{streams}-{round}-{n}")));
        }
        let mut found = 0;
        while let Some(done) = all.join_next().await {
            found += done??;
        }
        let expected = streams * (PARTS + AROUND);
        if !report.same("A2A events", i64::try_from(expected)?, i64::try_from(found)?) {
            break;
        }
        rates.push(expected as f64 / start.elapsed().as_secs_f64());
    }
    Ok(if rates.is_empty() { 0.0 } else { median(rates) })
}

/// How many events a stream has, to its end.
async fn events(address: SocketAddr, id: String) -> anyhow::Result<usize> {
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(request(address, "message:stream", &id, &format!("parts {PARTS}")).as_bytes()).await?;
    let (mut bytes, mut count, mut seen) = (Vec::with_capacity(1 << 20), 0, 0);
    loop {
        let read = tokio::time::timeout(Duration::from_secs(60), stream.read_buf(&mut bytes)).await??;
        ensure!(read > 0, "the stream was cut");
        // A match may begin in what was read before.
        count += bytes[seen..].windows(6).filter(|window| *window == b"data: ").count();
        seen = bytes.len().saturating_sub(5).max(seen);
        if bytes.ends_with(b"\r\n0\r\n\r\n") {
            return Ok(count);
        }
    }
}

fn request(address: SocketAddr, verb: &str, id: &str, text: &str) -> String {
    let body = json!({ "message": { "messageId": id, "role": "ROLE_USER", "parts": [{ "text": text }] } }).to_string();
    format!(
        "POST /a2a/{verb} HTTP/1.1\r\nhost: {address}\r\na2a-version: 1.0\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// One answer of known length.
async fn sized(stream: &mut TcpStream) -> anyhow::Result<String> {
    let mut bytes = Vec::with_capacity(4096);
    loop {
        let read = stream.read_buf(&mut bytes).await?;
        ensure!(read > 0, "the connection was closed");
        let text = std::str::from_utf8(&bytes)?;
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).context("no length")?;
        if body.len() >= length.parse()? {
            return Ok(body.to_owned());
        }
    }
}
