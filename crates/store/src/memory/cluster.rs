//! The model as several nodes see it: leases by one clock, owners, commands and hints that may go wrong.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use gander_domain::{Principal, Seq, SessionId};
use tokio::time::Instant;

use super::MemoryStore;
use super::model_faults::ModelFaults;
use super::state::MemoryState;
use crate::cluster::{ClusterStore, encode_command_body};
use crate::feed::Feeds;
use crate::hints::{HintBox, Hints};
use crate::node::{CommandAnswer, CommandId, NodeId, NodeInfo, NodeStatus, Ownership, SessionCommand};
use crate::{Append, Claim, Epoch, StoreError};

/// One node's handle of the model.
pub(super) struct Member {
    pub(super) node: NodeId,
    pub(super) hints: Arc<HintBox>,
    pub(super) faults: Option<Arc<dyn ModelFaults>>,
}

struct NodeLease {
    info: NodeInfo,
    renewed: Instant,
    until: Instant,
}

/// What the nodes share beside the logs.
#[derive(Default)]
pub(super) struct ClusterState {
    nodes: BTreeMap<NodeId, NodeLease>,
    mailboxes: BTreeMap<NodeId, (Arc<HintBox>, Arc<Feeds>)>,
    /// In the order in which they were sent.
    commands: Vec<(SessionCommand, Option<CommandAnswer>)>,
}

/// Who may write to a session.
#[derive(Default)]
pub(super) struct MemoryOwner {
    node: Option<NodeId>,
    has_work: bool,
    pinned_to: Option<String>,
}

impl MemoryOwner {
    /// Nobody's, of a session that only nodes of a label may own.
    pub(super) fn pinned_to(label: Option<String>) -> Self {
        Self { pinned_to: label, ..Self::default() }
    }

    /// By whom a session was claimed or kept.
    pub(super) fn keep(&mut self, node: Option<NodeId>) {
        self.node = node;
        self.has_work = true;
    }

    pub(super) fn apply(&mut self, ownership: Ownership, node: Option<NodeId>) {
        match ownership {
            Ownership::Keep => self.keep(node),
            Ownership::Release => {
                self.node = None;
                self.has_work = false;
            }
        }
    }
}

impl ClusterState {
    /// Whether this node may claim a session of this owner.
    pub(super) fn check_claim(&self, owner: &MemoryOwner, node: NodeId) -> Result<(), StoreError> {
        if let Some(label) = &owner.pinned_to
            && self.nodes.get(&node).is_none_or(|lease| lease.info.label != *label)
        {
            return Err(StoreError::Pinned(label.clone()));
        }
        match owner.node.filter(|other| *other != node && self.has_lease(*other)) {
            Some(other) => Err(StoreError::Owned(other)),
            None => Ok(()),
        }
    }

    fn has_lease(&self, node: NodeId) -> bool {
        self.nodes.get(&node).is_some_and(|lease| lease.until > Instant::now())
    }

    fn has_commands(&self, session: SessionId) -> bool {
        self.commands.iter().any(|(command, answer)| command.session == session && answer.is_none())
    }

    /// False if it was withdrawn, or its answer was taken.
    pub(super) fn has_command(&self, id: CommandId) -> bool {
        self.commands.iter().any(|(command, _)| command.id == id)
    }

    /// Writes down what became of commands; gives the nodes that wait for it.
    pub(super) fn answer_commands(&mut self, answers: Vec<CommandAnswer>) -> Vec<NodeId> {
        let mut origins = Vec::new();
        for given in answers {
            let waiting = self.commands.iter_mut().find(|(command, _)| command.id == given.command);
            if let Some((command, answer @ None)) = waiting {
                origins.push(command.origin);
                *answer = Some(given);
            }
        }
        origins
    }

    pub(super) fn forget_session(&mut self, session: SessionId) {
        self.commands.retain(|(command, answer)| command.session != session || answer.is_some());
    }
}

impl MemoryState {
    /// Whoever releases a session while commands wait for it leaves it with work.
    pub(super) fn has_unowned_work(&self, session: SessionId) -> bool {
        let Some(owner) = self.session_owner(session) else { return false };
        owner.node.is_none() && (owner.has_work || self.cluster.has_commands(session))
    }

    fn claim_work(&mut self, node: NodeId, limit: u32) -> Vec<(SessionId, Claim)> {
        let (cluster, all) = (&self.cluster, self.all_owners());
        let with_work = all.filter(|(session, owner)| owner.has_work || cluster.has_commands(*session));
        let others = with_work.filter(|(_, owner)| owner.node != Some(node));
        let free = others.filter(|(_, owner)| cluster.check_claim(owner, node).is_ok()).map(|(session, _)| session);
        let free: Vec<SessionId> = free.take(limit as usize).collect();
        free.into_iter().filter_map(|session| Some((session, self.claim_session(session, Some(node)).ok()?))).collect()
    }

