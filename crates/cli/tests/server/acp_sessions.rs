//! Forks, archives, reused workspaces and linked files at ACP, over a pipe in memory.

#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::sync::Arc;

use gander::app::App;
use gander_domain::Principal;
use gander_domain::caller::Caller;
use gander_gateway::ClientPeer;
use gander_testkit::harness::Client;
use serde_json::{Value, json};

use crate::served::app;
use crate::served::pipe::client;

async fn owner(app: &Arc<App>) -> Client {
    client(app, Principal::owner()).await
}

/// Has the agent say something.
async fn turn(client: &mut Client, session: &str, says: &str) {
    let text = format!(r#"[[script:[[{{"text":"{says}"}}]]]]"#);
    let params = json!({"sessionId": session, "prompt": [{"type": "text", "text": text}]});
    assert_eq!(client.call("session/prompt", params).await.unwrap()["stopReason"], "end_turn");
}

/// What the agent said in a session, as somebody hears who loads it.
async fn said(app: &Arc<App>, session: &str, cwd: &Path) -> String {
    let mut client = owner(app).await;
    client.load(session, cwd).await.unwrap();
    let updates = client.seen.iter().map(|message| &message["params"]["update"]);
    let chunks = updates.filter(|update| update["sessionUpdate"] == "agent_message_chunk");
    chunks.filter_map(|update| update["content"]["text"].as_str()).collect()
}

async fn listed(client: &mut Client, archived: &str) -> Vec<String> {
    let page = client.call("session/list", json!({"archived": archived, "_meta": {"unprompted": true}})).await.unwrap();
    let ids =
        page["sessions"].as_array().unwrap().iter().map(|session| session["sessionId"].as_str().unwrap().to_owned());
    ids.collect()
}

/// As a TLS stream does whose socket is full: what is written leaves once it is flushed, and not before.
#[tokio::test]
async fn a_writer_that_holds_back_what_it_was_given_is_flushed() {
    let folder = tempfile::tempdir().unwrap();
    let app = app(folder.path()).await;
    let (ours, theirs) = tokio::io::duplex(64 * 1024);
    let (reader, writer) = tokio::io::split(theirs);
    let peer = ClientPeer::new(Caller::local(Principal::owner()));
    tokio::spawn(async move { app.serve_acp(reader, tokio::io::BufWriter::new(writer), peer).await });
    let (reader, writer) = tokio::io::split(ours);
    let mut client = Client::over(reader, writer);
    client.initialize().await.unwrap();
    let session = client.new_session(folder.path()).await.unwrap();
    turn(&mut client, &session, "hello").await;
}

#[tokio::test]
async fn a_fork_has_the_history_and_goes_its_own_way() {
    let folder = tempfile::tempdir().unwrap();
    let app = app(folder.path()).await;
    let mut client = owner(&app).await;
    let first = client.new_session(folder.path()).await.unwrap();
    turn(&mut client, &first, "one").await;
    client.call("session/set_title", json!({"sessionId": first, "title": " Mine "})).await.unwrap();
    let forked = client.call("session/fork", json!({"sessionId": first, "cwd": folder.path()})).await.unwrap();
    let second = forked["sessionId"].as_str().unwrap().to_owned();
    assert_ne!(first, second);
    turn(&mut client, &second, "two").await;
    assert_eq!(said(&app, &first, folder.path()).await, "one");
    assert_eq!(said(&app, &second, folder.path()).await, "onetwo");
    let page = client.call("session/list", json!({})).await.unwrap();
    let titles: Vec<&Value> = page["sessions"].as_array().unwrap().iter().map(|session| &session["title"]).collect();
    assert_eq!(titles, ["Mine", "Mine"]);
}

#[tokio::test]
async fn an_archived_session_is_listed_only_where_it_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let app = app(folder.path()).await;
    let mut client = owner(&app).await;
    let (old, new) =
        (client.new_session(folder.path()).await.unwrap(), client.new_session(folder.path()).await.unwrap());
    let session = json!({"sessionId": old});
    assert_eq!(client.call("session/status", session.clone()).await.unwrap(), json!({"status": "open"}));
    client.call("session/archive", session.clone()).await.unwrap();
    assert_eq!(client.call("session/status", session.clone()).await.unwrap(), json!({"status": "saved"}));
    assert_eq!(listed(&mut client, "exclude").await, std::slice::from_ref(&new));
    assert_eq!(listed(&mut client, "only").await, std::slice::from_ref(&old));
    assert_eq!(listed(&mut client, "include").await, [old.clone(), new.clone()]);
    client.call("session/unarchive", session).await.unwrap();
    assert_eq!(listed(&mut client, "exclude").await, [old, new]);
}

