//! Entries as they were committed, shared by all who follow.

use std::sync::Arc;

use gander_domain::{Entry, Seq};

/// Committed entries that follow a place, shared and not copied.
#[derive(Clone, Debug)]
pub struct LiveBatch {
    pub(super) batches: Vec<Arc<[Entry]>>,
    pub(super) after: Seq,
}

impl LiveBatch {
    /// The entries, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Entry> {
        self.batches.iter().flat_map(|batch| batch.iter()).filter(|entry| entry.seq > self.after)
    }

    /// The same in pieces; the first may begin with entries up to the reader's place.
    pub fn entry_batches(&self) -> impl Iterator<Item = &[Entry]> {
        self.batches.iter().map(AsRef::as_ref)
    }

    /// The place of the last one.
    pub fn last_seq(&self) -> Seq {
        self.batches.last().and_then(|batch| batch.last()).map_or(self.after, |entry| entry.seq)
    }
}
