//! Every route besides the chat: the shape of its answer, and that its effect is there.

use reqwest::Method;
use serde_json::{Value, json};

use crate::goose_rest::test_server::{TestServer, message, said};

/// Keys that a session has in every version from 1.10 to 1.39, and those that adk2goose reads.
const SESSION: [&str; 27] = [
    "id",
    "working_dir",
    "name",
    "user_set_name",
    "session_type",
    "created_at",
    "updated_at",
    "extension_data",
    "total_tokens",
    "input_tokens",
    "output_tokens",
    "accumulated_total_tokens",
    "accumulated_input_tokens",
    "accumulated_output_tokens",
    "accumulated_cost",
    "schedule_id",
    "recipe",
    "user_recipe_values",
    "conversation",
    "message_count",
    "provider_name",
    "model_config",
    "goose_mode",
    "archived_at",
    "project_id",
    "path",
    "modified",
];

fn recipe() -> Value {
    json!({"version": "1.0.0", "title": "Say Hi", "description": "says hi", "instructions": "Greet {{ who }}.",
           "prompt": "go", "settings": {"goose_provider": "demo", "goose_model": "demo"},
           "parameters": [{"key": "who", "input_type": "string", "requirement": "required", "description": "whom"}]})
}

fn exported() -> String {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../interop/data/goose-1.52-export.json");
    std::fs::read_to_string(path).unwrap()
}

#[tokio::test]
async fn a_session_from_start_to_end() {
    let server = TestServer::open().await;
    let started = server.ok("/agent/start", json!({"working_dir": server.work()})).await;
    let keys = started.as_object().unwrap();
    assert!(SESSION.iter().all(|key| keys.contains_key(*key)), "{started}");
    let id = started["id"].as_str().unwrap().to_owned();
    assert_eq!((&started["name"], &started["provider_name"]), (&json!("New Chat"), &json!("demo")));
    server.reply(json!({"session_id": id, "user_message": message(json!([[{"text": "hello"}]]))})).await;
    assert_eq!(server.put(&format!("/sessions/{id}/name"), json!({"name": "Named"})).await.0, 200);
    let (_, listed) = server.get("/sessions").await;
    let entry = &listed["sessions"][0];
    assert_eq!((&entry["name"], &entry["message_count"]), (&json!("Named"), &json!(2)));
    assert_eq!(entry["metadata"], json!({"working_dir": server.work(), "description": "Named", "message_count": 2}));
    let (_, shown) = server.get(&format!("/sessions/{id}")).await;
    assert_eq!((&shown["id"], shown["conversation"].as_array().unwrap().len()), (&json!(id), 2));
    let resumed = server.ok("/agent/resume", json!({"session_id": id, "load_model_and_extensions": true})).await;
    assert_eq!(resumed["session"]["conversation"].as_array().unwrap().len(), 2);
    assert_eq!(server.get("/sessions/search?query=named").await.1[0]["id"], id.as_str());
    assert_eq!(server.get("/sessions/search?query=nothing").await.1, json!([]));
    let (_, insights) = server.get("/sessions/insights").await;
    assert_eq!((&insights["totalSessions"], insights["totalTokens"].as_u64() > Some(0)), (&json!(1), true));
    assert_eq!(server.get(&format!("/sessions/{id}/extensions")).await.1["extensions"][0]["name"], "developer");
    assert_eq!(server.ok("/agent/restart", json!({"session_id": id})).await, json!({"extension_results": []}));
    assert_eq!(server.post("/agent/stop", json!({"session_id": id})).await.0, 200);
    assert_eq!(server.delete(&format!("/sessions/{id}")).await.0, 200);
    assert_eq!(server.delete(&format!("/sessions/{id}")).await.0, 404);
    assert_eq!(server.get(&format!("/sessions/{id}/export")).await.0, 404);
}

