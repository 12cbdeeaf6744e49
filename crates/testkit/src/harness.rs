//! The real binary as a process: started in a fresh directory, watched through /proc, killed by its own id.

mod agent;
mod client;
mod process;
mod stream;
mod terminal;
mod transcript;

use std::ffi::OsString;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use gander_domain::Entry;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpStream, UnixStream};
use tokio::process::{Child, ChildStdout, Command};

pub use agent::{Agent, Background, script};
pub use client::{Client, Refusal};
pub use process::{Process, pause, processes_naming, resume, terminate};
pub use stream::{DeltaStream, Finished};
pub use terminal::Terminal;
pub use transcript::{Item, Transcript};

/// Nothing that a test waits for may take longer.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// How to start the binary.
#[derive(Clone, Debug)]
pub struct Launch {
    /// The product's binary, for every command.
    pub binary: PathBuf,
    /// Another binary that is the server, if not the product's.
    pub server_binary: Option<PathBuf>,
    /// Its data directory.
    pub data: PathBuf,
    /// Environment variables; of the test's own none is handed on but `PATH`.
    pub variables: Vec<(String, String)>,
    /// A program and its arguments that run the binary somewhere else, such as `ip netns exec NAME`. Empty: none.
    pub within: Vec<String>,
}

/// A `gander serve` that is killed when dropped.
#[derive(Debug)]
pub struct Server {
    child: Child,
    /// Held so that it may print.
    _stdout: BufReader<ChildStdout>,
    /// Where it serves HTTP.
    pub address: SocketAddr,
    /// How it was started.
    pub launch: Launch,
    /// From the start of the process to its first healthy answer.
    pub healthy_after: Duration,
}

impl Launch {
    /// The binary with the scripted demo model, and otherwise the product's own defaults.
    pub fn demo(binary: impl Into<PathBuf>, data: impl Into<PathBuf>) -> Self {
        let (binary, data) = (binary.into(), data.into());
        Self { binary, server_binary: None, data, variables: Vec::new(), within: Vec::new() }
            .with("GANDER_MODEL", "demo/demo")
    }

    /// The binary with a model at this address, and otherwise the product's own defaults.
    pub fn openai(binary: impl Into<PathBuf>, data: impl Into<PathBuf>, base_url: &str) -> Self {
        Self::demo(binary, data)
            .with("GANDER_MODEL", "openai/mock")
            .with("OPENAI_BASE_URL", base_url)
            .with("OPENAI_API_KEY", "sk-of-no-worth")
    }

    /// With the policy `auto`, for this reason.
    #[must_use]
    pub fn with_policy_auto(self, because: &str) -> Self {
        let (name, value) = policy_auto(because);
        self.with(name, value)
    }

    /// With one more variable.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.variables.retain(|(known, _)| known != name);
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// With the server that has agents for conformance kits.
    #[must_use]
    pub fn with_conformance_agents(mut self) -> Self {
        self.server_binary = Some(conformance_binary(&self.binary));
        self
    }

    /// A command of the binary on this data directory, its home included.
    pub fn command<I: Into<OsString>>(&self, arguments: impl IntoIterator<Item = I>) -> Command {
        self.command_of(&self.binary, arguments)
    }

    fn command_of<I: Into<OsString>>(&self, binary: &Path, arguments: impl IntoIterator<Item = I>) -> Command {
        let mut words = self.within.iter().map(OsString::from).chain([binary.as_os_str().to_owned()]);
        let mut command = Command::new(words.next().unwrap_or_default());
        command.args(words);
        command.args(arguments.into_iter().map(Into::into)).arg("--data").arg(&self.data);
        command.env_clear().env("HOME", &self.data).env("XDG_CONFIG_HOME", self.data.join("config"));
        command.envs(std::env::vars_os().filter(|(name, _)| name == "PATH"));
        command.envs(self.variables.iter().map(|(name, value)| (name, value))).kill_on_drop(true);
        command
    }

    /// Runs a command to its end.
    pub async fn run(&self, arguments: &[&str]) -> anyhow::Result<Output> {
        let run = self.command(arguments.iter().copied()).stdin(Stdio::null()).output();
        tokio::time::timeout(PATIENCE, run).await.context("the command took too long")?.context("cannot run the binary")
    }

    /// Runs a command that must succeed, and gives what it printed.
    pub async fn stdout(&self, arguments: &[&str]) -> anyhow::Result<String> {
        let output = self.run(arguments).await?;
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        ensure!(output.status.success(), "{arguments:?} gave {}: {errors}", output.status);
        Ok(String::from_utf8(output.stdout)?)
    }

    /// The log of a session as its exported entries.
    pub async fn export(&self, session: &str) -> anyhow::Result<Vec<Entry>> {
        let text = self.stdout(&["sessions", "export", session]).await?;
        let entries = text.lines().filter(|line| line.contains("\"seq\":"));
        entries.map(|line| serde_json::from_str(line).with_context(|| format!("no entry: {line}"))).collect()
    }

    /// Where its server listens for local clients.
    pub fn socket(&self) -> PathBuf {
        let noted = std::fs::read_to_string(self.data.join("socket"));
        noted.map_or_else(|_| self.data.join("gander.sock"), |path| PathBuf::from(path.trim()))
    }

