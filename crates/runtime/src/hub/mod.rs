//! The hub: finds or starts the one task of a session, and lets readers follow its log.

mod active_backend;
mod cluster;
mod commit_log;
mod commit_queue;
mod error;
mod follower;
mod gathering;
mod hub_inner;
mod idle_cache;
mod maintenance;
mod next_append;
mod rebuild;
mod session_task;
mod view_cache;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use gander_domain::{
    Accepted, Command, Effect, Policy, Principal, Recovery, RunId, Seq, Session, SessionId, SessionInit, SessionView,
};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use cluster::{ClusterOptions, ClusterTimes, FindPrivateFolder, NodeRole, PinnedTo, PrivateFolder};
pub use commit_log::CommitRecord;
pub use error::HubError;
pub use follower::{FollowedBatch, Follower};
pub use idle_cache::CacheStats;

use crate::backend::{Backend, ClientResources};
use cluster::ClusterMember;
use commit_log::CommitLog;
use gander_domain::authorize;
use gander_domain::caller::Caller;
use gander_store::clock;
use gander_store::{Alias, Append, DeltaForm, Durability, Epoch, Store, StoreError};
use gathering::CommitClock;
use idle_cache::IdleCache;
use session_task::{SessionRequest, TaskBeginning};
use view_cache::ViewCache;

/// Commands that may wait for one session's task.
const INBOX_CAPACITY: usize = 64;

/// A command is sent so often again when its session moves to another node at the same moment.
const MAX_FENCED: usize = 5;

/// Bytes of idle sessions that are kept in memory unless somebody says otherwise.
const DEFAULT_CACHE_BYTES: usize = 64 << 20;

/// Finds or starts the one task of a session. Cheap to clone.
#[derive(Clone)]
pub struct Hub {
    inner: Arc<HubInner>,
}

/// A hub that may be gone: for those whom the hub itself keeps.
#[derive(Clone)]
pub struct WeakHub(Weak<HubInner>);

impl WeakHub {
    /// The hub, if it is still there.
    pub fn upgrade(&self) -> Option<Hub> {
        self.0.upgrade().map(|inner| Hub { inner })
    }
}

/// The policy of new sessions, asked for each.
type DefaultPolicy = Arc<dyn Fn() -> Policy + Send + Sync>;

struct HubInner {
    store: Arc<dyn Store>,
    backend: Arc<dyn Backend>,
    recovery: Recovery,
    /// What new sessions may do unasked, unless somebody who may loosens it.
    default_policy: DefaultPolicy,
    tasks: Mutex<Tasks>,
    /// Sessions without a task, kept so that their next turn need not read the log.
    idle_cache: Mutex<IdleCache>,
    /// Views of others, read from the log.
    view_cache: Mutex<ViewCache>,
    /// What clients lend to runs that have not ended.
    client_resources: Mutex<HashMap<RunId, ClientResources>>,
    tracker: TaskTracker,
    draining: AtomicBool,
    stop: CancellationToken,
    on_deleted: OnDeleted,
    on_run_ended: OnRunEnded,
    commits: Arc<CommitLog>,
    /// This node among others, if the store has several.
    cluster: Option<ClusterMember>,
    commit_clock: CommitClock,
    /// Something was deleted: the maintenance that removes it from the disk need not wait for its time.
    deleted: Notify,
}

/// Removes what others keep for a session, once the session itself is gone.
///
/// A function and not a call to the services: they are built on the hub.
pub type OnDeleted = Arc<dyn Fn(SessionId) -> BoxFuture<'static, ()> + Send + Sync>;

/// Hears of every run that this process ended, once its end is stored. It must not wait: the session does.
pub type OnRunEnded = Arc<dyn Fn(&SessionView, RunId) + Send + Sync>;

type Tasks = HashMap<SessionId, mpsc::Sender<SessionRequest>>;

/// A session that just began with its first prompt.
pub struct StartedSession {
    /// As it was before the prompt.
    pub view: SessionView,
    /// Its log, from its first entry.
    pub follower: Follower,
    /// What became of the prompt, once it is stored.
    pub accepted: BoxFuture<'static, Result<Accepted, HubError>>,
}

/// When a command is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ack {
    /// After its commit: the caller's own answer waits for a later sync, as that of a prompt does for its end.
    Committed,
    /// After it would survive a power cut.
    Synced,
}

