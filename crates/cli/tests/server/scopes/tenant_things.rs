//! What agents of one principal find of another's: memories, apps, and the servers that the owner lends.

use gander_domain::Principal;
use gander_services::memory::{Memories, Memory, MemoryScope};
use reqwest::Method;
use serde_json::{Value, json};

use crate::scopes::belongings::FULL;
use crate::scopes::{SETS, TestServer};

impl TestServer {
    /// What a session's tool gives, called by the demo model.
    async fn tool(&self, token: &str, name: &str, args: &Value) -> String {
        let session = self.ok(token, "/agent/start", &json!({})).await["id"].clone();
        for name in ["memory", "apps"] {
            let config = json!({ "type": "builtin", "name": name });
            self.ok(token, "/agent/add_extension", &json!({ "session_id": session, "config": config })).await;
        }
        // Whether its principal is asked first is not what this is about.
        self.ok(token, "/agent/update_session", &json!({ "session_id": session, "goose_mode": "auto" })).await;
        let calls = json!([[{ "tool": name, "args": args }], [{ "text": "done" }]]);
        let text = format!("[[script:{calls}]]");
        let said = json!({ "role": "user", "created": 1, "content": [{ "type": "text", "text": text }] });
        let mode = if name.starts_with("app_") { "app_maker" } else { "assistant" };
        let prompt = json!({ "session_id": session, "user_message": said, "mode": mode });
        let (status, told) = self.post(token, "/reply", &prompt).await;
        assert_eq!(status, 200, "{told}");
        told
    }
}

#[tokio::test]
async fn an_agent_remembers_for_its_own_principal_alone() {
    let server = TestServer::open().await;
    let (ann, bob) = (server.token("ann", FULL), server.token("bob", FULL));
    let memories = Memories::new(server.app.services().hub.store().clone());
    let secret = "the cellar key hangs behind the clock";
    let kept =
        Memory { place: MemoryScope::Everywhere, category: "house".into(), text: secret.into(), tags: Vec::new() };
    memories.remember(&Principal::named("ann"), kept.clone()).await.unwrap();
    let all = json!({ "category": "*", "is_global": true });
    let one = json!({ "category": "house", "memory_content": secret, "is_global": true });
    let none = json!({ "category": "garden", "memory_content": secret, "is_global": true });
    assert!(server.tool(&ann, "memory__retrieve_memories", &all).await.contains(secret), "its own principal's does");
    let told = server.tool(&bob, "memory__retrieve_memories", &all).await;
    assert!(told.contains("nothing is remembered there") && !told.contains(secret), "{told}");
    for (tool, args) in [
        ("memory__remove_memory_category", &all),
        ("memory__remove_specific_memory", &one),
        ("memory__remove_specific_memory", &none),
    ] {
        let told = server.tool(&bob, tool, args).await;
        assert!(told.contains("nothing is remembered there"), "{tool}: {told}");
    }
    assert_eq!(memories.list(&Principal::named("ann")).await.unwrap(), [kept]);
    // What a run is told unasked.
    assert!(memories.prompt_text(&Principal::named("ann"), "/w").await.unwrap().contains(secret));
    for other in ["bob", "an", "ann2", "owner"] {
        assert_eq!(memories.prompt_text(&Principal::named(other), "/w").await.unwrap(), "", "{other}");
    }
}

#[tokio::test]
async fn an_agent_finds_its_own_principals_apps_alone() {
    let server = TestServer::open().await;
    let (ann, bob) = (server.belongings("ann").await, server.belongings("bob").await);
    let named = json!({ "name": ann.id("app") });
    let told = server.tool(&ann.token, "app_read", &named).await;
    assert!(told.contains(&ann.secret()), "{told}");
    for (tool, args) in [("app_read", &named), ("app_list", &json!({}))] {
        let told = server.tool(&bob.token, tool, args).await;
        assert!(!told.contains(&ann.secret()), "{tool}: {told}");
        assert!(tool == "app_read" || !told.contains(ann.id("app")), "{tool}: {told}");
    }
    let update = json!({ "name": ann.id("app"), "html": "<html><title>x</title>mine</html>" });
    server.tool(&bob.token, "app_update", &update).await;
    let (_, page) = server.ask(Some(&ann.token), &Method::GET, "/agent/export_app/ann%20page", None).await;
    assert!(page.contains(&ann.secret()), "{page}");
}

