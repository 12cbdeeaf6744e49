//! The one task of an active session: it owns the machine, and is gone when the session rests.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use gander_domain::caller::Caller;
use gander_domain::{
    Accepted, Command, MachineContext, Order, Report, RunId, Session, SessionId, SessionView, authorize,
};
use gander_store::clock::{self, SystemIds};
use gander_store::{Alias, Claim, CommandAnswer, CommandId, Ownership, SessionCommand, StoreError};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::active_backend::{ActiveBackend, Running, active_backend_wait_until};
use super::cluster::{ForwardReason, RemoteAnswer, RemoteRequest, remote_lent_notice};
use super::commit_queue::CommitQueue;
use super::idle_cache::IdleSession;
use super::{Ack, HubError, HubInner, lock_hub_mutex, rebuild};

/// How long to wait before a session whose commit failed is picked up again.
const RETRY_AFTER_FAILURE: Duration = Duration::from_secs(1);

/// What a session's task is asked.
pub(super) enum SessionRequest {
    /// Carry this out.
    Command { caller: Box<Caller>, command: Box<Command>, ack: Ack, reply: Reply<Accepted> },
    /// What is the session now?
    View(Reply<SessionView>),
    /// Cancel what runs, then remove the session.
    Delete(Reply<()>),
    /// A command that another node sent for this session.
    Remote(Box<SessionCommand>),
    /// Pick up what the log left open.
    Wake,
}

pub(super) type Reply<T> = oneshot::Sender<Result<T, HubError>>;

pub(super) struct SessionTask {
    hub: Arc<HubInner>,
    id: SessionId,
    beginning: TaskBeginning,
    inbox: mpsc::Receiver<SessionRequest>,
}

/// What a task begins with.
pub(super) enum TaskBeginning {
    /// A session that its first append makes.
    Unsaved(UnsavedSession),
    /// This node just claimed it.
    Claimed(Claim),
    /// The cache or the log has it.
    Stored,
}

/// A session that no store knows yet, and its names.
pub(super) type UnsavedSession = (Box<Session>, Vec<Alias>);

/// A session with its machine in memory.
pub(super) struct SessionTaskState {
    pub(super) hub: Arc<HubInner>,
    pub(super) machine: Session,
    pub(super) commit_queue: CommitQueue,
    pub(super) active_backend: ActiveBackend,
    /// Cancelled when this node may no longer act for its sessions.
    lease_lost: CancellationToken,
    /// Whoever wants the session to be gone.
    deleting: Vec<DeleteReply>,
}

/// Who is told that the session is gone.
enum DeleteReply {
    Caller(Reply<()>),
    /// Another node, which sees it; what it sent is answered only if it fails.
    OtherNode(CommandId),
}

impl DeleteReply {
    fn command(&self) -> Option<CommandId> {
        match self {
            Self::OtherNode(command) => Some(*command),
            Self::Caller(_) => None,
        }
    }
}

impl SessionRequest {
    pub(super) fn new_command(caller: &Caller, command: Command, ack: Ack, reply: Reply<Accepted>) -> Self {
        Self::Command { caller: Box::new(caller.clone()), command: Box::new(command), ack, reply }
    }
}

impl SessionTask {
    pub(super) fn new(
        hub: Arc<HubInner>,
        id: SessionId,
        beginning: TaskBeginning,
        inbox: mpsc::Receiver<SessionRequest>,
    ) -> Self {
        Self { hub, id, beginning, inbox }
    }

