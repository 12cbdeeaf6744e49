//! This hub as one of several nodes over one store: its lease, and commands that go to the node that owns a session.

mod inbox;
mod lease;
mod remote;

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use gander_domain::{Accepted, IdGenerator as _, RunId, SessionId, SessionView};
use gander_store::clock::SystemIds;
use gander_store::{ClusterStore, CommandId, NodeId, NodeInfo, NodeStatus, SessionCommand, StoreError};
use tokio::time::Instant;

pub(super) use lease::Lease;
pub(super) use remote::{RemoteAnswer, RemoteRequest, empty_folder_notice, remote_lent_notice};

use super::session_task::{Reply, SessionRequest};
use super::{Hub, HubError, HubInner, lock_hub_mutex};

/// Commands of other nodes that are remembered, so that one that is read twice is carried out once.
const MAX_HANDLED: usize = 8_192;

/// Whether a session can be run by nodes of one label alone, because of the folder it works in: which.
pub type PinnedTo = Arc<dyn Fn(&SessionView) -> Option<String> + Send + Sync>;

/// Where this node keeps the private folder that a session was given on another one; none if the folder is as it was.
pub type FindPrivateFolder = Arc<dyn Fn(&SessionView) -> Option<PrivateFolder> + Send + Sync>;

/// A session's private folder on this node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrivateFolder {
    pub path: String,
    /// Nothing was there: what the session wrote before is on another node.
    pub is_new: bool,
}

/// What a node is to the others, and how patient it is.
#[derive(Clone)]
pub struct ClusterOptions {
    pub role: NodeRole,
    /// Where its local disks are.
    pub label: String,
    /// The build's version.
    pub version: String,
    /// For new sessions, by the folder they work in.
    pub pinned_to: PinnedTo,
    /// For runs of sessions that have a private folder.
    pub private_folder: FindPrivateFolder,
    pub times: ClusterTimes,
}

/// What a node does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NodeRole {
    /// Everything.
    All,
    /// Serves clients, runs nothing.
    Gateway,
    /// Runs sessions.
    Worker,
}

impl NodeRole {
    /// As it stands in settings.
    pub fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Gateway => "gateway",
            Self::Worker => "worker",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        [Self::All, Self::Gateway, Self::Worker].into_iter().find(|role| role.name() == name)
    }
}

/// How often a node looks, and how long it waits.
#[derive(Clone, Copy, Debug)]
pub struct ClusterTimes {
    /// A lease is renewed so often.
    pub renew: Duration,
    /// A node that could not renew for so long stops what it runs, by its own monotonic clock.
    pub fence: Duration,
    /// Others take its sessions so long after its last renewal. Longer than `fence`, so that it has stopped by then.
    pub take_over: Duration,
    /// Commands, answers and work are looked for so often, without any hint.
    pub poll: Duration,
    /// Sessions that are followed here are compared with the store so often, without any hint.
    pub refresh: Duration,
    /// Sessions that the store says are this node's are compared with those that it runs so often.
    pub reconcile: Duration,
    /// A command that nobody took for so long is withdrawn.
    pub command: Duration,
}

impl Default for ClusterTimes {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self {
            renew: seconds(4),
            fence: seconds(10),
            take_over: seconds(17),
            poll: seconds(1),
            refresh: seconds(2),
            reconcile: seconds(10),
            command: seconds(40),
        }
    }
}

/// This node among the others.
pub(super) struct ClusterMember {
    pub(super) options: ClusterOptions,
    pub(super) lease: Lease,
    /// Commands of this node that wait for their answer.
    waiting: Mutex<HashMap<CommandId, WaitingCommand>>,
    handled: Mutex<HandledCommands>,
}

struct WaitingCommand {
    session: SessionId,
    since: Instant,
    reply: WaitingReply,
}

enum WaitingReply {
    Command(Reply<Accepted>),
    /// Answered by the session being gone.
    Delete(Reply<()>),
}

/// Why a session's requests go to another node.
#[derive(Clone, Debug)]
pub(super) enum ForwardReason {
    /// Another node owns it, or this one takes no new work.
    Elsewhere,
    /// Only nodes of this label may own it.
    Pinned(String),
}

impl ClusterMember {
    pub(super) fn new(options: ClusterOptions) -> Self {
        let lease = Lease::new(options.times.fence);
        Self { options, lease, waiting: Mutex::default(), handled: Mutex::default() }
    }

    pub(super) fn pinned_to(&self, view: &SessionView) -> Option<String> {
        (self.options.pinned_to)(view)
    }

    pub(super) fn private_folder(&self, view: &SessionView) -> Option<PrivateFolder> {
        (self.options.private_folder)(view)
    }

    fn info(&self, draining: bool) -> NodeInfo {
        NodeInfo {
            label: self.options.label.clone(),
            role: self.options.role.name().to_owned(),
            version: self.options.version.clone(),
            draining,
        }
    }

    /// A command whose append was not stored is carried out again when it is read again.
    pub(super) fn forget_handled(&self, commands: impl IntoIterator<Item = CommandId>) {
        let mut handled = lock_hub_mutex(&self.handled);
        commands.into_iter().for_each(|command| handled.remove(command));
    }
}

/// The commands that were taken in last, the oldest first.
#[derive(Default)]
struct HandledCommands {
    known: HashSet<CommandId>,
    order: VecDeque<CommandId>,
}

impl HandledCommands {
    /// False if it is known already.
    fn insert(&mut self, command: CommandId) -> bool {
        if !self.known.insert(command) {
            return false;
        }
        self.order.push_back(command);
        if self.order.len() > MAX_HANDLED
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
        true
    }