/// Names of the owner's servers are everybody's, for they work in everybody's sessions. What they are is not.
#[tokio::test]
async fn the_owners_servers_are_shown_to_others_by_name_alone() {
    let server = TestServer::with(&[("GANDER_SERVER_ALLOW_REMOTE_COMMANDS", "true")]).await;
    let program = json!({ "type": "stdio", "name": "vault", "cmd": "/opt/private/vault-server",
        "args": ["--key", "hush-one"], "envs": { "VAULT_TOKEN": "hush-two" } });
    let address =
        json!({ "type": "streamable_http", "name": "intranet", "uri": "https://hush-three.invalid/mcp/hush-four" });
    for config in [&program, &address] {
        let body = json!({ "name": config["name"], "config": config, "enabled": true });
        server.ok(&server.token, "/config/extensions", &body).await;
    }
    let (_, owners) = server.ask(Some(&server.token), &Method::GET, "/config/extensions", None).await;
    assert!(owners.contains("hush-one") && owners.contains("hush-three"), "the owner sees what it wrote: {owners}");
    for (name, scopes) in SETS {
        let session = server.ok(&server.token("bob", FULL), "/agent/start", &json!({})).await["id"].clone();
        let session = session.as_str().unwrap();
        let bob = server.token("bob", scopes);
        let mut shown = Vec::new();
        for path in [
            "/config/extensions",
            "/system_info",
            &format!("/sessions/{session}/extensions"),
            &format!("/sessions/{session}"),
        ] {
            shown.push(server.ask(Some(&bob), &Method::GET, path, None).await.1);
        }
        if let Ok(mut socket) = server.socket(&bob).await {
            for method in
                ["extensions/available", "config/extensions/list", "session/extensions/list", "config/read-all"]
            {
                let answer = socket.call(&format!("_goose/unstable/{method}"), json!({ "sessionId": session })).await;
                shown.push(answer.to_string());
            }
        }
        assert!(shown[0].contains("vault") && shown[0].contains("intranet"), "{shown:?}");
        for hidden in ["hush", "/opt/private", "VAULT_TOKEN", "--key"] {
            assert!(!shown.iter().any(|text| text.contains(hidden)), "{hidden} as {name}: {shown:#?}");
        }
    }
}

/// What is shown without its program can be sent back as it was shown.
#[tokio::test]
async fn a_lent_server_is_taken_out_of_ones_own_session_and_put_back() {
    let server = TestServer::open().await;
    let address = json!({ "type": "streamable_http", "name": "intranet", "uri": "https://mcp.invalid/x" });
    let added = json!({ "name": "intranet", "config": address, "enabled": true });
    server.ok(&server.token, "/config/extensions", &added).await;
    let bob = server.token("bob", FULL);
    let session = server.ok(&bob, "/agent/start", &json!({})).await["id"].clone();
    let list = async || {
        let path = format!("/sessions/{}/extensions", session.as_str().unwrap());
        let (_, text) = server.ask(Some(&bob), &Method::GET, &path, None).await;
        serde_json::from_str::<Value>(&text).unwrap()["extensions"].as_array().unwrap().clone()
    };
    let shown = list().await.into_iter().find(|extension| extension["name"] == "intranet").unwrap();
    server.ok(&bob, "/agent/remove_extension", &json!({ "session_id": session, "name": "intranet" })).await;
    assert!(list().await.iter().all(|extension| extension["name"] != "intranet"));
    server.ok(&bob, "/agent/add_extension", &json!({ "session_id": session, "config": shown })).await;
    assert!(list().await.contains(&shown));
}
