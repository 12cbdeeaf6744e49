//! For each of the fifteen modes: every protocol lists it, selects it and reports it identically.

use gander_testkit::harness::Client;
use serde_json::{Value, json};

use crate::modes::test_server::{TestServer, run, says};

/// Agent, mode, and what people read.
const MODES: [(&str, &str, &str); 15] = [
    ("gander", "assistant", "Assistant"),
    ("gander", "specialist", "Specialist"),
    ("gander", "recipe_maker", "Recipe Maker"),
    ("gander", "app_maker", "App Maker"),
    ("gander", "app_iterator", "App Iterator"),
    ("gander", "judge", "Judge"),
    ("gander", "planner", "Planner"),
    ("coding", "pm", "Product Manager"),
    ("coding", "architect", "Architect"),
    ("coding", "backend", "Backend Engineer"),
    ("coding", "frontend", "Frontend Engineer"),
    ("coding", "qa", "Quality Assurance"),
    ("coding", "security", "Security Champion"),
    ("coding", "sre", "SRE"),
    ("coding", "devsecops", "DevSecOps"),
];

/// What is not the mode under test, so that a change is one.
fn another(mode: &str) -> &'static str {
    if mode == "qa" { "judge" } else { "qa" }
}

/// What every door reports about a session.
async fn is_reported(server: &TestServer, session: &str, (agent, mode, title): (&str, &str, &str)) {
    let settings = server.settings(session).await;
    assert_eq!((settings.agent.as_str(), settings.mode.as_str()), (agent, mode));
    let object = server.get(&format!("/sessions/{session}")).await;
    assert_eq!((object["agent_name"].as_str(), object["mode_slug"].as_str()), (Some(agent), Some(mode)), "goose");
    assert!(is_adk_session(server, mode, session).await, "ADK");
    let mut editor = server.editor().await;
    let params = json!({ "sessionId": session, "cwd": server.work(), "mcpServers": [] });
    let loaded = editor.call("session/load", params).await.unwrap();
    assert_eq!(loaded["modes"]["currentModeId"], mode, "ACP");
    let options = loaded["configOptions"].as_array().unwrap();
    let option = options.iter().find(|option| option["id"] == "mode").unwrap();
    assert_eq!(option["currentValue"], mode, "ACP config option");
    for list in [&loaded["modes"]["availableModes"], &option["options"]] {
        let id = if list[0].get("id").is_some() { "id" } else { "value" };
        let listed = list.as_array().unwrap().iter().find(|listed| listed[id] == mode);
        assert_eq!(listed.unwrap_or_else(|| panic!("{mode} is not listed"))["name"], title);
        assert!(list.as_array().unwrap().len() >= 15);
    }
}

/// True if ADK lists this session among those of the app.
async fn is_adk_session(server: &TestServer, app: &str, session: &str) -> bool {
    let listed = server.get(&format!("/apps/{app}/users/user/sessions")).await;
    let mut listed = listed.as_array().unwrap().iter();
    listed.any(|listed| listed["id"] == session && listed["appName"] == app)
}

#[tokio::test]
async fn acp_rest_lists_selects_and_reports() {
    let server = TestServer::open().await;
    let list = server.get("/agents").await;
    let names: Vec<&str> =
        list["agents"].as_array().unwrap().iter().filter_map(|agent| agent["name"].as_str()).collect();
    assert_eq!(&names[..2], ["gander", "coding"]);
    for row @ (_, mode, title) in MODES {
        let label = mode.replace('_', "-");
        assert_eq!(names.iter().filter(|name| **name == label).count(), 1, "{label}");
        for spelling in [mode, &label] {
            let found = server.get(&format!("/agents/{spelling}")).await;
            assert_eq!(found["name"], *spelling);
            assert_eq!(found["metadata"]["annotations"]["beeai_ui"]["display_name"], title);
        }
        let ran = run(&server, &label, None, &says("hello")).await;
        assert_eq!((&ran["status"], &ran["agent_name"]), (&json!("completed"), &json!(label)));
        let session = ran["session_id"].as_str().unwrap();
        is_reported(&server, session, row).await;
        run(&server, another(mode), Some(session), &says("else")).await;
        assert_eq!(server.settings(session).await.mode, another(mode));
        run(&server, mode, Some(session), &says("again")).await;
        is_reported(&server, session, row).await;
    }
    let (status, refused) = server.send(reqwest::Method::GET, "/agents/Backend", None).await;
    assert_eq!((status, &refused["code"]), (404, &json!("not_found")));
}

