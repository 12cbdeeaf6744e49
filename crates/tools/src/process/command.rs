//! Runs one command line on this machine and leaves nothing of it behind.

use std::io::{self, PipeReader};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::Signal;
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe::Receiver;
use tokio::sync::oneshot;
use tokio::time::{Instant, Interval, MissedTickBehavior};

use super::command_output::CommandOutput;
use super::process_tree::{Form, ProcessTree};
use crate::host::{CommandEnd, CommandLine, Exit, HostError, Live};
use crate::sandbox::Wrap;

/// How long a command may take to end itself when told to.
const GRACE: Duration = Duration::from_secs(3);

/// How long output is read on after everything was killed.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// How often live output is shown.
const REFRESH: Duration = Duration::from_millis(250);

/// How much of the output's end is shown live.
const SHOWN: usize = 4 << 10;

/// Runs the line to its end, or ends it and everything it started.
pub(crate) async fn run_command(command: &CommandLine, live: &Live) -> Result<CommandEnd, HostError> {
    let failed = |error: io::Error| HostError::Failed(format!("command could not be started: {error}"));
    let (reader, shell) = shell_command(command).map_err(failed)?;
    let form = if command.wrap.is_some() { Form::Supervised } else { Form::Plain };
    let (family, mut ended) = ProcessTree::start(shell, form).await.map_err(failed)?;
    let mut watch = CommandWatch {
        output: CommandOutput::with_limit(command.output),
        reader: Receiver::from_owned_fd(reader.into()).map_err(failed)?,
        refresh: command_refresh_interval(),
        fresh: false,
    };
    let exit = tokio::select! {
        status = &mut ended => Ok(command_exit(status)),
        () = live.cancel.cancelled() => Err(Exit::Cancelled),
        () = tokio::time::sleep(command.timeout) => Err(Exit::TimedOut),
        never = watch.show_output_live(live) => match never {},
    };
    let exit = match exit {
        Ok(exit) => exit,
        Err(cause) => {
            end_command(&family, &mut ended, &mut watch).await;
            cause
        }
    };
    family.kill_and_wait().await;
    drop(family);
    watch.last_words().await;
    Ok(CommandEnd { output: watch.output.clipped_text(), exit, terminal: None })
}

/// Asks everything to end; after the grace period nothing is asked any more.
async fn end_command(family: &ProcessTree, ended: &mut oneshot::Receiver<ExitStatus>, watch: &mut CommandWatch) {
    family.send_signal(Signal::TERM);
    let deadline = Instant::now() + GRACE;
    tokio::select! {
        _ = &mut *ended => {}
        () = tokio::time::sleep_until(deadline) => {}
        () = watch.drain_pipes() => {
            // Nobody writes any more, but the leader may still be there.
            drop(tokio::time::timeout_at(deadline, &mut *ended).await);
        }
    }
}

/// Reads output and shows it from time to time.
struct CommandWatch {
    output: CommandOutput,
    reader: Receiver,
    refresh: Interval,
    fresh: bool,
}

enum Never {}

impl CommandWatch {
    async fn show_output_live(&mut self, live: &Live) -> Never {
        let mut buffer = vec![0; 16 << 10];
        let mut open = true;
        loop {
            tokio::select! {
                read = self.reader.read(&mut buffer), if open => match read {
                    Ok(0) | Err(_) => open = false,
                    Ok(count) => {
                        self.output.push_bytes(&buffer[..count]);
                        self.fresh = true;
                    }
                },
                _ = self.refresh.tick(), if self.fresh => {
                    self.fresh = false;
                    // Hidden first, cut then: half a secret would not be recognised.
                    let text = live.redactor.redact_text(&self.output.clipped_text());
                    live.show_text(last_command_lines(&text));
                }
                () = std::future::pending(), if !open && !self.fresh => {}
            }
        }
    }

    async fn drain_pipes(&mut self) {
        let mut buffer = vec![0; 16 << 10];
        while let Ok(count @ 1..) = self.reader.read(&mut buffer).await {
            self.output.push_bytes(&buffer[..count]);
        }
    }

    async fn last_words(&mut self) {
        if tokio::time::timeout(LAST_WORDS, self.drain_pipes()).await.is_err() {
            tracing::debug!("somebody still holds the output of an ended command");
        }
    }
}

fn shell_command(command: &CommandLine) -> io::Result<(PipeReader, Command)> {
    let (reader, writer) = io::pipe()?;
    let bash = ["/bin/bash", "/usr/bin/bash"].into_iter().find(|path| std::path::Path::new(path).exists());
    let bash = bash.unwrap_or("/bin/sh");
    let mut shell =
        command.wrap.as_ref().map_or_else(|| Command::new(bash), |wrap| wrap.wrapped_command(bash.as_ref()));
    shell.arg("-c").arg(&command.line).current_dir(&command.cwd).env_clear().envs(command.environment.all_variables());
    shell.envs(command.wrap.iter().flat_map(Wrap::environment));
    shell.stdin(Stdio::null()).stdout(writer.try_clone()?).stderr(writer);
    Ok((reader, shell))
}

fn command_exit(status: Result<ExitStatus, oneshot::error::RecvError>) -> Exit {
    match status {
        Ok(status) => match (status.code(), status.signal()) {
            (Some(code), _) => Exit::Code(code),
            (None, signal) => Exit::Signal(signal.unwrap_or_default()),
        },
        Err(_) => Exit::Signal(0),
    }
}

fn command_refresh_interval() -> Interval {
    let mut refresh = tokio::time::interval(REFRESH);
    refresh.set_missed_tick_behavior(MissedTickBehavior::Delay);
    refresh
}

fn last_command_lines(text: &str) -> &str {
    let start = text.ceil_char_boundary(text.len().saturating_sub(SHOWN));
    match text[start..].find('\n') {
        Some(at) if start > 0 => &text[start + at + 1..],
        _ => &text[start..],
    }
}
