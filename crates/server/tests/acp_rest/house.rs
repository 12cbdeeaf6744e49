//! A server in this process with agents of known behaviour, and a client for it.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use gander_server::app::App;
use gander_server::config::{Config, Environment, Flags};
use gander_server::http::{ROUTES, Site, router, serve};
use gander_server::token::{self, Tokens};
use gander_testkit::conformance::Witness;
use secrecy::ExposeSecret;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::witness;

pub struct House {
    pub address: SocketAddr,
    pub config: Config,
    pub token: String,
    client: reqwest::Client,
    witness: Mutex<Witness>,
    _stop: DropGuard,
    root: tempfile::TempDir,
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
        let witness = Mutex::new(Witness::of("acp_rest"));
        Self { address, config, token, client, witness, _stop: stop.drop_guard(), root }
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

    /// As the Python SDK does it: without saying of what type the body is.
    pub async fn post(&self, path: &str, body: &Value) -> Answer {
        self.send(self.client.post(self.url(path)).bearer_auth(&self.token).body(body.to_string())).await
    }

    pub async fn post_with(&self, path: &str, body: &Value, headers: &[(&str, &str)]) -> Answer {
        let request = self.client.post(self.url(path)).bearer_auth(&self.token).body(body.to_string());
        self.send(headers.iter().fold(request, |request, (name, value)| request.header(*name, *value))).await
    }

    /// Any bytes that claim to be of this type.
    pub async fn post_bytes(&self, path: &str, kind: &str, body: Vec<u8>) -> Answer {
        let request = self.client.post(self.url(path)).bearer_auth(&self.token).header("content-type", kind);
        self.send(request.body(body)).await
    }

    async fn send(&self, request: reqwest::RequestBuilder) -> Answer {
        let request = request.build().unwrap();
        let (method, path) = (request.method().to_string(), request.url().path().to_owned());
        let body = request.body().and_then(|body| serde_json::from_slice::<Value>(body.as_bytes()?).ok());
        let response = self.client.execute(request).await.unwrap();
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let text = response.text().await.unwrap();
        let mut witness = self.witness.lock().unwrap();
        witness::heard(&mut witness, &method, &path, status, &text);
        if let Some(mode) = body.as_ref().and_then(|body| body["mode"].as_str()).filter(|_| status < 300) {
            witness.shows("mode", mode, "HTTP");
        }
        Answer { status, text, headers }
    }

    pub async fn run(&self, agent: &str, text: &str) -> Value {
        self.post("/runs", &new(agent, text, "sync")).await.ok()
    }

    /// Asks until the run is in this state.
    pub async fn until(&self, run: &Value, status: &str) -> Value {
        let path = format!("/runs/{}", run["run_id"].as_str().unwrap());
        loop {
            let now = self.get(&path).await.ok();
            if now["status"] == status {
                return now;
            }
            tokio::task::yield_now().await;
        }
    }

    /// The path of a run.
    pub fn path(run: &Value, more: &str) -> String {
        format!("/runs/{}{more}", run["run_id"].as_str().unwrap())
    }

    #[allow(dead_code)]
    pub fn root(&self) -> &std::path::Path {
        self.root.path()
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

    /// Status and code of one that did not.
    pub fn error(&self) -> (u16, String) {
        (self.status, self.json()["code"].as_str().unwrap_or_default().to_owned())
    }

    /// Ids and data of a stream.
    pub fn events(&self) -> Vec<(String, Value)> {
        assert_eq!(self.headers["content-type"], "text/event-stream; charset=utf-8", "{}", self.text);
        let event = |text: &str| {
            let (id, data) = text.strip_prefix("id: ").unwrap().split_once("\ndata: ").unwrap();
            (id.to_owned(), serde_json::from_str(data).unwrap())
        };
        self.text.split("\n\n").filter(|text| !text.is_empty() && !text.starts_with(':')).map(event).collect()
    }

    pub fn kinds(&self) -> Vec<String> {
        self.events().iter().map(|(_, event)| event["type"].as_str().unwrap().to_owned()).collect()
    }
}

pub fn new(agent: &str, text: &str, mode: &str) -> Value {
    json!({ "agent_name": agent, "mode": mode, "input": [{ "role": "user", "parts": [{ "content": text }] }] })
}

pub fn resume(text: &str, mode: &str) -> Value {
    let message = json!({ "role": "user", "parts": [{ "content": text }], "created_at": null });
    json!({ "mode": mode, "await_resume": { "type": "message", "message": message } })
}

pub fn said(run: &Value) -> Vec<String> {
    let parts = |message: &Value| {
        let parts = message["parts"].as_array().unwrap().iter();
        parts.filter_map(|part| part["content"].as_str()).collect::<String>()
    };
    run["output"].as_array().unwrap().iter().map(parts).collect()
}
