//! Our own methods for every client: sessions as they change, files to complete, the log beside every protocol.
#![allow(clippy::unwrap_used)]

use serde_json::{Value, json};

use crate::scopes::TestServer;
use crate::scopes::socket::Socket;

async fn new_session(socket: &mut Socket, cwd: Option<&str>) -> Value {
    let params = match cwd {
        Some(cwd) => json!({ "cwd": cwd, "mcpServers": [] }),
        None => json!({ "mcpServers": [] }),
    };
    socket.call("session/new", params).await["result"]["sessionId"].clone()
}

async fn prompt(socket: &mut Socket, session: &Value, text: &str) -> Value {
    let blocks = json!([{ "type": "text", "text": text }]);
    socket.call("session/prompt", json!({ "sessionId": session, "prompt": blocks })).await
}

#[tokio::test]
async fn who_watches_is_told_what_another_client_does() {
    let server = TestServer::open().await;
    let (mut page, mut editor) =
        (server.socket(&server.token).await.ok().unwrap(), server.socket(&server.token).await.ok().unwrap());
    let before = page.call("_gander/sessions/watch", json!({})).await["result"].clone();
    assert_eq!(before["sessions"], json!([]));
    let session = new_session(&mut editor, None).await;
    prompt(&mut editor, &session, "hello").await;
    // What changed before it is asked for is told at once; else the answer waits for it.
    let now = page.call("_gander/sessions/watch", json!({ "after": before["cursor"] })).await["result"].clone();
    assert_eq!(now["sessions"][0]["sessionId"], session, "{now}");
    assert_eq!(now["sessions"][0]["state"], "idle", "{now}");
    assert_ne!(now["cursor"], before["cursor"]);
    let title = json!({ "sessionId": session, "title": "Geese of the meadow" });
    let (told, _) = tokio::join!(
        page.call("_gander/sessions/watch", json!({ "after": now["cursor"] })),
        editor.call("session/set_title", title),
    );
    assert_eq!(told["result"]["sessions"][0]["title"], "Geese of the meadow", "{told}");
}

#[tokio::test]
async fn words_of_a_title_find_a_session() {
    let server = TestServer::open().await;
    let mut page = server.socket(&server.token).await.ok().unwrap();
    let session = new_session(&mut page, None).await;
    page.call("session/set_title", json!({ "sessionId": session, "title": "Geese of the meadow" })).await;
    for (text, found) in [("meadow GEESE", 1), ("swans", 0), (" ", 1)] {
        let answer = page.call("_gander/sessions/watch", json!({ "text": text })).await;
        assert_eq!(answer["result"]["sessions"].as_array().unwrap().len(), found, "{text}: {answer}");
    }
}

#[tokio::test]
async fn files_of_the_workspace_are_completed_and_no_others() {
    let server = TestServer::open().await;
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("notes")).unwrap();
    std::fs::write(folder.path().join("notes/meadow.md"), "grass").unwrap();
    let mut page = server.socket(&server.token).await.ok().unwrap();
    let session = new_session(&mut page, folder.path().to_str()).await;
    let mut complete = async |query: &str| {
        page.call("_gander/workspace/files", json!({ "sessionId": session, "query": query })).await["result"]["paths"]
            .clone()
    };
    assert_eq!(complete("mead").await, json!(["notes/meadow.md"]));
    assert_eq!(complete("").await, json!(["notes/"]));
    assert_eq!(complete("../").await, json!([]));
    assert_eq!(complete("/etc/pass").await, json!([]));
}

#[tokio::test]
async fn the_log_is_shown_beside_what_every_protocol_says() {
    let server = TestServer::open().await;
    let mut page = server.socket(&server.token).await.ok().unwrap();
    let session = new_session(&mut page, None).await;
    prompt(&mut page, &session, "hello").await;
    let all = page.call("_gander/session/inspect", json!({ "sessionId": session })).await["result"].clone();
    let entries = all["entries"].as_array().unwrap();
    assert_eq!(entries[0]["entry"]["event"]["kind"], "session_created");
    assert_eq!(entries.last().unwrap()["entry"]["seq"], all["head"]);
    for protocol in ["acp", "acp_rest", "a2a", "adk", "goose"] {
        let told = entries.iter().filter(|entry| entry["projections"][protocol] != json!([])).count();
        assert!(told > 0, "{protocol} is told nothing: {all}");
    }
    // A page in the middle is what it is in the whole.
    let params = json!({ "sessionId": session, "after": entries[1]["entry"]["seq"], "limit": 2 });
    let page = page.call("_gander/session/inspect", params).await["result"].clone();
    assert_eq!(page["entries"].as_array().unwrap()[..], entries[2..4]);
}

