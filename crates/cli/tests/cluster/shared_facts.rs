//! What was decided at one node counts at the others.

use anyhow::ensure;
use gander_testkit::harness::eventually;
use gander_testkit::upstream::Pace;
use serde_json::Value;

use crate::test_cluster::{TestCluster, schema_for};

const SHORT: Pace = Pace { deltas: 2, between_ms: 0, first_ms: 0, size: 8, word: 3 };

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_allowed_for_good_at_one_node_counts_at_the_others() -> anyhow::Result<()> {
    let Some(url) = schema_for("what_is_allowed_for_good_at_one_node_counts_at_the_others") else { return Ok(()) };
    let cluster = TestCluster::start(url, 2).await?;
    ensure!(is_asked(&cluster, 1, "reject_once").await?, "nobody allowed it yet");
    ensure!(is_asked(&cluster, 0, "allow_always").await?, "nobody allowed it yet");
    eventually("the grant counts at the other node", || async {
        is_asked(&cluster, 1, "reject_once").await.is_ok_and(|asked| !asked)
    })
    .await?;
    let grants = cluster.launches[0].stdout(&["grants", "list", "--json"]).await?;
    let grant: Value = serde_json::from_str(grants.lines().next().unwrap_or_default())?;
    cluster.launches[0].stdout(&["grants", "revoke", &grant["id"].to_string()]).await?;
    eventually("the other node asks again", || async {
        is_asked(&cluster, 1, "reject_once").await.is_ok_and(|asked| asked)
    })
    .await
}

/// Whether a person is asked for this command in a new session at a node. If so this is what they choose.
async fn is_asked(cluster: &TestCluster, node: usize, choice: &str) -> anyhow::Result<bool> {
    let mut client = cluster.client(node).await?;
    let session = client.new_session(&cluster.folder).await?;
    let call = format!("[[call=shell|{{\"command\":\"touch {}\"}}]]", cluster.folder.join("made.txt").display());
    let prompt = client.prompt(&session, &format!("{call} {}", SHORT.marker())).await?;
    let next = |message: &Value| message["method"] == "session/request_permission" || message["id"] == prompt;
    let first = client.until(next).await?;
    if first["method"] != "session/request_permission" {
        return Ok(false);
    }
    client.choose(&first, choice).await?;
    client.answer_to(prompt).await?;
    Ok(true)
}
