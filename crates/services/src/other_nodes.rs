//! Folds of fact logs that are kept in memory, read again when another node wrote to them.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use gander_domain::Seq;
use gander_store::{ClusterStore, NodeStatus, StoreError};
use tokio_util::sync::CancellationToken;

use crate::{Services, extensions, grants, schedules, trust};

/// A grant that was taken back at one node counts at the others for at most this long.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// The nodes are counted with every so many looks.
const GATEWAY_LOOKS: u64 = 5;

/// Follows what other nodes grant, trust, plan and add, until it is stopped. Over a store of one process there is nothing to
/// follow.
pub async fn follow_other_nodes(services: Arc<Services>, stop: CancellationToken) {
    let Some(cluster) = services.hub.store().cluster() else { return };
    let mut seen = HashMap::new();
    for look in 0_u64.. {
        if look % GATEWAY_LOOKS == 0
            && let Err(error) = count_gateways(&services, cluster).await
        {
            tracing::debug!(%error, "the nodes were not counted");
        }
        tokio::select! {
            () = tokio::time::sleep(LOOK_INTERVAL) => {}
            () = stop.cancelled() => return,
        }
        if let Err(error) = refresh_changed(&services, cluster, &mut seen).await {
            tracing::debug!(%error, "what other nodes wrote was not read");
        }
    }
}

/// Limits for callers elsewhere are shared out among the nodes that serve them.
async fn count_gateways(services: &Services, cluster: &dyn ClusterStore) -> Result<(), StoreError> {
    let serves = |node: &NodeStatus| node.lease.is_some() && !node.info.draining && node.info.role != "worker";
    let count = cluster.nodes().await?.iter().filter(|node| serves(node)).count();
    services.nodes.live_gateways.store(u32::try_from(count.max(1)).unwrap_or(u32::MAX), Ordering::Relaxed);
    Ok(())
}

/// A log is noted as seen only after it was read: if that fails it is tried again with the next look.
async fn refresh_changed(
    services: &Services,
    cluster: &dyn ClusterStore,
    seen: &mut HashMap<String, Seq>,
) -> Result<(), StoreError> {
    let [networks, pins, registry, secrets] = extensions::SCOPES;
    let scopes = [grants::SCOPE, trust::SCOPE, schedules::SCOPE, networks, pins, registry, secrets];
    for (scope, head) in cluster.scope_heads(&scopes).await? {
        if seen.get(&scope) == Some(&head) {
            continue;
        }
        match scope.as_str() {
            grants::SCOPE => services.grants.refresh().await?,
            trust::SCOPE => services.trust.refresh().await?,
            schedules::SCOPE => services.schedules.refresh().await?,
            _ => services.extensions.refresh().await?,
        }
        seen.insert(scope, head);
    }
    Ok(())
}
