//! Requests to a server of this process, by its owner.

use serde_json::Value;

use super::Served;
use super::answer::{Answer, new};

impl Served {
    pub async fn get(&self, path: &str) -> Answer {
        self.get_with(path, &[]).await
    }

    pub async fn get_with(&self, path: &str, headers: &[(&str, &str)]) -> Answer {
        self.ask(self.client.get(self.url(path)), headers).await
    }

    /// As the Python SDKs do it: without saying of what type the body is.
    pub async fn post(&self, path: &str, body: &Value) -> Answer {
        self.post_with(path, body, &[]).await
    }

    pub async fn post_with(&self, path: &str, body: &Value, headers: &[(&str, &str)]) -> Answer {
        self.ask(self.client.post(self.url(path)).body(body.to_string()), headers).await
    }

    /// Any bytes that claim to be of this type.
    pub async fn post_bytes(&self, path: &str, kind: &str, body: Vec<u8>) -> Answer {
        self.ask(self.client.post(self.url(path)).body(body), &[("content-type", kind)]).await
    }

    /// A run of the Agent Communication Protocol, to its end.
    pub async fn run(&self, agent: &str, text: &str) -> Value {
        self.post("/runs", &new(agent, text, "sync")).await.ok()
    }

    async fn ask(&self, request: reqwest::RequestBuilder, headers: &[(&str, &str)]) -> Answer {
        let request = request.bearer_auth(&self.token);
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        let request = request.build().unwrap();
        let asked = request.try_clone().unwrap();
        let answer = Answer::of(self.client.execute(request).await.unwrap()).await;
        (self.heard)(&asked, &answer);
        answer
    }
}
