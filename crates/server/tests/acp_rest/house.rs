//! A server with agents of known behaviour, a client for it, and a witness of everything that it answers.

use std::ops::Deref;
use std::sync::Mutex;

use gander_testkit::conformance::Witness;
use serde_json::{Value, json};

use crate::served::Served;
pub use crate::served::answer::{Answer, new, said};
use crate::witness;

pub struct House {
    served: Served,
    client: reqwest::Client,
    witness: Mutex<Witness>,
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
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        Self { served, client, witness: Mutex::new(Witness::of("acp_rest")) }
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.get_with(path, &[]).await
    }

    pub async fn get_with(&self, path: &str, headers: &[(&str, &str)]) -> Answer {
        self.send(self.client.get(self.url(path)), headers).await
    }

    /// As the Python SDK does it: without saying of what type the body is.
    pub async fn post(&self, path: &str, body: &Value) -> Answer {
        self.post_with(path, body, &[]).await
    }

    pub async fn post_with(&self, path: &str, body: &Value, headers: &[(&str, &str)]) -> Answer {
        self.send(self.client.post(self.url(path)).body(body.to_string()), headers).await
    }

    /// Any bytes that claim to be of this type.
    pub async fn post_bytes(&self, path: &str, kind: &str, body: Vec<u8>) -> Answer {
        self.send(self.client.post(self.url(path)).body(body), &[("content-type", kind)]).await
    }

    async fn send(&self, request: reqwest::RequestBuilder, headers: &[(&str, &str)]) -> Answer {
        let request = request.bearer_auth(&self.token);
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        let request = request.build().unwrap();
        let (method, path) = (request.method().to_string(), request.url().path().to_owned());
        let body = request.body().and_then(|body| serde_json::from_slice::<Value>(body.as_bytes()?).ok());
        let answer = Answer::of(self.client.execute(request).await.unwrap()).await;
        let mut witness = self.witness.lock().unwrap();
        witness::heard(&mut witness, &method, &path, answer.status, &answer.text);
        if let Some(mode) = body.as_ref().and_then(|body| body["mode"].as_str()).filter(|_| answer.status < 300) {
            witness.shows("mode", mode, "HTTP");
        }
        answer
    }

    pub async fn run(&self, agent: &str, text: &str) -> Value {
        self.post("/runs", &new(agent, text, "sync")).await.ok()
    }

    /// Asks until the run is in this state.
    pub async fn until(&self, run: &Value, status: &str) -> Value {
        let path = Self::path(run, "");
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
}

pub fn resume(text: &str, mode: &str) -> Value {
    let message = json!({ "role": "user", "parts": [{ "content": text }], "created_at": null });
    json!({ "mode": mode, "await_resume": { "type": "message", "message": message } })
}
