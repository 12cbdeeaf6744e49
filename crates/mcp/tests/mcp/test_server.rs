//! A session's surroundings with scripted servers in it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use gander_domain::{Delta, DeltaKind, Part, ToolCall, ToolCallId, ToolContent, ToolResult};
use gander_mcp::{
    Keyring, ListenGuard, MemoryNetworkGrantStore, MemoryToolPinStore, RunListener, ServerEvent, Servers,
    ServersConfig, Sharing, Spec, ToolPinStore, Transport,
};
use gander_models::{Finish, Model, ModelError, ModelEvent, ModelInfo, ModelStop, ModelStream, Request, Tokens};
use gander_testkit::mcp::command;
use gander_tools::sandbox::{Network, Sandbox};
use gander_tools::{Environment, Limits, Redactor, ToolEvent};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// A session with servers, and a run that listens to them.
pub struct TestServer {
    pub servers: Servers,
    pub events: mpsc::Receiver<ServerEvent>,
    pub folder: tempfile::TempDir,
    pub _attendance: ListenGuard,
}

/// A scripted server of this temper.
pub fn spec(name: &str, temper: &str) -> Spec {
    let (program, args, mut env) = command("server", temper);
    env.push(("SECRET".to_owned(), "hush-hush-hush".to_owned()));
    let transport = Transport::Stdio { command: program.into(), args, env };
    Spec::new(name.to_owned(), transport)
}

pub fn circumstances(folder: &Path, pins: Arc<dyn ToolPinStore>) -> ServersConfig {
    ServersConfig {
        workspace: folder.to_owned(),
        folders: Vec::new(),
        environment: Environment::default(),
        sandbox: Sandbox::default(),
        network: Network::Closed,
        networks: Arc::new(MemoryNetworkGrantStore::default()),
        limits: Limits::default(),
        redactor: Redactor::default(),
        pins,
        keyring: Keyring::default(),
        homes: None,
        sharing: Sharing::default(),
        start: Duration::from_secs(30),
        idle: Duration::from_secs(600),
    }
}

/// A run that listens here.
pub fn audience(events: mpsc::Sender<ServerEvent>) -> RunListener {
    RunListener { events, model: Arc::new(Parrot { info: info() }) }
}

impl TestServer {
    pub async fn with(specs: Vec<Spec>) -> Self {
        Self::pinned(specs, Arc::new(MemoryToolPinStore::default())).await
    }

    pub async fn pinned(specs: Vec<Spec>, pins: Arc<dyn ToolPinStore>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let circumstances = circumstances(folder.path(), pins);
        Self { folder, ..Self::within(specs, circumstances).await }
    }

    /// A session in these circumstances.
    pub async fn within(specs: Vec<Spec>, circumstances: ServersConfig) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let servers = Servers::new(specs, circumstances);
        servers.wait_until_settled().await;
        let (tell, events) = mpsc::channel(64);
        let attendance = servers.listen_for_run(audience(tell));
        Self { servers, events, folder, _attendance: attendance }
    }

    pub async fn good() -> Self {
        Self::with(vec![spec("script", "good")]).await
    }

    pub fn described(&self, name: &str, arguments: Value) -> ToolCall {
        let id = ToolCallId::new(Uuid::from_u128(1));
        self.servers.describe_call(id, name, &arguments).expect("there is such a tool").expect("its arguments fit")
    }

    /// Calls a tool, and tells what it showed meanwhile.
    pub async fn call(&self, name: &str, arguments: Value) -> (ToolResult, Vec<ToolEvent>) {
        let call = self.described(name, arguments);
        let (signals, mut heard) = mpsc::channel(64);
        let result =
            self.servers.call_tool(&call, signals, CancellationToken::new()).await.expect("there is such a tool");
        let mut shown = Vec::new();
        while let Ok(signal) = heard.try_recv() {
            shown.push(signal);
        }
        (result, shown)
    }

    pub async fn text(&self, name: &str, arguments: Value) -> String {
        text(&self.call(name, arguments).await.0)
    }

    pub fn tools(&self) -> Vec<String> {
        self.servers.listed_tools().into_iter().map(|tool| tool.spec.name).collect()
    }

    /// The next events that are no change of tools.
    pub async fn said(&mut self) -> ServerEvent {
        loop {
            match self.events.recv().await.expect("the servers live") {
                ServerEvent::Tools => {}
                other @ (ServerEvent::Notice(_) | ServerEvent::Asked { .. } | ServerEvent::Spent(_)) => return other,
            }
        }
    }

    /// Until the tools changed.
    pub async fn tools_changed(&mut self) {
        while !matches!(self.events.recv().await.expect("the servers live"), ServerEvent::Tools) {}
    }
}

pub fn text(result: &ToolResult) -> String {
    let parts = result.content.iter().map(|content| {
        let ToolContent::Part { part: Part::Text { text } } = content else { return format!("{content:?}") };
        text.clone()
    });
    parts.collect::<Vec<_>>().join("\n")
}

/// A model that says one word.
struct Parrot {
    info: ModelInfo,
}

#[async_trait::async_trait]
impl Model for Parrot {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    async fn stream(&self, request: Request) -> Result<ModelStream, ModelError> {
        assert_eq!(request.messages.last().map(|message| message.plain_text()).as_deref(), Some("Say a word"));
        let usage = Tokens { input: 3, output: 1, ..Tokens::default() };
        let said = ModelEvent::Delta(Delta { growth: DeltaKind::Text, text: "Polly".into() });
        let done = ModelEvent::Done(Finish { stop: ModelStop::EndTurn, usage, native: None });
        Ok(ModelStream::new(futures::stream::iter([Ok(vec![said, done])]).boxed()))
    }
}

fn info() -> ModelInfo {
    ModelInfo {
        provider: "test".into(),
        model: "parrot".into(),
        window: None,
        max_output: None,
        images: false,
        audio: false,
        thinking: false,
        price: None,
        scripted: false,
    }
}
