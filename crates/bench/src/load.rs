//! A light ACP client, and the arithmetic of what it measured.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use gander_testkit::harness::{DeltaStream, Finished, Launch};
use gander_testkit::upstream::Pace;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};

/// How long one turn took.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taken {
    pub(crate) first: Duration,
    pub(crate) whole: Duration,
}

/// Something that lets a model answer once: directly, or through a server.
pub(crate) trait Reader: Send + 'static {
    /// One whole answer.
    fn turn(&mut self, pace: Pace) -> impl Future<Output = anyhow::Result<Taken>> + Send;
}

/// A connection with one session.
pub(crate) struct Driver {
    writer: OwnedWriteHalf,
    stream: DeltaStream<BufReader<OwnedReadHalf>>,
    pub(crate) session: String,
}

/// A connection that reads line by line, for setting things up.
pub(crate) struct Lines {
    reader: BufReader<OwnedReadHalf>,
    writer: OwnedWriteHalf,
    next_id: u64,
}

impl Taken {
    pub(crate) fn new(start: Instant, finished: &Finished) -> Self {
        let first = finished.first.map_or(finished.end - start, |first| first - start);
        Self { first, whole: finished.end - start }
    }
}

impl Lines {
    /// A connection to the server of this data directory, past `initialize`.
    pub(crate) async fn open(launch: &Launch) -> anyhow::Result<Self> {
        let (reader, writer) = UnixStream::connect(launch.socket()).await?.into_split();
        let mut lines = Self { reader: BufReader::with_capacity(64 * 1024, reader), writer, next_id: 0 };
        let hello = json!({"gander": 1, "version": env!("CARGO_PKG_VERSION"), "cwd": launch.data});
        lines.writer.write_all(format!("{hello}\n").as_bytes()).await?;
        lines.line().await?;
        lines.call("initialize", &json!({"protocolVersion": 1})).await?;
        Ok(lines)
    }

    /// Makes a session.
    pub(crate) async fn new_session(&mut self, cwd: &Path) -> anyhow::Result<String> {
        let result = self.call("session/new", &json!({"cwd": cwd, "mcpServers": []})).await?;
        Ok(result["sessionId"].as_str().with_context(|| format!("no session: {result}"))?.to_owned())
    }

    /// Makes many sessions, all asked for at once.
    pub(crate) async fn new_sessions(&mut self, cwd: &Path, count: usize) -> anyhow::Result<()> {
        let params = json!({"cwd": cwd, "mcpServers": []});
        for _ in 0..count {
            self.send("session/new", &params).await?;
        }
        let mut made = 0;
        while made < count {
            let line = self.line().await?;
            ensure!(!line.contains("\"error\":{"), "no session: {line}");
            made += usize::from(!line.contains("\"method\":"));
        }
        Ok(())
    }

    /// Sends a request and reads on until its answer.
    pub(crate) async fn call(&mut self, method: &str, params: &Value) -> anyhow::Result<Value> {
        let id = self.send(method, params).await?;
        loop {
            let line = self.line().await?;
            if line.contains(&format!("\"id\":{id}")) && !line.contains("\"method\"") {
                let answer: Value = serde_json::from_str(&line)?;
                ensure!(answer.get("error").is_none(), "{method} was refused: {answer}");
                return Ok(answer["result"].clone());
            }
        }
    }

    pub(crate) async fn send(&mut self, method: &str, params: &Value) -> anyhow::Result<u64> {
        self.next_id += 1;
        let id = self.next_id;
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.writer.write_all(format!("{message}\n").as_bytes()).await?;
        Ok(id)
    }

    /// The next line.
    pub(crate) async fn line(&mut self) -> anyhow::Result<String> {
        let mut line = String::new();
        ensure!(self.reader.read_line(&mut line).await? > 0, "the server hung up");
        Ok(line)
    }
}

impl Driver {
    /// A connection with a session of its own.
    pub(crate) async fn open(launch: &Launch, cwd: &Path) -> anyhow::Result<Self> {
        let mut lines = Lines::open(launch).await?;
        let session = lines.new_session(cwd).await?;
        Ok(Self { writer: lines.writer, stream: DeltaStream::new(lines.reader), session })
    }
}

impl Reader for Driver {
    async fn turn(&mut self, pace: Pace) -> anyhow::Result<Taken> {
        let prompt = [json!({"type": "text", "text": pace.marker()})];
        let params = json!({"sessionId": self.session, "prompt": prompt});
        let message = json!({"jsonrpc": "2.0", "id": 1_000_000, "method": "session/prompt", "params": params});
        let line = format!("{message}\n");
        let start = Instant::now();
        self.writer.write_all(line.as_bytes()).await?;
        let finished = self.stream.count_until(b"\"stopReason\"").await?;
        ensure!(finished.deltas == pace.deltas, "{} of {} deltas came through", finished.deltas, pace.deltas);
        Ok(Taken::new(start, &finished))
    }
}

/// The middle one.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

pub(crate) fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

pub(crate) fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}
