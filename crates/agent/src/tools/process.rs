//! Runs one command line on this machine and leaves nothing of it behind.

use std::io::{self, PipeReader};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe::Receiver;
use tokio::sync::oneshot;
use tokio::time::{Instant, Interval, MissedTickBehavior};
use uuid::Uuid;

use super::host::{CommandEnd, CommandLine, Exit, HostError, Live};
use super::output::Output;
use super::spawn;
use super::watchdog::Watchdog;

/// How long a command may take to end itself when told to.
const GRACE: Duration = Duration::from_secs(3);

/// How long output is read on after everything was killed.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// How often live output is shown.
const REFRESH: Duration = Duration::from_millis(250);

/// How much of the output's end is shown live.
const SHOWN: usize = 4 << 10;

/// Marks everything that a command starts, so that it is found wherever it hides.
const MARK: &str = "GANDER_COMMAND";

/// Runs the line to its end, or ends it and everything it started.
pub(super) async fn run(command: &CommandLine, live: &Live) -> Result<CommandEnd, HostError> {
    let failed = |error: io::Error| HostError::Failed(format!("command could not be started: {error}"));
    let (family, mut ended, reader) = Family::start(command).await.map_err(failed)?;
    let mut watch = Watch {
        output: Output::keeping(command.output),
        reader: Receiver::from_owned_fd(reader.into()).map_err(failed)?,
        refresh: refresh(),
        fresh: false,
    };
    let exit = tokio::select! {
        status = &mut ended => Ok(exit(status)),
        () = live.cancel.cancelled() => Err(Exit::Cancelled),
        () = tokio::time::sleep(command.timeout) => Err(Exit::TimedOut),
        never = watch.show(live) => match never {},
    };
    let exit = match exit {
        Ok(exit) => exit,
        Err(cause) => {
            family.end(&mut ended, &mut watch).await;
            cause
        }
    };
    drop(family);
    watch.last_words().await;
    Ok(CommandEnd { output: watch.output.text(), exit, terminal: None })
}

/// A command and everything it started. Dropping it kills them all.
struct Family {
    leader: Leader,
    mark: String,
}

/// The first process; none once it was waited for, because its number may then be somebody else's.
type Leader = Arc<Mutex<Option<Pid>>>;

impl Family {
    async fn start(command: &CommandLine) -> io::Result<(Self, oneshot::Receiver<ExitStatus>, PipeReader)> {
        let mark = Uuid::now_v7().to_string();
        let (reader, mut shell) = shell(command, &mark)?;
        let leader = Leader::default();
        let family = Self { leader: leader.clone(), mark };
        let (started, is_started) = oneshot::channel();
        let (end, ended) = oneshot::channel();
        let mark = family.entry();
        // Its own thread: the kernel ties the command's life to the thread that started it.
        std::thread::Builder::new().name("command".into()).spawn(move || {
            let spawned = spawn::spawn(&mut shell);
            // The pipe's writing end goes with it, or the output would never end.
            drop(shell);
            match spawned {
                Ok(child) => attend(child, &leader, &mark, started).map(|status| end.send(status)).map(drop),
                Err(error) => started.send(Err(error)).map_err(|_| io::ErrorKind::BrokenPipe.into()),
            }
        })?;
        is_started.await.map_err(|_| io::Error::other("its thread ended"))??;
        Ok((family, ended, reader))
    }

    /// Asks everything to end; after the grace period nothing is asked any more.
    async fn end(&self, ended: &mut oneshot::Receiver<ExitStatus>, watch: &mut Watch) {
        self.signal(Signal::TERM);
        let deadline = Instant::now() + GRACE;
        tokio::select! {
            _ = &mut *ended => {}
            () = tokio::time::sleep_until(deadline) => {}
            () = watch.drain() => {
                // Nobody writes any more, but the leader may still be there.
                drop(tokio::time::timeout_at(deadline, &mut *ended).await);
            }
        }
    }

    /// True if there was somebody to hear it.
    fn signal(&self, signal: Signal) -> bool {
        signal_group(*lock(&self.leader), signal);
        let hidden = marked(&self.entry());
        for pid in &hidden {
            if let Err(error) = rustix::process::kill_process(*pid, signal) {
                tracing::trace!(%error, "process is gone already");
            }
        }
        !hidden.is_empty()
    }

    /// What everything that belongs to it has in its environment.
    fn entry(&self) -> String {
        format!("{MARK}={}", self.mark)
    }
}

impl Drop for Family {
    fn drop(&mut self) {
        // Whoever forks while being killed is met in the next round.
        let mut rounds = 0..10;
        while rounds.next().is_some() && self.signal(Signal::KILL) {
            std::thread::yield_now();
        }
    }
}