#[tokio::test]
async fn a_file_of_goose_goes_in_and_comes_out() {
    let server = TestServer::open().await;
    let text = exported();
    let file: Value = serde_json::from_str(&text).unwrap();
    let made = server.ok("/sessions/import", json!({"json": text})).await;
    assert_eq!((&made["name"], &made["conversation"]), (&json!("demo"), &file["conversation"]));
    let id = made["id"].as_str().unwrap();
    let private = server.config.paths.scratch_folder().join(id);
    assert_eq!(made["working_dir"].as_str(), private.to_str(), "a file does not choose where an agent works");
    assert_eq!(json!(server.conversation(id).await), file["conversation"]);
    let told = server.reply(json!({"session_id": id, "user_message": message(json!([[{"text": "on"}]]))})).await;
    assert_eq!(crate::goose_rest::test_server::text(&told), "on", "it can be gone on with");
}

/// Back to before a second, in the session itself or in a copy.
#[tokio::test]
async fn forks() {
    let server = TestServer::open().await;
    let made = server.ok("/sessions/import", json!({"json": exported()})).await;
    let (id, all) = (made["id"].as_str().unwrap(), made["conversation"].as_array().unwrap());
    let path = format!("/sessions/{id}/fork");
    let second = all[1]["created"].clone();
    let (_, copy) = server.post(&path, json!({"timestamp": second, "truncate": true, "copy": true})).await;
    let copy = copy["sessionId"].as_str().unwrap().to_owned();
    assert_ne!(copy, id);
    assert_eq!(server.conversation(&copy).await, all[..1]);
    assert_eq!(server.conversation(id).await, *all);
    let (_, whole) = server.post(&path, json!({"truncate": false, "copy": true})).await;
    assert_eq!(server.conversation(whole["sessionId"].as_str().unwrap()).await, *all);
    let (_, same) = server.post(&path, json!({"timestamp": second, "truncate": true, "copy": false})).await;
    assert_eq!(same, json!({"sessionId": id}));
    assert_eq!(server.conversation(id).await, all[..1]);
    assert_eq!(server.post(&path, json!({"truncate": false, "copy": false})).await.0, 400);
}

#[tokio::test]
async fn what_a_session_uses_can_be_changed() {
    let server = TestServer::open().await;
    let id = server.start().await;
    let (status, _) =
        server.post("/agent/update_provider", json!({"session_id": id, "provider": "openai", "model": "m"})).await;
    assert_eq!(status, 200);
    server.post("/agent/update_session", json!({"session_id": id, "goose_mode": "approve"})).await;
    let session = server.ok("/agent/resume", json!({"session_id": id})).await["session"].clone();
    assert_eq!(
        (&session["provider_name"], &session["model_config"]["model_name"], &session["goose_mode"]),
        (&json!("openai"), &json!("m"), &json!("approve"))
    );
    let nobody = json!({"session_id": id, "provider": "nobody"});
    assert_eq!(server.post("/agent/update_provider", nobody).await.0, 400);
    assert_eq!(server.post("/agent/update_session", json!({"session_id": id, "goose_mode": "wild"})).await.0, 400);
    assert_eq!(server.post("/agent/update_from_session", json!({"session_id": id})).await.0, 200);
    let same = json!({"session_id": id, "working_dir": server.work()});
    assert_eq!(server.post("/agent/update_working_dir", same).await.0, 200);
    assert_eq!(server.post("/agent/update_working_dir", json!({"session_id": id, "working_dir": "/"})).await.0, 501);
    let (_, tools) = server.get(&format!("/agent/tools?session_id={id}")).await;
    let shell = tools.as_array().unwrap().iter().find(|tool| tool["name"] == "shell").unwrap();
    assert!(shell["parameters"].as_array().unwrap().contains(&json!("command")), "{shell}");
    assert_eq!(server.get(&format!("/agent/tools?session_id={id}&extension_name=other")).await.1, json!([]));
    let builtin = json!({"session_id": id, "config": {"type": "builtin", "name": "developer"}});
    assert_eq!(server.post("/agent/add_extension", builtin.clone()).await.0, 200);
    assert_eq!(server.post("/agent/extensions", builtin).await.0, 200);
    let program = json!({"session_id": id, "config": {"type": "stdio", "name": "x", "cmd": "sh"}});
    assert_eq!(server.post("/agent/add_extension", program).await.0, 403);
    assert_eq!(server.post("/agent/remove_extension", json!({"session_id": id, "name": "x"})).await.0, 200);
}