    fn remove(&mut self, command: CommandId) {
        if self.known.remove(&command) {
            self.order.retain(|known| *known != command);
        }
    }
}

impl Hub {
    /// The same as one of several nodes. Before anybody else has the hub; the store must be one of a cluster.
    #[must_use]
    pub fn with_cluster(mut self, options: ClusterOptions) -> Self {
        if let Some(inner) = Arc::get_mut(&mut self.inner)
            && inner.store.cluster().is_some()
        {
            inner.cluster = Some(ClusterMember::new(options));
        }
        self
    }

    /// The nodes over the same store; none if it is one process's own.
    pub async fn cluster_nodes(&self) -> Result<Option<Vec<NodeStatus>>, StoreError> {
        match self.inner.store.cluster() {
            Some(cluster) => cluster.nodes().await.map(Some),
            None => Ok(None),
        }
    }

    /// What this node does among others; none if it is the only one.
    pub fn role(&self) -> Option<NodeRole> {
        self.inner.cluster.as_ref().map(|member| member.options.role)
    }

    /// The name of this node, if it is one of several.
    pub fn node(&self) -> Option<NodeId> {
        self.inner.cluster.as_ref().and_then(|_| self.inner.store.cluster()).map(ClusterStore::node)
    }

    /// False for a node that runs sessions for others to show.
    pub fn serves_clients(&self) -> bool {
        self.role() != Some(NodeRole::Worker)
    }

    /// False if this node lost its lease: it runs nothing until it has it again.
    pub fn has_lease(&self) -> bool {
        self.inner.cluster.as_ref().is_none_or(|member| member.lease.is_valid())
    }
}

impl HubInner {
    /// Whether this node may own sessions now.
    pub(super) fn takes_sessions(&self) -> bool {
        self.cluster.as_ref().is_none_or(|member| {
            member.options.role != NodeRole::Gateway && !self.draining.load(std::sync::atomic::Ordering::Acquire)
        })
    }

    /// Sends a request to whichever node owns the session.
    pub(super) async fn forward_request(&self, session: SessionId, request: SessionRequest, why: &ForwardReason) {
        match request {
            SessionRequest::Command { caller, command, ack, reply } => {
                let lent = self.take_lent(command.prompted_run());
                let request = RemoteRequest::Command { caller, command, ack, lent };
                self.send_remote(session, &request, WaitingReply::Command(reply), why).await;
            }
            SessionRequest::Delete(reply) => {
                self.send_remote(session, &RemoteRequest::Delete, WaitingReply::Delete(reply), why).await;
            }
            SessionRequest::View(reply) => {
                drop(reply.send(self.view_at_rest(session).await.map_err(HubError::from)));
            }
            // Its row still waits: whoever owns the session now finds it.
            SessionRequest::Remote(command) => {
                if let Some(member) = &self.cluster {
                    member.forget_handled([command.id]);
                }
            }
            SessionRequest::Wake => {}
        }
    }

    /// What the client lent to this run stays with this node: the other one is told that there was something.
    fn take_lent(&self, run: Option<RunId>) -> bool {
        run.is_some_and(|run| lock_hub_mutex(&self.client_resources).remove(&run).is_some())
    }

    async fn send_remote(&self, session: SessionId, request: &RemoteRequest, reply: WaitingReply, why: &ForwardReason) {
        let sent = match self.find_possible_owner(why).await {
            Ok(()) => self.insert_command(session, request, reply).await,
            Err(error) => Err((error, Some(reply))),
        };
        match sent {
            Ok(()) | Err((_, None)) => {}
            Err((error, Some(WaitingReply::Command(reply)))) => drop(reply.send(Err(error.into()))),
            Err((error, Some(WaitingReply::Delete(reply)))) => drop(reply.send(Err(error.into()))),
        }
    }

    /// A session on a local disk of nodes that are gone is not promised to anybody.
    async fn find_possible_owner(&self, why: &ForwardReason) -> Result<(), StoreError> {
        let (ForwardReason::Pinned(label), Some(cluster)) = (why, self.store.cluster()) else { return Ok(()) };
        let is_possible = |node: &NodeStatus| {
            node.lease.is_some() && node.info.label == *label && node.info.role != NodeRole::Gateway.name()
        };
        if cluster.nodes().await?.iter().any(is_possible) { Ok(()) } else { Err(StoreError::Pinned(label.clone())) }
    }

    async fn insert_command(
        &self,
        session: SessionId,
        request: &RemoteRequest,
        reply: WaitingReply,
    ) -> Result<(), (StoreError, Option<WaitingReply>)> {
        let (Some(member), Some(cluster)) = (&self.cluster, self.store.cluster()) else {
            return Err((StoreError::Closed, Some(reply)));
        };
        let body = match serde_json::to_value(request) {
            Ok(body) => body,
            Err(error) => return Err((StoreError::Invalid(error.to_string()), Some(reply))),
        };
        let id = CommandId(SystemIds.next_id());
        // Before it is sent: its answer may be here before the call returns.
        lock_hub_mutex(&member.waiting).insert(id, WaitingCommand { session, since: Instant::now(), reply });
        let command = SessionCommand { id, session, origin: cluster.node(), body };
        match cluster.send_command(command).await {
            Ok(()) => Ok(()),
            Err(error) => Err((error, lock_hub_mutex(&member.waiting).remove(&id).map(|waiting| waiting.reply))),
        }
    }
}