#[tokio::test]
async fn a_list_of_everything_is_told_page_by_page_without_a_gap() {
    let folder = tempfile::tempdir().unwrap();
    let app = app(folder.path()).await;
    let mut client = owner(&app).await;
    for number in 0..120 {
        let session = client.new_session(folder.path()).await.unwrap();
        if number % 3 == 0 {
            client.call("session/archive", json!({"sessionId": session})).await.unwrap();
        }
    }
    let (mut seen, mut cursor, mut pages) = (std::collections::BTreeSet::new(), Value::Null, 0);
    loop {
        let page = client
            .call("session/list", json!({"archived": "include", "cursor": cursor, "_meta": {"unprompted": true}}))
            .await
            .unwrap();
        let sessions = page["sessions"].as_array().unwrap();
        assert!(sessions.iter().all(|session| seen.insert(session["sessionId"].to_string())), "one shows twice");
        pages += 1;
        cursor = page["nextCursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    assert_eq!((seen.len(), pages), (120, 3));
}

#[tokio::test]
async fn a_session_that_was_never_prompted_is_listed_only_where_it_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let app = app(folder.path()).await;
    let mut client = owner(&app).await;
    let prompted = client.new_session(folder.path()).await.unwrap();
    let titled = client.new_session(folder.path()).await.unwrap();
    client.new_session(folder.path()).await.unwrap();
    turn(&mut client, &prompted, "one").await;
    client.call("session/set_title", json!({"sessionId": titled, "title": "Mine"})).await.unwrap();
    let page = client.call("session/list", json!({})).await.unwrap();
    let ids: Vec<&Value> = page["sessions"].as_array().unwrap().iter().map(|session| &session["sessionId"]).collect();
    assert_eq!(ids, [&json!(titled), &json!(prompted)]);
    let all = client.call("session/list", json!({"_meta": {"gander/unprompted": true}})).await.unwrap();
    assert_eq!(all["sessions"].as_array().unwrap().len(), 3);
}

#[tokio::test]
async fn a_named_workspace_is_found_again_with_a_fresh_conversation() {
    let folder = tempfile::tempdir().unwrap();
    let app = app(folder.path()).await;
    let mut client = owner(&app).await;
    let first = client.call("session/new", json!({"device_id": "phone"})).await.unwrap()["sessionId"].clone();
    turn(&mut client, first.as_str().unwrap(), "one").await;
    let again = client.call("session/new", json!({"device_id": "phone"})).await.unwrap()["sessionId"].clone();
    let other = client.call("session/new", json!({"device_id": "tablet"})).await.unwrap()["sessionId"].clone();
    assert_eq!(again, first, "the name means one session");
    assert_ne!(other, first);
    let page = client.call("session/list", json!({"_meta": {"unprompted": true}})).await.unwrap();
    assert_eq!(page["sessions"].as_array().unwrap().len(), 2, "the list does not grow: {page}");
    let cwd = page["sessions"].as_array().unwrap().iter().find(|session| session["sessionId"] == first).unwrap();
    let cwd = cwd["cwd"].as_str().unwrap().to_owned();
    assert_eq!(said(&app, first.as_str().unwrap(), Path::new(&cwd)).await, "");
}

#[tokio::test]
async fn a_saved_session_is_begun_anew_under_its_id_with_everything_but_the_conversation() {
    let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let more = folder.path().join("more");
    std::fs::create_dir(&more).unwrap();
    let app = app(folder.path()).await;
    let mut client = owner(&app).await;
    let new = json!({"cwd": folder.path(), "mcpServers": [], "additionalDirectories": [more]});
    let id = client.call("session/new", new).await.unwrap()["sessionId"].clone();
    let named = |id: &Value| json!({"sessionId": id, "configId": "mode", "value": "backend"});
    client.call("session/set_config_option", named(&id)).await.unwrap();
    client.call("session/set_title", json!({"sessionId": id, "title": "Mine"})).await.unwrap();
    turn(&mut client, id.as_str().unwrap(), "one").await;
    // The app starts again, while a turn of before still waits for somebody.
    let asks = gander_testkit::harness::script(&[json!([{"tool": "shell", "args": {"command": "rm x"}}])]);
    client.prompt(id.as_str().unwrap(), &asks).await.unwrap();
    client.until(|message| message["method"] == "session/request_permission").await.unwrap();
    let mut restarted = owner(&app).await;
    let reuse = json!({"cwd": folder.path(), "mcpServers": [], "_meta": {"sessionId": id}});
    let opened = restarted.call("session/new", reuse).await.unwrap();
    assert_eq!((&opened["sessionId"], &opened["modes"]["currentModeId"]), (&id, &json!("backend")));
    let page = restarted.call("session/list", json!({"_meta": {"unprompted": true}})).await.unwrap();
    let sessions = page["sessions"].as_array().unwrap();
    assert_eq!((sessions.len(), &sessions[0]["title"]), (1, &json!("Mine")));
    assert_eq!(sessions[0]["additionalDirectories"], json!([more.canonicalize().unwrap()]));
    assert_eq!(said(&app, id.as_str().unwrap(), folder.path()).await, "");
    turn(&mut restarted, id.as_str().unwrap(), "two").await;
    assert!(said(&app, id.as_str().unwrap(), folder.path()).await.contains("two"));
    let elsewhere = json!({"cwd": other.path(), "mcpServers": [], "_meta": {"sessionId": id}});
    let refused = restarted.call("session/new", elsewhere).await.unwrap_err().to_string();
    assert!(refused.contains("works in another folder"), "{refused}");
    assert!(said(&app, id.as_str().unwrap(), folder.path()).await.contains("two"), "nothing was cleared");
}

#[tokio::test]
async fn a_small_file_that_a_prompt_links_to_is_read_along() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.txt"), "alpha").unwrap();
    let app = app(folder.path()).await;
    let mut client = owner(&app).await;
    let session = client.new_session(folder.path()).await.unwrap();
    let uri = format!("file://{}/a.txt", folder.path().display());
    let blocks = json!([{"type": "text", "text": "look"}, {"type": "resource_link", "uri": uri, "name": "a.txt"}]);
    client.call("session/prompt", json!({"sessionId": session, "prompt": blocks})).await.unwrap();
    let mut second = owner(&app).await;
    second.load(&session, folder.path()).await.unwrap();
    let updates = second.seen.iter().map(|message| &message["params"]["update"]);
    let told: Vec<&Value> = updates
        .filter(|update| update["sessionUpdate"] == "user_message_chunk")
        .map(|update| &update["content"]["type"])
        .collect();
    assert_eq!(told, ["text", "resource_link", "resource"]);
}

