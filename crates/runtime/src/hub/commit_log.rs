//! The latest commits of all sessions: which entries went together, whether they were synced, how long it took.
//!
//! For people who look: nothing depends on it, and it is gone with the server.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::time::Duration;

use gander_domain::{Seq, SessionId};
use gander_store::Durability;

use super::lock_hub_mutex;

/// So many commits are remembered, of all sessions together.
const MAX_COMMITS: usize = 4096;

/// Entries that were committed together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommitRecord {
    /// The first of them.
    pub first: Seq,
    /// The last of them.
    pub last: Seq,
    /// Whether they were on the disk before anybody was told.
    pub sync: Durability,
    /// From the request to the answer of the store.
    pub took: Duration,
}

/// The latest commits, the oldest first.
#[derive(Debug, Default)]
pub(super) struct CommitLog {
    commits: Mutex<VecDeque<(SessionId, CommitRecord)>>,
}

impl CommitLog {
    pub(super) fn push(&self, session: SessionId, commit: CommitRecord) {
        let mut commits = lock_hub_mutex(&self.commits);
        if commits.len() == MAX_COMMITS {
            commits.pop_front();
        }
        commits.push_back((session, commit));
    }

    /// Those of a session that hold entries of this range, as far as they are remembered.
    pub(super) fn of_session(&self, session: SessionId, first: Seq, last: Seq) -> Vec<CommitRecord> {
        let commits = lock_hub_mutex(&self.commits);
        let wanted = |commit: &CommitRecord| commit.first <= last && commit.last >= first;
        commits.iter().filter(|(of, commit)| *of == session && wanted(commit)).map(|(_, commit)| *commit).collect()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn commit(first: u64, last: u64) -> CommitRecord {
        CommitRecord { first: Seq(first), last: Seq(last), sync: Durability::Barrier, took: Duration::from_micros(1) }
    }

    #[test]
    fn the_oldest_are_forgotten_and_others_sessions_are_not_told() {
        let session = |number: u32| format!("00000000-0000-7000-8000-{number:012}").parse::<SessionId>().unwrap();
        let (log, one, other) = (CommitLog::default(), session(1), session(2));
        log.push(one, commit(1, 1));
        log.push(other, commit(1, 9));
        log.push(one, commit(2, 5));
        assert_eq!(log.of_session(one, Seq(2), Seq(3)), [commit(2, 5)]);
        assert_eq!(log.of_session(one, Seq(1), Seq(9)), [commit(1, 1), commit(2, 5)]);
        (0..MAX_COMMITS as u64).for_each(|at| log.push(other, commit(at + 10, at + 10)));
        assert_eq!(log.of_session(one, Seq(1), Seq(9)), []);
    }
}
