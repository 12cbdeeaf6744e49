//! Following a log: from a cursor through what is stored to what is live, without a seam.

use std::sync::Arc;

use gander_domain::{Entry, Seq, SessionId};
use gander_store::{DeltaForm, Limit, LiveBatch, Store, StoreError, Tail, TailEvent};

/// What one look into the store takes: with what it becomes on the wire, a reader that stops costs less than 256 KiB.
const READ_LIMIT: Limit = Limit { entries: 256, bytes: 32 * 1024 };

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
pub enum Batch {
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
    pub(super) fn live(store: Arc<dyn Store>, session: SessionId, after: Seq) -> Self {
        Self { caught_up: true, ..Self::new(store, session, after, DeltaForm::Exact) }
    }

    /// Where it reads.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// The last entry given.
    pub fn position(&self) -> Seq {
        self.at
    }

    /// What follows, if there is something now.
    pub async fn next_stored(&mut self) -> Result<Option<Batch>, StoreError> {
        let entries = self.store.read(self.session, self.at, READ_LIMIT, self.form).await?;
        let Some(last) = entries.last() else { return Ok(None) };
        self.at = last.seq;
        Ok(Some(Batch::Stored(entries)))
    }

    /// What follows; waits for it. `None` when the session or the store is no more. Safe to drop at any time.
    pub async fn next(&mut self) -> Result<Option<Batch>, StoreError> {
        while !self.caught_up {
            match self.next_stored().await? {
                Some(batch) => return Ok(Some(batch)),
                None => self.caught_up = true,
            }
        }
        loop {
            match self.tail.next(self.at).await {
                TailEvent::Live(fresh) => {
                    self.at = fresh.last();
                    return Ok(Some(Batch::Live(fresh)));
                }
                TailEvent::Behind => {
                    if let Some(batch) = self.next_stored().await? {
                        return Ok(Some(batch));
                    }
                }
                TailEvent::Ended => return Ok(None),
                TailEvent::Failed(reason) => return Err(StoreError::ReadOnly(reason)),
            }
        }
    }
}

impl Batch {
    /// The entries in order, in pieces. The first piece may begin with entries that were given before.
    pub fn slices(&self) -> Box<dyn Iterator<Item = &[Entry]> + Send + '_> {
        match self {
            Self::Stored(entries) => Box::new(std::iter::once(entries.as_slice())),
            Self::Live(fresh) => Box::new(fresh.batches()),
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
