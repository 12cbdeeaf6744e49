//! What a node looks for: commands for its sessions, answers to its own, sessions with work and no owner.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use gander_domain::SessionId;
use gander_store::{Claim, ClusterStore, CommandAnswer, Hints, SessionCommand, StoreError};
use tokio::time::Instant;

use super::lease::{keep_lease, renew_lease, watch_lease};
use super::remote::RemoteAnswer;
use super::{ClusterMember, WaitingCommand, WaitingReply};
use crate::hub::session_task::SessionRequest;
use crate::hub::{Hub, HubError, HubInner, lock_hub_mutex};

/// Sessions claimed in one go, so that one node does not take all that another one left.
const CLAIM_LIMIT: u32 = 50;

/// Commands read in one go.
const COMMAND_LIMIT: u32 = 256;

impl Hub {
    /// Joins the other nodes: from now on this one has a lease, takes work and hears of commands.
    pub async fn start_cluster(&self) -> Result<(), StoreError> {
        let Some(member) = &self.inner.cluster else { return Ok(()) };
        renew_lease(&self.inner, member).await?;
        tokio::spawn(keep_lease(Arc::clone(&self.inner)));
        tokio::spawn(watch_lease(Arc::clone(&self.inner)));
        tokio::spawn(watch_inbox_hints(Arc::clone(&self.inner)));
        tokio::spawn(refresh_inbox_tails(Arc::clone(&self.inner)));
        tokio::spawn(reconcile_inbox_sessions(Arc::clone(&self.inner)));
        Ok(())
    }
}

