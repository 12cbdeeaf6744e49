//! What is written to a session's log at once.

use gander_domain::{Entry, Principal, SessionId};

use super::node::{CommandAnswer, Ownership};
use super::types::{Epoch, ScopeAppend, Snapshot};

/// How hard a commit is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Durability {
    /// Survives the death of the process; safe from a power cut with the next barrier.
    Relaxed,
    /// Survives a power cut: acknowledged after the disk said so.
    Barrier,
}

/// So many deltas at once are a burst.
const MAX_TRICKLE_ENTRIES: usize = 16;

/// Entries of one session, and what belongs into the same transaction.
#[derive(Clone, Debug)]
pub struct Append {
    pub session: SessionId,
    /// The writer's claim.
    pub epoch: Epoch,
    /// They follow the log's end, without gaps. May be empty.
    pub entries: Vec<Entry>,
    /// How hard.
    pub sync: Durability,
    /// Facts of no session.
    pub scopes: Vec<ScopeAppend>,
    /// The view at a place: a cache.
    pub snapshot: Option<Snapshot>,
    /// Whether somebody waits for an answer and is told soon that the store is busy, or it is tried for longer.
    pub busy_timeout: BusyTimeout,
    /// Whose session it is: who watches this principal's sessions is told. Without one everybody who watches is.
    pub owner: Option<Principal>,
    /// Whether this node goes on owning the session. Counts in a cluster.
    pub ownership: Ownership,
    /// The label of the only nodes that may own the session. Counts in a cluster, when the session is created.
    pub pinned_to: Option<String>,
    /// What became of commands that other nodes sent, in the same commit.
    pub answers: Vec<CommandAnswer>,
}

/// How long a busy store is waited for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BusyTimeout {
    /// About a second.
    #[default]
    Short,
    /// Some seconds: what a run says must not be lost to a moment.
    Long,
}

impl Append {
    /// Entries and nothing else.
    pub fn new(session: SessionId, epoch: Epoch, entries: Vec<Entry>, sync: Durability) -> Self {
        Self {
            session,
            epoch,
            entries,
            sync,
            scopes: Vec::new(),
            snapshot: None,
            busy_timeout: BusyTimeout::Short,
            owner: None,
            ownership: Ownership::Release,
            pinned_to: None,
            answers: Vec::new(),
        }
    }

    /// True if these are a few deltas that nobody waits for but readers: they are stored together with those of others.
    pub fn is_trickle(&self) -> bool {
        self.sync == Durability::Relaxed && self.busy_timeout == BusyTimeout::Long && is_trickle(&self.entries)
    }
}

/// True if these are deltas, and so few that storing them costs more than they do.
pub fn is_trickle(entries: &[Entry]) -> bool {
    entries.len() < MAX_TRICKLE_ENTRIES && entries.iter().all(|entry| entry.event.is_delta())
}
