//! How many streams each principal has open.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gander_domain::Principal;

/// How many streams each principal has open.
#[derive(Debug, Default)]
pub(crate) struct Streams {
    counts: Mutex<HashMap<Principal, usize>>,
}

/// One open stream. Dropping it closes the account.
#[derive(Debug)]
pub(crate) struct Stream {
    streams: Arc<Streams>,
    principal: Principal,
}

impl Streams {
    /// One more, unless there are so many already.
    pub(super) fn open(self: &Arc<Self>, principal: &Principal, most: usize) -> Option<Stream> {
        let mut counts = self.lock();
        let count = counts.entry(principal.clone()).or_default();
        if *count >= most {
            return None;
        }
        *count += 1;
        Some(Stream { streams: Arc::clone(self), principal: principal.clone() })
    }

    /// A panic while the lock was held leaves nothing half done here.
    fn lock(&self) -> MutexGuard<'_, HashMap<Principal, usize>> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let mut counts = self.streams.lock();
        if let Some(count) = counts.get_mut(&self.principal) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.principal);
            }
        }
    }
}