    pub(super) async fn run_until_idle(mut self) {
        let live = match std::mem::replace(&mut self.beginning, TaskBeginning::Stored) {
            TaskBeginning::Unsaved((session, aliases)) => {
                Ok(SessionTaskState::from_unsaved(&self.hub, *session, aliases))
            }
            TaskBeginning::Claimed(claim) => SessionTaskState::from_claim(&self.hub, self.id, claim).await,
            TaskBeginning::Stored if !self.hub.takes_sessions() => {
                return self.forward_requests(ForwardReason::Elsewhere).await;
            }
            TaskBeginning::Stored => SessionTaskState::open(&self.hub, self.id).await,
        };
        let result = match live {
            Ok(live) => live.handle_requests(&mut self.inbox).await,
            Err(error) => Err(error),
        };
        match result {
            Ok(()) => {}
            Err(StoreError::Owned(_)) => self.forward_requests(ForwardReason::Elsewhere).await,
            Err(StoreError::Pinned(label)) => self.forward_requests(ForwardReason::Pinned(label)).await,
            Err(error @ StoreError::Fenced { .. }) if self.hub.cluster.is_some() => {
                tracing::info!(session = %self.id, %error, "another node took the session");
                self.deliver_again().await;
            }
            Err(error) => self.fail_requests(error).await,
        }
    }

    /// Another node has the session: what is asked goes there, in order, until nothing is asked any more.
    async fn forward_requests(mut self, why: ForwardReason) {
        loop {
            let request = {
                let mut tasks = lock_hub_mutex(&self.hub.tasks);
                let request = self.inbox.try_recv().ok();
                if request.is_none() {
                    // Under the lock: nobody finds an inbox that is not read any more.
                    self.inbox.close();
                    tasks.remove(&self.id);
                }
                request
            };
            match request {
                Some(request) => self.hub.forward_request(self.id, request, &why).await,
                None => return,
            }
        }
    }

    /// Nothing of what was asked last is stored: it goes to whoever has the session now, perhaps this node again.
    async fn deliver_again(mut self) {
        lock_hub_mutex(&self.hub.tasks).remove(&self.id);
        self.inbox.close();
        while let Some(request) = self.inbox.recv().await {
            self.hub.deliver_request(self.id, request).await;
        }
    }

    /// Nothing of what failed was stored or shown. Whoever waits is told, and the log is read again.
    async fn fail_requests(mut self, error: StoreError) {
        lock_hub_mutex(&self.hub.tasks).remove(&self.id);
        self.inbox.close();
        while let Some(request) = self.inbox.recv().await {
            if let SessionRequest::Command { command, .. } = &request
                && let Some(run) = command.prompted_run()
            {
                lock_hub_mutex(&self.hub.client_resources).remove(&run);
            }
            self.hub.refuse_request(request, &error);
        }
        let lost = matches!(error, StoreError::NotFound(_) | StoreError::Deleted(_) | StoreError::Closed);
        if lost {
            return;
        }
        tracing::warn!(session = %self.id, %error, "session stopped: its log could not be written or read");
        if !matches!(error, StoreError::ReadOnly(_) | StoreError::Fenced { .. }) {
            let (hub, id) = (Arc::clone(&self.hub), self.id);
            self.hub.tracker.spawn(async move {
                tokio::select! {
                    () = tokio::time::sleep(RETRY_AFTER_FAILURE) => hub.deliver_request(id, SessionRequest::Wake).await,
                    () = hub.stop.cancelled() => {}
                }
            });
        }
    }
}

impl SessionTaskState {
    /// From the idle cache, or from the log: then whatever was open there is picked up.
    async fn open(hub: &Arc<HubInner>, id: SessionId) -> Result<Self, StoreError> {
        hub.check_lease()?;
        let idle = lock_hub_mutex(&hub.idle_cache).take_session(id);
        if let Some(IdleSession { session, epoch, context }) = idle
            && hub.is_current(session.view()).await?
        {
            let commit_queue = CommitQueue::new(id, epoch, session.view().head, hub.commit_clock);
            return Ok(Self::new(hub, session, commit_queue, ActiveBackend::new(context)));
        }
        let claim = hub.store.claim(id).await?;
        Self::from_claim(hub, id, claim).await
    }

    /// From the log: whatever was open there is picked up.
    async fn from_claim(hub: &Arc<HubInner>, id: SessionId, claim: Claim) -> Result<Self, StoreError> {
        let view = rebuild::rebuild_view(&*hub.store, id, claim.head).await?;
        let mut session = Session::restore(view);
        session.recover(&mut MachineContext { at: clock::current_time(), ids: &mut SystemIds }, &hub.recovery);
        let commit_queue = CommitQueue::for_claimed_session(id, claim.epoch, claim.head, hub.commit_clock);
        Ok(Self::new(hub, session, commit_queue, ActiveBackend::new(None)))
    }

