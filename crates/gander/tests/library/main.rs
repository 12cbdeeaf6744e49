//! The library as an agent's author uses it: handlers, capabilities, examples, processes.
#![allow(clippy::unwrap_used)]

mod capabilities;
mod durability;
mod embedding;
mod examples;
mod handlers;
mod processes;

use gander::axum::body::{Body, to_bytes};
use gander::testing::Harness;
use http::{Request, header};
use serde_json::{Value, json};

/// What an A2A 1.0 client gets for a message of these parts.
async fn send_a2a(harness: &Harness, agent: &str, parts: Value) -> Value {
    let message = json!({ "message": { "role": "ROLE_USER", "messageId": "m1", "parts": parts } });
    let request = Request::post(format!("/a2a/{agent}/message:send"))
        .header(header::CONTENT_TYPE, "application/json")
        .header("A2A-Version", "1.0")
        .body(Body::from(message.to_string()));
    let response = harness.request(request.unwrap()).await;
    let status = response.status();
    let body: Value = serde_json::from_slice(&to_bytes(response.into_body(), 1 << 20).await.unwrap()).unwrap();
    assert_eq!(status.as_u16(), 200, "{body}");
    body
}