impl Hub {
    /// A hub over a store, with one back-end for all sessions.
    pub fn new(store: Arc<dyn Store>, backend: Arc<dyn Backend>, recovery: Recovery) -> Self {
        Self::with_cache(store, backend, recovery, DEFAULT_CACHE_BYTES)
    }

    /// The same, with so many bytes for idle sessions in memory.
    pub fn with_cache(
        store: Arc<dyn Store>,
        backend: Arc<dyn Backend>,
        recovery: Recovery,
        cache_bytes: usize,
    ) -> Self {
        let inner = HubInner {
            store,
            backend,
            recovery,
            default_policy: Arc::new(|| Policy::Ask),
            tasks: Mutex::default(),
            idle_cache: Mutex::new(IdleCache::new(cache_bytes)),
            view_cache: Mutex::default(),
            client_resources: Mutex::default(),
            tracker: TaskTracker::new(),
            draining: AtomicBool::new(false),
            stop: CancellationToken::new(),
            on_deleted: Arc::new(|_| Box::pin(std::future::ready(()))),
            on_run_ended: Arc::new(|_, _| {}),
            commits: Arc::default(),
            cluster: None,
            commit_clock: CommitClock::start(),
            deleted: Notify::new(),
        };
        Self { inner: Arc::new(inner) }
    }

    /// The same, where new sessions have the policy that this gives. Before anybody else has the hub.
    #[must_use]
    pub fn with_default_policy(mut self, policy: impl Fn() -> Policy + Send + Sync + 'static) -> Self {
        if let Some(inner) = Arc::get_mut(&mut self.inner) {
            inner.default_policy = Arc::new(policy);
        }
        self
    }

    /// The same, telling somebody of every session that was deleted. Before anybody else has the hub.
    #[must_use]
    pub fn with_on_deleted(mut self, on_deleted: OnDeleted) -> Self {
        if let Some(inner) = Arc::get_mut(&mut self.inner) {
            inner.on_deleted = on_deleted;
        }
        self
    }

    /// The same, telling somebody of every run that ended. Before anybody else has the hub.
    #[must_use]
    pub fn with_on_run_ended(mut self, on_run_ended: OnRunEnded) -> Self {
        if let Some(inner) = Arc::get_mut(&mut self.inner) {
            inner.on_run_ended = on_run_ended;
        }
        self
    }

    /// For those whom it keeps itself.
    pub fn downgrade(&self) -> WeakHub {
        WeakHub(Arc::downgrade(&self.inner))
    }