#[tokio::test]
async fn extensions_are_listed_without_what_is_the_owners() {
    let server = TestServer::open().await;
    let mut page = server.socket(&server.token).await.ok().unwrap();
    let answer = page.call("_gander/extensions/status", json!({})).await;
    let listed = answer["result"]["extensions"].as_array().unwrap();
    assert!(listed.iter().any(|one| one["kind"] == "built_in" && one["state"] == "on"), "{answer}");
}

#[tokio::test]
async fn agents_are_listed_with_the_modes_that_a_session_can_be_set_to() {
    let server = TestServer::open().await;
    let mut page = server.socket(&server.token).await.ok().unwrap();
    let session = new_session(&mut page, None).await;
    let answer = page.call("_gander/agents/list", json!({ "sessionId": session })).await["result"].clone();
    let agents = answer["agents"].as_array().unwrap();
    let names: Vec<_> = agents.iter().map(|agent| (&agent["name"], &agent["modes"][0])).collect();
    assert_eq!(names, [(&json!("gander"), &json!("assistant")), (&json!("coding"), &json!("backend"))], "{answer}");
    for mode in agents[1]["modes"].as_array().unwrap() {
        let set = page.call("session/set_mode", json!({ "sessionId": session, "modeId": mode })).await;
        assert_eq!(set["error"], Value::Null, "{mode}: {set}");
    }
}

#[tokio::test]
async fn what_a_tool_saved_is_listed_and_read() {
    let server = TestServer::open().await;
    let mut page = server.socket(&server.token).await.ok().unwrap();
    let session = new_session(&mut page, None).await;
    let list = json!({ "sessionId": session });
    assert_eq!(page.call("_gander/artifacts/list", list.clone()).await["result"]["artifacts"], json!([]));
    let save = |text: &str| json!({ "tool": "artifact_save", "args": { "name": "report.md", "text": text, "media_type": "text/markdown" } });
    let script = json!([[save("# one")], [save("# two")], [{ "text": "saved" }]]);
    prompt(&mut page, &session, &format!("[[script:{script}]]")).await;
    let listed = page.call("_gander/artifacts/list", list).await["result"]["artifacts"][0].clone();
    assert_eq!(
        [&listed["name"], &listed["versions"], &listed["mimeType"]],
        [&json!("report.md"), &json!(2), &json!("text/markdown")],
    );
    for (version, text) in [(json!(null), "# two"), (json!(0), "# one")] {
        let params = json!({ "sessionId": session, "name": "report.md", "version": version });
        let read = page.call("_gander/artifacts/read", params).await;
        assert_eq!(read["result"]["text"], text, "{read}");
    }
    let missing = json!({ "sessionId": session, "name": "other.md" });
    let missing = page.call("_gander/artifacts/read", missing).await;
    assert_eq!(missing["error"]["code"], -32602, "{missing}");
    assert!(missing["error"]["message"].as_str().unwrap().ends_with("no such artifact: other.md"), "{missing}");
}

#[tokio::test]
async fn a_login_at_a_server_that_nobody_configured_is_refused_by_name() {
    let server = TestServer::open().await;
    let mut page = server.socket(&server.token).await.ok().unwrap();
    let answer = page.call("_gander/extensions/login", json!({ "name": "nowhere" })).await;
    assert!(answer["error"]["message"].as_str().unwrap().contains("nowhere"), "{answer}");
}

#[tokio::test]
async fn several_watches_wait_beside_each_other_and_too_many_are_refused() {
    let server = TestServer::open().await;
    let mut page = server.socket(&server.token).await.ok().unwrap();
    let before = page.call("_gander/sessions/watch", json!({})).await["result"]["cursor"].clone();
    for id in 100..109 {
        let params = json!({ "after": before });
        let watch = json!({ "jsonrpc": "2.0", "id": id, "method": "_gander/sessions/watch", "params": params });
        page.send(&watch).await;
    }
    // The ninth is told at once; the others are answered when something happens.
    let refused = page.message().await.unwrap();
    assert_eq!(refused["id"], 108, "{refused}");
    let reason = refused["error"].to_string();
    assert!(reason.contains("_gander/sessions/watch first, so many wait: 8"), "{refused}");
    let session = new_session(&mut page, None).await;
    let mut told: Vec<Value> = page.heard.drain(..).filter(|message| message["id"].is_u64()).collect();
    while told.len() < 8 {
        told.push(page.message().await.unwrap());
        told.retain(|message| message["id"].is_u64());
    }
    for answer in told {
        assert_eq!(answer["result"]["sessions"][0]["sessionId"], session, "{answer}");
    }
}
