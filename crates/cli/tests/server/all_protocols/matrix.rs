//! Every protocol in front, every back-end behind: one table, the same steps through each pair.

use std::time::Duration;

use anyhow::{Context as _, ensure};
use gander_domain::{Event, Outcome, Part};
use gander_testkit::conformance::ConformanceRecorder;
use gander_testkit::harness::{Launch, Server, binary, script};
use serde_json::{Value, json};

use super::events::Events;
use super::protocols::{self, ProtocolClient, TestSession};
use super::{launch_test_server, test_server_with, watch_and_answer};

/// What is shown through every pair.
const STEPS: [&str; 5] = ["text", "tool", "question", "cancel", "error"];
/// What is shown through one protocol per back-end.
const MORE_STEPS: [&str; 4] = ["thought", "image", "crash", "hand-over"];

/// A back-end, and the settings that put it behind the name `behind`. Its peer is another server of our own.
struct Back {
    name: &'static str,
    settings: fn(&Peer) -> String,
}

/// The agent of the conformance server that is a prompt handler of the library.
const HANDLER: &str = "handler";

const BACKS: [Back; 9] = [
    Back { name: "native", settings: |_| String::new() },
    Back { name: "ACP program", settings: |peer| format!("[agents.behind]\n{}", peer.program()) },
    Back { name: "ACP HTTP", settings: |peer| peer.agent("acp", "/acp") },
    Back { name: "goosed", settings: |peer| peer.agent("goosed", "") + "protocol = \"rest\"\n" },
    Back { name: "A2A 1.0", settings: |peer| peer.agent("a2a", "/a2a/gander") },
    Back { name: "A2A 0.3", settings: |peer| peer.agent("a2a", "/a2a/gander") + "version = \"0.3\"\n" },
    Back { name: "ACP-REST", settings: |peer| peer.agent("acp_rest", "") + "agent = \"gander\"\n" },
    Back { name: "ADK", settings: |peer| peer.agent("adk", "") + "agent = \"gander\"\n" },
    Back { name: HANDLER, settings: |_| String::new() },
];

/// Another server of our own kind, which runs the agent.
struct Peer {
    server: Server,
    token: String,
    root: tempfile::TempDir,
}

impl Peer {
    async fn start() -> anyhow::Result<Self> {
        let root = tempfile::tempdir()?;
        let data = root.path().join("peer");
        std::fs::create_dir_all(&data)?;
        // Leaving is how ADK's clients and those of a goosed cancel.
        let launch = Launch::demo(binary(env!("CARGO_BIN_EXE_gander")), data);
        let launch = launch.with("GANDER_ADK_ON_LEAVE", "cancel").with("GANDER_SERVER_REPLY_GRACE", "0s");
        let server = launch.serve().await?;
        let token = launch.stdout(&["token"]).await?.trim().to_owned();
        Ok(Self { server, token, root })
    }

    fn agent(&self, kind: &str, path: &str) -> String {
        let (address, token) = (self.server.address, &self.token);
        format!(
            "[agents.behind]\nkind = {kind:?}\nurl = \"http://{address}{path}\"\nsecret_key = {token:?}\ntimeout = \"10s\"\n"
        )
    }

    fn program(&self) -> String {
        // Each process has data of its own: of two on the same data the second ends the first.
        let line = "GANDER_DATA=\"$1/$$\" exec \"$0\" acp --standalone";
        let command = json!(["/bin/sh", "-c", line, binary(env!("CARGO_BIN_EXE_gander")), self.root.path()]);
        format!("command = {command}\nenv = {{ GANDER_MODEL = \"demo/demo\" }}\n")
    }
}

/// A server in front of the peer, with a session of the agent behind it.
async fn in_front(back: &Back, peer: &Peer) -> anyhow::Result<(tempfile::TempDir, Server, TestSession)> {
    let settings = format!("[adk]\non_leave = \"cancel\"\n{}", (back.settings)(peer));
    if back.name == HANDLER {
        return handler_in_front(&settings).await;
    }
    let (root, server, mut test_session) = test_server_with(&settings).await?;
    if back.name != "native" {
        test_session.agent = "behind".to_owned();
    }
    Ok((root, server, test_session))
}

/// A server with an agent that is a prompt handler of the library, in its own process.
async fn handler_in_front(settings: &str) -> anyhow::Result<(tempfile::TempDir, Server, TestSession)> {
    let started = launch_test_server(settings, Launch::with_conformance_agents).await?;
    let (root, server, mut test_session) = started;
    test_session.agent = HANDLER.to_owned();
    Ok((root, server, test_session))
}