#[tokio::test]
async fn extensions_come_and_go() {
    let server = TestServer::with(&[("GANDER_SERVER_ALLOW_REMOTE_COMMANDS", "true")]).await;
    let started = server.ok("/agent/start", json!({"working_dir": server.work()})).await;
    let id = started["id"].as_str().unwrap();
    let files = json!({"type": "stdio", "name": "files", "cmd": "/no/such/program", "envs": {"KEY": "hush-hush-hush"}});
    server.post("/agent/add_extension", json!({"session_id": id, "config": files})).await;
    let names = |listed: Value| -> Vec<String> {
        let all = listed["extensions"].as_array().unwrap().clone();
        all.iter().map(|extension| extension["name"].as_str().unwrap().to_owned()).collect()
    };
    let listed = server.get(&format!("/sessions/{id}/extensions")).await.1;
    assert!(!listed.to_string().contains("hush-hush-hush"), "{listed}");
    let usual = ["developer", "todo", "skills", "apps", "summon"];
    let and = |more: &str| -> Vec<String> { usual.iter().chain([&more]).map(|name| (*name).to_owned()).collect() };
    assert_eq!(names(listed), and("files"));
    assert_eq!(server.post("/agent/remove_extension", json!({"session_id": id, "name": "files"})).await.0, 200);
    assert_eq!(names(server.get(&format!("/sessions/{id}/extensions")).await.1), usual);
    let web = json!({"name": "web", "enabled": true, "config": {"type": "streamable_http", "uri": "https://example.org/mcp"}});
    assert_eq!(server.post("/config/extensions", web).await.0, 200);
    assert_eq!(names(server.get("/config/extensions").await.1).split_off(5), ["memory", "web"]);
    assert_eq!(names(server.get(&format!("/sessions/{id}/extensions")).await.1), and("web"));
    let switches = |listed: Value| listed["extensions"].as_array().unwrap().last().unwrap()["enabled"].clone();
    let off = json!({"name": "web", "enabled": false, "config": {}});
    assert_eq!(server.post("/config/extensions", off).await.0, 200);
    assert_eq!(switches(server.get("/config/extensions").await.1), json!(false), "it stays in the list");
    assert_eq!(names(server.get(&format!("/sessions/{id}/extensions")).await.1), usual, "and is not used");
    let on = json!({"name": "web", "enabled": true, "config": {"type": "streamable_http", "uri": "https://example.org/mcp"}});
    assert_eq!(server.post("/config/extensions", on).await.0, 200);
    assert_eq!(switches(server.get("/config/extensions").await.1), json!(true));
    let none = json!({"name": "computercontroller", "enabled": true, "config": {"type": "builtin"}});
    let (status, said) = server.post("/config/extensions", none).await;
    assert_eq!(status, 400);
    assert!(said.to_string().contains("developer runs commands and fetches pages"), "{said}");
    assert_eq!(server.delete("/config/extensions/web").await.0, 200);
    assert_eq!(server.delete("/config/extensions/web").await.0, 404);
    assert_eq!(names(server.get("/config/extensions").await.1).split_off(5), ["memory"]);
    let old = json!({"name": "old", "config": {"type": "sse", "uri": "https://example.org/sse"}});
    assert_eq!(server.post("/config/extensions", old).await.0, 400);
}

#[tokio::test]
async fn settings_are_kept_and_hold_for_new_sessions() {
    let server = TestServer::open().await;
    assert_eq!(server.get("/config").await.1["config"]["GOOSE_PROVIDER"], "demo");
    server.ok("/config/upsert", json!({"key": "GOOSE_MODE", "value": "chat", "is_secret": false})).await;
    assert_eq!(server.ok("/config/read", json!({"key": "GOOSE_MODE", "is_secret": false})).await, "chat");
    assert_eq!(server.ok("/config/read", json!({"key": "UNSET", "is_secret": false})).await, Value::Null);
    assert_eq!(server.post("/config/set_provider", json!({"provider": "openai", "model": "gpt-4o"})).await.0, 200);
    let session = server.ok("/agent/start", json!({"working_dir": server.work()})).await;
    assert_eq!((&session["goose_mode"], &session["provider_name"]), (&json!("chat"), &json!("openai")));
    assert_eq!(server.post("/config/remove", json!({"key": "GOOSE_MODE"})).await.0, 200);
    assert_eq!(server.post("/config/remove", json!({"key": "GOOSE_MODE"})).await.0, 404);
    let secret = json!({"key": "OPENAI_API_KEY", "value": "sk-1", "is_secret": true});
    assert_eq!(server.post("/config/upsert", secret).await.0, 403, "a key is not stored");
    assert_eq!(server.ok("/config/read", json!({"key": "OPENAI_API_KEY", "is_secret": true})).await, Value::Null);
}