/// Stays with the command until it has ended, then ends what it left behind.
fn attend(
    mut child: Child,
    leader: &Leader,
    mark: &str,
    started: oneshot::Sender<io::Result<()>>,
) -> io::Result<ExitStatus> {
    let pid = Pid::from_child(&child);
    *lock(leader) = Some(pid);
    let watchdog = Watchdog::over(pid, mark);
    if started.send(Ok(())).is_err() {
        // Nobody waits any more.
        signal_group(Some(pid), Signal::KILL);
    }
    outlive(pid);
    signal_group(lock(leader).take(), Signal::KILL);
    watchdog.dismiss();
    child.wait()
}

/// Reads output and shows it from time to time.
struct Watch {
    output: Output,
    reader: Receiver,
    refresh: Interval,
    fresh: bool,
}

enum Never {}

impl Watch {
    async fn show(&mut self, live: &Live) -> Never {
        let mut buffer = vec![0; 16 << 10];
        let mut open = true;
        loop {
            tokio::select! {
                read = self.reader.read(&mut buffer), if open => match read {
                    Ok(0) | Err(_) => open = false,
                    Ok(count) => {
                        self.output.push(&buffer[..count]);
                        self.fresh = true;
                    }
                },
                _ = self.refresh.tick(), if self.fresh => {
                    self.fresh = false;
                    // Hidden first, cut then: half a secret would not be recognised.
                    let text = live.redactor.text(&self.output.text());
                    live.show_text(last_lines(&text));
                }
                () = std::future::pending(), if !open && !self.fresh => {}
            }
        }
    }

    async fn drain(&mut self) {
        let mut buffer = vec![0; 16 << 10];
        while let Ok(count @ 1..) = self.reader.read(&mut buffer).await {
            self.output.push(&buffer[..count]);
        }
    }

    async fn last_words(&mut self) {
        if tokio::time::timeout(LAST_WORDS, self.drain()).await.is_err() {
            tracing::debug!("somebody still holds the output of an ended command");
        }
    }
}

fn shell(command: &CommandLine, mark: &str) -> io::Result<(PipeReader, Command)> {
    let (reader, writer) = io::pipe()?;
    let bash = ["/bin/bash", "/usr/bin/bash"].into_iter().find(|path| std::path::Path::new(path).exists());
    let mut shell = Command::new(bash.unwrap_or("/bin/sh"));
    shell.arg("-c").arg(&command.line).current_dir(&command.cwd).env_clear().envs(command.environment.all());
    shell.env(MARK, mark).stdin(Stdio::null()).stdout(writer.try_clone()?).stderr(writer);
    Ok((reader, shell))
}

/// Waits until the process has ended, and leaves its number taken.
fn outlive(pid: Pid) {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    while rustix::process::waitid(WaitId::Pid(pid), options).is_err_and(|error| error == Errno::INTR) {}
}

fn signal_group(leader: Option<Pid>, signal: Signal) {
    let sent = leader.map(|pid| rustix::process::kill_process_group(pid, signal));
    if let Some(Err(error)) = sent {
        tracing::trace!(%error, "process group is gone already");
    }
}

/// Every process that carries the mark, however far it went from its parents.
#[cfg(target_os = "linux")]
fn marked(mark: &str) -> Vec<Pid> {
    let carries = |environment: &[u8]| environment.split(|byte| *byte == 0).any(|entry| entry == mark.as_bytes());
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = processes.filter_map(|process| process.file_name().to_str()?.parse::<i32>().ok());
    numbers
        .filter(|number| std::fs::read(format!("/proc/{number}/environ")).is_ok_and(|bytes| carries(&bytes)))
        .filter_map(Pid::from_raw)
        .collect()
}

#[cfg(not(target_os = "linux"))]
fn marked(_mark: &str) -> Vec<Pid> {
    vec![]
}

fn exit(status: Result<ExitStatus, oneshot::error::RecvError>) -> Exit {
    match status {
        Ok(status) => match (status.code(), status.signal()) {
            (Some(code), _) => Exit::Code(code),
            (None, signal) => Exit::Signal(signal.unwrap_or_default()),
        },
        Err(_) => Exit::Signal(0),
    }
}

fn refresh() -> Interval {
    let mut refresh = tokio::time::interval(REFRESH);
    refresh.set_missed_tick_behavior(MissedTickBehavior::Delay);
    refresh
}

fn last_lines(text: &str) -> &str {
    let start = text.ceil_char_boundary(text.len().saturating_sub(SHOWN));
    match text[start..].find('\n') {
        Some(at) if start > 0 => &text[start + at + 1..],
        _ => &text[start..],
    }
}

fn lock(leader: &Leader) -> std::sync::MutexGuard<'_, Option<Pid>> {
    leader.lock().unwrap_or_else(PoisonError::into_inner)
}
