//! Sessions at rest: a bounded cache of machines whose log need not be read again for their next turn.

use std::collections::{BTreeMap, HashMap};

use gander_domain::{Context, Session, SessionId, SessionView};
use gander_store::Epoch;

/// How many sessions are kept at most, however small they are.
const MAX_SESSIONS: usize = 512;

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
pub(super) struct Warm {
    pub(super) session: Session,
    pub(super) epoch: Epoch,
    pub(super) context: Option<Context>,
}

impl Warm {
    pub(super) fn new(session: Session, epoch: Epoch, context: Option<Context>) -> Self {
        Self { session, epoch, context }
    }

    fn bytes(&self) -> usize {
        let context = self.context.as_ref().map_or(0, Context::message_bytes);
        size_of::<Self>() + ENTRY_BYTES + self.session.view().approximate_bytes() + context
    }

    fn id(&self) -> SessionId {
        self.session.view().session
    }
}

/// The sessions that rested last, bounded in number and in bytes: what is not kept is read from the log again.
pub(super) struct Rest {
    /// Each with the number of its coming and its size then: it does not change while it rests.
    warm: HashMap<SessionId, (u64, usize, Warm)>,
    /// Who came when, the coldest first.
    order: BTreeMap<u64, SessionId>,
    came: u64,
    bytes: usize,
    max_bytes: usize,
}

impl Rest {
    pub(super) fn new(max_bytes: usize) -> Self {
        Self { warm: HashMap::new(), order: BTreeMap::new(), came: 0, bytes: 0, max_bytes }
    }

    /// Keeps a session, and returns what has to go for it: the caller drops that without the lock, since dropping a
    /// long conversation takes a while.
    #[must_use]
    pub(super) fn put(&mut self, mut warm: Warm) -> Vec<Warm> {
        let mut gone: Vec<Warm> = self.take(warm.id()).into_iter().collect();
        if warm.bytes() > self.max_bytes {
            // Its view, which clients ask for, is small: only the conversation is read again.
            warm.context = None;
        }
        self.came += 1;
        let (id, bytes) = (warm.id(), warm.bytes());
        self.bytes += bytes;
        self.order.insert(self.came, id);
        self.warm.insert(id, (self.came, bytes, warm));
        while self.warm.len() > MAX_SESSIONS || self.bytes > self.max_bytes {
            let Some(coldest) = self.order.first_key_value().map(|(_, id)| *id) else { break };
            gone.extend(self.take(coldest));
        }
        gone
    }

    pub(super) fn take(&mut self, session: SessionId) -> Option<Warm> {
        let (came, bytes, warm) = self.warm.remove(&session)?;
        self.order.remove(&came);
        self.bytes -= bytes;
        Some(warm)
    }

    pub(super) fn view(&self, session: SessionId) -> Option<SessionView> {
        self.warm.get(&session).map(|(_, _, warm)| warm.session.view().clone())
    }

    pub(super) fn stats(&self) -> CacheStats {
        CacheStats { sessions: self.warm.len(), bytes: self.bytes, limit: self.max_bytes }
    }
}
