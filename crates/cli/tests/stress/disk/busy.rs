//! A log that another process holds, or whose disk does not keep up: callers are told at once, and health is honest.

use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use gander_testkit::harness::{Server, eventually};
use http::Method;
use serde_json::{Value, json};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _};

use crate::disk::test_server::{TestServer, turn};

/// An answer takes at most this long, whoever waits beside it.
const SOON: Duration = Duration::from_secs(3);

/// Who asks with the owner's token.
struct Caller {
    client: reqwest::Client,
    token: String,
    base: String,
}

impl Caller {
    async fn of(server: &Server) -> anyhow::Result<Self> {
        rustls::crypto::ring::default_provider().install_default().ok();
        let token = server.launch.stdout(&["token"]).await?.trim().to_owned();
        Ok(Self { client: reqwest::Client::new(), token, base: format!("http://{}", server.address) })
    }

    /// Status, body and when to come back; and how long it took.
    async fn ask(&self, method: Method, path: &str, body: Option<Value>) -> anyhow::Result<(u16, String, Duration)> {
        let begin = Instant::now();
        let mut request = self.client.request(method, format!("{}{path}", self.base)).bearer_auth(&self.token);
        if let Some(body) = body {
            request = request.header("a2a-version", "1.0").json(&body);
        }
        let response = request.send().await?;
        let status = response.status().as_u16();
        ensure!(status != 503 || response.headers().contains_key("retry-after"), "no Retry-After: {path}");
        Ok((status, response.text().await?, begin.elapsed()))
    }

    /// Every protocol's way to begin something, and how it says that it cannot.
    async fn refused_everywhere(&self) -> anyhow::Result<()> {
        let parts = json!([{ "content": "hello", "content_type": "text/plain" }]);
        let run = json!({ "agent_name": "gander", "input": [{ "role": "user", "parts": parts }] });
        let message = json!({ "messageId": "m", "role": "ROLE_USER", "parts": [{ "text": "hello" }] });
        let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": { "protocolVersion": 1 } });
        let asks = [
            ("/acp", hello, "\"reason\":\"unavailable\""),
            ("/runs", run, "\"code\":\"server_error\""),
            ("/a2a/message:send", json!({ "message": message }), "\"UNAVAILABLE\""),
            ("/apps/gander/users/u/sessions", json!({}), "\"detail\":"),
            ("/agent/start", json!({ "working_dir": "/tmp" }), "\"message\":"),
            ("/agent/import_app", json!({ "html": "<html><title>t</title></html>" }), "\"message\":"),
            ("/config/upsert", json!({ "key": "k", "value": 1, "is_secret": false }), "\"message\":"),
        ];
        let ask = |(path, body, form): (&'static str, Value, &'static str)| async move {
            let (status, text, took) = self.ask(Method::POST, path, Some(body)).await?;
            ensure!(status == 503 && text.contains(form) && took < SOON, "{path}: {status} {text} after {took:?}");
            anyhow::Ok(())
        };
        // Many at once do not wait for each other.
        let all = (0..5).flat_map(|_| asks.clone());
        futures::future::try_join_all(all.map(ask)).await.map(drop)
    }

    async fn is_red(&self) -> bool {
        let mut red = true;
        for path in ["/health", "/status"] {
            let answer = self.ask(Method::GET, path, None).await;
            red &= answer.is_ok_and(|(status, _, took)| status == 503 && took < Duration::from_millis(1_500));
        }
        let status = self.ask(Method::GET, "/gander/status", None).await;
        red && status.is_ok_and(|(_, text, _)| text.contains("\"failing\""))
    }

    async fn is_green(&self) -> bool {
        let status = self.ask(Method::GET, "/health", None).await;
        status.is_ok_and(|(status, ..)| status == 200)
    }
}

/// P19: whoever asks is told at once, nobody waits behind another, and all is well when the file is free again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_log_that_another_process_holds_is_told_at_once() -> anyhow::Result<()> {
    let test_server = TestServer::open()?;
    let server = test_server.plain().serve().await?;
    let mut client = server.client().await?;
    let before = turn(&mut client, &test_server.folder, "before").await?;
    let caller = Caller::of(&server).await?;
    let mut other = SqliteConnectOptions::new().filename(test_server.data.join("log.db")).connect().await?;
    sqlx::query("BEGIN EXCLUSIVE").execute(&mut other).await?;
    let begin = Instant::now();
    caller.refused_everywhere().await?;
    let refused = turn(&mut client, &test_server.folder, "locked").await;
    ensure!(refused.is_err(), "acknowledged without a log: {refused:?}");
    eventually("health is red", || caller.is_red()).await?;
    ensure!(begin.elapsed() < Duration::from_secs(12), "red after {:?}", begin.elapsed());
    let mut reader = server.client().await?;
    reader.load(&before.session, &test_server.folder).await.context("what is stored can be read")?;
    sqlx::query("ROLLBACK").execute(&mut other).await?;
    other.close().await?;
    eventually("health is green", || caller.is_green()).await?;
    let after = turn(&mut client, &test_server.folder, "after").await?;
    test_server.check(&test_server.plain(), &[before, after]).await
}

/// What a run says is not lost because somebody held the log for a moment.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_outlasts_a_moment_in_which_another_process_holds_the_log() -> anyhow::Result<()> {
    let test_server = TestServer::open()?;
    let server = test_server.plain().serve().await?;
    let mut client = server.client().await?;
    let session = client.new_session(&test_server.folder).await?;
    let slowly = json!([{ "text": "one two three four five six", "chunks": 6, "delay_ms": 300 }]);
    let prompt = client.prompt(&session, &gander_testkit::harness::script(&[slowly])).await?;
    client.update("agent_message_chunk").await?;
    let mut other = SqliteConnectOptions::new().filename(test_server.data.join("log.db")).connect().await?;
    sqlx::query("BEGIN EXCLUSIVE").execute(&mut other).await?;
    tokio::time::sleep(Duration::from_secs(3)).await; // the moment itself
    sqlx::query("ROLLBACK").execute(&mut other).await?;
    let answer = client.answer_to(prompt).await?;
    ensure!(answer["stopReason"] == "end_turn", "{answer}");
    Ok(())
}

/// A disk that takes seconds for a sync: whoever comes meanwhile is told at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disk_that_does_not_keep_up_is_told_at_once() -> anyhow::Result<()> {
    let test_server = TestServer::open()?;
    let server = test_server.shimmed().serve().await?;
    let mut client = server.client().await?;
    turn(&mut client, &test_server.folder, "before").await?;
    let caller = Caller::of(&server).await?;
    test_server.arm("slow 8")?;
    let folder = test_server.folder.clone();
    let waiting = tokio::spawn(async move { turn(&mut client, &folder, "slow").await.map(drop) });
    eventually("health is red", || caller.is_red()).await?;
    caller.refused_everywhere().await?;
    test_server.disarm()?;
    eventually("health is green", || caller.is_green()).await?;
    waiting.await?.context("what waited is done in the end")
}
