//! The token of whoever calls goes no further: not to the model, not to an MCP server, not to an agent elsewhere.

use std::sync::{Arc, Mutex};

use anyhow::ensure;
use axum::Router;
use axum::extract::Request;
use axum::http::StatusCode;
use gander_testkit::harness::eventually;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::TestServer;
use super::issuer::{TestIssuer, TestKey};

/// Everything that came in, word for word.
type Seen = Arc<Mutex<Vec<String>>>;

/// Refuses whatever is sent, and keeps it.
async fn start_sink() -> anyhow::Result<(String, Seen)> {
    let (listener, seen) = (TcpListener::bind("127.0.0.1:0").await?, Seen::default());
    let url = format!("http://{}", listener.local_addr()?);
    let kept = Arc::clone(&seen);
    let router = Router::new().fallback(move |request: Request| async move {
        let (parts, body) = request.into_parts();
        let body = axum::body::to_bytes(body, usize::MAX).await.unwrap_or_default();
        let text = format!("{} {} {:?} {}", parts.method, parts.uri, parts.headers, String::from_utf8_lossy(&body));
        kept.lock().unwrap().push(text);
        (StatusCode::NOT_FOUND, "{}")
    });
    tokio::spawn(async move { axum::serve(listener, router).await });
    Ok((url, seen))
}

#[tokio::test]
async fn no_token_of_a_caller_reaches_a_model_an_mcp_server_or_another_agent() -> anyhow::Result<()> {
    let issuer = TestIssuer::start().await;
    let key = TestKey::curve();
    issuer.publish(&[("1", &key)]);
    let (url, seen) = start_sink().await?;
    let root = tempfile::tempdir()?;
    let file = root.path().join("gander.toml");
    let text = format!(
        "[agents.far]\nkind = \"a2a\"\nurl = \"{url}/far\"\n[agents.rest]\nkind = \"acp_rest\"\nurl = \"{url}/rest\"\nagent = \"a\"\n\
         [extensions.tracker]\nurl = \"{url}/mcp\"\n"
    );
    std::fs::write(&file, text)?;
    let settings = [
        ("GANDER_CONFIG", file.to_str().unwrap_or_default()),
        ("GANDER_MODEL", "openai/mock"),
        ("OPENAI_BASE_URL", &format!("{url}/model")),
        ("OPENAI_API_KEY", "sk-of-no-worth"),
        ("GANDER_AGENT_RETRIES", "0"),
    ];
    let server = TestServer::open(&issuer, &settings).await?;
    let token = issuer.token(("1", &key), "ada", json!({}));
    for agent in ["gander", "far", "rest"] {
        let body = json!({
            "agent_name": agent, "mode": "sync",
            "input": [{"role": "user", "parts": [{"content": "hello"}]}],
        });
        let sent = server.http.post(format!("http://{}/runs", server.server.address)).bearer_auth(&token).json(&body);
        let run: Value = sent.send().await?.json().await?;
        ensure!(run["status"] == "failed", "nobody answers there: {run}");
    }
    let reached = ["/model/", "/mcp", "/far", "/rest"];
    let all = || reached.iter().all(|path| seen.lock().unwrap().iter().any(|text| text.contains(path)));
    eventually("every peer was asked", || async { all() }).await?;
    let signature = token.rsplit_once('.').map_or("", |(_, signature)| signature);
    for text in seen.lock().unwrap().iter() {
        ensure!(!text.contains(&token) && !text.contains(signature), "the token travels: {text}");
    }
    // Nor is it on the disk.
    let log = std::fs::read(server.server.launch.data.join("serve.log"))?;
    ensure!(!String::from_utf8_lossy(&log).contains(signature), "the token is in the log");
    Ok(())
}
