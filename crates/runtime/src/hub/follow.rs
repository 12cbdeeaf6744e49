//! Following a log: from a cursor through what is stored to what is live, without a seam.

use std::sync::Arc;

use gander_domain::{Entry, Seq, SessionId};
use gander_store::{Form, Fresh, Limit, Next, Store, StoreError, Tail};

/// What one look into the store takes: with what it becomes on the wire, a reader that stops costs less than 256 KiB.
const PIECE: Limit = Limit { entries: 256, bytes: 32 * 1024 };

/// A reader's place in a session's log. It holds no entries: a slow reader costs nothing.
pub struct Follower {
    store: Arc<dyn Store>,
    tail: Tail,
    session: SessionId,
    at: Seq,
    form: Form,
    /// The log was read to its end once: what comes later comes through the tail.
    caught_up: bool,
}

/// Entries that follow a reader's place.
pub enum Batch {
    /// From the store.
    Stored(Vec<Entry>),
    /// From the live tail, shared with other readers.
    Live(Fresh),
}

impl Follower {
    pub(super) fn new(store: Arc<dyn Store>, session: SessionId, after: Seq, form: Form) -> Self {
        let tail = store.subscribe(session); // before the first read, so that nothing falls between the two
        Self { store, tail, session, at: after, form, caught_up: false }
    }

    /// From the first entry of a session that nothing is stored of yet.
    pub(super) fn of_newborn(store: Arc<dyn Store>, session: SessionId) -> Self {
        Self { caught_up: true, ..Self::new(store, session, Seq::ZERO, Form::Exact) }
    }

    /// What is added after this place.
    pub(super) fn live(store: Arc<dyn Store>, session: SessionId, after: Seq) -> Self {
        Self { caught_up: true, ..Self::new(store, session, after, Form::Exact) }
    }

    /// Where it reads.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// The last entry given.
    pub fn place(&self) -> Seq {
        self.at
    }

    /// What follows, if there is something now.
    pub async fn stored(&mut self) -> Result<Option<Batch>, StoreError> {
        let entries = self.store.read(self.session, self.at, PIECE, self.form).await?;
        let Some(last) = entries.last() else { return Ok(None) };
        self.at = last.seq;
        Ok(Some(Batch::Stored(entries)))
    }

    /// What follows; waits for it. `None` when the session or the store is no more. Safe to drop at any time.
    pub async fn next(&mut self) -> Result<Option<Batch>, StoreError> {
        while !self.caught_up {
            match self.stored().await? {
                Some(batch) => return Ok(Some(batch)),
                None => self.caught_up = true,
            }
        }
        loop {
            match self.tail.next(self.at).await {
                Next::Live(fresh) => {
                    self.at = fresh.last();
                    return Ok(Some(Batch::Live(fresh)));
                }
                Next::Behind => {
                    if let Some(batch) = self.stored().await? {
                        return Ok(Some(batch));
                    }
                }
                Next::Ended => return Ok(None),
                Next::Failed(reason) => return Err(StoreError::ReadOnly(reason)),
            }
        }
    }
}

impl Batch {
    /// The entries in order, in pieces. The first piece may begin with entries that were given before.
    pub fn pieces(&self) -> Box<dyn Iterator<Item = &[Entry]> + Send + '_> {
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
