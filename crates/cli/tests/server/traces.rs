//! Traces and the audit trail for OpenTelemetry: sent where the settings say and nowhere else, whole, and without content.

use std::collections::BTreeMap;

use anyhow::{Context as _, ensure};
use gander_testkit::collector::{Collector, attribute};
use gander_testkit::harness::{Launch, Server, data, eventually, script, workspace};
use serde_json::{Value, json};

const GANDER: &str = env!("CARGO_BIN_EXE_gander");
const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const NOT_SAMPLED: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00";

/// Everything that stands in a prompt, a command, its output and an answer begins so.
const SECRET: &str = "sesame";

/// A prompt whose run calls a tool that is asked about.
fn prompt() -> String {
    let command = format!("echo {SECRET}-output; exit 3 # {SECRET}-command");
    script(&[json!([{"tool": "shell", "args": {"command": command}}]), json!([{"text": format!("{SECRET}-answer")}])])
}

async fn post(
    launch: &Launch,
    server: &Server,
    path: &str,
    traceparent: Option<&str>,
    body: &Value,
) -> anyhow::Result<Value> {
    rustls::crypto::ring::default_provider().install_default().ok();
    let token = launch.stdout(&["token", "show"]).await?;
    let token = token.split_whitespace().last().context("a token")?.to_owned();
    let client = reqwest::Client::builder().no_proxy().build()?;
    let mut request = client.post(format!("http://{}{path}", server.address)).bearer_auth(token).json(body);
    if let Some(traceparent) = traceparent {
        request = request.header("traceparent", traceparent);
    }
    Ok(request.send().await?.json().await?)
}

/// Asks over ACP-REST and allows the call; gives the id of the run.
async fn run_over_rest(launch: &Launch, server: &Server, traceparent: Option<&str>) -> anyhow::Result<String> {
    let input = json!([{"role": "user", "parts": [{"content": prompt()}]}]);
    let body = json!({"agent_name": "gander", "mode": "sync", "input": input});
    let run = post(launch, server, "/runs", traceparent, &body).await?;
    ensure!(run["status"] == "awaiting", "{run}");
    let id = run["run_id"].as_str().context("an id")?.to_owned();
    let answer = json!({"type": "message", "message": {"role": "user", "parts": [{"content": "allow_once"}]}});
    let body = json!({"run_id": id, "mode": "sync", "await_resume": answer});
    let done = post(launch, server, &format!("/runs/{id}"), None, &body).await?;
    ensure!(done["status"] == "completed", "{done}");
    Ok(id)
}

/// Spans of a trace by name.
fn trace(collector: &Collector, trace_id: &str) -> BTreeMap<String, Value> {
    let spans = collector.spans().into_iter().filter(|span| span["traceId"] == trace_id);
    spans.map(|span| (span["name"].as_str().unwrap_or_default().to_owned(), span)).collect()
}

