//! P15 and P19: while the database is away every node says so, and it is green again by itself.

use std::time::{Duration, Instant};

use anyhow::ensure;
use gander_testkit::harness::eventually;
use gander_testkit::postgres::{DiskSync, PostgresServer, StopMode, make_schema};
use gander_testkit::upstream::Pace;

use crate::checks;
use crate::faults::fault_count;
use crate::test_cluster::{TestCluster, http_client, schema_for};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_node_is_red_while_the_database_is_away() -> anyhow::Result<()> {
    if schema_for("every_node_is_red_while_the_database_is_away").is_none() {
        return Ok(());
    }
    let postgres = PostgresServer::start(DiskSync::Off)?;
    let cluster = TestCluster::start(make_schema(&postgres.url())?, 3).await?;
    let http = http_client()?;
    let is_green = async |node: usize| -> bool {
        let Ok(server) = cluster.server(node) else { return false };
        let asked = http.get(format!("http://{}/status", server.address)).timeout(Duration::from_secs(20)).send().await;
        asked.is_ok_and(|answer| answer.status().is_success())
    };
    let (mut client, mut slowest) = (cluster.client(0).await?, (Duration::ZERO, Duration::ZERO));
    let session = client.new_session(&cluster.folder).await?;
    let rounds = fault_count(2);
    for word in 1..=rounds {
        let pace = Pace { deltas: 60, between_ms: 50, first_ms: 0, size: 8, word };
        let prompt = client.prompt(&session, &pace.marker()).await?;
        client.update("agent_message_chunk").await?;
        postgres.stop(if word % 2 == 0 { StopMode::Fast } else { StopMode::Immediate })?;
        let stopped = Instant::now();
        for node in 0..3 {
            eventually("the node is red", || async { !is_green(node).await }).await?;
        }
        slowest.0 = slowest.0.max(stopped.elapsed());
        for node in [0, 1, 2, 0, 1, 2] {
            ensure!(!is_green(node).await, "node {node} is green without a database");
        }
        postgres.restart()?;
        let back = Instant::now();
        for node in 0..3 {
            eventually("the node is green again", || async { is_green(node).await }).await?;
        }
        slowest.1 = slowest.1.max(back.elapsed());
        ensure!(client.answer_to(prompt).await?["stopReason"] == "end_turn", "the turn did not go on");
    }
    checks::check(&cluster.export(2, &session).await?)?;
    eprintln!(
        "{rounds} outages: all red after {:?}, all green {:?} after the return, 0 green lies",
        slowest.0, slowest.1
    );
    Ok(())
}