#[tokio::test]
async fn an_agents_name_leaves_its_sessions_in_their_mode() {
    let server = TestServer::open().await;
    let ran = run(&server, "planner", None, &says("hello")).await;
    let session = ran["session_id"].as_str().unwrap();
    for name in ["gander", "goose"] {
        let again = run(&server, name, Some(session), &says("again")).await;
        assert_eq!(again["agent_name"], "gander");
        is_reported(&server, session, ("gander", "planner", "Planner")).await;
    }
    run(&server, "coding", Some(session), &says("else")).await;
    is_reported(&server, session, ("coding", "backend", "Backend Engineer")).await;
}

/// The mode that this client is told of next.
async fn told(client: &mut Client) -> Value {
    client.update("current_mode_update").await.unwrap()["currentModeId"].clone()
}

#[tokio::test]
async fn acp_selects_by_mode_and_by_option_and_all_clients_see_it() {
    let server = TestServer::open().await;
    let (mut editor, mut other) = (server.editor().await, server.editor().await);
    let session = editor.new_session(&server.work()).await.unwrap();
    other.load(&session, &server.work()).await.unwrap();
    for row @ (_, mode, _) in MODES {
        let mode_of = |mode: &str| json!({ "sessionId": session, "modeId": mode });
        if server.settings(&session).await.mode != another(mode) {
            editor.call("session/set_mode", mode_of(another(mode))).await.unwrap();
            assert_eq!(told(&mut other).await, another(mode));
        }
        editor.call("session/set_mode", mode_of(mode)).await.unwrap();
        assert_eq!(told(&mut other).await, mode);
        is_reported(&server, &session, row).await;
        editor.call("session/set_mode", mode_of(another(mode))).await.unwrap();
        assert_eq!(told(&mut other).await, another(mode));
        let label = mode.replace('_', "-");
        let option = json!({ "sessionId": session, "configId": "mode", "value": label });
        editor.call("session/set_config_option", option).await.unwrap();
        assert_eq!(told(&mut other).await, mode);
        is_reported(&server, &session, row).await;
    }
    let wrong = editor.call("session/set_mode", json!({ "sessionId": session, "modeId": "nobody" })).await;
    assert!(wrong.is_err(), "an unknown mode is refused");
}

#[tokio::test]
async fn a2a_lists_selects_and_reports() {
    let server = TestServer::open().await;
    for row @ (agent, mode, title) in MODES {
        let card = server.get(&format!("/a2a/{agent}/.well-known/agent-card.json")).await;
        let skill = card["skills"].as_array().unwrap().iter().find(|skill| skill["id"] == mode);
        assert_eq!(skill.unwrap_or_else(|| panic!("{mode} is no skill of {agent}"))["name"], title);
        let label = mode.replace('_', "-");
        let card = server.get(&format!("/a2a/{label}/.well-known/agent-card.json")).await;
        assert_eq!((&card["name"], card["skills"].as_array().unwrap().len()), (&json!(title), 1));
        let message = |context: Option<&str>, id: &str| {
            let mut message = json!({ "messageId": id, "role": "ROLE_USER", "parts": [{ "text": says("hello") }] });
            if let Some(context) = context {
                message["contextId"] = json!(context);
            }
            json!({ "message": message })
        };
        let sent = server.post(&format!("/a2a/{label}/message:send"), message(None, "m1")).await;
        let session = sent["task"]["contextId"].as_str().unwrap_or_else(|| panic!("no task: {sent}"));
        is_reported(&server, session, row).await;
        server.post(&format!("/a2a/{}/message:send", another(mode)), message(Some(session), "m2")).await;
        assert_eq!(server.settings(session).await.mode, another(mode));
        server.post(&format!("/a2a/{mode}/message:send"), message(Some(session), "m3")).await;
        is_reported(&server, session, row).await;
    }
}

