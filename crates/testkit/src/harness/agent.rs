//! `gander acp` as a child of an editor: its stdin and stdout, and how it ends.

use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::process::{Child, Command};

use super::client::Client;
use super::process::{Process, processes_naming};
use super::{Launch, PATIENCE};

/// An agent on stdio.
#[derive(Debug)]
pub struct Agent {
    /// The other end of its stdin and stdout.
    pub client: Client,
    child: Child,
}

/// Ends, when dropped, whatever still runs on a data directory.
#[derive(Debug)]
pub struct Background(pub PathBuf);

impl Agent {
    /// Starts a command with piped stdin and stdout.
    pub fn spawn(mut command: Command) -> anyhow::Result<Self> {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let stdout = child.stdout.take().context("stdout is piped")?;
        let stdin = child.stdin.take().context("stdin is piped")?;
        Ok(Self { client: Client::over(stdout, stdin), child })
    }

    /// Its process.
    pub fn process(&self) -> Process {
        Process(self.child.id().unwrap_or_default())
    }

    /// Closes its stdin, and says how it ended and how long that took.
    pub async fn leave(mut self) -> anyhow::Result<(ExitStatus, Duration)> {
        let started = Instant::now();
        self.client.close_input().await?;
        let status = tokio::time::timeout(PATIENCE, self.child.wait()).await.context("the agent does not end")??;
        Ok((status, started.elapsed()))
    }
}

impl Launch {
    /// `gander acp` with these further arguments, already initialized.
    pub async fn editor(&self, arguments: &[&str]) -> anyhow::Result<Agent> {
        let mut agent = self.acp(arguments)?;
        agent.client.initialize().await?;
        Ok(agent)
    }

    /// `gander acp` with these further arguments.
    pub fn acp(&self, arguments: &[&str]) -> anyhow::Result<Agent> {
        Agent::spawn(self.command(std::iter::once("acp").chain(arguments.iter().copied())))
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        for process in processes_naming(&self.0) {
            let id = i32::try_from(process.0).ok().and_then(Pid::from_raw);
            // One that has just ended by itself is no loss.
            id.map(|id| kill_process(id, Signal::KILL).ok());
        }
    }
}

/// A prompt that makes the demo model play these calls.
pub fn script(calls: &[Value]) -> String {
    format!("[[script:{}]]", json!(calls))
}
