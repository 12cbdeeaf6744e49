//! What a node has accepted is carried out, whatever becomes of the node: prompts, answers, cancels.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use gander_testkit::call_record::CallRecord;
use gander_testkit::harness::eventually;
use gander_testkit::upstream::Pace;
use reqwest::Method;
use serde_json::{Value, json};

use crate::checks;
use crate::faults::fault_count;
use crate::protocols::HttpCluster;
use crate::seeded_random::SeededRandom;
use crate::test_cluster::{TestCluster, schema_for};

const SHORT: Pace = Pace { deltas: 3, between_ms: 0, first_ms: 0, size: 8, word: 4 };

fn message(text: &str) -> Value {
    json!({ "role": "user", "parts": [{ "content_type": "text/plain", "content": text }] })
}

/// P1: a prompt whose acceptance was told is in the log, though the node was killed a moment later.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_accepted_prompt_outlives_its_node() -> anyhow::Result<()> {
    let Some(url) = schema_for("an_accepted_prompt_outlives_its_node") else { return Ok(()) };
    let (mut cluster, mut random) = (HttpCluster::start(url).await?, SeededRandom(1));
    let rounds = fault_count(3);
    for round in 0..rounds {
        let node = random.below(3) as usize;
        let body = json!({ "agent_name": "gander", "mode": "async", "input": [message(&SHORT.marker())] });
        let run = cluster.post(node, "/runs", body).await?;
        tokio::time::sleep(Duration::from_millis(random.below(50))).await;
        cluster.nodes.servers[node].take().context("it is down")?.kill().await?;
        let path = format!("/runs/{}", run["run_id"].as_str().context("no run id")?);
        let found = cluster.ask((node + 1) % 3, Method::GET, &path, None).await;
        found.with_context(|| format!("round {round}: an accepted run is not stored"))?;
        cluster.nodes.restart(node).await?;
    }
    cluster.nodes.all_runs_end().await?;
    let completed = cluster.nodes.count("SELECT count(*) FROM run WHERE ended_as = 3").await?;
    eprintln!("{rounds} kills after an accepted prompt: {rounds} found, {completed} completed");
    ensure!(completed.unsigned_abs() == rounds, "accepted runs did not complete: {completed} of {rounds}");
    Ok(())
}

/// P6: questions wait through kills and restarts of every node, and each answer is carried out once, wherever it is given.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiting_questions_outlive_every_node() -> anyhow::Result<()> {
    let Some(url) = schema_for("waiting_questions_outlive_every_node") else { return Ok(()) };
    let (mut cluster, mut random) = (HttpCluster::start(url).await?, SeededRandom(6));
    let ledger = CallRecord::in_folder(&cluster.nodes.folder);
    let (count, mut runs) = (fault_count(4), Vec::new());
    for word in 0..count {
        let asking = format!("{} {}", ledger.call(&format!("q{word}")), SHORT.marker());
        let body = json!({ "agent_name": "gander", "mode": "sync", "input": [message(&asking)] });
        let workspace = cluster.nodes.folder.display().to_string();
        let run = cluster.ask_in(&workspace, random.below(3) as usize, "/runs", body).await?;
        ensure!(run["status"] == "awaiting", "{run}");
        runs.push(run["run_id"].as_str().context("no run id")?.to_owned());
    }
    for node in 0..3 {
        cluster.nodes.servers[node].take().context("it is down")?.kill().await?;
        cluster.nodes.restart(node).await?;
    }
    for run in &runs {
        let resume = json!({ "type": "message", "message": message("yes") });
        let body = json!({ "run_id": run, "mode": "sync", "await_resume": resume });
        let done = cluster.post(random.below(3) as usize, &format!("/runs/{run}"), body).await?;
        ensure!(done["status"] == "completed", "{done}");
    }
    let counts = ledger.counts();
    eprintln!("{count} questions waited through 3 kills: {} answered, {counts:?}", runs.len());
    ensure!(counts.len() as u64 == count && counts.values().all(|times| *times == 1), "{counts:?}");
    Ok(())
}

/// P10: a cancel from any node ends a command that does not want to end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_from_any_node_ends_a_stubborn_command() -> anyhow::Result<()> {
    let Some(url) = schema_for("a_cancel_from_any_node_ends_a_stubborn_command") else { return Ok(()) };
    let auto =
        |_: usize, launch: gander_testkit::harness::Launch| launch.with_policy_auto("a loop that nobody has to allow");
    let (cluster, mut random) = (TestCluster::start_with(url, 3, auto).await?, SeededRandom(10));
    let mut longest = Duration::ZERO;
    let rounds = fault_count(3);
    for round in 0..rounds {
        let (owner, canceller) = (random.below(3) as usize, random.below(3) as usize);
        let beats = cluster.folder.join(format!("beats-{round}"));
        let taken = cancel_stubborn(&cluster, owner, canceller, &beats).await;
        longest = longest.max(taken.with_context(|| format!("round {round}, from node {canceller}"))?);
    }
    eprintln!("{rounds} cancels from any node: every command gone after {longest:?} at the latest");
    Ok(())
}

async fn cancel_stubborn(
    cluster: &TestCluster,
    owner: usize,
    canceller: usize,
    beats: &Path,
) -> anyhow::Result<Duration> {
    let mut client = cluster.client(owner).await?;
    let session = client.new_session(&cluster.folder).await?;
    let mut other = cluster.follower(canceller, &session).await?;
    let loop_ = format!("trap '' TERM INT HUP; while sleep 0.02; do echo x >> {}; done", beats.display());
    let call = format!("[[call=shell|{}]]", json!({ "command": loop_ }));
    let prompt = client.prompt(&session, &format!("{call} {}", SHORT.marker())).await?;
    eventually("the command runs", || async { size(beats) > 0 }).await?;
    let began = Instant::now();
    other.notify("session/cancel", json!({ "sessionId": session })).await?;
    ensure!(client.answer_to(prompt).await?["stopReason"] == "cancelled", "it was not cancelled");
    // It has a moment to end by itself before it is killed: it writes no more once it is gone.
    eventually("the command is gone", || async {
        let before = size(beats);
        tokio::time::sleep(Duration::from_millis(300)).await;
        size(beats) == before
    })
    .await?;
    let taken = began.elapsed();
    let entries = cluster.export(canceller, &session).await?;
    checks::check(&entries)?;
    Ok(taken)
}

fn size(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |about| about.len())
}
