//! A connection to an agent server for the commands: bytes in and out around the client machine.

use std::io;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use gander_domain::Principal;
use gander_wire::acp::Client;
use gander_wire::acp::client::{CallId, Told};
use gander_wire::jsonrpc::{Line, Lines};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::app::{App, Peer};
use crate::config::Config;
use crate::daemon::{Attached, Hello, ServerError, Want, attach};
use crate::paths::Lock;

/// A connection to an agent server.
pub(super) struct Connection {
    /// The client's side, without IO.
    pub(super) client: Client,
    reader: Box<dyn AsyncRead + Send + Unpin>,
    writer: Box<dyn AsyncWrite + Send + Unpin>,
    lines: Lines,
    chunk: Vec<u8>,
    unsent: Vec<u8>,
    sent: usize,
}

/// An application inside this very process, and the lock that makes the data directory its own.
pub(super) struct Standalone {
    pub(super) app: Arc<App>,
    _lock: Lock,
}

impl Standalone {
    /// Takes the data directory for this process.
    pub(super) async fn start(config: &Config) -> anyhow::Result<Self> {
        config.paths.create()?;
        let lock = Lock::try_take(&config.paths.server_lock())?;
        let taken = || ServerError::Taken(config.paths.data().to_owned());
        let lock = lock.ok_or_else(taken).context("--standalone needs the data directory for itself")?;
        Ok(Self { app: App::start(config.clone()).await?, _lock: lock })
    }

    /// The person who started this process.
    pub(super) fn peer(config: &Config, cwd: &Path) -> Peer {
        Peer {
            principal: Principal::owner(),
            local: true,
            cwd: Some(cwd.to_owned()),
            model: config.sections.model.default.clone(),
            keys: config.keys.clone(),
            manner: config.sections.acp,
        }
    }
}

/// What this process tells the server when it attaches.
pub(super) fn hello(config: &Config, cwd: &Path) -> Hello {
    let mut hello = Hello::new(Want::Acp);
    hello.cwd = Some(cwd.to_owned());
    hello.model.clone_from(&config.sections.model.default);
    hello.keys = config.keys.clone();
    hello.manner = config.sections.acp;
    hello
}

impl Connection {
    /// To the server of the data directory, which is started if none runs.
    pub(super) async fn attach(config: &Config, cwd: &Path) -> anyhow::Result<Self> {
        let Attached { reader, writer, .. } = attach(config, &hello(config, cwd)).await?;
        Self::introduce(reader, writer).await
    }

    /// To an application in this process.
    pub(super) async fn within(standalone: &Standalone, config: &Config, cwd: &Path) -> anyhow::Result<Self> {
        let (ours, theirs) = tokio::io::duplex(256 * 1024);
        let (app, peer) = (standalone.app.clone(), Standalone::peer(config, cwd));
        tokio::spawn(async move {
            let (reader, writer) = tokio::io::split(theirs);
            app.serve_acp(reader, writer, peer).await;
        });
        let (reader, writer) = tokio::io::split(ours);
        Self::introduce(reader, writer).await
    }

    /// Over any pair of streams.
    pub(super) async fn introduce(
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
    ) -> anyhow::Result<Self> {
        let mut connection = Self {
            client: Client::default(),
            reader: Box::new(reader),
            writer: Box::new(writer),
            lines: Lines::default(),
            chunk: vec![0; 64 * 1024],
            unsent: Vec::new(),
            sent: 0,
        };
        let call = connection.client.initialize("gander", crate::VERSION);
        connection.wait(call, |_| {}).await?;
        Ok(connection)
    }

    /// What the server told next; `None` once it is gone. Nothing is lost if this is dropped half-way.
    pub(super) async fn next(&mut self) -> io::Result<Option<Told>> {
        loop {
            if let Some(told) = self.client.poll() {
                return Ok(Some(told));
            }
            self.flush().await?;
            let read = self.reader.read(&mut self.chunk).await?;
            if read == 0 {
                self.client.disconnected();
                return Ok(self.client.poll());
            }
            self.lines.push(&self.chunk[..read]);
            while let Some(line) = self.lines.next_line() {
                match line {
                    Line::Whole(message) => self.client.receive(message),
                    Line::TooLong => return Err(io::Error::other("the server sent a line that is too long")),
                }
            }
        }
    }

    /// Calls a method and waits for its answer.
    pub(super) async fn call(&mut self, method: &str, params: &Value) -> anyhow::Result<Value> {
        let call = self.client.call(method, params);
        let Told::Answered { result, .. } = self.wait(call, |_| {}).await? else {
            bail!("the server answered something else")
        };
        Ok(result)
    }

    /// Waits for the answer to a call; everything else that is told meanwhile goes to `aside`.
    pub(super) async fn wait(&mut self, call: CallId, mut aside: impl FnMut(Told)) -> anyhow::Result<Told> {
        while let Some(told) = self.next().await? {
            match &told {
                Told::Failed { call: failed, error } if *failed == call => bail!("{}", error.message),
                Told::Initialized { call: answered, .. }
                | Told::Opened { call: answered, .. }
                | Told::Ended { call: answered, .. }
                | Told::Answered { call: answered, .. }
                    if *answered == call =>
                {
                    return Ok(told);
                }
                Told::Initialized { .. }
                | Told::Opened { .. }
                | Told::Ended { .. }
                | Told::Answered { .. }
                | Told::Failed { .. }
                | Told::Heard { .. }
                | Told::Asked { .. }
                | Told::Withdrawn { .. } => aside(told),
            }
        }
        bail!("the server is gone")
    }

    /// Sends what waits. Can be dropped half-way and called again.
    async fn flush(&mut self) -> io::Result<()> {
        let outbox = self.client.outbox();
        self.unsent.extend_from_slice(outbox.bytes());
        outbox.clear();
        while self.sent < self.unsent.len() {
            self.sent += self.writer.write(&self.unsent[self.sent..]).await?;
        }
        self.unsent.clear();
        self.sent = 0;
        self.writer.flush().await
    }
}
