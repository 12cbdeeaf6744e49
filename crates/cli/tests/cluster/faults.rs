//! Nodes that are killed, stopped and drained, and a database that is restarted, while everybody streams.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use gander_testkit::call_record::CallRecord;
use gander_testkit::harness::{Client, Launch, eventually, pause, resume};
use gander_testkit::postgres::{DiskSync, PostgresServer, StopMode, make_schema};
use gander_testkit::upstream::Pace;

use crate::checks;
use crate::seeded_random::SeededRandom;
use crate::test_cluster::{LEASE, TestCluster, first_delta, http_client, read_until_text, replay, schema_for};

/// Sessions that stream when something happens.
const STREAMS: u64 = 4;

/// What happens to the node that runs them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fault {
    /// `kill -9`.
    Kill,
    /// SIGSTOP for twice the lease, then SIGCONT.
    Stop,
    /// SIGTERM, as in a rolling restart.
    Drain,
    /// The database crashes and comes back.
    Database,
}

const FAULTS: [Fault; 4] = [Fault::Kill, Fault::Stop, Fault::Drain, Fault::Database];

/// A session, and somebody who follows it at a node that nothing happens to.
pub(crate) struct Stream {
    pub(crate) session: String,
    pub(crate) follower: Client,
}

/// What was seen, for the table.
#[derive(Default)]
struct Figures {
    faults: BTreeMap<Fault, (u64, Duration)>,
    sessions: u64,
    entries: usize,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn faults_lose_and_double_nothing() -> anyhow::Result<()> {
    if schema_for("faults_lose_and_double_nothing").is_none() {
        return Ok(());
    }
    // Of this test alone: the others would not like it to be restarted.
    let postgres = PostgresServer::start(DiskSync::Off)?;
    let (count, seed) = (fault_count(FAULTS.len() as u64), number_of("GANDER_SEED").unwrap_or(18));
    let mut random = SeededRandom(seed);
    let auto = |_: usize, launch: Launch| launch.with_policy_auto("a ledger of calls that nobody has to allow");
    let mut cluster = TestCluster::start_with(make_schema(&postgres.url())?, 3, auto).await?;
    let ledger = CallRecord::in_folder(&cluster.folder);
    let mut figures = Figures::default();
    for round in 0..count {
        let fault = FAULTS[(round % FAULTS.len() as u64) as usize];
        let victim = random.below(3) as usize;
        // A drained node lets runs end by themselves for ten seconds: these take longer.
        let deltas = if fault == Fault::Drain { 260 } else { 60 };
        let streams = start_streams(&cluster, &ledger, deltas, victim, round).await?;
        tokio::time::sleep(Duration::from_millis(random.below(400))).await;
        let began = Instant::now();
        inflict(&mut cluster, &postgres, fault, victim).await.with_context(|| format!("{fault:?} of node {victim}"))?;
        cluster
            .all_runs_end()
            .await
            .with_context(|| format!("round {round}, {fault:?} of node {victim}, seed {seed}"))?;
        let taken = figures.faults.entry(fault).or_default();
        *taken = (taken.0 + 1, taken.1.max(began.elapsed()));
        if cluster.servers[victim].is_none() {
            cluster.restart(victim).await?;
        }
        for stream in streams {
            figures.sessions += 1;
            figures.entries += check_stream(&cluster, victim, stream)
                .await
                .with_context(|| format!("round {round}, {fault:?}, seed {seed}"))?;
        }
    }
    report(&cluster, &ledger, &figures, seed).await
}

fn number_of(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().and_then(|text| text.parse().ok())
}

/// How often something happens: few times, unless more are asked for.
pub(crate) fn fault_count(few: u64) -> u64 {
    number_of("GANDER_CLUSTER_FAULTS").unwrap_or(few)
}

/// Prompts sessions at one node and follows them at the others, until each is in mid-stream.
pub(crate) async fn start_streams(
    cluster: &TestCluster,
    ledger: &CallRecord,
    deltas: usize,
    victim: usize,
    round: u64,
) -> anyhow::Result<Vec<Stream>> {
    let (mut owner, mut streams) = (cluster.client(victim).await?, Vec::new());
    for stream in 0..STREAMS {
        let session = owner.new_session(&cluster.folder).await?;
        let place = (victim + 1 + (stream % 2) as usize) % 3;
        let follower = cluster.follower(place, &session).await?;
        let word = round * STREAMS + stream + 1;
        let pace = Pace { deltas, between_ms: 50, first_ms: 0, size: 8, word };
        let call = if stream % 2 == 0 { ledger.call(&format!("w{word}")) } else { String::new() };
        owner.prompt(&session, &format!("{call} {}", pace.marker())).await?;
        streams.push(Stream { session, follower });
    }
    for stream in &mut streams {
        first_delta(&mut stream.follower).await?;
    }
    Ok(streams)
}

async fn inflict(
    cluster: &mut TestCluster,
    postgres: &PostgresServer,
    fault: Fault,
    victim: usize,
) -> anyhow::Result<()> {
    match fault {
        Fault::Kill => cluster.servers[victim].take().context("it is down")?.kill().await?,
        Fault::Stop => {
            let process = cluster.server(victim)?.process();
            pause(process)?;
            // Nothing can be awaited of a node that stands still: the others have its sessions by then.
            tokio::time::sleep(LEASE * 2).await;
            resume(process)?;
        }
        Fault::Drain => {
            let status = cluster.servers[victim].take().context("it is down")?.stop().await?;
            ensure!(status.success(), "a drained node ended with {status}");
        }
        Fault::Database => {
            postgres.stop(StopMode::Immediate)?;
            postgres.restart()?;
        }
    }
    Ok(())
}

/// Whoever followed saw what the log says, and the log is whole at every node.
pub(crate) async fn check_stream(cluster: &TestCluster, victim: usize, mut stream: Stream) -> anyhow::Result<usize> {
    let session = &stream.session;
    let said = replay(cluster, victim, session).await?;
    read_until_text(&mut stream.follower, session, &said.text()).await?;
    let entries = cluster.export((victim + 1) % 3, session).await?;
    checks::check(&entries).with_context(|| session.clone())?;
    ensure!(entries == cluster.export(victim, session).await?, "two nodes read different logs of {session}");
    Ok(entries.len())
}

async fn report(cluster: &TestCluster, ledger: &CallRecord, figures: &Figures, seed: u64) -> anyhow::Result<()> {
    for (fault, (times, slowest)) in &figures.faults {
        eprintln!("{fault:?}: {times} times, every run over after {slowest:?} at the latest");
    }
    eprint!("seed {seed}: ");
    check_all(cluster, ledger, figures.sessions, figures.entries).await
}

/// What must hold at the end of everything that happens to nodes, and the figures.
pub(crate) async fn check_all(
    cluster: &TestCluster,
    ledger: &CallRecord,
    sessions: u64,
    entries: usize,
) -> anyhow::Result<()> {
    let twice = ledger.counts().into_iter().filter(|(_, times)| *times > 1).count();
    let overtaken = cluster.overtaken_writes().await?;
    let claims = cluster.count("SELECT COALESCE(sum(epoch - 1), 0)::BIGINT FROM session").await?;
    eprintln!(
        "{sessions} sessions, {entries} entries, {claims} claims; 0 lost, 0 doubled, {overtaken} written by two, {twice} tool calls twice"
    );
    ensure!(overtaken == 0, "a session had two writers");
    ensure!(twice == 0, "tool calls ran twice: {:?}", ledger.counts());
    Ok(())
}

/// A node that drains takes no new work and says so; the others go on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_draining_node_refuses_new_work_and_hands_over() -> anyhow::Result<()> {
    let Some(url) = schema_for("a_draining_node_refuses_new_work_and_hands_over") else { return Ok(()) };
    let mut cluster = TestCluster::start(url, 2).await?;
    let mut owner = cluster.client(0).await?;
    let session = owner.new_session(&cluster.folder).await?;
    let pace = Pace { deltas: 260, between_ms: 50, first_ms: 0, size: 8, word: 5 };
    owner.prompt(&session, &pace.marker()).await?;
    first_delta(&mut owner).await?;
    let mut follower = cluster.follower(1, &session).await?;
    let (address, token) = (cluster.server(0)?.address, cluster.launches[0].stdout(&["token"]).await?);
    let stopping = tokio::spawn(cluster.servers[0].take().context("it is down")?.stop());
    let http = http_client()?;
    let run = || {
        let body = serde_json::json!({ "agent_name": "gander", "input": [], "mode": "sync" });
        http.post(format!("http://{address}/runs")).bearer_auth(token.trim()).json(&body).send()
    };
    eventually("new work is refused", || async { run().await.is_ok_and(|refused| refused.status() == 503) }).await?;
    ensure!(run().await?.headers().contains_key("retry-after"), "a refusal says when to come back");
    ensure!(stopping.await??.success(), "it did not end well");
    cluster.all_runs_end().await?;
    let said = replay(&cluster, 1, &session).await?;
    read_until_text(&mut follower, &session, &said.text()).await?;
    ensure!(said.text().ends_with("~5:259 "), "the run was not finished by the other node: {}", said.text());
    checks::check(&cluster.export(1, &session).await?)
}
