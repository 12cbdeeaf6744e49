//! A small ACP client: writes lines, keeps every message it read in order.

use std::io;
use std::path::Path;
use std::pin::Pin;
use std::time::Duration;

use anyhow::{Context, bail};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;

use super::PATIENCE;
use crate::conformance::acp::Listener;

/// A connection to an ACP agent.
pub struct Client {
    reader: BufReader<Pin<Box<dyn AsyncRead + Send>>>,
    writer: Pin<Box<dyn AsyncWrite + Send>>,
    partial: Vec<u8>,
    next_id: u64,
    listener: Listener,
    /// Every message read so far.
    pub seen: Vec<Value>,
}

/// An error as a JSON-RPC answer.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("refused with {code}: {message}")]
pub struct Refusal {
    /// Its number.
    pub code: i64,
    /// Its sentence.
    pub message: String,
    /// More, for programs.
    pub data: Option<Value>,
}

impl Client {
    /// Over any pair of streams, such as a child's stdout and stdin.
    pub fn over(reader: impl AsyncRead + Send + 'static, writer: impl AsyncWrite + Send + 'static) -> Self {
        let reader: Pin<Box<dyn AsyncRead + Send>> = Box::pin(reader);
        Self {
            reader: BufReader::with_capacity(64 * 1024, reader),
            writer: Box::pin(writer),
            partial: Vec::new(),
            next_id: 0,
            listener: Listener::over("stdio"),
            seen: Vec::new(),
        }
    }

    /// The same, known to go over another transport than stdio.
    #[must_use]
    pub fn by(mut self, transport: &'static str) -> Self {
        self.listener = Listener::over(transport);
        self
    }

    /// At a server's Unix socket.
    pub async fn attach(socket: &Path, cwd: &Path) -> anyhow::Result<Self> {
        let stream = UnixStream::connect(socket).await.with_context(|| format!("no server at {}", socket.display()))?;
        let (reader, writer) = stream.into_split();
        let mut client = Self::over(reader, writer);
        client.write(&json!({"gander": 1, "version": env!("CARGO_PKG_VERSION"), "cwd": cwd})).await?;
        client.receive().await?.context("the server hung up on hello")?;
        client.seen.clear();
        Ok(client)
    }

    /// The handshake of a plain client.
    pub async fn initialize(&mut self) -> anyhow::Result<Value> {
        let info = json!({"name": "testkit", "version": "1"});
        self.call("initialize", json!({"protocolVersion": 1, "clientInfo": info, "clientCapabilities": {}})).await
    }

    /// Makes a session in this folder.
    pub async fn new_session(&mut self, cwd: &Path) -> anyhow::Result<String> {
        let result = self.call("session/new", json!({"cwd": cwd, "mcpServers": []})).await?;
        Ok(result["sessionId"].as_str().context("no session id")?.to_owned())
    }

    /// Attaches to a session and reads its whole history.
    pub async fn load(&mut self, session: &str, cwd: &Path) -> anyhow::Result<Value> {
        self.call("session/load", json!({"sessionId": session, "cwd": cwd, "mcpServers": []})).await
    }

    /// Prompts with a text and does not wait.
    pub async fn prompt(&mut self, session: &str, text: &str) -> io::Result<u64> {
        let prompt = [json!({"type": "text", "text": text})];
        self.request("session/prompt", json!({"sessionId": session, "prompt": prompt})).await
    }

    /// Prompts with a text and gives the reason why the turn stopped.
    pub async fn turn(&mut self, session: &str, text: &str) -> anyhow::Result<String> {
        let id = self.prompt(session, text).await?;
        let result = self.answer_to(id).await?;
        Ok(result["stopReason"].as_str().context("no stop reason")?.to_owned())
    }

    /// Sends a request and waits for its answer.
    pub async fn call(&mut self, method: &str, params: Value) -> anyhow::Result<Value> {
        let id = self.request(method, params).await?;
        self.answer_to(id).await
    }

