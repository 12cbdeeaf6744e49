//! Following a log: from a cursor through what is stored to what is live, without a seam.

use std::sync::Arc;
use std::time::Duration;

use gander_domain::{Entry, Seq, SessionId};
use gander_store::{DeltaForm, Health, Limit, LiveBatch, Store, StoreError, Tail, TailEvent};

/// What one look into the store takes: with what it becomes on the wire, a reader that stops costs less than 256 KiB.
const READ_LIMIT: Limit = Limit { entries: 256, bytes: 32 * 1024 };

/// A store that is busy is asked again after this time, then after twice as long each time, up to the longest.
const FIRST_RETRY_DELAY: Duration = Duration::from_millis(100);
const MAX_RETRY_DELAY: Duration = Duration::from_secs(5);

/// A reader's place in a session's log. It holds no entries: a slow reader costs nothing.
pub struct Follower {
    store: Arc<dyn Store>,
    tail: Tail,
    session: SessionId,
    at: Seq,
    form: DeltaForm,
    /// The log was read to its end once: what comes later comes through the tail.
    caught_up: bool,
}

/// Entries that follow a reader's place.
pub enum FollowedBatch {
    /// From the store.
    Stored(Vec<Entry>),
    /// From the live tail, shared with other readers.
    Live(LiveBatch),
}

impl Follower {
    pub(super) fn new(store: Arc<dyn Store>, session: SessionId, after: Seq, form: DeltaForm) -> Self {
        let tail = store.subscribe(session); // before the first read, so that nothing falls between the two
        Self { store, tail, session, at: after, form, caught_up: false }
    }

    /// From the first entry of a session that nothing is stored of yet.
    pub(super) fn for_unsaved(store: Arc<dyn Store>, session: SessionId) -> Self {
        Self { caught_up: true, ..Self::new(store, session, Seq::ZERO, DeltaForm::Exact) }
    }

    /// What is added after this place.
    pub(super) fn starting_after(store: Arc<dyn Store>, session: SessionId, after: Seq) -> Self {
        Self { caught_up: true, ..Self::new(store, session, after, DeltaForm::Exact) }
    }

    /// Where it reads.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// The last entry given.
    pub fn last_seq(&self) -> Seq {
        self.at
    }

    /// What follows, if there is something now.
    pub async fn next_stored(&mut self) -> Result<Option<FollowedBatch>, StoreError> {
        let entries = self.store.read(self.session, self.at, READ_LIMIT, self.form).await?;
        let Some(last) = entries.last() else { return Ok(None) };
        self.at = last.seq;
        Ok(Some(FollowedBatch::Stored(entries)))
    }

    /// What follows; waits for it. `None` when the session is no more; `Closed` when the server ends and the session goes on
    /// elsewhere or later. Safe to drop at any time.
    ///
    /// A store that is busy is waited for: whoever follows is not told of errors that pass, and would never hear of the
    /// session again if it let go of it because of one.
    pub async fn next_batch(&mut self) -> Result<Option<FollowedBatch>, StoreError> {
        while !self.caught_up {
            match self.next_stored_patiently().await? {
                Some(batch) => return Ok(Some(batch)),
                None => self.caught_up = true,
            }
        }
        loop {
            match self.tail.next(self.at).await {
                TailEvent::Live(fresh) => {
                    self.at = fresh.last_seq();
                    return Ok(Some(FollowedBatch::Live(fresh)));
                }
                TailEvent::Behind => {
                    if let Some(batch) = self.next_stored_patiently().await? {
                        return Ok(Some(batch));
                    }
                    // Another node's hint may run ahead of what can be read here: that is no reason to spin.
                    tokio::time::sleep(FIRST_RETRY_DELAY).await;
                }
                TailEvent::Ended if self.store.health().await == Health::Closed => return Err(StoreError::Closed),
                TailEvent::Ended => return Ok(None),
                TailEvent::Failed(reason) => return Err(StoreError::ReadOnly(reason)),
                TailEvent::Truncated => return Err(StoreError::Truncated { asked: self.at, head: Seq::ZERO }),
            }
        }
    }
}

impl Follower {
    async fn next_stored_patiently(&mut self) -> Result<Option<FollowedBatch>, StoreError> {
        let mut retry = FIRST_RETRY_DELAY;
        loop {
            let read = self.next_stored().await;
            let Some(wait) = follower_wait_before_retry(&read, &mut retry) else { return read };
            tokio::time::sleep(wait).await;
        }
    }
}

/// How long to wait before a read is tried again; `None` if its result counts.
fn follower_wait_before_retry<T>(read: &Result<T, StoreError>, retry: &mut Duration) -> Option<Duration> {
    let Err(StoreError::Busy(reason)) = read else { return None };
    tracing::warn!(reason, "a session is followed later");
    let wait = *retry;
    *retry = (wait * 2).min(MAX_RETRY_DELAY);
    Some(wait)
}

impl FollowedBatch {
    /// The entries in order, in pieces. The first piece may begin with entries that were given before.
    pub fn entry_slices(&self) -> Box<dyn Iterator<Item = &[Entry]> + Send + '_> {
        match self {
            Self::Stored(entries) => Box::new(std::iter::once(entries.as_slice())),
            Self::Live(fresh) => Box::new(fresh.entry_batches()),
        }
    }

    /// The entries, in order.
    pub fn iter(&self) -> Box<dyn Iterator<Item = &Entry> + Send + '_> {
        match self {
            Self::Stored(entries) => Box::new(entries.iter()),
            Self::Live(fresh) => Box::new(fresh.iter()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_store_is_asked_again_and_any_other_result_counts() {
        let mut retry = FIRST_RETRY_DELAY;
        let busy = Err::<(), _>(StoreError::Busy("locked".to_owned()));
        let waits: Vec<u128> =
            (0..8).filter_map(|_| follower_wait_before_retry(&busy, &mut retry)).map(|wait| wait.as_millis()).collect();
        assert_eq!(waits, [100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000]);
        assert_eq!(follower_wait_before_retry(&Ok(()), &mut retry), None);
        assert_eq!(follower_wait_before_retry(&Err::<(), _>(StoreError::Closed), &mut retry), None);
    }
}
