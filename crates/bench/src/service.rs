//! A server of runs, ours or somebody else's: how fast it answers and streams, and whether it loses anything.

use std::net::SocketAddr;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use gander_testkit::harness::Process;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio::task::JoinSet;

use crate::load::mebibytes;
use crate::report::{Bounds, Report, Row};

/// Parts of one stream.
pub(crate) const PARTS: usize = 2_000;

/// Whose server it is: ours must lose nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whose {
    Ours,
    Theirs,
}

/// How a server is asked, and how its answers are known.
#[derive(Clone, Debug)]
pub(crate) struct Service {
    pub(crate) address: SocketAddr,
    pub(crate) whose: Whose,
    /// The head of a request without its length, and the body that asks for a run in one answer.
    pub(crate) head: String,
    pub(crate) sync: String,
    /// What such an answer holds.
    pub(crate) done: &'static str,
    /// The body that asks for a stream; `{parts}` stands for how many.
    pub(crate) stream: String,
    /// Events of a stream beside its parts.
    pub(crate) around: usize,
}

/// How much is asked of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Much {
    /// Runs before it is measured again.
    pub(crate) runs: usize,
    /// Parts of a stream: a server that is slow with long ones gets shorter ones.
    pub(crate) parts: usize,
    /// Streams at once.
    pub(crate) streams: usize,
}

/// What was measured.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Figures {
    start: f64,
    idle: f64,
    one: f64,
    sixteen: f64,
    later: f64,
    stream: f64,
    many: f64,
    memory: f64,
    /// Microseconds of its processor time for one run at 16 connections.
    cpu: f64,
}

/// A figure's name, its unit, and where it is.
type Column = (&'static str, &'static str, fn(&Figures) -> f64);

const COLUMNS: [Column; 9] = [
    ("spawn to listening", "ms", |figures| figures.start),
    ("memory, idle", "MiB", |figures| figures.idle),
    ("sync runs/s, one connection", "/s", |figures| figures.one),
    ("sync runs/s, 16 connections", "/s", |figures| figures.sixteen),
    ("processor time of the server for one of these", "µs", |figures| figures.cpu),
    ("sync runs/s, 16 connections, after many runs", "/s", |figures| figures.later),
    ("one stream", "events/s", |figures| figures.stream),
    ("ten such streams at once", "events/s", |figures| figures.many),
    ("memory afterwards", "MiB", |figures| figures.memory),
];

/// Adds our figures, each beside that of every peer.
pub(crate) fn add(report: &mut Report, protocol: &str, ours: &Figures, peers: &[(String, Figures)]) {
    for (what, unit, pick) in COLUMNS {
        let row = |more: &str| Row::new(format!("{protocol}: {what}{more}"), pick(ours), unit);
        let bounds = match what {
            "sync runs/s, 16 connections" => Some(Bounds::Least((0.3 * 16.0 * report.disk).min(5_000.0), 5_000.0)),
            "one stream" | "ten such streams at once" => Some(Bounds::Least(1_000.0, 50_000.0)),
            _ => None,
        };
        report.add(bounds.map_or(row(""), |bounds| row("").bounds(bounds)));
        for (name, theirs) in peers.iter().filter(|(_, theirs)| pick(theirs) > 0.0) {
            report.add(row(&format!(", beside {name}")).raw(pick(theirs)));
        }
    }
}

impl Service {
    /// Everything about it. `start` is how long it took to listen.
    pub(crate) async fn figures(
        &self,
        process: Process,
        start: Duration,
        much: Much,
        report: &mut Report,
    ) -> anyhow::Result<Figures> {
        let idle = mebibytes(process.memory());
        let few = (much.runs / 10).max(100);
        let one = self.rate(1, few).await?;
        let before = process.cpu();
        let sixteen = self.rate(16, few * 2).await?;
        let cpu = (process.cpu() - before).as_secs_f64() * 1e6 / (few * 2) as f64;
        self.rate(16, much.runs).await?;
        let later = self.rate(16, few * 2).await?;
        let stream = self.streams(1, much, report).await?;
        let many = self.streams(much.streams, much, report).await?;
        let (start, memory) = (start.as_secs_f64() * 1e3, mebibytes(process.memory()));
        Ok(Figures { start, idle, one, sixteen, later, stream, many, memory, cpu })
    }

    fn request(&self, version: &str, body: &str) -> String {
        let head = self.head.replace("HTTP/1.1", version);
        format!("{head}content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}", body.len())
    }

