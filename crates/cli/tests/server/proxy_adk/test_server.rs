//! The proxy in this process, and an ADK client.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use gander::config::{ProxyFlags, RemoteKind, with_proxy_flags};
use gander_gateway::server::router;
use gander_testkit::goosed::Goosed;
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use crate::served::{self, Served};

pub struct Proxy(Served);

/// A stream that is being read.
pub struct Stream {
    body: std::pin::Pin<Box<dyn futures::Stream<Item = reqwest::Result<bytes::Bytes>> + Send>>,
    text: String,
}

impl Proxy {
    pub async fn open(goose: &Goosed, variables: &[(&str, &str)]) -> Self {
        Self::within(goose, variables, Arc::new(tempfile::tempdir().unwrap())).await
    }

    /// Another process over the same data.
    pub async fn restart(self, goose: &Goosed) -> Self {
        let root = self.0.end().await;
        Self::within(goose, &[], root).await
    }

    async fn within(goose: &Goosed, variables: &[(&str, &str)], root: Arc<tempfile::TempDir>) -> Self {
        let url = goose.url();
        let fixed = [
            ("GOOSE_BASE_URL", url.as_str()),
            ("GOOSE_SECRET_KEY", "hush"),
            ("WORKING_DIR", "/srv/goose"),
            ("REQUEST_TIMEOUT", "30s"),
        ];
        let (config, environment) = served::settings(root.path(), &[&fixed, variables].concat());
        let mut config = with_proxy_flags(config, ProxyFlags::default(), &environment).unwrap();
        let RemoteKind::Goosed(remote) = &mut config.agents[0].kind else { panic!("it is a goosed") };
        remote.pause = Duration::from_millis(5);
        Self(Served::of(root, config, router).await)
    }

    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.0.client.request(method, self.0.url(path))
    }

    pub async fn send(&self, method: Method, path: &str, body: Option<Value>) -> (u16, Value) {
        let request = self.request(method, path);
        let request = match body {
            Some(body) => request.json(&body),
            None => request,
        };
        let response = request.send().await.unwrap();
        let status = response.status().as_u16();
        let text = response.text().await.unwrap();
        (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
    }

    pub async fn get(&self, path: &str) -> (u16, Value) {
        self.send(Method::GET, path, None).await
    }

    pub async fn session(&self, name: &str) -> Value {
        let path = format!("/apps/any_app/users/anna/sessions/{name}");
        let (status, session) = self.send(Method::POST, &path, Some(json!({}))).await;
        assert_eq!(status, 200, "{session}");
        session
    }

    pub async fn open_stream(&self, session: &str, parts: Value) -> Stream {
        self.stream_with(session, parts, json!({})).await
    }

    async fn stream_with(&self, session: &str, parts: Value, more: Value) -> Stream {
        let mut body = json!({
            "appName": "any_app", "userId": "anna", "sessionId": session, "streaming": true,
            "newMessage": {"role": "user", "parts": parts},
        });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let response = self.request(Method::POST, "/run_sse").json(&body).send().await.unwrap();
        assert_eq!(response.status(), 200);
        Stream { body: Box::pin(response.bytes_stream()), text: String::new() }
    }

    pub async fn run_sse(&self, session: &str, parts: Value) -> Vec<Value> {
        self.run_with(session, parts, json!({})).await
    }

    pub async fn run_with(&self, session: &str, parts: Value, more: Value) -> Vec<Value> {
        let mut stream = self.stream_with(session, parts, more).await;
        while stream.read().await {}
        let data = stream.text.lines().filter_map(|line| line.strip_prefix("data: "));
        data.map(|data| serde_json::from_str(data).unwrap()).collect()
    }
}

impl Stream {
    async fn read(&mut self) -> bool {
        let piece =
            tokio::time::timeout(Duration::from_secs(60), self.body.next()).await.expect("no word for a minute");
        match piece {
            Some(Ok(piece)) => {
                self.text.push_str(std::str::from_utf8(&piece).unwrap());
                true
            }
            Some(Err(_)) | None => false,
        }
    }

    /// Reads until this was said.
    pub async fn until(&mut self, wanted: &str) {
        while !self.text.contains(wanted) {
            assert!(self.read().await, "the stream ended: {}", self.text);
        }
    }
}

fn parts(event: &Value) -> impl Iterator<Item = &Value> {
    event["content"]["parts"].as_array().into_iter().flatten()
}

/// The words of whole events.
pub fn text(events: &[Value]) -> String {
    let whole = events.iter().filter(|event| event["partial"] != true);
    whole.flat_map(parts).filter_map(|part| part["text"].as_str()).collect()
}

/// Calls or answers of functions, in whole events.
pub fn functions(events: &[Value], kind: &str) -> Vec<Value> {
    let whole = events.iter().filter(|event| event["partial"] != true);
    whole.flat_map(parts).filter_map(|part| part.get(kind).filter(|value| !value.is_null()).cloned()).collect()
}

/// What went wrong, in words.
pub fn errors(events: &[Value]) -> String {
    let texts = events.iter().flat_map(|event| [&event["errorMessage"], &event["error"]]);
    texts.filter_map(Value::as_str).collect::<Vec<_>>().join(" | ")
}
