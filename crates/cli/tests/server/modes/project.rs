//! A project's own agents and modes: nothing until its folder is trusted, then in its sessions alone.

use std::path::{Path, PathBuf};

use gander_testkit::harness::Client;
use serde_json::{Value, json};

use crate::modes::test_server::{PATIENCE, TestServer, children, delegates, plays, says};

const POET: &str = "---\ntitle: Poet\ndescription: Rhymes\nwords: [rhyme, sonnet]\n---\nRhyme.\n";

/// A folder with these files of agents.
fn project(server: &TestServer, name: &str, files: &[(&str, &str)]) -> PathBuf {
    let folder = server.work().join(name);
    std::fs::create_dir_all(&folder).unwrap();
    files.iter().for_each(|(path, text)| write(&folder, path, text));
    folder.canonicalize().unwrap()
}

fn write(folder: &Path, path: &str, text: &str) {
    let file = folder.join(".gander/agents").join(path);
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(file, text).unwrap();
}

async fn trust(server: &TestServer, folder: &Path) {
    server.app.services().trust.trust(folder).await.unwrap();
}

/// A new session there, and the modes that it offers by id and title.
async fn opened(editor: &mut Client, folder: &Path) -> (String, Vec<(String, String)>) {
    let made = editor.call("session/new", json!({ "cwd": folder, "mcpServers": [] })).await.unwrap();
    (made["sessionId"].as_str().unwrap().to_owned(), modes(&made["configOptions"]))
}

fn modes(options: &Value) -> Vec<(String, String)> {
    let mode = options.as_array().unwrap().iter().find(|option| option["id"] == "mode").unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    mode["options"].as_array().unwrap().iter().map(|option| (text(&option["value"]), text(&option["name"]))).collect()
}

fn title(modes: &[(String, String)], id: &str) -> Option<String> {
    modes.iter().find(|(known, _)| known == id).map(|(_, title)| title.clone())
}

/// Until the client is told of modes of this kind in this session.
async fn told(editor: &mut Client, session: &str, wanted: impl Fn(&[(String, String)]) -> bool) {
    let listen = async {
        loop {
            let update = editor.update("config_option_update").await.unwrap();
            if wanted(&modes(&update["configOptions"])) {
                return;
            }
        }
    };
    tokio::time::timeout(PATIENCE, listen).await.unwrap_or_else(|_| panic!("nothing is told of {session}"));
}

async fn set_mode(editor: &mut Client, session: &str, mode: &str) -> Result<Value, String> {
    let params = json!({ "sessionId": session, "modeId": mode });
    editor.call("session/set_mode", params).await.map_err(|error| error.to_string())
}

#[tokio::test]
async fn they_are_inert_until_the_folder_is_trusted_and_follow_their_files_then() {
    let server = TestServer::open().await;
    let folder = project(&server, "one", &[("gander/poet.md", POET)]);
    let mut editor = server.editor().await;
    let (session, offered) = opened(&mut editor, &folder).await;
    assert_eq!(title(&offered, "poet"), None);
    assert!(set_mode(&mut editor, &session, "poet").await.is_err());
    trust(&server, &folder).await;
    told(&mut editor, &session, |offered| title(offered, "poet").as_deref() == Some("Poet")).await;
    set_mode(&mut editor, &session, "poet").await.unwrap();
    assert_eq!(server.settings(&session).await.mode, "poet");
    assert_eq!(editor.turn(&session, &says("roses")).await.unwrap(), "end_turn");
    write(&folder, "gander/poet.md", &POET.replace("title: Poet", "title: Bard"));
    told(&mut editor, &session, |offered| title(offered, "poet").as_deref() == Some("Bard")).await;
    let (_, offered) = opened(&mut editor, &server.work()).await;
    assert_eq!(title(&offered, "poet"), None, "what is beside the project has nothing of it");
    assert!(!server.get("/agents").await.to_string().contains("Bard"), "a door without a folder shows the server's");
    server.app.services().trust.revoke(&folder).await.unwrap();
    told(&mut editor, &session, |offered| title(offered, "poet").is_none()).await;
    let (_, offered) = opened(&mut editor, &folder).await;
    assert_eq!(title(&offered, "poet"), None);
}

