//! The application is open: several agents, own routes, own store.

use std::sync::Arc;

use gander::axum::Extension;
use gander::axum::body::Body;
use gander::axum::routing::get;
use gander::store::MemoryStore;
use gander::testing::Harness;
use gander::{Agent, AgentInfo, App, PromptRequest, PromptResult, RouteAccess, Scope, StopReason, UpdateSink};
use http::{Request, header};
use serde_json::{Value, json};

async fn who(name: &'static str, _request: PromptRequest, sink: UpdateSink) -> PromptResult {
    sink.text(format!("I am {name}")).await?;
    Ok(StopReason::EndTurn)
}

fn agent(name: &'static str) -> Agent {
    Agent::new(AgentInfo::new(name, "1.0.0")).on_prompt(move |request, sink| who(name, request, sink))
}

#[tokio::test]
async fn several_agents_share_a_server_and_the_first_is_the_default() {
    let harness = Harness::start_with(|config| {
        App::builder(config).without_native_agent().with_agent(agent("first")).with_agent(agent("second"))
    });
    let harness = harness.await.unwrap();
    let session = harness.new_session().await.unwrap();
    assert_eq!(session.prompt("who?").await.unwrap().text, "I am first");
    let new = json!({ "cwd": "/", "mcpServers": [], "_meta": { "agent": "second" } });
    let made: Value = session.client().request("session/new", &new).await.unwrap();
    let prompt = json!({ "sessionId": made["sessionId"], "prompt": [{ "type": "text", "text": "who?" }] });
    session.client().request::<Value>("session/prompt", &prompt).await.unwrap();
    assert!(session.seen().text.ends_with("I am second"));
    let run = json!({ "agent_name": "second", "input": [{ "role": "user", "parts": [{ "content": "who?" }] }] });
    let (status, run) = harness.post("/acp-rest/runs", &run).await.unwrap();
    assert_eq!(status.as_u16(), 200, "{run}");
    assert_eq!(run["output"][0]["parts"][0]["content"], json!("I am second"), "{run}");
    let doubled = Harness::start_with(|config| {
        App::builder(config).without_native_agent().with_agent(agent("one")).with_agent(agent("one"))
    });
    assert!(doubled.await.unwrap_err().to_string().contains("two agents of this name: one"));
}

#[tokio::test]
async fn own_routes_stand_beside_ours_behind_the_same_guard() {
    let harness = Harness::start_with(|config| {
        let whose =
            |Extension(caller): Extension<gander_domain::caller::Caller>| async move { caller.principal.to_string() };
        agent("echo")
            .into_app(config)
            .with_route("/weather/{city}", RouteAccess::Public, get(|| async { "sunny" }))
            .with_route("/me", RouteAccess::Token(Scope::Read), get(whose))
    });
    let harness = harness.await.unwrap();
    assert_eq!(harness.get("/weather/ulm").await.unwrap(), (http::StatusCode::OK, json!("sunny")));
    assert_eq!(harness.get("/me").await.unwrap().1, json!("owner"));
    let stranger = Request::get("/me").header(header::AUTHORIZATION, "Bearer wrong").body(Body::empty()).unwrap();
    assert_eq!(harness.request(stranger).await.status().as_u16(), 401);
    let rebound = Request::get("/weather/ulm").header(header::HOST, "evil.example").body(Body::empty()).unwrap();
    assert_eq!(harness.request(rebound).await.status().as_u16(), 403);
    for (path, reason) in [("/health", "already"), ("/sessions/{what}", "already"), ("weather", "slash")] {
        let refused = Harness::start_with(|config| {
            agent("echo").into_app(config).with_route(path, RouteAccess::Public, get(|| async { "mine" }))
        });
        let error = refused.await.unwrap_err().to_string();
        assert!(error.contains(reason), "{path}: {error}");
    }
}

#[tokio::test]
async fn sessions_may_lie_in_a_store_of_ones_own() {
    let store = Arc::new(MemoryStore::new());
    let kept = Arc::clone(&store);
    let harness = Harness::start_with(|config| agent("echo").into_app(config).with_store(kept));
    let harness = harness.await.unwrap();
    let session = harness.new_session().await.unwrap();
    session.prompt("who?").await.unwrap();
    let entries = gander::store::read_all(&*store, session.id().parse().unwrap(), gander::store::DeltaForm::Joined);
    assert!(entries.await.unwrap().len() > 3);
}
