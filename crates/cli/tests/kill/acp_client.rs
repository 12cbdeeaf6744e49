//! A client that prompts, watches until the server dies, and comes back to see whether all of it is still there.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use gander_testkit::call_record::CallRecord;
use gander_testkit::harness::{Client, Transcript};
use gander_testkit::upstream::Pace;
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::seeded_random::SeededRandom;

/// Prompts in one session before a new one is made: loading it stays quick.
const PROMPTS: usize = 6;

/// What all visitors share.
#[derive(Clone, Debug)]
pub(crate) struct TestServer {
    pub(crate) folder: PathBuf,
    pub(crate) call_record: CallRecord,
    pub(crate) first_delta: Arc<Notify>,
}

/// What is known of one session.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub(crate) session: String,
    /// Everything that was seen.
    seen: Transcript,
    /// The words of prompts of which something came back.
    accepted: Vec<String>,
}

/// One client.
#[derive(Debug)]
pub(crate) struct AcpClient {
    index: usize,
    seeded_random: SeededRandom,
    past: Vec<Record>,
    now: Option<Record>,
    prompts: u64,
    /// The prompt under way: its JSON-RPC id and its word.
    open: Option<(u64, String)>,
    streaming: bool,
    /// The last visit ended in the middle of a stream.
    pub(crate) hit: bool,
}

impl Record {
    /// Demands that all that was seen and accepted is in this replay.
    pub(crate) fn check(&self, replay: &Transcript) -> anyhow::Result<()> {
        self.seen.check_kept_in(replay).with_context(|| format!("session {}", self.session))?;
        let stored: Vec<String> = replay.prompts.iter().filter_map(|prompt| word_of(prompt)).collect();
        let missing: Vec<_> = self.accepted.iter().filter(|word| !stored.contains(word)).collect();
        ensure!(missing.is_empty(), "accepted prompts are gone from {}: {missing:?}", self.session);
        let mut unique = stored.clone();
        unique.sort();
        unique.dedup();
        ensure!(unique.len() == stored.len(), "a prompt is stored twice in {}: {stored:?}", self.session);
        Ok(())
    }
}

impl AcpClient {
    pub(crate) fn new(index: usize, seeded_random: SeededRandom) -> Self {
        Self { index, seeded_random, past: Vec::new(), now: None, prompts: 0, open: None, streaming: false, hit: false }
    }

    /// Every session it ever had.
    pub(crate) fn records(&self) -> impl Iterator<Item = &Record> {
        self.past.iter().chain(&self.now)
    }

    /// Streams until the server dies. An error before that, or anything that was lost, is an error here.
    pub(crate) async fn visit(
        mut self,
        server: TestServer,
        socket: PathBuf,
        data: PathBuf,
        killed: Arc<AtomicBool>,
    ) -> anyhow::Result<Self> {
        (self.open, self.streaming, self.hit) = (None, false, false);
        let ended = match Client::attach(&socket, &data).await {
            Ok(client) => self.stream(&server, client).await,
            Err(error) => Err(error),
        };
        self.hit = self.streaming;
        match ended {
            Err(error) if error.is::<Lost>() => Err(error),
            Err(error) if !killed.load(Ordering::SeqCst) => Err(error.context("the server was not killed yet")),
            Ok(()) | Err(_) => Ok(self),
        }
    }

    async fn stream(&mut self, server: &TestServer, mut client: Client) -> anyhow::Result<()> {
        client.initialize().await?;
        self.enter(server, &mut client).await?;
        loop {
            if self.open.is_none() {
                self.prompt(server, &mut client).await?;
            }
            let message = client.receive().await?.context("the server is gone")?;
            self.hear(server, &mut client, &message).await?;
        }
    }

    /// Comes back to its session, or makes one.
    async fn enter(&mut self, server: &TestServer, client: &mut Client) -> anyhow::Result<()> {
        let full = self.now.as_ref().is_some_and(|record| record.accepted.len() >= PROMPTS);
        self.past.extend(self.now.take_if(|_| full));
        let Some(record) = &mut self.now else {
            let session = client.new_session(&server.folder).await?;
            self.now = Some(Record { session: session.clone(), seen: Transcript::default(), accepted: Vec::new() });
            return self.choose_policy(client, &session).await;
        };
        client.load(&record.session, &server.folder).await?;
        let replay = Transcript::of(&client.seen, &record.session);
        record.check(&replay).map_err(Lost::because)?;
        record.seen = replay;
        let questions: Vec<Value> = client.seen.iter().filter(|message| crate::asks(message)).cloned().collect();
        for question in questions {
            self.answer(client, &question).await?;
        }
        Ok(())
    }

