//! goose's own extensions by their names: switched over REST, by a recipe, and what memory keeps.

use serde_json::{Value, json};

use crate::goose_rest::test_server::TestServer;

async fn tools(server: &TestServer, session: &str, extension: &str) -> Vec<String> {
    let (_, tools) = server.get(&format!("/agent/tools?session_id={session}&extension_name={extension}")).await;
    tools.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

/// What the agent is shown to do in a turn of these calls; whatever it asks is allowed once.
async fn turn(server: &TestServer, session: &str, calls: &[Value]) -> String {
    let script = format!("[[script:{}]]", json!(calls));
    let message = json!({"role": "user", "created": 0, "content": [{"type": "text", "text": script}]});
    let mut stream = server.listen("/reply", json!({"session_id": session, "user_message": message})).await;
    let mut events = Vec::new();
    while let Some(event) = stream.event().await {
        let asked = &event["message"]["content"][0];
        if asked["type"] == "actionRequired" {
            let id = &asked["data"]["id"];
            let yes = json!({"id": id, "sessionId": session, "action": "allow_once", "principalType": "Tool"});
            server.ok("/action-required/tool-confirmation", yes).await;
        }
        events.push(event);
    }
    json!(events).to_string()
}

fn remember(text: &str, everywhere: bool) -> Value {
    let args = json!({"category": "style", "data": text, "tags": ["code"], "is_global": everywhere});
    json!([{"tool": "memory__remember_memory", "args": args}])
}

fn recall(everywhere: bool) -> Value {
    json!([{"tool": "memory__retrieve_memories", "args": {"category": "*", "is_global": everywhere}}])
}

#[tokio::test]
async fn tools_belong_to_the_extension_that_has_them() {
    let server = TestServer::open().await;
    let id = server.start().await;
    assert_eq!(tools(&server, &id, "developer").await, ["edit", "fetch", "grep", "list", "read", "shell", "write"]);
    assert_eq!(tools(&server, &id, "todo").await, ["plan"]);
    assert_eq!(tools(&server, &id, "skills").await, ["skill"]);
    assert_eq!(tools(&server, &id, "summon").await, ["delegate"]);
    assert_eq!(tools(&server, &id, "memory").await, Vec::<String>::new(), "it is off");
    server.ok("/agent/add_extension", json!({"session_id": id, "config": {"type": "builtin", "name": "memory"}})).await;
    assert_eq!(tools(&server, &id, "memory").await.len(), 4);
    server.ok("/agent/remove_extension", json!({"session_id": id, "name": "developer"})).await;
    assert_eq!(tools(&server, &id, "developer").await, Vec::<String>::new());
    let said = turn(&server, &id, &[json!([{"tool": "read", "args": {"path": "x"}}]), json!([{"text": "no"}])]).await;
    assert!(said.contains("no such tool here"), "{said}");
    let other = server.start().await;
    assert_eq!(tools(&server, &other, "developer").await.len(), 7, "another session has them");
}

#[tokio::test]
async fn switches_hold_for_every_session_and_are_listed() {
    let server = TestServer::open().await;
    let id = server.start().await;
    let on = async |name: &str| {
        let listed = server.get("/config/extensions").await.1["extensions"].as_array().unwrap().clone();
        listed.into_iter().find(|known| known["name"] == name).unwrap()["enabled"].clone()
    };
    assert_eq!((on("todo").await, on("memory").await), (json!(true), json!(false)));
    server.ok("/config/extensions", json!({"name": "todo", "enabled": false, "config": {"type": "platform"}})).await;
    server.ok("/config/extensions", json!({"name": "memory", "enabled": true, "config": {"type": "builtin"}})).await;
    assert_eq!((on("todo").await, on("memory").await), (json!(false), json!(true)));
    assert_eq!((tools(&server, &id, "todo").await.len(), tools(&server, &id, "memory").await.len()), (0, 4));
    assert_eq!(server.delete("/config/extensions/memory").await.0, 200);
    assert_eq!(on("memory").await, json!(false), "what is built in stays in the list");
    for name in ["chatrecall", "extensionmanager", "computercontroller", "autovisualiser", "tutorial"] {
        let config = json!({"type": "builtin", "name": name});
        let (status, said) = server.post("/agent/add_extension", json!({"session_id": id, "config": config})).await;
        assert!(status == 400 && said.to_string().contains("no such built-in extension"), "{name}: {status} {said}");
    }
}

#[tokio::test]
async fn memory_keeps_what_it_was_told_for_a_person_and_a_project() {
    let server = TestServer::open().await;
    server.ok("/config/extensions", json!({"name": "memory", "enabled": true, "config": {"type": "builtin"}})).await;
    let id = server.start().await;
    let done = json!([{"text": "done"}]);
    let said =
        turn(&server, &id, &[remember("tabs everywhere", true), remember("make here", false), done.clone()]).await;
    assert!(said.contains("remembered"), "{said}");
    let next = server.start().await;
    let said = turn(&server, &next, &[recall(true), recall(false), done.clone()]).await;
    assert!(said.contains("tabs everywhere [code]") && said.contains("make here [code]"), "{said}");
    let elsewhere = tempfile::tempdir().unwrap();
    let folder = elsewhere.path().canonicalize().unwrap();
    let far = server.ok("/agent/start", json!({"working_dir": folder})).await["id"].as_str().unwrap().to_owned();
    let said = turn(&server, &far, &[recall(true), recall(false), done.clone()]).await;
    assert!(said.contains("tabs everywhere") && !said.contains("make here"), "{said}");
    let forget = |tool: &str, args: Value| json!([{"tool": format!("memory__{tool}"), "args": args}]);
    let one = json!({"category": "style", "memory_content": "tabs", "is_global": true});
    let all = json!({"category": "*", "is_global": false});
    let calls = [forget("remove_specific_memory", one), forget("remove_memory_category", all), done.clone()];
    let said = turn(&server, &next, &calls).await;
    assert!(said.contains("forgot it") && said.contains("forgot 1 memories"), "{said}");
    let said = turn(&server, &next, &[recall(true), recall(false), done]).await;
    assert!(said.contains("nothing is remembered there") && !said.contains("make here"), "{said}");
}

#[tokio::test]
async fn a_recipe_switches_on_what_it_names_for_its_session_alone() {
    let server = TestServer::open().await;
    let recipe = json!({"version": "1.0.0", "title": "T", "description": "D", "prompt": "go",
        "extensions": [{"type": "builtin", "name": "memory"}, {"type": "builtin", "name": "developer"}]});
    let started = server.ok("/agent/start", json!({"working_dir": server.work(), "recipe": recipe})).await;
    let id = started["id"].as_str().unwrap().to_owned();
    assert_eq!(tools(&server, &id, "memory").await.len(), 4);
    let other = server.start().await;
    assert_eq!(tools(&server, &other, "memory").await.len(), 0);
}

#[tokio::test]
async fn a_run_that_is_under_way_hears_of_a_switch() {
    let server = TestServer::open().await;
    let id = server.start().await;
    let waits = json!([{"tool": "shell", "args": {"command": "touch begun; while [ ! -e go ]; do sleep 0.02; done"}}]);
    let plans = json!([{"tool": "plan", "args": {"items": [{"text": "step", "status": "pending"}]}}]);
    let work = std::path::PathBuf::from(server.work());
    let switch = async {
        while !work.join("begun").exists() {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        server.ok("/config/extensions", json!({"name": "todo", "enabled": false, "config": {}})).await;
        std::fs::write(work.join("go"), "").unwrap();
    };
    let calls = [waits, plans, json!([{"text": "done"}])];
    let (said, ()) = tokio::join!(turn(&server, &id, &calls), switch);
    assert!(said.contains("no such tool here"), "{said}");
}