    /// Starts a server and waits until it is healthy.
    pub async fn serve(&self) -> anyhow::Result<Server> {
        let log = std::fs::File::options().create(true).append(true).open(self.data.join("serve.log"))?;
        let started = Instant::now();
        // The system picks the port and the server says which: a port that was only looked for may be gone again.
        let binary = self.server_binary.as_ref().unwrap_or(&self.binary);
        let mut command = self.command_of(binary, ["serve", "--listen", "127.0.0.1:0"]);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log).spawn()?;
        let mut stdout = BufReader::new(child.stdout.take().context("no stdout")?);
        let address = tokio::time::timeout(PATIENCE, announced(&mut stdout)).await.context("no address in time")?;
        let Some(address) = address? else {
            let (status, log) = (child.wait().await?, std::fs::read_to_string(self.data.join("serve.log")));
            bail!("the server ended before it listened, {status}: {}", log.unwrap_or_default());
        };
        while !self.is_healthy(address).await {
            ensure!(child.try_wait()?.is_none(), "the server ended before it was healthy");
            ensure!(started.elapsed() < PATIENCE, "the server is not healthy after {PATIENCE:?}");
            tokio::time::sleep(Duration::from_micros(200)).await;
        }
        let healthy_after = started.elapsed();
        Ok(Server { child, _stdout: stdout, address, launch: self.clone(), healthy_after })
    }
}

impl Launch {
    /// Whether it answers: by its socket if its loopback is not ours.
    async fn is_healthy(&self, address: SocketAddr) -> bool {
        if self.within.is_empty() { healthy(address).await } else { UnixStream::connect(self.socket()).await.is_ok() }
    }
}

impl Server {
    /// Its process, for looking at.
    pub fn process(&self) -> Process {
        Process(self.child.id().unwrap_or_default())
    }

    /// `kill -9`, and waits until it is gone.
    pub async fn kill(mut self) -> io::Result<()> {
        self.child.kill().await
    }

    /// SIGTERM, and how it ended.
    pub async fn stop(mut self) -> anyhow::Result<std::process::ExitStatus> {
        terminate(self.process())?;
        tokio::time::timeout(PATIENCE, self.child.wait()).await.context("it does not stop")?.map_err(Into::into)
    }

    /// A client at its Unix socket, already initialized.
    pub async fn client(&self) -> anyhow::Result<Client> {
        let mut client = Client::attach(&self.launch.socket(), &self.launch.data).await?;
        client.initialize().await?;
        Ok(client)
    }
}

/// Asks until the answer is yes, every few milliseconds, for as long as a test may wait.
pub async fn eventually<F: Future<Output = bool>>(what: &str, mut ask: impl FnMut() -> F) -> anyhow::Result<()> {
    let started = Instant::now();
    while !ask().await {
        ensure!(started.elapsed() < PATIENCE, "waited in vain: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    Ok(())
}

/// The variable that sets the policy `auto`. Whoever sets it says why a user in that place would do so too: at default
/// settings a person is asked.
pub fn policy_auto(because: &str) -> (&'static str, &'static str) {
    assert!(!because.is_empty(), "a reason is due");
    ("GANDER_PERMISSIONS_POLICY", "auto")
}

/// The binary that cargo built for a test, or the one that `GANDER_BINARY` names: a release build, an installed one.
pub fn binary(built: &str) -> PathBuf {
    std::env::var_os("GANDER_BINARY").map_or_else(|| PathBuf::from(built), PathBuf::from)
}

/// The server with agents for conformance kits, which cargo puts beside the product. A test of another package cannot ask
/// cargo for it; `cargo test --workspace` builds it.
pub fn conformance_binary(product: &Path) -> PathBuf {
    let binary = product.with_file_name("gander-conformance");
    assert!(binary.exists(), "build it first (cargo build -p gander-conformance): {}", binary.display());
    binary
}

/// Makes a folder for the server's data, beside that of the sessions: the data directory is never a workspace.
pub fn data(root: &Path) -> io::Result<PathBuf> {
    let path = root.join("data");
    std::fs::create_dir_all(&path)?;
    path.canonicalize()
}

/// Makes a folder for sessions to work in.
pub fn workspace(root: &Path) -> io::Result<PathBuf> {
    let path = root.join("workspace");
    std::fs::create_dir_all(&path)?;
    path.canonicalize()
}

/// Where a server says it listens. `None` if it says nothing.
async fn announced(stdout: &mut BufReader<ChildStdout>) -> anyhow::Result<Option<SocketAddr>> {
    let mut lines = stdout.lines();
    while let Some(line) = lines.next_line().await? {
        if let Some((_, address)) = line.split_once("http://") {
            return Ok(Some(address.trim().parse().with_context(|| line.clone())?));
        }
    }
    Ok(None)
}

async fn healthy(address: SocketAddr) -> bool {
    let Ok(mut stream) = TcpStream::connect(address).await else { return false };
    let request = format!("GET /health HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    let mut head = [0; 12];
    stream.write_all(request.as_bytes()).await.is_ok()
        && stream.read_exact(&mut head).await.is_ok()
        && head.ends_with(b"200")
}
