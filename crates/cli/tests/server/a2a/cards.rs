//! Cards: for both versions, cached, one per agent, under the caller's name for the server.

use serde_json::{Value, json};

use crate::a2a::test_server::TestServer;

#[tokio::test]
async fn cards_are_public_cached_and_on_their_own_origin() -> anyhow::Result<()> {
    let server = TestServer::open().await?;
    let get = |path: &str| server.client.get(server.url(path));
    let first = get("/.well-known/agent-card.json").send().await?;
    assert_eq!(first.status(), 200);
    let tag = first.headers()["etag"].to_str()?.to_owned();
    assert!(first.headers().contains_key("last-modified") && first.headers().contains_key("cache-control"));
    let card: Value = first.json().await?;
    assert_eq!((&card["name"], &card["url"]), (&json!("tck"), &json!(server.url("/a2a"))));
    for interface in card["supportedInterfaces"].as_array().unwrap() {
        assert_eq!(interface["url"], server.url("/a2a"));
    }
    let same = get("/.well-known/agent.json").header("If-None-Match", tag).send().await?;
    assert_eq!(same.status(), 304);
    let named: Value = get("/a2a/gander/.well-known/agent-card.json").send().await?.json().await?;
    assert_eq!(named["url"], server.url("/a2a/gander"));
    assert_eq!(get("/a2a/nobody/.well-known/agent-card.json").send().await?.status(), 404);
    let catalog: Value = get("/.well-known/ai-catalog.json").send().await?.json().await?;
    let urls: Vec<&Value> = catalog["entries"].as_array().unwrap().iter().map(|entry| &entry["url"]).collect();
    assert!(urls.contains(&&json!(server.url("/a2a/tck/.well-known/agent-card.json"))), "{urls:?}");
    let extended = server.call("GetExtendedAgentCard", json!({})).await?;
    assert_eq!(extended["supportedInterfaces"], card["supportedInterfaces"]);
    Ok(())
}
