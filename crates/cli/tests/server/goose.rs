//! The binary called as `goose`: what goose's own clients check, start and ask.
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::process::Stdio;

use gander_testkit::harness::{
    Agent, Background, Client, Launch, PATIENCE, Process, binary, script, terminate, workspace,
};
use serde_json::{Value, json};

/// A folder with a link called `goose` to the real binary.
struct GooseLink {
    root: tempfile::TempDir,
    launch: Launch,
    _background: Background,
}

impl GooseLink {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let link = root.path().join("goose");
        std::os::unix::fs::symlink(binary(env!("CARGO_BIN_EXE_gander")), &link).unwrap();
        let data = root.path().join("data");
        std::fs::create_dir_all(&data).unwrap();
        let launch = Launch::demo(link, &data);
        Self { root, launch, _background: Background(data) }
    }

    fn work(&self) -> PathBuf {
        workspace(self.root.path()).unwrap()
    }

    /// `goose acp`, already initialized as a goose client does it.
    async fn goose(&self) -> Agent {
        let mut agent = Agent::spawn(self.launch.command(["acp", "--with-builtin", "developer"])).unwrap();
        let hello = json!({"protocolVersion": 1, "clientInfo": {"name": "vscode-goose", "version": "0.1.0"}});
        agent.client.call("initialize", hello).await.unwrap();
        agent
    }
}

/// The pattern of the version gate: the first `major.minor.patch` in the output.
fn version(output: &str) -> (u32, u32, u32) {
    let digits = |text: &str| text.chars().take_while(char::is_ascii_digit).collect::<String>().parse().unwrap();
    let start = output.find(|letter: char| letter.is_ascii_digit()).unwrap();
    let mut parts = output[start..].split('.').map(digits);
    (parts.next().unwrap(), parts.next().unwrap(), parts.next().unwrap())
}

/// The integration checklist of goose's editor extension, point by point.
#[tokio::test]
async fn the_checklist_of_an_acp_client_of_goose() {
    let goose_link = GooseLink::new();
    let work = goose_link.work();
    // 1, 2: found, and new enough.
    let said = goose_link.launch.stdout(&["--version"]).await.unwrap();
    assert!(version(&said) >= (1, 16, 0) && said.starts_with("goose "), "{said}");
    // 3, 4, 5: started with piped stdio; capabilities in the answer.
    let mut agent = Agent::spawn(goose_link.launch.command(["acp"])).unwrap();
    let hello = json!({"protocolVersion": 1, "clientInfo": {"name": "vscode-goose", "version": "0.1.0"}});
    let answer = agent.client.call("initialize", hello).await.unwrap();
    assert_eq!((&answer["protocolVersion"], &answer["agentCapabilities"]["loadSession"]), (&json!(1), &json!(true)));
    // 6, 7, 8: a session in a folder, tokens as they come, the answer after them.
    let session = agent.client.call("session/new", json!({"cwd": work})).await.unwrap();
    let session = session["sessionId"].as_str().unwrap().to_owned();
    let text = script(&[json!([{"text": "one two three", "chunks": 3}])]);
    assert_eq!(agent.client.turn(&session, &text).await.unwrap(), "end_turn");
    assert_eq!(spoken(&agent.client.seen), "one two three");
    // 9: cancelled by a notification.
    let prompt = agent.client.prompt(&session, &script(&[json!([{"text": "a", "delay_ms": 60000}])])).await.unwrap();
    agent.client.notify("session/cancel", json!({"sessionId": session})).await.unwrap();
    assert_eq!(agent.client.answer_to(prompt).await.unwrap()["stopReason"], "cancelled");
    // 11: a crash is seen, and a restart works.
    let process = agent.process();
    kill(process);
    assert!(agent.client.receive().await.unwrap_or(None).is_none());
    // 10: the history is there after it.
    let mut again = goose_link.goose().await;
    again.client.load(&session, &work).await.unwrap();
    assert!(spoken(&again.client.seen).starts_with("one two three"));
    // 12: SIGTERM ends it within five seconds.
    let asked = std::time::Instant::now();
    terminate(again.process()).unwrap();
    while again.client.receive().await.unwrap().is_some() {}
    assert!(asked.elapsed().as_secs() < 5);
}

