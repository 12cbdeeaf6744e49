//! The real binary, killed with -9 at random moments while clients stream: what anybody saw is in the log.
//!
//! `GANDER_KILLS=1000 cargo test -p gander-cli --test kill` kills more often, `GANDER_SEED=n` repeats a run,
//! `GANDER_BINARY=$PWD/target/release/gander` kills another build.

#![allow(clippy::print_stderr, clippy::wildcard_enum_match_arm)]

mod acp_client;
mod adk_client;
mod checks;
mod seeded_random;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use gander_testkit::call_record::CallRecord;
use gander_testkit::conformance::ConformanceRecorder;
use gander_testkit::harness::{Client, Launch, PATIENCE, Server, Transcript, binary, data, eventually, workspace};
use gander_testkit::postgres::{SharedServer, new_schema};
use gander_testkit::skip::skipped;
use gander_testkit::upstream::{Pace, Upstream};
use serde_json::{Value, json};
use tokio::sync::Notify;

use acp_client::{AcpClient, TestServer};
use adk_client::AdkClient;
use seeded_random::SeededRandom;

const GANDER: &str = env!("CARGO_BIN_EXE_gander");

static POSTGRES: SharedServer = SharedServer::new();

/// Clients that stream at the same time.
const VISITORS: usize = 4;

/// Those that speak ADK's REST beside them.
const GUESTS: usize = 2;

/// Everybody who streams.
struct ConnectedClients {
    acp_clients: Vec<AcpClient>,
    adk_clients: Vec<AdkClient>,
}

/// How many of a hundred kills must hit a run in mid-stream.
const IN_STREAM: u64 = 80;

/// How many of a hundred kills wait for a stream; the others come at any time.
const WAITING: u64 = 92;

/// How many kills must hit at least. Of a few kills half is enough: there chance has its way.
fn wanted(kills: u64) -> u64 {
    if kills < 100 { kills / 2 } else { kills * IN_STREAM / 100 }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_that_a_client_saw_is_lost() -> anyhow::Result<()> {
    kill_while_clients_stream(None).await
}

/// The same with sessions in a real PostgreSQL server, which goes on while ours is killed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_that_a_client_saw_is_lost_in_postgresql() -> anyhow::Result<()> {
    let Some(url) = new_schema(&POSTGRES) else {
        skipped("kill::nothing_that_a_client_saw_is_lost_in_postgresql", "PostgreSQL is not installed");
        return Ok(());
    };
    kill_while_clients_stream(Some(url)).await
}

