//! A run that is begun at one node, looked at through another and answered at a third, in the protocols over HTTP.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, ensure};
use axum::Router;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::routing::post;
use gander_testkit::harness::{Launch, PATIENCE, eventually};
use gander_testkit::upstream::Pace;
use reqwest::Method;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::test_cluster::{TestCluster, http_client, schema_for};

const SHORT: Pace = Pace { deltas: 3, between_ms: 0, first_ms: 0, size: 8, word: 4 };

/// The owner's key at every node.
pub(crate) const KEY: &str = "one-key-for-all-nodes";

pub(crate) struct HttpCluster {
    pub(crate) nodes: TestCluster,
    pub(crate) http: reqwest::Client,
}

impl HttpCluster {
    pub(crate) async fn start(url: String) -> anyhow::Result<Self> {
        let set_up = |_: usize, launch: Launch| {
            launch.with("GOOSE_SERVER__SECRET_KEY", KEY).with("GANDER_A2A_PUSH_ALLOW", "[\"127.0.0.1\"]")
        };
        Ok(Self { nodes: TestCluster::start_with(url, 3, set_up).await?, http: http_client()? })
    }

    pub(crate) async fn ask(
        &self,
        node: usize,
        method: Method,
        path: &str,
        body: Option<Value>,
    ) -> anyhow::Result<Value> {
        let url = format!("http://{}{path}", self.nodes.server(node)?.address);
        let mut request = self.http.request(method, url).bearer_auth(KEY).header("a2a-version", "1.0");
        if let Some(body) = body {
            request = request.json(&body);
        }
        let answer = request.send().await?;
        let (status, text) = (answer.status(), answer.text().await?);
        ensure!(status.is_success(), "{path} at node {node}: {status} {text}");
        serde_json::from_str(&text).with_context(|| text.clone())
    }

    pub(crate) async fn post(&self, node: usize, path: &str, body: Value) -> anyhow::Result<Value> {
        self.ask(node, Method::POST, path, Some(body)).await
    }

    /// The same, for a session in this folder.
    pub(crate) async fn ask_in(&self, folder: &str, node: usize, path: &str, body: Value) -> anyhow::Result<Value> {
        let url = format!("http://{}{path}", self.nodes.server(node)?.address);
        let request = self.http.post(url).bearer_auth(KEY).header("gander-workspace", folder).json(&body);
        Ok(request.send().await?.error_for_status()?.json().await?)
    }

    async fn a2a(&self, node: usize, method: &str, params: Value) -> anyhow::Result<Value> {
        let request = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let mut answer = self.post(node, "/a2a", request).await?;
        ensure!(answer.get("error").is_none(), "{method} at node {node}: {answer}");
        Ok(answer["result"].take())
    }
}

