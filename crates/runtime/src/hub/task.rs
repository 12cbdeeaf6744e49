//! The one task of an active session: it owns the machine, and is gone when the session rests.

use std::sync::Arc;
use std::time::Duration;

use gander_domain::caller::Caller;
use gander_domain::{Accepted, Command, MachineContext, Order, Session, SessionId, SessionView, authorize};
use gander_store::clock::{self, SystemIds};
use gander_store::{Alias, Epoch, StoreError};
use tokio::sync::{mpsc, oneshot};

use super::commit::Commits;
use super::rest::Warm;
use super::stay::{Running, Stays, overdue};
use super::{Ack, HubError, Inner, load, lock};

/// How long to wait before a session whose commit failed is picked up again.
const AFTER_FAILURE: Duration = Duration::from_secs(1);

/// What a session's task is asked.
pub(super) enum Ask {
    /// Carry this out.
    Command { caller: Box<Caller>, command: Command, ack: Ack, reply: Reply<Accepted> },
    /// What is the session now?
    View(Reply<SessionView>),
    /// Cancel what runs, then remove the session.
    Delete(Reply<()>),
    /// Pick up what the log left open.
    Wake,
}

pub(super) type Reply<T> = oneshot::Sender<Result<T, HubError>>;

pub(super) struct Task {
    hub: Arc<Inner>,
    id: SessionId,
    newborn: Option<Newborn>,
    inbox: mpsc::Receiver<Ask>,
}

/// A session that no store knows yet, and its names.
pub(super) type Newborn = (Box<Session>, Vec<Alias>);

/// A session with its machine in memory.
pub(super) struct Live {
    pub(super) hub: Arc<Inner>,
    pub(super) machine: Session,
    pub(super) commits: Commits,
    pub(super) stays: Stays,
    deleting: Option<Reply<()>>,
}

impl Task {
    pub(super) fn new(hub: Arc<Inner>, id: SessionId, newborn: Option<Newborn>, inbox: mpsc::Receiver<Ask>) -> Self {
        Self { hub, id, newborn, inbox }
    }

    pub(super) async fn run(mut self) {
        let live = match self.newborn.take() {
            Some((session, aliases)) => Ok(Live::born(&self.hub, *session, aliases)),
            None => Live::open(&self.hub, self.id).await,
        };
        let result = match live {
            Ok(live) => live.serve(&mut self.inbox).await,
            Err(error) => Err(error),
        };
        if let Err(error) = result {
            self.fail(error).await;
        }
    }

    /// Nothing of what failed was stored or shown. Whoever waits is told, and the log is read again.
    async fn fail(mut self, error: StoreError) {
        lock(&self.hub.tasks).remove(&self.id);
        self.inbox.close();
        while let Some(ask) = self.inbox.recv().await {
            if let Ask::Command { command: Command::Prompt { run, .. }, .. } = &ask {
                lock(&self.hub.lent).remove(run);
            }
            ask.refuse(&error);
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
                    () = tokio::time::sleep(AFTER_FAILURE) => hub.deliver(id, Ask::Wake).await,
                    () = hub.stop.cancelled() => {}
                }
            });
        }
    }
}

impl Live {
    /// From the warm cache, or from the log: then whatever was open there is picked up.
    async fn open(hub: &Arc<Inner>, id: SessionId) -> Result<Self, StoreError> {
        let warm = lock(&hub.rest).take(id);
        if let Some(Warm { session, epoch, context }) = warm {
            return Ok(Self::new(hub, session, epoch, Stays::new(context)));
        }
        let claim = hub.store.claim(id).await?;
        let view = load::view(&*hub.store, id, claim.head).await?;
        let mut session = Session::restore(view);
        session.recover(&mut MachineContext { at: clock::now(), ids: &mut SystemIds }, &hub.recovery);
        Ok(Self::new(hub, session, claim.epoch, Stays::new(None)))
    }

    fn new(hub: &Arc<Inner>, machine: Session, epoch: Epoch, stays: Stays) -> Self {
        let commits = Commits::new(machine.view().session, epoch, machine.view().head);
        Self { hub: Arc::clone(hub), machine, commits, stays, deleting: None }
    }

    /// A session that its first append makes.
    fn born(hub: &Arc<Inner>, machine: Session, aliases: Vec<Alias>) -> Self {
        let commits = Commits::newborn(machine.view().session, aliases);
        let stays = Stays::new(Some(load::empty_context(machine.view())));
        Self { hub: Arc::clone(hub), machine, commits, stays, deleting: None }
    }

    async fn serve(mut self, inbox: &mut mpsc::Receiver<Ask>) -> Result<(), StoreError> {
        let hub = Arc::clone(&self.hub);
        // What is there already goes with the first append.
        while let Ok(ask) = inbox.try_recv() {
            self.answer(ask);
        }
        loop {
            self.settle().await?;
            if self.at_rest() {
                if let Some(reply) = self.deleting.take() {
                    return self.delete(inbox, reply).await;
                }
                match hub.retire(self, inbox) {
                    Some(live) => self = live,
                    None => return Ok(()),
                }
            }
            let deadline = self.stays.deadline();
            tokio::select! {
                biased;
                () = hub.stop.cancelled() => return self.commits.land().await.map(|mut after| after.acknowledge()),
                landed = self.commits.landed(), if self.commits.in_flight() => self.after_commit(landed?).await?,
                Some(ask) = inbox.recv() => self.answer(ask),
                report = self.stays.report(), if self.commits.has_room() => self.reported(report).await,
                () = overdue(deadline) => self.force_end(),
            }
        }
    }