fn kill(Process(pid): Process) {
    let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}

fn spoken(seen: &[Value]) -> String {
    let updates = seen.iter().map(|message| &message["params"]["update"]);
    let chunks = updates.filter(|update| update["sessionUpdate"] == "agent_message_chunk");
    chunks.filter_map(|update| update["content"]["text"].as_str()).collect()
}

#[tokio::test]
async fn it_says_that_it_is_gander_and_what_it_does_not_do() {
    let goose_link = GooseLink::new();
    let help = goose_link.launch.stdout(&["--help"]).await.unwrap();
    assert!(help.contains("gander"), "{help}");
    let refused = goose_link.launch.run(&["configure"]).await.unwrap();
    assert_eq!(refused.status.code(), Some(2));
}

async fn goose(client: &mut Client, method: &str, params: Value) -> Value {
    client.call(&format!("_goose/unstable/{method}"), params).await.unwrap_or_else(|error| panic!("{method}: {error}"))
}

#[tokio::test]
async fn methods_that_chat_sessions_tools_providers_and_settings_need() {
    let goose_link = GooseLink::new();
    let mut agent = goose_link.goose().await;
    let client = &mut agent.client;
    let session = client.new_session(&goose_link.work()).await.unwrap();
    let named = json!({"sessionId": session});
    client.turn(&session, &script(&[json!([{"text": "hello"}])])).await.unwrap();
    goose(client, "session/rename", json!({"sessionId": session, "title": "A name"})).await;
    let info = goose(client, "session/info", named.clone()).await["session"].clone();
    assert_eq!(
        (&info["title"], &info["cwd"], &info["_meta"]["messageCount"], &info["_meta"]["providerId"]),
        (&json!("A name"), &json!(goose_link.work()), &json!(2), &json!("demo"))
    );
    let tools = goose(client, "tools/list", named.clone()).await["tools"].clone();
    let names: Vec<&str> = tools.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert!(names.is_sorted() && names.contains(&"shell"), "{names:?}");
    let listed = goose(client, "providers/list", json!({"providerIds": ["demo"]})).await["entries"].clone();
    assert_eq!((listed.as_array().unwrap().len(), &listed[0]["configured"]), (1, &json!(true)));
    let status = goose(client, "providers/config/status", json!({"providerIds": ["openai"]})).await;
    assert_eq!(status, json!({"statuses": [{"providerId": "openai", "isConfigured": false}]}));
    assert_eq!(goose(client, "defaults/read", json!({})).await, json!({"providerId": "demo", "modelId": "demo"}));
    for (method, params) in [("session/archive", &named), ("session/unarchive", &named)] {
        assert_eq!(goose(client, method, params.clone()).await, json!({}));
    }
    for method in ["local-inference/models/list", "dictation/config", "session/share/nostr", "nonsense"] {
        let refused = client.call(&format!("_goose/unstable/{method}"), named.clone()).await.unwrap_err();
        assert!(refused.to_string().contains("-32601"), "{method}: {refused}");
    }
}