#[tokio::test]
async fn goose_selects_and_reports() {
    let server = TestServer::open().await;
    let started = server.post("/agent/start", json!({ "working_dir": server.work() })).await;
    let session = started["id"].as_str().unwrap();
    for row @ (agent, mode, _) in MODES {
        let reply = |mode: &str| {
            let content = json!([{ "type": "text", "text": says("hello") }]);
            let message = json!({ "role": "user", "created": 1, "content": content });
            json!({ "session_id": session, "messages": [message], "mode": mode })
        };
        server.post("/agent/update_session", json!({ "session_id": session, "goose_mode": another(mode) })).await;
        assert_eq!(server.settings(session).await.mode, another(mode));
        server.post("/reply", reply(mode)).await;
        is_reported(&server, session, row).await;
        server.post("/agent/update_session", json!({ "session_id": session, "goose_mode": another(mode) })).await;
        server.post("/agent/update_session", json!({ "session_id": session, "goose_mode": mode })).await;
        is_reported(&server, session, row).await;
        let object = server.get(&format!("/sessions/{session}")).await;
        assert_eq!((&object["agent_name"], &object["mode_slug"]), (&json!(agent), &json!(mode)));
    }
}

#[tokio::test]
async fn adk_lists_selects_and_reports() {
    let server = TestServer::open().await;
    let list = server.get("/list-apps").await;
    let detailed = server.get("/list-apps?detailed=true").await;
    let run = |app: &str, session: &str| {
        let message = json!({ "parts": [{ "text": says("hello") }] });
        json!({ "appName": app, "userId": "user", "sessionId": session, "newMessage": message })
    };
    for row @ (agent, mode, _) in MODES {
        assert_eq!(list.as_array().unwrap().iter().filter(|name| **name == mode).count(), 1, "{mode}");
        let detail = detailed["apps"].as_array().unwrap().iter().find(|app| app["name"] == mode).unwrap();
        assert_eq!(detail["rootAgentName"], mode);
        let whole = server.get(&format!("/apps/{agent}/app-info")).await;
        assert!(whole["agents"][agent]["sub_agents"].as_array().unwrap().contains(&json!(mode)), "{whole}");
        assert_eq!(whole["agents"][mode]["description"], detail["description"]);
        for spelling in [mode.to_owned(), mode.replace('_', "-")] {
            let info = server.get(&format!("/apps/{spelling}/app-info")).await;
            assert_eq!((&info["name"], &info["description"]), (&json!(mode), &detail["description"]));
            let made = server.post(&format!("/apps/{spelling}/users/user/sessions"), json!({})).await;
            let session = made["id"].as_str().unwrap();
            assert_eq!(made["appName"], mode);
            is_reported(&server, session, row).await;
            server.post("/run", run(&spelling, session)).await;
            is_reported(&server, session, row).await;
            let elsewhere = json!({ "session_id": session, "goose_mode": another(mode) });
            server.post("/agent/update_session", elsewhere).await;
            server.post("/run", run(&spelling, session)).await;
            is_reported(&server, session, row).await;
        }
    }
    let (status, refused) = server.send(reqwest::Method::GET, "/apps/Backend/app-info", None).await;
    assert_eq!((status, refused["detail"].is_string()), (404, true));
}

#[tokio::test]
async fn adk_selects_the_mode_of_another_protocols_session() {
    let server = TestServer::open().await;
    let ran = run(&server, "planner", None, &says("hello")).await;
    let session = ran["session_id"].as_str().unwrap();
    let message = json!({ "parts": [{ "text": says("hello") }] });
    let as_app = |app: &str| json!({ "appName": app, "userId": "user", "sessionId": session, "newMessage": message });
    server.post("/run", as_app("gander")).await;
    is_reported(&server, session, ("gander", "planner", "Planner")).await;
    assert!(is_adk_session(&server, "gander", session).await, "it is one of its agent's too");
    server.post("/run", as_app("qa")).await;
    is_reported(&server, session, ("coding", "qa", "Quality Assurance")).await;
    for app in ["planner", "gander"] {
        assert!(!is_adk_session(&server, app, session).await, "{app} serves it no more");
    }
    let (status, _) = server.send(reqwest::Method::POST, "/run", Some(&as_app("nobody"))).await;
    assert_eq!(status, 404);
}
