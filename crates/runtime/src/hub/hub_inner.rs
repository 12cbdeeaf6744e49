//! Finding, starting and retiring the tasks of sessions, and what is known of sessions without one.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use gander_domain::{Seq, SessionId, SessionView};
use gander_store::{Claim, StoreError};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::session_task::{SessionRequest, SessionTask, SessionTaskState, TaskBeginning};
use super::{HubError, HubInner, INBOX_CAPACITY, Tasks, lock_hub_mutex, rebuild};

impl HubInner {
    pub(super) fn check_not_draining(&self) -> Result<(), HubError> {
        if self.draining.load(Ordering::Acquire) { Err(HubError::Draining) } else { Ok(()) }
    }

    /// The view of an idle session that is kept here. Among several nodes only if no other one has written since.
    pub(super) async fn current_cached_view(&self, session: SessionId) -> Result<Option<SessionView>, StoreError> {
        let Some(view) = lock_hub_mutex(&self.idle_cache).cached_view(session) else { return Ok(None) };
        Ok(self.is_current(&view).await?.then_some(view))
    }

    /// Whether a log still ends where this view does. Whoever claims a session without writing changes nothing that the
    /// view shows, and the next append here is fenced.
    pub(super) async fn is_current(&self, view: &SessionView) -> Result<bool, StoreError> {
        Ok(self.cluster.is_none() || self.store.head(view.session).await? == view.head)
    }

    /// The view of a session without a task, as its log says.
    pub(super) async fn view_at_rest(&self, session: SessionId) -> Result<SessionView, StoreError> {
        let head = self.store.head(session).await?;
        if let Some(view) = lock_hub_mutex(&self.view_cache).find(session, head) {
            return Ok(view);
        }
        let view = rebuild::rebuild_view(&*self.store, session, Seq(u64::MAX)).await?;
        lock_hub_mutex(&self.view_cache).put(view.clone());
        Ok(view)
    }

    /// Hands something to the session's task, which is started if there is none.
    pub(super) async fn deliver_request(self: &Arc<Self>, session: SessionId, mut request: SessionRequest) {
        while let Some((back, full)) = self.try_deliver(session, request) {
            request = back;
            drop(full.reserve().await); // there is room, or the task is over: either way it is worth another try
        }
    }

    /// Gives it back with the full inbox if there is no room.
    ///
    /// Under the lock that [`HubInner::retire_task`] holds: no task leaves between being found and being asked.
    pub(super) fn try_deliver(
        self: &Arc<Self>,
        session: SessionId,
        request: SessionRequest,
    ) -> Option<(SessionRequest, mpsc::Sender<SessionRequest>)> {
        let mut tasks = lock_hub_mutex(&self.tasks);
        let Some(inbox) = tasks.get(&session).filter(|inbox| !inbox.is_closed()) else {
            self.start_task(&mut tasks, session, TaskBeginning::Stored, vec![request]);
            return None;
        };
        let refused = inbox.try_send(request).err()?;
        Some((refused.into_inner(), inbox.clone()))
    }

    /// Starts a task that finds this in its inbox.
    pub(super) fn start_task(
        self: &Arc<Self>,
        tasks: &mut Tasks,
        session: SessionId,
        beginning: TaskBeginning,
        first: Vec<SessionRequest>,
    ) {
        let (sender, inbox) = mpsc::channel(INBOX_CAPACITY.max(first.len()));
        for request in first {
            let sent = sender.try_send(request);
            debug_assert!(sent.is_ok(), "a new inbox has room");
        }
        tasks.insert(session, sender);
        self.tracker.spawn(SessionTask::new(Arc::clone(self), session, beginning, inbox).run_until_idle());
    }

    /// Starts the task of a session that was just claimed, with what it is asked; gives that back if there is one already.
    ///
    /// That one claimed the session itself, later than this, or its next append is fenced.
    pub(super) fn start_claimed(
        self: &Arc<Self>,
        session: SessionId,
        claim: Claim,
        first: Vec<SessionRequest>,
    ) -> Vec<SessionRequest> {
        let mut tasks = lock_hub_mutex(&self.tasks);
        if tasks.get(&session).is_some_and(|inbox| !inbox.is_closed()) {
            return first;
        }
        self.start_task(&mut tasks, session, TaskBeginning::Claimed(claim), first);
        Vec::new()
    }

    /// Takes the task off the list and keeps its session warm, unless something waits for it.
    ///
    /// Both under one lock: whoever starts the next task finds either this one or its warm session.
    pub(super) fn retire_task(
        &self,
        live: SessionTaskState,
        inbox: &mut mpsc::Receiver<SessionRequest>,
    ) -> Option<SessionTaskState> {
        let mut tasks = lock_hub_mutex(&self.tasks);
        if !inbox.is_empty() {
            return Some(live);
        }
        inbox.close();
        tasks.remove(&live.id());
        let evicted = lock_hub_mutex(&self.idle_cache).put_session(live.into_idle(), Instant::now());
        drop(tasks);
        drop(evicted);
        None
    }
}
