//! Who takes part: the model read directly, our server, and the peers that are installed.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use gander_testkit::harness::{Process, Server, data, workspace};
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio::process::{Child, Command};

use super::connection::Connection;
use crate::Bench;

/// What a goose is let in with.
const SECRET: &str = "race";

/// A server or program whose model is the benchmark's.
#[derive(Clone, Debug)]
pub(crate) enum Contender {
    Ours,
    /// `goose serve`.
    Goose(PathBuf),
    /// A program that speaks ACP on its standard streams.
    Program {
        name: String,
        command: String,
    },
}

/// A contender at work, with a home of its own. It ends when dropped.
pub(crate) enum Running {
    Ours { server: Box<Server>, token: String, root: TempDir },
    Goose { child: Box<Child>, address: SocketAddr, took: Duration, root: TempDir },
    Program { command: String, base_url: String, root: TempDir },
}

impl Contender {
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Ours => "gander",
            Self::Goose(_) => "goose",
            Self::Program { name, .. } => name,
        }
    }

    /// A program has one client.
    pub(crate) fn takes_many(&self) -> bool {
        match self {
            Self::Ours | Self::Goose(_) => true,
            Self::Program { .. } => false,
        }
    }

    pub(crate) async fn start(&self, bench: &Bench) -> anyhow::Result<Running> {
        let root = tempfile::tempdir()?;
        match self {
            Self::Ours => {
                let server = Box::new(bench.launch(root.path())?.serve().await?);
                let token = server.launch.stdout(&["token"]).await?.trim().to_owned();
                Ok(Running::Ours { server, token, root })
            }
            Self::Goose(path) => {
                let (child, address, took) = start_goose(path, root.path(), &bench.mock.base_url()).await?;
                Ok(Running::Goose { child: Box::new(child), address, took, root })
            }
            Self::Program { command, .. } => {
                Ok(Running::Program { command: command.clone(), base_url: bench.mock.base_url(), root })
            }
        }
    }
}

impl Running {
    /// How long it took until it answered; a program is not waited for.
    pub(crate) fn start_time(&self) -> Option<Duration> {
        match self {
            Self::Ours { server, .. } => Some(server.healthy_after),
            Self::Goose { took, .. } => Some(*took),
            Self::Program { .. } => None,
        }
    }

    /// A client with a session of its own, and the process that serves it.
    pub(crate) async fn connect(&self) -> anyhow::Result<(Connection, Process)> {
        match self {
            Self::Ours { server, token, root } => {
                let secret = format!("Authorization: Bearer {token}");
                let folder = workspace(root.path())?;
                Ok((Connection::open_websocket(server.address, &secret, &folder).await?, server.process()))
            }
            Self::Goose { child, address, root, .. } => {
                let folder = workspace(root.path())?;
                let secret = format!("X-Secret-Key: {SECRET}");
                let connection = Connection::open_websocket(*address, &secret, &folder).await?;
                Ok((connection, Process(child.id().context("goose is gone")?)))
            }
            Self::Program { command, base_url, root } => {
                let folder = workspace(root.path())?;
                let program = program_command(command, root.path(), base_url)?;
                let (connection, process) = Connection::open_program(program, &folder).await?;
                Ok((connection, Process(process)))
            }
        }
    }

    pub(crate) async fn end(self) -> anyhow::Result<()> {
        match self {
            Self::Ours { server, .. } => server.kill().await?,
            Self::Goose { mut child, .. } => child.kill().await?,
            Self::Program { .. } => {}
        }
        Ok(())
    }
}

async fn start_goose(path: &Path, root: &Path, base_url: &str) -> anyhow::Result<(Child, SocketAddr, Duration)> {
    let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    let mut command = Command::new(path);
    command.args(["serve", "--port", &port.to_string()]).current_dir(workspace(root)?);
    with_mock_model(&mut command, root, base_url)?;
    command.env("GOOSE_SERVER__SECRET_KEY", SECRET).env("GOOSE_HOST", "127.0.0.1").env("GOOSE_PORT", port.to_string());
    command.env("GOOSE_TLS", "false");
    let began = Instant::now();
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    while TcpStream::connect(address).await.is_err() {
        ensure!(began.elapsed() < Duration::from_secs(60), "goose does not start");
        ensure!(child.try_wait()?.is_none(), "goose ended");
        tokio::time::sleep(Duration::from_micros(500)).await;
    }
    Ok((child, address, began.elapsed()))
}

fn program_command(command: &str, root: &Path, base_url: &str) -> anyhow::Result<Command> {
    let mut words = command.split_whitespace();
    let mut program = Command::new(words.next().context("no command")?);
    program.args(words);
    with_mock_model(&mut program, root, base_url)?;
    Ok(program)
}

/// An environment in which the benchmark's model is the only one. Each peer reads the names that it knows.
fn with_mock_model(command: &mut Command, root: &Path, base_url: &str) -> anyhow::Result<()> {
    let home = data(root)?;
    let host = base_url.trim_end_matches("/v1");
    let opencode = serde_json::json!({
        "model": "mock/gpt-4o", "autoupdate": false,
        "provider": {"mock": {"npm": "@ai-sdk/openai-compatible", "models": {"gpt-4o": {}},
            "options": {"baseURL": base_url, "apiKey": "mock"}}},
    });
    command.env_clear().envs(std::env::vars_os().filter(|(name, _)| name == "PATH"));
    command.env("HOME", &home).env("GOOSE_PATH_ROOT", home.join("goose")).kill_on_drop(true);
    for (name, value) in [
        ("OPENAI_API_KEY", "mock"),
        ("OPENAI_BASE_URL", base_url),
        ("OPENAI_HOST", host),
        ("OPENAI_MODEL", "gpt-4o"),
        ("GOOSE_PROVIDER", "openai"),
        ("GOOSE_MODEL", "gpt-4o"),
        ("GOOSE_DISABLE_KEYRING", "1"),
        ("GOOSE_TELEMETRY_OFF", "1"),
        ("GOOSE_DISABLE_SESSION_NAMING", "true"),
        ("OPENCODE_CONFIG_CONTENT", &opencode.to_string()),
    ] {
        command.env(name, value);
    }
    Ok(())
}
