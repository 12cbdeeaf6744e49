//! The database's server is lost, and a standby takes its place: one that had every commit, and one that had not.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use gander_testkit::call_record::CallRecord;
use gander_testkit::harness::{Launch, Transcript, eventually};
use gander_testkit::postgres::{DiskSync, PostgresServer, StopMode, make_schema};
use gander_testkit::upstream::Pace;
use reqwest::{Response, StatusCode};
use serde_json::json;

use crate::checks;
use crate::faults::{Stream, check_all, check_stream, start_streams};
use crate::test_cluster::{TestCluster, first_delta, http_client, schema_for};

/// The owner's key at every node.
const KEY: &str = "one-key-for-all-nodes";

/// Two servers, and the one place where nodes look for the one that writes.
struct Pair {
    primary: PostgresServer,
    standby: PostgresServer,
    link: PathBuf,
    _root: tempfile::TempDir,
}

impl Pair {
    fn start() -> anyhow::Result<Self> {
        let (primary, root) = (PostgresServer::start(DiskSync::Off)?, tempfile::tempdir()?);
        let standby = primary.start_standby()?;
        let link = root.path().join("database");
        std::os::unix::fs::symlink(primary.folder(), &link)?;
        Ok(Self { primary, standby, link, _root: root })
    }

    /// A new schema, as nodes see it.
    fn url(&self) -> anyhow::Result<String> {
        let url = make_schema(&self.primary.url())?;
        Ok(url.replace(&text(self.primary.folder()), &text(&self.link)))
    }

    /// From now on every commit waits for the standby's.
    fn wait_for_standby(&self) -> anyhow::Result<()> {
        self.primary.add_setting("synchronous_standby_names = '*'")?;
        self.primary.reload()
    }

    /// The standby hears nothing more, and nobody waits for it.
    async fn detach_standby(&self) -> anyhow::Result<()> {
        self.standby.add_setting("primary_conninfo = ''")?;
        self.standby.reload()?;
        let receivers = "SELECT count(*) FROM pg_stat_wal_receiver";
        eventually("the standby hears nothing", || async {
            self.standby.psql(receivers).is_ok_and(|count| count == "0")
        })
        .await
    }

    /// Waits until the standby has everything that there is now.
    async fn await_standby(&self) -> anyhow::Result<()> {
        let here = self.primary.psql("SELECT pg_current_wal_lsn()")?;
        let there = format!("SELECT COALESCE(pg_last_wal_replay_lsn() >= '{here}', FALSE)");
        eventually("the standby has it", || async { self.standby.psql(&there).is_ok_and(|has| has == "t") }).await
    }

    /// The server that writes is lost; the other one takes its place.
    fn fail_over(&self) -> anyhow::Result<()> {
        self.primary.stop(StopMode::Immediate)?;
        self.standby.promote()?;
        std::fs::remove_file(&self.link)?;
        Ok(std::os::unix::fs::symlink(self.standby.folder(), &self.link)?)
    }
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

/// With a synchronous standby nothing that anybody saw is lost, in the middle of streams.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_synchronous_standby_takes_over_and_nothing_is_lost() -> anyhow::Result<()> {
    if schema_for("a_synchronous_standby_takes_over_and_nothing_is_lost").is_none() {
        return Ok(());
    }
    let pair = Pair::start()?;
    pair.wait_for_standby()?;
    let auto = |_: usize, launch: Launch| launch.with_policy_auto("a ledger of calls that nobody has to allow");
    let cluster = TestCluster::start_with(pair.url()?, 3, auto).await?;
    let ledger = CallRecord::in_folder(&cluster.folder);
    let streams = start_streams(&cluster, &ledger, 100, 0, 0).await?;
    let began = Instant::now();
    pair.fail_over()?;
    cluster.all_runs_end().await?;
    eprintln!("synchronous standby: every run over {:?} after the loss", began.elapsed());
    let mut entries = 0;
    for Stream { session, mut follower } in streams {
        // Nobody can know that nothing is missing: who follows loads the session again, and finds all that it saw.
        while follower.receive_within(Duration::from_millis(50)).await?.is_some() {}
        let (seen, again) = (Transcript::of(&follower.seen, &session), cluster.follower(1, &session).await?);
        seen.check_kept_in(&Transcript::of(&again.seen, &session))?;
        entries += check_stream(&cluster, 0, Stream { session, follower: again }).await?;
    }
    check_all(&cluster, &ledger, 4, entries).await
}