#[tokio::test]
async fn two_projects_have_the_same_mode_in_two_ways_side_by_side() {
    let server = TestServer::open().await;
    let mode = |tools: &str| format!("---\ntitle: Only {tools}\ntools: [{tools}]\n---\nDo it.\n");
    let reads = project(&server, "reads", &[("gander/assistant.md", &mode("look"))]);
    let plans = project(&server, "plans", &[("gander/assistant.md", &mode("plan"))]);
    trust(&server, &reads).await;
    trust(&server, &plans).await;
    std::fs::write(reads.join("file"), "here").unwrap();
    let calls = json!([[{ "tool": "read", "args": { "path": "file" } },
        { "tool": "plan", "args": { "items": [{ "text": "step", "status": "pending" }] } }], [{ "results": true }]]);
    let mut editor = server.editor().await;
    let (first, offered) = opened(&mut editor, &reads).await;
    assert_eq!(title(&offered, "assistant").as_deref(), Some("Only look"));
    let (second, offered) = opened(&mut editor, &plans).await;
    assert_eq!(title(&offered, "assistant").as_deref(), Some("Only plan"));
    for (session, steps) in [(&first, 0), (&second, 1)] {
        assert_eq!(editor.turn(session, &plays(&calls)).await.unwrap(), "end_turn");
        assert_eq!(server.view(session).await.plan.items.len(), steps);
    }
}

#[tokio::test]
async fn the_nearer_counts_and_the_project_s_is_laid_over_the_owner_s() {
    let server = TestServer::open().await;
    let own = server.agents().join("gander");
    std::fs::create_dir_all(&own).unwrap();
    std::fs::write(own.join("poet.md"), POET.replace("title: Poet", "title: Mine")).unwrap();
    std::fs::write(own.join("critic.md"), POET.replace("title: Poet", "title: Critic")).unwrap();
    let folder = project(&server, "near", &[("gander/poet.md", POET), ("legal.md", POET)]);
    trust(&server, &folder).await;
    let mut editor = server.editor().await;
    // The owner's files were looked at a moment ago.
    let begun = tokio::time::Instant::now();
    let (session, offered) = loop {
        let (session, offered) = opened(&mut editor, &folder).await;
        if title(&offered, "critic").as_deref() == Some("Critic") {
            break (session, offered);
        }
        assert!(begun.elapsed() < PATIENCE, "the owner's is not there");
    };
    assert_eq!(title(&offered, "poet").as_deref(), Some("Poet"));
    let (_, elsewhere) = opened(&mut editor, &server.work()).await;
    assert_eq!(title(&elsewhere, "poet").as_deref(), Some("Mine"));
    // An agent that only the project has serves its session.
    let update = json!({ "session_id": session, "goose_mode": "legal" });
    let (status, said) = server.send(reqwest::Method::POST, "/agent/update_session", Some(&update)).await;
    assert_eq!(status, 200, "{said}");
    assert_eq!(server.settings(&session).await.agent, "legal");
    assert_eq!(editor.turn(&session, &says("ok")).await.unwrap(), "end_turn");
}

#[tokio::test]
async fn routes_and_sub_agents_know_them() {
    let server = TestServer::open().await;
    let folder = project(&server, "routed", &[("gander/poet.md", POET)]);
    trust(&server, &folder).await;
    let mut editor = server.editor().await;
    let (session, _) = opened(&mut editor, &folder).await;
    let tasks = json!([{ "name": "verse", "prompt": says("roses"), "mode": "poet" }]);
    assert_eq!(editor.turn(&session, &delegates(tasks)).await.unwrap(), "end_turn");
    let child = children(&server, &session).await[0].to_string();
    assert_eq!(server.settings(&child).await.mode, "poet");
    let option = json!({ "sessionId": session, "configId": "routing", "value": "auto" });
    editor.call("session/set_config_option", option).await.unwrap();
    let prompt = format!("Write a sonnet, and rhyme it well {}", says("ok"));
    assert_eq!(editor.turn(&session, &prompt).await.unwrap(), "end_turn");
    assert_eq!(server.settings(&session).await.mode, "poet");
}