#[tokio::test]
async fn providers_and_models() {
    let server = TestServer::with(&[("OPENAI_API_KEY", "sk-of-no-worth")]).await;
    let (_, providers) = server.get("/config/providers").await;
    let openai = providers.as_array().unwrap().iter().find(|known| known["name"] == "openai").unwrap();
    assert_eq!(
        (&openai["is_configured"], &openai["metadata"]["config_keys"][0]["secret"]),
        (&json!(true), &json!(true))
    );
    assert!(!providers.to_string().contains("sk-of-no-worth"));
    let masked = server.ok("/config/read", json!({"key": "OPENAI_API_KEY", "is_secret": true})).await;
    assert_eq!(masked, json!({"maskedValue": "***"}));
    let (_, models) = server.get("/config/providers/openai/models").await;
    assert!(!models.as_array().unwrap().is_empty());
    assert_eq!(server.get("/config/providers/nobody/models").await.0, 400);
    let info = server.ok("/config/providers/openai/model-info", json!({"model": "gpt-4o"})).await;
    assert!(info["context_limit"].as_u64() > Some(0), "{info}");
    let info = server.ok("/config/canonical-model-info", json!({"provider": "openai", "model": "gpt-4o"})).await;
    assert_eq!(info["model_info"]["provider"], "openai");
    assert!(server.get("/config/provider-catalog").await.1.as_array().unwrap().len() > 5);
    assert_eq!(server.get("/config/provider-catalog/openai").await.1["id"], "openai");
    assert_eq!(server.get("/config/provider-catalog/nobody").await.0, 404);
    assert_eq!(server.post("/config/check_provider", json!({"provider": "openai"})).await.0, 200);
    assert_eq!(server.post("/config/check_provider", json!({"provider": "anthropic"})).await.0, 400);
}

#[tokio::test]
async fn recipes_are_kept_linked_and_started() {
    let server = TestServer::open().await;
    let saved = server.ok("/recipes/save", json!({"recipe": recipe()})).await;
    assert_eq!(saved["id"], "say-hi");
    server.post("/recipes/slash-command", json!({"id": "say-hi", "slash_command": "hi"})).await;
    let (_, listed) = server.get("/recipes/list").await;
    assert_eq!(
        (&listed["manifests"][0]["recipe"], &listed["manifests"][0]["slash_command"]),
        (&recipe(), &json!("hi"))
    );
    let (_, commands) = server.get("/config/slash_commands?working_dir=/").await;
    assert!(
        commands["commands"].as_array().unwrap().iter().any(|c| c["command"] == "hi" && c["command_type"] == "Recipe")
    );
    let link = server.ok("/recipes/encode", json!({"recipe": recipe()})).await;
    assert_eq!(server.ok("/recipes/decode", link.clone()).await, json!({"recipe": recipe()}));
    assert_eq!(server.post("/recipes/decode", json!({"deeplink": "%%"})).await.0, 400);
    assert_eq!(server.ok("/recipes/scan", json!({"recipe": recipe()})).await, json!({"has_security_warnings": false}));
    let parsed = server.ok("/recipes/parse", json!({"content": recipe().to_string()})).await;
    assert_eq!(parsed, json!({"recipe": recipe()}));
    assert_eq!(server.post("/recipes/parse", json!({"content": "{}"})).await.0, 400);
    for how in
        [json!({"recipe_id": "say-hi"}), json!({"recipe_deeplink": link["deeplink"]}), json!({"recipe": recipe()})]
    {
        let mut body = how.clone();
        body["working_dir"] = json!(server.work());
        let session = server.ok("/agent/start", body).await;
        let id = session["id"].as_str().unwrap();
        let values = json!({"userRecipeValues": {"who": "Anna"}});
        let (_, filled) = server.put(&format!("/sessions/{id}/user_recipe_values"), values).await;
        assert_eq!(filled["recipe"]["instructions"], "Greet Anna.");
        server.reply(json!({"session_id": id, "user_message": said("help")})).await;
        let first = server.conversation(id).await[0].clone();
        assert_eq!(first["content"][0]["text"], "help", "{first}");
        assert_eq!(server.get(&format!("/sessions/{id}")).await.1["name"], "Say Hi");
    }
    assert_eq!(server.post("/recipes/delete", json!({"id": "say-hi"})).await.0, 204);
    assert_eq!(server.post("/recipes/delete", json!({"id": "say-hi"})).await.0, 404);
}

