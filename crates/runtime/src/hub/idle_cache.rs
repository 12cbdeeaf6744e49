//! Sessions at rest: a bounded cache of machines whose log need not be read again for their next turn.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use gander_domain::{Context, Session, SessionId, SessionView};
use gander_store::Epoch;
use tokio::time::Instant;

/// How many sessions are kept at most, however small they are.
const MAX_SESSIONS: usize = 512;

/// How long a session rests before its memory is given back. Somebody who types again later does not notice that the log is
/// read once; a server that nobody uses is small.
const IDLE_TTL: Duration = Duration::from_secs(60);

/// What the cache takes in beside a session's own size: two entries of maps and an allocation each.
const ENTRY_BYTES: usize = 256;

/// How full the cache of idle sessions is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct CacheStats {
    /// Sessions in it.
    pub sessions: usize,
    /// Their size, about.
    pub bytes: usize,
    /// The size that it does not exceed.
    pub limit: usize,
}

/// A session without a task.
pub(super) struct IdleSession {
    pub(super) session: Session,
    pub(super) epoch: Epoch,
    pub(super) context: Option<Context>,
}

impl IdleSession {
    pub(super) fn new(session: Session, epoch: Epoch, context: Option<Context>) -> Self {
        Self { session, epoch, context }
    }

    fn size_in_bytes(&self) -> usize {
        let context = self.context.as_ref().map_or(0, Context::message_bytes);
        size_of::<Self>() + ENTRY_BYTES + self.session.view().approximate_bytes() + context
    }

    fn id(&self) -> SessionId {
        self.session.view().session
    }
}

/// The sessions that rested last, bounded in number and in bytes: what is not kept is read from the log again.
pub(super) struct IdleCache {
    /// Each with the number of its coming and its size then: it does not change while it rests.
    idle: HashMap<SessionId, (u64, usize, IdleSession)>,
    /// Who came when, the coldest first.
    order: BTreeMap<u64, (Instant, SessionId)>,
    inserted: u64,
    bytes: usize,
    max_bytes: usize,
}

impl IdleCache {
    pub(super) fn new(max_bytes: usize) -> Self {
        Self { idle: HashMap::new(), order: BTreeMap::new(), inserted: 0, bytes: 0, max_bytes }
    }

    /// Keeps a session, and returns what has to go for it: the caller drops that without the lock, since dropping a
    /// long conversation takes a while.
    #[must_use]
    pub(super) fn put_session(&mut self, mut idle: IdleSession, now: Instant) -> Vec<IdleSession> {
        let mut gone: Vec<IdleSession> = self.take_session(idle.id()).into_iter().collect();
        if idle.size_in_bytes() > self.max_bytes {
            // Its view, which clients ask for, is small: only the conversation is read again.
            idle.context = None;
        }
        self.inserted += 1;
        let (id, bytes) = (idle.id(), idle.size_in_bytes());
        self.bytes += bytes;
        self.order.insert(self.inserted, (now, id));
        self.idle.insert(id, (self.inserted, bytes, idle));
        while self.idle.len() > MAX_SESSIONS || self.bytes > self.max_bytes {
            let Some((_, coldest)) = self.coldest() else { break };
            gone.extend(self.take_session(coldest));
        }
        gone
    }

    /// The sessions that have rested for long; the caller drops them without the lock.
    #[must_use]
    pub(super) fn take_expired(&mut self, now: Instant) -> Vec<IdleSession> {
        let mut gone = Vec::new();
        while let Some((since, coldest)) = self.coldest() {
            if now.duration_since(since) < IDLE_TTL {
                break;
            }
            gone.extend(self.take_session(coldest));
        }
        gone
    }

    fn coldest(&self) -> Option<(Instant, SessionId)> {
        self.order.first_key_value().map(|(_, coldest)| *coldest)
    }

    pub(super) fn take_session(&mut self, session: SessionId) -> Option<IdleSession> {
        let (inserted, bytes, idle) = self.idle.remove(&session)?;
        self.order.remove(&inserted);
        self.bytes -= bytes;
        Some(idle)
    }

    pub(super) fn cached_view(&self, session: SessionId) -> Option<SessionView> {
        self.idle.get(&session).map(|(_, _, idle)| idle.session.view().clone())
    }

    pub(super) fn cache_stats(&self) -> CacheStats {
        CacheStats { sessions: self.idle.len(), bytes: self.bytes, limit: self.max_bytes }
    }
}
