//! A server with agents of known behaviour, and a client for it.

use std::ops::Deref;

use serde_json::Value;

use crate::served::Served;
pub use crate::served::answer::{Answer, new, said};

pub struct House {
    served: Served,
    client: reqwest::Client,
}

impl Deref for House {
    type Target = Served;

    fn deref(&self) -> &Served {
        &self.served
    }
}

impl House {
    pub async fn open() -> Self {
        Self::with(&[]).await
    }

    pub async fn with(variables: &[(&str, &str)]) -> Self {
        let served = Served::with(&[("GANDER_SERVER_CONFORMANCE_AGENTS", "true")], variables).await;
        Self { served, client: reqwest::Client::builder().no_proxy().build().unwrap() }
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.get_with(path, &[]).await
    }

    pub async fn get_with(&self, path: &str, headers: &[(&str, &str)]) -> Answer {
        self.send(self.client.get(self.url(path)), headers).await
    }

    /// Without saying of what type the body is.
    pub async fn post(&self, path: &str, body: &Value) -> Answer {
        self.post_with(path, body, &[]).await
    }

    pub async fn post_with(&self, path: &str, body: &Value, headers: &[(&str, &str)]) -> Answer {
        self.send(self.client.post(self.url(path)).body(body.to_string()), headers).await
    }

    async fn send(&self, request: reqwest::RequestBuilder, headers: &[(&str, &str)]) -> Answer {
        let request = request.bearer_auth(&self.token);
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        Answer::of(request.send().await.unwrap()).await
    }

    pub async fn run(&self, agent: &str, text: &str) -> Value {
        self.post("/runs", &new(agent, text, "sync")).await.ok()
    }
}