    /// The store behind it.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.inner.store
    }

    /// What runs the agents.
    pub fn backend(&self) -> &Arc<dyn Backend> {
        &self.inner.backend
    }

    /// Begins a session; it is stored when this returns.
    pub async fn create_session(
        &self,
        caller: &Caller,
        birth: SessionInit,
        aliases: Vec<Alias>,
    ) -> Result<SessionView, HubError> {
        authorize::authorize_creation(caller, &birth, (self.inner.default_policy)())?;
        self.inner.check_not_draining()?;
        let id = birth.session;
        let mut session = Session::create(clock::current_time(), birth);
        let Some(Effect::Append(entry)) = session.poll_effect() else { return Err(HubError::Gone(id)) };
        let mut context = rebuild::empty_rebuilt_context(session.view());
        context.apply(&entry);
        let mut append = Append::new(id, Epoch::FIRST, vec![entry], Durability::Barrier);
        append.pinned_to = self.inner.cluster.as_ref().and_then(|member| member.pinned_to(session.view()));
        self.inner.store.create(append, aliases).await?;
        let view = session.view().clone();
        let idle = idle_cache::IdleSession::new(session, Epoch::FIRST, Some(context));
        let evicted = lock_hub_mutex(&self.inner.idle_cache).put_session(idle, Instant::now());
        drop(evicted);
        self.inner.backend.session_opened(&view).await;
        Ok(view)
    }

    /// Begins a session with its first prompt: both go into one append, and what comes of them is followed from there.
    pub async fn create_with_prompt(
        &self,
        caller: &Caller,
        birth: SessionInit,
        aliases: Vec<Alias>,
        prompt: Command,
        ack: Ack,
        client_resources: ClientResources,
    ) -> StartedSession {
        let (id, prompt) = (birth.session, prompt.with_trace(caller.trace));
        if !self.inner.takes_sessions() {
            return self.create_and_forward(caller, birth, aliases, prompt, ack, client_resources);
        }
        let allowed = authorize::authorize_creation(caller, &birth, (self.inner.default_policy)());
        let session = Session::create(clock::current_time(), birth);
        let view = session.view().clone();
        let follower = Follower::for_unsaved(Arc::clone(&self.inner.store), id);
        let (reply, answer) = oneshot::channel();
        match allowed
            .map_err(HubError::from)
            .and_then(|()| self.attach_client_resources(caller, &prompt, client_resources))
        {
            Ok(()) => {
                let first =
                    SessionRequest::Command { caller: Box::new(caller.clone()), command: Box::new(prompt), ack, reply };
                self.inner.start_task(
                    &mut lock_hub_mutex(&self.inner.tasks),
                    id,
                    TaskBeginning::Unsaved((Box::new(session), aliases)),
                    vec![first],
                );
            }
            Err(refused) => drop(reply.send(Err(refused))),
        }
        let accepted = async move { answer.await.unwrap_or(Err(HubError::Gone(id))) };
        StartedSession { view, follower, accepted: accepted.boxed() }
    }

    /// The same on a node that runs nothing: the session is stored here, the prompt goes to whoever claims it.
    fn create_and_forward(
        &self,
        caller: &Caller,
        birth: SessionInit,
        aliases: Vec<Alias>,
        prompt: Command,
        ack: Ack,
        client_resources: ClientResources,
    ) -> StartedSession {
        let (hub, caller, id) = (self.clone(), caller.clone(), birth.session);
        let view = Session::create(clock::current_time(), birth.clone()).view().clone();
        let follower = Follower::for_unsaved(Arc::clone(&self.inner.store), id);
        let accepted = async move {
            hub.create_session(&caller, birth, aliases).await?;
            hub.submit_command(&caller, id, prompt, ack, client_resources).await.await
        };
        StartedSession { view, follower, accepted: accepted.boxed() }
    }

    /// Carries out a command; it is stored when this returns.
    pub async fn execute_command(
        &self,
        caller: &Caller,
        session: SessionId,
        command: Command,
        ack: Ack,
    ) -> Result<Accepted, HubError> {
        self.submit_command(caller, session, command, ack, ClientResources::default()).await.await
    }

    /// Hands a command to its session, with what the caller lends to the run that it begins.
    ///
    /// Commands of one caller reach the session in the order in which these calls return; what became of each is
    /// told by the future that is given back. Whether the caller may is decided by the session's task, which has the
    /// settings that the command changes: nobody can change them in between.
    pub async fn submit_command(
        &self,
        caller: &Caller,
        session: SessionId,
        command: Command,
        ack: Ack,
        client_resources: ClientResources,
    ) -> impl Future<Output = Result<Accepted, HubError>> + Send + use<> {
        let (reply, answer) = oneshot::channel();
        let command = command.with_trace(caller.trace);
        let mut again = None;
        match self.attach_client_resources(caller, &command, client_resources) {
            Ok(()) => {
                again = self.inner.cluster.is_some().then(|| (caller.clone(), command.clone()));
                self.inner.deliver_request(session, SessionRequest::new_command(caller, command, ack, reply)).await;
            }
            Err(refused) => drop(reply.send(Err(refused))),
        }
        let inner = Arc::clone(&self.inner);
        async move {
            let mut result = answer.await.unwrap_or(Err(HubError::Gone(session)));
            let Some((caller, command)) = again else { return result };
            for _ in 0..MAX_FENCED {
                // The session moved to another node meanwhile, and nothing of the command is stored.
                if !matches!(result, Err(HubError::Store(StoreError::Fenced { .. }))) {
                    break;
                }
                let (reply, answer) = oneshot::channel();
                let request = SessionRequest::new_command(&caller, command.clone(), ack, reply);
                inner.deliver_request(session, request).await;
                result = answer.await.unwrap_or(Err(HubError::Gone(session)));
            }
            result
        }
    }

    /// A prompt that the caller may not give must not leave its keys behind.
    fn attach_client_resources(
        &self,
        caller: &Caller,
        command: &Command,
        client_resources: ClientResources,
    ) -> Result<(), HubError> {
        authorize::authorize_any_command(caller, command)?;
        let Command::Prompt { run, .. } = command else { return Ok(()) };
        self.inner.check_not_draining()?;
        if client_resources.host.is_some() || client_resources.keys.is_some() {
            // Who sends the same run again does not take it over.
            lock_hub_mutex(&self.inner.client_resources).entry(*run).or_insert(client_resources);
        }
        Ok(())
    }

    /// What the session is now.
    pub async fn session_view(&self, session: SessionId) -> Result<SessionView, HubError> {
        if let Some(view) = self.inner.current_cached_view(session).await? {
            return Ok(view);
        }
        if !lock_hub_mutex(&self.inner.tasks).contains_key(&session) {
            return Ok(self.inner.view_at_rest(session).await?);
        }
        let (reply, answer) = oneshot::channel();
        self.inner.deliver_request(session, SessionRequest::View(reply)).await;
        answer.await.unwrap_or(Err(HubError::Gone(session)))
    }

    /// What the session's log says: nothing that waits for its commit is in it, so that live begins at its head.
    pub async fn stored_view(&self, session: SessionId) -> Result<SessionView, HubError> {
        if let Some(view) = self.inner.current_cached_view(session).await? {
            return Ok(view);
        }
        let head = self.inner.store.head(session).await?;
        self.view_at(session, head).await
    }

    /// The session, if this principal may see it. Another's is as unknown as none, also after it was deleted.
    pub async fn view_for(&self, session: SessionId, principal: &Principal) -> Result<SessionView, HubError> {
        let unknown = HubError::from(StoreError::NotFound(session));
        match self.session_view(session).await {
            Ok(view) if view.owner == *principal => Ok(view),
            Ok(_) => Err(unknown),
            Err(deleted @ HubError::Store(StoreError::Deleted(_))) => {
                let owner = self.inner.store.deleted_owner(session).await?;
                Err(if owner.as_ref() == Some(principal) { deleted } else { unknown })
            }
            Err(error) => Err(error),
        }
    }

    /// Follows a session's log after a place.
    pub fn follow_session(&self, session: SessionId, after: Seq, form: DeltaForm) -> Follower {
        Follower::new(Arc::clone(&self.inner.store), session, after, form)
    }

    /// The commits that hold entries of this range, as far as this process made and remembers them.
    pub fn commits(&self, session: SessionId, first: Seq, last: Seq) -> Vec<CommitRecord> {
        self.inner.commits.of_session(session, first, last)
    }

    /// Follows what is added to a session's log after a place that its view has reached. Nothing is read before
    /// something is added.
    pub fn follow_live(&self, session: SessionId, after: Seq) -> Follower {
        Follower::starting_after(Arc::clone(&self.inner.store), session, after)
    }

    /// The view right after a place, for a reader who begins there.
    pub async fn view_at(&self, session: SessionId, place: Seq) -> Result<SessionView, HubError> {
        Ok(rebuild::rebuild_view(&*self.inner.store, session, place).await?)
    }

    /// Cancels what runs, then removes the session.
    pub async fn delete_session(&self, caller: &Caller, session: SessionId) -> Result<(), HubError> {
        caller.may_prompt()?;
        let view = self.view_for(session, &caller.principal).await?;
        self.inner.backend.session_closing(&view).await;
        let (reply, answer) = oneshot::channel();
        self.inner.deliver_request(session, SessionRequest::Delete(reply)).await;
        answer.await.unwrap_or(Err(HubError::Gone(session)))?;
        (self.inner.on_deleted)(session).await;
        self.inner.deleted.notify_one();
        Ok(())
    }

    /// True if no new work is taken.
    pub fn is_draining(&self) -> bool {
        self.inner.draining.load(Ordering::Acquire)
    }

    /// How many sessions have a task: those that run, and those that were just spoken to.
    pub fn active_sessions(&self) -> usize {
        lock_hub_mutex(&self.inner.tasks).len()
    }

    /// How full the cache of idle sessions is.
    pub fn cache_stats(&self) -> CacheStats {
        lock_hub_mutex(&self.inner.idle_cache).cache_stats()
    }

    /// True if this run was accepted before, however long ago. For ids that callers choose.
    pub async fn knows_run(&self, session: SessionId, run: RunId) -> Result<bool, HubError> {
        let row = self.inner.store.run(run).await?;
        Ok(row.is_some_and(|row| row.session == session))
    }
}

/// A panic while the lock was held leaves nothing half done here.
fn lock_hub_mutex<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