    fn new(hub: &Arc<HubInner>, machine: Session, commit_queue: CommitQueue, active_backend: ActiveBackend) -> Self {
        let lease_lost = hub.lease_lost();
        Self { hub: Arc::clone(hub), machine, commit_queue, active_backend, lease_lost, deleting: Vec::new() }
    }

    /// A session that its first append makes.
    fn from_unsaved(hub: &Arc<HubInner>, machine: Session, aliases: Vec<Alias>) -> Self {
        let pinned_to = hub.cluster.as_ref().and_then(|member| member.pinned_to(machine.view()));
        let commit_queue = CommitQueue::for_new_session(machine.view().session, aliases, pinned_to, hub.commit_clock);
        let active_backend = ActiveBackend::new(Some(rebuild::empty_rebuilt_context(machine.view())));
        Self::new(hub, machine, commit_queue, active_backend)
    }

    async fn handle_requests(mut self, inbox: &mut mpsc::Receiver<SessionRequest>) -> Result<(), StoreError> {
        let hub = Arc::clone(&self.hub);
        // What is there already goes with the first append.
        while let Ok(request) = inbox.try_recv() {
            self.handle_request(request);
        }
        loop {
            if let Err(error) = self.apply_effects_and_commit().await {
                return Err(self.give_up(error));
            }
            if self.is_idle() {
                if !self.deleting.is_empty() {
                    return self.delete_session(inbox).await;
                }
                match hub.retire_task(self, inbox) {
                    Some(live) => self = live,
                    None => return Ok(()),
                }
            }
            match self.handle_next(inbox).await {
                Ok(ControlFlow::Continue(())) => {}
                Ok(ControlFlow::Break(())) => return Ok(()),
                Err(error) => return Err(self.give_up(error)),
            }
        }
    }

    /// One thing that happened; breaks when the hub ends.
    async fn handle_next(&mut self, inbox: &mut mpsc::Receiver<SessionRequest>) -> Result<ControlFlow<()>, StoreError> {
        let (deadline, gathered) = (self.active_backend.cancel_deadline(), self.commit_queue.gathered_until());
        tokio::select! {
            biased;
            () = self.hub.stop.cancelled() => {
                self.commit_queue.finish_append().await?.acknowledge_all();
                return Ok(ControlFlow::Break(()));
            }
            // Others may act for the session soon: whatever it runs must have stopped by then.
            () = self.lease_lost.cancelled() => return Err(session_task_lease_lost()),
            landed = self.commit_queue.append_done(), if self.commit_queue.is_in_flight() => self.on_committed(landed?).await?,
            Some(request) = inbox.recv() => self.handle_request(request),
            report = self.active_backend.next_event(), if self.commit_queue.has_room() => self.handle_backend_event(report).await,
            () = active_backend_wait_until(gathered) => {}
            () = active_backend_wait_until(deadline) => self.stop_overdue_backend(),
        }
        Ok(ControlFlow::Continue(()))
    }

    /// What was taken in and is not stored: commands of other nodes are read again, callers here are told.
    fn give_up(&mut self, error: StoreError) -> StoreError {
        if let Some(member) = &self.hub.cluster {
            member.forget_handled(self.commit_queue.unanswered_commands());
            member.forget_handled(self.deleting.iter().filter_map(DeleteReply::command));
        }
        if matches!(error, StoreError::Fenced { .. }) {
            self.commit_queue.refuse_waiting(&error);
        }
        error
    }

    pub(super) fn id(&self) -> SessionId {
        self.machine.view().session
    }

    /// Takes the machine's effects, sends what may go now, and writes what is new.
    pub(super) async fn apply_effects_and_commit(&mut self) -> Result<(), StoreError> {
        let begun = self.apply_effects().await?;
        if begun && !self.commit_queue.is_in_flight() {
            self.take_ready_reports().await?;
        }
        let ownership = self.next_ownership();
        self.commit_queue.start_append(&self.hub.store, &self.hub.commits, self.machine.view(), ownership);
        Ok(())
    }

