//! The log in one SQLite file: one writer with group commit, readers beside it, nothing to set up.

mod failure;
mod heads;
mod keeper;
mod list;
mod lock;
mod open;
mod plan;
mod read;
mod runs;
mod script;
mod shared;
mod upkeep;
mod writer;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use async_trait::async_trait;
use gander_domain::{Entry, Principal, QuestionId, RunId, Seq, SessionId, Timestamp};
use serde_json::Value;
use sqlx::sqlite::{SqlitePool, SqlitePoolOptions};
use tokio::sync::{mpsc, oneshot};

use self::script::Script;
use self::shared::Shared;
use self::writer::{Job, Pending, Touches, Write, Writer};
use super::{
    Alias, Append, Card, Claim, Committed, Durability, Form, Health, Limit, Maintained, Page, QuestionRow, RunPage,
    RunQuery, RunRow, ScopeAppend, ScopeEntry, SessionQuery, Snapshot, Stats, Store, StoreError, Tail,
};
pub use list::list_statements;
pub use open::library_version;
pub use shared::Faults;

/// Health is asked of the disk again after this time.
const FRESH: Duration = Duration::from_secs(5);

/// Whoever asks for the health is told by then.
const HEALTH: Duration = Duration::from_secs(1);

/// Where the log is, and its bounds.
#[derive(Clone)]
pub struct Options {
    /// The data directory; the file in it is `log.db`.
    pub directory: PathBuf,
    /// How long after its run's end a delta may still be read from its own row.
    pub grace: Duration,
    /// The file may have so many pages of 4 KiB; absent: what the disk holds.
    pub max_pages: Option<u32>,
    /// For tests.
    pub faults: Faults,
}

impl Options {
    /// The usual bounds.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        let faults = Faults::default();
        Self { directory: directory.into(), grace: Duration::from_secs(600), max_pages: None, faults }
    }
}

/// The log in one SQLite file.
pub struct SqliteStore {
    jobs: mpsc::Sender<Job>,
    readers: SqlitePool,
    shared: Arc<Shared>,
    grace: Duration,
}

impl SqliteStore {
    /// Opens or makes the log; only one process can.
    pub async fn open(options: Options) -> Result<Self, StoreError> {
        let Options { directory, grace, max_pages, faults } = options;
        let lock = lock::Lock::take(&directory)?;
        let path = directory.join("log.db");
        if !path.exists() {
            drop(lock::open_private(&path)?);
            lock::sync_directory(&directory)?;
        }
        let mut connection = open::writer(&path, max_pages).await?;
        let life = open::life(&mut connection).await?;
        let shared = Arc::new(Shared::new(life.incarnation, faults));
        let (jobs, waiting) = mpsc::channel(1024);
        let keeper = keeper::Keeper::start(&path);
        let heads = heads::Heads::default();
        let (level, late) = (None, Vec::new());
        let writer = Writer { connection, shared: Arc::clone(&shared), heads, level, keeper, life, lock, late };
        tokio::spawn(writer.work(waiting));
        let readers = SqlitePoolOptions::new().max_connections(4).idle_timeout(Duration::from_secs(30));
        let readers = readers.acquire_timeout(Duration::from_secs(10));
        let readers = readers.connect_lazy_with(open::connect_options(&path).read_only(true));
        Ok(Self { jobs, readers, shared, grace })
    }

    /// Begins a new incarnation, as after a restore: every cursor of before is refused.
    pub async fn new_life(&self) -> Result<u32, StoreError> {
        let incarnation = self.ask(Job::NewLife).await?;
        self.shared.incarnation.store(incarnation, Ordering::Relaxed);
        Ok(incarnation)
    }

    async fn ask<T>(&self, job: impl FnOnce(oneshot::Sender<Result<T, StoreError>>) -> Job) -> Result<T, StoreError> {
        let (reply, answer) = oneshot::channel();
        let job = job(reply);
        if !job.is_patient() {
            self.shared.takes()?;
        }
        self.jobs.send(job).await.map_err(|_| StoreError::Closed)?;
        answer.await.map_err(|_| StoreError::Closed)?
    }

    async fn send(&self, append: Append, aliases: Option<Vec<Alias>>) -> Result<Committed, StoreError> {
        let pending =
            |reply| Pending { append, aliases, head: Seq::ZERO, scope_heads: Vec::new(), size: 0, tried: None, reply };
        self.ask(|reply| Job::Append(Box::new(pending(reply)))).await
    }

    async fn write(&self, script: Script, sync: Durability, touches: Touches) -> Result<u64, StoreError> {
        self.ask(|reply| Job::Write(Write { script, sync, touches }, reply)).await
    }
}

#[async_trait]
impl Store for SqliteStore {
    async fn create(&self, append: Append, aliases: Vec<Alias>) -> Result<Committed, StoreError> {
        self.send(append, Some(aliases)).await
    }

    async fn claim(&self, session: SessionId) -> Result<Claim, StoreError> {
        self.ask(|reply| Job::Claim(session, reply)).await
    }

    async fn append(&self, append: Append) -> Result<Committed, StoreError> {
        self.send(append, None).await
    }

    async fn read(&self, session: SessionId, after: Seq, limit: Limit, form: Form) -> Result<Vec<Entry>, StoreError> {
        read::entries(&self.readers, session, after, limit, form).await
    }

    async fn head(&self, session: SessionId) -> Result<Seq, StoreError> {
        read::head(&self.readers, session).await
    }

    fn incarnation(&self) -> u32 {
        self.shared.incarnation.load(Ordering::Relaxed)
    }

    fn subscribe(&self, session: SessionId) -> Tail {
        self.shared.feeds.subscribe(session)
    }

