//! How many streams each principal has open, on this machine and elsewhere.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gander_domain::Principal;
use gander_domain::caller::Caller;

use crate::settings::Limits;

/// How many streams each principal has open.
#[derive(Debug, Default)]
pub struct StreamLimiter {
    counts: Mutex<HashMap<StreamAccount, usize>>,
}

/// One open stream. Dropping it closes the account.
#[derive(Debug)]
pub struct StreamPermit {
    streams: Arc<StreamLimiter>,
    account: StreamAccount,
}

/// A principal, and whether it is on this machine: streams elsewhere leave those here alone.
type StreamAccount = (Principal, bool);

impl StreamLimiter {
    /// One more, unless there are so many already.
    pub fn acquire(self: &Arc<Self>, caller: &Caller, limits: &Limits) -> Option<StreamPermit> {
        let here = caller.is_same_machine();
        let most = if here { limits.local_streams } else { limits.streams };
        let account = (caller.principal.clone(), here);
        let mut counts = self.lock();
        let count = counts.entry(account.clone()).or_default();
        if *count >= most {
            return None;
        }
        *count += 1;
        Some(StreamPermit { streams: Arc::clone(self), account })
    }

    /// A panic while the lock was held leaves nothing half done here.
    fn lock(&self) -> MutexGuard<'_, HashMap<StreamAccount, usize>> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for StreamPermit {
    fn drop(&mut self) {
        let mut counts = self.streams.lock();
        if let Some(count) = counts.get_mut(&self.account) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.account);
            }
        }
    }
}
