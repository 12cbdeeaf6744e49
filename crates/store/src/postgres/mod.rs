//! The log in PostgreSQL: for more than one machine, or a database that somebody looks after already.

mod aliases;
mod batch;
mod cluster;
mod connect;
mod failure;
mod hints;
mod maintenance;
mod questions;
mod read;
mod rebuild;
mod refusal;
mod runs;
mod scopes;
mod session_list;
mod settle;
mod shared;
mod text;
mod writer;

use std::collections::VecDeque;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use async_trait::async_trait;
use gander_domain::{Entry, Principal, QuestionId, RunId, Seq, SessionId, Timestamp};
use serde_json::Value;
use sqlx::Connection as _;
use sqlx::postgres::PgPool;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;

use self::failure::postgres_store_error;
use self::shared::PostgresShared;
use self::writer::{PostgresPending, PostgresWriter, PostgresWriterJob};
use super::{
    Alias, Append, Claim, ClusterStore, Committed, DeltaForm, Durability, Health, Limit, MaintenanceReport, NodeId,
    NodeStatus, QuestionRow, RunPage, RunQuery, RunRow, ScopeAppend, ScopeEntry, SessionPage, SessionQuery,
    SessionSummary, Snapshot, Stats, Store, StoreError, Tail,
};
pub(crate) use connect::open_for_copy;
pub use connect::{DatabaseInfo, PostgresUrl, is_postgres_url};
pub use session_list::postgres_list_statements;
pub(crate) use text::{decode_postgres_text, encode_postgres_text};

/// Health is asked of the database again after this time.
const HEALTH_TTL: Duration = Duration::from_secs(4);

/// Whoever asks for the health is told by then.
const HEALTH_TIMEOUT: Duration = Duration::from_secs(1);

/// Appends that wait for the writer to take them.
const JOBS_CAPACITY: usize = 1024;

/// Where the log is, and its bounds.
#[derive(Clone, Debug)]
pub struct PostgresOptions {
    pub url: PostgresUrl,
    /// Connections beside the writer's.
    pub connections: u32,
    /// How long after its run's end a delta may still be read from its own row.
    pub grace: Duration,
    /// Present if several processes share the database: the name of this one.
    pub node: Option<NodeId>,
    /// Whether nodes tell each other what is new. Without hints each looks for itself, which takes a moment longer.
    pub hints: bool,
}

impl PostgresOptions {
    /// The usual bounds.
    pub fn new(url: PostgresUrl) -> Self {
        Self { url, connections: 6, grace: Duration::from_secs(600), node: None, hints: true }
    }
}

/// The log in a PostgreSQL database.
pub struct PostgresStore {
    jobs: mpsc::Sender<PostgresWriterJob>,
    pool: PgPool,
    shared: Arc<PostgresShared>,
    grace: Duration,
    node: Option<NodeId>,
}

impl PostgresStore {
    /// Opens the log, and makes its tables if they are not there. Several processes may at once.
    pub async fn open(options: PostgresOptions) -> Result<Self, StoreError> {
        let PostgresOptions { url, connections, grace, node, hints } = options;
        let mut writer = url.connect_writer().await.map_err(postgres_store_error)?;
        connect::run_migrations(&mut writer.connection).await?;
        let incarnation = connect::read_incarnation(&mut writer.connection).await?;
        let shared = Arc::new(PostgresShared::default());
        shared.incarnation.store(incarnation, Ordering::Relaxed);
        let channel = connect::hint_channel(&mut writer.connection).await?;
        // One more, which listens.
        let pool = url.pool(connections + u32::from(node.is_some()));
        if let Some(node) = node.filter(|_| hints) {
            let (sender, to_send) = mpsc::channel(hints::HINTS_CAPACITY);
            shared.hint_sender.get_or_init(|| sender);
            tokio::spawn(hints::send_hints(pool.clone(), channel.clone(), node, to_send));
            tokio::spawn(hints::receive_hints(pool.clone(), channel, node, Arc::clone(&shared)));
        }
        let (jobs, waiting) = mpsc::channel(JOBS_CAPACITY);
        let connection = Some(writer);
        let writer = PostgresWriter {
            url,
            shared: Arc::clone(&shared),
            node,
            connection,
            waiting: VecDeque::new(),
            in_doubt: None,
        };
        tokio::spawn(writer.run_jobs(waiting));
        Ok(Self { jobs, pool, shared, grace, node })
    }

    /// Begins a new incarnation, as after a restore: every cursor of before is refused. Servers that run notice when they
    /// connect the next time.
    pub async fn begin_incarnation(url: &PostgresUrl) -> Result<u32, StoreError> {
        let mut connection = url.connect().await.map_err(postgres_store_error)?;
        connect::run_migrations(&mut connection).await?;
        connect::read_incarnation(&mut connection).await?;
        let incarnation = connect::begin_incarnation(&mut connection).await?;
        connection.close().await.map_err(postgres_store_error)?;
        Ok(incarnation)
    }

