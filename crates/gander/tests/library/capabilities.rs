//! Capabilities bind at every protocol.

use gander::testing::Harness;
use gander::{
    Agent, AgentInfo, Capabilities, Command, Part, PromptRequest, PromptResult, SessionIds, StopReason, UpdateSink,
};
use serde_json::{Value, json};

const DOT: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

async fn echo(request: PromptRequest, sink: UpdateSink) -> PromptResult {
    sink.text(request.text()).await?;
    Ok(StopReason::EndTurn)
}

fn agent(capabilities: Capabilities) -> Agent {
    Agent::new(AgentInfo::new("echo", "2.5.0").title("Echo")).capabilities(capabilities).on_prompt(echo)
}

#[tokio::test]
async fn without_load_session_nothing_of_a_session_is_read_back_at_any_protocol() {
    let harness = Harness::start(agent(Capabilities::new().without_load_session())).await.unwrap();
    let session = harness.new_session().await.unwrap();
    session.prompt("secret").await.unwrap();
    let said = json!(session.client().initialize_response());
    assert_eq!(said["agentCapabilities"]["loadSession"].as_bool(), Some(false), "{said}");
    let offered = &said["agentCapabilities"]["sessionCapabilities"];
    for capability in ["list", "resume", "fork"] {
        assert!(offered[capability].is_null(), "{capability}: {offered}");
    }
    let id = session.id();
    for method in ["session/load", "session/resume", "session/fork", "session/list"] {
        let params = json!({ "sessionId": id, "cwd": "/", "mcpServers": [] });
        let refused = session.client().request::<Value>(method, &params).await.unwrap_err();
        assert_eq!(refused.json_rpc_code(), -32601, "{method}: {refused}");
    }
    // Another client that knows the id gets nothing by prompting into it.
    let other = harness.new_session().await.unwrap();
    let prompt = json!({ "sessionId": id, "prompt": [{ "type": "text", "text": "x" }] });
    assert!(other.client().request::<Value>("session/prompt", &prompt).await.is_err());

    let (_, shown) = harness.get(&format!("/acp-rest/sessions/{id}")).await.unwrap();
    assert_eq!((&shown["id"], &shown["history"]), (&json!(id), &json!([])), "ACP-REST: {shown}");
    let (_, shown) = harness.get(&format!("/sessions/{id}")).await.unwrap();
    assert_eq!((&shown["conversation"], &shown["history"]), (&json!([]), &json!([])), "goose: {shown}");
    let (status, _) = harness.get(&format!("/sessions/{id}/export")).await.unwrap();
    assert_eq!(status.as_u16(), 501, "goose's export");
    let (status, _) = harness.post("/agent/resume", &json!({ "session_id": id })).await.unwrap();
    assert_eq!(status.as_u16(), 501, "goose's resume");
    let (status, shown) = harness.get(&format!("/apps/echo/users/user/sessions/{id}")).await.unwrap();
    assert_eq!((status.as_u16(), &shown["events"]), (200, &json!([])), "ADK: {shown}");
}

#[tokio::test]
async fn with_load_session_another_client_gets_the_history() {
    let harness = Harness::start(agent(Capabilities::new())).await.unwrap();
    let session = harness.new_session().await.unwrap();
    session.prompt("hello").await.unwrap();
    let loaded = harness.load_session(&session.id()).await.unwrap();
    assert_eq!(loaded.seen().text, "hello");
    let (_, shown) = harness.get(&format!("/apps/echo/users/user/sessions/{}", session.id())).await.unwrap();
    assert_eq!(shown["events"].as_array().map(Vec::len), Some(2), "{shown}");
}

#[tokio::test]
async fn what_an_agent_does_not_take_never_reaches_its_handler() {
    let image = [Part::text("look"), Part::Image { mime: "image/png".to_owned(), data: DOT.to_owned(), uri: None }];
    let harness = Harness::start(agent(Capabilities::new())).await.unwrap();
    let session = harness.new_session().await.unwrap();
    let refused = session.prompt_parts(&image).await.unwrap_err().to_string();
    assert!(refused.contains("not supported"), "{refused}");
    let harness = Harness::start(agent(Capabilities::new().image())).await.unwrap();
    let session = harness.new_session().await.unwrap();
    assert_eq!(session.prompt_parts(&image).await.unwrap().text, "look");
}

#[tokio::test]
async fn every_protocol_shows_the_agent_as_it_describes_itself() {
    let agent = Agent::new(AgentInfo::new("echo", "2.5.0").title("Echo").skill("Echoing", "Says it back"))
        .commands([Command::new("shout", "Say it loud").input("what")])
        .on_prompt(echo);
    let harness = Harness::start(agent).await.unwrap();
    let session = harness.new_session().await.unwrap();
    let said = json!(session.client().initialize_response());
    assert_eq!(said["agentInfo"], json!({ "name": "echo", "title": "Echo", "version": "2.5.0" }));
    let (_, card) = harness.get("/.well-known/agent-card.json").await.unwrap();
    assert_eq!((&card["name"], &card["version"]), (&json!("Echo"), &json!("2.5.0")), "{card}");
    let (_, agents) = harness.get("/acp-rest/agents").await.unwrap();
    assert_eq!(agents["agents"].as_array().map(Vec::len), Some(1), "{agents}");
    let (_, apps) = harness.get("/list-apps").await.unwrap();
    assert_eq!(apps, json!(["echo"]));
    session.prompt("hi").await.unwrap();
}

#[tokio::test]
async fn sessions_may_be_numbered_and_numbers_are_never_given_twice() {
    let numbered = || agent(Capabilities::new()).session_ids(SessionIds::Sequential);
    let harness = Harness::start(numbered()).await.unwrap();
    let first = harness.new_session().await.unwrap();
    assert_eq!(first.id(), "session-1");
    assert_eq!(first.prompt("hello").await.unwrap().text, "hello");
    // The same id at other protocols, and the next number there.
    let (_, shown) = harness.get("/acp-rest/sessions/session-1").await.unwrap();
    assert_eq!(shown["id"], json!("session-1"), "{shown}");
    let (status, made) = harness.post("/apps/echo/users/user/sessions", &json!({})).await.unwrap();
    assert_eq!((status.as_u16(), &made["id"]), (200, &json!("session-2")), "{made}");
    let task = crate::send_a2a(&harness, "echo", json!([{ "text": "over A2A" }])).await;
    assert_eq!(task["task"]["contextId"], json!("session-3"), "{task}");
    let delete = json!({ "sessionId": "session-1" });
    first.client().request::<Value>("session/delete", &delete).await.unwrap();
    let harness = harness.restart(numbered()).await.unwrap();
    assert_eq!(harness.new_session().await.unwrap().id(), "session-4");
}
