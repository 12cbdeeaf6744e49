//! What goose's clients say in passing: modes, parameters of the model, extensions of one session, prompt templates.

use gander_domain::Principal;
use serde_json::{Value, json};

use crate::goose_rest::test_server::{TestServer, message, said};
use crate::served::pipe;

#[tokio::test]
async fn an_unknown_mode_of_a_reply_is_refused_with_the_list() {
    let server = TestServer::open().await;
    let id = server.start().await;
    let wanted = |mode: &str| json!({"session_id": id, "user_message": said("help"), "mode": mode});
    let (status, refused) = server.post("/reply", wanted("dance")).await;
    let text = refused["message"].as_str().unwrap();
    assert_eq!(status, 404, "{refused}");
    for known in ["dance", "assistant", "planner", "recipe_maker", "backend", "plan"] {
        assert!(text.contains(known), "{known}: {text}");
    }
    assert!(server.conversation(&id).await.is_empty(), "nothing of a refused prompt is carried out");
    server.reply(wanted("plan")).await;
    assert_eq!(server.get(&format!("/sessions/{id}")).await.1["mode_slug"], "planner");
}

#[tokio::test]
async fn a_list_says_of_mode_and_tokens_what_the_session_says() {
    let server = TestServer::open().await;
    let id = server.start().await;
    server.ok("/agent/update_session", json!({"session_id": id, "goose_mode": "chat"})).await;
    let script = json!([[{"text": "hi", "usage": {"input": 30, "output": 4}}]]);
    server.reply(json!({"session_id": id, "user_message": message(script.clone())})).await;
    assert_listed_as_shown(&server, &id).await;
    // The same from another protocol, and after the conversation was cleared.
    let mut editor = pipe::client(&server.app, Principal::owner()).await;
    editor.load(&id, std::path::Path::new(&server.work())).await.unwrap();
    editor.turn(&id, &format!("[[script:{script}]]")).await.unwrap();
    let twice = assert_listed_as_shown(&server, &id).await;
    assert_eq!((&twice["goose_mode"], &twice["accumulated_total_tokens"]), (&json!("chat"), &json!(68)), "{twice}");
    server.ok(&format!("/sessions/{id}/clear"), Value::Null).await;
    assert_eq!(assert_listed_as_shown(&server, &id).await["accumulated_total_tokens"], 0);
    assert_eq!(server.get("/sessions/insights").await.1["totalTokens"], 0);
}

async fn assert_listed_as_shown(server: &TestServer, id: &str) -> Value {
    let shown = server.get(&format!("/sessions/{id}")).await.1;
    let listed = server.get("/sessions").await.1["sessions"].as_array().unwrap().clone();
    let listed = listed.into_iter().find(|session| session["id"] == *id).unwrap();
    let found = server.get("/sessions").await.1;
    assert!(found["sessions"].is_array());
    for field in [
        "goose_mode",
        "total_tokens",
        "input_tokens",
        "output_tokens",
        "accumulated_total_tokens",
        "accumulated_input_tokens",
        "accumulated_output_tokens",
        "accumulated_cost",
    ] {
        assert_eq!(listed[field], shown[field], "{field}");
    }
    listed
}

#[tokio::test]
async fn parameters_of_the_model_are_kept_and_shown() {
    let server = TestServer::open().await;
    let id = server.start().await;
    let update = |more: Value| {
        let mut body = json!({"session_id": id, "provider": "demo", "model": "demo"});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        body
    };
    let given = json!({"context_limit": 9_000, "request_params": {"top_p": 0.5}});
    server.ok("/agent/update_provider", update(given)).await;
    let config = server.get(&format!("/sessions/{id}")).await.1["model_config"].clone();
    assert_eq!(
        (&config["context_limit"], &config["request_params"]),
        (&json!(9_000), &json!({"top_p": 0.5})),
        "{config}"
    );
    let export = server.get(&format!("/sessions/{id}/export")).await.1;
    assert!(export.as_str().unwrap().contains("top_p"), "{export}");
    server.ok("/agent/update_provider", update(json!({}))).await;
    assert_eq!(server.get(&format!("/sessions/{id}")).await.1["model_config"]["request_params"], Value::Null);
    assert_eq!(server.post("/agent/update_provider", update(json!({"context_limit": 0}))).await.0, 400);
    let large = json!({"request_params": {"x": "y".repeat(20_000)}});
    assert_eq!(server.post("/agent/update_provider", update(large)).await.0, 400);
}

#[tokio::test]
async fn extension_overrides_add_and_remove() {
    let server = TestServer::open().await;
    let extensions = async |overrides: Value| {
        let body = json!({"working_dir": server.work(), "extension_overrides": overrides});
        let id = server.ok("/agent/start", body).await["id"].as_str().unwrap().to_owned();
        let there = server.get(&format!("/sessions/{id}/extensions")).await.1["extensions"].clone();
        let names = there.as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap().to_owned());
        (names.collect::<Vec<_>>(), server.get(&format!("/agent/tools?session_id={id}")).await.1)
    };
    let (usual, tools) = extensions(Value::Null).await;
    assert!(usual.len() > 2 && !usual.contains(&"memory".to_owned()), "{usual:?}");
    assert!(tools.to_string().contains("\"shell\""), "{tools}");
    let platform = |name: &str| json!({"type": "platform", "name": name});
    let (changed, tools) = extensions(json!([platform("todo"), platform("memory")])).await;
    assert_eq!(changed, ["todo", "memory"]);
    assert!(!tools.to_string().contains("\"shell\"") && tools.to_string().contains("memory__"), "{tools}");
    assert!(extensions(json!([])).await.0.is_empty());
}

