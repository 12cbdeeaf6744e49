//! A conversation read from its end, part by part, and who is attached to it.
#![allow(clippy::unwrap_used)]

use serde_json::{Value, json};

use crate::scopes::TestServer;
use crate::scopes::socket::Socket;

const CONVERSATION: [&str; 5] =
    ["user_message_chunk", "agent_message_chunk", "agent_thought_chunk", "tool_call", "tool_call_update"];

async fn client(server: &TestServer) -> Socket {
    server.socket(&server.token).await.ok().unwrap()
}

async fn new_session(socket: &mut Socket) -> Value {
    socket.call("session/new", json!({ "mcpServers": [] })).await["result"]["sessionId"].clone()
}

async fn prompt(socket: &mut Socket, session: &Value, text: &str) -> Value {
    let blocks = json!([{ "type": "text", "text": text }]);
    socket.call("session/prompt", json!({ "sessionId": session, "prompt": blocks })).await
}

/// Adjacent pieces of one message as one: how they are cut is nobody's business.
fn joined(updates: impl IntoIterator<Item = Value>) -> Vec<Value> {
    let mut whole: Vec<Value> = Vec::new();
    for update in updates {
        let named =
            |one: &Value| [one["sessionUpdate"].clone(), one["messageId"].clone(), one["content"]["type"].clone()];
        match whole.last_mut() {
            Some(last) if named(last) == named(&update) && update["content"]["type"] == "text" => {
                let text = [&last["content"], &update["content"]].map(|one| one["text"].as_str().unwrap()).concat();
                last["content"]["text"] = json!(text);
            }
            Some(_) | None => whole.push(update),
        }
    }
    whole
}

/// What `session/load` tells a new client of the conversation.
async fn loaded(server: &TestServer, session: &Value) -> Vec<Value> {
    let mut socket = client(server).await;
    let answer = socket.call("session/load", json!({ "sessionId": session, "mcpServers": [] })).await;
    assert_eq!(answer["error"], Value::Null, "{answer}");
    joined(conversation(&socket.heard))
}

fn conversation(heard: &[Value]) -> Vec<Value> {
    let updates = heard.iter().map(|message| message["params"]["update"].clone());
    updates.filter(|update| CONVERSATION.iter().any(|kind| update["sessionUpdate"] == *kind)).collect()
}

/// The conversation read in parts of about so many messages, and how many parts there were.
async fn in_parts(socket: &mut Socket, session: &Value, limit: usize) -> (Vec<Value>, usize) {
    let (mut parts, mut last) = (Vec::new(), Value::Null);
    loop {
        let params = json!({ "sessionId": session, "last": last, "limit": limit });
        let part = socket.call("_gander/session/history", params).await["result"].clone();
        parts.push(part["updates"].as_array().unwrap().clone());
        last = part["earlier"].clone();
        if last.is_null() {
            return (joined(parts.iter().rev().flatten().cloned()), parts.len());
        }
    }
}

#[tokio::test]
async fn parts_are_what_a_load_tells_in_the_same_order() {
    let server = TestServer::open().await;
    let mut socket = client(&server).await;
    let session = new_session(&mut socket).await;
    for word in ["text", "tools", "thought", "image", "plan", "hello"] {
        prompt(&mut socket, &session, word).await;
    }
    let whole = loaded(&server, &session).await;
    for (limit, least) in [(1, 7), (4, 3), (500, 1)] {
        let (told, parts) = in_parts(&mut socket, &session, limit).await;
        assert_eq!(told, whole, "in parts of {limit}");
        assert!(parts >= least, "{parts} parts of {limit}");
    }
    // A copy begins with all messages in one entry: it is told in parts too.
    let fork = socket.call("session/fork", json!({ "sessionId": session, "mcpServers": [] })).await;
    let copy = fork["result"]["sessionId"].clone();
    let whole = loaded(&server, &copy).await;
    for (limit, least) in [(1, 7), (4, 3), (500, 1)] {
        let (told, parts) = in_parts(&mut socket, &copy, limit).await;
        assert_eq!(told, whole, "the copy in parts of {limit}");
        assert!(parts >= least, "{parts} parts of {limit}");
    }
    let newest = socket.call("_gander/session/history", json!({ "sessionId": session })).await["result"].clone();
    let state: Vec<&Value> =
        newest["state"].as_array().unwrap().iter().map(|update| &update["sessionUpdate"]).collect();
    assert!(state.contains(&&json!("plan")) && state.contains(&&json!("session_info_update")), "{newest}");
}

