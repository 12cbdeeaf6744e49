//! A light ACP client of any server: over a WebSocket, or over the standard streams of a program.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use gander_testkit::upstream::Pace;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use crate::load::{Reader, Taken};

/// A server that says nothing for so long does not answer any more.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(120);

/// WebSocket frames by their number.
const TEXT_FRAME: u8 = 0x81;
const CLOSE_FRAME: u8 = 8;

/// A connection with one session.
pub(crate) struct Connection {
    wire: Wire,
    session: String,
    next_id: u64,
}

enum Wire {
    WebSocket(BufReader<TcpStream>),
    Program { _child: Box<Child>, input: ChildStdin, output: BufReader<ChildStdout> },
}

impl Connection {
    /// A WebSocket at `/acp`; `secret` is the header that lets it in.
    pub(crate) async fn open_websocket(address: SocketAddr, secret: &str, cwd: &Path) -> anyhow::Result<Self> {
        let mut stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let head = format!(
            "GET /acp HTTP/1.1\r\nHost: {address}\r\n{secret}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await?;
        let mut stream = BufReader::with_capacity(64 * 1024, stream);
        let mut line = String::new();
        stream.read_line(&mut line).await?;
        ensure!(line.contains(" 101 "), "no WebSocket: {line}");
        while line != "\r\n" {
            line.clear();
            ensure!(stream.read_line(&mut line).await? > 0, "the server hung up");
        }
        Self::begin_session(Wire::WebSocket(stream), cwd).await
    }

    /// A program that speaks ACP on its standard streams.
    pub(crate) async fn open_program(mut command: Command, cwd: &Path) -> anyhow::Result<(Self, u32)> {
        let command = command.current_dir(cwd).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.kill_on_drop(true).spawn().context("cannot start it")?;
        let process = child.id().context("it is gone")?;
        let input = child.stdin.take().context("stdin is piped")?;
        let output = BufReader::with_capacity(64 * 1024, child.stdout.take().context("stdout is piped")?);
        Ok((Self::begin_session(Wire::Program { _child: Box::new(child), input, output }, cwd).await?, process))
    }

    async fn begin_session(wire: Wire, cwd: &Path) -> anyhow::Result<Self> {
        let mut connection = Self { wire, session: String::new(), next_id: 0 };
        let hello = json!({"protocolVersion": 1, "clientCapabilities": {}});
        connection.call("initialize", &hello, |_| ()).await?;
        let opened = connection.call("session/new", &json!({"cwd": cwd, "mcpServers": []}), |_| ()).await?;
        connection.session = opened["sessionId"].as_str().context("no session id")?.to_owned();
        Ok(connection)
    }

    /// Calls a method; whatever else comes before its answer is shown to `on_message`.
    async fn call(&mut self, method: &str, params: &Value, mut on_message: impl FnMut(&[u8])) -> anyhow::Result<Value> {
        self.next_id += 1;
        let request = json!({"jsonrpc": "2.0", "id": self.next_id, "method": method, "params": params});
        self.wire.send(request.to_string().as_bytes()).await?;
        loop {
            let message = tokio::time::timeout(ANSWER_TIMEOUT, self.wire.receive()).await.context("no answer")??;
            // Notifications are by far the most: they are counted and not read.
            if contains(&message, b"\"method\"") {
                on_message(&message);
                continue;
            }
            let Ok(answer) = serde_json::from_slice::<Value>(&message) else { continue };
            if answer["id"] == self.next_id {
                ensure!(answer["error"].is_null(), "{method}: {}", answer["error"]);
                return Ok(answer["result"].clone());
            }
        }
    }
}

impl Reader for Connection {
    async fn turn(&mut self, pace: Pace) -> anyhow::Result<Taken> {
        let prompt = [json!({"type": "text", "text": pace.marker()})];
        let params = json!({"sessionId": self.session, "prompt": prompt});
        let (start, mut first, mut deltas) = (Instant::now(), None, 0);
        self.call("session/prompt", &params, |message| {
            if contains(message, b"agent_message_chunk") {
                deltas += message.iter().filter(|byte| **byte == b'~').count();
                first.get_or_insert_with(|| start.elapsed());
            }
        })
        .await?;
        ensure!(deltas == pace.deltas, "{deltas} of {} deltas came through", pace.deltas);
        Ok(Taken { first: first.unwrap_or_else(|| start.elapsed()), whole: start.elapsed() })
    }
}

impl Wire {
    async fn send(&mut self, message: &[u8]) -> anyhow::Result<()> {
        match self {
            // Masked with zeros, so that the text stays as it is.
            Self::WebSocket(stream) => {
                let mut frame = vec![TEXT_FRAME];
                match u16::try_from(message.len())? {
                    short @ 0..126 => frame.push(0x80 | short as u8),
                    long => {
                        frame.push(0x80 | 126);
                        frame.extend_from_slice(&long.to_be_bytes());
                    }
                }
                frame.extend_from_slice(&[0; 4]);
                frame.extend_from_slice(message);
                stream.get_mut().write_all(&frame).await?;
            }
            Self::Program { input, .. } => {
                input.write_all(&[message, b"\n"].concat()).await?;
                input.flush().await?;
            }
        }
        Ok(())
    }

    async fn receive(&mut self) -> anyhow::Result<Vec<u8>> {
        match self {
            Self::WebSocket(stream) => receive_frame(stream).await,
            Self::Program { output, .. } => {
                let mut line = Vec::new();
                ensure!(output.read_until(b'\n', &mut line).await? > 0, "the program ended");
                Ok(line)
            }
        }
    }
}

async fn receive_frame(stream: &mut BufReader<TcpStream>) -> anyhow::Result<Vec<u8>> {
    loop {
        let mut head = [0; 2];
        stream.read_exact(&mut head).await?;
        let length = match head[1] & 0x7f {
            126 => u64::from(stream.read_u16().await?),
            127 => stream.read_u64().await?,
            short => u64::from(short),
        };
        let mut payload = vec![0; usize::try_from(length)?];
        stream.read_exact(&mut payload).await?;
        match head[0] & 0x0f {
            0..=2 => return Ok(payload),
            CLOSE_FRAME => bail!("the server closed the WebSocket"),
            _ => {}
        }
    }
}

fn contains(bytes: &[u8], wanted: &[u8]) -> bool {
    bytes.windows(wanted.len()).any(|window| window == wanted)
}
