//! The one task of an active session: it owns the machine, and is gone when the session rests.

use std::sync::Arc;
use std::time::Duration;

use gander_domain::caller::Caller;
use gander_domain::{Accepted, Command, MachineContext, Order, Session, SessionId, SessionView, authorize};
use gander_store::clock::{self, SystemIds};
use gander_store::{Alias, Epoch, StoreError};
use tokio::sync::{mpsc, oneshot};

use super::active_backend::{ActiveBackend, Running, wait_until};
use super::commit_queue::CommitQueue;
use super::idle_cache::IdleSession;
use super::{Ack, HubError, Inner, lock_mutex, rebuild};

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
    /// Pick up what the log left open.
    Wake,
}

pub(super) type Reply<T> = oneshot::Sender<Result<T, HubError>>;

pub(super) struct SessionTask {
    hub: Arc<Inner>,
    id: SessionId,
    unsaved: Option<UnsavedSession>,
    inbox: mpsc::Receiver<SessionRequest>,
}

/// A session that no store knows yet, and its names.
pub(super) type UnsavedSession = (Box<Session>, Vec<Alias>);

/// A session with its machine in memory.
pub(super) struct LiveSession {
    pub(super) hub: Arc<Inner>,
    pub(super) machine: Session,
    pub(super) commit_queue: CommitQueue,
    pub(super) active_backend: ActiveBackend,
    deleting: Option<Reply<()>>,
}

impl SessionTask {
    pub(super) fn new(
        hub: Arc<Inner>,
        id: SessionId,
        unsaved: Option<UnsavedSession>,
        inbox: mpsc::Receiver<SessionRequest>,
    ) -> Self {
        Self { hub, id, unsaved, inbox }
    }

    pub(super) async fn run_until_idle(mut self) {
        let live = match self.unsaved.take() {
            Some((session, aliases)) => Ok(LiveSession::from_unsaved(&self.hub, *session, aliases)),
            None => LiveSession::open(&self.hub, self.id).await,
        };
        let result = match live {
            Ok(live) => live.handle_requests(&mut self.inbox).await,
            Err(error) => Err(error),
        };
        if let Err(error) = result {
            self.fail_requests(error).await;
        }
    }

