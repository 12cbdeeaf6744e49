//! The Agent Communication Protocol: runs in one answer and as streams, beside acp-sdk's own server where there is one.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use gander_testkit::harness::Process;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};

use crate::Bench;
use crate::load::mebibytes;
use crate::report::{Bounds, Report, Row};

/// Parts of one stream.
const PARTS: usize = 2_000;

/// Events of such a stream: created, in progress, message created, its parts, message completed, completed.
const EVENTS: usize = PARTS + 5;

/// The server that is measured.
#[derive(Clone, Debug)]
struct Target {
    address: SocketAddr,
    token: String,
}

/// What was measured of one server.
#[derive(Debug, Default)]
struct Figures {
    one: f64,
    sixteen: f64,
    later: f64,
    stream: f64,
    ten: f64,
    memory: f64,
}

pub(crate) async fn measure(bench: &Bench, report: &mut Report, reference: Option<&Path>) -> anyhow::Result<()> {
    let root = tempfile::tempdir()?;
    let launch = bench
        .launch(root.path())
        .with("GANDER_SERVER_CONFORMANCE_AGENTS", "true")
        .with("GANDER_LIMITS_REQUESTS_PER_SECOND", "1000000")
        .with("GANDER_LIMITS_REQUEST_BURST", "1000000");
    let server = launch.serve().await?;
    let token = launch.stdout(&["token"]).await?.trim().to_owned();
    let target = Target { address: server.address, token };
    let ours = figures(&target, server.process(), bench.scale.acp_rest_runs, report).await?;
    never_reads(&target, server.process(), report).await?;
    server.kill().await?;
    let theirs = match reference {
        Some(python) => Some(beside(python, report).await.context("acp-sdk's server")?),
        None => None,
    };
    let mut add = |what: &str, unit, pick: fn(&Figures) -> f64, bounds: Option<Bounds>| {
        let mut row = Row::new(format!("acp-rest: {what}"), pick(&ours), unit);
        row = theirs.as_ref().map_or(row.clone(), |theirs| row.raw(pick(theirs)));
        report.add(bounds.map_or(row.clone(), |bounds| row.bounds(bounds)));
    };
    add("sync runs/s, one connection", "/s", |figures| figures.one, None);
    let most = 5_000.0_f64;
    add("sync runs/s, 16 connections", "/s", |figures| figures.sixteen, Some(Bounds::Least(most * 0.3, most)));
    add("the same after many runs", "/s", |figures| figures.later, None);
    add("one stream of 2,000 parts", "events/s", |figures| figures.stream, Some(Bounds::Least(1_000.0, 50_000.0)));
    add("ten such streams at once", "events/s", |figures| figures.ten, Some(Bounds::Least(1_000.0, 50_000.0)));
    add("memory afterwards", "MiB", |figures| figures.memory, None);
    report
        .note("acp-rest: the limit of requests per token was raised; the raw column is acp-sdk 1.0.3, if it was given");
    Ok(())
}

async fn figures(target: &Target, process: Process, many: usize, report: &mut Report) -> anyhow::Result<Figures> {
    let few = (many / 10).max(100);
    let one = rate(target, 1, few).await?;
    let sixteen = rate(target, 16, few * 2).await?;
    rate(target, 16, many).await?;
    let later = rate(target, 16, few * 2).await?;
    let (stream, ten) = (streams(target, 1, report).await?, streams(target, 10, report).await?);
    Ok(Figures { one, sixteen, later, stream, ten, memory: mebibytes(process.memory()) })
}

/// Sync runs per second, shared by so many connections.
async fn rate(target: &Target, connections: usize, runs: usize) -> anyhow::Result<f64> {
    let began = Instant::now();
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..connections {
        let (target, runs) = (target.clone(), runs / connections);
        tasks.spawn(async move {
            let mut connection = BufReader::new(TcpStream::connect(target.address).await?);
            for _ in 0..runs {
                sync(&mut connection, &target).await?;
            }
            anyhow::Ok(runs)
        });
    }
    let mut done = 0;
    while let Some(runs) = tasks.join_next().await {
        done += runs??;
    }
    Ok(done as f64 / began.elapsed().as_secs_f64())
}

