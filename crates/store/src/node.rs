//! Nodes, what they tell each other, and who owns a session.

use std::time::Duration;

use gander_domain::SessionId;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

/// One life of one process: a restarted server is another node, so that nothing of its earlier life counts for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NodeId(pub Uuid);

/// Names a command while it waits. Made by the node that sends it, before it sends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CommandId(pub Uuid);

impl std::fmt::Display for NodeId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// What a node says of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeInfo {
    /// Where its local disks are: a session that is pinned to a label is owned by nodes of this label alone.
    pub label: String,
    /// `all`, `gateway` or `worker`.
    pub role: String,
    /// The build's version.
    pub version: String,
    /// It takes no new work.
    pub draining: bool,
}

/// A node that has a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeStatus {
    pub node: NodeId,
    pub info: NodeInfo,
    /// How long its lease lasts, by the store's clock; none if it has ended.
    pub lease: Option<Duration>,
    /// How long ago it was renewed.
    pub renewed: Duration,
    /// Sessions that it owns.
    pub sessions: u64,
}

/// What becomes of a session's owner with an append. Either way the epoch stays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ownership {
    /// The writer owns the session, also if it had released it and nobody has claimed it since.
    Keep,
    /// Nothing runs: any node may claim the session. It is left with work if commands wait for it.
    #[default]
    Release,
}

/// A command on its way to the owner of its session.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionCommand {
    pub id: CommandId,
    pub session: SessionId,
    /// The node that waits for the answer.
    pub origin: NodeId,
    /// In the hub's own form.
    pub body: Value,
}

/// What became of a command. In the same commit as the entries that it caused.
#[derive(Clone, Debug, PartialEq)]
pub struct CommandAnswer {
    pub command: CommandId,
    /// In the hub's own form.
    pub body: Value,
}
