//! A session's stream, cut at random bytes and resumed with Last-Event-ID, across kills of the server: no gap, no
//! duplicate.
//!
//! `GANDER_CUTS=2500` cuts more often, `GANDER_SEED=n` repeats a run.
#![allow(clippy::print_stderr)]

use anyhow::{Context, ensure};
use gander_testkit::harness::Transcript;
use gander_testkit::upstream::Pace;
use serde_json::{Value, json};

use crate::acp_net::http::{AcpHttpClient, Event};
use crate::acp_net::test_server::{TestServer, Transport};

/// Cuts of one session.
const ROUND: usize = 25;

/// Every so many rounds the server is killed in the middle of one.
const KILL_EVERY: usize = 3;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cuts_at_random_bytes_leave_no_gap_and_no_duplicate() -> anyhow::Result<()> {
    let cuts = number("GANDER_CUTS").unwrap_or(500);
    let seed = number("GANDER_SEED").unwrap_or(42);
    let mut server = TestServer::paced().await?;
    let (mut kills, mut events, mut dice) = (0, 0, seed as u64 + 1);
    for round in 0..cuts.div_ceil(ROUND) {
        let mut reader = Reader::begin(&server, dice).await?;
        for cut in 0..ROUND {
            reader
                .read(&server.http_client)
                .await
                .with_context(|| format!("cut {cut} of round {round}, seed {seed}"))?;
            if cut == ROUND / 2 && round % KILL_EVERY == 0 {
                server = server.restart().await?;
                kills += 1;
            }
        }
        reader.finish(&server.http_client).await?;
        reader.check(&server).await.with_context(|| format!("round {round}, seed {seed}"))?;
        events += reader.events.len();
        dice = reader.dice;
    }
    eprintln!("{cuts} cuts, {kills} kills, {events} events");
    Ok(())
}

/// One client that loses its stream all the time.
struct Reader {
    connection: String,
    session: String,
    events: Vec<Event>,
    turns: u64,
    /// A prompt that is not answered.
    open: bool,
    dice: u64,
}

impl Reader {
    async fn begin(server: &TestServer, seed: u64) -> anyhow::Result<Self> {
        let http_client = &server.http_client;
        let connection = http_client.connect().await?;
        let mut stream = http_client.events(&[("Acp-Connection-Id", &connection)], usize::MAX).await?;
        let new = json!({"jsonrpc": "2.0", "id": "new", "method": "session/new", "params": {"cwd": server.folder}});
        let posted = http_client.post(&[("Acp-Connection-Id", &connection)], new.to_string().as_bytes()).await?;
        ensure!(posted.status == 202, "{posted:?}");
        let answer = stream.next().await?.context("no session")?.json();
        let session = answer["result"]["sessionId"].as_str().context("no session id")?.to_owned();
        // Once a session's stream has had a reader, answers wait there. Before that, a turn that is quick enough is answered
        // on the connection's own.
        let ids = [("Acp-Connection-Id", connection.as_str()), ("Acp-Session-Id", &session)];
        let opened = http_client.events(&ids, 1).await?;
        ensure!(opened.status() == 200, "{}", opened.head);
        Ok(Self { connection, session, events: Vec::new(), turns: 0, open: false, dice: seed })
    }

    /// Opens the stream where it was lost, and loses it again.
    async fn read(&mut self, http_client: &AcpHttpClient) -> anyhow::Result<()> {
        let budget = match self.roll(4) {
            0 => self.roll(200),
            1 => self.roll(1_000),
            _ => self.roll(20_000),
        };
        self.follow(http_client, budget as usize + 1).await
    }

    async fn finish(&mut self, http_client: &AcpHttpClient) -> anyhow::Result<()> {
        while self.open {
            self.follow(http_client, 1 << 20).await?;
        }
        Ok(())
    }

    async fn follow(&mut self, http_client: &AcpHttpClient, budget: usize) -> anyhow::Result<()> {
        if !self.open {
            self.prompt(http_client).await?;
        }
        let last = self.events.iter().rev().find_map(|event| event.id.clone());
        let mut headers = vec![("Acp-Connection-Id", self.connection.as_str()), ("Acp-Session-Id", &self.session)];
        headers.extend(last.as_deref().map(|id| ("Last-Event-ID", id)));
        let mut stream = http_client.events(&headers, budget).await?;
        // Whoever has no id is taken for a second reader until the server has noticed that the first is gone.
        while stream.status() == 409 && last.is_none() {
            stream = http_client.events(&headers, budget).await?;
        }
        ensure!(stream.status() == 200, "{}", stream.head);
        while let Some(event) = stream.next().await? {
            let message = event.json();
            self.events.push(event);
            if message["id"] == self.turns && message.get("method").is_none() {
                self.open = false;
                return Ok(());
            }
        }
        Ok(())
    }

    async fn prompt(&mut self, http_client: &AcpHttpClient) -> anyhow::Result<()> {
        self.turns += 1;
        let pace = Pace { deltas: 200, between_ms: self.roll(2), word: self.turns, ..Pace::default() };
        let prompt = json!([{"type": "text", "text": pace.marker()}]);
        let params = json!({"sessionId": self.session, "prompt": prompt});
        let message = json!({"jsonrpc": "2.0", "id": self.turns, "method": "session/prompt", "params": params});
        let headers = [("Acp-Connection-Id", self.connection.as_str())];
        let posted = http_client.post(&headers, message.to_string().as_bytes()).await?;
        ensure!((posted.status, posted.body.as_str()) == (202, ""), "{posted:?}");
        self.open = true;
        Ok(())
    }

    /// What was read is what the log says; every id comes once and grows, every prompt is answered once.
    async fn check(&self, server: &TestServer) -> anyhow::Result<()> {
        let seen: Vec<Value> = self.events.iter().map(Event::json).collect();
        let mut loader = server.client(Transport::Unix).await?;
        loader.load(&self.session, &server.folder).await?;
        let (read, stored) = (Transcript::of(&seen, &self.session), Transcript::of(&loader.seen, &self.session));
        ensure!(read.items == stored.items, "read: {:?}\nstored: {:?}", read.items, stored.items);
        let ids: Vec<Vec<u64>> = self.events.iter().map(place).collect::<anyhow::Result<_>>()?;
        let backwards = ids.windows(2).find(|pair| pair[0] >= pair[1]);
        ensure!(backwards.is_none(), "not in order, or twice: {backwards:?}");
        for turn in 1..=self.turns {
            let answers = seen.iter().filter(|message| message["id"] == turn && message.get("method").is_none());
            ensure!(answers.clone().count() == 1, "turn {turn}: {:?}", answers.collect::<Vec<_>>());
        }
        Ok(())
    }

    /// A number below the limit.
    fn roll(&mut self, limit: u64) -> u64 {
        self.dice ^= self.dice << 13;
        self.dice ^= self.dice >> 7;
        self.dice ^= self.dice << 17;
        self.dice % limit
    }
}

/// Entry, message and answer, as numbers.
fn place(event: &Event) -> anyhow::Result<Vec<u64>> {
    let id = event.id.as_deref().with_context(|| format!("no id: {}", event.data))?;
    let numbers: Result<Vec<u64>, _> = id.split('.').skip(1).map(str::parse).collect();
    Ok(numbers?)
}

fn number(variable: &str) -> Option<usize> {
    std::env::var(variable).ok()?.parse().ok()
}
