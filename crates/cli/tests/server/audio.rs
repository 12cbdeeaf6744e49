//! Sounds in prompts: taken where the model hears, refused in one place where it does not.

#![allow(clippy::unwrap_used)]

use std::sync::{Arc, Mutex};

use axum::extract::State;
use base64::Engine as _;
use gander_domain::Principal;
use gander_testkit::harness::Client;
use serde_json::{Value, json};

use crate::served::{Served, answer::Answer, pipe};

const SOUND: &[u8] = b"RIFF\x24\0\0\0WAVEfmt ";

/// A provider of models that hear, and what it was sent.
struct Provider {
    url: String,
    heard: Arc<Mutex<Vec<String>>>,
}

impl Provider {
    async fn start() -> Self {
        async fn answer(
            State(heard): State<Arc<Mutex<Vec<String>>>>,
            body: String,
        ) -> impl axum::response::IntoResponse {
            heard.lock().unwrap().push(body);
            let chunk = json!({ "id": "1", "object": "chat.completion.chunk", "choices": [
                { "index": 0, "delta": { "role": "assistant", "content": "I hear." }, "finish_reason": "stop" },
            ] });
            ([("content-type", "text/event-stream")], format!("data: {chunk}\n\ndata: [DONE]\n\n"))
        }
        let heard = Arc::new(Mutex::new(Vec::new()));
        let routes =
            axum::Router::new().route("/chat/completions", axum::routing::post(answer)).with_state(Arc::clone(&heard));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, routes).await });
        Self { url, heard }
    }

    /// The sounds that it was sent since it was asked last.
    fn take_sounds(&self) -> usize {
        let bodies = std::mem::take(&mut *self.heard.lock().unwrap());
        let sound = json!({ "type": "input_audio", "input_audio": { "data": data(), "format": "wav" } });
        bodies.iter().map(|body| body.matches(&sound.to_string()).count()).max().unwrap_or_default()
    }
}

fn data() -> String {
    base64::engine::general_purpose::STANDARD.encode(SOUND)
}

async fn post(server: &Served, path: &str, body: Value) -> Answer {
    let request = server.client.post(server.url(path)).bearer_auth(&server.token).header("A2A-Version", "1.0");
    Answer::of(request.json(&body).send().await.unwrap()).await
}

/// The same sound through every protocol over HTTP that has a form for sounds: names and answers.
async fn send_everywhere(server: &Served) -> Vec<(&'static str, Answer)> {
    let part = json!({ "content_type": "audio/wav", "content": data(), "content_encoding": "base64" });
    let run = json!({ "agent_name": "gander", "mode": "sync", "input": [{ "role": "user", "parts": [part] }] });
    let part = json!({ "raw": data(), "mediaType": "audio/wav" });
    let message = json!({ "messageId": "m1", "role": "ROLE_USER", "parts": [part] });
    post(server, "/apps/gander/users/user/sessions/s1", json!({})).await.ok();
    let parts = json!([{ "inlineData": { "mimeType": "audio/wav", "data": data() } }]);
    let adk = json!({ "appName": "gander", "userId": "user", "sessionId": "s1", "newMessage": { "role": "user", "parts": parts } });
    vec![
        ("acp_rest", post(server, "/runs", run).await),
        ("a2a", post(server, "/a2a/message:send", json!({ "message": message })).await),
        ("adk", post(server, "/run", adk).await),
    ]
}

async fn content_types(server: &Served) -> String {
    let request = server.client.get(server.url("/agents/gander")).bearer_auth(&server.token);
    Answer::of(request.send().await.unwrap()).await.ok()["input_content_types"].to_string()
}

#[tokio::test]
async fn a_model_that_hears_is_sent_the_sound_by_every_protocol() {
    let provider = Provider::start().await;
    let variables = [
        ("GANDER_MODEL", "gemini/gemini-3.6-flash"),
        ("GEMINI_API_KEY", "k"),
        ("GEMINI_BASE_URL", provider.url.as_str()),
    ];
    let server = Served::with(&[], &variables).await;
    assert!(content_types(&server).await.contains("audio/wav"));
    for (name, answer) in send_everywhere(&server).await {
        assert!(answer.status == 200 && answer.text.contains("I hear."), "{name}: {}", answer.text);
    }
    assert_eq!(provider.take_sounds(), 1);

    let (reader, writer) = pipe::open(&server.app, Principal::owner());
    let mut editor = Client::over(reader, writer);
    let greeting = editor.initialize().await.unwrap();
    assert_eq!(greeting["agentCapabilities"]["promptCapabilities"]["audio"], true, "{greeting}");
    let session = editor.new_session(&server.work()).await.unwrap();
    let prompt =
        json!({ "sessionId": session, "prompt": [{ "type": "audio", "mimeType": "audio/wav", "data": data() }] });
    assert_eq!(editor.call("session/prompt", prompt.clone()).await.unwrap()["stopReason"], "end_turn");
    assert_eq!(provider.take_sounds(), 1);

    let option = json!({ "sessionId": session, "configId": "model", "value": "demo/demo" });
    editor.call("session/set_config_option", option).await.unwrap();
    let refused = editor.call("session/prompt", prompt).await.unwrap_err().to_string();
    assert!(refused.contains("-32602") && refused.contains("takes no audio: demo/demo"), "{refused}");
}

#[tokio::test]
async fn a_model_that_does_not_hear_takes_no_sound_through_any_protocol() {
    let server = Served::with(&[], &[]).await;
    assert!(!content_types(&server).await.contains("audio"));
    for (name, answer) in send_everywhere(&server).await {
        assert!((400..500).contains(&answer.status), "{name}: {} {}", answer.status, answer.text);
        assert!(answer.text.contains("audio/wav"), "{name}: {}", answer.text);
    }
    let (reader, writer) = pipe::open(&server.app, Principal::owner());
    let mut editor = Client::over(reader, writer);
    let greeting = editor.initialize().await.unwrap();
    assert_eq!(greeting["agentCapabilities"]["promptCapabilities"]["audio"], false, "{greeting}");
}
