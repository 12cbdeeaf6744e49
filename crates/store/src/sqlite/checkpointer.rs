//! Checkpoints the write-ahead log on a connection of its own, so that the writer need not wait for the disk.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use sqlx::sqlite::SqliteConnection;
use sqlx::{ConnectOptions, Connection, Row};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::open::connect_options;

/// Checkpoint beside the writer after about so many bytes.
const CHECKPOINT_BYTES: usize = 8 << 20;
/// If that does not keep up, the writer stops for one: pages in the write-ahead log.
const MAX_WAL_FRAMES: u64 = 16_384;

/// A second connection that moves pages from the write-ahead log into the database.
pub(super) struct Checkpointer {
    wake: mpsc::Sender<()>,
    task: JoinHandle<()>,
    frames: Arc<AtomicU64>,
    written: usize,
}

impl Checkpointer {
    pub(super) fn start(path: &Path) -> Self {
        let options = connect_options(path).pragma("wal_autocheckpoint", "0");
        let (wake, woken) = mpsc::channel(1);
        let frames = Arc::new(AtomicU64::new(0));
        let task = tokio::spawn(run_checkpoints(options, woken, Arc::clone(&frames)));
        Self { wake, task, frames, written: 0 }
    }

    pub(super) fn note_written(&mut self, bytes: usize) {
        self.written += bytes;
    }

    /// Between two commits: wakes the checkpointer. If it fell behind, the writer itself makes a checkpoint, so that the
    /// write-ahead log stays bounded.
    pub(super) async fn wake_or_checkpoint(&mut self, connection: &mut SqliteConnection) {
        if self.written > CHECKPOINT_BYTES && self.wake.try_send(()).is_ok() {
            self.written = 0;
        }
        if self.frames.load(Ordering::Relaxed) > MAX_WAL_FRAMES {
            let frames = checkpoint_wal(connection).await;
            self.frames.store(0, Ordering::Relaxed);
            tracing::debug!(?frames, "write-ahead log was long");
        }
    }

    /// Lets a running checkpoint end.
    pub(super) async fn finish_checkpoints(self) {
        drop(self.wake);
        if let Err(error) = self.task.await {
            tracing::warn!(%error, "checkpoint task failed");
        }
    }
}

/// The connection is opened when it is first needed.
async fn run_checkpoints(
    options: sqlx::sqlite::SqliteConnectOptions,
    mut woken: mpsc::Receiver<()>,
    frames: Arc<AtomicU64>,
) {
    let mut connection: Option<SqliteConnection> = None;
    while woken.recv().await.is_some() {
        if connection.is_none() {
            connection = options.connect().await.inspect_err(|error| tracing::warn!(%error, "no checkpoint")).ok();
        }
        if let Some(connection) = &mut connection
            && let Some(count) = checkpoint_wal(connection).await
        {
            frames.store(count, Ordering::Relaxed);
        }
    }
    if let Some(connection) = connection
        && let Err(error) = connection.close().await
    {
        tracing::warn!(%error, "checkpoint connection was not closed cleanly");
    }
}

/// Moves what can be moved without waiting for anybody; gives the length of the write-ahead log in pages.
async fn checkpoint_wal(connection: &mut SqliteConnection) -> Option<u64> {
    let row = sqlx::query("PRAGMA wal_checkpoint(PASSIVE)").persistent(false).fetch_one(connection).await;
    let row = row.inspect_err(|error| tracing::warn!(%error, "checkpoint failed")).ok()?;
    u64::try_from(row.get::<i64, _>(1)).ok()
}