#[tokio::test]
async fn a_request_its_run_model_calls_and_tool_calls_are_one_trace_without_content() -> anyhow::Result<()> {
    let (root, collector) = (tempfile::tempdir()?, Collector::start().await?);
    let launch = Launch::demo(GANDER, data(root.path())?)
        .with("GANDER_OTEL_ENDPOINT", &collector.url())
        .with("GANDER_OTEL_SERVICE", "test-server")
        .with("OTEL_EXPORTER_OTLP_HEADERS", "x-key=collector%20key");
    let server = launch.serve().await?;
    let run = run_over_rest(&launch, &server, Some(PARENT)).await?;
    let trace_id = &PARENT[3..35];
    eventually("the trace is there", async || trace(&collector, trace_id).contains_key("invoke_agent")).await?;
    let spans = trace(&collector, trace_id);
    let names: Vec<&str> = spans.keys().map(String::as_str).collect();
    let expected = ["POST /runs", "chat demo", "execute_tool shell", "invoke_agent", "wait_for_answer"];
    assert_eq!(names, expected);
    let (request, agent) = (&spans["POST /runs"], &spans["invoke_agent"]);
    assert_eq!(request["parentSpanId"], PARENT[36..52], "the caller's span is the parent of the request's");
    assert_eq!(agent["parentSpanId"], request["spanId"]);
    for part in ["chat demo", "execute_tool shell", "wait_for_answer"] {
        assert_eq!(spans[part]["parentSpanId"], agent["spanId"], "{part}");
    }
    assert_eq!(attribute(agent, "gander.run.id"), json!(run));
    assert_eq!(attribute(agent, "gander.protocol"), json!("acp_rest"));
    assert_eq!(attribute(&spans["execute_tool shell"], "process.exit.code"), json!("3"));
    assert_eq!(attribute(&spans["wait_for_answer"], "gander.answered_from"), json!("acp_rest"));
    assert_eq!(attribute(request, "http.response.status_code"), json!("200"));
    for span in spans.values() {
        let nanos = |name: &str| span[name].as_str().and_then(|text| text.parse::<u64>().ok());
        ensure!(nanos("startTimeUnixNano") <= nanos("endTimeUnixNano") && nanos("endTimeUnixNano").is_some(), "{span}");
    }
    for export in collector.exports() {
        let text = export.body.to_string();
        ensure!(export.head.contains("x-key: collector key"), "{}", export.head);
        ensure!(!text.contains(SECRET) && text.contains("test-server"), "{text}");
    }
    ensure!(server.stop().await?.success());
    Ok(())
}

#[tokio::test]
async fn a_prompt_of_acp_names_its_trace_in_meta_or_begins_one_and_the_rest_is_counted() -> anyhow::Result<()> {
    let (root, collector) = (tempfile::tempdir()?, Collector::start().await?);
    let launch = Launch::demo(GANDER, data(root.path())?).with("GANDER_OTEL_ENDPOINT", &collector.url());
    let (server, folder) = (launch.serve().await?, workspace(root.path())?);
    let mut client = server.client().await?;
    let session = client.new_session(&folder).await?;
    for meta in [json!({}), json!({"traceparent": NOT_SAMPLED}), json!({"traceparent": PARENT})] {
        let text = script(&[json!([{"text": "done"}])]);
        let params = json!({"sessionId": session, "prompt": [{"type": "text", "text": text}], "_meta": meta});
        client.call("session/prompt", params).await?;
    }
    // They end in order: what comes before the last is there with it.
    let trace_id = &PARENT[3..35];
    eventually("the trace is there", async || trace(&collector, trace_id).contains_key("invoke_agent")).await?;
    let spans = collector.spans();
    let runs: Vec<&Value> = spans.iter().filter(|span| span["name"] == "invoke_agent").collect();
    assert_eq!(runs.len(), 2, "one is not to be recorded: {runs:?}");
    ensure!(runs[0]["parentSpanId"].is_null() && runs[0]["kind"] == 2, "a trace of its own: {}", runs[0]);
    assert_eq!((&runs[1]["parentSpanId"], &runs[1]["kind"]), (&json!(PARENT[36..52]), &json!(1)));
    ensure!(spans.iter().all(|span| span["traceId"] != NOT_SAMPLED[3..35]), "{spans:?}");
    assert_eq!(metric(&launch, &server, "gander_otel_spans_dropped_total").await?, 0);
    let sent = spans.len() as u64;
    eventually("they are counted", async || {
        metric(&launch, &server, "gander_otel_spans_sent_total").await.is_ok_and(|count| count >= sent)
    })
    .await?;
    Ok(())
}

async fn metric(launch: &Launch, server: &Server, name: &str) -> anyhow::Result<u64> {
    rustls::crypto::ring::default_provider().install_default().ok();
    let token = launch.stdout(&["token", "show"]).await?;
    let client = reqwest::Client::builder().no_proxy().build()?;
    let request = client.get(format!("http://{}/metrics", server.address));
    let text = request.bearer_auth(token.split_whitespace().last().context("a token")?).send().await?.text().await?;
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
    value.with_context(|| format!("no {name} in {text}"))
}