    /// The servers that use a database, without becoming one of them.
    pub async fn list_nodes(url: &PostgresUrl) -> Result<Vec<NodeStatus>, StoreError> {
        let mut connection = url.connect().await.map_err(postgres_store_error)?;
        let nodes = cluster::list_nodes(&mut connection).await?;
        connection.close().await.map_err(postgres_store_error)?;
        Ok(nodes)
    }

    /// Looks at a database without changing anything.
    pub async fn probe_database(url: &PostgresUrl) -> Result<DatabaseInfo, StoreError> {
        let mut connection = url.connect().await.map_err(postgres_store_error)?;
        let info = connect::read_database_info(&mut connection).await?;
        connection.close().await.map_err(postgres_store_error)?;
        Ok(info)
    }

    async fn send_append(&self, append: Append, aliases: Option<Vec<Alias>>) -> Result<Committed, StoreError> {
        self.check_open()?;
        let bytes = self.shared.admit(&append)?;
        let (reply, answer) = oneshot::channel();
        let pending =
            PostgresPending { append, aliases, size: 0, bytes, since: Instant::now(), given_up: false, reply };
        self.jobs.send(PostgresWriterJob::Append(Box::new(pending))).await.map_err(|_| StoreError::Closed)?;
        answer.await.map_err(|_| StoreError::Closed)?
    }

    fn check_open(&self) -> Result<(), StoreError> {
        if self.shared.closed.load(Ordering::Relaxed) { Err(StoreError::Closed) } else { Ok(()) }
    }

    /// Writes that are no appends. They go on if nobody waits for them any more.
    async fn write<T, F>(&self, write: impl FnOnce(PgPool) -> F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, StoreError>> + Send + 'static,
    {
        self.check_open()?;
        let written = tokio::spawn(write(self.pool.clone())).await;
        let written = written.map_err(|error| StoreError::Failed(error.to_string()))??;
        self.shared.note_commit(Durability::Barrier);
        Ok(written)
    }

    /// A small commit, to see whether that works.
    async fn probe(&self) -> Result<(), StoreError> {
        if let Some(reason) = self.shared.away_reason() {
            return Err(StoreError::Busy(reason));
        }
        self.shared.check_keeping_up()?;
        let query = sqlx::query("UPDATE meta SET probe = probe + 1");
        query.execute(&self.pool).await.map_err(postgres_store_error)?;
        self.shared.note_commit(Durability::Barrier);
        Ok(())
    }
}

#[async_trait]
impl Store for PostgresStore {
    async fn create(&self, append: Append, aliases: Vec<Alias>) -> Result<Committed, StoreError> {
        self.send_append(append, Some(aliases)).await
    }

    async fn claim(&self, session: SessionId) -> Result<Claim, StoreError> {
        let node = self.node;
        self.write(move |pool| async move { cluster::claim_session(&pool, session, node).await }).await
    }

    async fn append(&self, append: Append) -> Result<Committed, StoreError> {
        self.send_append(append, None).await
    }

    async fn read(
        &self,
        session: SessionId,
        after: Seq,
        limit: Limit,
        form: DeltaForm,
    ) -> Result<Vec<Entry>, StoreError> {
        read::read_entries(&self.pool, session, after, limit, form).await
    }

    async fn head(&self, session: SessionId) -> Result<Seq, StoreError> {
        read::read_head(&self.pool, session).await
    }

    fn incarnation(&self) -> u32 {
        self.shared.incarnation.load(Ordering::Relaxed)
    }

    fn subscribe(&self, session: SessionId) -> Tail {
        self.shared.feeds.subscribe(session)
    }

    fn changes(&self, principal: &Principal) -> watch::Receiver<u64> {
        self.shared.feeds.change_counter(principal)
    }

    async fn snapshot(&self, session: SessionId, version: u32, upto: Seq) -> Result<Option<Snapshot>, StoreError> {
        read::read_snapshot(&self.pool, session, version, upto).await
    }

    async fn sessions(&self, query: SessionQuery) -> Result<SessionPage, StoreError> {
        session_list::list_sessions(&self.pool, query).await
    }

    async fn session_summary(&self, session: SessionId) -> Result<SessionSummary, StoreError> {
        match session_list::read_summary(&self.pool, session).await? {
            Some(summary) => Ok(summary),
            None => Err(read::read_head(&self.pool, session).await.err().unwrap_or(StoreError::NotFound(session))),
        }
    }

    async fn open_runs(&self, after: Option<(RunId, SessionId)>, limit: u32) -> Result<Vec<RunRow>, StoreError> {
        runs::list_open_runs(&self.pool, after, limit).await
    }

    async fn run(&self, run: RunId) -> Result<Option<RunRow>, StoreError> {
        runs::find_run(&self.pool, run).await
    }

    async fn run_of_owner(&self, run: RunId, owner: &Principal) -> Result<Option<RunRow>, StoreError> {
        runs::find_run_of_owner(&self.pool, run, owner).await
    }

    async fn runs(&self, query: RunQuery) -> Result<RunPage, StoreError> {
        runs::list_runs(&self.pool, query).await
    }

