//! A client's way to the one server of its data directory: attach_to_server, or start it and attach.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use gander_services::paths::{DirectoryLock, Paths, PathsError};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use tokio::io::BufReader;
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};

use super::handshake::{Hello, HelloError, Want, Welcome};
use super::spawn::Spawned;
use crate::config::Config;

/// How long a server may take to answer for the first time.
const START: Duration = Duration::from_secs(10);
/// How long a server that has given up its lock may take to be gone.
const EXIT: Duration = Duration::from_secs(1);
/// How long an older server may take to end.
const REPLACE: Duration = Duration::from_secs(35);
const PAUSE: Duration = Duration::from_millis(5);

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// The new server ended at once.
    #[error("the background server did not start ({status}), its log {log} ends with:\n{tail}")]
    Died {
        /// How it ended.
        status: String,
        /// Where it logs.
        log: PathBuf,
        /// What it said last.
        tail: String,
    },
    /// No answer in time.
    #[error(
        "the server of this data directory does not answer (`gander server restart` replaces it), its log {log} ends with:\n{tail}"
    )]
    TimedOut {
        /// Where it logs.
        log: PathBuf,
        /// What it said last.
        tail: String,
    },
    /// It was asked to end and did not.
    #[error("the server does not stop; to kill it: {0}")]
    StillRuns(String),
    /// It answers, but not what was wanted.
    #[error("the server refused: {0}")]
    Refused(String),
    /// The handshake failed.
    #[error("no handshake with the server: {0}")]
    Hello(#[from] HelloError),
    /// A file.
    #[error("cannot use the file, {reason}: {path}")]
    File {
        /// Which file.
        path: PathBuf,
        /// What the system says.
        reason: io::Error,
    },
    /// The data directory.
    #[error(transparent)]
    Paths(#[from] PathsError),
}

/// A connection to a server, after the handshake.
#[derive(Debug)]
pub struct Attached {
    /// What the server says.
    pub reader: BufReader<OwnedReadHalf>,
    /// What it is told.
    pub writer: OwnedWriteHalf,
    /// How it introduced itself.
    pub welcome: Welcome,
}

/// Connects to the running server, if there is one.
pub async fn connect_to_attach(paths: &Paths, hello: &Hello) -> Result<Option<Attached>, AttachError> {
    let path = paths.socket_file();
    let stream = match UnixStream::connect(&path).await {
        Ok(stream) => stream,
        Err(error) if is_nobody_to_attach_to(&error) => return Ok(None),
        Err(reason) => return Err(AttachError::File { path, reason }),
    };
    let (reader, mut writer) = stream.into_split();
    let mut reader = BufReader::with_capacity(64 * 1024, reader);
    let welcome = match hello.write(&mut writer).await {
        Ok(()) => Welcome::read(&mut reader).await,
        Err(error) => Err(error),
    };
    match welcome {
        Ok(Welcome { refused: Some(reason), .. }) => Err(AttachError::Refused(reason)),
        Ok(welcome) => Ok(Some(Attached { reader, writer, welcome })),
        // It was about to end.
        Err(HelloError::Gone) => Ok(None),
        Err(HelloError::Io(error)) if is_nobody_to_attach_to(&error) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Connects to the server of the data directory; starts one in the background if none runs, and replaces one
/// that was started in the background by another build.
pub async fn attach_to_server(config: &Config, hello: &Hello) -> Result<Attached, AttachError> {
    let paths = &config.paths;
    paths.create_folders()?;
    let mut deadline = Instant::now() + START;
    while Instant::now() < deadline {
        if let Some(attached) = connect_to_attach(paths, hello).await? {
            if attached.welcome.version == crate::VERSION || !attached.welcome.background {
                return Ok(attached);
            }
            drop(attached);
            stop_attached_server(paths).await?;
            deadline = Instant::now() + START;
        } else if let Some(_starting) = try_attach_lock(&paths.start_lock())? {
            // Somebody may have started it while we waited for the lock.
            match connect_to_attach(paths, hello).await? {
                Some(attached) if attached.welcome.version == crate::VERSION => return Ok(attached),
                Some(_) => {}
                None => return start_server_and_attach(config, hello, deadline).await,
            }
        } else {
            tokio::time::sleep(PAUSE).await;
        }
    }
    Err(attach_timeout_error(paths))
}

async fn start_server_and_attach(config: &Config, hello: &Hello, deadline: Instant) -> Result<Attached, AttachError> {
    let paths = &config.paths;
    let log = paths.server_log();
    let failed = |reason| AttachError::File { path: log.clone(), reason };
    let mut spawned = Spawned::start(config).map_err(failed)?;
    while Instant::now() < deadline {
        if let Some(attached) = connect_to_attach(paths, hello).await? {
            spawned.detach();
            return Ok(attached);
        }
        if let Some(status) = spawned.exit_status().map_err(failed)? {
            return Err(AttachError::Died {
                status: status.to_string(),
                tail: gander_services::paths::last_lines_of_file(&log, 12),
                log,
            });
        }
        tokio::time::sleep(PAUSE).await;
    }
    Err(attach_timeout_error(paths))
}

/// Asks the running server to end and waits until it has. Gives its process; none if no server runs.
///
/// One that does not answer is sent a signal, by the process that it noted in its lock: an answer is not what ends it.
pub async fn stop_attached_server(paths: &Paths) -> Result<Option<u32>, AttachError> {
    let holder = || DirectoryLock::holder_pid(&paths.server_lock());
    let failed = |reason| AttachError::File { path: paths.server_lock(), reason };
    if !paths.server_lock().exists() || try_attach_lock(&paths.server_lock())?.is_some() {
        return Ok(None);
    }
    let noted = holder().map_err(failed)?;
    let asked = tokio::time::timeout(START, connect_to_attach(paths, &Hello::new(Want::Drain))).await;
    let pid = match asked {
        Ok(Ok(Some(attached))) => Some(attached.welcome.pid),
        Ok(Ok(None) | Err(_)) | Err(_) => {
            let pid = noted.and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?));
            pid.map(|pid| kill_process(pid, Signal::TERM)).transpose().map_err(|error| failed(error.into()))?;
            noted
        }
    };
    let deadline = Instant::now() + REPLACE;
    while Instant::now() < deadline {
        if try_attach_lock(&paths.server_lock())?.is_some() {
            wait_for_server_exit(pid).await;
            return Ok(pid);
        }
        tokio::time::sleep(PAUSE).await;
    }
    Err(AttachError::StillRuns(pid.map_or_else(|| "unknown process".to_owned(), |pid| format!("kill -9 {pid}"))))
}

/// The lock is free a moment before the process is gone. Bounded: one that nobody waits for never goes entirely.
async fn wait_for_server_exit(pid: Option<u32>) {
    let Some(pid) = pid.and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?)) else { return };
    let deadline = Instant::now() + EXIT;
    while test_kill_process(pid).is_ok() && Instant::now() < deadline {
        tokio::time::sleep(PAUSE).await;
    }
}

fn try_attach_lock(path: &Path) -> Result<Option<DirectoryLock>, AttachError> {
    DirectoryLock::try_take(path).map_err(|reason| AttachError::File { path: path.to_owned(), reason })
}

fn attach_timeout_error(paths: &Paths) -> AttachError {
    let log = paths.server_log();
    AttachError::TimedOut { tail: gander_services::paths::last_lines_of_file(&log, 12), log }
}

fn is_nobody_to_attach_to(error: &io::Error) -> bool {
    use io::ErrorKind::{BrokenPipe, ConnectionRefused, ConnectionReset, NotFound};
    [NotFound, ConnectionRefused, ConnectionReset, BrokenPipe].contains(&error.kind())
}
