//! What the writer and the store's callers both see.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use gander_domain::Entry;
use tokio::time::Instant;

use super::failure::SqliteFailure;
use super::writer::SqlitePending;
use crate::feed::Feeds;
use crate::{Append, Committed, Durability, Stats, StoreError};

#[derive(Default)]
pub(super) struct SqliteShared {
    pub(super) feeds: Arc<Feeds>,
    pub(super) counters: SqliteCounters,
    pub(super) faults: Faults,
    pub(super) incarnation: AtomicU32,
    /// Something was deleted of which the file or the write-ahead log still holds pages.
    pub(super) reclaim_due: AtomicBool,
    mode: Mutex<Mode>,
    last_commit: Mutex<Option<Instant>>,
    /// Since when the writer is at what it does now.
    working: Mutex<Option<Instant>>,
}

/// After somebody could not write, others are told so at once for so long.
const BUSY_TTL: Duration = Duration::from_millis(250);

/// A write that takes longer means that the disk does not keep up.
const SLOW_WRITE: Duration = Duration::from_secs(1);

/// Whether writing is allowed.
#[derive(Clone, Default)]
enum Mode {
    #[default]
    Writable,
    /// Nobody could write then: for a moment nobody else tries.
    Busy(Instant, String),
    Full(String),
    Broken(String),
}

impl SqliteShared {
    pub(super) fn new(incarnation: u32, faults: Faults) -> Self {
        Self { incarnation: AtomicU32::new(incarnation), faults, ..Self::default() }
    }

    pub(super) fn check_writable(&self) -> Result<(), StoreError> {
        match &*lock_sqlite_shared(&self.mode) {
            Mode::Busy(since, reason) if since.elapsed() < BUSY_TTL => Err(StoreError::Busy(reason.clone())),
            Mode::Writable | Mode::Busy(..) => Ok(()),
            Mode::Full(reason) | Mode::Broken(reason) => Err(StoreError::ReadOnly(reason.clone())),
        }
    }

    /// Whether it makes sense to try a write.
    pub(super) fn check_probe_allowed(&self) -> Result<(), StoreError> {
        match &*lock_sqlite_shared(&self.mode) {
            Mode::Busy(since, reason) if since.elapsed() < BUSY_TTL => Err(StoreError::Busy(reason.clone())),
            Mode::Writable | Mode::Full(_) | Mode::Busy(..) => Ok(()),
            Mode::Broken(reason) => Err(StoreError::ReadOnly(reason.clone())),
        }
    }

    pub(super) fn set_writable(&self) {
        *lock_sqlite_shared(&self.mode) = Mode::Writable;
    }

    /// True if the last try to write found the file busy.
    pub(super) fn is_busy(&self) -> bool {
        matches!(&*lock_sqlite_shared(&self.mode), Mode::Busy(..))
    }

    /// The writer begins something.
    pub(super) fn note_working(&self) {
        *lock_sqlite_shared(&self.working) = Some(Instant::now());
    }

    /// The writer has nothing to do.
    pub(super) fn note_idle(&self) {
        *lock_sqlite_shared(&self.working) = None;
    }

