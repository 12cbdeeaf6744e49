//! A server as a child process: in a group of its own, ended whole.

use std::io;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use gander_tools::Environment;
use gander_tools::process::process_tree::{Form, ProcessTree};
use gander_tools::sandbox::Wrap;
use rustix::process::Signal;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::sync::oneshot;

use super::stderr_tail::StderrTail;

/// How long a server may take to end itself once nobody speaks to it, and again once it is told to.
const STOP_TIMEOUT: Duration = Duration::from_secs(2);

/// A longer line of complaint is cut.
const MAX_STDERR_LINE_BYTES: u64 = 1 << 10;

/// A running server. Dropping it kills everything that it started.
pub(super) struct Child {
    family: ProcessTree,
    ended: oneshot::Receiver<ExitStatus>,
    stderr: StderrTail,
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
        let mut command = wrap.map_or_else(plain, |wrap| wrap.wrapped_command(program.command.as_os_str()));
        command.args(program.args).current_dir(program.cwd).env_clear().envs(program.environment.all_variables());
        command.envs(wrap.map(Wrap::environment).into_iter().flatten());
        command.envs(program.env.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::from(input)).stdout(Stdio::from(output)).stderr(Stdio::from(error));
        let form = if wrap.is_some() { Form::Supervised } else { Form::Plain };
        let (family, ended) = ProcessTree::start(command, form).await?;
        let stderr = StderrTail::default();
        tokio::spawn(read_child_stderr(Receiver::from_owned_fd(errors.into())?, stderr.clone()));
        let streams = (Receiver::from_owned_fd(from_child.into())?, Sender::from_owned_fd(to_child.into())?);
        Ok((Self { family, ended, stderr }, streams))
    }

    /// What it complained about last.
    pub(super) fn stderr_tail(&self) -> StderrTail {
        self.stderr.clone()
    }

    /// Waits for it to end by itself, then asks, then does not ask any more. Its input is closed by now.
    pub(super) async fn stop(mut self) {
        if tokio::time::timeout(STOP_TIMEOUT, &mut self.ended).await.is_err() {
            self.family.send_signal(Signal::TERM);
            drop(tokio::time::timeout(STOP_TIMEOUT, &mut self.ended).await);
        }
    }
}

/// Reads on, so that the server never waits for us.
async fn read_child_stderr(errors: Receiver, stderr: StderrTail) {
    let mut errors = BufReader::new(errors);
    let mut line = Vec::new();
    while let Ok(1..) = (&mut errors).take(MAX_STDERR_LINE_BYTES).read_until(b'\n', &mut line).await {
        stderr.push_line(&String::from_utf8_lossy(&line));
        line.clear();
    }
    stderr.over.cancel();
}