    /// Sends a request and gives its id.
    pub async fn request(&mut self, method: &str, params: Value) -> io::Result<u64> {
        self.next_id += 1;
        let id = self.next_id;
        self.write(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await?;
        Ok(id)
    }

    /// Sends a notification.
    pub async fn notify(&mut self, method: &str, params: Value) -> io::Result<()> {
        self.write(&json!({"jsonrpc": "2.0", "method": method, "params": params})).await
    }

    /// Answers a request of the agent.
    pub async fn respond(&mut self, id: &Value, result: Value) -> io::Result<()> {
        self.write(&json!({"jsonrpc": "2.0", "id": id, "result": result})).await
    }

    /// Chooses the option of this kind in answer to a permission request.
    pub async fn choose(&mut self, request: &Value, kind: &str) -> anyhow::Result<()> {
        let options = request["params"]["options"].as_array().context("no options")?;
        let option = options.iter().find(|option| option["kind"] == kind).context("no such kind of option")?;
        let outcome = json!({"outcome": {"outcome": "selected", "optionId": option["optionId"]}});
        Ok(self.respond(&request["id"], outcome).await?)
    }

    /// Reads until the answer to this request; an error is a [`Refusal`].
    pub async fn answer_to(&mut self, id: u64) -> anyhow::Result<Value> {
        let message = self.until(|message| message["id"] == id && message.get("method").is_none()).await?;
        match message.get("error") {
            Some(error) => Err(refusal(error).into()),
            None => Ok(message["result"].clone()),
        }
    }

    /// Reads until the agent asks this.
    pub async fn asked(&mut self, method: &str) -> anyhow::Result<Value> {
        self.until(|message| message["method"] == method && message.get("id").is_some()).await
    }

    /// Reads until an update of this kind.
    pub async fn update(&mut self, kind: &str) -> anyhow::Result<Value> {
        let message = self.until(|message| message["params"]["update"]["sessionUpdate"] == kind).await?;
        Ok(message["params"]["update"].clone())
    }

    /// Reads until a message is what is wanted.
    pub async fn until(&mut self, wanted: impl Fn(&Value) -> bool) -> anyhow::Result<Value> {
        loop {
            let message = self.receive().await?.context("the agent hung up")?;
            if wanted(&message) {
                return Ok(message);
            }
        }
    }

    /// The next message; nothing if the agent hung up.
    pub async fn receive(&mut self) -> anyhow::Result<Option<Value>> {
        tokio::time::timeout(PATIENCE, self.read()).await.context("the agent is silent")?
    }

    /// The next message, if one comes within this time.
    pub async fn receive_within(&mut self, time: Duration) -> anyhow::Result<Option<Value>> {
        tokio::time::timeout(time, self.read()).await.unwrap_or(Ok(None))
    }

    /// Writes a line as it is.
    pub async fn write_raw(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.writer.write_all(bytes).await?;
        self.writer.flush().await
    }

    /// Closes the way to the agent, as a client that leaves does.
    pub async fn close_input(&mut self) -> io::Result<()> {
        self.writer.shutdown().await?;
        self.writer = Box::pin(tokio::io::sink());
        Ok(())
    }

    /// Loses nothing when dropped half-way: what was read of a line stays.
    async fn read(&mut self) -> anyhow::Result<Option<Value>> {
        if self.reader.read_until(b'\n', &mut self.partial).await? == 0 || !self.partial.ends_with(b"\n") {
            return Ok(None);
        }
        let line = std::mem::take(&mut self.partial);
        let Ok(message) = serde_json::from_slice::<Value>(&line) else {
            bail!("not JSON: {}", String::from_utf8_lossy(&line));
        };
        self.listener.heard(&message);
        self.seen.push(message.clone());
        Ok(Some(message))
    }

    async fn write(&mut self, message: &Value) -> io::Result<()> {
        self.listener.sent(message);
        self.write_raw(format!("{message}\n").as_bytes()).await
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("seen", &self.seen.len()).finish_non_exhaustive()
    }
}

fn refusal(error: &Value) -> Refusal {
    Refusal {
        code: error["code"].as_i64().unwrap_or_default(),
        message: error["message"].as_str().unwrap_or_default().to_owned(),
        data: error.get("data").cloned(),
    }
}