    /// A session in which nothing runs belongs to nobody: any node may take its next command.
    fn next_ownership(&self) -> Ownership {
        let runs = self.machine.has_backend() || self.commit_queue.has_orders() || !self.deleting.is_empty();
        if runs || self.hub.cluster.is_none() { Ownership::Keep } else { Ownership::Release }
    }

    /// Takes the machine's effects and sends what may go now. True if that began a run.
    async fn apply_effects(&mut self) -> Result<bool, StoreError> {
        let at_once = self.commit_queue.take_effects(&mut self.machine, self.active_backend.context_mut());
        let begun = at_once.iter().any(|order| matches!(order, Order::Begin { .. }));
        for order in at_once {
            self.dispatch_order(order).await?;
        }
        Ok(begun)
    }

    /// A back-end that knows its answer at once is heard before the first append, which then holds the whole run:
    /// one commit instead of two, and one sync to wait for.
    async fn take_ready_reports(&mut self) -> Result<(), StoreError> {
        tokio::task::yield_now().await;
        while self.commit_queue.has_room()
            && let Some(heard) = self.active_backend.ready_event()
        {
            self.handle_backend_event(heard).await;
            self.apply_effects().await?;
        }
        Ok(())
    }

    fn is_idle(&self) -> bool {
        let gave_up = self.hub.cluster.is_none() || !self.commit_queue.is_owned() || !self.deleting.is_empty();
        !self.machine.has_backend() && self.commit_queue.is_empty() && gave_up
    }

    /// What is kept of it. An awaiting session, too, owns no task from here on.
    pub(super) fn into_idle(self) -> IdleSession {
        IdleSession::new(self.machine, self.commit_queue.epoch(), self.active_backend.into_context())
    }

    fn handle_request(&mut self, request: SessionRequest) {
        match request {
            SessionRequest::Command { caller, command, ack, reply } => {
                let run = command.prompted_run();
                match self.handle_command(&caller, *command) {
                    Ok(accepted) => self.commit_queue.acknowledge_command(ack, accepted, reply),
                    Err(refused) => drop(reply.send(Err(refused))),
                }
                // A run that was refused, or is over already, has no end at which this would be given back.
                if let Some(run) = run.filter(|run| !self.machine.view().is_run_open(*run)) {
                    lock_hub_mutex(&self.hub.client_resources).remove(&run);
                }
            }
            SessionRequest::View(reply) => drop(reply.send(Ok(self.machine.view().clone()))),
            SessionRequest::Delete(reply) => {
                self.cancel_all_runs();
                self.deleting.push(DeleteReply::Caller(reply));
            }
            SessionRequest::Remote(command) => self.handle_remote(*command),
            SessionRequest::Wake => {}
        }
    }

    /// A command of another node. What became of it is stored with what it caused, and read there.
    fn handle_remote(&mut self, command: SessionCommand) {
        let SessionCommand { id, body, .. } = command;
        let (ack, result) = match serde_json::from_value(body) {
            Ok(RemoteRequest::Command { caller, command, ack, lent }) => {
                let result = self.handle_command(&caller, *command);
                if let (true, Ok(Accepted::Started(run))) = (lent, &result) {
                    self.notice_lent_elsewhere(*run);
                }
                (ack, RemoteAnswer::from_result(result))
            }
            Ok(RemoteRequest::Delete) => {
                self.cancel_all_runs();
                self.deleting.push(DeleteReply::OtherNode(id));
                return;
            }
            Err(error) => {
                let reason = format!("the node that owns the session does not know this command: {error}");
                (Ack::Committed, RemoteAnswer::Failed(reason))
            }
        };
        self.commit_queue.answer_command(ack, CommandAnswer { command: id, body: result.into_body() });
    }

    /// The client's files, terminals and keys are with the node that it is connected to.
    fn notice_lent_elsewhere(&mut self, run: RunId) {
        let mut context = MachineContext { at: clock::current_time(), ids: &mut SystemIds };
        self.machine.handle_report(&mut context, run, Report::Noticed(remote_lent_notice()));
    }