#[tokio::test]
async fn nobody_commands_the_sessions_of_another() {
    let folder = tempfile::tempdir().unwrap();
    let app = app(folder.path()).await;
    let mut mine = owner(&app).await;
    let session = mine.new_session(folder.path()).await.unwrap();
    let mut other = client(&app, Principal::named("other")).await;
    let named = json!({"sessionId": session, "title": "stolen", "cwd": folder.path()});
    for method in ["set_title", "archive", "unarchive", "status", "fork", "close", "delete", "load", "resume"] {
        let refused = other.call(&format!("session/{method}"), named.clone()).await.unwrap_err();
        assert!(refused.to_string().contains("-32002"), "{method}: {refused}");
    }
    other.call("session/cancel", named).await.unwrap();
    turn(&mut mine, &session, "still here").await;
}

/// Everything after the line that answered a request, up to the answer of the next one.
async fn heard(client: &mut Client, session: &str, says: &str) -> String {
    client.seen.clear();
    turn(client, session, says).await;
    let updates = client.seen.iter().map(|message| &message["params"]["update"]);
    let chunks = updates.filter(|update| update["sessionUpdate"] == "agent_message_chunk");
    chunks.filter_map(|update| update["content"]["text"].as_str()).collect()
}

#[tokio::test]
async fn a_session_that_is_open_already_can_be_resumed_and_is_told_nothing_twice() {
    let folder = tempfile::tempdir().unwrap();
    let app = app(folder.path()).await;
    let mut client = owner(&app).await;
    let session = client.new_session(folder.path()).await.unwrap();
    assert_eq!(heard(&mut client, &session, "one").await, "one");
    let resume = json!({"sessionId": session, "cwd": folder.path(), "mcpServers": []});
    client.seen.clear();
    let resumed = client.call("session/resume", resume.clone()).await.unwrap();
    assert!(resumed["configOptions"].is_array(), "{resumed}");
    let kinds = client.seen.iter().filter_map(|message| message["params"]["update"]["sessionUpdate"].as_str());
    assert!(
        kinds.clone().all(|kind| kind != "agent_message_chunk"),
        "history was told: {:?}",
        kinds.collect::<Vec<_>>()
    );
    assert_eq!(heard(&mut client, &session, "two").await, "two");
    // In the middle of a turn, too: what came and what comes is told once.
    client.seen.clear();
    let text = r#"[[script:[[{"text":"abcdefghij","chunks":10,"delay_ms":5}]]]]"#;
    let prompt = client.prompt(&session, text).await.unwrap();
    client.update("agent_message_chunk").await.unwrap();
    client.call("session/resume", resume).await.unwrap();
    assert_eq!(client.answer_to(prompt).await.unwrap()["stopReason"], "end_turn");
    let updates = client.seen.iter().map(|message| &message["params"]["update"]);
    let chunks = updates.filter(|update| update["sessionUpdate"] == "agent_message_chunk");
    assert_eq!(chunks.filter_map(|update| update["content"]["text"].as_str()).collect::<String>(), "abcdefghij");
}

