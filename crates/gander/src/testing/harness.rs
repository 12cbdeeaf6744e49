//! The server of a test, with its agents.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::response::Response;
use gander_client::{Client, Link, schema::Implementation};
use gander_domain::caller::Caller;
use gander_gateway::ClientPeer;
use gander_services::token::{Tokens, owner_token};
use http::{HeaderValue, Method, Request, StatusCode, header};
use secrecy::ExposeSecret as _;
use serde_json::Value;
use tempfile::TempDir;
use tower::ServiceExt as _;

use super::test_client::TestClient;
use super::{TestError, TestSession};
use crate::agent::Agent;
use crate::app::{App, AppBuilder};
use crate::config::{Config, Environment, Flags};

/// What a client says in one go.
const PIPE_BYTES: usize = 256 * 1024;

/// A larger response is no test's.
const MAX_RESPONSE_BYTES: usize = 64 << 20;

/// A server with the agents of a test.
pub struct Harness {
    app: Arc<App>,
    router: Router,
    token: String,
    folder: Arc<TempDir>,
}

impl Harness {
    /// Starts a server with this agent alone.
    pub async fn start(agent: Agent) -> Result<Self, TestError> {
        Self::start_with(|config| agent.into_app(config)).await
    }

    /// Starts a server that this function builds: several agents, own routes, own store.
    pub async fn start_with(build: impl FnOnce(Config) -> AppBuilder) -> Result<Self, TestError> {
        let folder = tempfile::tempdir().map_err(harness_start_error)?;
        Self::start_in(Arc::new(folder), build).await
    }

    /// Stops the server without giving running turns any time, and starts another one on the same data: what the agent
    /// was doing is interrupted, as by `kill`.
    pub async fn restart(self, agent: Agent) -> Result<Self, TestError> {
        self.app.drain().await;
        let folder = Arc::clone(&self.folder);
        drop(self);
        Self::start_in(folder, |config| agent.into_app(config)).await
    }

    async fn start_in(folder: Arc<TempDir>, build: impl FnOnce(Config) -> AppBuilder) -> Result<Self, TestError> {
        let (data, file) = (folder.path().join("data"), folder.path().join("gander.toml"));
        for folder in [&data, &folder.path().join("work")] {
            std::fs::create_dir_all(folder).map_err(harness_start_error)?;
        }
        std::fs::write(&file, "").map_err(harness_start_error)?;
        let flags = Flags { config: Some(file), data: Some(data), values: Vec::new() };
        let config = Config::load(&flags, &Environment::default()).map_err(harness_start_error)?;
        let config = Config { grace: Duration::ZERO, ..config };
        config.paths.create_folders().map_err(harness_start_error)?;
        let app = build(config.clone()).start().await.map_err(|error| TestError::Start(format!("{error:#}")))?;
        let gateway = app.gateway(&config, Tokens::open(&config.paths).map_err(harness_start_error)?);
        let router = app.router(&gateway).map_err(harness_start_error)?;
        let token = owner_token(&config.paths).map_err(harness_start_error)?.expose_secret().to_owned();
        Ok(Self { app, router, token, folder })
    }

    /// A session of its own client, as an editor makes one.
    pub async fn new_session(&self) -> Result<TestSession, TestError> {
        let (client, recorder) = self.connect().await?;
        let id = client.new_session(self.folder.path().join("work")).await?.session_id;
        Ok(TestSession::new(client, recorder, id))
    }

    /// A session of before, loaded by a new client.
    pub async fn load_session(&self, id: &str) -> Result<TestSession, TestError> {
        let (client, recorder) = self.connect().await?;
        recorder.leave_permissions_open();
        client.load_session(id.to_owned(), self.folder.path().join("work")).await?;
        Ok(TestSession::new(client, recorder, id.to_owned().into()))
    }

    async fn connect(&self) -> Result<(Client, Arc<TestClient>), TestError> {
        let (ours, theirs) = tokio::io::duplex(PIPE_BYTES);
        let app = Arc::clone(&self.app);
        tokio::spawn(async move {
            let (reader, writer) = tokio::io::split(theirs);
            app.serve_acp(reader, writer, ClientPeer::new(Caller::local_owner())).await;
        });
        let (reader, writer) = tokio::io::split(ours);
        let recorder = Arc::new(TestClient::default());
        let handler = Arc::clone(&recorder) as Arc<dyn gander_client::Handler>;
        let who = Implementation::new("gander-testing", crate::VERSION);
        Ok((Client::connect(Link::from_line_streams(reader, writer), who, handler).await?, recorder))
    }

    /// What the server answers to this request. It brings the owner's token unless it brings another credential.
    pub async fn request(&self, mut request: Request<Body>) -> Response {
        let headers = request.headers_mut();
        headers.entry(header::HOST).or_insert(HeaderValue::from_static("localhost"));
        if let Ok(token) = HeaderValue::from_str(&format!("Bearer {}", self.token)) {
            headers.entry(header::AUTHORIZATION).or_insert(token);
        }
        match self.router.clone().oneshot(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        }
    }

    /// A GET, and its answer as JSON.
    pub async fn get(&self, path: &str) -> Result<(StatusCode, Value), TestError> {
        self.call(Method::GET, path, Body::empty()).await
    }

    /// A POST of JSON, and its answer as JSON.
    pub async fn post(&self, path: &str, body: &Value) -> Result<(StatusCode, Value), TestError> {
        self.call(Method::POST, path, Body::from(body.to_string())).await
    }

    async fn call(&self, method: Method, path: &str, body: Body) -> Result<(StatusCode, Value), TestError> {
        let request = Request::builder().method(method).uri(path).header(header::CONTENT_TYPE, "application/json");
        let request = request.body(body).map_err(|error| TestError::Response(error.to_string()))?;
        let response = self.request(request).await;
        let status = response.status();
        let bytes = axum::body::to_bytes(response.into_body(), MAX_RESPONSE_BYTES).await;
        let bytes = bytes.map_err(|error| TestError::Response(error.to_string()))?;
        let text = String::from_utf8_lossy(&bytes);
        Ok((status, serde_json::from_str(&text).unwrap_or_else(|_| Value::String(text.into_owned()))))
    }

    /// The owner's token.
    pub fn token(&self) -> &str {
        &self.token
    }

    /// The application under test.
    pub fn app(&self) -> &Arc<App> {
        &self.app
    }
}

impl fmt::Debug for Harness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Harness").field("folder", &self.folder.path()).finish_non_exhaustive()
    }
}

fn harness_start_error(error: impl fmt::Display) -> TestError {
    TestError::Start(error.to_string())
}