    pub(super) fn id(&self) -> SessionId {
        self.machine.view().session
    }

    /// Takes the machine's effects, sends what may go now, and writes what is new.
    pub(super) async fn settle(&mut self) -> Result<(), StoreError> {
        let begun = self.carry_out().await?;
        if begun && !self.commits.in_flight() {
            self.hear_at_once().await?;
        }
        self.commits.start(&self.hub.store, self.machine.view());
        Ok(())
    }

    /// Takes the machine's effects and sends what may go now. True if that began a run.
    async fn carry_out(&mut self) -> Result<bool, StoreError> {
        let at_once = self.commits.take(&mut self.machine, self.stays.context_mut());
        let begun = at_once.iter().any(|order| matches!(order, Order::Begin { .. }));
        for order in at_once {
            self.dispatch(order).await?;
        }
        Ok(begun)
    }

    /// A back-end that knows its answer at once is heard before the first append, which then holds the whole run:
    /// one commit instead of two, and one sync to wait for.
    async fn hear_at_once(&mut self) -> Result<(), StoreError> {
        tokio::task::yield_now().await;
        while self.commits.has_room()
            && let Some(heard) = self.stays.ready()
        {
            self.reported(heard).await;
            self.carry_out().await?;
        }
        Ok(())
    }

    fn at_rest(&self) -> bool {
        !self.machine.has_backend() && self.commits.is_empty()
    }

    /// What is kept of it. An awaiting session, too, owns no task from here on.
    pub(super) fn into_warm(self) -> Warm {
        Warm::new(self.machine, self.commits.epoch(), self.stays.into_context())
    }

    fn answer(&mut self, ask: Ask) {
        match ask {
            Ask::Command { caller, command, ack, reply } => {
                let run = if let Command::Prompt { run, .. } = &command { Some(*run) } else { None };
                match self.command(&caller, command) {
                    Ok(accepted) => self.commits.acknowledge(ack, accepted, reply),
                    Err(refused) => drop(reply.send(Err(refused))),
                }
                // A run that was refused, or is over already, has no end at which this would be given back.
                if let Some(run) = run.filter(|run| !self.machine.view().is_run_open(*run)) {
                    lock(&self.hub.lent).remove(&run);
                }
            }
            Ask::View(reply) => drop(reply.send(Ok(self.machine.view().clone()))),
            Ask::Delete(reply) => {
                self.cancel_everything();
                self.deleting = Some(reply);
            }
            Ask::Wake => {}
        }
    }

    /// Another's session is as unknown as none, whatever the caller asks of it.
    fn command(&mut self, caller: &Caller, command: Command) -> Result<Accepted, HubError> {
        let view = self.machine.view();
        if view.owner != caller.principal {
            return Err(StoreError::NotFound(view.session).into());
        }
        authorize::authorize_command(caller, view, &command)?;
        Ok(self.machine.handle_command(&mut MachineContext { at: clock::now(), ids: &mut SystemIds }, command)?)
    }

    fn cancel_everything(&mut self) {
        let by = gander_domain::RunOrigin { by: self.machine.view().owner.clone(), door: "hub".to_owned() };
        let queued: Vec<_> = self.machine.view().queue.iter().map(|queued| queued.id).collect();
        for run in queued.into_iter().map(Some).chain([None]) {
            let cancel = Command::Cancel { run, origin: by.clone() };
            // A run that ended in the meantime is not there to cancel.
            drop(self.machine.handle_command(&mut MachineContext { at: clock::now(), ids: &mut SystemIds }, cancel));
        }
    }

    async fn delete(self, inbox: &mut mpsc::Receiver<Ask>, reply: Reply<()>) -> Result<(), StoreError> {
        let id = self.id();
        let deleted = self.hub.store.delete(id, clock::now()).await;
        drop(reply.send(deleted.clone().map_err(HubError::from)));
        lock(&self.hub.tasks).remove(&id);
        inbox.close();
        while let Some(ask) = inbox.recv().await {
            ask.refuse(&StoreError::NotFound(id));
        }
        Ok(())
    }

    /// A back-end that did not stop in time is stopped.
    fn force_end(&mut self) {
        if let Some(Running { run, .. }) = self.stays.abandon() {
            let mut ids = SystemIds;
            self.machine.handle_backend_exit(
                &mut MachineContext { at: clock::now(), ids: &mut ids },
                run,
                "it did not stop in time",
            );
        }
    }
}

impl Ask {
    fn refuse(self, error: &StoreError) {
        let error = HubError::from(error.clone());
        match self {
            Self::Command { reply, .. } => drop(reply.send(Err(error))),
            Self::View(reply) => drop(reply.send(Err(error))),
            Self::Delete(reply) => drop(reply.send(Err(error))),
            Self::Wake => {}
        }
    }
}