#[tokio::test]
async fn what_a_reset_took_away_is_in_no_part() {
    let server = TestServer::open().await;
    let mut socket = client(&server).await;
    let session = new_session(&mut socket).await;
    for word in ["one", "two", "three", "four"] {
        prompt(&mut socket, &session, word).await;
    }
    let truncate = json!({ "sessionId": session, "truncateFrom": 2 });
    let answer = socket.call("_goose/unstable/session/conversation/truncate", truncate).await;
    assert_eq!(answer["error"], Value::Null, "{answer}");
    prompt(&mut socket, &session, "five").await;
    let whole = loaded(&server, &session).await;
    assert!(!json!(whole).to_string().contains("three"), "{whole:?}");
    for limit in [1, 2, 500] {
        assert_eq!(in_parts(&mut socket, &session, limit).await.0, whole, "in parts of {limit}");
    }
}

#[tokio::test]
async fn who_attaches_in_mid_stream_reads_up_to_where_it_is_told_on() {
    let server = TestServer::open().await;
    let (mut editor, mut page) = (client(&server).await, client(&server).await);
    let session = new_session(&mut editor).await;
    let blocks = json!([{ "type": "text", "text": "long" }]);
    let params = json!({ "sessionId": session, "prompt": blocks });
    editor.send(&json!({ "jsonrpc": "2.0", "id": "long", "method": "session/prompt", "params": params })).await;
    while editor.message().await.unwrap()["params"]["update"]["sessionUpdate"] != "agent_message_chunk" {}
    let resumed = page.call("session/resume", json!({ "sessionId": session, "mcpServers": [] })).await;
    page.heard.clear();
    let last = resumed["result"]["_meta"]["gander/head"].clone();
    assert!(last.is_u64(), "{resumed}");
    let part = page.call("_gander/session/history", json!({ "sessionId": session, "last": last })).await;
    page.call("_gander/session/wait", json!({ "sessionId": session })).await;
    let before = part["result"]["updates"].as_array().unwrap().clone();
    let told = joined(before.into_iter().chain(conversation(&page.heard)));
    assert_eq!(told, loaded(&server, &session).await);
}

#[tokio::test]
async fn a_log_that_grows_is_told_at_once() {
    let server = TestServer::open().await;
    let (mut editor, mut page) = (client(&server).await, client(&server).await);
    let session = new_session(&mut editor).await;
    let watch = |after: &Value| json!({ "sessionId": session, "after": after });
    let before = page.call("_gander/session/watch", watch(&json!(0))).await["result"]["head"].clone();
    let title = json!({ "sessionId": session, "title": "Geese" });
    let (told, _) =
        tokio::join!(page.call("_gander/session/watch", watch(&before)), editor.call("session/set_title", title));
    assert!(told["result"]["head"].as_u64() > before.as_u64(), "{told} after {before}");
}

#[tokio::test]
async fn who_is_attached_is_told_by_name_as_soon_as_it_comes_and_goes() {
    let server = TestServer::open().await;
    let mut page = client(&server).await;
    let session = new_session(&mut page).await;
    prompt(&mut page, &session, "hello").await;
    let names = |watched: &Value| watched["result"]["sessions"][0]["clientNames"].clone();
    let alone = page.call("_gander/sessions/watch", json!({})).await;
    assert_eq!(names(&alone), json!(["ACP client"]), "{alone}");
    let mut editor = server.named_socket(&server.token, "An editor").await.ok().unwrap();
    let watch = |before: &Value| json!({ "after": before["result"]["cursor"] });
    let resume = json!({ "sessionId": session, "mcpServers": [] });
    let (both, _) =
        tokio::join!(page.call("_gander/sessions/watch", watch(&alone)), editor.call("session/resume", resume));
    assert_eq!(names(&both), json!(["ACP client", "An editor"]), "{both}");
    drop(editor);
    let left = page.call("_gander/sessions/watch", watch(&both)).await;
    assert_eq!(names(&left), json!(["ACP client"]), "{left}");
}

#[tokio::test]
async fn commits_are_shown_beside_the_entries_that_they_hold() {
    let server = TestServer::open().await;
    let mut page = client(&server).await;
    let session = new_session(&mut page).await;
    prompt(&mut page, &session, "hello").await;
    let all = page.call("_gander/session/inspect", json!({ "sessionId": session })).await["result"].clone();
    let commits = all["commits"].as_array().unwrap();
    let last = commits.last().unwrap();
    assert_eq!(last["last"], all["head"], "{all}");
    assert_eq!(last["synced"], true, "the end of a run is on the disk before it is told: {last}");
    let follows = |pair: &[Value]| pair[0]["last"].as_u64().unwrap() + 1 == pair[1]["first"].as_u64().unwrap();
    assert!(commits.windows(2).all(follows), "{commits:?}");
}
