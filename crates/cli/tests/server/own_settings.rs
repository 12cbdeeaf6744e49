//! What a process is started with is for its own sessions and its own listener, beside a server that runs already.

use std::process::Stdio;

use anyhow::{Context as _, ensure};
use gander_testkit::harness::{Agent, Background, Launch, PATIENCE, Process, binary, data, terminate, workspace};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout};

const GANDER: &str = env!("CARGO_BIN_EXE_gander");

/// The binary called as goose, on this data directory.
fn goose(root: &tempfile::TempDir) -> anyhow::Result<(Launch, Background)> {
    let link = root.path().join("goose");
    std::os::unix::fs::symlink(binary(GANDER), &link)?;
    let launch = Launch::demo(link, data(root.path())?);
    let background = Background(launch.data.clone());
    Ok((launch, background))
}

async fn initialized(launch: &Launch) -> anyhow::Result<Agent> {
    let mut agent = Agent::spawn(launch.command(["acp"]))?;
    agent.client.initialize().await?;
    Ok(agent)
}

/// True if the demo's write ran without a question.
async fn runs_unasked(launch: &Launch, folder: &std::path::Path) -> anyhow::Result<bool> {
    let mut agent = initialized(launch).await?;
    let session = agent.client.new_session(folder).await?;
    let prompt = agent.client.prompt(&session, "ask").await?;
    let message = agent
        .client
        .until(|message| message["id"] == prompt || message["method"] == "session/request_permission")
        .await?;
    Ok(message.get("method").is_none())
}

#[tokio::test]
async fn goose_mode_and_policy_travel_with_the_attachment() -> anyhow::Result<()> {
    let root = tempfile::tempdir()?;
    let (launch, _background) = goose(&root)?;
    let folder = workspace(root.path())?;
    ensure!(!runs_unasked(&launch, &folder).await?, "the default policy asks, and starts the server");
    ensure!(runs_unasked(&launch.clone().with("GOOSE_MODE", "auto"), &folder).await?, "its own mode counts");
    ensure!(!runs_unasked(&launch, &folder).await?, "and nobody else's sessions have it");
    let own = Launch { binary: GANDER.into(), ..launch };
    let mut agent = own.editor(&["--policy", "auto"]).await?;
    let session = agent.client.new_session(&folder).await?;
    assert_eq!(agent.client.turn(&session, "ask").await?, "end_turn");
    Ok(())
}

/// The first caller starts the server: what it names wrongly fails for it alone.
#[tokio::test]
async fn an_unknown_provider_of_one_caller_reaches_nobody_else() -> anyhow::Result<()> {
    let root = tempfile::tempdir()?;
    let (mut launch, _background) = goose(&root)?;
    launch.variables.retain(|(name, _)| name != "GANDER_MODEL");
    let folder = workspace(root.path())?;
    let wrong = launch.clone().with("GOOSE_PROVIDER", "nosuch").with("GOOSE_MODEL", "x");
    let mut agent = initialized(&wrong).await?;
    let failed = match agent.client.new_session(&folder).await {
        Ok(session) => agent.client.turn(&session, "text").await.map(drop),
        Err(refused) => Err(refused),
    };
    ensure!(failed.as_ref().is_err_and(|error| error.to_string().contains("nosuch")), "{failed:?}");
    let mut other = initialized(&launch).await?;
    let session = other.client.new_session(&folder).await?;
    assert_eq!(other.client.turn(&session, "text").await?, "end_turn");
    Ok(())
}

/// Some editors start agents with nothing but `PATH`.
#[tokio::test]
async fn without_home_the_password_database_says_where_it_is() -> anyhow::Result<()> {
    let root = tempfile::tempdir()?;
    let launch = Launch::demo(GANDER, data(root.path())?);
    let run = launch.command(["config", "path"]).env_remove("HOME").env_remove("XDG_CONFIG_HOME").output();
    let output = tokio::time::timeout(PATIENCE, run).await??;
    let said = String::from_utf8(output.stdout)?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let users = std::fs::read_to_string("/etc/passwd")?;
    let own = rustix::process::getuid().as_raw().to_string();
    let user =
        users.lines().map(|line| line.split(':').collect::<Vec<_>>()).find(|user| user.get(2) == Some(&own.as_str()));
    let home = user.and_then(|user| user.get(5).copied()).context("this user is not in /etc/passwd")?;
    ensure!(said.trim().starts_with(home), "{said}");
    Ok(())
}

/// A `goose serve` with this key, and where it listens.
struct Served {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    url: String,
}

impl Served {
    async fn start(launch: &Launch, key: &str) -> anyhow::Result<Self> {
        let launch = launch.clone().with("GOOSE_SERVER__SECRET_KEY", key);
        let mut child =
            launch.command(["serve", "--port", "0"]).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let lines = BufReader::new(child.stdout.take().context("stdout is piped")?).lines();
        let mut served = Self { child, lines, url: String::new() };
        served.url = served.listening().await?;
        Ok(served)
    }

    /// Reads until it says where it listens.
    async fn listening(&mut self) -> anyhow::Result<String> {
        loop {
            let line = tokio::time::timeout(PATIENCE, self.lines.next_line()).await??.context("it ended")?;
            if let Some(url) = line.split_whitespace().find(|word| word.starts_with("http://")) {
                return Ok(url.to_owned());
            }
        }
    }

    async fn status(&self, http: &reqwest::Client, key: &str) -> anyhow::Result<u16> {
        let hello: Value = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}});
        let request = http.post(format!("{}/acp", self.url)).header("x-secret-key", key).json(&hello);
        Ok(request.send().await?.status().as_u16())
    }
}

/// Each has its own listener with its own key, and lives as long as its own process.
#[tokio::test]
async fn joined_servers_keep_their_own_key_and_outlive_the_first() -> anyhow::Result<()> {
    rustls::crypto::ring::default_provider().install_default().ok();
    let root = tempfile::tempdir()?;
    let (launch, _background) = goose(&root)?;
    let (mut first, mut second) = (Served::start(&launch, "first").await?, Served::start(&launch, "second").await?);
    let http = reqwest::Client::new();
    let mut statuses = Vec::new();
    for (served, key) in [(&first, "first"), (&first, "second"), (&second, "second"), (&second, "first")] {
        statuses.push(served.status(&http, key).await?);
    }
    assert_eq!(statuses, [200, 401, 200, 401]);
    terminate(Process(first.child.id().context("it runs")?))?;
    tokio::time::timeout(PATIENCE, first.child.wait()).await??;
    assert_eq!(second.listening().await?, second.url, "at the same address");
    assert_eq!((second.status(&http, "second").await?, second.status(&http, "first").await?), (200, 401));
    Ok(())
}
