//! The model as a process of its own, and reading it without anything in between.

use std::net::SocketAddr;
use std::process::Stdio;
use std::time::Instant;

use anyhow::{Context, ensure};
use gander_testkit::harness::DeltaStream;
use gander_testkit::upstream::Pace;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::process::{Child, Command};

use crate::load::{Reader, Taken};

/// The running model; it is killed when dropped.
#[derive(Debug)]
pub(crate) struct Mock {
    _child: Child,
    address: SocketAddr,
}

/// A connection that reads the model directly.
pub(crate) struct Raw {
    writer: OwnedWriteHalf,
    stream: DeltaStream<OwnedReadHalf>,
    address: SocketAddr,
}

impl Mock {
    /// Starts this program again as the model.
    pub(crate) async fn start() -> anyhow::Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        let mut child =
            command.arg("--upstream").stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true).spawn()?;
        let stdout = child.stdout.take().context("stdout is piped")?;
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line).await?;
        Ok(Self { _child: child, address: line.trim().parse().context("the model says where it listens")? })
    }

    pub(crate) fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// A connection for reading it directly.
    pub(crate) async fn raw(&self) -> anyhow::Result<Raw> {
        let stream = TcpStream::connect(self.address).await?;
        stream.set_nodelay(true)?;
        let (reader, writer) = stream.into_split();
        Ok(Raw { writer, stream: DeltaStream::new(reader), address: self.address })
    }
}

impl Reader for Raw {
    async fn turn(&mut self, pace: Pace) -> anyhow::Result<Taken> {
        self.turn_after(0, pace).await
    }
}

impl Raw {
    /// One whole answer to a conversation that has had so many turns already.
    pub(crate) async fn turn_after(&mut self, turns: usize, pace: Pace) -> anyhow::Result<Taken> {
        let said = r#"{"role":"user","content":"[[n=1,d=0,f=0,s=8,w=0]]"},{"role":"assistant","content":"~xxxxxxx"},"#;
        let (past, marker) = (said.repeat(turns), pace.marker());
        let messages = format!(r#"[{past}{{"role":"user","content":"{marker}"}}]"#);
        let body = format!(r#"{{"model":"mock","stream":true,"messages":{messages}}}"#);
        let line = format!("POST /v1/chat/completions HTTP/1.1\r\nhost: {}\r\n", self.address);
        let head = format!("{line}content-type: application/json\r\ncontent-length: {}\r\n\r\n", body.len());
        let start = Instant::now();
        self.writer.write_all(format!("{head}{body}").as_bytes()).await?;
        let finished = self.stream.count_until(b"0\r\n\r\n").await?;
        ensure!(finished.deltas == pace.deltas, "{} of {} deltas came directly", finished.deltas, pace.deltas);
        Ok(Taken::new(start, &finished))
    }
}