    fn node_statuses(&self) -> Vec<NodeStatus> {
        let now = Instant::now();
        let status = |(node, lease): (&NodeId, &NodeLease)| NodeStatus {
            node: *node,
            info: lease.info.clone(),
            lease: lease.until.checked_duration_since(now).filter(|left| !left.is_zero()),
            renewed: now.duration_since(lease.renewed),
            sessions: self.all_owners().filter(|(_, owner)| owner.node == Some(*node)).count() as u64,
        };
        self.cluster.nodes.iter().map(status).collect()
    }

    fn leave_cluster(&mut self, node: NodeId) {
        self.cluster.nodes.remove(&node);
        self.cluster.mailboxes.remove(&node);
        self.all_owners_mut().filter(|owner| owner.node == Some(node)).for_each(|owner| owner.node = None);
    }
}

impl MemoryStore {
    /// The same data as another node has it.
    pub fn join_cluster(&self, node: NodeId) -> Self {
        self.join_with(node, None)
    }

    /// The same, where things go wrong on the way.
    pub fn join_with_faults(&self, node: NodeId, faults: Arc<dyn ModelFaults>) -> Self {
        self.join_with(node, Some(faults))
    }

    fn join_with(&self, node: NodeId, faults: Option<Arc<dyn ModelFaults>>) -> Self {
        let (feeds, hints) = (Arc::<Feeds>::default(), Arc::<HintBox>::default());
        self.lock_state().cluster.mailboxes.insert(node, (Arc::clone(&hints), Arc::clone(&feeds)));
        Self { state: Arc::clone(&self.state), feeds, member: Some(Arc::new(Member { node, hints, faults })) }
    }

    /// Tells the followers of every other node how far a session's log goes now.
    pub(super) fn hint_head(&self, state: &MemoryState, session: SessionId, head: Seq, facts_of: Option<&Principal>) {
        let Some(member) = &self.member else { return };
        for (node, (_, feeds)) in &state.cluster.mailboxes {
            if *node != member.node {
                let (feeds, owner) = (Arc::clone(feeds), facts_of.cloned());
                self.deliver_hint(move || {
                    feeds.note_head(session, head);
                    owner.iter().for_each(|owner| feeds.note_change(owner));
                });
            }
        }
    }

    pub(super) fn hint_nodes(&self, state: &MemoryState, hints: Hints, is_meant: impl Fn(NodeId) -> bool) {
        for (node, (mailbox, _)) in &state.cluster.mailboxes {
            if is_meant(*node) {
                let mailbox = Arc::clone(mailbox);
                self.deliver_hint(move || mailbox.put(hints));
            }
        }
    }

    fn deliver_hint(&self, deliver: impl Fn() + Send + Sync + 'static) {
        let Some(faults) = self.faults() else { return deliver() };
        let deliver = Arc::new(deliver);
        for delay in faults.hint_delays() {
            let deliver = Arc::clone(&deliver);
            tokio::spawn(async move {
                tokio::time::sleep(delay).await;
                deliver();
            });
        }
    }

    pub(super) fn faults(&self) -> Option<&Arc<dyn ModelFaults>> {
        self.member.as_ref().and_then(|member| member.faults.as_ref())
    }

    /// What a seeded bug does to an append; gives the epochs of its writer and of whoever may write.
    pub(super) fn change_append(&self, state: &MemoryState, append: &mut Append) -> (Epoch, Epoch) {
        let epochs = (append.epoch, state.session_epoch(append.session).unwrap_or(append.epoch));
        if let Some(faults) = self.faults() {
            if faults.ignores_epoch() {
                append.epoch = epochs.1;
            }
            faults.change_append(&mut append.entries);
        }
        epochs
    }

    /// Forgets the end of a log, as a disk does that lied about its last writes.
    pub fn truncate_log(&self, session: SessionId, head: Seq) -> Result<(), StoreError> {
        let mut state = self.lock_open()?;
        state.truncate_log(session, head)?;
        state.rebuild_folds();
        Ok(())
    }

    pub(super) async fn before_call(&self) -> Result<(), StoreError> {
        match self.faults() {
            Some(faults) => faults.before_call().await,
            None => Ok(()),
        }
    }

    pub(super) async fn after_write(&self) -> Result<(), StoreError> {
        match self.faults() {
            Some(faults) => faults.after_write().await,
            None => Ok(()),
        }
    }

    pub(super) fn node_id(&self) -> Option<NodeId> {
        self.member.as_ref().map(|member| member.node)
    }
}

#[async_trait]
impl ClusterStore for MemoryStore {
    fn node(&self) -> NodeId {
        self.node_id().unwrap_or(NodeId(uuid::Uuid::nil()))
    }