    /// Nothing more is given to a writer that has been at one thing for too long.
    pub(super) fn check_keeping_up(&self) -> Result<(), StoreError> {
        match *lock_sqlite_shared(&self.working) {
            Some(since) if since.elapsed() >= SLOW_WRITE => {
                Err(StoreError::Busy("the disk does not keep up".to_owned()))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// A disk that failed once is not written to again.
    pub(super) fn note_failure(&self, failure: &SqliteFailure) {
        let mode = match failure {
            SqliteFailure::Full(reason) => Mode::Full(reason.clone()),
            SqliteFailure::Disk(reason) => Mode::Broken(reason.clone()),
            SqliteFailure::Busy(reason) => {
                tracing::warn!(reason, "log is busy");
                *lock_sqlite_shared(&self.mode) = Mode::Busy(Instant::now(), reason.clone());
                return;
            }
            SqliteFailure::Constraint(_) | SqliteFailure::Other(_) => return,
        };
        tracing::error!(?failure, "log is read-only from now on");
        *lock_sqlite_shared(&self.mode) = mode;
    }

    pub(super) fn note_commit(&self, sync: Durability) {
        self.counters.commits.fetch_add(1, Ordering::Relaxed);
        self.counters.barriers.fetch_add(u64::from(sync == Durability::Barrier), Ordering::Relaxed);
        *lock_sqlite_shared(&self.last_commit) = Some(Instant::now());
        let mode = &mut *lock_sqlite_shared(&self.mode);
        if matches!(mode, Mode::Busy(..)) {
            *mode = Mode::Writable;
        }
    }

    pub(super) fn last_commit(&self) -> Option<Instant> {
        *lock_sqlite_shared(&self.last_commit)
    }

    /// Shows what was committed, then tells who sent it.
    pub(super) fn publish_and_reply(&self, pending: SqlitePending) {
        #[cfg(not(bug = "publish_before_commit"))]
        self.publish_committed(pending.append, pending.size);
        drop(pending.reply.send(Ok(Committed { head: pending.head })));
    }

    /// Tells who sent it that it is not stored; and who follows that it will not come, if nothing can be stored.
    pub(super) fn reply_refused(&self, pending: SqlitePending, error: StoreError) {
        if let StoreError::ReadOnly(reason) = &error {
            self.feeds.fail_session(pending.append.session, reason);
        }
        drop(pending.reply.send(Err(error)));
    }

    pub(super) fn publish_committed(&self, append: Append, size: usize) {
        let Append { session, owner, entries, .. } = append;
        self.feeds.publish(session, owner.as_ref(), with_seeded_sqlite_bug(entries), size);
    }
}

#[cfg(not(any(bug = "duplicate_entry", bug = "reorder")))]
fn with_seeded_sqlite_bug(entries: Vec<Entry>) -> Vec<Entry> {
    entries
}

#[cfg(bug = "duplicate_entry")]
fn with_seeded_sqlite_bug(mut entries: Vec<Entry>) -> Vec<Entry> {
    entries.extend(entries.last().cloned());
    entries
}

#[cfg(bug = "reorder")]
fn with_seeded_sqlite_bug(mut entries: Vec<Entry>) -> Vec<Entry> {
    // Not the first one: a batch that does not follow sends its readers to the log.
    if entries.len() > 3 {
        entries.swap(1, 2);
    }
    entries
}

/// About how much entries are, without writing them out.
pub(super) fn sqlite_entries_bytes(entries: &[Entry]) -> usize {
    entries.iter().map(|entry| entry.approximate_bytes()).sum()
}

/// What was done so far.
#[derive(Default)]
pub(super) struct SqliteCounters {
    commits: AtomicU64,
    barriers: AtomicU64,
    rows: AtomicU64,
    entries: AtomicU64,
    deltas: AtomicU64,
}

impl SqliteCounters {
    pub(super) fn add_batch(&self, batch: &[SqlitePending], rows: u64) {
        let entries = || batch.iter().flat_map(|pending| &pending.append.entries);
        let deltas = entries().filter(|entry| entry.event.is_delta()).count();
        self.rows.fetch_add(rows, Ordering::Relaxed);
        self.entries.fetch_add(entries().count() as u64, Ordering::Relaxed);
        self.deltas.fetch_add(deltas as u64, Ordering::Relaxed);
    }

    pub(super) fn stats(&self) -> Stats {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Stats {
            commits: read(&self.commits),
            barriers: read(&self.barriers),
            rows: read(&self.rows),
            entries: read(&self.entries),
            deltas: read(&self.deltas),
        }
    }
}

/// Lets a test break the disk.
#[derive(Clone, Default)]
pub struct Faults {
    broken: Arc<AtomicBool>,
}

impl Faults {
    /// From now on every commit fails as if the disk did.
    pub fn break_disk(&self) {
        self.broken.store(true, Ordering::Relaxed);
    }

    pub(super) fn fail_if_seeded(&self) -> Result<(), SqliteFailure> {
        match self.broken.load(Ordering::Relaxed) {
            true => Err(SqliteFailure::Disk("disk i/o error (injected)".to_owned())),
            false => Ok(()),
        }
    }
}

fn lock_sqlite_shared<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