    /// Another's session is as unknown as none, whatever the caller request of it.
    fn handle_command(&mut self, caller: &Caller, command: Command) -> Result<Accepted, HubError> {
        let view = self.machine.view();
        if view.owner != caller.principal {
            return Err(StoreError::NotFound(view.session).into());
        }
        authorize::authorize_command(caller, view, (self.hub.default_policy)(), &command)?;
        Ok(self
            .machine
            .handle_command(&mut MachineContext { at: clock::current_time(), ids: &mut SystemIds }, command)?)
    }

    fn cancel_all_runs(&mut self) {
        let by = gander_domain::RunOrigin { by: self.machine.view().owner.clone(), door: "hub".to_owned() };
        let queued: Vec<_> = self.machine.view().queue.iter().map(|queued| queued.id).collect();
        for run in queued.into_iter().map(Some).chain([None]) {
            let cancel = Command::Cancel { run, origin: by.clone() };
            // A run that ended in the meantime is not there to cancel.
            drop(
                self.machine
                    .handle_command(&mut MachineContext { at: clock::current_time(), ids: &mut SystemIds }, cancel),
            );
        }
    }

    async fn delete_session(mut self, inbox: &mut mpsc::Receiver<SessionRequest>) -> Result<(), StoreError> {
        let id = self.id();
        let deleted = self.hub.store.delete(id, clock::current_time()).await;
        for reply in std::mem::take(&mut self.deleting) {
            match (reply, &deleted) {
                (DeleteReply::Caller(reply), _) => drop(reply.send(deleted.clone().map_err(HubError::from))),
                (DeleteReply::OtherNode(_), Ok(_)) => {}
                (DeleteReply::OtherNode(command), Err(error)) => {
                    let body = RemoteAnswer::Failed(error.to_string()).into_body();
                    self.commit_queue.answer_command(Ack::Committed, CommandAnswer { command, body });
                }
            }
        }
        if deleted.is_err() {
            // It goes on, and belongs to nobody.
            self.apply_effects_and_commit().await.map_err(|error| self.give_up(error))?;
            self.commit_queue.finish_append().await.map_err(|error| self.give_up(error))?.acknowledge_all();
        }
        lock_hub_mutex(&self.hub.tasks).remove(&id);
        inbox.close();
        let refusal = deleted.err().unwrap_or(StoreError::NotFound(id));
        while let Some(request) = inbox.recv().await {
            self.hub.refuse_request(request, &refusal);
        }
        Ok(())
    }

    /// A back-end that did not stop in time is stopped.
    fn stop_overdue_backend(&mut self) {
        if let Some(Running { run, .. }) = self.active_backend.stop() {
            let mut ids = SystemIds;
            self.machine.handle_backend_exit(
                &mut MachineContext { at: clock::current_time(), ids: &mut ids },
                run,
                "it did not stop in time",
            );
        }
    }
}

impl HubInner {
    fn refuse_request(&self, request: SessionRequest, error: &StoreError) {
        let refused = HubError::from(error.clone());
        match request {
            SessionRequest::Command { reply, .. } => drop(reply.send(Err(refused))),
            SessionRequest::View(reply) => drop(reply.send(Err(refused))),
            SessionRequest::Delete(reply) => drop(reply.send(Err(refused))),
            // Its row still waits, and is read again.
            SessionRequest::Remote(command) => {
                if let Some(member) = &self.cluster {
                    member.forget_handled([command.id]);
                }
            }
            SessionRequest::Wake => {}
        }
    }

    fn check_lease(&self) -> Result<(), StoreError> {
        let holds = self.cluster.as_ref().is_none_or(|member| member.lease.is_valid());
        if holds { Ok(()) } else { Err(session_task_lease_lost()) }
    }

    fn lease_lost(&self) -> CancellationToken {
        self.cluster.as_ref().map(|member| member.lease.lost()).unwrap_or_default()
    }
}

fn session_task_lease_lost() -> StoreError {
    StoreError::Busy("this node could not renew its lease".to_owned())
}
