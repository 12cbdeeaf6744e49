//! The live tail: recent entries of a session, shared by all who follow it, bounded whatever they do.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use gander_domain::{Entry, Event, Principal, Seq, SessionId};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use super::live_batch::LiveBatch;

/// A session's ring keeps about so many bytes; older entries are in the log.
const RING_BYTES: usize = 64 * 1024;

/// A session is quiet after this time.
const QUIET_AFTER: Duration = Duration::from_secs(5);

/// What a tail has to say.
#[derive(Clone, Debug)]
pub enum TailEvent {
    /// These follow the reader's place, without a gap.
    Live(LiveBatch),
    /// There is more, but not here any longer: read the log.
    Behind,
    /// The session was deleted, or the store closed.
    Ended,
    /// What was to follow could not be stored: who waits for it waits in vain. The reason.
    Failed(String),
    /// The log is a copy by now, whose end may be missing: what was told may not be in it.
    Truncated,
}

/// Follows one session. Holds no entries of its own: a reader that never reads costs nothing.
pub struct Tail {
    feeds: Arc<Feeds>,
    feed: Arc<Feed>,
    session: SessionId,
}

impl Tail {
    /// Waits until there is something after a place. Safe to drop at any time.
    pub async fn next(&self, after: Seq) -> TailEvent {
        loop {
            let mut notified = std::pin::pin!(self.feed.wake.notified());
            notified.as_mut().enable();
            if let Some(next) = self.peek_event(after) {
                return next;
            }
            notified.await;
        }
    }

    /// What is there now, without waiting.
    pub fn peek_event(&self, after: Seq) -> Option<TailEvent> {
        lock_feed_mutex(&self.feed.ring).entries_after(after)
    }
}

impl Drop for Tail {
    fn drop(&mut self) {
        let mut map = lock_feed_mutex(&self.feeds.map);
        // Ours and the map's: nobody else follows, and nobody can begin to while the map is locked.
        let is_listed = map.get(&self.session).is_some_and(|feed| Arc::ptr_eq(feed, &self.feed));
        if is_listed && Arc::strong_count(&self.feed) == 2 {
            map.remove(&self.session);
        }
    }
}

/// The tails of all followed sessions.
#[derive(Default)]
pub(super) struct Feeds {
    map: Mutex<HashMap<SessionId, Arc<Feed>>>,
    settled: Mutex<Option<Instant>>,
    /// How often facts of somebody's sessions were published, for each principal whose sessions are watched.
    changes: Mutex<HashMap<Principal, watch::Sender<u64>>>,
}

impl Feeds {
    pub(super) fn subscribe(self: &Arc<Self>, session: SessionId) -> Tail {
        let feed = Arc::clone(lock_feed_mutex(&self.map).entry(session).or_default());
        Tail { feeds: Arc::clone(self), feed, session }
    }

    /// Shows a committed batch of somebody's session to whoever follows; `bytes` is about its size.
    pub(super) fn publish(&self, session: SessionId, owner: Option<&Principal>, entries: Vec<Entry>, bytes: usize) {
        // Deltas change nothing that a list shows: a stream must not wake everybody who watches one.
        if entries.iter().any(|entry| !matches!(entry.event, Event::PartDelta { .. })) {
            self.count_change(owner.or_else(|| feed_creation_owner(&entries)));
        }
        let feed = lock_feed_mutex(&self.map).get(&session).cloned();
        let Some((feed, head)) = feed.zip(entries.last().map(|entry| entry.seq)) else { return };
        let cost = bytes + entries.len() * size_of::<Entry>();
        lock_feed_mutex(&feed.ring).push_batch(entries.into(), head, cost);
        feed.wake.notify_waiters();
    }

    /// Told whenever facts of this principal's sessions were published.
    pub(super) fn change_counter(&self, principal: &Principal) -> watch::Receiver<u64> {
        let mut changes = lock_feed_mutex(&self.changes);
        changes.retain(|watched, sender| watched == principal || sender.receiver_count() > 0);
        changes.entry(principal.clone()).or_default().subscribe()
    }

    fn count_change(&self, owner: Option<&Principal>) {
        let count = |sender: &watch::Sender<u64>| sender.send_modify(|count| *count = count.wrapping_add(1));
        let changes = lock_feed_mutex(&self.changes);
        match owner {
            Some(owner) => changes.get(owner).into_iter().for_each(count),
            None => changes.values().for_each(count),
        }
    }

    /// The session is no more.
    pub(super) fn end_session(&self, session: SessionId, owner: Option<&Principal>) {
        self.count_change(owner);
        if let Some(feed) = lock_feed_mutex(&self.map).get(&session) {
            feed.end_feed();
        }
    }

