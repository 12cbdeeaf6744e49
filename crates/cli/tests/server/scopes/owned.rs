//! What belongs to one principal: grants, pins of tools, and the owner's keys.

use std::sync::Arc;

use gander_domain::caller::Scope;
use gander_domain::{Principal, SessionId};
use gander_mcp::Transport;
use gander_services::extensions::{ExtensionEntry, ExtensionScope, PinStore, Rights};
use gander_services::grants::Grants;
use gander_store::{MemoryStore, Store, append_fact, read_scope_all};
use serde_json::{Value, json};

use crate::scopes::TestServer;

fn grant(line: &str) -> Value {
    json!({ "workspace": "/w", "scope": { "type": "line", "line": line, "cwd": "/w" }, "stand": "allow" })
}

fn store() -> Arc<dyn Store> {
    Arc::new(MemoryStore::new())
}

#[tokio::test]
async fn a_grant_counts_for_its_principal_alone_and_an_old_one_for_the_owner() {
    let store = store();
    let (owner, bob) = (Principal::owner(), Principal::named("bob"));
    append_fact(&*store, "grants", &json!({ "kind": "granted", "grant": grant("make old") })).await.unwrap();
    let grants = Grants::load(Arc::clone(&store)).await.unwrap();
    assert_eq!(
        (grants.for_principal(&owner).grants().len(), grants.for_principal(&bob).grants().len()),
        (1, 0),
        "there was one list, the owner's"
    );
    grants.for_principal(&bob).add(serde_json::from_value(grant("make bob")).unwrap());
    assert_eq!((grants.for_principal(&owner).grants().len(), grants.for_principal(&bob).grants().len()), (1, 1));
    while read_scope_all(&*store, "grants").await.unwrap().len() < 2 {
        tokio::task::yield_now().await; // it is written beside
    }
    let grants = Grants::load(store).await.unwrap();
    let held = grants.list(&bob).await.unwrap();
    assert_eq!((held.len(), grants.list(&owner).await.unwrap().len()), (1, 1), "also after a restart");
    assert!(!grants.revoke(&owner, held[0].id).await.unwrap(), "another's grant is as unknown as none");
    assert!(grants.revoke(&bob, held[0].id).await.unwrap());
    assert!(grants.for_principal(&bob).grants().is_empty());
}

#[tokio::test]
async fn a_tool_is_pinned_for_its_principal_alone_and_an_old_pin_is_the_owners() {
    let store = store();
    let (owner, bob) = (Principal::owner(), Principal::named("bob"));
    let old = json!({ "server": "s", "tool": "t", "definition": "seen by the owner" });
    append_fact(&*store, "mcp_pins", &old).await.unwrap();
    let pins = PinStore::load(Arc::clone(&store)).await.unwrap();
    assert_eq!(pins.for_principal(&owner).pinned("s", "t").as_deref(), Some("seen by the owner"));
    assert_eq!(pins.for_principal(&bob).pinned("s", "t"), None);
    pins.for_principal(&bob).pin("s", "t", "seen by Bob");
    assert_eq!(pins.for_principal(&owner).pinned("s", "t").as_deref(), Some("seen by the owner"));
    while read_scope_all(&*store, "mcp_pins").await.unwrap().len() < 2 {
        tokio::task::yield_now().await; // it is written beside
    }
    let pins = PinStore::load(store).await.unwrap();
    assert_eq!(pins.for_principal(&bob).pinned("s", "t").as_deref(), Some("seen by Bob"), "also after a restart");
}

#[tokio::test]
async fn the_owners_keys_go_to_the_owners_servers_alone() {
    let server = TestServer::with(&[("OPENAI_API_KEY", "sk-of-the-owner")]).await;
    let all = [Scope::Prompt, Scope::Approve, Scope::Admin];
    for (token, expected) in [(server.token.clone(), 1), (server.token("bob", &all), 0)] {
        let session = server.ok(&token, "/agent/start", &json!({})).await["id"].as_str().unwrap().to_owned();
        let session: SessionId = session.parse().unwrap();
        let env_keys = vec!["OPENAI_API_KEY".to_owned()];
        let entry = ExtensionEntry { command: Some("true".into()), env_keys, ..ExtensionEntry::default() };
        let services = server.app.services();
        services.extensions.add(ExtensionScope::Session(session), "keyed", entry, Rights::Programs).await.unwrap();
        let view = services.hub.session_view(session).await.unwrap();
        let specs = services.extensions.specs_for_session(&view);
        let spec = specs.iter().find(|spec| spec.name == "keyed").unwrap();
        let Transport::Stdio { env, .. } = &spec.transport else { panic!("a program") };
        assert_eq!(env.len(), expected, "{}", view.owner);
    }
}