/// What a client saves is in force for its next session, for all that attach later, and never holds a key.
#[tokio::test]
async fn settings_are_kept_and_used() {
    let mut goose_link = GooseLink::new();
    goose_link.launch.variables.retain(|(name, _)| name != "GANDER_MODEL"); // it would win
    let mut agent = goose_link.goose().await;
    let client = &mut agent.client;
    let saved = goose(client, "defaults/save", json!({"providerId": "openai", "modelId": "gpt-4o"})).await;
    assert_eq!(saved, json!({"providerId": "openai", "modelId": "gpt-4o"}));
    goose(client, "config/upsert", json!({"key": "GOOSE_MODE", "value": "chat"})).await;
    goose(client, "preferences/save", json!({"values": [{"key": "autoCompactThreshold", "value": 0.5}]})).await;
    let refused = client.call("_goose/unstable/config/upsert", json!({"key": "OPENAI_API_KEY", "value": "sk"})).await;
    assert!(refused.unwrap_err().to_string().contains("-32602"));
    let mut other = goose_link.goose().await;
    let session = other.client.new_session(&goose_link.work()).await.unwrap();
    let exported = goose(&mut other.client, "session/export", json!({"sessionId": session})).await;
    let file: Value = serde_json::from_str(exported["data"].as_str().unwrap()).unwrap();
    assert_eq!(
        (&file["provider_name"], &file["model_config"]["model_name"], &file["goose_mode"]),
        (&json!("openai"), &json!("gpt-4o"), &json!("chat"))
    );
    let kept = goose(&mut other.client, "preferences/read", json!({"keys": ["autoCompactThreshold"]})).await;
    assert_eq!(kept, json!({"values": [{"key": "autoCompactThreshold", "value": 0.5}]}));
    goose(&mut other.client, "config/remove", json!({"key": "GOOSE_MODE"})).await;
    assert_eq!(
        goose(&mut other.client, "config/read", json!({"key": "GOOSE_MODE"})).await,
        json!({"value": "approve"})
    );
}

/// An extension that is switched off is kept, in the list and over a restart of its client, and used by nobody.
#[tokio::test]
async fn an_extension_is_switched_off_and_on() {
    let goose_link = GooseLink::new();
    let mut agent = goose_link.goose().await;
    let client = &mut agent.client;
    let web = json!({"type": "streamable_http", "uri": "http://127.0.0.1:9/mcp"});
    goose(client, "config/extensions/add", json!({"name": "web", "extensionConfig": web, "enabled": true})).await;
    goose(client, "config/extensions/toggle", json!({"configKey": "web", "enabled": false})).await;
    let mut other = goose_link.goose().await;
    let client = &mut other.client;
    let web = |listed: Value| listed["extensions"].as_array().unwrap().last().unwrap().clone();
    let listed = web(goose(client, "config/extensions/list", json!({})).await);
    assert_eq!((&listed["configKey"], &listed["enabled"]), (&json!("web"), &json!(false)));
    let session = client.new_session(&goose_link.work()).await.unwrap();
    let used = goose(client, "session/extensions/list", json!({"sessionId": session})).await;
    assert!(used["extensions"].as_array().unwrap().iter().all(|known| known["extensionKey"] != "web"), "{used}");
    goose(client, "config/extensions/toggle", json!({"configKey": "web", "enabled": true})).await;
    let used = goose(client, "session/extensions/list", json!({"sessionId": session})).await;
    assert_eq!(web(used)["extensionKey"], json!("web"));
    let unknown = json!({"configKey": "none", "enabled": true});
    let refused = client.call("_goose/unstable/config/extensions/toggle", unknown).await.unwrap_err();
    assert!(refused.to_string().contains("no such extension: none"), "{refused}");
}

/// goose's own extensions are switched by its own methods, and its tools come and go with them.
#[tokio::test]
async fn tools_of_our_own_are_switched_by_goose_s_names() {
    let goose_link = GooseLink::new();
    let mut agent = goose_link.goose().await;
    let client = &mut agent.client;
    let session = client.new_session(&goose_link.work()).await.unwrap();
    let has = async |client: &mut Client, tool: &str| {
        let listed = goose(client, "tools/list", json!({"sessionId": session})).await;
        listed["tools"].as_array().unwrap().iter().any(|known| known["name"] == tool)
    };
    assert!(has(client, "plan").await && !has(client, "memory__remember_memory").await);
    let memory = json!({"sessionId": session, "config": {"type": "builtin", "name": "Memory"}});
    goose(client, "session/extensions/add", memory).await;
    goose(client, "config/extensions/toggle", json!({"configKey": "todo", "enabled": false})).await;
    assert!(!has(client, "plan").await && has(client, "memory__remember_memory").await);
    goose(client, "session/extensions/remove", json!({"sessionId": session, "name": "memory"})).await;
    goose(client, "config/extensions/toggle", json!({"configKey": "todo", "enabled": true})).await;
    assert!(has(client, "plan").await && !has(client, "memory__remember_memory").await);
    let none = json!({"sessionId": session, "config": {"type": "platform", "name": "chatrecall"}});
    let refused = client.call("_goose/unstable/session/extensions/add", none).await.unwrap_err();
    assert!(refused.to_string().contains("an agent sees its own session alone"), "{refused}");
}

