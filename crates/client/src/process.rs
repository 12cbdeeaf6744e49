//! The process of an agent: started with piped stdio, watched, and stopped for certain.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, Command};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::Link;

/// How long an agent may take to end after it was asked to; then it is killed.
pub const STOP_TIMEOUT: Duration = Duration::from_secs(5);
/// How much of what an agent wrote to stderr is kept.
const STDERR_TAIL_BYTES: usize = 8 * 1024;
/// How long the rest of stderr may take once the agent has ended.
const STDERR_TIMEOUT: Duration = Duration::from_millis(200);

/// How an agent's process ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessExit {
    /// Its status, unless even that could not be found out.
    pub status: Option<ExitStatus>,
    /// The end of what it wrote to stderr.
    pub stderr: String,
}

/// The process of an agent. Dropping it stops it.
#[derive(Debug)]
pub(crate) struct AgentProcess {
    stop: CancellationToken,
    ended: watch::Receiver<Option<Arc<ProcessExit>>>,
    _stop: DropGuard,
}

type StderrTail = Arc<Mutex<VecDeque<u8>>>;

impl AgentProcess {
    /// Starts it; the link is its stdin and stdout.
    pub(crate) fn start(mut command: Command) -> io::Result<(Self, Link)> {
        // A group of its own: a wrapper script is stopped together with what it started, and a ctrl-c is not for it.
        command.process_group(0).kill_on_drop(true);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        let piped = || io::Error::other("stdio is not piped");
        let (stdin, stdout) = (child.stdin.take().ok_or_else(piped)?, child.stdout.take().ok_or_else(piped)?);
        let tail = StderrTail::default();
        let listener = tokio::spawn(collect_process_stderr(child.stderr.take().ok_or_else(piped)?, Arc::clone(&tail)));
        let stop = CancellationToken::new();
        let (told, ended) = watch::channel(None);
        tokio::spawn(watch_process(child, stop.clone(), (tail, listener), told));
        let guard = stop.clone().drop_guard();
        Ok((Self { stop, ended, _stop: guard }, Link::from_line_streams(stdout, stdin)))
    }

    /// Waits until it has ended.
    pub(crate) fn wait_exit(&self) -> impl Future<Output = Arc<ProcessExit>> + Send + 'static {
        let mut ended = self.ended.clone();
        async move {
            let ended = ended.wait_for(Option::is_some).await.ok().and_then(|ended| ended.clone());
            ended.unwrap_or_else(|| Arc::new(ProcessExit { status: None, stderr: String::new() }))
        }
    }

    /// Asks it to end, kills it if it does not, and says how it ended.
    pub(crate) async fn stop(&self) -> Arc<ProcessExit> {
        self.stop.cancel();
        self.wait_exit().await
    }
}

impl fmt::Display for ProcessExit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.status {
            Some(status) => status.fmt(f)?,
            None => f.write_str("ended in an unknown way")?,
        }
        match self.stderr.trim() {
            "" => Ok(()),
            words => write!(f, ", its last words: {words}"),
        }
    }
}

async fn watch_process(
    mut child: Child,
    stop: CancellationToken,
    (tail, listener): (StderrTail, JoinHandle<()>),
    told: watch::Sender<Option<Arc<ProcessExit>>>,
) {
    let group = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
    let leftovers = GroupKill(group);
    let waited = tokio::select! {
        waited = child.wait() => waited,
        () = stop.cancelled() => stop_process(&mut child, group).await,
    };
    drop(leftovers);
    let abort = listener.abort_handle();
    if tokio::time::timeout(STDERR_TIMEOUT, listener).await.is_err() {
        abort.abort();
    }
    let words: Vec<u8> = tail.lock().unwrap_or_else(PoisonError::into_inner).iter().copied().collect();
    let stderr = String::from_utf8_lossy(&words).into_owned();
    told.send_replace(Some(Arc::new(ProcessExit { status: waited.ok(), stderr })));
}

/// Kills what a process started and left behind: it would keep our ends of the pipes open. Also when the task that
/// watches the process is dropped, as it is when a server ends: `kill_on_drop` ends the process alone.
struct GroupKill(Option<Pid>);

impl Drop for GroupKill {
    fn drop(&mut self) {
        self.0.map(|group| kill_process_group(group, Signal::KILL).ok());
    }
}

async fn stop_process(child: &mut Child, group: Option<Pid>) -> io::Result<ExitStatus> {
    let signal = |signal| group.map(|group| kill_process_group(group, signal).ok());
    signal(Signal::TERM);
    match tokio::time::timeout(STOP_TIMEOUT, child.wait()).await {
        Ok(waited) => waited,
        Err(_) => {
            signal(Signal::KILL);
            child.wait().await
        }
    }
}

/// Keeps the end of what is read.
async fn collect_process_stderr(mut stderr: impl AsyncRead + Unpin, tail: StderrTail) {
    let mut chunk = [0; 4096];
    while let Ok(length @ 1..) = stderr.read(&mut chunk).await {
        tracing::debug!(text = %String::from_utf8_lossy(&chunk[..length]).trim_end(), "the agent says on stderr");
        let mut tail = tail.lock().unwrap_or_else(PoisonError::into_inner);
        tail.extend(&chunk[..length]);
        let surplus = tail.len().saturating_sub(STDERR_TAIL_BYTES);
        tail.drain(..surplus);
    }
}