    /// What the session wrote last is not stored. Who follows it is told; who comes later begins anew.
    pub(super) fn fail_session(&self, session: SessionId, reason: &str) {
        let feed = lock_feed_mutex(&self.map).remove(&session);
        if let Some(feed) = feed {
            lock_feed_mutex(&feed.ring).failed = Some(reason.to_owned());
            feed.wake.notify_waiters();
        }
    }

    /// The log is another copy. Who was told something is told so; who comes later begins anew.
    pub(super) fn end_incarnation(&self) {
        let feeds = std::mem::take(&mut *lock_feed_mutex(&self.map));
        for feed in feeds.values() {
            lock_feed_mutex(&feed.ring).truncated = true;
            feed.wake.notify_waiters();
        }
    }

    /// Sessions that somebody follows.
    pub(super) fn followed_sessions(&self) -> Vec<SessionId> {
        lock_feed_mutex(&self.map).keys().copied().collect()
    }

    /// Another node wrote: whoever follows the session reads the log up to there.
    pub(super) fn note_head(&self, session: SessionId, head: Seq) {
        let feed = lock_feed_mutex(&self.map).get(&session).cloned();
        if let Some(feed) = feed
            && lock_feed_mutex(&feed.ring).note_head(head)
        {
            feed.wake.notify_waiters();
        }
    }

    /// Another node wrote facts of this principal's sessions.
    pub(super) fn note_change(&self, owner: &Principal) {
        self.count_change(Some(owner));
    }

    /// The store is no more.
    pub(super) fn end_all(&self) {
        lock_feed_mutex(&self.map).values().for_each(|feed| feed.end_feed());
    }

    /// Drops the rings of sessions that were quiet for some seconds. Call it as often as you like.
    pub(super) fn drop_quiet_rings(&self) {
        let before = lock_feed_mutex(&self.settled).replace(Instant::now());
        if let Some(before) = before.filter(|before| before.elapsed() < QUIET_AFTER) {
            *lock_feed_mutex(&self.settled) = Some(before);
            return;
        }
        lock_feed_mutex(&self.map).values().for_each(|feed| lock_feed_mutex(&feed.ring).drop_if_quiet());
    }
}

#[derive(Default)]
struct Feed {
    ring: Mutex<FeedRing>,
    wake: Notify,
}

impl Feed {
    fn end_feed(&self) {
        lock_feed_mutex(&self.ring).ended = true;
        self.wake.notify_waiters();
    }
}

#[derive(Default)]
struct FeedRing {
    head: Seq,
    batches: VecDeque<(Arc<[Entry]>, usize)>,
    bytes: usize,
    quiet: bool,
    ended: bool,
    failed: Option<String>,
    truncated: bool,
}

impl FeedRing {
    fn push_batch(&mut self, batch: Arc<[Entry]>, head: Seq, cost: usize) {
        // Entries of another node may lie between what is here and this: readers must not jump over them.
        if batch.first().is_some_and(|entry| entry.seq > self.head.next()) {
            self.forget_batches();
        }
        self.head = head;
        self.quiet = false;
        self.bytes += cost;
        self.batches.push_back((batch, cost));
        while self.bytes > RING_BYTES {
            let Some((_, cost)) = self.batches.pop_front() else { break };
            self.bytes -= cost;
        }
    }

    fn entries_after(&self, after: Seq) -> Option<TailEvent> {
        if self.ended {
            return Some(TailEvent::Ended);
        }
        if self.truncated {
            return Some(TailEvent::Truncated);
        }
        if self.head <= after {
            return self.failed.clone().map(TailEvent::Failed);
        }
        let start = self.batches.partition_point(|(batch, _)| batch.last().is_none_or(|entry| entry.seq <= after));
        let batches: Vec<_> = self.batches.range(start..).map(|(batch, _)| Arc::clone(batch)).collect();
        let follows = batches.first().and_then(|batch| batch.first()).is_some_and(|entry| entry.seq <= after.next());
        Some(if follows { TailEvent::Live(LiveBatch { batches, after }) } else { TailEvent::Behind })
    }

    /// True if that is news.
    fn note_head(&mut self, head: Seq) -> bool {
        let grew = head > self.head;
        if grew {
            self.head = head;
            self.forget_batches();
        }
        grew
    }

    fn forget_batches(&mut self) {
        self.batches = VecDeque::new();
        self.bytes = 0;
    }

    fn drop_if_quiet(&mut self) {
        if self.quiet {
            self.forget_batches();
        }
        self.quiet = true;
    }
}

/// Who begins a session with these entries, if they do.
fn feed_creation_owner(entries: &[Entry]) -> Option<&Principal> {
    match entries.first().map(|entry| &entry.event) {
        Some(Event::SessionCreated { owner, .. }) => Some(owner),
        Some(_) | None => None,
    }
}

/// A panic while the lock was held leaves nothing half done here.
fn lock_feed_mutex<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
