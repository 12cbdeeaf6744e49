//! A client of ADK's REST: it runs prompts over `/run_sse` until the server dies, and reads its session when it is back.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use gander_testkit::harness::PATIENCE;
use gander_testkit::upstream::Pace;
use serde_json::{Value, json};

use crate::acp_client::{Lost, TestServer, word_of};
use crate::seeded_random::SeededRandom;

/// Prompts in one session before a new one is made: a prompt waits for those that a kill left behind.
const PROMPTS: usize = 3;

const SESSIONS: &str = "/apps/gander/users/guest/sessions";

/// What is known of one session.
#[derive(Clone, Debug)]
pub(crate) struct BackendRun {
    pub(crate) session: String,
    /// What each event said, whole or in pieces, by its id.
    seen: BTreeMap<String, String>,
    /// Prompts that were sent.
    asked: usize,
    /// The words of prompts of which something came back.
    accepted: Vec<String>,
}

/// One client.
#[derive(Debug)]
pub(crate) struct AdkClient {
    index: usize,
    seeded_random: SeededRandom,
    past: Vec<BackendRun>,
    now: Option<BackendRun>,
    prompts: u64,
    /// The last visit ended in the middle of a stream.
    pub(crate) hit: bool,
}

/// The way to the server of this visit.
struct Way {
    client: reqwest::Client,
    address: SocketAddr,
}

impl BackendRun {
    /// How many events said something.
    pub(crate) fn heard(&self) -> usize {
        self.seen.len()
    }

    /// Demands that all that was seen and accepted is in the session as it is shown now.
    pub(crate) fn check(&self, shown: &Value) -> anyhow::Result<()> {
        let events = shown["events"].as_array().context("no events")?;
        let (theirs, ours): (Vec<&Value>, Vec<&Value>) = events.iter().partition(|event| event["author"] == "user");
        let stored: BTreeMap<&str, String> =
            ours.iter().map(|event| (event["id"].as_str().unwrap_or_default(), text_of(event))).collect();
        for (id, text) in &self.seen {
            let kept = stored.get(id.as_str()).is_some_and(|stored| stored.starts_with(text));
            ensure!(kept, "session {}: seen was {id} {text:?}, stored is {:?}", self.session, stored.get(id.as_str()));
        }
        let words: Vec<String> = theirs.iter().filter_map(|event| word_of(&text_of(event))).collect();
        for word in &self.accepted {
            let times = words.iter().filter(|stored| *stored == word).count();
            ensure!(times == 1, "the prompt {word} is stored {times} times in {}: {words:?}", self.session);
        }
        Ok(())
    }
}

impl AdkClient {
    pub(crate) fn new(index: usize, seeded_random: SeededRandom) -> Self {
        Self { index, seeded_random, past: Vec::new(), now: None, prompts: 0, hit: false }
    }

    /// Every session it ever had.
    pub(crate) fn stays(&self) -> impl Iterator<Item = &BackendRun> {
        self.past.iter().chain(&self.now)
    }

    /// Streams until the server dies. An error before that, or anything that was lost, is an error here.
    pub(crate) async fn visit(
        mut self,
        server: TestServer,
        address: SocketAddr,
        killed: Arc<AtomicBool>,
    ) -> anyhow::Result<Self> {
        self.hit = false;
        let way = Way { client: reqwest::Client::builder().no_proxy().timeout(PATIENCE).build()?, address };
        let ended = self.stream(&server, &way).await;
        match ended {
            Err(error) if error.is::<Lost>() => Err(error),
            Err(error) if !killed.load(Ordering::SeqCst) => Err(error.context("the server was not killed yet")),
            Ok(()) | Err(_) => Ok(self),
        }
    }

    async fn stream(&mut self, server: &TestServer, way: &Way) -> anyhow::Result<()> {
        loop {
            self.enter(way).await?;
            self.run(server, way).await?;
        }
    }

    /// Comes back to its session, or makes one.
    async fn enter(&mut self, way: &Way) -> anyhow::Result<()> {
        let full = self.now.as_ref().is_some_and(|backend_run| backend_run.asked >= PROMPTS);
        self.past.extend(self.now.take_if(|_| full));
        match &self.now {
            Some(backend_run) => way.kept(backend_run).await,
            None => {
                let session = way.post(SESSIONS, &json!({})).await?.json::<Value>().await?;
                let session = session["id"].as_str().context("no session")?.to_owned();
                self.now = Some(BackendRun { session, seen: BTreeMap::new(), asked: 0, accepted: Vec::new() });
                Ok(())
            }
        }
    }

    async fn run(&mut self, server: &TestServer, way: &Way) -> anyhow::Result<()> {
        let backend_run = self.now.as_mut().context("there is a session")?;
        self.prompts += 1;
        backend_run.asked += 1;
        let number = (self.index as u64 + 100) * 1_000_000 + self.prompts;
        let pace = Pace { deltas: 60, between_ms: 1 + self.seeded_random.below(4), word: number, ..Pace::default() };
        let message = json!({ "role": "user", "parts": [{ "text": format!("word {number} {}", pace.marker()) }] });
        let body = json!({
            "appName": "gander", "userId": "guest", "sessionId": backend_run.session, "newMessage": message, "streaming": true,
        });
        let mut response = way.post("/run_sse", &body).await?;
        let mut unread = Vec::new();
        while let Some(more) = response.chunk().await? {
            unread.extend_from_slice(&more);
            while let Some(end) = unread.windows(2).position(|pair| pair == b"\n\n") {
                let frame: Vec<u8> = unread.drain(..end + 2).collect();
                let Some(data) = frame.strip_prefix(b"data: ") else { continue };
                let event: Value = serde_json::from_slice(data)?;
                if !backend_run.accepted.contains(&number.to_string()) {
                    backend_run.accepted.push(number.to_string());
                }
                self.hit |= backend_run.hear(&event);
                server.first_delta.notify_one();
            }
        }
        self.hit = false;
        Ok(())
    }
}

impl BackendRun {
    /// True if it is a piece of more.
    fn hear(&mut self, event: &Value) -> bool {
        let (id, text) = (event["id"].as_str().unwrap_or_default().to_owned(), text_of(event));
        let partial = event["partial"] == true;
        if !text.is_empty() {
            let known = self.seen.entry(id).or_default();
            if partial { known.push_str(&text) } else { *known = text }
        }
        partial
    }
}

impl Way {
    async fn post(&self, path: &str, body: &Value) -> anyhow::Result<reqwest::Response> {
        let response = self.client.post(format!("http://{}{path}", self.address)).json(body).send().await?;
        Ok(response.error_for_status()?)
    }

    /// Demands that everything is there. A message that a kill cut off is shown once the server has closed it.
    async fn kept(&self, backend_run: &BackendRun) -> anyhow::Result<()> {
        let began = Instant::now();
        loop {
            match backend_run.check(&shown(&self.client, self.address, &backend_run.session).await?) {
                Err(error) if began.elapsed() > PATIENCE => return Err(Lost::because(error)),
                Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
                Ok(()) => return Ok(()),
            }
        }
    }
}

/// A session as ADK shows it.
pub(crate) async fn shown(client: &reqwest::Client, address: SocketAddr, session: &str) -> anyhow::Result<Value> {
    let response = client.get(format!("http://{address}{SESSIONS}/{session}")).send().await?;
    Ok(response.error_for_status()?.json().await?)
}

fn text_of(event: &Value) -> String {
    let parts = event["content"]["parts"].as_array().into_iter().flatten();
    parts.filter_map(|part| part["text"].as_str()).collect()
}
