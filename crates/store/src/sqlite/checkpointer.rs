//! Checkpoints the write-ahead log on a connection of its own, so that the writer need not wait for the disk.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use rusqlite::Connection;

use super::open::open_connection;

/// Checkpoint beside the writer after about so many bytes.
const CHECKPOINT_BYTES: usize = 8 << 20;
/// If that does not keep up, the writer stops for one: pages in the write-ahead log.
const MAX_WAL_FRAMES: u64 = 16_384;

/// A second connection that moves pages from the write-ahead log into the database, on a thread of its own.
pub(super) struct Checkpointer {
    path: PathBuf,
    /// Started when it is first needed.
    thread: Option<CheckpointThread>,
    frames: Arc<AtomicU64>,
    written: usize,
}

struct CheckpointThread {
    wake: SyncSender<()>,
    thread: JoinHandle<()>,
}

impl Checkpointer {
    pub(super) fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), thread: None, frames: Arc::default(), written: 0 }
    }

    pub(super) fn note_written(&mut self, bytes: usize) {
        self.written += bytes;
    }

    /// Between two commits: wakes the checkpointer. If it fell behind, the writer itself makes a checkpoint, so that the
    /// write-ahead log stays bounded.
    pub(super) fn wake_or_checkpoint(&mut self, connection: &Connection) {
        if self.written > CHECKPOINT_BYTES && self.wake_thread() {
            self.written = 0;
        }
        if self.frames.load(Ordering::Relaxed) > MAX_WAL_FRAMES {
            let frames = checkpoint_wal(connection);
            self.frames.store(0, Ordering::Relaxed);
            tracing::debug!(?frames, "write-ahead log was long");
        }
    }

    /// False if it was woken before and has not begun.
    fn wake_thread(&mut self) -> bool {
        if self.thread.is_none() {
            let started = CheckpointThread::start(self.path.clone(), Arc::clone(&self.frames));
            self.thread = started.inspect_err(|error| tracing::warn!(%error, "no checkpoint")).ok();
        }
        self.thread.as_ref().is_some_and(|thread| thread.wake.try_send(()).is_ok())
    }

    /// Lets a running checkpoint end.
    pub(super) fn finish_checkpoints(self) {
        let Some(CheckpointThread { wake, thread }) = self.thread else { return };
        drop(wake);
        if thread.join().is_err() {
            tracing::warn!("checkpoint thread failed");
        }
    }
}

impl CheckpointThread {
    fn start(path: PathBuf, frames: Arc<AtomicU64>) -> std::io::Result<Self> {
        let (wake, woken) = sync_channel(1);
        let builder = thread::Builder::new().name("checkpoints".to_owned());
        let thread = builder.spawn(move || run_checkpoints(&path, &woken, &frames))?;
        Ok(Self { wake, thread })
    }
}

fn run_checkpoints(path: &Path, woken: &Receiver<()>, frames: &AtomicU64) {
    let mut connection: Option<Connection> = None;
    while woken.recv().is_ok() {
        if connection.is_none() {
            connection = open_connection(path).inspect_err(|error| tracing::warn!(%error, "no checkpoint")).ok();
        }
        if let Some(count) = connection.as_ref().and_then(checkpoint_wal) {
            frames.store(count, Ordering::Relaxed);
        }
    }
}

/// Moves what can be moved without waiting for anybody; gives the length of the write-ahead log in pages.
fn checkpoint_wal(connection: &Connection) -> Option<u64> {
    let frames = connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |row| row.get::<_, i64>(1));
    let frames = frames.inspect_err(|error| tracing::warn!(%error, "checkpoint failed")).ok()?;
    u64::try_from(frames).ok()
}
