//! Readers that do not read: each costs the real server next to nothing, and is given up after half a minute.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

use std::time::Duration;

use gander_testkit::harness::{Launch, Server, binary, eventually};
use gander_testkit::upstream::{Pace, Upstream};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use crate::frames::{
    END_HEADERS, END_STREAM, GOAWAY, HEADERS, INITIAL_WINDOW, PREFACE, SETTINGS, frame, literal, next_frame,
};

/// What one reader may cost.
const EACH: u64 = 256 << 10;

/// What may be left over after readers are gone: caches, and code that was not needed before.
const KEPT: u64 = 32 << 20;

pub(crate) struct TestServer {
    pub(crate) server: Server,
    pub(crate) token: String,
    pub(crate) client: reqwest::Client,
    pub(crate) root: tempfile::TempDir,
    _upstream: Option<Upstream>,
}

impl TestServer {
    pub(crate) async fn open() -> Self {
        let (root, upstream) = (tempfile::tempdir().unwrap(), Upstream::start().await.unwrap());
        let launch = Launch::openai(binary(env!("CARGO_BIN_EXE_gander")), root.path(), &upstream.base_url())
            .with("GANDER_LIMITS_STREAMS", "3000");
        Self::launched(launch, root, Some(upstream)).await
    }

    /// Without a model that has to be told what was said.
    async fn with_demo() -> Self {
        let root = tempfile::tempdir().unwrap();
        let launch = Launch::demo(binary(env!("CARGO_BIN_EXE_gander")), root.path());
        Self::launched(launch, root, None).await
    }

    async fn launched(launch: Launch, root: tempfile::TempDir, upstream: Option<Upstream>) -> Self {
        rustls::crypto::ring::default_provider().install_default().ok();
        let server = launch.serve().await.unwrap();
        let token = launch.stdout(&["token"]).await.unwrap().trim().to_owned();
        Self { server, token, client: reqwest::Client::new(), root, _upstream: upstream }
    }

    /// A run that said so much, and its id.
    pub(crate) async fn run(&self, deltas: usize, size: usize) -> String {
        let run = self.post_run(&Pace { deltas, size, ..Pace::default() }.marker(), "async").await;
        let path = format!("/runs/{}", run["run_id"].as_str().unwrap());
        eventually("the run ends", || async { self.get(&path).await["status"] == "completed" }).await.unwrap();
        path
    }

    async fn post_run(&self, text: &str, mode: &str) -> Value {
        let input = json!([{ "role": "user", "parts": [{ "content": text }] }]);
        let body = json!({ "agent_name": "gander", "input": input, "mode": mode });
        let request = self.client.post(self.url("/runs")).bearer_auth(&self.token).json(&body);
        request.send().await.unwrap().json().await.unwrap()
    }

