//! Figures that are printed and never asserted: `GANDER_CLUSTER_STREAMS=20 cargo test -p gander-cli --test cluster figures -- --nocapture`.

use std::time::{Duration, Instant};

use gander_testkit::harness::Client;
use gander_testkit::postgres::{DiskSync, PostgresServer, make_schema};
use gander_testkit::upstream::Pace;

use crate::test_cluster::{TestCluster, schema_for};

/// Sessions that stream at once, over all nodes: few show that it runs, many what it costs.
fn streams() -> usize {
    std::env::var("GANDER_CLUSTER_STREAMS").ok().and_then(|streams| streams.parse().ok()).unwrap_or(2)
}

/// Deltas of each stream.
const DELTAS: u32 = 100;

/// The processor time of one node with all streams beside that of two nodes with half of them each.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn processor_time_per_delta_with_one_node_and_with_two() -> anyhow::Result<()> {
    if schema_for("processor_time_per_delta_with_one_node_and_with_two").is_none() {
        return Ok(());
    }
    let postgres = PostgresServer::start(DiskSync::On)?;
    let one = time_per_delta(&postgres, 1).await?;
    let two = time_per_delta(&postgres, 2).await?;
    eprintln!(
        "one node {one:?}, two nodes {two:?} of server and database per delta: {:.2}",
        two.as_secs_f64() / one.as_secs_f64()
    );
    Ok(())
}

async fn time_per_delta(postgres: &PostgresServer, nodes: usize) -> anyhow::Result<Duration> {
    let cluster = TestCluster::start(make_schema(&postgres.url())?, nodes).await?;
    let mut clients = Vec::new();
    for stream in 0..streams() {
        let mut client = cluster.client(stream % nodes).await?;
        let session = client.new_session(&cluster.folder).await?;
        client.turn(&session, &Pace::default().marker()).await?;
        clients.push((client, session));
    }
    let (before, began) = (spent(&cluster, postgres)?, Instant::now());
    let turns: Vec<_> =
        clients.into_iter().map(|(client, session)| tokio::spawn(stream_once(client, session))).collect();
    let mut deltas = 0;
    for turn in turns {
        deltas += turn.await??;
    }
    let spent = spent(&cluster, postgres)?.saturating_sub(before);
    eprintln!("{nodes} node(s): {deltas} deltas in {:?}, processor time {spent:?}", began.elapsed());
    Ok(spent / deltas)
}

async fn stream_once(mut client: Client, session: String) -> anyhow::Result<u32> {
    let pace = Pace { deltas: DELTAS as usize, between_ms: 20, first_ms: 0, size: 24, word: 0 };
    client.turn(&session, &pace.marker()).await?;
    Ok(DELTAS)
}

fn spent(cluster: &TestCluster, postgres: &PostgresServer) -> anyhow::Result<Duration> {
    let servers: Duration = cluster.servers.iter().flatten().map(|server| server.process().cpu()).sum();
    Ok(servers + postgres.processor_time()?)
}