#[tokio::test]
async fn a_recipe_of_a_session_runs() {
    let server = TestServer::open().await;
    let id = server.start().await;
    let asked = "look at https://example.com/a since 2026-01-31";
    server.reply(json!({"session_id": id, "user_message": said(asked)})).await;
    server.reply(json!({"session_id": id, "user_message": said("and then thought")})).await;
    let (status, made) = server.post(&format!("/sessions/{id}/recipe"), Value::Null).await;
    assert_eq!((status, &made["written_by"]), (200, &json!("mechanical")), "{made}");
    let recipe = &made["recipe"];
    assert_eq!(recipe["prompt"], "look at {{ url }} since {{ day }}");
    assert_eq!(recipe["parameters"][0]["default"], "https://example.com/a");
    assert_eq!(recipe["activities"], json!(["and then thought"]));
    assert_eq!(
        (&recipe["settings"]["goose_provider"], &recipe["settings"]["goose_model"]),
        (&json!("demo"), &json!("demo"))
    );
    assert!(recipe["extensions"].to_string().contains("\"developer\""), "{recipe}");
    assert!(!recipe["instructions"].as_str().unwrap().is_empty());
    assert_recipe_runs(&server, recipe).await;
    let listed = server.get("/sessions").await.1["sessions"].clone();
    assert!(!listed.to_string().contains("Write the recipe"), "{listed}");
}

#[tokio::test]
async fn a_recipe_of_a_session_is_written_by_the_mode_that_writes_recipes() {
    let server = TestServer::open().await;
    let id = server.start().await;
    // The demo model says what the conversation that it is shown says.
    let yaml = "```yaml\ntitle: Look\ndescription: Looks at a file\nprompt: look at {{ file }}\nparameters:\n\
                - key: file\n  input_type: string\n  requirement: optional\n  default: a.txt\n```";
    server.reply(json!({"session_id": id, "user_message": message(json!([[{"text": yaml}]]))})).await;
    let made = server.ok("/recipes/create", json!({"session_id": id, "author": {"contact": "anna"}})).await;
    assert_eq!(made["written_by"], "recipe_maker", "{made}");
    let recipe = &made["recipe"];
    assert_eq!((&recipe["title"], &recipe["author"]["contact"]), (&json!("Look"), &json!("anna")));
    assert_eq!(recipe["settings"]["goose_model"], "demo");
    assert_recipe_runs(&server, recipe).await;
    let mut editor = pipe::client(&server.app, Principal::owner()).await;
    let made = editor.call("_goose/unstable/recipes/create", json!({"sessionId": id})).await.unwrap();
    assert_eq!((&made["written_by"], &made["recipe"]["title"]), (&json!("recipe_maker"), &json!("Look")));
}

async fn assert_recipe_runs(server: &TestServer, recipe: &Value) {
    let parsed = server.ok("/recipes/parse", json!({"content": recipe.to_string()})).await;
    assert_eq!(parsed["recipe"]["title"], recipe["title"]);
    let session = server.ok("/agent/start", json!({"working_dir": server.work(), "recipe": recipe})).await;
    let id = session["id"].as_str().unwrap();
    let events = server.reply(json!({"session_id": id, "user_message": said("help")})).await;
    assert_eq!(events.last().unwrap()["type"], "Finish", "{events:?}");
}

#[tokio::test]
async fn the_category_of_a_mode_is_visible_wherever_modes_are_listed() {
    let server = TestServer::open().await;
    let mut editor = pipe::client(&server.app, Principal::owner()).await;
    let opened = editor.call("session/new", json!({"cwd": server.work(), "mcpServers": []})).await.unwrap();
    let mode = |modes: &Value, field: &str, name: &str| {
        modes.as_array().unwrap().iter().find(|mode| mode[field] == name).unwrap().clone()
    };
    assert_eq!(mode(&opened["modes"]["availableModes"], "id", "planner")["_meta"]["category"], "prompt_only");
    let option = mode(&opened["configOptions"], "id", "mode");
    assert_eq!(mode(&option["options"], "value", "judge")["_meta"]["category"], "llm_only");
    let catalog = editor.call("_gander/catalog", json!({"cwd": server.work()})).await.unwrap();
    assert_eq!(mode(&catalog["modes"], "name", "assistant")["category"], "session");
    let agents = server.get("/agents?limit=100").await.1["agents"].clone();
    let shown = &mode(&agents, "name", "recipe-maker")["metadata"]["annotations"]["gander"]["modes"];
    assert_eq!(shown, &json!({"recipe_maker": "prompt_only"}));
    let card = server.get("/.well-known/agent-card.json").await.1;
    let tags = mode(&card["skills"], "id", "app_maker")["tags"].clone();
    assert!(tags.as_array().unwrap().contains(&json!("llm_only")), "{card}");
    let apps = server.get("/list-apps?detailed=true").await.1["apps"].clone();
    assert_eq!(mode(&apps, "name", "planner")["modes"], json!({"planner": "prompt_only"}));
}