async fn drive_back(back: &Back) -> anyhow::Result<()> {
    let mut recorder = ConformanceRecorder::for_protocol("back-ends");
    recorder.lists(back.name, STEPS);
    recorder.lists(back.name, MORE_STEPS);
    let peer = Peer::start().await?;
    let (_root, server, test_session) = in_front(back, &peer).await?;
    for protocol in protocols::all() {
        let said = format!("{} through {}", back.name, protocol.name());
        protocol.say(&test_session, &script(&[json!([{ "text": said, "chunks": 3 }])])).await.context(said.clone())?;
        ensure!(protocol.history(&test_session).await?.contains(&said), "{said} is not shown");
        recorder.shows(back.name, "text", protocol.name());
        let of = |step: &str| format!("{step} of {said}");
        cancel_through(&*protocol, &server, &test_session).await.with_context(|| of("cancel"))?;
        recorder.shows(back.name, "cancel", protocol.name());
        // In a session of its own: the demo repeats a script that was not answered.
        let fresh = test_session.in_new_session(&server).await?;
        let error = error_through(&*protocol, &fresh).await.with_context(|| of("error"))?;
        ensure!(error.contains("on purpose"), "{said}: {error}");
        recorder.shows(back.name, "error", protocol.name());
    }
    think_and_show(&server, &test_session).await?;
    recorder.shows(back.name, "thought", "acp_rest");
    recorder.shows(back.name, "image", "acp_rest");
    watch_and_answer(&server, test_session.in_new_session(&server).await?).await?;
    for protocol in protocols::all() {
        recorder.shows(back.name, "tool", protocol.name());
        recorder.shows(back.name, "question", protocol.name());
    }
    Ok(())
}

/// The peer's own words reach whoever prompted, in the form of each protocol.
async fn error_through(protocol: &dyn ProtocolClient, test_session: &TestSession) -> anyhow::Result<String> {
    let text = script(&[json!([{ "error": "bad_request" }])]);
    match protocol.name() {
        "adk" => {
            let message = json!({ "role": "user", "parts": [{ "text": text }] });
            let session = &test_session.session;
            let body =
                json!({ "appName": test_session.agent, "userId": "user", "sessionId": session, "newMessage": message });
            let response = test_session.post("/run", &body).send().await?;
            Ok(response.text().await?)
        }
        "goose" => {
            let content = json!([{ "type": "text", "text": text }]);
            let metadata = json!({ "userVisible": true, "agentVisible": true });
            let message = json!({ "role": "user", "created": 1, "content": content, "metadata": metadata });
            let body = json!({ "session_id": test_session.session, "user_message": message });
            let mut events = Events::of(test_session.post("/reply", &body).send().await?)?;
            Ok(events.until(|event| event["type"] == "Error").await?.to_string())
        }
        _ => match protocol.say(test_session, &text).await {
            Ok(()) => anyhow::bail!("a turn that failed is shown as one that did not"),
            Err(error) => Ok(format!("{error:#}")),
        },
    }
}

/// Stops a run in each protocol's own way; the next prompt is taken.
async fn cancel_through(
    protocol: &dyn ProtocolClient,
    server: &Server,
    test_session: &TestSession,
) -> anyhow::Result<()> {
    let long = script(&[json!([{ "text": "working " }, { "text": "never", "delay_ms": 600_000 }])]);
    if protocol.name() == "adk" {
        return leave_adk_run(server, test_session, &long).await;
    }
    let run = test_session.start(&long).await?;
    wait_for_run(test_session, &run, |run| run["output"].to_string().contains("working ")).await?;
    match protocol.name() {
        "acp_rest" => drop(test_session.ok(test_session.post(&format!("/runs/{run}/cancel"), &json!({}))).await?),
        "a2a" => {
            let cancel = test_session.post(&format!("/a2a/{}/tasks/{run}:cancel", test_session.agent), &json!({}));
            test_session.ok(cancel.header("A2A-Version", "1.0")).await?;
        }
        "goose" => {
            let path = format!("/sessions/{}/cancel", test_session.session);
            let answer = test_session.post(&path, &json!({ "request_id": run })).send().await?;
            ensure!(answer.status().is_success(), "{}", answer.status());
        }
        _ => {
            let mut editor = test_session.editor().await?;
            editor.notify("session/cancel", json!({ "sessionId": test_session.session })).await?;
            wait_for_run(test_session, &run, |run| run["status"] == "cancelled").await?;
        }
    }
    wait_for_run(test_session, &run, |run| run["status"] == "cancelled").await
}

