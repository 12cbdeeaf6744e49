//! Programs behind sessions that are killed at any moment, and many of them at once: every run ends once, nothing is left.
//!
//! `GANDER_KILLS=1000 cargo test -p gander-cli --test server agent_kills` kills more often, `GANDER_SEED=n` repeats a run.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use gander_domain::Event;
use gander_testkit::harness::{Launch, Server, binary};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::task::JoinSet;

/// Sessions whose agents are killed.
const SESSIONS: u64 = 4;
/// Sessions that have an agent each at the same time.
const CROWD: usize = 50;

/// A small agent: it answers in pieces, has a child of its own, and notes its process. Its name is the mark of its processes.
const AGENT: &str = r#"#!/bin/sh
echo $$ >> "$PWD/pids"
sleep 1000 &
while IFS= read -r line; do
  case $line in *'"id":'*) id=${line#*'"id":'}; id=${id%%[,\}]*} ;; *) id= ;; esac
  case $line in
    *'"method":"initialize"'*)
      printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":1,"agentCapabilities":{"loadSession":true}}}\n' "$id" ;;
    *'"method":"session/new"'*)
      printf '{"jsonrpc":"2.0","id":%s,"result":{"sessionId":"only"}}\n' "$id" ;;
    *'"method":"session/prompt"'*)
      for word in one two three four five; do
        printf '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"only","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"%s "}}}}\n' "$word"
        sleep 0.02
      done
      printf '{"jsonrpc":"2.0","id":%s,"result":{"stopReason":"end_turn"}}\n' "$id" ;;
    *) [ -n "$id" ] && printf '{"jsonrpc":"2.0","id":%s,"result":{}}\n' "$id" ;;
  esac
done
"#;

struct TestServer {
    root: tempfile::TempDir,
    server: Server,
    token: String,
    client: reqwest::Client,
}

impl TestServer {
    async fn start() -> anyhow::Result<Self> {
        let root = tempfile::tempdir()?;
        let (agent, data) = (root.path().join("agent"), root.path().join("data"));
        std::fs::write(&agent, AGENT)?;
        std::fs::set_permissions(&agent, std::fs::Permissions::from_mode(0o755))?;
        std::fs::create_dir_all(data.join("config/gander"))?;
        let settings = format!("[agents.behind]\ncommand = {}\nenv = {{ MARK = {agent:?} }}\n", json!([agent]));
        std::fs::write(data.join("config/gander/gander.toml"), settings)?;
        let launch = Launch::demo(binary(env!("CARGO_BIN_EXE_gander")), data);
        let server = launch.serve().await?;
        let token = launch.stdout(&["token"]).await?.trim().to_owned();
        rustls::crypto::ring::default_provider().install_default().ok();
        let client = reqwest::Client::builder().no_proxy().build()?;
        Ok(Self { root, server, token, client })
    }

    async fn new_session(&self, name: &str) -> anyhow::Result<(String, PathBuf)> {
        let folder = self.root.path().join(name);
        std::fs::create_dir_all(&folder)?;
        let folder = folder.canonicalize()?;
        Ok((self.server.client().await?.new_session(&folder).await?, folder))
    }

    /// Processes of agents that this server started, with their children.
    fn agent_processes(&self) -> Vec<u32> {
        let mark = format!("MARK={}\0", self.root.path().join("agent").display());
        let entries = std::fs::read_dir("/proc").unwrap().flatten();
        let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        let is_marked = |id: &u32| {
            let environ = std::fs::read(format!("/proc/{id}/environ")).unwrap_or_default();
            String::from_utf8_lossy(&environ).contains(&mark)
        };
        ids.filter(is_marked).collect()
    }

    async fn stop(self) -> anyhow::Result<()> {
        let Self { root, server, token, client } = self;
        drop((token, client));
        let mark = TestMark(root);
        server.stop().await?;
        mark.wait_for_none().await
    }
}

/// What is left of a test when its server is gone.
struct TestMark(tempfile::TempDir);

