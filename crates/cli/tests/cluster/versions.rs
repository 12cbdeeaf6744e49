//! Nodes of two versions on one database, as in a rolling upgrade.

use anyhow::{Context as _, ensure};
use gander_testkit::harness::Launch;
use gander_testkit::upstream::Pace;
use serde_json::json;

use crate::checks;
use crate::test_cluster::{TestCluster, first_delta, read_until_text, replay, schema_for};

const SLOW: Pace = Pace { deltas: 100, between_ms: 25, first_ms: 0, size: 8, word: 7 };
const SHORT: Pace = Pace { deltas: 5, between_ms: 1, first_ms: 0, size: 8, word: 3 };

/// What the next version may do to the tables while nodes of this one run: it counts its version up and adds columns.
const MIGRATION: &str = "UPDATE meta SET version = version + 1; \
     ALTER TABLE session ADD COLUMN of_the_next_version TEXT; ALTER TABLE entry ADD COLUMN of_the_next_version INTEGER DEFAULT 1; \
     ALTER TABLE run ADD COLUMN of_the_next_version TEXT; ALTER TABLE node ADD COLUMN of_the_next_version TEXT; \
     ALTER TABLE command ADD COLUMN of_the_next_version TEXT";

/// Whoever runs goes on, in the middle of a stream too; whoever starts is refused and says why.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn running_nodes_go_on_after_the_next_version_migrated() -> anyhow::Result<()> {
    let Some(url) = schema_for("running_nodes_go_on_after_the_next_version_migrated") else { return Ok(()) };
    let mut cluster = TestCluster::start_with(url, 3, |_, launch: Launch| launch).await?;
    let mut owner = cluster.client(0).await?;
    let session = owner.new_session(&cluster.folder).await?;
    let mut follower = cluster.follower(1, &session).await?;
    let prompt = owner.prompt(&session, &SLOW.marker()).await?;
    first_delta(&mut follower).await?;
    cluster.execute(MIGRATION).await?;
    assert_eq!(owner.answer_to(prompt).await?["stopReason"], "end_turn");
    let said = replay(&cluster, 1, &session).await?;
    read_until_text(&mut follower, &session, &said.text()).await?;
    // Commands for another node, questions and new sessions need every table.
    let slow = owner.prompt(&session, &SLOW.marker()).await?;
    first_delta(&mut owner).await?;
    follower.notify("session/cancel", json!({ "sessionId": session })).await?;
    assert_eq!(owner.answer_to(slow).await?["stopReason"], "cancelled");
    let other = follower.new_session(&cluster.folder).await?;
    assert_eq!(follower.turn(&other, &SHORT.marker()).await?, "end_turn");
    for session in [&session, &other] {
        checks::check(&cluster.export(0, session).await?)?;
    }
    // Its sessions go to the others, it itself does not come back.
    cluster.servers[2].take().context("it is down")?.stop().await?;
    let refused = cluster.restart(2).await.err().map(|error| format!("{error:#}")).unwrap_or_default();
    ensure!(refused.contains("newer"), "an older version must not start on newer tables: {refused}");
    assert_eq!(cluster.overtaken_writes().await?, 0);
    Ok(())
}