#[tokio::test]
async fn further_folders_are_listed_with_their_session_and_can_be_read() {
    let root = tempfile::tempdir().unwrap();
    let folder = |name: &str| {
        let path = root.path().join(name);
        std::fs::create_dir(&path).unwrap();
        path.canonicalize().unwrap()
    };
    let (work, first, second) = (folder("work"), folder("first"), folder("second"));
    std::fs::write(first.join("there.txt"), "found it").unwrap();
    let app = app(root.path()).await;
    let mut client = owner(&app).await;
    let params = json!({"cwd": work, "mcpServers": [], "additionalDirectories": [first, second]});
    let made = client.call("session/new", params).await.unwrap();
    let plain = client.new_session(&work).await.unwrap();
    let page = client.call("session/list", json!({"_meta": {"unprompted": true}})).await.unwrap();
    let listed = |id: &str| {
        let sessions = page["sessions"].as_array().unwrap();
        sessions.iter().find(|session| session["sessionId"] == id).unwrap()["additionalDirectories"].clone()
    };
    let session = made["sessionId"].as_str().unwrap();
    assert_eq!(listed(session), json!([first, second]));
    assert!(matches!(listed(&plain).as_array().map(Vec::len), None | Some(0)), "{}", listed(&plain));
    let read = json!([[{"tool": "read", "args": {"path": first.join("there.txt")}}], [{"text": "done"}]]);
    assert_eq!(client.turn(session, &format!("[[script:{read}]]")).await.unwrap(), "end_turn");
    assert!(client.seen.iter().any(|message| message.to_string().contains("found it")), "{:?}", client.seen);
    let relative = json!({"cwd": work, "mcpServers": [], "additionalDirectories": ["first"]});
    let refused = client.call("session/new", relative).await.unwrap_err();
    assert!(refused.to_string().contains("-32602"), "{refused}");
}
