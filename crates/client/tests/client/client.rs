//! The client against scripted agents: what is answered, what is refused, what happens when things end.

#![allow(clippy::unwrap_used)]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::scripted::{Scripted, connect};
use async_trait::async_trait;
use gander_client::schema::{
    ClientCapabilities, ContentBlock, FileSystemCapabilities, Implementation, PromptResponse, ReadTextFileRequest,
    ReadTextFileResponse, RequestPermissionRequest, RequestPermissionResponse, SessionNotification, StopReason,
};
use gander_client::{CallError, Client, Error, Handler, Link, LinkError, ShownUpdate};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

/// Remembers what it hears; reads files that do not exist; never answers a permission.
#[derive(Default)]
struct Editor {
    heard: Mutex<Vec<ShownUpdate>>,
    asked: Notify,
}

#[async_trait]
impl Handler for Editor {
    fn offers(&self) -> ClientCapabilities {
        ClientCapabilities::new().fs(FileSystemCapabilities::new().read_text_file(true))
    }

    async fn updated(&self, update: SessionNotification) {
        // The agent's answer comes after this, however long it takes.
        tokio::task::yield_now().await;
        self.heard.lock().unwrap().push(ShownUpdate::from(update.update));
    }

    async fn request_permission(&self, _: RequestPermissionRequest) -> Result<RequestPermissionResponse, Error> {
        self.asked.notify_one();
        std::future::pending().await
    }

    async fn read_text_file(&self, request: ReadTextFileRequest) -> Result<ReadTextFileResponse, Error> {
        Ok(ReadTextFileResponse::new(format!("the text of {}", request.path.display())))
    }
}

fn text(text: &str) -> Vec<ContentBlock> {
    vec![text.into()]
}

/// A prompt that is under way.
fn prompted(client: &Client) -> JoinHandle<Result<PromptResponse, CallError>> {
    let client = client.clone();
    tokio::spawn(async move { client.prompt("s", text("hi")).await })
}

fn chunk(text: &str) -> Value {
    let update = json!({ "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": text } });
    json!({ "jsonrpc": "2.0", "method": "session/update", "params": { "sessionId": "s", "update": update } })
}

fn permission(id: u64) -> Value {
    let options = json!([{ "optionId": "a", "name": "Allow", "kind": "allow_once" }]);
    let params = json!({ "sessionId": "s", "toolCall": { "toolCallId": "c" }, "options": options });
    json!({ "jsonrpc": "2.0", "id": id, "method": "session/request_permission", "params": params })
}

#[tokio::test]
async fn a_turn_is_told_in_order_and_ends_after_all_of_it() {
    let editor = Arc::new(Editor::default());
    let (client, mut agent) = connect(editor.clone()).await;
    let turn = prompted(&client);
    let id = agent.request("session/prompt").await["id"].clone();
    let words: Vec<String> = (0..500).map(|number| number.to_string()).collect();
    for word in &words {
        agent.send(&chunk(word)).await;
    }
    agent.result(&id, json!({ "stopReason": "end_turn" })).await;
    assert_eq!(turn.await.unwrap().unwrap().stop_reason, StopReason::EndTurn);
    let wanted: Vec<ShownUpdate> = words.into_iter().map(ShownUpdate::Agent).collect();
    assert_eq!(*editor.heard.lock().unwrap(), wanted);
}

#[tokio::test]
async fn banners_and_nonsense_are_skipped() {
    let (client, mut agent) = connect(Arc::new(())).await;
    let list = tokio::spawn(async move { client.request::<Value>("session/list", &json!({})).await });
    let id = agent.request("session/list").await["id"].clone();
    for noise in ["Welcome to the shell!\n", "{\"jsonrpc\":\n", "[]\n", "\n", "{\"id\":99,\"result\":1}\n"] {
        agent.write(noise.as_bytes()).await;
    }
    agent.result(&id, json!({ "sessions": [] })).await;
    assert_eq!(list.await.unwrap().unwrap(), json!({ "sessions": [] }));
}

#[tokio::test]
async fn requests_are_answered_by_the_handler_and_what_it_does_not_offer_is_refused() {
    let (_client, mut agent) = connect(Arc::new(Editor::default())).await;
    let params = json!({ "sessionId": "s", "path": "/a", "content": "", "command": "ls" });
    for (id, method) in [(1, "fs/read_text_file"), (2, "fs/write_text_file"), (3, "terminal/create"), (4, "_own")] {
        agent.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })).await;
    }
    let mut answers = [agent.receive().await, agent.receive().await, agent.receive().await, agent.receive().await];
    answers.sort_by_key(|answer| answer["id"].as_u64());
    let codes = answers.each_ref().map(|answer| answer["error"]["code"].as_i64());
    assert_eq!(codes, [None, Some(-32601), Some(-32601), Some(-32601)]);
    assert_eq!(answers[0]["result"], json!({ "content": "the text of /a" }));
}

#[tokio::test]
async fn a_cancel_answers_open_permissions_and_the_prompt_still_ends() {
    let editor = Arc::new(Editor::default());
    let (client, mut agent) = connect(editor.clone()).await;
    let turn = prompted(&client);
    let id = agent.request("session/prompt").await["id"].clone();
    agent.send(&permission(7)).await;
    editor.asked.notified().await;
    client.cancel("s").await.unwrap();
    assert_eq!(agent.receive().await["method"], "session/cancel");
    let answer = agent.receive().await;
    assert_eq!(
        (answer["id"].as_u64(), &answer["result"]),
        (Some(7), &json!({ "outcome": { "outcome": "cancelled" } }))
    );
    agent.result(&id, json!({ "stopReason": "cancelled" })).await;
    assert_eq!(turn.await.unwrap().unwrap().stop_reason, StopReason::Cancelled);
}