    pub(crate) async fn get(&self, path: &str) -> Value {
        let request = self.client.get(self.url(path)).bearer_auth(&self.token);
        request.send().await.unwrap().json().await.unwrap()
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.server.address)
    }

    /// Connections beside the one that asks and those that wait for its next question.
    async fn others(&self, ours: u64) -> u64 {
        self.get("/gander/status").await["connections"].as_u64().unwrap().saturating_sub(ours)
    }

    /// Asks over HTTP/1.1 and reads nothing of what comes but the fact that it comes.
    async fn silent(&self, path: &str, accept: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.server.address).await.unwrap();
        let head = format!(
            "GET {path} HTTP/1.1\r\nHost: localhost\r\nAccept: {accept}\r\nAuthorization: Bearer {}\r\n\r\n",
            self.token
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        assert!(stream.peek(&mut [0]).await.unwrap() > 0);
        stream
    }

    /// Asks so often over one connection of HTTP/2 that allows no byte of any answer.
    async fn silent2(&self, path: &str, accept: &str, count: u32) -> TcpStream {
        let mut stream = TcpStream::connect(self.server.address).await.unwrap();
        let settings = frame(SETTINGS, 0, 0, &[&INITIAL_WINDOW[..], &[0; 4]].concat());
        let authorization = format!("Bearer {}", self.token);
        let fields = [(4, path), (1, "localhost"), (19, accept), (23, authorization.as_str())];
        let fields = fields.iter().flat_map(|(name, value)| literal(*name, value));
        let request: Vec<u8> = [0x82, 0x86].into_iter().chain(fields).collect();
        let requests = (0..count).flat_map(|index| frame(HEADERS, END_STREAM | END_HEADERS, 2 * index + 1, &request));
        let all: Vec<u8> = PREFACE.iter().copied().chain(settings).chain(requests).collect();
        stream.write_all(&all).await.unwrap();
        let mut answered = 0;
        while answered < count {
            let (kind, _) = next_frame(&mut stream).await.expect("it hung up");
            answered += u32::from(kind == HEADERS);
        }
        stream
    }

    /// The server comes back to what it needed at the beginning, and so much more.
    async fn gives_back(&self, begin: u64, kept: u64) {
        let grown = || self.server.process().memory().saturating_sub(begin);
        eprintln!("at first {} MiB more than at the beginning", grown() >> 20);
        let given_back = eventually("memory is given back", || async { grown() < kept }).await;
        eprintln!("then {} MiB more", grown() >> 20);
        given_back.unwrap();
    }

    /// What these readers cost while they are there: once what it took to answer them was given back, which happens every
    /// few seconds and long before they are given up.
    pub(crate) async fn cost(&self, name: &str, before: u64, readers: u64) {
        let grown = || self.server.process().memory().saturating_sub(before);
        for _ in 0..60 {
            if grown() < readers * EACH {
                break;
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        let grown = grown();
        eprintln!("{name}: {} KiB each", (grown / readers) >> 10);
        assert!(grown < readers * EACH, "{name}: {} KiB each", (grown / readers) >> 10);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn twenty_unread_lists_of_a_long_run_on_one_and_five_connections_cost_little_and_end() {
    let test_server = TestServer::open().await;
    let run = test_server.run(10_000, 1_000).await;
    let path = format!("{run}/events");
    let events = test_server.get(&path).await;
    assert!(events["events"].as_array().unwrap().len() > 10_000);
    let before = test_server.server.process().memory();
    let mut connections = vec![test_server.silent2(&path, "application/json", 20).await];
    test_server.cost("20 lists on one connection", before, 20).await;
    for _ in 0..4 {
        connections.push(test_server.silent2(&path, "application/json", 20).await);
    }
    test_server.cost("100 lists on five connections", before, 100).await;
    for mut connection in connections {
        let rest = async {
            let mut kinds = Vec::new();
            while let Some((kind, _)) = next_frame(&mut connection).await {
                kinds.push(kind);
            }
            kinds
        };
        let kinds = tokio::time::timeout(Duration::from_secs(45), rest).await.expect("it is left open");
        assert!(kinds.contains(&GOAWAY), "no farewell: {kinds:?}");
    }
}

/// Sessions in the list: an answer of several megabytes.
const LISTED: usize = 2_000;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unread_lists_of_many_sessions_cost_little_and_come_whole() {
    let (test_server, work) = (TestServer::with_demo().await, tempfile::tempdir().unwrap());
    for _ in 0..LISTED {
        let body = json!({ "working_dir": work.path() });
        let request = test_server.client.post(test_server.url("/agent/start")).bearer_auth(&test_server.token);
        assert!(request.json(&body).send().await.unwrap().status().is_success());
    }
    let before = test_server.server.process().memory();
    let _unread = test_server.silent2("/sessions", "application/json", 50).await;
    test_server.cost("50 lists of sessions", before, 50).await;
    assert_eq!(test_server.get("/sessions").await["sessions"].as_array().unwrap().len(), LISTED);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_silent_readers_of_events_cost_little_and_give_it_back() {
    a_thousand_silent_readers("text/event-stream").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_silent_readers_of_lists_cost_little_and_give_it_back() {
    a_thousand_silent_readers("application/json").await;
}

/// Over HTTP/1.1 and over HTTP/2. Each waits until stalled readers are given up: the two tests above wait side by side.
async fn a_thousand_silent_readers(accept: &str) {
    let test_server = TestServer::open().await;
    let run = test_server.run(5_000, 100).await;
    let path = format!("{run}/events");
    drop(test_server.get(&path).await);
    let ours = test_server.get("/gander/status").await["connections"].as_u64().unwrap();
    let begin = test_server.server.process().memory();
    let mut readers = Vec::new();
    for _ in 0..1_000 {
        readers.push(test_server.silent(&path, accept).await);
    }
    test_server.cost(&format!("HTTP/1.1, {accept}"), begin, 1_000).await;
    eventually("stalled readers are gone", || async { test_server.others(ours).await == 0 }).await.unwrap();
    drop(readers);
    let before = test_server.server.process().memory();
    let mut readers = Vec::new();
    for _ in 0..10 {
        readers.push(test_server.silent2(&path, accept, 100).await);
    }
    test_server.cost(&format!("HTTP/2, {accept}"), before, 1_000).await;
    eventually("stalled readers are gone", || async { test_server.others(ours).await == 0 }).await.unwrap();
    drop(readers);
    test_server.gives_back(begin, KEPT).await;
}

/// Prompts of 20 MiB, each in a session of its own.
const LARGE_PROMPTS: usize = 8;

/// What they may leave: three of their sessions in the cache of idle ones, and as much again.
const KEPT_OF_PROMPTS: u64 = 128 << 20;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn memory_of_large_prompts_is_given_back_when_the_server_is_idle() {
    let test_server = TestServer::with_demo().await;
    let begin = test_server.server.process().memory();
    for index in 0..LARGE_PROMPTS {
        let text = format!("{index} {}", "lorem ipsum dolor ".repeat((20 << 20) / 18));
        // They are too long for the demo's window: what counts here is that they were taken and are kept.
        assert_eq!(test_server.post_run(&text, "sync").await["status"], "failed");
    }
    let cached = test_server.get("/gander/status").await["app"]["idle_sessions"]["bytes"].as_u64().unwrap();
    assert!(cached > 40 << 20, "{cached} bytes of idle sessions");
    test_server.gives_back(begin, KEPT_OF_PROMPTS).await;
}
