//! The log in one SQLite file: one writer with group commit, readers beside it, nothing to set up.

mod backup;
mod checkpointer;
mod commit_plan;
mod failure;
mod heads;
mod list;
mod lock;
mod maintenance;
mod open;
mod read;
mod readers;
mod reclaim;
mod runs;
mod script;
mod shared;
mod writer;
mod writer_queue;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use async_trait::async_trait;
use gander_domain::{Entry, Principal, QuestionId, RunId, Seq, SessionId, Timestamp};
use rusqlite::Connection;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot, watch};

use self::readers::SqliteReaders;
use self::reclaim::Reclaimed;
use self::script::SqliteScript;
use self::shared::SqliteShared;
use self::writer::{Invalidates, SqlitePending, SqliteWriter, SqliteWriterJob, Write};
use super::{
    Alias, Append, Claim, Committed, DeltaForm, Durability, Health, Limit, MaintenanceReport, QuestionRow, RunPage,
    RunQuery, RunRow, ScopeAppend, ScopeEntry, SessionPage, SessionQuery, SessionSummary, Snapshot, Stats, Store,
    StoreError, Tail,
};
pub use backup::{BackupFile, BackupFileKind, BackupInfo, BackupReader, BackupWriter};
pub use list::sqlite_list_statements;
pub(crate) use lock::{ExclusiveFile, open_exclusive};
pub use open::library_version;
pub use reclaim::reclaim_whole_file;
pub use shared::Faults;

/// Health is asked of the disk again after this time.
const HEALTH_TTL: Duration = Duration::from_secs(5);

/// Whoever asks for the health is told by then.
const HEALTH_TIMEOUT: Duration = Duration::from_secs(1);

/// Where the log is, and its bounds.
#[derive(Clone)]
pub struct StoreOptions {
    /// The data directory; the file in it is `log.db`.
    pub directory: PathBuf,
    /// How long after its run's end a delta may still be read from its own row.
    pub grace: Duration,
    /// The file may have so many pages of 4 KiB; absent: what the disk holds.
    pub max_pages: Option<u32>,
    /// For tests.
    pub faults: Faults,
}

impl StoreOptions {
    /// The usual bounds.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        let faults = Faults::default();
        Self { directory: directory.into(), grace: Duration::from_secs(600), max_pages: None, faults }
    }
}

/// The log in one SQLite file.
pub struct SqliteStore {
    jobs: mpsc::Sender<SqliteWriterJob>,
    readers: SqliteReaders,
    shared: Arc<SqliteShared>,
    grace: Duration,
}

impl SqliteStore {
    /// Opens or makes the log; only one process can.
    pub async fn open(options: StoreOptions) -> Result<Self, StoreError> {
        let StoreOptions { directory, grace, max_pages, faults } = options;
        let (lock, path) = lock::lock_store_file(&directory)?;
        // A server that was killed left pages as they were before its last deletions.
        let has_leftovers = directory.join("log.db-wal").exists();
        let (jobs, waiting) = mpsc::channel(1024);
        let (opened, shared) = oneshot::channel();
        let writer_path = path.clone();
        let run_writer = move || match SqliteWriter::open(&writer_path, lock, max_pages, faults) {
            Ok(writer) => {
                drop(opened.send(Ok(Arc::clone(&writer.shared))));
                writer.run_jobs(waiting);
            }
            Err(error) => drop(opened.send(Err(error))),
        };
        let started = thread::Builder::new().name("log-writer".to_owned()).spawn(run_writer);
        started.map_err(|error| StoreError::Failed(format!("cannot start the writer: {error}")))?;
        let shared = shared.await.map_err(|_| StoreError::Closed)??;
        shared.reclaim_due.store(has_leftovers, Ordering::Relaxed);
        let readers = SqliteReaders::new(path);
        Ok(Self { jobs, readers, shared, grace })
    }

    /// Begins a new incarnation, as after a restore: every cursor of before is refused.
    pub async fn new_incarnation(&self) -> Result<u32, StoreError> {
        let incarnation = self.send_writer_job(SqliteWriterJob::NewIncarnation).await?;
        self.shared.incarnation.store(incarnation, Ordering::Relaxed);
        Ok(incarnation)
    }

    async fn reclaim(&self) -> Result<Reclaimed, StoreError> {
        self.send_writer_job(SqliteWriterJob::Reclaim).await
    }

