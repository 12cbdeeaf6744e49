//! Readers of HTTP/2 streams that take nothing: their connections are ended.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

/// How often readers are looked after.
const SWEEP_INTERVAL: Duration = Duration::from_secs(2);

/// The readers of HTTP/2: they can leave a stream alone whose connection is well.
#[derive(Debug)]
pub struct StalledReaders {
    begin: Instant,
    /// A reader that takes nothing for so long is given up.
    stalled: Duration,
    open: Mutex<Vec<Weak<WaitingReader>>>,
}

/// Since when an answer waits for its reader.
#[derive(Debug)]
pub(super) struct WaitingReader {
    /// Milliseconds; zero while it is the reader who waits.
    pub(super) since: AtomicU64,
    connection: CancellationToken,
}

impl StalledReaders {
    pub fn new(stalled: Duration) -> Self {
        Self { begin: Instant::now(), stalled, open: Mutex::default() }
    }

    /// Ends the connections of readers that take nothing.
    pub async fn sweep_stalled(self: Arc<Self>, stop: CancellationToken) {
        let mut every = tokio::time::interval(SWEEP_INTERVAL);
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                _ = every.tick() => self.close_stalled(self.now()),
            }
        }
    }

    pub(super) fn close_stalled(&self, now: u64) {
        let longest = u64::try_from(self.stalled.as_millis()).unwrap_or(u64::MAX);
        self.lock().retain(|waiting| {
            let Some(waiting) = waiting.upgrade() else { return false };
            let since = waiting.since.load(Ordering::Relaxed);
            if since > 0 && now.saturating_sub(since) >= longest {
                waiting.connection.cancel();
            }
            true
        });
    }

    pub(super) fn watch(&self, connection: CancellationToken) -> Arc<WaitingReader> {
        let waiting = Arc::new(WaitingReader { since: AtomicU64::new(self.now()), connection });
        self.lock().push(Arc::downgrade(&waiting));
        waiting
    }

    pub(super) fn now(&self) -> u64 {
        u64::try_from(self.begin.elapsed().as_millis()).unwrap_or(u64::MAX).saturating_add(1)
    }

    /// A panic while the lock was held leaves nothing half done here.
    pub(super) fn lock(&self) -> MutexGuard<'_, Vec<Weak<WaitingReader>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
