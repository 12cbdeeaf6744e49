//! Commands given at any node: the session's one writer carries them out once.

use std::time::Instant;

use anyhow::{Context as _, ensure};
use gander_domain::{Event, Outcome};
use gander_testkit::call_record::CallRecord;
use gander_testkit::harness::{Client, Refusal, eventually};
use gander_testkit::upstream::Pace;
use serde_json::{Value, json};

use crate::checks;
use crate::faults::fault_count;
use crate::test_cluster::{TestCluster, first_delta, read_until_text, replay, schema_for};

const SLOW: Pace = Pace { deltas: 400, between_ms: 25, first_ms: 0, size: 8, word: 7 };
const SHORT: Pace = Pace { deltas: 5, between_ms: 1, first_ms: 0, size: 8, word: 3 };

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_node_follows_prompts_and_cancels_any_session() -> anyhow::Result<()> {
    let Some(url) = schema_for("every_node_follows_prompts_and_cancels_any_session") else { return Ok(()) };
    let cluster = TestCluster::start(url, 3).await?;
    let mut owner = cluster.client(0).await?;
    let session = owner.new_session(&cluster.folder).await?;
    let prompt = owner.prompt(&session, &SLOW.marker()).await?;
    first_delta(&mut owner).await?;
    let mut follower = cluster.follower(1, &session).await?;
    first_delta(&mut follower).await?;
    let mut other = cluster.follower(2, &session).await?;
    let busy = other.turn(&session, "me too").await.err().context("two turns at once")?;
    ensure!(busy.downcast_ref::<Refusal>().is_some(), "{busy:#}");
    other.notify("session/cancel", json!({ "sessionId": session })).await?;
    assert_eq!(owner.answer_to(prompt).await?["stopReason"], "cancelled");
    let said = replay(&cluster, 2, &session).await?;
    read_until_text(&mut follower, &session, &said.text()).await?;
    // At rest the session is nobody's: the next node that is asked runs it.
    eventually("the session is nobody's", || async { owned(&cluster).await == Some(0) }).await?;
    assert_eq!(follower.turn(&session, &SHORT.marker()).await?, "end_turn");
    let entries = cluster.export(2, &session).await?;
    checks::check(&entries)?;
    assert_eq!(cluster.overtaken_writes().await?, 0);
    let status = cluster.launches[2].stdout(&["cluster", "status", "--json"]).await?;
    let nodes: Vec<Value> = status.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    assert_eq!(nodes.iter().filter(|node| node["state"] == "alive" && node["role"] == "all").count(), 3, "{status}");
    Ok(())
}

/// The tool asked at one node runs once, after the answer that was given at another.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_question_is_answered_at_another_node_and_only_once() -> anyhow::Result<()> {
    let Some(url) = schema_for("a_question_is_answered_at_another_node_and_only_once") else { return Ok(()) };
    let cluster = TestCluster::start(url, 3).await?;
    let ledger = CallRecord::in_folder(&cluster.folder);
    for round in 0..rounds() {
        let mut asker = cluster.client(0).await?;
        let session = asker.new_session(&cluster.folder).await?;
        let word = format!("round{round}");
        asker.prompt(&session, &format!("{} {}", ledger.call(&word), SHORT.marker())).await?;
        asker.asked("session/request_permission").await?;
        eventually("an awaiting session is nobody's", || async { owned(&cluster).await == Some(0) }).await?;
        let (mut one, mut two) = (cluster.client(1).await?, cluster.client(2).await?);
        let (first, second) = (
            asked_after_load(&cluster, &mut one, &session).await?,
            asked_after_load(&cluster, &mut two, &session).await?,
        );
        let (yes, no) = tokio::join!(one.choose(&first, "allow_once"), two.choose(&second, "reject_once"));
        yes.and(no)?;
        cluster.all_runs_end().await?;
        let entries = cluster.export(0, &session).await?;
        checks::check(&entries)?;
        let answers = entries.iter().filter(|entry| matches!(entry.event, Event::QuestionAnswered { .. })).count();
        let started = entries.iter().filter(|entry| matches!(entry.event, Event::ToolStarted { .. })).count();
        assert_eq!(answers, 1);
        assert_eq!(ledger.counts().get(&word).copied().unwrap_or(0), started, "the tool ran as the log says");
    }
    assert_eq!(cluster.overtaken_writes().await?, 0);
    Ok(())
}

/// Without a single hint everything works, only later.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_without_hints() -> anyhow::Result<()> {
    let Some(url) = schema_for("nothing_is_lost_without_hints") else { return Ok(()) };
    let cluster = TestCluster::start_with(url, 2, |_, launch| launch.with("GANDER_CLUSTER_HINTS", "false")).await?;
    let mut owner = cluster.client(0).await?;
    let session = owner.new_session(&cluster.folder).await?;
    let prompt = owner.prompt(&session, &SLOW.marker()).await?;
    first_delta(&mut owner).await?;
    let mut follower = cluster.follower(1, &session).await?;
    first_delta(&mut follower).await?;
    follower.notify("session/cancel", json!({ "sessionId": session })).await?;
    assert_eq!(owner.answer_to(prompt).await?["stopReason"], "cancelled");
    let said = replay(&cluster, 0, &session).await?;
    read_until_text(&mut follower, &session, &said.text()).await?;
    let entries = cluster.export(1, &session).await?;
    checks::check(&entries)?;
    let cancelled =
        |entry: &gander_domain::Entry| matches!(&entry.event, Event::RunEnded { outcome: Outcome::Cancelled, .. });
    assert!(entries.iter().any(cancelled));
    Ok(())
}

/// Prints how much later the first word comes through a node that does not run the session.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_word_comes_through_any_node() -> anyhow::Result<()> {
    let Some(url) = schema_for("the_first_word_comes_through_any_node") else { return Ok(()) };
    let cluster = TestCluster::start(url, 2).await?;
    let (mut owner, mut lags) = (cluster.client(0).await?, Vec::new());
    let session = owner.new_session(&cluster.folder).await?;
    let mut follower = cluster.follower(1, &session).await?;
    for turn in 0..rounds() * 5 {
        let pace = Pace { deltas: 2, between_ms: 0, first_ms: 50, size: 8, word: turn + 1 };
        let prompt = owner.prompt(&session, &pace.marker()).await?;
        let (there, here) = tokio::join!(timed(&mut follower), timed(&mut owner));
        lags.push(there?.saturating_duration_since(here?));
        owner.answer_to(prompt).await?;
    }
    lags.sort_unstable();
    eprintln!(
        "first word through another node: {:?} later (median of {}), at most {:?}",
        lags[lags.len() / 2],
        lags.len(),
        lags.last()
    );
    Ok(())
}

async fn timed(client: &mut Client) -> anyhow::Result<Instant> {
    first_delta(client).await?;
    Ok(Instant::now())
}

/// How many sessions have an owner.
async fn owned(cluster: &TestCluster) -> Option<i64> {
    cluster.count("SELECT count(*) FROM session WHERE node IS NOT NULL").await.ok()
}

async fn asked_after_load(cluster: &TestCluster, client: &mut Client, session: &str) -> anyhow::Result<Value> {
    client.load(session, &cluster.folder).await?;
    let before = client.seen.iter().find(|message| message["method"] == "session/request_permission").cloned();
    match before {
        Some(question) => Ok(question),
        None => client.asked("session/request_permission").await,
    }
}

/// How often a race is run.
fn rounds() -> u64 {
    fault_count(4)
}