    async fn renew_lease(&self, info: &NodeInfo, ttl: Duration) -> Result<(), StoreError> {
        self.before_call().await?;
        let renewed = Instant::now();
        let lease = NodeLease { info: info.clone(), renewed, until: renewed + ttl };
        self.lock_open()?.cluster.nodes.insert(self.node(), lease);
        self.after_write().await
    }

    async fn end_lease_of(&self, node: NodeId) -> Result<(), StoreError> {
        self.before_call().await?;
        let mut state = self.lock_open()?;
        state.leave_cluster(node);
        self.hint_nodes(&state, Hints { work: true, ..Hints::default() }, |_| true);
        Ok(())
    }

    async fn nodes(&self) -> Result<Vec<NodeStatus>, StoreError> {
        self.before_call().await?;
        Ok(self.lock_open()?.node_statuses())
    }

    async fn scope_heads(&self, scopes: &[&str]) -> Result<Vec<(String, Seq)>, StoreError> {
        self.before_call().await?;
        let state = self.lock_open()?;
        let head = |scope: &&str| ((*scope).to_owned(), state.scope_end(scope));
        Ok(scopes.iter().map(head).filter(|(_, end)| *end > Seq::ZERO).collect())
    }

    async fn claim_work(&self, limit: u32) -> Result<Vec<(SessionId, Claim)>, StoreError> {
        self.before_call().await?;
        let claimed = self.lock_open()?.claim_work(self.node(), limit);
        self.after_write().await?;
        Ok(claimed)
    }

    async fn owned_sessions(&self) -> Result<Vec<SessionId>, StoreError> {
        self.before_call().await?;
        let (state, node) = (self.lock_open()?, Some(self.node()));
        Ok(state.all_owners().filter(|(_, owner)| owner.node == node).map(|(session, _)| session).collect())
    }

    async fn send_command(&self, command: SessionCommand) -> Result<(), StoreError> {
        self.before_call().await?;
        encode_command_body(&command.body)?;
        {
            let mut state = self.lock_open()?;
            state.session_head(command.session)?;
            let owner = state.session_owner(command.session).and_then(|owner| owner.node);
            state.cluster.commands.push((command, None));
            match owner {
                Some(owner) => {
                    self.hint_nodes(&state, Hints { commands: true, ..Hints::default() }, |node| node == owner);
                }
                None => self.hint_nodes(&state, Hints { work: true, ..Hints::default() }, |_| true),
            }
        }
        self.after_write().await
    }

    async fn pending_commands(&self, limit: u32) -> Result<Vec<SessionCommand>, StoreError> {
        self.before_call().await?;
        let (state, node) = (self.lock_open()?, Some(self.node()));
        let is_ours = |session| state.session_owner(session).is_some_and(|owner| owner.node == node);
        let commands = state.cluster.commands.iter().filter(|(_, answer)| answer.is_none());
        let ours = commands.filter(|(command, _)| is_ours(command.session)).map(|(command, _)| command.clone());
        Ok(ours.take(limit as usize).collect())
    }

    async fn take_answers(&self) -> Result<Vec<CommandAnswer>, StoreError> {
        self.before_call().await?;
        let (mut state, node) = (self.lock_open()?, self.node());
        let commands = std::mem::take(&mut state.cluster.commands);
        let (given, rest) =
            commands.into_iter().partition(|(command, answer)| command.origin == node && answer.is_some());
        state.cluster.commands = rest;
        let given: Vec<(SessionCommand, Option<CommandAnswer>)> = given;
        let mut answers: Vec<CommandAnswer> = given.into_iter().filter_map(|(_, answer)| answer).collect();
        if let Some(faults) = self.faults() {
            answers.iter_mut().for_each(|answer| faults.change_answer(answer));
        }
        Ok(answers)
    }

    async fn withdraw_command(&self, command: CommandId) -> Result<bool, StoreError> {
        self.before_call().await?;
        let mut state = self.lock_open()?;
        let before = state.cluster.commands.len();
        state.cluster.commands.retain(|(waiting, answer)| waiting.id != command || answer.is_some());
        Ok(state.cluster.commands.len() < before)
    }

    async fn refresh_tails(&self) -> Result<(), StoreError> {
        self.before_call().await?;
        for session in self.feeds.followed_sessions() {
            let head = self.lock_open()?.session_head(session);
            match head {
                Ok(head) => self.feeds.note_head(session, head),
                Err(StoreError::Deleted(_)) => {
                    let owner = self.lock_open()?.deleted_owner(session);
                    self.feeds.end_session(session, owner.as_ref());
                }
                // Followed before it is stored.
                Err(_) => {}
            }
        }
        Ok(())
    }

    async fn next_hint(&self) -> Hints {
        match &self.member {
            Some(member) => member.hints.take().await,
            None => std::future::pending().await,
        }
    }
}
