//! What the writer and the store's callers both see.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gander_domain::{Entry, Event};
use tokio::time::Instant;

use super::failure::Failure;
use super::writer::Pending;
use crate::log::feed::Feeds;
use crate::log::{Append, Committed, Stats, StoreError, Sync};

#[derive(Default)]
pub(super) struct Shared {
    pub(super) feeds: Arc<Feeds>,
    pub(super) counters: Counters,
    pub(super) faults: Faults,
    pub(super) incarnation: AtomicU32,
    mode: Mutex<Mode>,
    last_commit: Mutex<Option<Instant>>,
}

/// Whether writing is allowed.
#[derive(Clone, Default)]
enum Mode {
    #[default]
    Writable,
    Full(String),
    Broken(String),
}

impl Shared {
    pub(super) fn new(incarnation: u32, faults: Faults) -> Self {
        Self { incarnation: AtomicU32::new(incarnation), faults, ..Self::default() }
    }

    pub(super) fn writable(&self) -> Result<(), StoreError> {
        match &*lock(&self.mode) {
            Mode::Writable => Ok(()),
            Mode::Full(reason) | Mode::Broken(reason) => Err(StoreError::ReadOnly(reason.clone())),
        }
    }

    /// Whether it makes sense to try a write.
    pub(super) fn probable(&self) -> Result<(), StoreError> {
        match &*lock(&self.mode) {
            Mode::Writable | Mode::Full(_) => Ok(()),
            Mode::Broken(reason) => Err(StoreError::ReadOnly(reason.clone())),
        }
    }

    pub(super) fn recovered(&self) {
        *lock(&self.mode) = Mode::Writable;
    }

    /// A disk that failed once is not written to again.
    pub(super) fn note(&self, failure: &Failure) {
        let mode = match failure {
            Failure::Full(reason) => Mode::Full(reason.clone()),
            Failure::Disk(reason) => Mode::Broken(reason.clone()),
            Failure::Constraint(_) | Failure::Other(_) => return,
        };
        tracing::error!(?failure, "log is read-only from now on");
        *lock(&self.mode) = mode;
    }

    pub(super) fn commit_made(&self, sync: Sync) {
        self.counters.commits.fetch_add(1, Ordering::Relaxed);
        self.counters.barriers.fetch_add(u64::from(sync == Sync::Barrier), Ordering::Relaxed);
        *lock(&self.last_commit) = Some(Instant::now());
    }

    pub(super) fn last_commit(&self) -> Option<Instant> {
        *lock(&self.last_commit)
    }

    /// Shows what was committed, then tells who sent it.
    pub(super) fn committed(&self, pending: Pending) {
        #[cfg(not(bug = "publish_before_commit"))]
        self.publish(pending.append, pending.size);
        drop(pending.reply.send(Ok(Committed { head: pending.head })));
    }

    /// Tells who sent it that it is not stored; and who follows that it will not come, if nothing can be stored.
    pub(super) fn refuse(&self, pending: Pending, error: StoreError) {
        if let StoreError::ReadOnly(reason) = &error {
            self.feeds.fail(pending.append.session, reason);
        }
        drop(pending.reply.send(Err(error)));
    }

    pub(super) fn publish(&self, append: Append, size: usize) {
        self.feeds.publish(append.session, seeded(append.entries), size);
    }
}

#[cfg(not(any(bug = "duplicate_entry", bug = "reorder")))]
fn seeded(entries: Vec<Entry>) -> Vec<Entry> {
    entries
}

#[cfg(bug = "duplicate_entry")]
fn seeded(mut entries: Vec<Entry>) -> Vec<Entry> {
    entries.extend(entries.last().cloned());
    entries
}

#[cfg(bug = "reorder")]
fn seeded(mut entries: Vec<Entry>) -> Vec<Entry> {
    // Not the first one: a batch that does not follow sends its readers to the log.
    if entries.len() > 3 {
        entries.swap(1, 2);
    }
    entries
}

/// About how much entries are, without writing them out.
pub(super) fn weight(entries: &[Entry]) -> usize {
    let of = |entry: &Entry| if let Event::PartDelta { text, .. } = &entry.event { text.len() } else { 512 };
    entries.iter().map(of).sum()
}

/// What was done so far.
#[derive(Default)]
pub(super) struct Counters {
    commits: AtomicU64,
    barriers: AtomicU64,
    rows: AtomicU64,
    entries: AtomicU64,
    deltas: AtomicU64,
}

impl Counters {
    pub(super) fn count(&self, batch: &[Pending], rows: u64) {
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

    pub(super) fn check(&self) -> Result<(), sqlx::Error> {
        if self.broken.load(Ordering::Relaxed) {
            return Err(sqlx::Error::Io(std::io::Error::other("disk i/o error (injected)")));
        }
        Ok(())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
