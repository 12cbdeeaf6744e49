//! What a server answered, and runs of the Agent Communication Protocol.

use serde_json::{Value, json};

/// Status, body and headers of an answer.
pub struct Answer {
    pub status: u16,
    pub text: String,
    pub headers: reqwest::header::HeaderMap,
}

impl Answer {
    pub async fn of(response: reqwest::Response) -> Self {
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        Self { status, text: response.text().await.unwrap(), headers }
    }

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

/// A run to be begun.
pub fn new(agent: &str, text: &str, mode: &str) -> Value {
    json!({ "agent_name": agent, "mode": mode, "input": [{ "role": "user", "parts": [{ "content": text }] }] })
}

/// What a run said, one text per message.
pub fn said(run: &Value) -> Vec<String> {
    let parts = |message: &Value| {
        let parts = message["parts"].as_array().unwrap().iter();
        parts.filter_map(|part| part["content"].as_str()).collect::<String>()
    };
    run["output"].as_array().unwrap().iter().map(parts).collect()
}
