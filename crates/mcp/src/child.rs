//! A server as a child process: in a group of its own, ended whole.

use std::io;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use gander_tools::Environment;
use gander_tools::process::family::{Family, Form};
use gander_tools::sandbox::Wrap;
use rustix::process::Signal;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

/// How long a server may take to end itself once nobody speaks to it, and again once it is told to.
const GRACE: Duration = Duration::from_secs(2);

/// How much of what it complains about is kept.
const KEPT: usize = 4 << 10;

/// A longer line of complaint is cut.
const LINE: u64 = 1 << 10;

/// A running server. Dropping it kills everything that it started.
pub(super) struct Child {
    family: Family,
    ended: oneshot::Receiver<ExitStatus>,
    complaints: Complaints,
}

/// How long the last complaint of a server that ended may take to arrive.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// The end of what it wrote to its standard error.
#[derive(Clone, Default)]
pub(super) struct Complaints {
    kept: Arc<Mutex<String>>,
    /// Cancelled when nothing follows.
    over: CancellationToken,
}

/// Its standard streams: what it says, and where it listens.
pub(super) type Streams = (Receiver, Sender);

/// A program and what it finds around it.
pub(super) struct Program<'a> {
    pub command: &'a Path,
    pub args: &'a [String],
    pub env: &'a [(String, String)],
    pub environment: &'a Environment,
    pub cwd: &'a Path,
    /// What puts a fence around it.
    pub wrap: Option<Wrap>,
}

impl Child {
    pub(super) async fn start(program: &Program<'_>) -> io::Result<(Self, Streams)> {
        let (input, to_child) = io::pipe()?;
        let (from_child, output) = io::pipe()?;
        let (errors, error) = io::pipe()?;
        let wrap = program.wrap.as_ref();
        let plain = || Command::new(program.command);
        let mut command = wrap.map_or_else(plain, |wrap| wrap.command(program.command.as_os_str()));
        command.args(program.args).current_dir(program.cwd).env_clear().envs(program.environment.all());
        command.envs(wrap.map(Wrap::environment).into_iter().flatten());
        command.envs(program.env.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::from(input)).stdout(Stdio::from(output)).stderr(Stdio::from(error));
        let form = if wrap.is_some() { Form::Supervised } else { Form::Plain };
        let (family, ended) = Family::start(command, form).await?;
        let complaints = Complaints::default();
        tokio::spawn(listen(Receiver::from_owned_fd(errors.into())?, complaints.clone()));
        let streams = (Receiver::from_owned_fd(from_child.into())?, Sender::from_owned_fd(to_child.into())?);
        Ok((Self { family, ended, complaints }, streams))
    }

    /// What it complained about last.
    pub(super) fn complaints(&self) -> Complaints {
        self.complaints.clone()
    }

    /// Waits for it to end by itself, then asks, then does not ask any more. Its input is closed by now.
    pub(super) async fn end(mut self) {
        if tokio::time::timeout(GRACE, &mut self.ended).await.is_err() {
            self.family.signal(Signal::TERM);
            drop(tokio::time::timeout(GRACE, &mut self.ended).await);
        }
    }
}

impl Complaints {
    /// All there will be of a server that ended: its streams close one after the other.
    pub(super) async fn last_words(&self) -> String {
        drop(tokio::time::timeout(LAST_WORDS, self.over.cancelled()).await);
        self.text()
    }

    /// The last of them.
    fn text(&self) -> String {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).trim().to_owned()
    }

    fn push(&self, line: &str) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.push_str(line);
        let over = kept.len().saturating_sub(KEPT);
        let cut = kept.ceil_char_boundary(over);
        kept.drain(..cut);
    }
}

/// Reads on, so that the server never waits for us.
async fn listen(errors: Receiver, complaints: Complaints) {
    let mut errors = BufReader::new(errors);
    let mut line = Vec::new();
    while let Ok(1..) = (&mut errors).take(LINE).read_until(b'\n', &mut line).await {
        complaints.push(&String::from_utf8_lossy(&line));
        line.clear();
    }
    complaints.over.cancel();
}