    async fn send_writer_job<T>(
        &self,
        job: impl FnOnce(oneshot::Sender<Result<T, StoreError>>) -> SqliteWriterJob,
    ) -> Result<T, StoreError> {
        let (reply, answer) = oneshot::channel();
        let job = job(reply);
        if !job.waits_when_busy() {
            self.shared.check_keeping_up()?;
        }
        self.jobs.send(job).await.map_err(|_| StoreError::Closed)?;
        answer.await.map_err(|_| StoreError::Closed)?
    }

    async fn send_append(&self, append: Append, aliases: Option<Vec<Alias>>) -> Result<Committed, StoreError> {
        let pending = |reply| SqlitePending {
            append,
            aliases,
            head: Seq::ZERO,
            scope_heads: Vec::new(),
            size: 0,
            tried: None,
            reply,
        };
        self.send_writer_job(|reply| SqliteWriterJob::Append(Box::new(pending(reply)))).await
    }

    async fn write_script(
        &self,
        script: SqliteScript,
        sync: Durability,
        invalidates: Invalidates,
    ) -> Result<u64, StoreError> {
        self.send_writer_job(|reply| SqliteWriterJob::Write(Write { script, sync, invalidates }, reply)).await
    }
}

#[async_trait]
impl Store for SqliteStore {
    async fn create(&self, append: Append, aliases: Vec<Alias>) -> Result<Committed, StoreError> {
        self.send_append(append, Some(aliases)).await
    }

    async fn claim(&self, session: SessionId) -> Result<Claim, StoreError> {
        self.send_writer_job(|reply| SqliteWriterJob::Claim(session, reply)).await
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
        self.readers.read(move |reader| read::read_entries(reader, session, after, limit, form)).await
    }

    async fn head(&self, session: SessionId) -> Result<Seq, StoreError> {
        self.readers.read(move |reader| read::read_head(reader, session)).await
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
        self.readers.read(move |reader| read::read_snapshot(reader, session, version, upto)).await
    }

    async fn sessions(&self, query: SessionQuery) -> Result<SessionPage, StoreError> {
        self.readers.read(move |reader| list::list_sessions(reader, &query)).await
    }

    async fn session_summary(&self, session: SessionId) -> Result<SessionSummary, StoreError> {
        let read = move |reader: &Connection| match list::read_summary(reader, session)? {
            Some(card) => Ok(card),
            None => Err(read::read_head(reader, session).err().unwrap_or(StoreError::NotFound(session))),
        };
        self.readers.read(read).await
    }

    async fn open_runs(&self, after: Option<(RunId, SessionId)>, limit: u32) -> Result<Vec<RunRow>, StoreError> {
        self.readers.read(move |reader| list::list_open_runs(reader, after, limit)).await
    }

    async fn run(&self, run: RunId) -> Result<Option<RunRow>, StoreError> {
        self.readers.read(move |reader| list::find_run(reader, run)).await
    }

    async fn run_of_owner(&self, run: RunId, owner: &Principal) -> Result<Option<RunRow>, StoreError> {
        let owner = owner.clone();
        self.readers.read(move |reader| list::find_run_of_owner(reader, run, &owner)).await
    }

    async fn runs(&self, query: RunQuery) -> Result<RunPage, StoreError> {
        self.readers.read(move |reader| runs::list_runs(reader, &query)).await
    }

    async fn question(&self, question: QuestionId) -> Result<Option<QuestionRow>, StoreError> {
        self.readers.read(move |reader| list::find_question(reader, question)).await
    }

    async fn resolve_alias(&self, alias: &Alias) -> Result<Option<SessionId>, StoreError> {
        let alias = alias.clone();
        self.readers.read(move |reader| list::find_alias(reader, &alias)).await
    }

    async fn aliases(&self, session: SessionId) -> Result<Vec<Alias>, StoreError> {
        self.readers.read(move |reader| list::list_aliases(reader, session)).await
    }

