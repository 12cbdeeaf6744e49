//! A node's lease as it sees it itself: by its own monotonic clock, from before the renewal was asked for.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use gander_store::StoreError;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::ClusterMember;
use crate::hub::{HubInner, lock_hub_mutex};

/// Draining does not wait longer for a store that is away.
const ANNOUNCE_TIMEOUT: Duration = Duration::from_secs(1);

/// Until when this node may act for its sessions.
pub(in crate::hub) struct Lease {
    fence: Duration,
    state: Mutex<LeaseState>,
}

struct LeaseState {
    renewed: Option<Instant>,
    /// Cancelled when it is lost; another one for the next.
    lost: CancellationToken,
}

impl Lease {
    pub(super) fn new(fence: Duration) -> Self {
        Self { fence, state: Mutex::new(LeaseState { renewed: None, lost: CancellationToken::new() }) }
    }

    /// Cancelled when the lease that counts now is lost. Whoever acts for a session stops then.
    pub(in crate::hub) fn lost(&self) -> CancellationToken {
        lock_hub_mutex(&self.state).lost.clone()
    }

    pub(in crate::hub) fn is_valid(&self) -> bool {
        let state = lock_hub_mutex(&self.state);
        state.renewed.is_some_and(|at| at.elapsed() < self.fence) && !state.lost.is_cancelled()
    }

    /// The store has it, asked for at this time.
    fn renew(&self, at: Instant) {
        let mut state = lock_hub_mutex(&self.state);
        state.renewed = Some(at);
        if state.lost.is_cancelled() {
            state.lost = CancellationToken::new();
        }
    }

    /// Gives up what was not renewed in time; says when to look again.
    fn fence_if_overdue(&self) -> Instant {
        let mut state = lock_hub_mutex(&self.state);
        let now = Instant::now();
        match state.renewed.map(|at| at + self.fence) {
            Some(deadline) if deadline > now => deadline,
            Some(_) => {
                tracing::warn!("this node could not renew its lease: everything it runs is stopped");
                state.renewed = None;
                state.lost.cancel();
                now + self.fence
            }
            None => now + self.fence,
        }
    }
}

/// Renews for as long as the hub lives.
pub(super) async fn keep_lease(inner: Arc<HubInner>) {
    let Some(member) = &inner.cluster else { return };
    loop {
        tokio::select! {
            () = tokio::time::sleep(member.options.times.renew) => {}
            () = inner.stop.cancelled() => return,
        }
        tokio::select! {
            renewed = renew_lease(&inner, member) => {
                if let Err(error) = renewed {
                    tracing::warn!(%error, "the lease was not renewed");
                }
            }
            () = inner.stop.cancelled() => return,
        }
    }
}

pub(super) async fn renew_lease(inner: &HubInner, member: &ClusterMember) -> Result<(), StoreError> {
    let Some(cluster) = inner.store.cluster() else { return Err(StoreError::Closed) };
    // From before the call: the store's clock starts the lease some time after this.
    let asked = Instant::now();
    let info = member.info(inner.draining.load(std::sync::atomic::Ordering::Acquire));
    cluster.renew_lease(&info, member.options.times.take_over).await?;
    member.lease.renew(asked);
    Ok(())
}

impl HubInner {
    /// Tells the others at once that this node takes no new work. If that fails the next renewal tells them.
    pub(in crate::hub) async fn announce_draining(&self) {
        let Some(member) = &self.cluster else { return };
        if let Ok(Err(error)) = tokio::time::timeout(ANNOUNCE_TIMEOUT, renew_lease(self, member)).await {
            tracing::debug!(%error, "other nodes do not know yet that this one drains");
        }
    }
}

/// Stops everything once the lease was not renewed in time. Apart from the renewal, which may hang.
pub(super) async fn watch_lease(inner: Arc<HubInner>) {
    let Some(member) = &inner.cluster else { return };
    loop {
        let next = member.lease.fence_if_overdue();
        tokio::select! {
            () = tokio::time::sleep_until(next) => {}
            () = inner.stop.cancelled() => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_lease_that_is_not_renewed_is_lost_and_a_later_one_counts_anew() {
        let lease = Lease::new(Duration::from_secs(10));
        assert!(!lease.is_valid());
        lease.renew(Instant::now());
        let lost = lease.lost();
        tokio::time::advance(Duration::from_secs(9)).await;
        lease.fence_if_overdue();
        assert!(lease.is_valid() && !lost.is_cancelled());
        tokio::time::advance(Duration::from_secs(2)).await;
        assert!(!lease.is_valid(), "also before anybody looked");
        lease.fence_if_overdue();
        assert!(lost.is_cancelled());
        lease.renew(Instant::now());
        assert!(lease.is_valid() && lost.is_cancelled() && !lease.lost().is_cancelled());
    }
}
