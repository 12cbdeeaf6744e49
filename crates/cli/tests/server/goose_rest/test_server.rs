//! A server in this process, and a client that speaks goose's REST to it.

use futures::StreamExt;
use gander_domain::caller::Scope;
use gander_services::token;
use reqwest::{Method, RequestBuilder};
use secrecy::ExposeSecret;
use serde_json::{Value, json};

crate::served::test_server!();

/// A stream of events that is read piece by piece.
pub struct Events {
    body: std::pin::Pin<Box<dyn futures::Stream<Item = reqwest::Result<bytes::Bytes>> + Send>>,
    text: String,
}

impl TestServer {
    /// A token of somebody else.
    pub fn other(&self, scopes: &[Scope]) -> String {
        token::add_token(&self.config.paths, "anna", scopes, None).unwrap().expose_secret().to_owned()
    }

    /// The folder to work in, as a text.
    pub fn work(&self) -> String {
        self.0.work().to_str().unwrap().to_owned()
    }

    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.client.request(method, self.url(path)).header("x-secret-key", &self.token)
    }

    pub async fn get(&self, path: &str) -> (u16, Value) {
        answer(self.request(Method::GET, path)).await
    }

    pub async fn post(&self, path: &str, body: Value) -> (u16, Value) {
        answer(self.request(Method::POST, path).json(&body)).await
    }

    pub async fn put(&self, path: &str, body: Value) -> (u16, Value) {
        answer(self.request(Method::PUT, path).json(&body)).await
    }

    pub async fn delete(&self, path: &str) -> (u16, Value) {
        answer(self.request(Method::DELETE, path)).await
    }

    /// What must succeed.
    pub async fn ok(&self, path: &str, body: Value) -> Value {
        let (status, value) = self.post(path, body).await;
        assert_eq!(status, 200, "{path}: {value}");
        value
    }

    pub async fn start(&self) -> String {
        let session = self.ok("/agent/start", json!({"working_dir": self.work()})).await;
        session["id"].as_str().unwrap().to_owned()
    }

    /// `/reply` to its end, without the signs of life.
    pub async fn reply(&self, body: Value) -> Vec<Value> {
        self.listen("/reply", body).await.rest().await
    }

    pub async fn listen(&self, path: &str, body: Value) -> Events {
        let response = self.request(Method::POST, path).json(&body).send().await.unwrap();
        assert_eq!(response.status(), 200, "{path}");
        Events::of(response)
    }

    pub async fn conversation(&self, session: &str) -> Vec<Value> {
        let (_, text) = self.get(&format!("/sessions/{session}/export")).await;
        let file: Value = serde_json::from_str(text.as_str().unwrap()).unwrap();
        file["conversation"].as_array().unwrap().clone()
    }
}

impl Events {
    pub fn of(response: reqwest::Response) -> Self {
        Self { body: Box::pin(response.bytes_stream()), text: String::new() }
    }

    /// The next frame, whole.
    pub async fn frame(&mut self) -> Option<String> {
        loop {
            if let Some((frame, rest)) = self.text.split_once("\n\n") {
                let (frame, rest) = (frame.to_owned(), rest.to_owned());
                self.text = rest;
                return Some(frame);
            }
            let piece = tokio::time::timeout(std::time::Duration::from_secs(30), self.body.next()).await.unwrap()?;
            self.text.push_str(std::str::from_utf8(&piece.ok()?).unwrap());
        }
    }

    /// The next event that is no sign of life.
    pub async fn event(&mut self) -> Option<Value> {
        loop {
            let frame = self.frame().await?;
            let Some(data) = frame.lines().find_map(|line| line.strip_prefix("data: ")) else { continue };
            let event: Value = serde_json::from_str(data).unwrap();
            if event["type"] != "Ping" {
                return Some(event);
            }
        }
    }

    pub async fn until(&mut self, wanted: impl Fn(&Value) -> bool) -> Value {
        loop {
            let event = self.event().await.expect("the stream ended");
            if wanted(&event) {
                return event;
            }
        }
    }

    pub async fn rest(mut self) -> Vec<Value> {
        let mut events = Vec::new();
        while let Some(event) = self.event().await {
            events.push(event);
        }
        events
    }
}

/// A message that makes the demo model play this.
pub fn message(calls: Value) -> Value {
    said(&format!("[[script:{calls}]]"))
}

pub fn said(text: &str) -> Value {
    json!({
        "role": "user", "created": 1, "content": [{"type": "text", "text": text}],
        "metadata": {"userVisible": true, "agentVisible": true},
    })
}

/// All the text that the agent said.
pub fn text(events: &[Value]) -> String {
    let messages = events.iter().map(|event| &event["message"]).filter(|message| message["role"] == "assistant");
    let pieces = messages.flat_map(|message| message["content"].as_array().unwrap().iter());
    pieces.filter_map(|piece| piece["text"].as_str()).collect()
}

pub fn kinds(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["type"].as_str().unwrap()).collect()
}

async fn answer(request: RequestBuilder) -> (u16, Value) {
    let response = request.send().await.unwrap();
    let status = response.status().as_u16();
    let text = response.text().await.unwrap();
    (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
}