/// A prompt whose tool call has to be allowed.
fn asking() -> String {
    format!("[[call=shell|{{\"command\":\"touch made-by-a-tool\"}}]] {}", SHORT.marker())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_acp_rest_run_goes_on_at_another_node() -> anyhow::Result<()> {
    let Some(url) = schema_for("an_acp_rest_run_goes_on_at_another_node") else { return Ok(()) };
    let cluster = HttpCluster::start(url).await?;
    let message = |text: &str| json!({ "role": "user", "parts": [{ "content_type": "text/plain", "content": text }] });
    let begun = json!({ "agent_name": "gander", "mode": "sync", "input": [message(&asking())] });
    let run = cluster.post(0, "/runs", begun).await?;
    assert_eq!(run["status"], "awaiting", "{run}");
    let path = format!("/runs/{}", run["run_id"].as_str().context("no run id")?);
    assert_eq!(cluster.ask(1, Method::GET, &path, None).await?["status"], "awaiting");
    let resume = json!({ "type": "message", "message": message("yes") });
    let body = json!({ "run_id": run["run_id"], "mode": "sync", "await_resume": resume });
    let done = cluster.post(2, &path, body).await?;
    assert_eq!(done["status"], "completed", "{done}");
    assert_eq!(cluster.ask(0, Method::GET, &path, None).await?["status"], "completed");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_adk_run_goes_on_at_another_node() -> anyhow::Result<()> {
    let Some(url) = schema_for("an_adk_run_goes_on_at_another_node") else { return Ok(()) };
    let cluster = HttpCluster::start(url).await?;
    let session = "/apps/gander/users/u/sessions/s1";
    cluster.post(0, session, json!({})).await?;
    let run = |part: Value| json!({ "appName": "gander", "userId": "u", "sessionId": "s1", "newMessage": { "role": "user", "parts": [part] } });
    let events = cluster.post(1, "/run", run(json!({ "text": asking() }))).await?;
    let parts = events
        .as_array()
        .into_iter()
        .flatten()
        .flat_map(|event| event["content"]["parts"].as_array().cloned().unwrap_or_default());
    let call = parts
        .map(|part| part["functionCall"].clone())
        .find(|call| call["name"] == "adk_request_confirmation")
        .context("nothing was asked")?;
    let answer =
        json!({ "functionResponse": { "id": call["id"], "name": call["name"], "response": { "confirmed": true } } });
    let rest = cluster.post(2, "/run", run(answer)).await?;
    ensure!(rest.to_string().contains("~4:2 "), "the run did not go on: {rest}");
    let stored = cluster.ask(0, Method::GET, session, None).await?;
    ensure!(stored.to_string().contains("~4:2 "), "the first node does not show it: {stored}");
    Ok(())
}

/// What a stream of goose's REST told: the ids of its events, and everything else as it was.
async fn read_events(mut stream: reqwest::Response, until: Option<&str>) -> anyhow::Result<(Vec<String>, String)> {
    ensure!(stream.status().is_success(), "{}", stream.text().await?);
    let mut told = String::new();
    while until.is_none_or(|words| !told.contains(words)) {
        let piece = tokio::time::timeout(PATIENCE, stream.chunk()).await.context("nothing is told")?;
        let Some(piece) = piece? else { break };
        told.push_str(&String::from_utf8_lossy(&piece));
    }
    let ids = told.lines().filter_map(|line| line.strip_prefix("id: ")).map(str::to_owned).collect();
    Ok((ids, told))
}

/// A node that ends says nothing wrong of a session that goes on elsewhere: its stream ends, and goes on at another node.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_of_a_draining_node_goes_on_at_another() -> anyhow::Result<()> {
    let Some(url) = schema_for("a_stream_of_a_draining_node_goes_on_at_another") else { return Ok(()) };
    let mut cluster = HttpCluster::start(url).await?;
    let started = cluster.post(0, "/agent/start", json!({ "working_dir": cluster.nodes.folder })).await?;
    let session = started["id"].as_str().context("no id")?.to_owned();
    // Longer than a drain waits.
    let pace = Pace { deltas: 260, between_ms: 50, first_ms: 0, size: 8, word: 9 };
    let message = json!({ "role": "user", "created": 1, "content": [{ "type": "text", "text": pace.marker() }] });
    let prompt = json!({ "request_id": Uuid::now_v7(), "user_message": message });
    cluster.post(0, &format!("/sessions/{session}/reply"), prompt).await?;
    let events = |cluster: &HttpCluster, node: usize, after: &str| -> anyhow::Result<reqwest::RequestBuilder> {
        let url = format!("http://{}/sessions/{session}/events", cluster.nodes.server(node)?.address);
        Ok(cluster.http.get(url).bearer_auth(KEY).header("last-event-id", after))
    };
    let stream = events(&cluster, 0, &cluster.nodes.first_event_id().await?)?.send().await?;
    let stopping = tokio::spawn(cluster.nodes.servers[0].take().context("it is down")?.stop());
    let (first, told) = read_events(stream, None).await?;
    ensure!(stopping.await??.success(), "it did not end well");
    ensure!(!told.contains("\"Error\""), "an error for a session that goes on: {told}");
    ensure!(told.contains("~9:0 ") && !told.contains("~9:259 "), "the stream did not end in the middle: {told}");
    let stream = events(&cluster, 1, first.last().context("no ids")?)?.send().await?;
    let (rest, told) = read_events(stream, Some("\"Finish\"")).await?;
    ensure!(told.contains("~9:259 "), "the turn did not go on: {told}");
    ensure!(!rest.iter().any(|id| first.contains(id)), "told twice: {first:?} {rest:?}");
    Ok(())
}

/// What a receiver of notifications got: their ids in order, and the last state.
type Received = Arc<Mutex<Vec<(String, Value)>>>;

async fn receive(State(received): State<Received>, headers: HeaderMap, body: axum::Json<Value>) {
    let id = headers.get("idempotency-key").and_then(|id| id.to_str().ok()).unwrap_or_default().to_owned();
    received.lock().unwrap_or_else(PoisonError::into_inner).push((id, body.0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_a2a_task_goes_on_at_another_node_and_is_notified_once() -> anyhow::Result<()> {
    let Some(url) = schema_for("an_a2a_task_goes_on_at_another_node_and_is_notified_once") else { return Ok(()) };
    let cluster = HttpCluster::start(url).await?;
    let (received, listener) = (Received::default(), tokio::net::TcpListener::bind("127.0.0.1:0").await?);
    let hook = format!("http://{}/hook", listener.local_addr()?);
    let app = Router::new().route("/hook", post(receive)).with_state(Arc::clone(&received));
    tokio::spawn(async move { axum::serve(listener, app).await });
    let message = |id: &str, text: &str| json!({ "messageId": id, "role": "ROLE_USER", "parts": [{ "text": text }] });
    let task = cluster.a2a(0, "SendMessage", json!({ "message": message("m1", &asking()) })).await?["task"].take();
    assert_eq!(task["status"]["state"], "TASK_STATE_INPUT_REQUIRED", "{task}");
    let made = cluster.a2a(1, "CreateTaskPushNotificationConfig", json!({ "taskId": task["id"], "url": hook })).await?;
    let found = json!({ "taskId": task["id"], "id": made["id"] });
    assert_eq!(cluster.a2a(2, "GetTaskPushNotificationConfig", found).await?, made);
    let mut answer = message("m2", "yes");
    answer["taskId"] = task["id"].clone();
    let done = cluster.a2a(2, "SendMessage", json!({ "message": answer })).await?["task"].take();
    assert_eq!(done["status"]["state"], "TASK_STATE_COMPLETED", "{done}");
    let seen = || received.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let is_last = |body: &Value| body["statusUpdate"]["status"]["state"] == "TASK_STATE_COMPLETED";
    eventually("the last notification", async || seen().iter().any(|(_, body)| is_last(body))).await?;
    let ids: BTreeSet<String> = seen().into_iter().map(|(id, _)| id).collect();
    assert_eq!(ids.len(), seen().len(), "each was sent by one node: {:?}", seen());
    Ok(())
}