async fn kill_while_clients_stream(store: Option<String>) -> anyhow::Result<()> {
    let kills = number("GANDER_KILLS").unwrap_or(10);
    let seed = number("GANDER_SEED").unwrap_or_else(clock);
    eprintln!("seed {seed}, {kills} kills");
    let root = tempfile::tempdir()?;
    let upstream = Upstream::start().await?;
    let launch = Launch::openai(binary(GANDER), data(root.path())?, &upstream.base_url())
        .with("GANDER_SERVER_OPEN", "[\"adk\"]");
    let launch = match &store {
        Some(url) => launch.with("GANDER_STORE", url),
        None => launch,
    };
    rustls::crypto::ring::default_provider().install_default().ok();
    let folder = workspace(root.path())?;
    let test_server =
        TestServer { call_record: CallRecord::in_folder(&folder), folder, first_delta: Arc::new(Notify::new()) };
    let mut seeded_random = SeededRandom(seed);
    let acp_clients = (0..VISITORS).map(|index| AcpClient::new(index, seeded_random.fork())).collect();
    let adk_clients = (0..GUESTS).map(|index| AdkClient::new(index, seeded_random.fork())).collect();
    let mut connected = ConnectedClients { acp_clients, adk_clients };
    let mut hits = 0;
    for kill in 0..kills {
        let (back, hit) = round(&launch, &test_server, connected, &mut seeded_random)
            .await
            .with_context(|| format!("kill {kill}"))?;
        connected = back;
        hits += u64::from(hit);
    }
    settle(&launch, &test_server, &connected).await?;
    eprintln!("{kills} kills, {hits} of them in mid-stream; {} model calls", calls(&upstream));
    ensure!(hits >= wanted(kills), "only {hits} of {kills} kills hit a run in mid-stream");
    ConformanceRecorder::for_protocol("back-ends").shows("native", "crash", "kill -9 of the server");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_open_question_survives_kills_and_its_tool_runs_once() -> anyhow::Result<()> {
    let root = tempfile::tempdir()?;
    let upstream = Upstream::start().await?;
    let launch = Launch::openai(binary(GANDER), data(root.path())?, &upstream.base_url());
    let folder = workspace(root.path())?;
    let call_record = CallRecord::in_folder(&folder);
    let server = launch.serve().await?;
    let mut client = server.client().await?;
    let session = client.new_session(&folder).await?;
    client.prompt(&session, &format!("{} {}", call_record.call("once"), Pace::default().marker())).await?;
    let asked = client.asked("session/request_permission").await?;
    server.kill().await?;
    for _ in 0..3 {
        let server = launch.serve().await?;
        let again = asked_again(&server, &session, &folder).await?;
        assert_eq!(again.1["params"]["toolCall"]["toolCallId"], asked["params"]["toolCall"]["toolCallId"]);
        server.kill().await?;
    }
    let server = launch.serve().await?;
    let (mut client, question) = asked_again(&server, &session, &folder).await?;
    assert_eq!(call_record.counts().get("once"), None, "nobody said yes");
    client.choose(&question, "allow_once").await?;
    eventually("the run ends", || async { run_ended(&launch, &session).await }).await?;
    assert_eq!(call_record.counts().get("once"), Some(&1));
    checks::check(&launch.export(&session).await?)?;
    server.kill().await?;
    Ok(())
}

/// Starts the server, lets the visitors stream, kills it. True if the kill hit a run in mid-stream.
async fn round(
    launch: &Launch,
    test_server: &TestServer,
    connected: ConnectedClients,
    seeded_random: &mut SeededRandom,
) -> anyhow::Result<(ConnectedClients, bool)> {
    let server = launch.serve().await?;
    let test_server = TestServer { first_delta: Arc::new(Notify::new()), ..test_server.clone() };
    let killed = Arc::new(AtomicBool::new(false));
    let (socket, data) = (launch.socket(), launch.data.clone());
    let come = |acp_client: AcpClient| {
        acp_client.visit(test_server.clone(), socket.clone(), data.clone(), Arc::clone(&killed))
    };
    let visits: Vec<_> = connected.acp_clients.into_iter().map(|acp_client| tokio::spawn(come(acp_client))).collect();
    let call = |adk_client: AdkClient| adk_client.visit(test_server.clone(), server.address, Arc::clone(&killed));
    let calls: Vec<_> = connected.adk_clients.into_iter().map(|adk_client| tokio::spawn(call(adk_client))).collect();
    if seeded_random.below(100) < WAITING {
        let streaming = tokio::time::timeout(PATIENCE, test_server.first_delta.notified());
        streaming.await.context("nobody sees a delta")?;
    }
    tokio::time::sleep(Duration::from_micros(seeded_random.below(250_000))).await;
    killed.store(true, Ordering::SeqCst);
    server.kill().await?;
    let mut back = ConnectedClients { acp_clients: Vec::new(), adk_clients: Vec::new() };
    for visit in visits {
        back.acp_clients.push(visit.await??);
    }
    for call in calls {
        back.adk_clients.push(call.await??);
    }
    let hit = back.acp_clients.iter().any(|acp_client| acp_client.hit)
        || back.adk_clients.iter().any(|adk_client| adk_client.hit);
    Ok((back, hit))
}

/// The server runs once more: everything ends, and every log is whole.
async fn settle(launch: &Launch, test_server: &TestServer, connected: &ConnectedClients) -> anyhow::Result<()> {
    let started = Instant::now();
    let server = launch.serve().await?;
    for record in connected.acp_clients.iter().flat_map(AcpClient::records) {
        let mut client = server.client().await?;
        client.load(&record.session, &test_server.folder).await?;
        record.check(&Transcript::of(&client.seen, &record.session))?;
        allow_everything(&mut client, launch, &record.session).await?;
        checks::check(&launch.export(&record.session).await?).with_context(|| record.session.clone())?;
    }
    let http = reqwest::Client::builder().no_proxy().build()?;
    for backend_run in connected.adk_clients.iter().flat_map(AdkClient::stays) {
        eventually("the run ends", || async { run_ended(launch, &backend_run.session).await }).await?;
        backend_run.check(&adk_client::shown(&http, server.address, &backend_run.session).await?)?;
        checks::check(&launch.export(&backend_run.session).await?).with_context(|| backend_run.session.clone())?;
    }
    let heard: usize = connected.adk_clients.iter().flat_map(AdkClient::stays).map(adk_client::BackendRun::heard).sum();
    ensure!(heard > 0, "no guest heard anything");
    eprintln!("guests heard {heard} events");
    let twice: Vec<_> = test_server.call_record.counts().into_iter().filter(|(_, times)| *times > 1).collect();
    ensure!(twice.is_empty(), "tool calls ran more than once: {twice:?}");
    eprintln!(
        "settled in {:?}; {} tool calls in the ledger",
        started.elapsed(),
        test_server.call_record.counts().len()
    );
    ensure!(server.stop().await?.success(), "the server did not end well");
    Ok(())
}

/// Says yes to whatever is asked until the session's run has ended.
async fn allow_everything(client: &mut Client, launch: &Launch, session: &str) -> anyhow::Result<()> {
    let asked: Vec<Value> = client.seen.iter().filter(|message| asks(message)).cloned().collect();
    for question in asked {
        client.choose(&question, "allow_once").await?;
    }
    let started = Instant::now();
    while !run_ended(launch, session).await {
        ensure!(started.elapsed() < PATIENCE, "a run is still open: {session}");
        if let Some(message) = client.receive_within(Duration::from_millis(20)).await?.filter(asks) {
            client.choose(&message, "allow_once").await?;
        }
    }
    Ok(())
}

/// A client that loaded the session, and the question that it was asked.
async fn asked_again(server: &Server, session: &str, folder: &Path) -> anyhow::Result<(Client, Value)> {
    let mut client = server.client().await?;
    client.load(session, folder).await?;
    let before = client.seen.iter().find(|message| asks(message)).cloned();
    match before {
        Some(question) => Ok((client, question)),
        None => client.asked("session/request_permission").await.map(|question| (client, question)),
    }
}

fn asks(message: &Value) -> bool {
    message["method"] == json!("session/request_permission")
}

async fn run_ended(launch: &Launch, session: &str) -> bool {
    launch.export(session).await.is_ok_and(|entries| checks::open_runs(&entries).is_empty())
}

fn calls(upstream: &Upstream) -> u64 {
    upstream.counts().requests.load(Ordering::Relaxed)
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

fn clock() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    u64::try_from(now.unwrap_or_default().as_micros()).unwrap_or(1)
}