    async fn question(&self, question: QuestionId) -> Result<Option<QuestionRow>, StoreError> {
        questions::find_question(&self.pool, question).await
    }

    async fn resolve_alias(&self, alias: &Alias) -> Result<Option<SessionId>, StoreError> {
        aliases::find_alias(&self.pool, alias).await
    }

    async fn aliases(&self, session: SessionId) -> Result<Vec<Alias>, StoreError> {
        aliases::list_aliases(&self.pool, session).await
    }

    async fn aliases_in(
        &self,
        principal: &Principal,
        door: &str,
        namespace: &str,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<(String, SessionId)>, StoreError> {
        let names = [principal.as_str(), door, namespace, after.unwrap_or_default()];
        aliases::list_aliases_in(&self.pool, names, limit).await
    }

    async fn set_alias(&self, alias: Alias, session: SessionId) -> Result<(), StoreError> {
        self.write(move |pool| async move { aliases::set_alias(&pool, &alias, session).await }).await
    }

    async fn remove_alias(&self, alias: &Alias) -> Result<bool, StoreError> {
        let alias = alias.clone();
        self.write(move |pool| async move { aliases::remove_alias(&pool, &alias).await }).await
    }

    async fn delete(&self, session: SessionId, at: Timestamp) -> Result<(), StoreError> {
        self.write(move |pool| async move { maintenance::delete_session(&pool, session, at).await }).await?;
        // Read anew: the owner is in what a deleted session leaves behind.
        let owner = session_list::deleted_owner(&self.pool, session).await.ok().flatten();
        self.shared.feeds.end_session(session, owner.as_ref());
        Ok(())
    }

    async fn deleted_owner(&self, session: SessionId) -> Result<Option<Principal>, StoreError> {
        session_list::deleted_owner(&self.pool, session).await
    }

    async fn children(&self, session: SessionId) -> Result<Vec<SessionId>, StoreError> {
        session_list::list_children(&self.pool, session).await
    }

    async fn session_size(&self, session: SessionId) -> Result<u64, StoreError> {
        session_list::session_size(&self.pool, session).await
    }

    async fn append_scope(&self, append: ScopeAppend, _sync: Durability) -> Result<Seq, StoreError> {
        self.write(move |pool| async move { scopes::append_scope(&pool, append).await }).await
    }

    async fn read_scope(&self, scope: &str, after: Seq, limit: u32) -> Result<Vec<ScopeEntry>, StoreError> {
        scopes::read_scope(&self.pool, scope, after, limit).await
    }

    async fn scopes(
        &self,
        prefix: &str,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<(String, Timestamp)>, StoreError> {
        scopes::list_scopes(&self.pool, prefix, after.unwrap_or_default(), limit).await
    }

    async fn compact_scope(&self, scope: &str, upto: Seq, at: Timestamp, fact: Value) -> Result<(), StoreError> {
        let scope = scope.to_owned();
        self.write(move |pool| async move { scopes::compact_scope(&pool, &scope, upto, at, &fact).await }).await
    }

    async fn delete_scope(&self, scope: &str) -> Result<(), StoreError> {
        let scope = scope.to_owned();
        self.write(move |pool| async move { scopes::delete_scope(&pool, &scope).await }).await
    }

    async fn maintain(&self, now: Timestamp) -> Result<MaintenanceReport, StoreError> {
        self.shared.feeds.drop_quiet_rings();
        let grace = i64::try_from(self.grace.as_micros()).unwrap_or(i64::MAX);
        let ended_before = now.as_micros().saturating_sub(grace);
        self.write(move |pool| async move { maintenance::run_maintenance(&pool, ended_before).await }).await
    }

    async fn rebuild_folds(&self) -> Result<u64, StoreError> {
        self.write(|pool| async move { rebuild::rebuild_folds(&pool).await }).await
    }

    async fn health(&self) -> Health {
        let probe = async {
            self.check_open()?;
            match self.shared.last_commit() {
                Some(at) if at.elapsed() < HEALTH_TTL && self.shared.away_reason().is_none() => {
                    self.shared.check_keeping_up()
                }
                Some(_) | None => self.probe().await,
            }
        };
        match tokio::time::timeout(HEALTH_TIMEOUT, probe).await {
            Ok(Ok(())) => Health::Ready,
            Ok(Err(StoreError::Closed)) => Health::Closed,
            Ok(Err(error)) => Health::ReadOnly(error.to_string()),
            Err(_) => Health::Stalled,
        }
    }

    fn cluster(&self) -> Option<&dyn ClusterStore> {
        self.node.map(|_| self as &dyn ClusterStore)
    }

    fn stats(&self) -> Stats {
        self.shared.stats()
    }

    async fn close(&self) -> Result<(), StoreError> {
        self.shared.closed.store(true, Ordering::Relaxed);
        let (reply, closed) = oneshot::channel();
        if self.jobs.send(PostgresWriterJob::Close(reply)).await.is_ok() {
            // Gone already: nothing waits any more.
            drop(closed.await);
        }
        self.pool.close().await;
        Ok(())
    }
}