async fn leave_adk_run(server: &Server, test_session: &TestSession, text: &str) -> anyhow::Result<()> {
    let message = json!({ "role": "user", "parts": [{ "text": text }] });
    let body = json!({ "appName": test_session.agent, "userId": "user", "sessionId": test_session.session,
        "newMessage": message, "streaming": true });
    let mut events = Events::of(test_session.post("/run_sse", &body).send().await?)?;
    events.until(|event| event.to_string().contains("working ")).await?;
    drop(events);
    let cancelled = async {
        loop {
            let log = server.launch.export(&test_session.session).await?;
            let is_last = |event: &Event| matches!(event, Event::RunEnded { .. } | Event::MessageStarted { .. });
            let last = log.iter().rev().map(|entry| &entry.event).find(|event| is_last(event));
            if let Some(Event::RunEnded { outcome: Outcome::Cancelled }) = last {
                return anyhow::Ok(());
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), cancelled).await.context("the run is not cancelled")?
}

async fn wait_for_run(test_session: &TestSession, run: &str, wanted: impl Fn(&Value) -> bool) -> anyhow::Result<()> {
    let waited = async {
        loop {
            let run = test_session.ok(test_session.get(&format!("/runs/{run}"))).await?;
            if wanted(&run) {
                return anyhow::Ok(());
            }
            ensure!(run["status"] != "failed" && run["status"] != "completed", "{run}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), waited).await.context("the run does not get there")?
}

/// Thoughts and pictures arrive as such.
async fn think_and_show(server: &Server, test_session: &TestSession) -> anyhow::Result<()> {
    let text = script(&[json!([{ "thought": "let me think" }, { "image": true }, { "text": "a picture" }])]);
    protocols::all()[0].say(test_session, &text).await?;
    let log = server.launch.export(&test_session.session).await?;
    let has = |wanted: fn(&Part) -> bool| {
        log.iter()
            .any(|entry| matches!(&entry.event, Event::MessageDone { message } if message.parts.iter().any(wanted)))
    };
    ensure!(has(|part| matches!(part, Part::Thought { text } if text.contains("let me think"))), "no thought");
    ensure!(has(|part| matches!(part, Part::Image { .. })), "no picture");
    Ok(())
}

macro_rules! backs {
    ($($test:ident $index:literal),* $(,)?) => {$(
        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $test() -> anyhow::Result<()> {
            drive_back(&BACKS[$index]).await.context(BACKS[$index].name)
        }
    )*};
}

backs! {
    every_protocol_before_the_native_agent 0,
    every_protocol_before_an_acp_program 1,
    every_protocol_before_acp_over_http 2,
    every_protocol_before_a_goosed 3,
    every_protocol_before_a2a_1_0 4,
    every_protocol_before_a2a_0_3 5,
    every_protocol_before_acp_rest 6,
    every_protocol_before_adk 7,
    every_protocol_before_a_handler 8,
}

/// A handler that panics fails its run and says so; one that comes later gets what was said before.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handler_that_panics_fails_its_run_and_another_one_gets_the_history() -> anyhow::Result<()> {
    let mut recorder = ConformanceRecorder::for_protocol("back-ends");
    let (_root, _server, mut test_session) = handler_in_front("").await?;
    let mut prompt_as = async |agent: &str, text: &str| -> anyhow::Result<Value> {
        test_session.agent = agent.to_owned();
        test_session.run = test_session.start(text).await?;
        wait_for_end(&test_session).await
    };
    let said = prompt_as("gander", &script(&[json!([{ "text": "first word" }])])).await?;
    ensure!(said["status"] == "completed", "{said}");
    let crashed = prompt_as("crash", "go").await?;
    ensure!(crashed["status"] == "failed" && !crashed["error"].is_null(), "{crashed}");
    let told = prompt_as("history", "go").await?;
    ensure!(told["output"].to_string().contains("history=3"), "{told}");
    recorder.shows(HANDLER, "crash", "acp_rest");
    recorder.shows(HANDLER, "hand-over", "acp_rest");
    Ok(())
}

/// The session's run, once it is over.
async fn wait_for_end(test_session: &TestSession) -> anyhow::Result<Value> {
    let ended = async {
        loop {
            let run = test_session.run_object().await?;
            match run["status"].as_str() {
                Some("completed" | "failed" | "cancelled") => return anyhow::Ok(run),
                _ => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(60), ended).await.context("the run does not end")?
}

/// The peer dies in the middle of a turn: the run fails and says so, and the session takes the next prompt.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_dies_fails_the_run() -> anyhow::Result<()> {
    let mut recorder = ConformanceRecorder::for_protocol("back-ends");
    for back in BACKS.iter().filter(|back| !["native", "ACP program", HANDLER].contains(&back.name)) {
        let peer = Peer::start().await?;
        let settings = (back.settings)(&peer).replace("\"10s\"", "\"2s\"");
        let (_root, _server, mut test_session) = test_server_with(&settings).await?;
        test_session.agent = "behind".to_owned();
        let long = script(&[json!([{ "text": "working " }, { "text": "never", "delay_ms": 600_000 }])]);
        let run = test_session.start(&long).await?;
        wait_for_run(&test_session, &run, |run| run["output"].to_string().contains("working ")).await?;
        peer.server.kill().await?;
        let failed = async {
            loop {
                let run = test_session.ok(test_session.get(&format!("/runs/{run}"))).await?;
                match run["status"].as_str() {
                    Some("failed") => return anyhow::Ok(run["error"].to_string()),
                    _ => tokio::time::sleep(Duration::from_millis(50)).await,
                }
            }
        };
        let error = tokio::time::timeout(Duration::from_secs(60), failed).await.context(back.name)??;
        ensure!(!error.is_empty(), "{}: {error}", back.name);
        let next = test_session.start("hello").await?;
        ensure!(next != run, "the session takes no prompt");
        recorder.shows(back.name, "crash", "acp_rest");
    }
    Ok(())
}

/// A session goes from our own agent to another one and back and there again: each is told what it was not there for.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_is_handed_over_and_its_log_says_so() -> anyhow::Result<()> {
    let mut recorder = ConformanceRecorder::for_protocol("back-ends");
    for back in BACKS.iter().filter(|back| !["native", HANDLER].contains(&back.name)) {
        let peer = Peer::start().await?;
        let (_root, server, mut test_session) = in_front(back, &peer).await?;
        let steps =
            [("gander", "first word"), ("behind", "second word"), ("gander", "third word"), ("behind", "fourth word")];
        let mut editor = test_session.editor().await?;
        for (agent, word) in steps {
            let set = json!({ "sessionId": test_session.session, "configId": "agent", "value": agent });
            editor.call("session/set_config_option", set).await?;
            test_session.agent = agent.to_owned();
            protocols::all()[0].say(&test_session, &script(&[json!([{ "text": word }])])).await.context(back.name)?;
        }
        let log = server.launch.export(&test_session.session).await?;
        let notices: Vec<String> = log
            .iter()
            .filter_map(|entry| {
                let Event::Noticed { notice } = &entry.event else { return None };
                Some(notice.title.clone())
            })
            .filter(|title| title.starts_with("Handed over to behind"))
            .collect();
        ensure!(notices.len() == 2, "{}: {notices:?}", back.name);
        for protocol in protocols::all() {
            test_session.agent = "behind".to_owned();
            let history = protocol.history(&test_session).await?;
            ensure!(steps.iter().all(|(_, word)| history.contains(word)), "{} shows {history}", protocol.name());
        }
        if back.name != "ACP program" {
            let told = peer_conversations(&peer).await?;
            ensure!(told.contains("first word") && told.contains("third word"), "{}: {told}", back.name);
        }
        recorder.shows(back.name, "hand-over", "acp");
        // It came back in between, and got what the other one had said.
        recorder.shows("native", "hand-over", "acp");
    }
    Ok(())
}

/// Everything that was said at the peer.
async fn peer_conversations(peer: &Peer) -> anyhow::Result<String> {
    let client = reqwest::Client::builder().no_proxy().build()?;
    let get = async |path: String| -> anyhow::Result<Value> {
        let url = format!("http://{}{path}", peer.server.address);
        Ok(client.get(url).bearer_auth(&peer.token).send().await?.json().await?)
    };
    let mut all = String::new();
    for session in get("/sessions".to_owned()).await?["sessions"].as_array().context("no sessions")? {
        let id = session["id"].as_str().context("no id")?;
        all.push_str(&get(format!("/sessions/{id}")).await?["conversation"].to_string());
    }
    Ok(all)
}