    /// The first visitor is asked before each tool call, the others are not.
    async fn choose_policy(&self, client: &mut Client, session: &str) -> anyhow::Result<()> {
        if self.index == 0 {
            let params = json!({"sessionId": session, "configId": "policy", "value": "ask"});
            client.call("session/set_config_option", params).await?;
        }
        Ok(())
    }

    async fn prompt(&mut self, server: &TestServer, client: &mut Client) -> anyhow::Result<()> {
        let record = self.now.as_ref().context("there is a session")?;
        self.prompts += 1;
        let number = (self.index as u64 + 1) * 1_000_000 + self.prompts;
        let pace = Pace { deltas: 60, between_ms: 1 + self.seeded_random.below(4), word: number, ..Pace::default() };
        let word = number.to_string();
        let tool = if self.seeded_random.below(3) == 0 { server.call_record.call(&word) } else { String::new() };
        let id = client.prompt(&record.session, &format!("word {word} {tool} {}", pace.marker())).await?;
        self.open = Some((id, word));
        Ok(())
    }

    async fn hear(&mut self, server: &TestServer, client: &mut Client, message: &Value) -> anyhow::Result<()> {
        if crate::asks(message) {
            return self.answer(client, message).await;
        }
        let record = self.now.as_mut().context("there is a session")?;
        let update = &message["params"]["update"];
        if message["method"] == "session/update" {
            record.seen.add(update);
        }
        if update["sessionUpdate"] == "agent_message_chunk" {
            self.streaming = true;
            server.first_delta.notify_one();
        }
        let Some((id, word)) = self.open.clone() else { return Ok(()) };
        if message["method"] == "session/update" && mentions(update, &word) && !record.accepted.contains(&word) {
            record.accepted.push(word);
        } else if message["id"] == id && message.get("method").is_none() {
            self.ended(client, message, word).await?;
        }
        Ok(())
    }

    /// The prompt was answered: it is over, or an older run is still going on.
    async fn ended(&mut self, client: &mut Client, message: &Value, word: String) -> anyhow::Result<()> {
        self.open = None;
        let record = self.now.as_mut().context("there is a session")?;
        match message["error"]["code"].as_i64() {
            None if !record.accepted.contains(&word) => record.accepted.push(word),
            None => {}
            Some(-32600) => return self.look_on(client).await,
            Some(code) => bail!(Lost(format!("a prompt failed with {code}: {message}"))),
        }
        self.streaming = false;
        Ok(())
    }

    /// Watches the older run for a moment.
    async fn look_on(&mut self, client: &mut Client) -> anyhow::Result<()> {
        for _ in 0..8 {
            let Some(message) = client.receive_within(Duration::from_millis(5)).await? else { continue };
            let record = self.now.as_mut().context("there is a session")?;
            record.seen.add(&message["params"]["update"]);
            if crate::asks(&message) {
                self.answer(client, &message).await?;
            }
        }
        Ok(())
    }

    /// Says yes, or leaves the question for another time.
    async fn answer(&mut self, client: &mut Client, question: &Value) -> anyhow::Result<()> {
        if self.seeded_random.below(2) == 0 {
            client.choose(question, "allow_once").await?;
        }
        Ok(())
    }
}

/// Something that must never happen, whether the server was killed or not.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Lost(String);

impl Lost {
    pub(crate) fn because(error: anyhow::Error) -> anyhow::Error {
        Self(format!("{error:#}")).into()
    }
}

fn mentions(update: &Value, word: &str) -> bool {
    update.to_string().contains(word)
}

/// The word of a prompt that a visitor or a guest made.
pub(crate) fn word_of(prompt: &str) -> Option<String> {
    Some(prompt.strip_prefix("word ")?.split(' ').next()?.to_owned())
}
