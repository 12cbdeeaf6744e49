//! What the writer takes together, and how it waits for it.

use std::thread;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TryRecvError;
use tokio::time::Instant;

use super::shared::sqlite_entries_bytes;
use super::writer::{SqlitePending, SqliteWriterJob};

/// A commit takes at most about this much of what waits.
const BATCH_ENTRIES: usize = 4096;
const BATCH_BYTES: usize = 256 * 1024;

/// A busy file is tried again after this time; jobs that come meanwhile are looked for so often.
const BUSY_RETRY: Duration = Duration::from_millis(300);
const BUSY_POLL: Duration = Duration::from_millis(10);

/// The next job, or none after a while: what found the file busy is tried again then.
pub(super) fn poll_writer_jobs(jobs: &mut mpsc::Receiver<SqliteWriterJob>) -> Option<SqliteWriterJob> {
    let deadline = Instant::now() + BUSY_RETRY;
    loop {
        match jobs.try_recv() {
            Ok(job) => return Some(job),
            Err(TryRecvError::Disconnected) => return None,
            Err(TryRecvError::Empty) if Instant::now() >= deadline => return None,
            Err(TryRecvError::Empty) => thread::sleep(BUSY_POLL),
        }
    }
}

/// Until nobody else comes whose turn it is now.
pub(super) fn wait_for_others(jobs: &mpsc::Receiver<SqliteWriterJob>) {
    let mut waiting = jobs.len();
    loop {
        thread::yield_now();
        match jobs.len() {
            same if same == waiting => return,
            more => waiting = more,
        }
    }
}

/// Appends that wait together.
#[derive(Default)]
pub(super) struct WriterBatch {
    pub(super) pending: Vec<SqlitePending>,
    entries: usize,
    bytes: usize,
}

impl WriterBatch {
    pub(super) fn add_append(&mut self, pending: SqlitePending) {
        self.entries += pending.append.entries.len();
        self.bytes += sqlite_entries_bytes(&pending.append.entries);
        self.pending.push(pending);
    }

    pub(super) fn is_full(&self) -> bool {
        self.entries >= BATCH_ENTRIES || self.bytes >= BATCH_BYTES
    }

    pub(super) fn take_appends(&mut self) -> Vec<SqlitePending> {
        std::mem::take(self).pending
    }
}