#[tokio::test]
async fn a_file_of_goose_goes_in_and_comes_out_and_can_be_gone_back_in() {
    let goose_link = GooseLink::new();
    let mut agent = goose_link.goose().await;
    let client = &mut agent.client;
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../interop/data/goose-1.52-export.json");
    let text = std::fs::read_to_string(path).unwrap();
    let file: Value = serde_json::from_str(&text).unwrap();
    let made = goose(client, "session/import", json!({"data": text})).await;
    assert_eq!((&made["title"], &made["messageCount"]), (&json!("demo"), &json!(5)));
    let named = json!({"sessionId": made["sessionId"]});
    let exported = goose(client, "session/export", named.clone()).await;
    let ours: Value = serde_json::from_str(exported["data"].as_str().unwrap()).unwrap();
    assert_eq!(ours["conversation"], file["conversation"]);
    assert_eq!(ours["extension_data"], file["extension_data"]);
    assert_eq!(
        (&ours["accumulated_input_tokens"], &ours["accumulated_output_tokens"], &ours["total_tokens"]),
        (&json!(30), &json!(6), &json!(24))
    );
    let from = json!({"sessionId": made["sessionId"], "truncateFrom": "chatcmpl-1"});
    goose(client, "session/conversation/truncate", from).await;
    let left = goose(client, "session/export", named).await;
    let left: Value = serde_json::from_str(left["data"].as_str().unwrap()).unwrap();
    assert_eq!(left["conversation"], json!(file["conversation"].as_array().unwrap()[..2]));
    for bad in ["", "[]", "{\"conversation\":[{\"role\":\"wizard\",\"content\":\"x\"}]}", "\u{0}"] {
        let refused = client.call("_goose/unstable/session/import", json!({"data": bad})).await.unwrap_err();
        assert!(refused.to_string().contains("-32602"), "{bad}: {refused}");
    }
}

/// goose's modes are what may run unasked.
#[tokio::test]
async fn a_mode_of_goose_is_a_policy_here() {
    let goose_link = GooseLink::new();
    let mut agent = goose_link.goose().await;
    let client = &mut agent.client;
    let session = client.new_session(&goose_link.work()).await.unwrap();
    client.call("session/set_mode", json!({"sessionId": session, "modeId": "approve"})).await.unwrap();
    let exported = goose(client, "session/export", json!({"sessionId": session})).await;
    assert!(exported["data"].as_str().unwrap().contains("\"goose_mode\": \"approve\""));
}

/// `goose serve` takes the key that goose's clients are started with, and the server's own token.
#[tokio::test]
async fn goose_serve_takes_the_secret_key() {
    let goose_link = GooseLink::new();
    let launch = goose_link.launch.clone().with("GOOSE_SERVER__SECRET_KEY", "goose-and-gander");
    let mut child =
        launch.command(["serve", "--port", "0"]).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = tokio::io::AsyncBufReadExt::lines(tokio::io::BufReader::new(child.stdout.take().unwrap()));
    let line = tokio::time::timeout(PATIENCE, lines.next_line()).await.unwrap().unwrap().unwrap();
    let url = line.split_whitespace().find(|word| word.starts_with("http://")).unwrap().to_owned();
    rustls::crypto::ring::default_provider().install_default().ok();
    let http = reqwest::Client::new();
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}});
    let mut statuses = Vec::new();
    for key in ["goose-and-gander", "wrong", ""] {
        let request = http.post(format!("{url}/acp")).header("x-secret-key", key).json(&hello);
        statuses.push(request.send().await.unwrap().status().as_u16());
    }
    assert_eq!(statuses, [200, 401, 401]);
    assert_eq!(http.get(format!("{url}/status")).send().await.unwrap().text().await.unwrap(), "ok");
    child.kill().await.unwrap();
}
