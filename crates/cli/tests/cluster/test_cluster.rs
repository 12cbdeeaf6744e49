//! Servers that share one database, each with a data directory of its own.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use gander_domain::Entry;
use gander_testkit::harness::{Client, Launch, PATIENCE, Server, Transcript, binary, eventually};
use gander_testkit::postgres::{SharedServer, new_schema};
use gander_testkit::skip::skipped;
use gander_testkit::upstream::Upstream;
use serde_json::Value;
use sqlx::{AssertSqlSafe, Connection as _, Row as _};

const GANDER: &str = env!("CARGO_BIN_EXE_gander");

/// Short, so that nobody waits long for what a dead node left.
pub(crate) const LEASE: Duration = Duration::from_secs(4);

static POSTGRES: SharedServer = SharedServer::new();

/// The nodes, the model behind them and the database below.
pub(crate) struct TestCluster {
    pub(crate) launches: Vec<Launch>,
    /// None while a node is down.
    pub(crate) servers: Vec<Option<Server>>,
    /// A folder that all nodes see.
    pub(crate) folder: PathBuf,
    pub(crate) url: String,
    _upstream: Upstream,
    _root: tempfile::TempDir,
}

/// The URL of a new schema; says that the test is skipped if there is no PostgreSQL.
pub(crate) fn schema_for(test: &str) -> Option<String> {
    let url = new_schema(&POSTGRES);
    if url.is_none() {
        skipped(&format!("cluster::{test}"), "PostgreSQL is not installed");
    }
    url
}

impl TestCluster {
    /// So many nodes with the role `all`.
    pub(crate) async fn start(url: String, nodes: usize) -> anyhow::Result<Self> {
        Self::start_with(url, nodes, |_, launch| launch).await
    }

    /// The same, each set up in its own way.
    pub(crate) async fn start_with(
        url: String,
        nodes: usize,
        set_up: impl Fn(usize, Launch) -> Launch,
    ) -> anyhow::Result<Self> {
        Self::start_beside(Upstream::start().await?, url, nodes, set_up).await
    }

    /// The same, with this model.
    pub(crate) async fn start_beside(
        upstream: Upstream,
        url: String,
        nodes: usize,
        set_up: impl Fn(usize, Launch) -> Launch,
    ) -> anyhow::Result<Self> {
        let root = tempfile::tempdir()?;
        let path = root.path().canonicalize()?;
        let folder = path.join("workspace");
        std::fs::create_dir(&folder)?;
        let mut launches = Vec::new();
        for node in 0..nodes {
            let data = path.join(format!("node-{node}"));
            std::fs::create_dir(&data)?;
            let launch = Launch::openai(binary(GANDER), data, &upstream.base_url())
                .with("GANDER_STORE", &url)
                .with("GANDER_CLUSTER_LEASE", &format!("{}s", LEASE.as_secs()))
                .with("GANDER_CLUSTER_SHARED", &format!("[{:?}]", folder.display().to_string()))
                .with("GANDER_CLUSTER_LABEL", &format!("disk-{node}"));
            launches.push(set_up(node, launch));
        }
        let mut servers = Vec::new();
        for launch in &launches {
            servers.push(Some(launch.serve().await?));
        }
        Ok(Self { launches, servers, folder, url, _upstream: upstream, _root: root })
    }

    /// A node that is up.
    pub(crate) fn server(&self, node: usize) -> anyhow::Result<&Server> {
        self.servers[node].as_ref().with_context(|| format!("node {node} is down"))
    }

    pub(crate) async fn client(&self, node: usize) -> anyhow::Result<Client> {
        self.server(node)?.client().await
    }

    /// A client at this node that has read a session's history and follows it.
    pub(crate) async fn follower(&self, node: usize, session: &str) -> anyhow::Result<Client> {
        let mut client = self.client(node).await?;
        client.load(session, &self.folder).await?;
        Ok(client)
    }

    /// Starts a node that is down.
    pub(crate) async fn restart(&mut self, node: usize) -> anyhow::Result<()> {
        self.servers[node] = Some(self.launches[node].serve().await?);
        Ok(())
    }

    /// A session's log, as this node reads it.
    pub(crate) async fn export(&self, node: usize, session: &str) -> anyhow::Result<Vec<Entry>> {
        self.launches[node].export(session).await
    }

    /// One number from the database.
    pub(crate) async fn count(&self, sql: &str) -> anyhow::Result<i64> {
        let mut connection = sqlx::PgConnection::connect(&self.url).await?;
        let row = sqlx::query(AssertSqlSafe(sql.to_owned())).fetch_one(&mut connection).await?;
        connection.close().await?;
        Ok(row.get(0))
    }

    /// An event id before everything that a session's first run tells.
    pub(crate) async fn first_event_id(&self) -> anyhow::Result<String> {
        Ok(format!("{}.2.0", self.count("SELECT incarnation::BIGINT FROM meta").await?))
    }

    /// Changes something in the database.
    pub(crate) async fn execute(&self, sql: &str) -> anyhow::Result<()> {
        let mut connection = sqlx::PgConnection::connect(&self.url).await?;
        sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).execute(&mut connection).await?;
        Ok(connection.close().await?)
    }

    /// Waits until no run is open; says how long that took.
    pub(crate) async fn all_runs_end(&self) -> anyhow::Result<Duration> {
        let began = Instant::now();
        let open = "SELECT count(*) FROM run WHERE ended IS NULL";
        eventually("every run ends", || async { self.count(open).await.is_ok_and(|open| open == 0) }).await?;
        Ok(began.elapsed())
    }

    /// Entries that a writer with an older epoch wrote behind those of a newer one.
    pub(crate) async fn overtaken_writes(&self) -> anyhow::Result<i64> {
        let pairs = "SELECT epoch, lag(epoch) OVER (PARTITION BY session ORDER BY first) AS before FROM entry";
        self.count(&format!("SELECT count(*) FROM ({pairs}) AS pair WHERE before > epoch")).await
    }
}

/// Reads until the text that a follower saw is this.
pub(crate) async fn read_until_text(client: &mut Client, session: &str, text: &str) -> anyhow::Result<()> {
    let began = Instant::now();
    while Transcript::of(&client.seen, session).text() != text {
        let seen = || Transcript::of(&client.seen, session).text();
        ensure!(began.elapsed() < PATIENCE, "a follower saw\n{}\nand the log says\n{text}", seen());
        client.receive_within(Duration::from_millis(50)).await?;
    }
    Ok(())
}

/// Reads until the first word of the agent.
pub(crate) async fn first_delta(client: &mut Client) -> anyhow::Result<Value> {
    client.update("agent_message_chunk").await
}

/// What a client that comes now is told of a session.
pub(crate) async fn replay(cluster: &TestCluster, node: usize, session: &str) -> anyhow::Result<Transcript> {
    Ok(Transcript::of(&cluster.follower(node, session).await?.seen, session))
}

/// A client of every protocol over HTTP.
pub(crate) fn http_client() -> anyhow::Result<reqwest::Client> {
    // Another test may have done so.
    rustls::crypto::ring::default_provider().install_default().ok();
    Ok(reqwest::Client::builder().no_proxy().build()?)
}
