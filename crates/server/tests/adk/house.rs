//! A server in this process with agents of known behaviour, and a client for it.

use std::net::SocketAddr;
use std::sync::Arc;

use gander_server::app::App;
use gander_server::config::{Config, Environment, Flags};
use gander_server::http::{ROUTES, Site, router, serve};
use gander_server::token::{self, Tokens};
use secrecy::ExposeSecret;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};

pub struct House {
    pub address: SocketAddr,
    pub token: String,
    client: reqwest::Client,
    _stop: DropGuard,
    _root: tempfile::TempDir,
}

/// Status, body and headers of an answer.
pub struct Answer {
    pub status: u16,
    pub text: String,
    pub headers: reqwest::header::HeaderMap,
}

impl House {
    pub async fn open() -> Self {
        Self::with(&[]).await
    }

    pub async fn with(variables: &[(&str, &str)]) -> Self {
        Self::at(tempfile::tempdir().unwrap(), variables).await
    }

    async fn at(root: tempfile::TempDir, variables: &[(&str, &str)]) -> Self {
        let mut all = vec![
            ("HOME".to_owned(), root.path().display().to_string()),
            ("GANDER_MODEL".to_owned(), "demo/demo".to_owned()),
            ("GANDER_SERVER_CONFORMANCE_AGENTS".to_owned(), "true".to_owned()),
            ("GANDER_LIMITS_REQUESTS_PER_SECOND".to_owned(), "100000".to_owned()),
            ("GANDER_LIMITS_REQUEST_BURST".to_owned(), "100000".to_owned()),
        ];
        all.extend(variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        let flags = Flags { data: Some(root.path().join("data")), ..Flags::default() };
        let config = Config::load(&flags, &Environment::from_pairs(all)).unwrap();
        config.paths.create().unwrap();
        let token = token::owner_token(&config.paths).unwrap().expose_secret().to_owned();
        let app = App::start(config.clone()).await.unwrap();
        let site = Site::new(Arc::clone(&app), &config, Tokens::open(&config.paths).unwrap());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let stop = CancellationToken::new();
        tokio::spawn(serve(listener, site.clone(), router(ROUTES, &site), stop.clone()));
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        Self { address, token, client, _stop: stop.drop_guard(), _root: root }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.send(self.client.get(self.url(path)).bearer_auth(&self.token)).await
    }

    pub async fn get_with(&self, path: &str, headers: &[(&str, &str)]) -> Answer {
        let request = self.client.get(self.url(path)).bearer_auth(&self.token);
        self.send(headers.iter().fold(request, |request, (name, value)| request.header(*name, *value))).await
    }

    /// Without saying of what type the body is.
    pub async fn post(&self, path: &str, body: &Value) -> Answer {
        self.send(self.client.post(self.url(path)).bearer_auth(&self.token).body(body.to_string())).await
    }

    pub async fn post_with(&self, path: &str, body: &Value, headers: &[(&str, &str)]) -> Answer {
        let request = self.client.post(self.url(path)).bearer_auth(&self.token).body(body.to_string());
        self.send(headers.iter().fold(request, |request, (name, value)| request.header(*name, *value))).await
    }

    async fn send(&self, request: reqwest::RequestBuilder) -> Answer {
        let response = request.send().await.unwrap();
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        Answer { status, text: response.text().await.unwrap(), headers }
    }

    pub async fn run(&self, agent: &str, text: &str) -> Value {
        self.post("/runs", &new(agent, text, "sync")).await.ok()
    }
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|_| panic!("no JSON: {} {}", self.status, self.text))
    }

    /// The body of a request that went well.
    pub fn ok(&self) -> Value {
        assert!(self.status < 300, "{} {}", self.status, self.text);
        self.json()
    }
}

pub fn new(agent: &str, text: &str, mode: &str) -> Value {
    json!({ "agent_name": agent, "mode": mode, "input": [{ "role": "user", "parts": [{ "content": text }] }] })
}

pub fn said(run: &Value) -> Vec<String> {
    let parts = |message: &Value| {
        let parts = message["parts"].as_array().unwrap().iter();
        parts.filter_map(|part| part["content"].as_str()).collect::<String>()
    };
    run["output"].as_array().unwrap().iter().map(parts).collect()
}