#[tokio::test]
async fn a_collector_that_is_away_delays_nothing_and_costs_spans_that_are_counted() -> anyhow::Result<()> {
    let root = tempfile::tempdir()?;
    // A port at which nobody listens any more.
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    drop(listener);
    let launch = Launch::demo(GANDER, data(root.path())?).with("GANDER_OTEL_ENDPOINT", &format!("http://{address}"));
    let server = launch.serve().await?;
    run_over_rest(&launch, &server, None).await?;
    eventually("what could not be sent is counted", async || {
        metric(&launch, &server, "gander_otel_spans_dropped_total").await.is_ok_and(|dropped| dropped >= 5)
    })
    .await?;
    ensure!(server.stop().await?.success(), "it ends all the same");
    Ok(())
}

#[tokio::test]
async fn standard_variables_alone_send_nothing() -> anyhow::Result<()> {
    let (root, collector) = (tempfile::tempdir()?, Collector::start().await?);
    let launch = Launch::demo(GANDER, data(root.path())?)
        .with("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.url())
        .with("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", &format!("{}/v1/traces", collector.url()));
    let server = launch.serve().await?;
    run_over_rest(&launch, &server, Some(PARENT)).await?;
    ensure!(metric(&launch, &server, "gander_otel_spans_sent_total").await.is_err(), "it is off");
    let log = launch.stdout(&["audit", "--json"]).await?;
    ensure!(!log.contains(&PARENT[3..35]), "nobody asked to keep it");
    // The end of the server sends whatever there is.
    ensure!(server.stop().await?.success());
    assert_eq!(collector.exports().len(), 0);
    let wrong = launch.with("GANDER_OTEL_ENDPOINT", "collector.example").run(&["doctor"]).await?;
    ensure!(String::from_utf8_lossy(&wrong.stderr).contains("http://127.0.0.1:4318"), "{wrong:?}");
    Ok(())
}

#[tokio::test]
async fn the_audit_trail_goes_to_a_collector_and_a_sink_that_is_away_makes_no_other_write_twice() -> anyhow::Result<()>
{
    let (root, collector) = (tempfile::tempdir()?, Collector::start().await?);
    let reserved = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let address = reserved.local_addr()?;
    drop(reserved);
    let file = root.path().join("audit.jsonl");
    let launch = Launch::demo(GANDER, data(root.path())?)
        .with("GANDER_AUDIT_FILE", file.to_str().context("a path")?)
        .with("GANDER_AUDIT_SYSLOG", &format!("tcp://{address}"))
        .with("GANDER_AUDIT_OTEL", &collector.url());
    let server = launch.serve().await?;
    run_over_rest(&launch, &server, None).await?;
    eventually("the first record is there", async || collector.log_records().len() == 1).await?;
    // A second look at the trail, for which the syslog is still away, has happened once the second action is there.
    run_over_rest(&launch, &server, None).await?;
    eventually("the second record is there", async || collector.log_records().len() == 2).await?;
    let records = collector.log_records();
    let lines = std::fs::read_to_string(&file)?;
    assert_eq!(lines.lines().count(), 2, "{lines}");
    for (record, line) in records.iter().zip(lines.lines()) {
        assert_eq!(record["body"]["stringValue"], *line);
        assert_eq!(attribute(record, "process.exit.code"), json!("3"));
        assert_eq!(attribute(record, "gander.decision"), json!("allow_once"));
        assert_eq!((&record["eventName"], &record["severityNumber"]), (&json!("gander.audit"), &json!(9)));
    }
    let syslog = tokio::net::TcpListener::bind(address).await?;
    let (mut stream, _) = tokio::time::timeout(gander_testkit::harness::PATIENCE, syslog.accept()).await??;
    let mut text = String::new();
    tokio::io::AsyncReadExt::read_to_string(&mut stream, &mut text).await?;
    assert_eq!(text.matches("<86>1 ").count(), 2, "the syslog gets both when it is back: {text}");
    Ok(())
}
