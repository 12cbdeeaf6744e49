//! Gateways, workers, and sessions that belong to a disk.

use anyhow::ensure;
use gander_testkit::harness::{Launch, eventually};
use gander_testkit::upstream::Pace;
use serde_json::{Value, json};

use crate::checks;
use crate::test_cluster::{TestCluster, http_client, replay, schema_for};

const SHORT: Pace = Pace { deltas: 5, between_ms: 1, first_ms: 0, size: 8, word: 3 };

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gateway_serves_clients_and_a_worker_runs_their_turns() -> anyhow::Result<()> {
    let Some(url) = schema_for("a_gateway_serves_clients_and_a_worker_runs_their_turns") else { return Ok(()) };
    let role = |node: usize, launch: Launch| launch.with("GANDER_CLUSTER_ROLE", ["gateway", "worker"][node]);
    let mut cluster = TestCluster::start_with(url, 2, role).await?;
    let http = http_client()?;
    let worker = cluster.server(1)?.address;
    let health: Value = http.get(format!("http://{worker}/health")).send().await?.json().await?;
    assert_eq!(health, json!({ "status": "ok", "role": "worker" }));
    let token = cluster.launches[1].stdout(&["token"]).await?;
    let refused = http.get(format!("http://{worker}/gander/status")).bearer_auth(token.trim()).send().await?;
    assert_eq!(refused.status(), 421, "a worker serves no clients");
    let mut client = cluster.client(0).await?;
    let session = client.new_session(&cluster.folder).await?;
    assert_eq!(client.turn(&session, &SHORT.marker()).await?, "end_turn");
    checks::check(&cluster.export(0, &session).await?)?;
    // Without a worker a prompt waits, and is carried out once there is one.
    drop(cluster.servers[1].take());
    let prompt = client.prompt(&session, &SHORT.marker()).await?;
    eventually("the prompt is in the store", || async {
        cluster.count("SELECT count(*) FROM command").await.is_ok_and(|waiting| waiting == 1)
    })
    .await?;
    cluster.restart(1).await?;
    assert_eq!(client.answer_to(prompt).await?["stopReason"], "end_turn");
    checks::check(&cluster.export(0, &session).await?)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_on_a_local_disk_stays_with_its_label() -> anyhow::Result<()> {
    let Some(url) = schema_for("a_session_on_a_local_disk_stays_with_its_label") else { return Ok(()) };
    let unshared = |_: usize, launch: Launch| launch.with("GANDER_CLUSTER_SHARED", "[]");
    let mut cluster = TestCluster::start_with(url, 2, unshared).await?;
    let mut owner = cluster.client(0).await?;
    let session = owner.new_session(&cluster.folder).await?;
    // Asked at the other node, run by the one with the disk.
    let mut other = cluster.follower(1, &session).await?;
    assert_eq!(other.turn(&session, &SHORT.marker()).await?, "end_turn");
    assert_eq!(cluster.count("SELECT count(*) FROM session WHERE pinned_to = 'disk-0'").await?, 1);
    drop(owner);
    if let Some(server) = cluster.servers[0].take() {
        ensure!(server.stop().await?.success(), "it did not end well");
    }
    let refused = other.turn(&session, &SHORT.marker()).await.err().map(|error| error.to_string()).unwrap_or_default();
    ensure!(refused.contains("disk-0"), "the refusal names the label: {refused}");
    ensure!(!replay(&cluster, 1, &session).await?.items.is_empty(), "it is shown all the same");
    Ok(())
}
