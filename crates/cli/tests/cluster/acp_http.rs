//! ACP over plain HTTP behind a balancer: the requests and streams of one connection come in at any node.

use anyhow::{Context as _, ensure};
use gander_testkit::harness::PATIENCE;
use gander_testkit::upstream::Pace;
use reqwest::{RequestBuilder, Response, StatusCode};
use serde_json::{Value, json};

use crate::test_cluster::{TestCluster, http_client, schema_for};

const SHORT: Pace = Pace { deltas: 4, between_ms: 0, first_ms: 0, size: 8, word: 5 };

/// A client that has one connection and asks whichever node it is told to.
struct HttpClient<'a> {
    cluster: &'a TestCluster,
    http: reqwest::Client,
    token: String,
    connection: String,
}

/// A stream of events and what it said so far.
struct EventReader {
    response: Response,
    said: String,
}

impl<'a> HttpClient<'a> {
    /// Introduces itself at this node.
    async fn connect(cluster: &'a TestCluster, node: usize) -> anyhow::Result<Self> {
        let token = cluster.launches[0].stdout(&["token"]).await?.trim().to_owned();
        let mut client = Self { cluster, http: http_client()?, token, connection: String::new() };
        let initialize = json!({ "protocolVersion": 1, "clientCapabilities": {} });
        let answer = client.send(node, &request(0, "initialize", initialize)).await?;
        let id = answer.headers().get("acp-connection-id").context("no connection id")?;
        client.connection = id.to_str()?.to_owned();
        Ok(client)
    }

    fn named(&self, request: RequestBuilder, session: Option<&str>) -> RequestBuilder {
        let mut request = request.bearer_auth(&self.token);
        if !self.connection.is_empty() {
            request = request.header("acp-connection-id", &self.connection);
        }
        match session {
            Some(session) => request.header("acp-session-id", session),
            None => request,
        }
    }

    fn url(&self, node: usize) -> anyhow::Result<String> {
        Ok(format!("http://{}/acp", self.cluster.server(node)?.address))
    }

    async fn send(&self, node: usize, message: &Value) -> anyhow::Result<Response> {
        let session = message["params"]["sessionId"].as_str();
        let answer = self.named(self.http.post(self.url(node)?).json(message), session).send().await?;
        ensure!(answer.status().is_success(), "{message} at node {node}: {}", answer.text().await?);
        Ok(answer)
    }

    async fn events(&self, node: usize, session: Option<&str>) -> anyhow::Result<EventReader> {
        let request = self.http.get(self.url(node)?).header("accept", "text/event-stream");
        let response = self.named(request, session).send().await?;
        ensure!(response.status() == StatusCode::OK, "events at node {node}: {}", response.text().await?);
        Ok(EventReader { response, said: String::new() })
    }
}

impl EventReader {
    /// Reads on until a message is like this.
    async fn until(&mut self, wanted: impl Fn(&Value) -> bool) -> anyhow::Result<Value> {
        loop {
            let lines = self.said.lines().filter_map(|line| line.strip_prefix("data:"));
            if let Some(found) = lines.filter_map(|data| serde_json::from_str(data).ok()).find(|found| wanted(found)) {
                return Ok(found);
            }
            let piece = tokio::time::timeout(PATIENCE, self.response.chunk()).await;
            let piece = piece.with_context(|| format!("waited in vain behind {}", self.said))??;
            let piece = piece.with_context(|| format!("the stream ended behind {}", self.said))?;
            self.said.push_str(std::str::from_utf8(&piece)?);
        }
    }

    async fn answer(&mut self, id: u64) -> anyhow::Result<Value> {
        let mut answer = self.until(|message| message["id"] == id && message.get("method").is_none()).await?;
        ensure!(answer.get("error").is_none(), "{answer}");
        Ok(answer["result"].take())
    }
}

fn request(id: u64, method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

fn prompt(id: u64, session: &str) -> Value {
    let text = json!([{ "type": "text", "text": SHORT.marker() }]);
    request(id, "session/prompt", json!({ "sessionId": session, "prompt": text }))
}

/// The agent's words on a stream.
fn words(reader: &EventReader) -> String {
    let messages = reader.said.lines().filter_map(|line| line.strip_prefix("data:"));
    let messages = messages.filter_map(|data| serde_json::from_str::<Value>(data).ok());
    let chunks = messages.filter(|message| message["params"]["update"]["sessionUpdate"] == "agent_message_chunk");
    chunks.filter_map(|chunk| Some(chunk["params"]["update"]["content"]["text"].as_str()?.to_owned())).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_and_streams_of_one_connection_come_in_at_any_node() -> anyhow::Result<()> {
    let test = "requests_and_streams_of_one_connection_come_in_at_any_node";
    let Some(url) = schema_for(test) else { return Ok(()) };
    let mut cluster = TestCluster::start(url, 3).await?;
    let (connection, token, session) = {
        let client = HttpClient::connect(&cluster, 0).await?;
        let mut own = client.events(1, None).await?;
        // Without a folder: what was passed on counts as from elsewhere, where nobody chooses one.
        let create = json!({ "mcpServers": [] });
        client.send(2, &request(1, "session/new", create)).await?;
        let session = own.answer(1).await?["sessionId"].as_str().context("no session")?.to_owned();
        let mut events = client.events(2, Some(&session)).await?;
        client.send(1, &prompt(2, &session)).await?;
        assert_eq!(events.answer(2).await?["stopReason"], "end_turn");
        let first = words(&events);
        ensure!(first.contains("~5:3 "), "the whole answer was read before the end: {first}");
        client.send(0, &prompt(3, &session)).await?;
        assert_eq!(events.answer(3).await?["stopReason"], "end_turn");
        assert_eq!(words(&events), first.repeat(2), "nothing was lost or told twice");
        (client.connection, client.token, session)
    };
    // The node that held the connection is gone: another one holds it from now on.
    cluster.servers[0].take().context("node 0 is down")?.kill().await?;
    let client = HttpClient { cluster: &cluster, http: http_client()?, token, connection };
    let mut events = client.events(1, Some(&session)).await?;
    client.send(2, &prompt(4, &session)).await?;
    assert_eq!(events.answer(4).await?["stopReason"], "end_turn");
    ensure!(words(&events).contains("~5:3 "), "{}", events.said);
    let gone = client.named(client.http.delete(client.url(2)?), None).send().await?;
    assert_eq!(gone.status(), StatusCode::ACCEPTED);
    let unknown = client.named(client.http.post(client.url(1)?).json(&prompt(5, &session)), None).send().await?;
    assert_eq!(unknown.status(), StatusCode::NOT_FOUND, "what was ended at one node is unknown at the others");
    Ok(())
}
