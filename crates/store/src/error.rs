//! Why a store refuses or fails.

use gander_domain::{Seq, SessionId};

use super::Epoch;
use super::node::NodeId;

/// Why a store refuses or fails. After an error nothing of the call is stored or shown.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// There never was one.
    #[error("no such session: {0}")]
    NotFound(SessionId),
    /// There was one, and its id is used up.
    #[error("session was deleted: {0}")]
    Deleted(SessionId),
    /// Ids are given once.
    #[error("session exists already: {0}")]
    Exists(SessionId),
    /// Somebody else has claimed the session.
    #[error("session has another writer, current epoch: {current}")]
    Fenced {
        /// The epoch that may write.
        current: Epoch,
    },
    /// Another node owns the session, and its lease lasts.
    #[error("session is owned by another node: {0}")]
    Owned(NodeId),
    /// The session works on a disk of other nodes.
    #[error("session works on a local disk of nodes with another label: {0}")]
    Pinned(String),
    /// The entries do not follow the log's end.
    #[error("entries do not follow the log: expected {expected}, found: {found}")]
    Gap {
        /// The next place of the log.
        expected: Seq,
        /// The place that was offered.
        found: Seq,
    },
    /// The log does not reach that far, or is another one.
    #[error("log was truncated, its end is {head}, asked for: {asked}")]
    Truncated {
        /// The place that was asked for.
        asked: Seq,
        /// Where the log ends.
        head: Seq,
    },
    /// The name means another session.
    #[error("name is taken by session: {0}")]
    AliasTaken(SessionId),
    /// The call makes no sense.
    #[error("invalid append: {0}")]
    Invalid(String),
    /// The disk failed or is full: only reading works.
    #[error("store is read-only: {0}")]
    ReadOnly(String),
    /// Somebody else holds the file, or it does not keep up: worth another try.
    #[error("store is busy: {0}")]
    Busy(String),
    /// The database refused or broke.
    #[error("store failed: {0}")]
    Failed(String),
    /// Something stored cannot be read.
    #[error("stored row is not readable: {0}")]
    Corrupt(String),
    /// Another process has it open.
    #[error("data directory is in use by process: {0}")]
    Locked(String),
    /// A newer version wrote it.
    #[error(
        "data was written by a newer gander: use that version again, or another data directory; its schema is {found}, this gander knows up to: {known}"
    )]
    Newer {
        /// The file's schema.
        found: u32,
        /// Ours.
        known: u32,
    },
    /// It was closed.
    #[error("store is closed")]
    Closed,
}

impl StoreError {
    /// True if nothing is wrong with what was asked, and it may succeed later.
    pub fn is_outage(&self) -> bool {
        matches!(self, Self::Busy(_) | Self::ReadOnly(_) | Self::Closed)
    }
}
