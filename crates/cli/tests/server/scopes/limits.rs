//! Limits and open protocols tell this machine from others.

use std::time::{Duration, Instant};

use gander_domain::caller::Scope;
use reqwest::Method;
use serde_json::json;

use crate::scopes::TestServer;

const FORWARDED: [(&str, &str); 4] =
    [("x-forwarded-for", "10.0.0.1"), ("forwarded", "for=10.0.0.1"), ("via", "1.1 proxy"), ("x-real-ip", "10.0.0.1")];

#[tokio::test]
async fn an_open_protocol_is_shut_to_whoever_comes_through_a_proxy() {
    let server = TestServer::with(&[("GANDER_SERVER_OPEN", "['adk']")]).await;
    assert_eq!(server.ask(None, &Method::GET, "/list-apps", None).await.0, 200);
    for (name, value) in FORWARDED {
        let answer = server.client.get(server.url("/list-apps")).header(name, value).send().await.unwrap();
        assert_eq!(answer.status(), 401, "{name}");
    }
}

#[tokio::test]
async fn strict_limits_hold_for_whoever_comes_through_a_proxy() {
    let strict = [("GANDER_LIMITS_REQUESTS_PER_SECOND", "1"), ("GANDER_LIMITS_REQUEST_BURST", "2")];
    let server = TestServer::with(&strict).await;
    let ask = async |header: Option<(&str, &str)>| {
        let request = server.client.get(server.url("/gander/status")).bearer_auth(&server.token);
        let request = header.into_iter().fold(request, |request, (name, value)| request.header(name, value));
        request.send().await.unwrap().status().as_u16()
    };
    let mut statuses = Vec::new();
    for header in FORWARDED {
        statuses.push(ask(Some(header)).await);
    }
    assert_eq!(statuses, [200, 200, 429, 429]);
    for _ in 0..50 {
        assert_eq!(ask(None).await, 200);
    }
}

/// Five messages with a burst of two at ten a second take at least as long as the three that have to wait.
#[tokio::test]
async fn messages_on_a_websocket_count_like_requests() {
    let slow = [("GANDER_LIMITS_LOCAL_REQUESTS_PER_SECOND", "10"), ("GANDER_LIMITS_LOCAL_REQUEST_BURST", "2")];
    let server = TestServer::with(&slow).await;
    let token = server.token("ann", &[Scope::Prompt]);
    let began = Instant::now();
    let mut socket = server.socket(&token).await.ok().unwrap();
    for _ in 0..5 {
        socket.call("session/list", json!({})).await;
    }
    // The handshake, the introduction and five calls: seven, of which two are free.
    assert!(began.elapsed() >= Duration::from_millis(400), "{:?}", began.elapsed());
}