    async fn aliases_in(
        &self,
        principal: &Principal,
        door: &str,
        namespace: &str,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<(String, SessionId)>, StoreError> {
        let names = [principal.as_str(), door, namespace, after.unwrap_or_default()].map(str::to_owned);
        self.readers.read(move |reader| list::list_aliases_in(reader, &names, limit)).await
    }

    async fn set_alias(&self, alias: Alias, session: SessionId) -> Result<(), StoreError> {
        self.head(session).await?;
        self.write_script(maintenance::set_alias_script(&alias, session), Durability::Barrier, Invalidates::Nothing)
            .await?;
        match self.resolve_alias(&alias).await? {
            Some(taken) if taken != session => Err(StoreError::AliasTaken(taken)),
            Some(_) => Ok(()),
            None => Err(StoreError::Deleted(session)),
        }
    }

    async fn remove_alias(&self, alias: &Alias) -> Result<bool, StoreError> {
        Ok(self
            .write_script(maintenance::remove_alias_script(alias), Durability::Barrier, Invalidates::Nothing)
            .await?
            > 0)
    }

    async fn delete(&self, session: SessionId, at: Timestamp) -> Result<(), StoreError> {
        self.head(session).await?;
        self.write_script(
            maintenance::delete_session_script(session, at),
            Durability::Barrier,
            Invalidates::Session(session),
        )
        .await?;
        self.shared.reclaim_due.store(true, Ordering::Relaxed);
        // Read anew: the owner is in what a deleted session leaves behind.
        let owner = self.deleted_owner(session).await.ok().flatten();
        self.shared.feeds.end_session(session, owner.as_ref());
        Ok(())
    }

    async fn deleted_owner(&self, session: SessionId) -> Result<Option<Principal>, StoreError> {
        self.readers.read(move |reader| list::deleted_owner(reader, session)).await
    }

    async fn children(&self, session: SessionId) -> Result<Vec<SessionId>, StoreError> {
        self.readers.read(move |reader| list::list_children(reader, session)).await
    }

    async fn session_size(&self, session: SessionId) -> Result<u64, StoreError> {
        self.readers.read(move |reader| list::session_size(reader, session)).await
    }

    async fn append_scope(&self, append: ScopeAppend, sync: Durability) -> Result<Seq, StoreError> {
        self.send_writer_job(|reply| SqliteWriterJob::Scope(append, sync, reply)).await
    }

    async fn read_scope(&self, scope: &str, after: Seq, limit: u32) -> Result<Vec<ScopeEntry>, StoreError> {
        let scope = scope.to_owned();
        self.readers.read(move |reader| read::read_scope(reader, &scope, after, limit)).await
    }

    async fn scopes(
        &self,
        prefix: &str,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<(String, Timestamp)>, StoreError> {
        let (prefix, after) = (prefix.to_owned(), after.unwrap_or_default().to_owned());
        self.readers.read(move |reader| read::list_scopes(reader, &prefix, &after, limit)).await
    }

    async fn compact_scope(&self, scope: &str, upto: Seq, at: Timestamp, fact: Value) -> Result<(), StoreError> {
        self.write_script(
            maintenance::compact_scope_script(scope, upto, at, &fact),
            Durability::Relaxed,
            Invalidates::Nothing,
        )
        .await?;
        self.shared.reclaim_due.store(true, Ordering::Relaxed);
        Ok(())
    }

    async fn delete_scope(&self, scope: &str) -> Result<(), StoreError> {
        let mut script = SqliteScript::new("DELETE FROM scope WHERE name = ?");
        script.bind_value(scope.to_owned());
        self.write_script(script, Durability::Barrier, Invalidates::Scope(scope.to_owned())).await?;
        self.shared.reclaim_due.store(true, Ordering::Relaxed);
        Ok(())
    }

    async fn maintain(&self, now: Timestamp) -> Result<MaintenanceReport, StoreError> {
        self.shared.feeds.drop_quiet_rings();
        self.readers.close_idle();
        maintenance::run_maintenance(self, now).await
    }

    async fn rebuild_folds(&self) -> Result<u64, StoreError> {
        maintenance::rebuild_folds(self).await
    }

    async fn health(&self) -> Health {
        let probe = async {
            match self.shared.last_commit() {
                Some(at) if at.elapsed() < HEALTH_TTL && !self.shared.is_busy() => {
                    self.shared.check_keeping_up().and(self.shared.check_writable())
                }
                Some(_) | None => self.send_writer_job(SqliteWriterJob::Probe).await,
            }
        };
        match tokio::time::timeout(HEALTH_TIMEOUT, probe).await {
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
        match self.send_writer_job(SqliteWriterJob::Close).await {
            Ok(()) | Err(StoreError::Closed) => Ok(()),
            Err(error) => Err(error),
        }
    }
}
