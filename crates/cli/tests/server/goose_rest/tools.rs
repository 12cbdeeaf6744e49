//! Tools and resources of MCP servers, used without the agent.

use gander_mcp::{Spec, Transport};
use gander_testkit::mcp::command;
use serde_json::json;

use crate::goose_rest::test_server::TestServer;

async fn session(server: &TestServer) -> String {
    let id = server.start().await;
    let (program, args, env) = command("server", "good");
    let transport = Transport::Stdio { command: program.into(), args, env };
    let spec = Spec::new("script".to_owned(), transport);
    let services = server.app.services();
    let view = services.hub.session_view(id.parse().unwrap()).await.unwrap();
    services.extensions.attach_session(&view, vec![spec]);
    id
}

#[tokio::test]
async fn a_tool_of_an_extension_is_called_without_the_agent() {
    let server = TestServer::open().await;
    let id = session(&server).await;
    let call =
        |name: &str, arguments: serde_json::Value| json!({"session_id": id, "name": name, "arguments": arguments});
    let result = server.ok("/agent/call_tool", call("script__echo", json!({"text": "it works"}))).await;
    assert_eq!(result["isError"], false, "{result}");
    assert!(result["content"].to_string().contains("it works"), "{result}");
    assert_eq!(server.post("/agent/call_tool", call("shell", json!({"command": "true"}))).await.0, 403);
    assert_eq!(server.post("/agent/call_tool", call("script__nothing", json!({}))).await.0, 404);
    let unknown = json!({"session_id": "x", "name": "script__echo", "arguments": {}});
    assert_eq!(server.post("/agent/call_tool", unknown).await.0, 404);
    assert_eq!(server.post("/agent/call_tool", json!({"session_id": id})).await.0, 422);
}

#[tokio::test]
async fn a_resource_of_an_extension_is_read() {
    let server = TestServer::open().await;
    let id = session(&server).await;
    let wanted = json!({"session_id": id, "extension_name": "script", "uri": "note://one"});
    let read = server.ok("/agent/read_resource", wanted).await;
    assert_eq!((&read["uri"], &read["text"]), (&json!("note://one"), &json!("the first note")));
}

#[tokio::test]
async fn a_resource_of_no_extension_is_not_found() {
    let server = TestServer::open().await;
    let id = session(&server).await;
    let wanted = json!({"session_id": id, "extension_name": "nobody", "uri": "note://one"});
    assert_eq!(server.post("/agent/read_resource", wanted).await.0, 404);
}

#[tokio::test]
async fn prompt_templates_of_extensions_are_listed_and_filled_in_by_their_server() {
    let server = TestServer::open().await;
    let id = session(&server).await;
    server.ok("/agent/prompts", json!({"name": "mine", "content": "Dear {{ who }}"})).await;
    let (_, listed) = server.get(&format!("/agent/prompts?session_id={id}")).await;
    let names: Vec<&str> =
        listed["prompts"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["mine", "greet"]);
    let offered = &listed["prompts"][1];
    assert_eq!((&offered["extension"], &offered["arguments"][0]["name"]), (&json!("script"), &json!("who")));
    assert_eq!(offered["arguments"][0]["required"], true);
    for name in ["greet", "script:greet"] {
        let wanted = json!({"session_id": id, "name": name, "arguments": {"who": "Anna"}});
        let filled = server.ok("/agent/prompts", wanted).await;
        assert_eq!(filled["content"], "Greet Anna warmly.", "{filled}");
        assert_eq!(filled["messages"][0]["role"], "user");
    }
    let stored = json!({"session_id": id, "name": "mine", "arguments": {"who": "Anna"}});
    assert_eq!(server.ok("/agent/prompts", stored).await["content"], "Dear Anna");
    let (status, refused) = server.post("/agent/prompts", json!({"session_id": id, "name": "greet"})).await;
    assert_eq!(status, 400);
    assert!(refused["message"].as_str().unwrap().contains("who"), "{refused}");
    assert_eq!(server.post("/agent/prompts", json!({"session_id": id, "name": "nothing"})).await.0, 404);
    assert_eq!(server.get("/agent/prompts?session_id=x").await.0, 404);
}