#[tokio::test]
async fn a_permission_that_was_answered_elsewhere_is_taken_back() {
    let editor = Arc::new(Editor::default());
    let (_client, mut agent) = connect(editor.clone()).await;
    agent.send(&permission(7)).await;
    editor.asked.notified().await;
    agent.send(&json!({ "jsonrpc": "2.0", "method": "$/cancel_request", "params": { "requestId": 7 } })).await;
    assert_eq!(agent.receive().await["result"], json!({ "outcome": { "outcome": "cancelled" } }));
}

#[tokio::test(start_paused = true)]
async fn calls_have_thirty_seconds_and_prompts_all_the_time_in_the_world() {
    let (client, mut agent) = connect(Arc::new(())).await;
    let begun = tokio::time::Instant::now();
    let turn = prompted(&client);
    let prompt = agent.request("session/prompt").await["id"].clone();
    let late = client.request::<Value>("session/list", &json!({})).await.unwrap_err();
    assert!(matches!(&late, CallError::Late { method, .. } if method == "session/list"), "{late:?}");
    assert_eq!(begun.elapsed().as_secs(), 30);
    let list = agent.request("session/list").await["id"].clone();
    let cancel = agent.receive().await;
    assert_eq!((&cancel["method"], &cancel["params"]["requestId"]), (&json!("$/cancel_request"), &list));
    tokio::time::advance(Duration::from_secs(48 * 3600)).await;
    agent.result(&prompt, json!({ "stopReason": "end_turn" })).await;
    assert_eq!(turn.await.unwrap().unwrap().stop_reason, StopReason::EndTurn);
}

#[tokio::test]
async fn disposal_fails_every_open_call_with_32000() {
    let (client, mut agent) = connect(Arc::new(())).await;
    let calls: Vec<_> = ["session/list", "session/close"]
        .map(|method| {
            let client = client.clone();
            tokio::spawn(async move { client.request::<Value>(method, &json!({})).await })
        })
        .into();
    agent.receive().await;
    agent.receive().await;
    client.close_connection();
    for call in calls {
        let error = call.await.unwrap().unwrap_err();
        assert_eq!((error.json_rpc_code(), error.to_string().as_str()), (-32000, "client disposed"));
    }
    let after = client.request::<Value>("session/list", &json!({})).await.unwrap_err();
    assert_eq!(after.json_rpc_code(), -32000);
    agent.hung_up().await;
}

#[tokio::test]
async fn an_agent_that_leaves_fails_every_open_call_with_32000() {
    let (client, mut agent) = connect(Arc::new(())).await;
    let turn = prompted(&client);
    agent.receive().await;
    drop(agent);
    let error = turn.await.unwrap().unwrap_err();
    assert!(matches!(&error, CallError::Gone(why) if matches!(**why, LinkError::Closed)), "{error:?}");
    assert_eq!(error.json_rpc_code(), -32000);
    assert!(matches!(*client.wait_gone().await, LinkError::Closed));
}

#[tokio::test]
async fn a_failed_write_fails_the_call_at_once() {
    // The agent's side of the write is closed, its side of the read is not.
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let (writer, refused) = tokio::io::duplex(1 << 16);
    let link = Link::from_line_streams(ours, writer);
    let mut agent = Scripted::over(tokio::io::empty(), theirs);
    agent.send(&json!({ "jsonrpc": "2.0", "id": 1, "result": { "protocolVersion": 1 } })).await;
    let client = Client::connect(link, Implementation::new("test", "0"), Arc::new(())).await.unwrap();
    drop(refused);
    let error = client.prompt("s", text("hi")).await.unwrap_err();
    assert!(matches!(&error, CallError::Gone(why) if matches!(**why, LinkError::Io(_))), "{error:?}");
}

#[tokio::test]
async fn another_version_of_the_protocol_is_refused() {
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let (reader, writer) = tokio::io::split(ours);
    let mut agent = Scripted::over(tokio::io::empty(), theirs);
    agent.send(&json!({ "jsonrpc": "2.0", "id": 1, "result": { "protocolVersion": 2 } })).await;
    let refused =
        Client::connect(Link::from_line_streams(reader, writer), Implementation::new("test", "0"), Arc::new(())).await;
    assert_eq!(refused.unwrap_err().to_string(), "the agent speaks another version of the protocol: 2");
}

#[tokio::test]
async fn a_slow_handler_stops_the_agent_and_not_the_caller() {
    struct Stuck;
    #[async_trait]
    impl Handler for Stuck {
        async fn updated(&self, _: SessionNotification) {
            std::future::pending().await
        }
    }
    let (client, mut agent) = connect(Arc::new(Stuck)).await;
    let update = chunk(&"x".repeat(1000));
    let flood = async {
        loop {
            agent.send(&update).await;
        }
    };
    // The agent comes to a stand; until then it could send no more than the queues hold.
    assert!(tokio::time::timeout(Duration::from_millis(500), flood).await.is_err());
    client.cancel("s").await.unwrap();
    assert_eq!(agent.receive().await["method"], "session/cancel");
}