/// A client of goose's REST, which follows whole sessions.
struct Desktop<'a> {
    cluster: &'a TestCluster,
    http: reqwest::Client,
}

impl Desktop<'_> {
    async fn events(&self, node: usize, session: &str, after: &str) -> anyhow::Result<Response> {
        let url = format!("http://{}/sessions/{session}/events", self.cluster.server(node)?.address);
        Ok(self.http.get(url).bearer_auth(KEY).header("last-event-id", after).send().await?)
    }

    /// Reads a stream until these words, and gives the id of the last event.
    async fn last_id(&self, node: usize, session: &str, after: &str, words: &str) -> anyhow::Result<String> {
        let (mut stream, mut seen) = (self.events(node, session, after).await?, String::new());
        ensure!(stream.status().is_success(), "{}", stream.text().await?);
        while !seen.contains(words) {
            seen.push_str(&String::from_utf8_lossy(&stream.chunk().await?.context("the stream ended")?));
        }
        let id = seen.lines().filter_map(|line| line.strip_prefix("id: ")).next_back();
        Ok(id.context("no ids")?.trim().to_owned())
    }
}

/// With an asynchronous one the end may be missing: whoever saw it is told so, at every node, and everything goes on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_asynchronous_standby_takes_over_and_clients_are_told() -> anyhow::Result<()> {
    if schema_for("an_asynchronous_standby_takes_over_and_clients_are_told").is_none() {
        return Ok(());
    }
    let pair = Pair::start()?;
    let cluster =
        TestCluster::start_with(pair.url()?, 3, |_, launch| launch.with("GOOSE_SERVER__SECRET_KEY", KEY)).await?;
    let desktop = Desktop { cluster: &cluster, http: http_client()? };
    let mut owner = cluster.client(0).await?;
    let session = owner.new_session(&cluster.folder).await?;
    let pace = |word| Pace { deltas: 5, between_ms: 0, first_ms: 0, size: 8, word };
    owner.turn(&session, &pace(1).marker()).await?;
    let running = owner.new_session(&cluster.folder).await?;
    let slow = Pace { deltas: 150, between_ms: 50, first_ms: 0, size: 8, word: 9 };
    owner.prompt(&running, &slow.marker()).await?;
    first_delta(&mut cluster.follower(1, &running).await?).await?;
    pair.await_standby().await?;
    pair.detach_standby().await?;
    owner.turn(&session, &pace(2).marker()).await?;
    let before = cluster.export(1, &session).await?.len();
    let last = desktop.last_id(1, &session, &cluster.first_event_id().await?, "~2:4 ").await?;
    pair.fail_over()?;
    for node in 0..3 {
        let told = || async {
            desktop.events(node, &session, &last).await.is_ok_and(|answer| answer.status() == StatusCode::CONFLICT)
        };
        eventually("a client is told that the end is missing", told).await?;
    }
    // The run under way goes on from what is left of it.
    cluster.all_runs_end().await?;
    let entries = cluster.export(1, &running).await?;
    checks::check(&entries)?;
    ensure!(json!(entries).to_string().contains("~9:149 "), "the run did not go on");
    let found = cluster.export(2, &session).await?;
    ensure!(found.len() < before, "nothing was lost: the test shows nothing");
    // A prompt at each node: none goes on from what it remembers. One that wrote nothing since hears of it only now, and
    // then has its clients load again; the prompt counts all the same.
    for (node, word) in (0..3).zip(3..) {
        let mut client = cluster.follower(node, &session).await?;
        if let Err(told) = client.turn(&session, &pace(word).marker()).await {
            ensure!(told.to_string().contains("load it again"), "node {node}: {told:#}");
            cluster.all_runs_end().await?;
        }
    }
    let whole = cluster.export(0, &session).await?;
    checks::check(&whole)?;
    ensure!(whole == cluster.export(1, &session).await?, "two nodes read different logs");
    let said = json!(whole).to_string();
    ensure!(!said.contains("~2:0 "), "what was lost came back: {said}");
    ensure!((3..6).all(|word| said.matches(&format!("~{word}:4 ")).count() > 0), "a prompt was lost: {said}");
    assert_eq!(cluster.overtaken_writes().await?, 0);
    Ok(())
}
