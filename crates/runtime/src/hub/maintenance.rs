//! What a hub does by itself: picks up open runs at start, tidies the store, comes to an end.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use gander_store::{RunState, Store, StoreError, clock};

use tokio::time::Instant;

use super::session_task::SessionRequest;
use super::{Hub, lock_hub_mutex};

/// How often the store is tidied.
const MAINTENANCE_INTERVAL: Duration = Duration::from_secs(30);

/// Open runs read in one go at start.
const OPEN_RUNS_PAGE: u32 = 256;

/// How long a stopping hub waits for tasks that it told to stop.
const STOP_TIMEOUT: Duration = Duration::from_secs(3);

impl Hub {
    /// Picks up every run that was open when the last process died. Those that await people cost nothing.
    ///
    /// Among several nodes there is nothing to do here: whoever looks for work finds what a dead one left.
    pub async fn recover_open_runs(&self) -> Result<usize, StoreError> {
        if self.inner.cluster.is_some() {
            return Ok(0);
        }
        let (mut after, mut woken) = (None, 0);
        loop {
            let page = self.inner.store.open_runs(after, OPEN_RUNS_PAGE).await?;
            let Some(last) = page.last() else { return Ok(woken) };
            after = Some((last.run, last.session));
            for row in page.iter().filter(|row| row.state != RunState::Awaiting) {
                self.inner.deliver_request(row.session, SessionRequest::Wake).await;
                woken += 1;
            }
        }
    }

    /// Tidies the store and gives back the memory of sessions at rest now and then, until the hub ends.
    pub fn start_maintenance(&self) {
        let inner = Arc::clone(&self.inner);
        tokio::spawn(async move {
            loop {
                tokio::select! {
                    () = tokio::time::sleep(MAINTENANCE_INTERVAL) => {}
                    () = inner.deleted.notified() => {}
                    () = inner.stop.cancelled() => return,
                }
                // Bound to a name, so that the lock is released before what may be large is dropped.
                let expired = lock_hub_mutex(&inner.idle_cache).take_expired(Instant::now());
                drop(expired);
                maintain_store(&*inner.store).await;
            }
        });
    }

    /// Takes no new work from now on.
    pub fn refuse_new_work(&self) {
        self.inner.draining.store(true, Ordering::Release);
    }

    /// Lets runs come to an end for so long, then leaves the rest to the next start.
    pub async fn drain_sessions(&self, grace: Duration) {
        self.refuse_new_work();
        self.inner.announce_draining().await;
        self.inner.tracker.close();
        if tokio::time::timeout(grace, self.inner.tracker.wait()).await.is_err() {
            tracing::info!(
                sessions = self.active_sessions(),
                "runs still under way will be picked up at the next start"
            );
        }
        self.inner.stop.cancel();
        if tokio::time::timeout(STOP_TIMEOUT, self.inner.tracker.wait()).await.is_err() {
            // They may still write: others take them when the lease ends, by which time this process is gone.
            tracing::warn!(sessions = self.active_sessions(), "sessions did not stop in time and are not handed over");
            return;
        }
        // After everything stopped: from here on other nodes run what was open.
        if let (Some(_), Some(cluster)) = (&self.inner.cluster, self.inner.store.cluster())
            && let Err(error) = cluster.leave().await
        {
            tracing::warn!(%error, "sessions were not handed over: others take them when the lease ends");
        }
    }
}

/// In small pieces, so that nobody waits long for the writer.
async fn maintain_store(store: &dyn Store) {
    loop {
        match store.maintain(clock::current_time()).await {
            Ok(done) if done.more => tokio::task::yield_now().await,
            Ok(_) | Err(StoreError::Closed) => return,
            Err(error) => return tracing::warn!(%error, "the log was not tidied"),
        }
    }
}
