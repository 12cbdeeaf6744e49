//! One trace across nodes: asked at one and run by another, or ended by another after the first was killed.

use anyhow::ensure;
use gander_testkit::collector::{Collector, attribute};
use gander_testkit::harness::{Launch, eventually};
use gander_testkit::upstream::Pace;
use serde_json::{Value, json};

use crate::test_cluster::{TestCluster, http_client, schema_for};

const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const SHORT: Pace = Pace { deltas: 3, between_ms: 1, first_ms: 0, size: 8, word: 3 };
/// Long enough to be killed in.
const LONG: Pace = Pace { deltas: 600, between_ms: 20, first_ms: 0, size: 8, word: 4 };

/// Asks over ACP-REST, as part of the trace above. The answer is not waited for.
async fn ask(cluster: &TestCluster, node: usize, prompt: &str) -> anyhow::Result<()> {
    let token = cluster.launches[node].stdout(&["token"]).await?;
    let input = json!([{"role": "user", "parts": [{"content": prompt}]}]);
    let body = json!({"agent_name": "gander", "mode": "async", "input": input});
    let request = http_client()?.post(format!("http://{}/runs", cluster.server(node)?.address));
    let request = request.bearer_auth(token.trim()).header("traceparent", PARENT).json(&body);
    let begun: Value = request.send().await?.json().await?;
    ensure!(begun["run_id"].is_string(), "{begun}");
    Ok(())
}

fn spans_named<'a>(spans: &'a [Value], name: &str) -> Vec<&'a Value> {
    spans.iter().filter(|span| span["name"].as_str().is_some_and(|known| known.starts_with(name))).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_trace_goes_from_the_gateway_to_the_worker() -> anyhow::Result<()> {
    let Some(url) = schema_for("a_trace_goes_from_the_gateway_to_the_worker") else { return Ok(()) };
    let collector = Collector::start().await?;
    let set_up = |node: usize, launch: Launch| {
        let role = ["gateway", "worker"][node];
        launch.with("GANDER_CLUSTER_ROLE", role).with("GANDER_OTEL_ENDPOINT", &collector.url())
    };
    let cluster = TestCluster::start_with(url, 2, set_up).await?;
    ask(&cluster, 0, &SHORT.marker()).await?;
    eventually("the run is told", async || !spans_named(&collector.spans(), "invoke_agent").is_empty()).await?;
    eventually("the request is told", async || !spans_named(&collector.spans(), "POST").is_empty()).await?;
    let spans = collector.spans();
    ensure!(spans.iter().all(|span| span["traceId"] == PARENT[3..35]), "one trace: {spans:?}");
    let (request, run, call) =
        (spans_named(&spans, "POST")[0], spans_named(&spans, "invoke_agent")[0], spans_named(&spans, "chat")[0]);
    assert_eq!(request["parentSpanId"], PARENT[36..52]);
    assert_eq!(run["parentSpanId"], request["spanId"]);
    assert_eq!(call["parentSpanId"], run["spanId"]);
    assert_ne!(request["instance"], run["instance"], "told by two nodes");
    assert_eq!(call["instance"], run["instance"]);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_takes_a_run_over_goes_on_with_its_trace() -> anyhow::Result<()> {
    let Some(url) = schema_for("a_node_that_takes_a_run_over_goes_on_with_its_trace") else { return Ok(()) };
    let collector = Collector::start().await?;
    let set_up = |_: usize, launch: Launch| launch.with("GANDER_OTEL_ENDPOINT", &collector.url());
    let mut cluster = TestCluster::start_with(url, 2, set_up).await?;
    ask(&cluster, 0, &LONG.marker()).await?;
    eventually("the request is told", async || !spans_named(&collector.spans(), "POST").is_empty()).await?;
    if let Some(server) = cluster.servers[0].take() {
        server.kill().await?;
    }
    cluster.all_runs_end().await?;
    eventually("the run is told", async || !spans_named(&collector.spans(), "invoke_agent").is_empty()).await?;
    let spans = collector.spans();
    ensure!(spans.iter().all(|span| span["traceId"] == PARENT[3..35]), "one trace: {spans:?}");
    let (request, runs) = (spans_named(&spans, "POST")[0], spans_named(&spans, "invoke_agent"));
    assert_eq!(runs.len(), 1, "told once: {runs:?}");
    assert_eq!(runs[0]["parentSpanId"], request["spanId"]);
    assert_ne!(runs[0]["instance"], request["instance"]);
    assert_eq!(attribute(runs[0], "gander.outcome"), json!("completed"));
    ensure!(runs[0]["events"].as_array().is_some_and(|events| events[0]["name"] == "recovered"), "{}", runs[0]);
    Ok(())
}