    /// Sync runs per second, shared by so many connections.
    pub(crate) async fn rate(&self, connections: usize, runs: usize) -> anyhow::Result<f64> {
        let began = Instant::now();
        let mut tasks = JoinSet::new();
        for _ in 0..connections {
            let (service, runs) = (self.clone(), runs / connections);
            tasks.spawn(async move {
                let request = service.request("HTTP/1.1", &service.sync);
                let mut connection = BufReader::new(TcpStream::connect(service.address).await?);
                for _ in 0..runs {
                    service.run(&mut connection, request.as_bytes()).await?;
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

    async fn run(&self, connection: &mut BufReader<TcpStream>, request: &[u8]) -> anyhow::Result<()> {
        connection.write_all(request).await?;
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
        let whole = body.windows(self.done.len()).any(|text| text == self.done.as_bytes());
        ensure!(whole, "not completed: {}", String::from_utf8_lossy(&body));
        Ok(())
    }

    /// Events per second of so many streams, if each has all of them.
    async fn streams(&self, count: usize, much: Much, report: &mut Report) -> anyhow::Result<f64> {
        if count == 0 {
            return Ok(0.0);
        }
        let began = Instant::now();
        let mut tasks = JoinSet::new();
        for _ in 0..count {
            let service = self.clone();
            tasks.spawn(async move { service.read_stream(much.parts).await });
        }
        let mut events = 0;
        while let Some(found) = tasks.join_next().await {
            events += found??;
        }
        let expected = count * (much.parts + self.around);
        if self.whose == Whose::Ours {
            report.same(&format!("events of {count} streams"), expected as i64, events as i64);
        } else if events != expected {
            report.note(format!("a peer's {count} streams: {events} of {expected} events came"));
        }
        Ok(if events == expected { events as f64 / began.elapsed().as_secs_f64() } else { 0.0 })
    }

    pub(crate) async fn read_stream(&self, parts: usize) -> anyhow::Result<usize> {
        let mut stream = self.ask_stream(parts).await?;
        let (mut buffer, mut line, mut events) = (vec![0; 64 * 1024], 0, 0);
        const DATA: &[u8] = b"data:";
        loop {
            let read = tokio::time::timeout(Duration::from_secs(300), stream.read(&mut buffer)).await??;
            if read == 0 {
                return Ok(events);
            }
            // `line` is how much of the word has been seen at the beginning of this line; more than that: no such line.
            for byte in &buffer[..read] {
                line = match byte {
                    b'\n' => 0,
                    byte if line < DATA.len() && *byte == DATA[line] => line + 1,
                    _ => DATA.len() + 1,
                };
                events += usize::from(line == DATA.len());
            }
        }
    }

    /// HTTP/1.0: the stream ends with the connection, and nothing stands between its lines.
    async fn ask_stream(&self, parts: usize) -> anyhow::Result<TcpStream> {
        let mut stream = TcpStream::connect(self.address).await?;
        let body = self.stream.replace("{parts}", &parts.to_string());
        stream.write_all(self.request("HTTP/1.0", &body).as_bytes()).await?;
        Ok(stream)
    }

    /// Clients that ask for a stream and never read it: the server must not grow with them.
    pub(crate) async fn never_read(&self, protocol: &str, process: Process, report: &mut Report) -> anyhow::Result<()> {
        let before = process.memory();
        let mut idle = Vec::new();
        for _ in 0..20 {
            idle.push(self.ask_stream(20_000).await?);
        }
        tokio::time::sleep(Duration::from_secs(3)).await;
        let grown = mebibytes(process.memory().saturating_sub(before));
        report.add(Row::new(
            format!("{protocol}: memory for 20 streams of 20,000 parts that nobody reads"),
            grown,
            "MiB",
        ));
        Ok(())
    }
}

/// Starts somebody else's server by a command with `{port}` in it and measures it; `service` says how it is asked.
pub(crate) async fn beside(
    command: &str,
    much: Much,
    report: &mut Report,
    service: impl FnOnce(SocketAddr) -> Service,
) -> anyhow::Result<Figures> {
    let (mut child, address, took) = start(command).await?;
    let process = Process(child.id().context("it is gone")?);
    let figures = service(address).figures(process, took, much, report).await?;
    child.kill().await?;
    Ok(figures)
}

/// Starts somebody else's server by a command with `{port}` in it: its process, where it listens, and after how long.
pub(crate) async fn start(command: &str) -> anyhow::Result<(Child, SocketAddr, Duration)> {
    let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    let began = Instant::now();
    let mut words = command.split_whitespace().map(|word| word.replace("{port}", &port.to_string()));
    let mut child = Command::new(words.next().context("no command")?)
        .args(words)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()?;
    while TcpStream::connect(address).await.is_err() {
        ensure!(began.elapsed() < Duration::from_secs(120), "it does not start");
        ensure!(child.try_wait()?.is_none(), "it ended: {command}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    Ok((child, address, began.elapsed()))
}
