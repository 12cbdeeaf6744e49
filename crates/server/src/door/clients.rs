//! Who is attached where: counted, so that the last one to leave can be told apart.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gander_domain::SessionId;

/// How many clients are attached to each session.
#[derive(Debug, Default)]
pub struct Clients {
    counts: Mutex<HashMap<SessionId, usize>>,
}

/// One client at one session. Dropping it is leaving.
#[derive(Debug)]
pub struct Presence {
    clients: Arc<Clients>,
    session: SessionId,
}

impl Clients {
    /// A client comes.
    pub fn enter(self: &Arc<Self>, session: SessionId) -> Presence {
        *self.lock().entry(session).or_default() += 1;
        Presence { clients: Arc::clone(self), session }
    }

    /// How many are attached to this session.
    pub fn at(&self, session: SessionId) -> usize {
        self.lock().get(&session).copied().unwrap_or(0)
    }

    /// How many are attached at all.
    pub fn total(&self) -> usize {
        self.lock().values().sum()
    }

    /// A panic while the lock was held leaves nothing half done here.
    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, usize>> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        let mut counts = self.clients.lock();
        if let Some(count) = counts.get_mut(&self.session) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.session);
            }
        }
    }
}
