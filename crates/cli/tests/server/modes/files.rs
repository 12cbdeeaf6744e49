//! The owner's own agents appear in every protocol while the server runs.

use serde_json::{Value, json};

use crate::modes::test_server::{PATIENCE, TestServer, run, says};

async fn until(server: &TestServer, wanted: impl Fn(&Value) -> bool) {
    let patience = tokio::time::Instant::now() + PATIENCE;
    while !wanted(&server.get("/agents").await) {
        assert!(tokio::time::Instant::now() < patience, "the list does not change");
        tokio::task::yield_now().await;
    }
}

fn names(list: &Value) -> Vec<&str> {
    list["agents"].as_array().unwrap().iter().filter_map(|agent| agent["name"].as_str()).collect()
}

#[tokio::test]
async fn an_agent_of_the_owners_comes_and_goes_with_its_file() {
    let server = TestServer::open().await;
    assert!(!names(&server.get("/agents").await).contains(&"poet"));
    let folder = server.agents();
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("poet.md");
    std::fs::write(&file, "---\ntitle: Poet\ndescription: Rhymes\ncategory: llm_only\n---\nRhyme.\n").unwrap();
    until(&server, |list| names(list).contains(&"poet")).await;
    let ran = run(&server, "poet", None, &says("roses")).await;
    assert_eq!((ran["agent_name"].as_str(), ran["status"].as_str()), (Some("poet"), Some("completed")));
    let settings = server.settings(ran["session_id"].as_str().unwrap()).await;
    assert_eq!((settings.agent.as_str(), settings.mode.as_str()), ("poet", "default"));
    std::fs::remove_file(&file).unwrap();
    until(&server, |list| !names(list).contains(&"poet")).await;
    assert_eq!(server.send(reqwest::Method::GET, "/agents/poet", None).await.0, 404);
}

/// The modes that an update of options offers.
fn offered(update: &Value) -> Vec<&str> {
    let mode = update["configOptions"].as_array().unwrap().iter().find(|option| option["id"] == "mode");
    let options = mode.unwrap()["options"].as_array().unwrap();
    options.iter().filter_map(|option| option["value"].as_str()).collect()
}

#[tokio::test]
async fn an_editor_that_is_there_is_told_when_a_mode_comes_and_goes() {
    let server = TestServer::open().await;
    let mut editor = server.editor().await;
    let session = editor.new_session(&server.work()).await.unwrap();
    let folder = server.agents().join("gander");
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("poet.md");
    std::fs::write(&file, "---\ntitle: Poet\ndescription: Rhymes\ncategory: llm_only\n---\nRhyme.\n").unwrap();
    let update = editor.update("config_option_update").await.unwrap();
    assert!(offered(&update).contains(&"poet"), "{update}");
    let params = json!({ "sessionId": session, "modeId": "poet" });
    editor.call("session/set_mode", params).await.unwrap();
    assert_eq!(server.settings(&session).await.mode, "poet");
    std::fs::remove_file(&file).unwrap();
    let gone = loop {
        let update = editor.update("config_option_update").await.unwrap();
        if !offered(&update).contains(&"poet") {
            break update;
        }
    };
    assert!(offered(&gone).contains(&"assistant"), "{gone}");
}
