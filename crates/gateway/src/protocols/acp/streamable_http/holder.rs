//! Which node holds a connection. Requests for it that come in at another node are passed on to that one: a connection's
//! requests and streams meet in one place.

use std::collections::HashSet;
use std::sync::PoisonError;
use std::time::{Duration, Instant};

use gander_domain::Seq;
use gander_store::{ClusterStore, Durability, NodeId, ScopeAppend, Store, StoreError, clock};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::Connections;
use super::journal::is_known_connection;

/// How the names begin under which holders are noted.
const SCOPE_PREFIX: &str = "connection_holder/";

/// Which nodes live is known for so long.
const NODES_TTL: Duration = Duration::from_secs(1);

/// Two nodes that want the same connection at once come to an end soon.
const MAX_TRIES: u32 = 8;

/// A node, and where it is reached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectionHolder {
    node: NodeId,
    pub(in crate::protocols::acp) address: String,
}

/// From whom a connection is not taken.
#[derive(Clone, Copy)]
enum RespectedHolder<'a> {
    /// A node that has its lease.
    Living,
    AnyBut(&'a ConnectionHolder),
    Nobody,
}

/// Which nodes live, and since when that is known.
pub(super) type LivingNodes = Option<(Instant, HashSet<NodeId>)>;

impl Connections {
    /// The other node that holds this connection. None: it is served here. One that nobody holds any more is taken over.
    pub async fn find_other_holder(&self, id: Uuid) -> Result<Option<ConnectionHolder>, StoreError> {
        if self.lock().contains_key(&id) {
            return Ok(None);
        }
        self.hold_unless(id, RespectedHolder::Living).await
    }

    /// Takes a connection from a node that does not answer, unless another one has done so.
    pub async fn take_over(&self, id: Uuid, gone: &ConnectionHolder) -> Result<Option<ConnectionHolder>, StoreError> {
        self.hold_unless(id, RespectedHolder::AnyBut(gone)).await
    }

    /// Notes that a connection that was just made is held here.
    pub(super) async fn note_held(&self, id: Uuid) {
        if let Err(error) = self.hold_unless(id, RespectedHolder::Nobody).await {
            tracing::warn!(%error, "it is not known that a connection is here");
        }
    }

    async fn hold_unless(
        &self,
        id: Uuid,
        respected: RespectedHolder<'_>,
    ) -> Result<Option<ConnectionHolder>, StoreError> {
        let store = self.services.hub.store();
        let (Some(cluster), Some(address)) = (store.cluster(), self.services.nodes.address.get()) else {
            return Ok(None);
        };
        let (scope, own) = (holder_scope(id), ConnectionHolder { node: cluster.node(), address: address.clone() });
        for _ in 0..MAX_TRIES {
            let (last, holder) = read_holder(&**store, &scope).await?;
            match holder {
                Some(holder) if holder.node == own.node => return Ok(None),
                Some(holder) if self.is_respected(cluster, &holder, respected).await? => return Ok(Some(holder)),
                None if !is_known_connection(&**store, id).await? => return Ok(None),
                Some(_) | None => {}
            }
            let fact = serde_json::to_value(&own).map_err(|error| StoreError::Invalid(error.to_string()))?;
            let append =
                ScopeAppend { scope: scope.clone(), at: clock::current_time(), facts: vec![fact], after: Some(last) };
            match store.append_scope(append, Durability::Relaxed).await {
                Ok(_) => return Ok(None),
                Err(StoreError::Gap { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Err(StoreError::Busy("several nodes want the same connection".to_owned()))
    }

    async fn is_respected(
        &self,
        cluster: &dyn ClusterStore,
        holder: &ConnectionHolder,
        respected: RespectedHolder<'_>,
    ) -> Result<bool, StoreError> {
        match respected {
            RespectedHolder::Living => self.is_alive(cluster, holder.node).await,
            RespectedHolder::AnyBut(gone) => Ok(holder != gone),
            RespectedHolder::Nobody => Ok(false),
        }
    }

    async fn is_alive(&self, cluster: &dyn ClusterStore, node: NodeId) -> Result<bool, StoreError> {
        let known = {
            let nodes = self.nodes.lock().unwrap_or_else(PoisonError::into_inner);
            nodes.as_ref().filter(|(since, _)| since.elapsed() < NODES_TTL).map(|(_, nodes)| nodes.contains(&node))
        };
        if let Some(known) = known {
            return Ok(known);
        }
        let nodes: HashSet<NodeId> =
            cluster.nodes().await?.into_iter().filter(|node| node.lease.is_some()).map(|node| node.node).collect();
        let is_alive = nodes.contains(&node);
        *self.nodes.lock().unwrap_or_else(PoisonError::into_inner) = Some((Instant::now(), nodes));
        Ok(is_alive)
    }
}

/// Nobody holds it any more.
pub(super) async fn delete_holder(store: &dyn Store, id: &str) -> Result<(), StoreError> {
    store.delete_scope(&format!("{SCOPE_PREFIX}{id}")).await
}

/// The last one that was noted, and its place.
async fn read_holder(store: &dyn Store, scope: &str) -> Result<(Seq, Option<ConnectionHolder>), StoreError> {
    let (mut last, mut holder) = (Seq::ZERO, None);
    loop {
        let page = store.read_scope(scope, last, 64).await?;
        let Some(entry) = page.into_iter().next_back() else { return Ok((last, holder)) };
        last = entry.seq;
        holder = serde_json::from_value(entry.fact).ok();
    }
}

fn holder_scope(id: Uuid) -> String {
    format!("{SCOPE_PREFIX}{id}")
}
