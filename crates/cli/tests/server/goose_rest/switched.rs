//! Extensions that are switched off and on again by a client that never sees their secrets.

use std::collections::HashMap;
use std::time::Duration;

use gander_mcp::{Spec, Transport};
use gander_testkit::mcp::command;
use serde_json::{Value, json};

use crate::goose_rest::test_server::TestServer;

fn secrets(specs: Vec<Spec>) -> Vec<String> {
    let held = |spec: Spec| match spec.transport {
        Transport::Stdio { env, .. } => format!("{env:?}"),
        Transport::Http { url, headers, .. } => format!("{url} {headers:?}"),
    };
    specs.into_iter().map(held).collect()
}

async fn of_session(test_server: &TestServer, id: &Value) -> Vec<String> {
    let services = test_server.app.services();
    let view = services.hub.session_view(id.as_str().unwrap().parse().unwrap()).await.unwrap();
    secrets(services.extensions.specs_for_session(&view))
}

async fn comes_back(name: &str, config: Value) {
    let test_server = TestServer::with(&[("GANDER_SERVER_ALLOW_REMOTE_COMMANDS", "true")]).await;
    let held = || secrets(test_server.app.services().extensions.global_specs());
    test_server.ok("/config/extensions", json!({"name": name, "enabled": true, "config": config})).await;
    let before = held();
    assert!(before[0].contains("hush-hush-hush"), "{before:?}");
    let listed = test_server.get("/config/extensions").await.1["extensions"].as_array().unwrap().clone();
    let shown = listed.into_iter().find(|known| known["name"] == name).unwrap();
    assert!(!shown.to_string().contains("hush"), "{shown}");
    test_server.ok("/config/extensions", json!({"name": name, "enabled": false, "config": shown})).await;
    assert!(held().is_empty());
    test_server.ok("/config/extensions", json!({"name": name, "enabled": true, "config": shown})).await;
    assert_eq!(held(), before);
    let session = test_server.ok("/agent/start", json!({"working_dir": test_server.work()})).await["id"].clone();
    test_server.ok("/agent/remove_extension", json!({"session_id": session, "name": name})).await;
    assert!(of_session(&test_server, &session).await.is_empty());
    test_server.ok("/agent/add_extension", json!({"session_id": session, "config": shown})).await;
    assert_eq!(of_session(&test_server, &session).await, before);
    let mut slower = shown.clone();
    slower["timeout"] = json!(7);
    test_server.ok("/agent/add_extension", json!({"session_id": session, "config": slower})).await;
    assert_eq!(of_session(&test_server, &session).await, before, "what was not changed is kept");
    test_server.ok("/config/extensions", json!({"name": name, "enabled": true, "config": slower})).await;
    assert_eq!(held(), before);
    let other = json!({"type": "streamable_http", "uri": "https://example.org/other"});
    test_server.ok("/config/extensions", json!({"name": name, "enabled": true, "config": other})).await;
    assert_eq!(held(), ["https://example.org/other []"], "another one takes its place");
}

#[tokio::test]
async fn a_program_that_comes_back_as_it_was_shown_keeps_its_secrets() {
    comes_back("files", json!({"type": "stdio", "cmd": "/no/such/program", "envs": {"KEY": "hush-hush-hush"}})).await;
}

#[tokio::test]
async fn an_address_that_comes_back_as_it_was_shown_keeps_its_secrets() {
    let uri = "https://example.org/mcp?key=hush-hush-hush";
    comes_back("web", json!({"type": "streamable_http", "uri": uri, "headers": {"authorization": "hush-hush-hush"}}))
        .await;
}

#[tokio::test]
async fn a_switch_wakes_no_session_that_sleeps() {
    let test_server = TestServer::with(&[("GANDER_SERVER_ALLOW_REMOTE_COMMANDS", "true")]).await;
    let (asleep, awake) = (test_server.start().await, test_server.start().await);
    let (program, args, envs) = command("server", "good");
    let envs: HashMap<String, String> = envs.into_iter().collect();
    let script = json!({"type": "stdio", "cmd": program, "args": args, "envs": envs});
    test_server.ok("/config/extensions", json!({"name": "script", "enabled": true, "config": script})).await;
    let services = test_server.app.services();
    let view = async |id: &str| services.hub.session_view(id.parse().unwrap()).await.unwrap();
    let states = |id: &str| -> Vec<String> {
        let listed = services.extensions.list_json(Some(id.parse().unwrap()));
        listed.as_array().unwrap().iter().map(|server| server["state"].as_str().unwrap().to_owned()).collect()
    };
    drop(services.extensions.servers_of(&view(&asleep).await));
    services.extensions.servers_of(&view(&awake).await).wait_until_settled().await;
    assert_eq!((states(&asleep), states(&awake)), (vec!["asleep".to_owned()], vec!["ready".to_owned()]));
    let more = json!({"type": "stdio", "cmd": "/no/such/program"});
    test_server.ok("/config/extensions", json!({"name": "more", "enabled": true, "config": more})).await;
    let told = async {
        while states(&awake) != ["failed", "ready"] {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), told).await.expect("who is awake follows at once");
    assert_eq!(states(&asleep), ["asleep", "asleep"]);
}
