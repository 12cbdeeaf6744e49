//! P3: streams that are cut at any byte and go on at any node, without a gap and without anything twice.

use std::collections::BTreeSet;

use anyhow::{Context as _, ensure};
use gander_testkit::upstream::Pace;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::faults::fault_count;
use crate::protocols::{HttpCluster, KEY};
use crate::seeded_random::SeededRandom;
use crate::test_cluster::schema_for;

/// Deltas of each stream.
const DELTAS: usize = 60;

/// How often each stream is cut.
const CUTS: u64 = 5;

/// What one reader has, of as many connections as it took.
#[derive(Default)]
struct Reader {
    last: Option<String>,
    ids: BTreeSet<String>,
    text: String,
    over: bool,
}

impl Reader {
    /// Takes what came in whole; the rest came in vain.
    fn take(&mut self, bytes: &str) -> anyhow::Result<()> {
        let whole = bytes.rfind("\n\n").map_or("", |end| &bytes[..end + 2]);
        for event in whole.split("\n\n") {
            let field = |name: &str| event.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
            let Some(data) = field("data:") else { continue };
            if let Some(id) = field("id:") {
                ensure!(self.ids.insert(id.to_owned()), "told twice: {id}");
                self.last = Some(id.to_owned());
            }
            let told: Value = serde_json::from_str(data)?;
            self.over |= told["type"] == "Finish";
            if told["type"] == "Message" && told["message"]["role"] == "assistant" {
                let parts = told["message"]["content"].as_array().into_iter().flatten();
                parts.filter_map(|part| part["text"].as_str()).for_each(|text| self.text.push_str(text));
            }
        }
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_go_on_at_any_node_after_any_byte() -> anyhow::Result<()> {
    let Some(url) = schema_for("streams_go_on_at_any_node_after_any_byte") else { return Ok(()) };
    let (cluster, mut random) = (HttpCluster::start(url).await?, SeededRandom(3));
    let first = cluster.nodes.first_event_id().await?;
    let streams = fault_count(4);
    let mut cuts = 0;
    for stream in 0..streams {
        let started =
            cluster.post(random.below(3) as usize, "/agent/start", json!({ "working_dir": cluster.nodes.folder }));
        let session = started.await?["id"].as_str().context("no id")?.to_owned();
        let pace = Pace { deltas: DELTAS, between_ms: 5, first_ms: 0, size: 8, word: stream + 1 };
        let message = json!({ "role": "user", "created": 1, "content": [{ "type": "text", "text": pace.marker() }] });
        let prompt = json!({ "request_id": Uuid::now_v7(), "user_message": message });
        cluster.post(random.below(3) as usize, &format!("/sessions/{session}/reply"), prompt).await?;
        let mut reader = Reader { last: Some(first.clone()), ..Reader::default() };
        for cut in 0.. {
            let limit = if cut < CUTS { Some(1 + random.below(4000)) } else { None };
            read_some(&cluster, &session, random.below(3) as usize, limit, &mut reader).await?;
            if reader.over {
                break;
            }
            cuts += 1;
        }
        let whole: String = (0..DELTAS).map(|index| format!("~{}:{index} ", stream + 1)).collect();
        ensure!(reader.text == whole, "stream {stream}: {}", reader.text);
    }
    eprintln!("{streams} streams, {cuts} cuts at any byte, each time another node: 0 gaps, 0 doubled");
    Ok(())
}

/// Reads so many bytes from a node, or to the end of the turn.
async fn read_some(
    cluster: &HttpCluster,
    session: &str,
    node: usize,
    limit: Option<u64>,
    reader: &mut Reader,
) -> anyhow::Result<()> {
    let url = format!("http://{}/sessions/{session}/events", cluster.nodes.server(node)?.address);
    let request =
        cluster.http.get(url).bearer_auth(KEY).header("last-event-id", reader.last.clone().unwrap_or_default());
    let (mut stream, mut bytes) = (request.send().await?, Vec::new());
    ensure!(stream.status().is_success(), "{}", stream.text().await?);
    while limit.is_none_or(|limit| (bytes.len() as u64) < limit) {
        let ended = String::from_utf8_lossy(&bytes).contains("\"Finish\"") && bytes.ends_with(b"\n\n");
        let Some(piece) = (if ended { None } else { stream.chunk().await? }) else { break };
        bytes.extend_from_slice(&piece);
    }
    bytes.truncate(limit.map_or(bytes.len(), |limit| bytes.len().min(limit as usize)));
    reader.take(&String::from_utf8_lossy(&bytes))
}