    /// Nothing of what failed was stored or shown. Whoever waits is told, and the log is read again.
    async fn fail_requests(mut self, error: StoreError) {
        lock_mutex(&self.hub.tasks).remove(&self.id);
        self.inbox.close();
        while let Some(request) = self.inbox.recv().await {
            if let SessionRequest::Command { command, .. } = &request
                && let Command::Prompt { run, .. } = &**command
            {
                lock_mutex(&self.hub.client_resources).remove(run);
            }
            request.refuse_request(&error);
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

impl LiveSession {
    /// From the idle cache, or from the log: then whatever was open there is picked up.
    async fn open(hub: &Arc<Inner>, id: SessionId) -> Result<Self, StoreError> {
        let idle = lock_mutex(&hub.idle_cache).take_session(id);
        if let Some(IdleSession { session, epoch, context }) = idle {
            return Ok(Self::new(hub, session, epoch, ActiveBackend::new(context)));
        }
        let claim = hub.store.claim(id).await?;
        let view = rebuild::rebuild_view(&*hub.store, id, claim.head).await?;
        let mut session = Session::restore(view);
        session.recover(&mut MachineContext { at: clock::current_time(), ids: &mut SystemIds }, &hub.recovery);
        Ok(Self::new(hub, session, claim.epoch, ActiveBackend::new(None)))
    }

    fn new(hub: &Arc<Inner>, machine: Session, epoch: Epoch, active_backend: ActiveBackend) -> Self {
        let commit_queue = CommitQueue::new(machine.view().session, epoch, machine.view().head);
        Self { hub: Arc::clone(hub), machine, commit_queue, active_backend, deleting: None }
    }

    /// A session that its first append makes.
    fn from_unsaved(hub: &Arc<Inner>, machine: Session, aliases: Vec<Alias>) -> Self {
        let commit_queue = CommitQueue::for_new_session(machine.view().session, aliases);
        let active_backend = ActiveBackend::new(Some(rebuild::empty_context(machine.view())));
        Self { hub: Arc::clone(hub), machine, commit_queue, active_backend, deleting: None }
    }

    async fn handle_requests(mut self, inbox: &mut mpsc::Receiver<SessionRequest>) -> Result<(), StoreError> {
        let hub = Arc::clone(&self.hub);
        // What is there already goes with the first append.
        while let Ok(request) = inbox.try_recv() {
            self.handle_request(request);
        }
        loop {
            self.apply_effects_and_commit().await?;
            if self.is_idle() {
                if let Some(reply) = self.deleting.take() {
                    return self.delete_session(inbox, reply).await;
                }
                match hub.retire_task(self, inbox) {
                    Some(live) => self = live,
                    None => return Ok(()),
                }
            }
            let deadline = self.active_backend.cancel_deadline();
            tokio::select! {
                biased;
                () = hub.stop.cancelled() => return self.commit_queue.finish_append().await.map(|mut after| after.acknowledge_all()),
                landed = self.commit_queue.append_done(), if self.commit_queue.is_in_flight() => self.on_committed(landed?).await?,
                Some(request) = inbox.recv() => self.handle_request(request),
                report = self.active_backend.next_event(), if self.commit_queue.has_room() => self.handle_backend_event(report).await,
                () = wait_until(deadline) => self.stop_overdue_backend(),
            }
        }
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
        self.commit_queue.start_append(&self.hub.store, &self.hub.commits, self.machine.view());
        Ok(())
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
        !self.machine.has_backend() && self.commit_queue.is_empty()
    }

    /// What is kept of it. An awaiting session, too, owns no task from here on.
    pub(super) fn into_idle(self) -> IdleSession {
        IdleSession::new(self.machine, self.commit_queue.epoch(), self.active_backend.into_context())
    }

    fn handle_request(&mut self, request: SessionRequest) {
        match request {
            SessionRequest::Command { caller, command, ack, reply } => {
                let run = if let Command::Prompt { run, .. } = &*command { Some(*run) } else { None };
                match self.handle_command(&caller, *command) {
                    Ok(accepted) => self.commit_queue.acknowledge_command(ack, accepted, reply),
                    Err(refused) => drop(reply.send(Err(refused))),
                }
                // A run that was refused, or is over already, has no end at which this would be given back.
                if let Some(run) = run.filter(|run| !self.machine.view().is_run_open(*run)) {
                    lock_mutex(&self.hub.client_resources).remove(&run);
                }
            }
            SessionRequest::View(reply) => drop(reply.send(Ok(self.machine.view().clone()))),
            SessionRequest::Delete(reply) => {
                self.cancel_all_runs();
                self.deleting = Some(reply);
            }
            SessionRequest::Wake => {}
        }
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

    async fn delete_session(
        self,
        inbox: &mut mpsc::Receiver<SessionRequest>,
        reply: Reply<()>,
    ) -> Result<(), StoreError> {
        let id = self.id();
        let deleted = self.hub.store.delete(id, clock::current_time()).await;
        drop(reply.send(deleted.clone().map_err(HubError::from)));
        lock_mutex(&self.hub.tasks).remove(&id);
        inbox.close();
        while let Some(request) = inbox.recv().await {
            request.refuse_request(&StoreError::NotFound(id));
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

impl SessionRequest {
    fn refuse_request(self, error: &StoreError) {
        let error = HubError::from(error.clone());
        match self {
            Self::Command { reply, .. } => drop(reply.send(Err(error))),
            Self::View(reply) => drop(reply.send(Err(error))),
            Self::Delete(reply) => drop(reply.send(Err(error))),
            Self::Wake => {}
        }
    }
}
