//! A process in a session of its own, with everything it starts. Nothing of it is left behind.

use std::io;
use std::process::{Child, Command, ExitStatus};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};
use tokio::sync::oneshot;
use uuid::Uuid;

use super::spawn;
use super::watchdog::Watchdog;

/// Marks everything that a command starts, so that it is found wherever it hides.
const MARK: &str = "GANDER_COMMAND";

/// A command and everything it started. Dropping it kills them all.
pub struct ProcessTree {
    leader: Leader,
    mark: String,
    form: Form,
}

/// Who is at its head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// The command itself.
    Plain,
    /// A supervisor: it ends all the others, wherever they went, once its own child is dead.
    Supervised,
}

/// How long a supervisor may take for that: a busy machine is slow to let it run.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long somebody who cannot wait waits for it. It goes on without them.
const SHORT_PATIENCE: Duration = Duration::from_millis(100);

/// How often it is looked for.
const PULSE: Duration = Duration::from_millis(1);

/// The first process; none once it was waited for, because its number may then be somebody else's.
type Leader = Arc<Mutex<Option<Pid>>>;

impl ProcessTree {
    /// Starts it; the second value tells when it has ended. What it leaves behind then is ended too.
    pub async fn start(mut command: Command, form: Form) -> io::Result<(Self, oneshot::Receiver<ExitStatus>)> {
        let leader = Leader::default();
        let family = Self { leader: leader.clone(), mark: Uuid::now_v7().to_string(), form };
        command.env(MARK, &family.mark);
        let (started, is_started) = oneshot::channel();
        let (end, ended) = oneshot::channel();
        let mark = family.registry_line();
        // Its own thread: the kernel ties the command's life to the thread that started it.
        std::thread::Builder::new().name("command".into()).spawn(move || {
            let watchdog = Watchdog::watch_marked_processes(&mark, form);
            let spawned = spawn::spawn_in_own_group(&mut command, watchdog.leader_pipe());
            // The pipe's writing end goes with it, or the output would never end.
            drop(command);
            match spawned {
                Ok(child) => wait_for_process_leader(child, form, &leader, watchdog, started)
                    .map(|status| end.send(status))
                    .map(drop),
                Err(error) => {
                    watchdog.stop_watching();
                    started.send(Err(error)).map_err(|_| io::ErrorKind::BrokenPipe.into())
                }
            }
        })?;
        is_started.await.map_err(|_| io::Error::other("its thread ended"))??;
        Ok((family, ended))
    }

    /// True if there was somebody to hear it.
    pub fn send_signal(&self, signal: Signal) -> bool {
        signal_process_group(*lock_process_leader(&self.leader), signal);
        let hidden = find_marked_processes(&self.registry_line());
        for pid in &hidden {
            if let Err(error) = rustix::process::kill_process(*pid, signal) {
                tracing::trace!(%error, "process is gone already");
            }
        }
        !hidden.is_empty()
    }

    /// Kills everything, and returns when nothing of it does anything any more.
    pub async fn kill_and_wait(&self) {
        let deadline = Instant::now() + PATIENCE;
        while self.is_ending() && Instant::now() < deadline {
            tokio::time::sleep(PULSE).await;
        }
    }

    /// Tells the supervisor to end everything. False if there is none, or it has ended.
    fn is_ending(&self) -> bool {
        let leader = lock_process_leader(&self.leader);
        let supervised = self.form == Form::Supervised && leader.is_some();
        if supervised {
            signal_process_supervisor(*leader);
        }
        supervised
    }

    /// What everything that belongs to it has in its environment.
    fn registry_line(&self) -> String {
        format!("{MARK}={}", self.mark)
    }
}

impl Drop for ProcessTree {
    fn drop(&mut self) {
        let deadline = Instant::now() + SHORT_PATIENCE;
        while self.is_ending() && Instant::now() < deadline {
            std::thread::sleep(PULSE);
        }
        if self.form == Form::Supervised {
            // Only it finds what carries no mark and left its group: it is told what to do, and never killed before that
            // is done.
            return;
        }
        // Whoever forks while being killed is met in the next round.
        let mut rounds = 0..10;
        while rounds.next().is_some() && self.send_signal(Signal::KILL) {
            std::thread::yield_now();
        }
    }
}

/// Stays with the command until it has ended, then ends what it left behind.
fn wait_for_process_leader(
    mut child: Child,
    form: Form,
    leader: &Leader,
    watchdog: Watchdog,
    started: oneshot::Sender<io::Result<()>>,
) -> io::Result<ExitStatus> {
    let pid = Pid::from_child(&child);
    *lock_process_leader(leader) = Some(pid);
    if started.send(Ok(())).is_err() {
        // Nobody waits any more.
        match form {
            Form::Plain => signal_process_group(Some(pid), Signal::KILL),
            Form::Supervised => signal_process_supervisor(Some(pid)),
        }
    }
    survive_until_process_tree_end(pid);
    signal_process_group(lock_process_leader(leader).take(), Signal::KILL);
    watchdog.stop_watching();
    child.wait()
}

/// Waits until the process has ended, and leaves its number taken.
fn survive_until_process_tree_end(pid: Pid) {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    while rustix::process::waitid(WaitId::Pid(pid), options).is_err_and(|error| error == Errno::INTR) {}
}

/// It hears this as "end everything, then yourself". One that does not listen yet has started nothing, and dies of it.
fn signal_process_supervisor(leader: Option<Pid>) {
    let sent = leader.map(|pid| rustix::process::kill_process(pid, Signal::USR1));
    if let Some(Err(error)) = sent {
        tracing::trace!(%error, "supervisor is gone already");
    }
}

fn signal_process_group(leader: Option<Pid>, signal: Signal) {
    let sent = leader.map(|pid| rustix::process::kill_process_group(pid, signal));
    if let Some(Err(error)) = sent {
        tracing::trace!(%error, "process group is gone already");
    }
}

/// Every process that carries the mark, however far it went from its parents.
#[cfg(target_os = "linux")]
fn find_marked_processes(mark: &str) -> Vec<Pid> {
    let carries = |environment: &[u8]| environment.split(|byte| *byte == 0).any(|entry| entry == mark.as_bytes());
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = processes.filter_map(|process| process.file_name().to_str()?.parse::<i32>().ok());
    numbers
        .filter(|number| std::fs::read(format!("/proc/{number}/environ")).is_ok_and(|bytes| carries(&bytes)))
        .filter_map(Pid::from_raw)
        .collect()
}

#[cfg(not(target_os = "linux"))]
fn find_marked_processes(_mark: &str) -> Vec<Pid> {
    vec![]
}

fn lock_process_leader(leader: &Leader) -> std::sync::MutexGuard<'_, Option<Pid>> {
    leader.lock().unwrap_or_else(PoisonError::into_inner)
}
