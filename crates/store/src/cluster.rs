//! What several nodes need of one store: leases of nodes, commands for sessions that another node owns, hints.
//!
//! Only a store that several processes open at once has it, see [`super::Store::cluster`]. One that belongs to a single
//! process owns every session by holding the file.

use std::time::Duration;

use async_trait::async_trait;
use gander_domain::{Seq, SessionId};
use serde_json::Value;

use crate::error::StoreError;
use crate::hints::Hints;
use crate::node::{CommandAnswer, CommandId, NodeId, NodeInfo, NodeStatus, SessionCommand};
use crate::types::Claim;

/// A store as one of several nodes sees it.
///
/// A session's owner may be: a node whose lease lasts, a node whose lease has ended, or nobody. A session *has work* if
/// its last append kept it or if commands wait for it. [`super::Store::claim`] succeeds unless another node owns the
/// session and its lease lasts ([`StoreError::Owned`]), or it is pinned to another label ([`StoreError::Pinned`]).
#[async_trait]
pub trait ClusterStore: Send + Sync {
    /// The node that this handle of the store belongs to.
    fn node(&self) -> NodeId;

    /// Writes this node's row. Until `ttl` has passed by the store's clock nobody takes its sessions.
    async fn renew_lease(&self, info: &NodeInfo, ttl: Duration) -> Result<(), StoreError>;

    /// Ends the lease; sessions that this node owns are left with their work to whoever claims them.
    async fn leave(&self) -> Result<(), StoreError> {
        self.end_lease_of(self.node()).await
    }

    /// The same for another node, of which the caller knows that it is dead. One that is not loses its sessions, as if its
    /// lease had ended, and nothing else: their epochs keep it from writing.
    async fn end_lease_of(&self, node: NodeId) -> Result<(), StoreError>;

    /// Every node that has a row, by id.
    async fn nodes(&self) -> Result<Vec<NodeStatus>, StoreError>;

    /// Claims sessions that have work and no owner whose lease lasts, as far as this node's label allows.
    ///
    /// Those that another node is just claiming are passed over.
    async fn claim_work(&self, limit: u32) -> Result<Vec<(SessionId, Claim)>, StoreError>;

    /// Sessions that this node owns, by id. One that it does not run is left from a claim whose answer was lost.
    async fn owned_sessions(&self) -> Result<Vec<SessionId>, StoreError>;

    /// Leaves a command for the owner of its session, who is hinted at it. Without an owner, the session has work.
    ///
    /// Commands of one node for one session are seen in the order in which these calls returned.
    async fn send_command(&self, command: SessionCommand) -> Result<(), StoreError>;

    /// Unanswered commands for sessions that this node owns, the oldest first.
    async fn pending_commands(&self, limit: u32) -> Result<Vec<SessionCommand>, StoreError>;

    /// Takes the answers to this node's commands; each is given once.
    async fn take_answers(&self) -> Result<Vec<CommandAnswer>, StoreError>;

    /// Takes an unanswered command back; false if it was answered.
    async fn withdraw_command(&self, command: CommandId) -> Result<bool, StoreError>;

    /// Compares the ends of all followed sessions with the store and wakes whoever follows one that grew.
    async fn refresh_tails(&self) -> Result<(), StoreError>;

    /// Where these logs of no session end; those that nothing was written to are left out. Another node may have written to
    /// one whose fold is kept in memory here.
    async fn scope_heads(&self, scopes: &[&str]) -> Result<Vec<(String, Seq)>, StoreError>;

    /// Waits for a hint. A hint may be lost, late or wrong: each of the things it may mean must also be looked for
    /// now and then.
    async fn next_hint(&self) -> Hints;
}

/// A command's body as a row holds it. One that its reader would refuse, being nested too deeply, is refused here.
pub(crate) fn encode_command_body(body: &Value) -> Result<String, StoreError> {
    let text = body.to_string();
    match serde_json::from_str::<Value>(&text) {
        Ok(_) => Ok(text),
        Err(error) => Err(StoreError::Invalid(format!("command cannot be sent to another node: {error}"))),
    }
}
