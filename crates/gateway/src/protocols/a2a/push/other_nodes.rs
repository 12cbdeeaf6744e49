//! Which of several nodes sends what. Each update is sent by one node; while nodes change places it may be sent twice, with
//! the same id.
//!
//! What needs credentials that one node's vault has is sent by that node, everything else by the living node with the
//! lowest name.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::time::Duration;

use gander_domain::Seq;
use gander_store::{NodeStatus, StoreError};
use tokio_util::sync::CancellationToken;

use super::credentials::has_push_credentials;
use super::journal::DeliveryState;
use super::{ActiveReceiver, PushInner, PushNotifications, Receiver};

/// How often is looked for what other nodes were asked for, and for nodes that are gone.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

impl PushNotifications {
    /// Follows what other nodes are asked for and takes over from those that are gone, until it is stopped.
    pub async fn follow_other_nodes(self, stop: CancellationToken) {
        if self.inner.hub.role().is_none() {
            return;
        }
        let mut seen = None;
        loop {
            match self.refresh(seen).await {
                Ok(now) => seen = Some(now),
                Err(error) => tracing::debug!(%error, "receivers of other nodes were not read"),
            }
            tokio::select! {
                () = tokio::time::sleep(LOOK_INTERVAL) => {}
                () = stop.cancelled() => return,
            }
        }
    }

    /// Looks at once, for a caller who may have asked another node a moment ago.
    pub(in crate::protocols::a2a) async fn refresh_now(&self) -> Result<(), StoreError> {
        if self.inner.hub.role().is_some() {
            self.refresh(None).await?;
        }
        Ok(())
    }

    /// Reads the log if it has grown or if this node leads since, or leads no longer; gives what it has seen.
    async fn refresh(&self, seen: Option<(Seq, bool)>) -> Result<(Seq, bool), StoreError> {
        let Some(cluster) = self.inner.hub.store().cluster() else { return Ok((Seq::ZERO, true)) };
        let nodes = cluster.nodes().await?;
        let leader = nodes.iter().filter(|node| is_candidate(node)).map(|node| node.node).min();
        let leads = leader == Some(cluster.node());
        // Before the log is read: what is added meanwhile is news with the next look.
        let heads = cluster.scope_heads(&[self.inner.facts.scope()]).await?;
        let now = (heads.first().map_or(Seq::ZERO, |(_, head)| *head), leads);
        self.inner.is_leader.store(leads, Ordering::Relaxed);
        if seen != Some(now) {
            self.take_receivers(self.inner.facts.read_receivers().await?);
        }
        Ok(now)
    }

    fn take_receivers(&self, stored: Vec<(Receiver, DeliveryState)>) {
        let keys: BTreeSet<_> = stored.iter().map(|(receiver, _)| (receiver.run, receiver.config.id.clone())).collect();
        let gone = self.inner.lock().extract_if(.., |key, _| !keys.contains(key)).collect::<Vec<_>>();
        gone.iter().for_each(|(_, held)| held.stop.cancel());
        for (receiver, state) in stored {
            let delivers = state == DeliveryState::Pending && self.inner.delivers(&receiver);
            let key = (receiver.run, receiver.config.id.clone());
            let is_known = self.inner.lock().get(&key).is_some_and(|held| held.stays(&receiver, state, delivers));
            if !is_known {
                self.start_delivery(receiver, state);
            }
        }
    }
}

impl PushInner {
    /// Whether this node sends to that receiver.
    pub(super) fn delivers(&self, receiver: &Receiver) -> bool {
        let is_leader = self.is_leader.load(Ordering::Relaxed);
        match (receiver.guarded, self.facts.shares_secrets()) {
            (false, _) => is_leader,
            (true, false) => has_push_credentials(&receiver.config),
            (true, true) => is_leader && has_push_credentials(&receiver.config),
        }
    }
}

impl ActiveReceiver {
    /// A delivery under way is not begun anew because it has come further.
    fn stays(&self, stored: &Receiver, state: DeliveryState, delivers: bool) -> bool {
        let open = state == DeliveryState::Pending;
        self.receiver.config == stored.config && self.open == open && self.delivering == delivers
    }
}

fn is_candidate(node: &NodeStatus) -> bool {
    node.lease.is_some() && !node.info.draining
}
