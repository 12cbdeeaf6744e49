//! Dialects and version 2 at the real binary: forced by flag and address, found by behaviour, kept across a kill.

use anyhow::{Context, ensure};
use gander_testkit::harness::{Agent, Background, Launch, data, workspace};
use serde_json::{Value, json};

use crate::acp_net::http::{AcpHttpClient, Answer};
use crate::acp_net::socket::Socket;
use crate::acp_net::test_server::TestServer;

/// A client of the legacy dialect of goose's unified server: it knows one id, and reads the answer where it asked.
pub(crate) struct Goosed {
    http_client: AcpHttpClient,
    pub(crate) session: String,
}

impl Goosed {
    pub(crate) async fn begin(http_client: &AcpHttpClient, params: Value) -> anyhow::Result<(Self, Value)> {
        let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params});
        let answer = http_client.post(&[], hello.to_string().as_bytes()).await?;
        ensure!(answer.status == 200, "{answer:?}");
        let session = answer.header("acp-session-id").context("no session")?.to_owned();
        Ok((Self { http_client: http_client.clone(), session }, answer.json()))
    }

    async fn post(&self, message: Value) -> anyhow::Result<Answer> {
        self.http_client.post(&[("Acp-Session-Id", &self.session)], message.to_string().as_bytes()).await
    }

    pub(crate) async fn call(&self, method: &str, params: Value) -> anyhow::Result<Value> {
        let answer = self.post(json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})).await?;
        ensure!(answer.status == 200, "{answer:?}");
        Ok(answer.json())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_legacy_goose_dialect_is_answered_in_the_body_also_after_a_kill() -> anyhow::Result<()> {
    let server = TestServer::with("GANDER_LOG", "info").await?;
    let (mut client, hello) = Goosed::begin(&server.http_client, json!({})).await?;
    let result = &hello["result"];
    assert_eq!((&result["_session_id"], &result["protocol_version"]), (&json!(client.session), &json!("2024-11-05")));
    ensure!(result["modes"]["available"].is_array() && result["config_options"].is_array(), "{hello}");
    let ended = json!({"stop_reason": "end_turn"});
    assert_eq!(turn(&client, json!({"prompt": "hello"})).await?, ended);
    assert_eq!(turn(&client, json!({"text": "and again"})).await?, ended);
    assert_eq!(client.call("cancel", json!({})).await?["result"], json!({}));
    let mode = hello["result"]["modes"]["available"][1]["id"].clone();
    assert_eq!(client.call("set_session_mode", json!({"mode_id": mode})).await?["result"], json!({}));
    let cancel = client.post(json!({"jsonrpc": "2.0", "method": "cancel"})).await?;
    assert_eq!((cancel.status, cancel.body.as_str()), (202, ""));
    let fresh = client.call("new_session", json!({})).await?;
    let second = fresh["result"]["session_id"].as_str().context("no second session")?.to_owned();
    ensure!(second != client.session && fresh["result"]["modes"]["current_mode_id"].is_string(), "{fresh}");
    let server = server.restart().await?;
    client.http_client = server.http_client.clone();
    assert_eq!(turn(&client, json!({"prompt": "after the kill"})).await?, ended);
    let loaded = client.call("load_session", json!({"session_id": second})).await?;
    ensure!(loaded["result"]["modes"].is_object(), "{loaded}");
    let said = server.server.launch.export(&client.session).await?;
    ensure!(format!("{said:?}").contains("after the kill"), "the prompt went elsewhere");
    let other = Goosed { http_client: server.http_client.clone(), session: second };
    assert_eq!(turn(&other, json!({"prompt": "by its own id"})).await?, ended);
    let closed = server.http_client.send("DELETE", &[("Acp-Session-Id", &client.session)], b"").await?;
    assert_eq!(closed.status, 202);
    assert_eq!(turn(&client, json!({"prompt": "the session is still there"})).await?, ended);
    let nobody =
        Goosed { http_client: server.http_client.clone(), session: "0199aaaa-0000-7000-8000-000000000000".to_owned() };
    assert_eq!(nobody.post(json!({"jsonrpc": "2.0", "id": 1, "method": "prompt"})).await?.status, 404);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_legacy_prompt_streams_its_updates_in_the_body_if_it_asks_for_events() -> anyhow::Result<()> {
    let server = TestServer::with("GANDER_PERMISSIONS_REMIND_AFTER", "1ms").await?;
    let (client, _) = Goosed::begin(&server.http_client, json!({})).await?;
    assert_eq!(turn(&client, json!({"prompt": "hello"})).await?, json!({"stop_reason": "end_turn"}));
    let headers = [("Acp-Session-Id", client.session.as_str()), ("Accept", "text/event-stream")];
    let script = "[[script:[[{\"text\":\"streamed words\",\"chunks\":4}]]]]";
    let prompt =
        |text: &str| json!({"jsonrpc": "2.0", "id": 9, "method": "prompt", "params": {"prompt": text}}).to_string();
    let answer = server.http_client.post(&headers, prompt(script).as_bytes()).await?;
    ensure!(
        answer.status == 200 && answer.header("content-type") == Some("text/event-stream; charset=utf-8"),
        "{answer:?}"
    );
    let told = streamed(&answer);
    let (last, updates) = told.split_last().context("nothing was streamed")?;
    assert_eq!((&last["id"], &last["result"]["stop_reason"]), (&json!(9), &json!("end_turn")));
    let text: String = updates.iter().filter_map(|told| told["params"]["update"]["text"].as_str()).collect();
    assert_eq!(text, "streamed words", "this turn's words, and nothing of the one before: {updates:?}");
    // A question ends the stream with what waits.
    let answer = server.http_client.post(&headers, prompt("ask").as_bytes()).await?;
    let told = streamed(&answer);
    let last = told.last().context("nothing was streamed")?;
    ensure!(last["result"]["stop_reason"] == "awaiting" && last["result"]["question"]["id"].is_string(), "{told:?}");
    Ok(())
}

/// The events of a whole response, without what frames them.
fn streamed(answer: &Answer) -> Vec<Value> {
    answer.body.lines().filter_map(|line| serde_json::from_str(line.strip_prefix("data: ")?).ok()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_id_alone_opens_the_sessions_stream() -> anyhow::Result<()> {
    let server = TestServer::with("GANDER_LOG", "info").await?;
    let (client, _) = Goosed::begin(&server.http_client, json!({})).await?;
    // One that was made on another connection gets a connection of its own.
    let (other, _) = Goosed::begin(&server.http_client, json!({})).await?;
    let fresh = other.call("new_session", json!({})).await?;
    let second = fresh["result"]["session_id"].as_str().context("no second session")?.to_owned();
    for session in [client.session.clone(), second] {
        let header = [("Acp-Session-Id", session.as_str())];
        let mut events = server.http_client.events(&header, usize::MAX).await?;
        ensure!(events.status() == 200 && events.header("acp-session-id") == Some(&session), "{}", events.status());
        let other = Goosed { http_client: server.http_client.clone(), session: session.clone() };
        assert_eq!(turn(&other, json!({"prompt": "hello"})).await?, json!({"stop_reason": "end_turn"}));
        let told = events.next().await?.context("no event")?.json();
        assert_eq!((&told["method"], &told["params"]["session_id"]), (&json!("session/update"), &json!(session)));
    }
    let nobody = [("Acp-Session-Id", "0199aaaa-0000-7000-8000-000000000000")];
    assert_eq!(server.http_client.events(&nobody, usize::MAX).await?.status(), 404);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn aptoves_modes_streaming_and_stop_reason() -> anyhow::Result<()> {
    let server = TestServer::with("GANDER_LOG", "info").await?;
    let mut socket = Socket::open(&server.http_client.at("?dialect=aptove")).await?;
    let mut call = async |id: u64, method: &str, params: Value| -> anyhow::Result<(Vec<Value>, Value)> {
        socket.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await?;
        let mut before = Vec::new();
        loop {
            let message = socket.message().await?;
            if message["id"] == id {
                return Ok((before, message));
            }
            before.push(message);
        }
    };
    call(0, "initialize", json!({"protocolVersion": 1})).await?;
    let (_, made) = call(1, "session/new", json!({"cwd": server.folder})).await?;
    let session = made["result"]["sessionId"].clone();
    let value = |config: &Value, id: &str| {
        let mut options = config.as_array().into_iter().flatten();
        options.find(|option| option["id"] == id).map(|option| option["currentValue"].clone()).unwrap_or_default()
    };
    assert_eq!(value(&made["result"]["config"], "streaming"), "enabled");
    for (mode, meant, policy) in
        [("plan", "planner", "ask"), ("code", "backend", "ask"), ("chat", "assistant", "read_only")]
    {
        let (_, set) = call(2, "session/set_mode", json!({"sessionId": session, "modeId": mode})).await?;
        ensure!(set.get("error").is_none(), "{set}");
        let option = json!({"sessionId": session, "configId": "streaming", "value": "disabled"});
        let (_, options) = call(3, "session/set_config_option", option).await?;
        let config = &options["result"]["config"];
        assert_eq!((value(config, "mode"), value(config, "policy")), (json!(meant), json!(policy)), "{mode}");
        assert_eq!(value(config, "streaming"), "disabled");
    }
    let script = "[[script:[[{\"text\":\"one whole message\",\"chunks\":6},{\"stop\":\"stop_sequence\"}]]]]";
    let prompt = json!({"sessionId": session, "prompt": [{"type": "text", "text": script}]});
    let (told, ended) = call(4, "session/prompt", prompt).await?;
    assert_eq!(ended["result"]["stopReason"], "stop_sequence", "{ended}");
    let updates = told.iter().map(|told| &told["params"]["update"]).filter(|told| told["type"] == "agentMessageChunk");
    let texts: Vec<&Value> = updates.map(|update| &update["content"]["text"]).collect();
    assert_eq!(texts, ["one whole message"]);
    let bad = json!({"sessionId": session, "configId": "streaming", "value": "maybe"});
    let (_, refused) = call(5, "session/set_config_option", bad).await?;
    assert_eq!(refused["error"]["message"], "unknown streaming 'maybe', available: enabled, disabled");
    let (_, model) = call(6, "session/set_model", json!({"sessionId": session, "modelId": "demo"})).await?;
    assert_eq!(value(&model["result"]["config"], "model"), "demo/demo", "{model}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bare_request_tells_a_client_of_the_legacy_goose_dialect_that_introduced_itself_otherwise()
-> anyhow::Result<()> {
    let server = TestServer::with("GANDER_LOG", "info").await?;
    let (mut client, hello) = Goosed::begin(&server.http_client, json!({"protocolVersion": 1})).await?;
    ensure!(hello["result"].get("_session_id").is_none(), "{hello}");
    assert_eq!(turn(&client, json!({"prompt": "hello"})).await?, json!({"stop_reason": "end_turn"}));
    client.http_client = server.restart().await?.http_client;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_address_forces_a_dialect_and_a_kill_changes_nothing() -> anyhow::Result<()> {
    let mut server = TestServer::with("GANDER_LOG", "info").await?;
    let hello = br#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}"#;
    assert_eq!(server.http_client.at("?dialect=klingon").post(&[], hello).await?.status, 400);
    assert_eq!(Socket::ask(&server.http_client.at("?dialect=klingon"), &[]).await?.head.split(' ').nth(1), Some("400"));
    let connection = server.http_client.at("?dialect=aptove").connect().await?;
    for restarts in 0..2 {
        let headers = [("Acp-Connection-Id", connection.as_str())];
        let mut own =
            server.http_client.events(&[&headers[..], &[("Last-Event-ID", "0")]].concat(), usize::MAX).await?;
        let new = json!({"jsonrpc": "2.0", "id": restarts, "method": "session/new", "params": {"cwd": server.folder}});
        assert_eq!(server.http_client.post(&headers, new.to_string().as_bytes()).await?.status, 202);
        let answer = loop {
            let message = own.next().await?.context("no answer")?.json();
            if message["id"] == restarts {
                break message;
            }
        };
        ensure!(answer["result"]["config"].is_array() && answer["result"].get("configOptions").is_none(), "{answer}");
        server = server.restart().await?;
    }
    let mut socket = Socket::open(&server.http_client.at("?x=1&dialect=aptove")).await?;
    socket.send(&serde_json::from_slice(hello)?).await?;
    socket.message().await?;
    socket.send(&json!({"jsonrpc": "2.0", "id": 1, "method": "session/new", "params": {"cwd": server.folder}})).await?;
    let answer = socket.message().await?;
    ensure!(answer["result"]["config"].is_array(), "{answer}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn version_2_is_spoken_only_behind_its_switch_and_a_kill_changes_nothing() -> anyhow::Result<()> {
    let hello = br#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":2,"info":{"name":"c","version":"1"}}}"#;
    let off = TestServer::with("GANDER_ACP_V2", "false").await?;
    assert_eq!(off.http_client.post(&[], hello).await?.json()["result"]["protocolVersion"], 1);
    let mut server = TestServer::with("GANDER_ACP_V2", "true").await?;
    let answer = server.http_client.post(&[], hello).await?;
    assert_eq!(answer.json()["result"]["protocolVersion"], 2);
    let connection = answer.header("acp-connection-id").context("no connection")?.to_owned();
    let headers = [("Acp-Connection-Id", connection.as_str())];
    let mut own = server.http_client.events(&headers, usize::MAX).await?;
    let new = json!({"jsonrpc": "2.0", "id": 1, "method": "session/new", "params": {"cwd": server.folder}});
    server.http_client.post(&headers, new.to_string().as_bytes()).await?;
    let session = own.next().await?.context("no answer")?.json()["result"]["sessionId"].clone();
    for id in 2..4 {
        let prompt = [json!({"type": "text", "text": "hello"})];
        let prompt = json!({"jsonrpc": "2.0", "id": id, "method": "session/prompt",
            "params": {"sessionId": session, "prompt": prompt}});
        server.http_client.post(&headers, prompt.to_string().as_bytes()).await?;
        let named = ("Acp-Session-Id", session.as_str().context("no id")?);
        let mut stream =
            server.http_client.events(&[headers[0], named, ("Last-Event-ID", "1.1.0")], usize::MAX).await?;
        ensure!(stream.status() == 200, "{}", stream.head);
        let mut idle = 0;
        while idle < id - 1 {
            let message = stream.next().await?.context("the stream ended")?.json();
            ensure!(message["result"].get("stopReason").is_none(), "{message}");
            idle += i32::from(message["params"]["update"]["stopReason"] == "end_turn");
        }
        server = server.restart().await?;
    }
    Ok(())
}

#[tokio::test]
async fn flags_of_the_editor_s_command_choose_dialect_and_version() -> anyhow::Result<()> {
    let root = tempfile::tempdir()?;
    let launch = Launch::demo(env!("CARGO_BIN_EXE_gander"), data(root.path())?);
    let _background = Background(launch.data.clone());
    let folder = workspace(root.path())?;
    let mut agent: Agent = launch.editor(&["--dialect", "agentkit"]).await?;
    let made = agent.client.call("session/new", json!({"cwd": folder, "metadata": {"branch": "main"}})).await?;
    assert_eq!(made["session"]["metadata"], json!({"branch": "main"}));
    let mut agent = launch.acp(&["--acp-v2"])?;
    let params = json!({"protocolVersion": 2, "info": {"name": "c", "version": "1"}});
    assert_eq!(agent.client.call("initialize", params).await?["protocolVersion"], 2);
    let wrong = launch.run(&["acp", "--dialect", "klingon"]).await?;
    let said = String::from_utf8_lossy(&wrong.stderr).into_owned();
    ensure!(wrong.status.code() == Some(2) && said.contains("no such dialect"), "{said}");
    Ok(())
}

/// A turn's answer, without what it used.
async fn turn(client: &Goosed, params: Value) -> anyhow::Result<Value> {
    let mut answer = client.call("prompt", params).await?;
    let result = answer["result"].as_object_mut().with_context(|| "no result".to_owned())?;
    result.remove("usage");
    Ok(json!(result))
}