async fn sync(connection: &mut BufReader<TcpStream>, target: &Target) -> anyhow::Result<()> {
    connection.write_all(target.request("HTTP/1.1", "echo", "sync", "Hello").as_bytes()).await?;
    let (mut length, mut line) = (0, String::new());
    loop {
        line.clear();
        ensure!(connection.read_line(&mut line).await? > 0, "the server hung up");
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse()?;
        }
        if line == "\r\n" {
            break;
        }
    }
    let mut body = vec![0; length];
    connection.read_exact(&mut body).await?;
    let whole = body.windows(11).any(|text| text == b"\"completed\"");
    ensure!(whole, "not completed: {}", String::from_utf8_lossy(&body));
    Ok(())
}

/// Events per second of so many streams, if each has all of them.
async fn streams(target: &Target, count: usize, report: &mut Report) -> anyhow::Result<f64> {
    let began = Instant::now();
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..count {
        tasks.spawn(read_stream(target.clone()));
    }
    let mut events = 0;
    while let Some(found) = tasks.join_next().await {
        events += found??;
    }
    let exact = report.same(&format!("acp-rest events of {count} streams"), (count * EVENTS) as i64, events as i64);
    Ok(if exact { events as f64 / began.elapsed().as_secs_f64() } else { 0.0 })
}

async fn read_stream(target: Target) -> anyhow::Result<usize> {
    let mut stream = TcpStream::connect(target.address).await?;
    stream.write_all(target.request("HTTP/1.0", "parts", "stream", &PARTS.to_string()).as_bytes()).await?;
    let mut lines = BufReader::with_capacity(64 * 1024, stream).lines();
    let mut events = 0;
    while let Some(line) = lines.next_line().await? {
        events += usize::from(line.starts_with("data:"));
    }
    Ok(events)
}

/// Twenty clients that ask for a stream and never read it: the server must not grow with them.
async fn never_reads(target: &Target, process: Process, report: &mut Report) -> anyhow::Result<()> {
    let before = process.memory();
    let mut idle = Vec::new();
    for _ in 0..20 {
        let mut stream = TcpStream::connect(target.address).await?;
        stream.write_all(target.request("HTTP/1.0", "parts", "stream", "20000").as_bytes()).await?;
        idle.push(stream);
    }
    tokio::time::sleep(Duration::from_secs(3)).await;
    let grown = mebibytes(process.memory().saturating_sub(before));
    report.add(Row::new("acp-rest: memory for 20 streams of 20,000 parts that nobody reads", grown, "MiB"));
    Ok(())
}

/// The same figures of acp-sdk's own server, in smaller numbers: it slows down with every run.
async fn beside(python: &Path, report: &mut Report) -> anyhow::Result<Figures> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../interop/acp-rest/reference.py");
    let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let began = Instant::now();
    let mut child: Child = Command::new(python)
        .arg(script)
        .arg(port.to_string())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()?;
    let target = Target { address: SocketAddr::from(([127, 0, 0, 1], port)), token: String::new() };
    while TcpStream::connect(target.address).await.is_err() {
        ensure!(began.elapsed() < Duration::from_secs(60), "it does not start");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    report.note(format!("acp-sdk's server listened after {:.1} s", began.elapsed().as_secs_f64()));
    let process = Process(child.id().context("it is gone")?);
    let (one, sixteen) = (rate(&target, 1, 100).await?, rate(&target, 16, 320).await?);
    rate(&target, 16, 640).await?;
    let later = rate(&target, 16, 160).await?;
    let figures = Figures { one, sixteen, later, memory: mebibytes(process.memory()), ..Figures::default() };
    child.kill().await?;
    Ok(figures)
}

impl Target {
    fn request(&self, version: &str, agent: &str, mode: &str, text: &str) -> String {
        let input = format!(r#"[{{"role":"user","parts":[{{"content":"{text}","content_type":"text/plain"}}]}}]"#);
        let body = format!(r#"{{"agent_name":"{agent}","mode":"{mode}","input":{input}}}"#);
        let head =
            format!("POST /runs {version}\r\nHost: {}\r\nAuthorization: Bearer {}\r\n", self.address, self.token);
        format!("{head}Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}", body.len())
    }
}