/// A hint or the next look, whichever is first. Losing every hint costs up to one look, nothing else.
async fn watch_inbox_hints(inner: Arc<HubInner>) {
    let (Some(member), Some(cluster)) = (&inner.cluster, inner.store.cluster()) else { return };
    let mut next_look = Instant::now();
    loop {
        let hints = tokio::select! {
            hints = cluster.next_hint() => hints,
            () = tokio::time::sleep_until(next_look) => Hints::ALL,
            () = inner.stop.cancelled() => return,
        };
        if hints == Hints::ALL {
            next_look = Instant::now() + member.options.times.poll;
        }
        tokio::select! {
            looked = inner.look_for(member, cluster, hints) => {
                if let Err(error) = looked {
                    tracing::warn!(%error, "commands and work of the cluster were not looked for");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
            () = inner.stop.cancelled() => return,
        }
    }
}

async fn refresh_inbox_tails(inner: Arc<HubInner>) {
    let (Some(member), Some(cluster)) = (&inner.cluster, inner.store.cluster()) else { return };
    loop {
        tokio::select! {
            () = tokio::time::sleep(member.options.times.refresh) => {}
            () = inner.stop.cancelled() => return,
        }
        if let Err(error) = cluster.refresh_tails().await {
            tracing::debug!(%error, "followed sessions were not compared with the store");
        }
    }
}

/// A claim that was stored and whose answer was lost leaves a session that everybody believes to be run here.
async fn reconcile_inbox_sessions(inner: Arc<HubInner>) {
    let (Some(member), Some(cluster)) = (&inner.cluster, inner.store.cluster()) else { return };
    loop {
        tokio::select! {
            () = tokio::time::sleep(member.options.times.reconcile) => {}
            () = inner.stop.cancelled() => return,
        }
        if !member.lease.is_valid() {
            continue;
        }
        if let Err(error) = inner.claim_forgotten(cluster).await {
            tracing::debug!(%error, "own sessions were not compared with the store");
        }
    }
}

impl HubInner {
    async fn claim_forgotten(self: &Arc<Self>, cluster: &dyn ClusterStore) -> Result<(), StoreError> {
        for session in cluster.owned_sessions().await? {
            if lock_hub_mutex(&self.tasks).contains_key(&session) {
                continue;
            }
            let claim = self.store.claim(session).await?;
            self.start_claimed(session, claim, vec![SessionRequest::Wake]);
        }
        Ok(())
    }

    async fn look_for(
        self: &Arc<Self>,
        member: &ClusterMember,
        cluster: &dyn ClusterStore,
        hints: Hints,
    ) -> Result<(), StoreError> {
        if hints.answers && !lock_hub_mutex(&member.waiting).is_empty() {
            self.take_answers(member, cluster).await?;
        }
        if !member.lease.is_valid() {
            return Ok(());
        }
        let claimed =
            if hints.work && self.takes_sessions() { cluster.claim_work(CLAIM_LIMIT).await? } else { Vec::new() };
        if hints.commands || !claimed.is_empty() {
            // Also those of the sessions just claimed: their tasks must find them at once, or they would give the
            // sessions back.
            let commands = cluster.pending_commands(COMMAND_LIMIT).await?;
            self.deliver_commands(member, commands, claimed);
        }
        Ok(())
    }

    fn deliver_commands(
        self: &Arc<Self>,
        member: &ClusterMember,
        commands: Vec<SessionCommand>,
        claimed: Vec<(SessionId, Claim)>,
    ) {
        let mut claimed: HashMap<SessionId, (Claim, Vec<SessionRequest>)> =
            claimed.into_iter().map(|(session, claim)| (session, (claim, vec![SessionRequest::Wake]))).collect();
        for command in commands {
            let (id, session) = (command.id, command.session);
            if !lock_hub_mutex(&member.handled).insert(id) {
                continue;
            }
            let request = SessionRequest::Remote(Box::new(command));
            match claimed.get_mut(&session) {
                Some((_, requests)) => requests.push(request),
                None => {
                    // A full inbox: it is read again with the next look.
                    if self.try_deliver(session, request).is_some() {
                        member.forget_handled([id]);
                    }
                }
            }
        }
        for (session, (claim, requests)) in claimed {
            for refused in self.start_claimed(session, claim, requests) {
                if let SessionRequest::Remote(command) = refused {
                    member.forget_handled([command.id]);
                }
            }
        }
    }

    async fn take_answers(&self, member: &ClusterMember, cluster: &dyn ClusterStore) -> Result<(), StoreError> {
        for CommandAnswer { command, body } in cluster.take_answers().await? {
            let waiting = lock_hub_mutex(&member.waiting).remove(&command);
            match waiting.map(|waiting| (waiting.session, waiting.reply)) {
                Some((_, WaitingReply::Command(reply))) => drop(reply.send(RemoteAnswer::read(body))),
                // An answer to this is a refusal.
                Some((session, WaitingReply::Delete(reply))) => {
                    drop(reply.send(RemoteAnswer::read(body).and(Err(HubError::Gone(session)))));
                }
                None => {}
            }
        }
        self.check_deleted(member).await;
        self.withdraw_overdue(member, cluster).await
    }

    /// A session that is gone answers whoever wanted that.
    async fn check_deleted(&self, member: &ClusterMember) {
        let deletes: Vec<SessionId> = lock_hub_mutex(&member.waiting)
            .values()
            .filter(|waiting| matches!(waiting.reply, WaitingReply::Delete(_)))
            .map(|waiting| waiting.session)
            .collect();
        for session in deletes {
            if !matches!(self.store.head(session).await, Err(StoreError::Deleted(_))) {
                continue;
            }
            let gone: Vec<WaitingCommand> = lock_hub_mutex(&member.waiting)
                .extract_if(|_, waiting| waiting.session == session)
                .map(|(_, w)| w)
                .collect();
            for waiting in gone {
                match waiting.reply {
                    WaitingReply::Delete(reply) => drop(reply.send(Ok(()))),
                    WaitingReply::Command(reply) => drop(reply.send(Err(StoreError::Deleted(session).into()))),
                }
            }
        }
    }

    /// Whoever waits is told that nobody took its command, once it is certain that nobody will.
    async fn withdraw_overdue(&self, member: &ClusterMember, cluster: &dyn ClusterStore) -> Result<(), StoreError> {
        let limit = member.options.times.command;
        let overdue: Vec<_> = lock_hub_mutex(&member.waiting)
            .iter()
            .filter(|(_, waiting)| waiting.since.elapsed() > limit)
            .map(|(id, _)| *id)
            .collect();
        for id in overdue {
            let withdrawn = cluster.withdraw_command(id).await?;
            let mut all = lock_hub_mutex(&member.waiting);
            // Answered meanwhile: the next look takes it. If not even that does, it went with its deleted session.
            let waits_on = |waiting: &WaitingCommand| !withdrawn && waiting.since.elapsed() < limit * 2;
            if all.get(&id).is_none_or(waits_on) {
                continue;
            }
            let Some(waiting) = all.remove(&id) else { continue };
            drop(all);
            let error = HubError::Store(StoreError::Busy("no node took the command in time".to_owned()));
            match waiting.reply {
                WaitingReply::Command(reply) => drop(reply.send(Err(error))),
                WaitingReply::Delete(reply) => drop(reply.send(Err(error))),
            }
        }
        Ok(())
    }
}