#[tokio::test]
async fn a_recipe_from_a_session() {
    let server = TestServer::open().await;
    let id = server.start().await;
    assert_eq!(server.post(&format!("/sessions/{id}/recipe"), Value::Null).await.0, 412);
    server.reply(json!({"session_id": id, "user_message": said("help me\nplease")})).await;
    for made in [
        server.ok("/recipes/create", json!({"session_id": id, "author": {"contact": "anna"}})).await,
        server.post(&format!("/sessions/{id}/recipe"), Value::Null).await.1,
    ] {
        assert_eq!((&made["recipe"]["prompt"], &made["error"]), (&json!("help me\nplease"), &Value::Null));
    }
}

#[tokio::test]
async fn apps_prompts_and_added_messages() {
    let server = TestServer::open().await;
    let page = "<html><head><title>Clock</title></head></html>";
    assert_eq!(server.post("/agent/import_app", json!({"html": page})).await.0, 201);
    assert_eq!(server.get("/agent/list_apps").await.1["apps"][0]["name"], "Clock");
    let exported = server.request(Method::GET, "/agent/export_app/Clock").send().await.unwrap();
    assert_eq!(exported.headers()["content-security-policy"], "sandbox");
    assert_eq!(exported.text().await.unwrap(), page);
    assert_eq!(server.get("/agent/export_app/Nothing").await.0, 404);
    assert_eq!(server.post("/agent/import_app", json!({"html": "no title"})).await.0, 400);
    server.ok("/agent/prompts", json!({"name": "greet", "content": "Hello {{ who }}"})).await;
    let filled = server.ok("/agent/prompts", json!({"name": "greet", "arguments": {"who": "Anna"}})).await;
    assert_eq!(filled["content"], "Hello Anna");
    assert_eq!(server.get("/agent/prompts").await.1["prompts"][0]["name"], "greet");
    let id = server.start().await;
    assert_eq!(server.post(&format!("/sessions/{id}/messages"), said("noted")).await.0, 200);
    assert_eq!(server.conversation(&id).await[0]["content"][0]["text"], "noted");
}

#[tokio::test]
async fn what_is_small_and_what_is_not_here() {
    let server = TestServer::open().await;
    assert_eq!(server.get("/status").await.1, "ok");
    assert!(server.get("/features").await.1["features"].is_object());
    assert_eq!(
        server.get("/system_info").await.1["enabled_extensions"],
        json!(["developer", "todo", "skills", "apps", "summon"])
    );
    assert_eq!(server.get("/config/validate").await.0, 200);
    assert_eq!(server.get("/config/extensions").await.1["extensions"][0]["enabled"], json!(true));
    assert_eq!(server.get("/config/prompts").await.1, json!({"prompts": []}));
    assert_eq!(server.get("/schedule/list").await.1, json!({"jobs": []}));
    assert_eq!(server.post("/telemetry/event", json!({"event_name": "x"})).await.0, 202);
    for path in ["/tunnel/status", "/dictation/config", "/local-inference/models", "/diagnostics/x"] {
        assert_eq!(server.get(path).await.0, 501, "{path}");
    }
    for path in ["/agent/set_container", "/sessions/import/nostr"] {
        assert_eq!(server.post(path, json!({})).await.0, 501, "{path}");
    }
    assert_eq!(server.get("/gateway/status").await.0, 404);
}
