//! Routing: off unless it is asked for, told to everybody, and never against a person's choice.

use gander_domain::Routing;
use serde_json::json;

use crate::modes::test_server::{TestServer, plays, run, says};

const BACKEND: &str = "Add an endpoint to the REST API and a migration for the database";

#[tokio::test]
async fn it_is_off_unless_asked_for() {
    let server = TestServer::open().await;
    let ran = run(&server, "gander", None, &format!("{BACKEND} {}", says("ok"))).await;
    let settings = server.settings(ran["session_id"].as_str().unwrap()).await;
    assert_eq!((settings.mode.as_str(), settings.routing), ("assistant", Routing::Off));
}

#[tokio::test]
async fn auto_goes_where_each_prompt_points_and_tells_why() {
    let server = TestServer::open().await;
    let ran = run(&server, "auto", None, &format!("{BACKEND} {}", says("ok"))).await;
    assert_eq!((&ran["status"], &ran["agent_name"]), (&json!("completed"), &json!("auto")));
    let session = ran["session_id"].as_str().unwrap();
    let settings = server.settings(session).await;
    assert_eq!((settings.agent.as_str(), settings.mode.as_str()), ("coding", "backend"));
    let events = server.get(&format!("/runs/{}/events", ran["run_id"].as_str().unwrap())).await;
    let events = events["events"].as_array().unwrap();
    let routed = events.iter().find(|event| event["generic"]["kind"] == "routed").unwrap();
    let route = &routed["generic"]["routed"];
    assert_eq!((&route["agent"], &route["mode"], &route["by"]), (&json!("coding"), &json!("backend"), &json!("rules")));
    assert!(route["confidence"].as_u64().unwrap() >= 50);
    assert!(route["reasons"][0].as_str().unwrap().contains("endpoint"), "{route}");
    run(&server, "auto", Some(session), &format!("Audit this for XSS and injection {}", says("ok"))).await;
    assert_eq!(server.settings(session).await.mode, "security", "the next prompt may go elsewhere");
}

#[tokio::test]
async fn a_mode_that_a_person_chose_stays() {
    let server = TestServer::open().await;
    let mut editor = server.editor().await;
    let session = editor.new_session(&server.work()).await.unwrap();
    let option = |value: &str| json!({ "sessionId": session, "configId": "routing", "value": value });
    editor.call("session/set_config_option", option("auto")).await.unwrap();
    assert_eq!(server.settings(&session).await.routing, Routing::Rules);
    let prompt = editor.prompt(&session, &format!("{BACKEND} {}", says("ok"))).await.unwrap();
    assert_eq!(editor.update("current_mode_update").await.unwrap()["currentModeId"], "backend");
    editor.answer_to(prompt).await.unwrap();
    editor.call("session/set_mode", json!({ "sessionId": session, "modeId": "pm" })).await.unwrap();
    let settings = server.settings(&session).await;
    assert_eq!((settings.mode.as_str(), settings.routing), ("pm", Routing::Off));
    editor.turn(&session, &format!("{BACKEND} {}", says("ok"))).await.unwrap();
    assert_eq!(server.settings(&session).await.mode, "pm");
    let wrong = editor.call("session/set_config_option", option("sometimes")).await;
    assert!(wrong.is_err());
}

#[tokio::test]
async fn a_model_can_be_asked() {
    let server = TestServer::open().await;
    let mut editor = server.editor().await;
    let session = editor.new_session(&server.work()).await.unwrap();
    let option = json!({ "sessionId": session, "configId": "routing", "value": "model" });
    editor.call("session/set_config_option", option).await.unwrap();
    // The judge and whoever then answers are shown the same script: its first call is a verdict.
    let verdict = json!({ "role": "coding/qa", "confidence": 88, "reason": "it is about proof" }).to_string();
    editor.turn(&session, &plays(&json!([[{ "text": verdict }]]))).await.unwrap();
    let settings = server.settings(&session).await;
    assert_eq!((settings.agent.as_str(), settings.mode.as_str()), ("coding", "qa"));
    editor.turn(&session, &format!("{BACKEND} {}", says("no verdict"))).await.unwrap();
    assert_eq!(server.settings(&session).await.mode, "backend", "a model that is no help leaves it to the words");
}

#[tokio::test]
async fn adk_clients_see_who_speaks_from_then_on() {
    let server = TestServer::open().await;
    let made = server.post("/apps/auto/users/u1/sessions", json!({})).await;
    let session = made["id"].as_str().unwrap();
    let message = json!({ "parts": [{ "text": format!("{BACKEND} {}", says("ok")) }] });
    let run = json!({ "appName": "auto", "userId": "u1", "sessionId": session, "newMessage": message });
    let told = server.post("/run", run).await;
    assert_eq!((&told[0]["author"], &told[0]["actions"]["transferToAgent"]), (&json!("gander"), &json!("backend")));
    assert_eq!(told[0]["customMetadata"]["gander"]["routed"]["agent"], "coding");
    assert_eq!((&told[1]["author"], &told[1]["nodeInfo"]["path"]), (&json!("backend"), &json!("gander@1/backend@1")));
    let stored = server.get(&format!("/apps/auto/users/u1/sessions/{session}")).await;
    assert_eq!(stored["events"].as_array().unwrap()[1..], told.as_array().unwrap()[..]);
}
