//! What the writer and the store's callers both see.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use gander_domain::{Entry, Seq};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::hints::HintMessage;
use super::writer::PostgresPending;
use crate::feed::Feeds;
use crate::{Append, BusyTimeout, Committed, Durability, HintBox, Stats, StoreError};

/// A write that takes longer means that the database does not keep up.
const SLOW_WRITE: Duration = Duration::from_secs(1);

/// Appends that wait for the database may hold so much; the next one is refused.
const MAX_WAITING_BYTES: usize = 64 << 20;

#[derive(Default)]
pub(super) struct PostgresShared {
    pub(super) feeds: Arc<Feeds>,
    pub(super) closed: AtomicBool,
    pub(super) incarnation: AtomicU32,
    /// What other nodes hint at.
    pub(super) hints: HintBox,
    /// Hints for other nodes, if there are any.
    pub(super) hint_sender: OnceLock<mpsc::Sender<HintMessage>>,
    waiting_bytes: AtomicUsize,
    counters: PostgresCounters,
    last_commit: Mutex<Option<Instant>>,
    /// Since when the writer is at what it does now.
    working: Mutex<Option<Instant>>,
    /// Why there is no connection, if there is none.
    away: Mutex<Option<String>>,
}

#[derive(Default)]
struct PostgresCounters {
    commits: AtomicU64,
    barriers: AtomicU64,
    rows: AtomicU64,
    entries: AtomicU64,
    deltas: AtomicU64,
}

impl PostgresShared {
    /// Lets an append wait for the writer, unless that would only fill the memory while the database is away.
    pub(super) fn admit(&self, append: &Append) -> Result<usize, StoreError> {
        if append.busy_timeout == BusyTimeout::Short {
            self.check_keeping_up()?;
        }
        let bytes = postgres_entries_bytes(&append.entries);
        if self.waiting_bytes.load(Ordering::Relaxed) > MAX_WAITING_BYTES {
            return Err(StoreError::Busy("too much waits for PostgreSQL".to_owned()));
        }
        self.waiting_bytes.fetch_add(bytes, Ordering::Relaxed);
        Ok(bytes)
    }

    /// Nothing more is given to a writer that has no connection or has been at one thing for too long.
    pub(super) fn check_keeping_up(&self) -> Result<(), StoreError> {
        if let Some(since) = *lock_postgres_shared(&self.working)
            && since.elapsed() >= SLOW_WRITE
        {
            let away = lock_postgres_shared(&self.away).clone();
            return Err(StoreError::Busy(away.unwrap_or_else(|| "PostgreSQL does not keep up".to_owned())));
        }
        Ok(())
    }

    pub(super) fn note_working(&self) {
        lock_postgres_shared(&self.working).get_or_insert_with(Instant::now);
    }

    pub(super) fn note_idle(&self) {
        *lock_postgres_shared(&self.working) = None;
    }

    /// The connection is gone, and why.
    pub(super) fn note_away(&self, reason: &str) {
        let before = lock_postgres_shared(&self.away).replace(reason.to_owned());
        if before.is_none() {
            tracing::warn!(reason, "no connection to PostgreSQL: nothing can be stored until it is back");
        }
    }

    pub(super) fn note_connected(&self) {
        if lock_postgres_shared(&self.away).take().is_some() {
            tracing::info!("connected to PostgreSQL again");
        }
    }

    pub(super) fn away_reason(&self) -> Option<String> {
        lock_postgres_shared(&self.away).clone()
    }

    pub(super) fn note_commit(&self, sync: Durability) {
        self.counters.commits.fetch_add(1, Ordering::Relaxed);
        self.counters.barriers.fetch_add(u64::from(sync == Durability::Barrier), Ordering::Relaxed);
        *lock_postgres_shared(&self.last_commit) = Some(Instant::now());
    }

    pub(super) fn count_rows(&self, rows: u64) {
        self.counters.rows.fetch_add(rows, Ordering::Relaxed);
    }

    pub(super) fn last_commit(&self) -> Option<Instant> {
        *lock_postgres_shared(&self.last_commit)
    }

    /// Shows what was committed, then tells who sent it.
    pub(super) fn publish_and_reply(&self, pending: PostgresPending, head: Seq) {
        self.release_bytes(&pending);
        let PostgresPending { append: Append { session, owner, entries, .. }, size, reply, .. } = pending;
        let deltas = entries.iter().filter(|entry| entry.event.is_delta()).count();
        self.counters.entries.fetch_add(entries.len() as u64, Ordering::Relaxed);
        self.counters.deltas.fetch_add(deltas as u64, Ordering::Relaxed);
        let head = entries.last().map_or(head, |entry| entry.seq);
        if !entries.is_empty() {
            let facts_of = owner.clone().filter(|_| deltas < entries.len());
            self.hint(HintMessage::Head(session, head, facts_of));
        }
        self.feeds.publish(session, owner.as_ref(), entries, size);
        drop(reply.send(Ok(Committed { head })));
    }

    /// Tells other nodes, unless too much waits to be told: they look for themselves now and then.
    pub(super) fn hint(&self, hint: HintMessage) {
        if let Some(sender) = self.hint_sender.get() {
            sender.try_send(hint).ok();
        }
    }

    /// Tells who sent it that it is not stored; and who follows that it will not come, if nothing can be stored.
    pub(super) fn reply_refused(&self, pending: PostgresPending, error: StoreError) {
        self.release_bytes(&pending);
        if let StoreError::ReadOnly(reason) = &error {
            self.feeds.fail_session(pending.append.session, reason);
        }
        drop(pending.reply.send(Err(error)));
    }

    pub(super) fn stats(&self) -> Stats {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Stats {
            commits: read(&self.counters.commits),
            barriers: read(&self.counters.barriers),
            rows: read(&self.counters.rows),
            entries: read(&self.counters.entries),
            deltas: read(&self.counters.deltas),
        }
    }

    fn release_bytes(&self, pending: &PostgresPending) {
        self.waiting_bytes.fetch_sub(pending.bytes, Ordering::Relaxed);
    }
}

/// About how much memory entries take up.
fn postgres_entries_bytes(entries: &[Entry]) -> usize {
    entries.iter().map(|entry| entry.approximate_bytes()).sum()
}

fn lock_postgres_shared<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