impl TestMark {
    async fn wait_for_none(&self) -> anyhow::Result<()> {
        let mark = format!("MARK={}\0", self.0.path().join("agent").display());
        for _ in 0..200 {
            let entries = std::fs::read_dir("/proc")?.flatten();
            let mut ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
            let is_marked = |id: u32| {
                let environ = std::fs::read(format!("/proc/{id}/environ")).unwrap_or_default();
                String::from_utf8_lossy(&environ).contains(&mark)
            };
            if !ids.any(is_marked) {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        anyhow::bail!("a process of an agent is left")
    }
}

/// One session, as a task of its own uses it.
#[derive(Clone)]
struct Prompter {
    url: String,
    token: String,
    client: reqwest::Client,
    session: String,
}

impl Prompter {
    fn new(test_server: &TestServer, session: String) -> Self {
        let url = format!("http://{}", test_server.server.address);
        Self { url, token: test_server.token.clone(), client: test_server.client.clone(), session }
    }

    /// One run to its end. A server whose disk does not keep up says so, and is asked again.
    async fn run(&self, text: &str) -> anyhow::Result<Value> {
        loop {
            if let Some(run) = self.try_run(text).await? {
                return Ok(run);
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    async fn try_run(&self, text: &str) -> anyhow::Result<Option<Value>> {
        let input = json!([{ "role": "user", "parts": [{ "content": text }] }]);
        let body = json!({ "agent_name": "behind", "mode": "sync", "session_id": self.session, "input": input });
        let request = self.client.post(format!("{}/runs", self.url)).bearer_auth(&self.token).json(&body);
        let response = request.timeout(Duration::from_secs(60)).send().await?;
        let (status, text) = (response.status(), response.text().await?);
        if status == reqwest::StatusCode::SERVICE_UNAVAILABLE {
            return Ok(None);
        }
        ensure!(status.is_success(), "{status}: {text}");
        Ok(Some(serde_json::from_str(&text)?))
    }
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Numbers from a seed (SplitMix64).
fn next_number(seed: &mut u64) -> u64 {
    *seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (*seed ^ (*seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed ^ (mixed >> 27)
}

fn kill_agent(folder: &Path) -> bool {
    let noted = std::fs::read_to_string(folder.join("pids")).unwrap_or_default();
    let last = noted.lines().last().and_then(|line| line.trim().parse::<i32>().ok()).and_then(Pid::from_raw);
    last.is_some_and(|pid| kill_process(pid, Signal::KILL).is_ok())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_run_of_an_agent_that_is_killed_ends_once() -> anyhow::Result<()> {
    let kills = number("GANDER_KILLS").unwrap_or(20);
    let seed = number("GANDER_SEED").unwrap_or_else(|| u64::from(std::process::id()));
    println!("GANDER_SEED={seed}");
    let test_server = TestServer::start().await?;
    let mut tasks = JoinSet::new();
    for index in 0..SESSIONS {
        let (session, folder) = test_server.new_session(&format!("killed-{index}")).await?;
        let prompter = Prompter::new(&test_server, session);
        let mut random = seed ^ (index << 32);
        tasks.spawn(async move {
            let (mut killed, mut ends) = (0, [0, 0]);
            while killed < kills.div_ceil(SESSIONS) {
                let moment = Duration::from_millis(next_number(&mut random) % 200);
                let kill = async {
                    tokio::time::sleep(moment).await;
                    kill_agent(&folder)
                };
                let (run, was_killed) = tokio::join!(prompter.run("go"), kill);
                let run = run?;
                killed += u64::from(was_killed);
                match run["status"].as_str() {
                    Some("completed") => ends[0] += 1,
                    Some("failed") => ends[1] += 1,
                    _ => anyhow::bail!("{run}"),
                }
            }
            // Killed between two runs it is found out by the next one, which fails: the one after it works.
            let mut last = prompter.run("once more").await?;
            if last["status"] == "failed" {
                last = prompter.run("once more").await?;
            }
            ensure!(last["status"] == "completed", "{last}");
            Ok((prompter.session, ends))
        });
    }
    while let Some(done) = tasks.join_next().await {
        let (session, [completed, failed]) = done??;
        println!("{completed} completed, {failed} failed");
        let log = test_server.server.launch.export(&session).await?;
        let started = log.iter().filter(|entry| matches!(entry.event, Event::RunStarted { .. })).count();
        let ended = log.iter().filter(|entry| matches!(entry.event, Event::RunEnded { .. })).count();
        ensure!(started == ended, "{started} runs began, {ended} ended");
        ensure!(failed > 0, "no kill hit a run");
    }
    // One agent and its child for each session: what was killed left none of its children behind.
    let left = test_server.agent_processes().len();
    ensure!(left <= 2 * SESSIONS as usize, "{left} processes of agents");
    test_server.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_sessions_have_an_agent_each_at_once() -> anyhow::Result<()> {
    let test_server = TestServer::start().await?;
    let mut tasks = JoinSet::new();
    for index in 0..CROWD {
        let (session, _) = test_server.new_session(&format!("crowd-{index}")).await?;
        let prompter = Prompter::new(&test_server, session);
        tasks.spawn(async move { prompter.run("go").await });
    }
    while let Some(done) = tasks.join_next().await {
        let run = done??;
        ensure!(run["status"] == "completed", "{run}");
        ensure!(run["output"].to_string().contains("one two three four five"), "{run}");
    }
    let agents = test_server.agent_processes().len();
    ensure!(agents >= CROWD, "{agents} processes of agents");
    test_server.stop().await.context("after fifty sessions")
}