    async fn snapshot(&self, session: SessionId, version: u32, upto: Seq) -> Result<Option<Snapshot>, StoreError> {
        read::snapshot(&self.readers, session, version, upto).await
    }

    async fn sessions(&self, query: SessionQuery) -> Result<Page, StoreError> {
        list::sessions(&self.readers, query).await
    }

    async fn card(&self, session: SessionId) -> Result<Card, StoreError> {
        match list::card(&self.readers, session).await? {
            Some(card) => Ok(card),
            None => Err(read::head(&self.readers, session).await.err().unwrap_or(StoreError::NotFound(session))),
        }
    }

    async fn open_runs(&self, after: Option<(RunId, SessionId)>, limit: u32) -> Result<Vec<RunRow>, StoreError> {
        list::open_runs(&self.readers, after, limit).await
    }

    async fn run(&self, run: RunId) -> Result<Option<RunRow>, StoreError> {
        list::run(&self.readers, run).await
    }

    async fn run_of(&self, run: RunId, owner: &Principal) -> Result<Option<RunRow>, StoreError> {
        list::run_of_owner(&self.readers, run, owner).await
    }

    async fn runs(&self, query: RunQuery) -> Result<RunPage, StoreError> {
        runs::runs(&self.readers, query).await
    }

    async fn question(&self, question: QuestionId) -> Result<Option<QuestionRow>, StoreError> {
        list::question(&self.readers, question).await
    }

    async fn resolve_alias(&self, alias: &Alias) -> Result<Option<SessionId>, StoreError> {
        writer::find_alias(&self.readers, alias).await
    }

    async fn aliases(&self, session: SessionId) -> Result<Vec<Alias>, StoreError> {
        list::aliases(&self.readers, session).await
    }

    async fn named(
        &self,
        principal: &Principal,
        door: &str,
        namespace: &str,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<(String, SessionId)>, StoreError> {
        list::named(&self.readers, [principal.as_str(), door, namespace, after.unwrap_or_default()], limit).await
    }

    async fn set_alias(&self, alias: Alias, session: SessionId) -> Result<(), StoreError> {
        read::head(&self.readers, session).await?;
        self.write(upkeep::set_alias(&alias, session), Durability::Barrier, Touches::Nothing).await?;
        match self.resolve_alias(&alias).await? {
            Some(taken) if taken != session => Err(StoreError::AliasTaken(taken)),
            Some(_) => Ok(()),
            None => Err(StoreError::Deleted(session)),
        }
    }

    async fn free_alias(&self, alias: &Alias) -> Result<bool, StoreError> {
        Ok(self.write(upkeep::free_alias(alias), Durability::Barrier, Touches::Nothing).await? > 0)
    }

    async fn delete(&self, session: SessionId, at: Timestamp) -> Result<(), StoreError> {
        read::head(&self.readers, session).await?;
        self.write(upkeep::tombstone(session, at), Durability::Barrier, Touches::Session(session)).await?;
        self.shared.feeds.end(session);
        Ok(())
    }

    async fn deleted_owner(&self, session: SessionId) -> Result<Option<Principal>, StoreError> {
        list::deleted_owner(&self.readers, session).await
    }

    async fn append_scope(&self, append: ScopeAppend, sync: Durability) -> Result<Seq, StoreError> {
        self.ask(|reply| Job::Scope(append, sync, reply)).await
    }

    async fn read_scope(&self, scope: &str, after: Seq, limit: u32) -> Result<Vec<ScopeEntry>, StoreError> {
        read::scope(&self.readers, scope, after, limit).await
    }

    async fn scopes(
        &self,
        prefix: &str,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<(String, Timestamp)>, StoreError> {
        read::scopes(&self.readers, prefix, after.unwrap_or_default(), limit).await
    }

    async fn shorten_scope(&self, scope: &str, upto: Seq, at: Timestamp, fact: Value) -> Result<(), StoreError> {
        self.write(upkeep::shorten_scope(scope, upto, at, &fact), Durability::Relaxed, Touches::Nothing).await.map(drop)
    }

    async fn delete_scope(&self, scope: &str) -> Result<(), StoreError> {
        let mut script = Script::new("DELETE FROM scope WHERE name = ?");
        script.bind(scope.to_owned());
        self.write(script, Durability::Barrier, Touches::Scope(scope.to_owned())).await?;
        Ok(())
    }

    async fn maintain(&self, now: Timestamp) -> Result<Maintained, StoreError> {
        self.shared.feeds.settle();
        upkeep::maintain(self, now).await
    }

    async fn rebuild(&self) -> Result<u64, StoreError> {
        upkeep::rebuild(self).await
    }

    async fn health(&self) -> Health {
        let probe = async {
            match self.shared.last_commit() {
                Some(at) if at.elapsed() < FRESH && !self.shared.is_busy() => {
                    self.shared.takes().and(self.shared.writable())
                }
                Some(_) | None => self.ask(Job::Probe).await,
            }
        };
        match tokio::time::timeout(HEALTH, probe).await {
            Ok(Ok(())) => Health::Ready,
            Ok(Err(StoreError::Closed)) => Health::Closed,
            Ok(Err(error)) => Health::ReadOnly(error.to_string()),
            Err(_) => Health::Stalled,
        }
    }

    fn stats(&self) -> Stats {
        self.shared.counters.stats()
    }

    async fn close(&self) -> Result<(), StoreError> {
        self.readers.close().await;
        match self.ask(Job::Close).await {
            Ok(()) | Err(StoreError::Closed) => Ok(()),
            Err(error) => Err(error),
        }
    }
}
