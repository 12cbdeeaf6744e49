//! Routes of goosed that its later versions replaced.

use reqwest::Method;
use serde_json::{Value, json};

use crate::goose_rest::test_server::{TestServer, message, said};

#[tokio::test]
async fn extensions_are_added_and_removed_as_until_1_12() {
    let server = TestServer::open().await;
    let id = server.start().await;
    let names = async || server.get(&format!("/sessions/{id}/extensions")).await.1.to_string();
    let added = server.ok("/extensions/add", json!({"session_id": id, "type": "builtin", "name": "memory"})).await;
    assert_eq!(added, json!({"error": false, "message": null}));
    assert!(names().await.contains("\"memory\""));
    let removed = server.ok("/extensions/remove", json!({"session_id": id, "name": "memory"})).await;
    assert_eq!(removed["error"], false);
    assert!(!names().await.contains("\"memory\""));
    let refused = server.ok("/extensions/add", json!({"session_id": id, "type": "frontend", "name": "x"})).await;
    assert_eq!(refused["error"], true);
    assert!(refused["message"].as_str().unwrap().contains("frontend"), "{refused}");
    assert_eq!(server.ok("/extensions/remove", json!("no such thing")).await["error"], true);
    assert_eq!(server.post("/extensions/remove", json!({"session_id": id})).await.0, 422);
    assert_eq!(server.post("/extensions/add", json!({"session_id": "x", "type": "builtin", "name": "y"})).await.0, 404);
}

#[tokio::test]
async fn a_session_is_told_more_and_must_answer_in_a_form_as_until_1_11() {
    let server = TestServer::open().await;
    let id = server.start().await;
    let told = server.ok("/agent/prompt", json!({"session_id": id, "extension": "Speak {{ plainly }}."})).await;
    assert_eq!(told, json!({"success": true}));
    let schema = json!({"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]});
    server.ok("/agent/session_config", json!({"session_id": id, "response": {"json_schema": schema}})).await;
    let followed = server.app.services().recipes.recipe_of_session(id.parse().unwrap()).await.unwrap().unwrap();
    assert_eq!(followed.recipe.instructions.as_deref(), Some("Speak {{ plainly }}."));
    // The agent has to hand over its result with a tool that takes this form.
    let calls = json!([[{"tool": "final_output", "args": {"sum": 3}}], [{"text": "done"}]]);
    let events = server.reply(json!({"session_id": id, "user_message": message(calls)})).await;
    assert!(json!(events).to_string().contains("\"structuredContent\":{\"sum\":3}"), "{events:?}");
    let bad = json!({"session_id": id, "response": {"json_schema": 7}});
    assert_eq!(server.post("/agent/session_config", bad).await.0, 400);
    assert_eq!(server.post("/agent/prompt", json!({"session_id": "x", "extension": "y"})).await.0, 404);
}

#[tokio::test]
async fn sub_recipes_are_added_as_until_1_11() {
    let server = TestServer::open().await;
    let id = server.start().await;
    let sub = "title: Sub\ndescription: A part\nprompt: help\n";
    std::fs::write(std::path::Path::new(&server.work()).join("sub.yaml"), sub).unwrap();
    let wanted = json!({"session_id": id, "sub_recipes": [{"name": "part", "path": "sub.yaml"}]});
    assert_eq!(server.ok("/agent/add_sub_recipes", wanted).await["success"], true);
    let services = server.app.services();
    let followed = services.recipes.recipe_of_session(id.parse().unwrap()).await.unwrap().unwrap();
    let (loaded, left_out) = services.recipes.load_sub_recipes(&followed);
    assert_eq!((loaded.len(), left_out), (1, Vec::<String>::new()));
}

#[tokio::test]
async fn sessions_are_renamed_rewound_and_deleted_as_before() {
    let server = TestServer::open().await;
    let id = server.start().await;
    server.reply(json!({"session_id": id, "user_message": said("help")})).await;
    for (route, name) in [("metadata", "first"), ("description", "second")] {
        let path = format!("/sessions/{id}/{route}");
        assert_eq!(server.put(&path, json!({"description": name})).await.0, 200);
        assert_eq!(server.get(&format!("/sessions/{id}")).await.1["name"], name);
        assert_eq!(server.put(&path, json!({"description": "x".repeat(201)})).await.0, 400);
    }
    let edit = |kind: &str| json!({"timestamp": 1, "editType": kind});
    let copy = server.ok(&format!("/sessions/{id}/edit_message"), edit("fork")).await["sessionId"].clone();
    assert_ne!(copy, json!(id));
    assert!(!server.conversation(&id).await.is_empty());
    assert_eq!(server.ok(&format!("/sessions/{id}/edit_message"), edit("edit")).await["sessionId"], json!(id));
    assert!(server.conversation(&id).await.is_empty());
    assert_eq!(server.request(Method::DELETE, &format!("/sessions/{id}/delete")).send().await.unwrap().status(), 200);
    assert_eq!(server.get(&format!("/sessions/{id}")).await.0, 404);
}

#[tokio::test]
async fn what_the_server_knows_is_told_as_before() {
    let server = TestServer::open().await;
    assert_eq!(server.get("/config/current-model").await.1, json!({"model": "demo"}));
    assert_eq!(server.get("/agent/versions").await.1["default_version"], "gander");
    let prices = server.ok("/config/pricing", json!({"configured_only": false})).await;
    assert!(prices["pricing"].as_array().unwrap().iter().any(|price| price["provider"] == "anthropic"), "{prices}");
    let one = server.ok("/config/pricing", json!({"provider": "nobody", "model": "x"})).await;
    assert_eq!(one["pricing"], json!([]));
    let (status, why) = server.post("/context/manage", json!({"messages": [], "manageAction": "summarize"})).await;
    assert_eq!(status, 501);
    assert!(why["message"].as_str().unwrap().contains("/compact"), "{why}");
    let (status, why) = server.post("/tool_result", json!({"id": "t1", "result": Value::Null})).await;
    assert_eq!(status, 404, "{why}");
}
