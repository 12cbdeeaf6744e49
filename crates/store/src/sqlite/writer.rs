//! The one task that writes: takes what is waiting, commits it at once, then publishes it.

use std::sync::Arc;
use std::time::Duration;

use gander_domain::{Seq, SessionId};
use sqlx::sqlite::SqliteConnection;
use sqlx::{Connection, Row};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::checkpointer::Checkpointer;
use super::commit_plan::{self, CommitPlan};
use super::failure::{SqliteFailure, sqlite_store_error};
use super::heads::Heads;
use super::lock::StoreLock;
use super::open::{Incarnation, begin_incarnation};
use super::reclaim::{self, Reclaimed};
use super::script::{Cached, SqliteScript};
use super::shared::SqliteShared;
use crate::{Alias, Append, BusyTimeout, Claim, Committed, Durability, Epoch, ScopeAppend, StoreError};

/// A commit takes at most about this much of what waits.
const BATCH_ENTRIES: usize = 4096;
const BATCH_BYTES: usize = 256 * 1024;

/// A busy file is tried again after this time, and for so long.
const BUSY_RETRY: Duration = Duration::from_millis(300);
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// The compiled form of a longer script is not kept.
const MAX_CACHED_SQL: usize = 4 * 1024;

/// What the writer is asked to do.
pub(super) enum SqliteWriterJob {
    Append(Box<SqlitePending>),
    Claim(SessionId, oneshot::Sender<Result<Claim, StoreError>>),
    Scope(ScopeAppend, Durability, oneshot::Sender<Result<Seq, StoreError>>),
    /// Anything else, in its own transaction; gives the number of rows that its last change touched.
    Write(Write, oneshot::Sender<Result<u64, StoreError>>),
    /// A small synced commit, to see whether that works.
    Probe(oneshot::Sender<Result<(), StoreError>>),
    NewIncarnation(oneshot::Sender<Result<u32, StoreError>>),
    /// Gives free pages back to the system and empties the write-ahead log.
    Reclaim(oneshot::Sender<Result<Reclaimed, StoreError>>),
    Close(oneshot::Sender<Result<(), StoreError>>),
}

/// An append on its way.
pub(super) struct SqlitePending {
    pub(super) append: Append,
    /// Present if this creates the session.
    pub(super) aliases: Option<Vec<Alias>>,
    /// Where its session will end.
    pub(super) head: Seq,
    /// Where each of its scopes ended before.
    pub(super) scope_heads: Vec<Seq>,
    /// About the size of its entries.
    pub(super) size: usize,
    /// When it was tried first, if that was in vain.
    pub(super) tried: Option<Instant>,
    pub(super) reply: oneshot::Sender<Result<Committed, StoreError>>,
}

/// Statements that are no append.
pub(super) struct Write {
    pub(super) script: SqliteScript,
    pub(super) sync: Durability,
    /// What the statements may have changed behind the writer's memory.
    pub(super) invalidates: Invalidates,
}

/// What the writer must forget after a write.
pub(super) enum Invalidates {
    Nothing,
    Session(SessionId),
    Scope(String),
}

/// How often a batch was tried.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Attempt {
    Together,
    Alone,
}

pub(super) struct SqliteWriter {
    pub(super) connection: SqliteConnection,
    pub(super) shared: Arc<SqliteShared>,
    pub(super) heads: Heads,
    /// What `PRAGMA synchronous` is set to, if known.
    pub(super) level: Option<Durability>,
    pub(super) checkpointer: Checkpointer,
    pub(super) incarnation: Incarnation,
    pub(super) lock: StoreLock,
    /// Appends that found the file busy and are tried again.
    pub(super) retries: Vec<SqlitePending>,
}

impl SqliteWriterJob {
    /// True if nobody waits for it but readers of a stream, and it is small.
    fn may_gather(&self) -> bool {
        match self {
            Self::Append(pending) => pending.aliases.is_none() && pending.append.is_trickle(),
            Self::Claim(..)
            | Self::Scope(..)
            | Self::Write(..)
            | Self::Probe(_)
            | Self::NewIncarnation(_)
            | Self::Reclaim(_)
            | Self::Close(_) => false,
        }
    }

    /// True if it is queued however busy the writer is.
    pub(super) fn waits_when_busy(&self) -> bool {
        match self {
            Self::Append(pending) => pending.append.busy_timeout == BusyTimeout::Long,
            Self::Claim(..) | Self::Scope(..) | Self::Write(..) | Self::Probe(_) => false,
            Self::NewIncarnation(_) | Self::Reclaim(_) | Self::Close(_) => true,
        }
    }
}

impl SqliteWriter {
    /// Works until it is closed or nobody can ask any more.
    pub(super) async fn run_jobs(mut self, mut jobs: mpsc::Receiver<SqliteWriterJob>) {
        self.mark_open().await;
        let mut batch = WriterBatch::default();
        loop {
            self.shared.note_idle();
            // What is retries is tried again even if nobody asks for anything.
            let job = match self.retries.is_empty() {
                true => Ok(jobs.recv().await),
                false => tokio::time::timeout(BUSY_RETRY, jobs.recv()).await,
            };
            let mut next = match job {
                Ok(None) => break,
                Ok(job) => job,
                Err(_) => None,
            };
            // Sessions that stream flush at the same moment: let the others send what they have before the commit begins.
            if next.as_ref().is_some_and(SqliteWriterJob::may_gather) {
                tokio::task::yield_now().await;
            }
            self.shared.note_working();
            batch.pending.append(&mut self.retries);
            while let Some(job) = next {
                match job {
                    SqliteWriterJob::Append(pending) => batch.add_append(*pending),
                    SqliteWriterJob::Close(reply) => {
                        self.commit_batch(batch.take_appends(), Attempt::Together).await;
                        return send_sqlite_writer_reply(reply, self.close().await);
                    }
                    other @ (SqliteWriterJob::Claim(..)
                    | SqliteWriterJob::Scope(..)
                    | SqliteWriterJob::Write(..)
                    | SqliteWriterJob::Probe(_)
                    | SqliteWriterJob::NewIncarnation(_)
                    | SqliteWriterJob::Reclaim(_)) => {
                        self.commit_batch(batch.take_appends(), Attempt::Together).await;
                        self.handle_job(other).await;
                    }
                }
                next = if batch.is_full() { None } else { jobs.try_recv().ok() };
            }
            self.commit_batch(batch.take_appends(), Attempt::Together).await;
            self.checkpointer.wake_or_checkpoint(&mut self.connection).await;
        }
        if let Err(error) = self.close().await {
            tracing::warn!(%error, "log was not closed cleanly");
        }
    }

    async fn handle_job(&mut self, job: SqliteWriterJob) {
        match job {
            SqliteWriterJob::Claim(session, reply) => {
                send_sqlite_writer_reply(reply, self.claim_session(session).await)
            }
            SqliteWriterJob::Scope(append, sync, reply) => {
                send_sqlite_writer_reply(reply, self.append_scope(append, sync).await)
            }
            SqliteWriterJob::Write(write, reply) => send_sqlite_writer_reply(reply, self.execute_write(write).await),
            SqliteWriterJob::Probe(reply) => send_sqlite_writer_reply(reply, self.probe_database().await),
            SqliteWriterJob::NewIncarnation(reply) => send_sqlite_writer_reply(reply, self.new_incarnation().await),
            SqliteWriterJob::Reclaim(reply) => send_sqlite_writer_reply(reply, self.reclaim().await),
            SqliteWriterJob::Append(_) | SqliteWriterJob::Close(_) => unreachable!("taken by the loop"),
        }
    }

    /// Commits what can be committed; whoever does not fit is told, the others are not held back.
    async fn commit_batch(&mut self, batch: Vec<SqlitePending>, attempt: Attempt) {
        let mut admitted = Vec::with_capacity(batch.len());
        for mut pending in batch {
            match self.check_writer(&mut pending).await {
                Ok(()) => admitted.push(pending),
                Err(error) => self.refuse_or_retry(pending, error),
            }
        }
        if admitted.is_empty() {
            return;
        }
        #[cfg(bug = "publish_before_commit")]
        admitted.iter().for_each(|pending| self.shared.publish_committed(pending.append.clone(), 0));
        match self.commit_admitted(&mut admitted).await {
            Ok(()) => admitted.into_iter().for_each(|pending| self.shared.publish_and_reply(pending)),
            Err(failure) => self.recover_from_failure(admitted, &failure, attempt).await,
        }
    }

    /// After a failed commit nothing is known any more; what only did not fit is tried again, one by one.
    async fn recover_from_failure(&mut self, batch: Vec<SqlitePending>, failure: &SqliteFailure, attempt: Attempt) {
        batch.iter().for_each(|pending| self.heads.forget_append(&pending.append));
        if attempt == Attempt::Together && matches!(failure, SqliteFailure::Constraint(_)) {
            for pending in batch {
                Box::pin(self.commit_batch(vec![pending], Attempt::Alone)).await;
            }
            return;
        }
        for pending in batch {
            let error = self.refusal_reason(&pending, failure).await;
            self.refuse_or_retry(pending, error);
        }
    }

    /// What a run says is tried again for a while if the file is only busy.
    fn refuse_or_retry(&mut self, mut pending: SqlitePending, error: StoreError) {
        let tried = *pending.tried.get_or_insert_with(Instant::now);
        let patient = pending.append.busy_timeout == BusyTimeout::Long && tried.elapsed() < BUSY_TIMEOUT;
        if patient && matches!(error, StoreError::Busy(_)) {
            self.retries.push(pending);
        } else {
            self.shared.reply_refused(pending, error);
        }
    }

    async fn check_writer(&mut self, pending: &mut SqlitePending) -> Result<(), StoreError> {
        self.shared.check_writable()?;
        match pending.aliases {
            Some(_) => self.heads.admit_new(&mut self.connection, pending).await,
            None => self.heads.check_writer(&mut self.connection, pending).await,
        }
    }

    async fn commit_admitted(&mut self, batch: &mut [SqlitePending]) -> Result<(), SqliteFailure> {
        let mut plan = CommitPlan::for_batch(batch).map_err(|error| SqliteFailure::Other(error.to_string()))?;
        let sync = batch.iter().map(|pending| pending.append.sync).max().unwrap_or(Durability::Relaxed);
        if plan.script.is_empty() {
            if sync == Durability::Relaxed {
                return Ok(());
            }
            // A barrier without anything to write still makes safe what came before.
            plan.script.push_sql("UPDATE meta SET probe = probe + 1;\n");
        }
        self.execute_script(plan.script, sync, if plan.single { Wrap::Bare } else { Wrap::Transaction }).await?;
        batch.iter_mut().zip(plan.sizes).for_each(|(pending, size)| pending.size = size);
        self.checkpointer.note_written(plan.bytes);
        self.shared.counters.add_batch(batch, plan.rows);
        Ok(())
    }

    /// Runs statements in one commit at a level of safety.
    async fn execute_script(
        &mut self,
        script: SqliteScript,
        sync: Durability,
        wrap: Wrap,
    ) -> Result<u64, SqliteFailure> {
        if let Err(error) = self.set_synchronous(sync).await {
            return Err(self.roll_back(&error).await);
        }
        let script = wrap_written_script(script, wrap);
        // What one busy session writes has few forms; what many write together is another one each time.
        let cached = if script.sql.len() <= MAX_CACHED_SQL { Cached::Yes } else { Cached::No };
        self.level = None;
        let result = match self.shared.faults.fail_if_seeded() {
            Ok(()) => script.execute_script(&mut self.connection, cached).await,
            Err(error) => Err(error),
        };
        match result {
            Ok(changed) => {
                self.level = Some(sync);
                self.shared.note_commit(sync);
                Ok(changed)
            }
            Err(error) => Err(self.roll_back(&error).await),
        }
    }

    /// Sets the level if it is another one. By itself and never kept: a level is set when its statement is compiled.
    async fn set_synchronous(&mut self, sync: Durability) -> Result<(), sqlx::Error> {
        if self.level == Some(sync) {
            return Ok(());
        }
        self.level = None;
        let level = match sync {
            #[cfg(not(bug = "unsynced"))]
            Durability::Barrier => "PRAGMA synchronous = FULL",
            #[cfg(bug = "unsynced")]
            Durability::Barrier => "PRAGMA synchronous = NORMAL",
            Durability::Relaxed => "PRAGMA synchronous = NORMAL",
        };
        SqliteScript::new(level).execute_script(&mut self.connection, Cached::No).await?;
        self.level = Some(sync);
        Ok(())
    }

    async fn roll_back(&mut self, error: &sqlx::Error) -> SqliteFailure {
        // Fails if the error ended the transaction already, or none was begun.
        sqlx::query("ROLLBACK").persistent(false).execute(&mut self.connection).await.ok();
        let failure = SqliteFailure::classify_error(error);
        self.shared.note_failure(&failure);
        failure
    }

    async fn claim_session(&mut self, session: SessionId) -> Result<Claim, StoreError> {
        self.shared.check_writable()?;
        self.heads.forget_session(session);
        let claim = self.heads.claim_of(&mut self.connection, session).await?;
        let mut script = SqliteScript::new("UPDATE session SET epoch = epoch + 1 WHERE id = ?");
        script.bind_session(session);
        self.execute_script(script, Durability::Relaxed, Wrap::Transaction)
            .await
            .map_err(|failure| failure.to_store_error())?;
        let claim = Claim { epoch: Epoch(claim.epoch.0 + 1), head: claim.head };
        self.heads.set_claim(session, claim);
        Ok(claim)
    }

    async fn append_scope(&mut self, append: ScopeAppend, sync: Durability) -> Result<Seq, StoreError> {
        self.shared.check_writable()?;
        let scopes = [append];
        let heads = self.heads.admit_scopes(&mut self.connection, &scopes).await?;
        let [append] = scopes;
        let mut script = SqliteScript::default();
        commit_plan::plan_scope_facts(&mut script, &append, heads[0]);
        if let Err(failure) = self.execute_script(script, sync, Wrap::Transaction).await {
            self.heads.forget_scope(&append.scope);
            return Err(failure.to_store_error());
        }
        Ok(Seq(heads[0].0 + append.facts.len() as u64))
    }

    async fn execute_write(&mut self, write: Write) -> Result<u64, StoreError> {
        self.shared.check_writable()?;
        let result = self.execute_script(write.script, write.sync, Wrap::Transaction).await;
        match write.invalidates {
            Invalidates::Nothing => {}
            Invalidates::Session(session) => self.heads.forget_session(session),
            Invalidates::Scope(scope) => self.heads.forget_scope(&scope),
        }
        result.map_err(|failure| failure.to_store_error())
    }

    /// A full disk may have room again; a broken one is never trusted again.
    async fn probe_database(&mut self) -> Result<(), StoreError> {
        self.shared.check_probe_allowed()?;
        let script = SqliteScript::new("UPDATE meta SET probe = probe + 1");
        self.execute_script(script, Durability::Barrier, Wrap::Bare)
            .await
            .map_err(|failure| failure.to_store_error())?;
        self.shared.set_writable();
        Ok(())
    }

    async fn new_incarnation(&mut self) -> Result<u32, StoreError> {
        self.shared.check_writable()?;
        begin_incarnation(&mut self.connection).await
    }

    async fn reclaim(&mut self) -> Result<Reclaimed, StoreError> {
        self.shared.check_writable()?;
        // Whatever a statement here does to the level, the next commit sets its own.
        self.level = None;
        reclaim::reclaim(&mut self.connection).await
    }

    /// From now on a power cut may lose something: the next start must know.
    async fn mark_open(&mut self) {
        let mut script = SqliteScript::new("UPDATE meta SET clean = 0, boot = ?");
        script.bind_value(self.incarnation.boot.clone());
        if let Err(failure) = self.execute_script(script, Durability::Barrier, Wrap::Bare).await {
            tracing::error!(?failure, "log cannot be written");
        }
    }

    async fn close(mut self) -> Result<(), StoreError> {
        let marked = match self.shared.check_writable() {
            Ok(()) => {
                self.execute_script(SqliteScript::new("UPDATE meta SET clean = 1"), Durability::Barrier, Wrap::Bare)
                    .await
            }
            Err(_) => Ok(0),
        };
        self.checkpointer.finish_checkpoints().await;
        self.shared.feeds.end_all();
        self.connection.close().await.map_err(sqlite_store_error)?;
        drop(self.lock);
        marked.map(|_| ()).map_err(|failure| failure.to_store_error())
    }

    /// Why an append that was tried alone did not fit.
    async fn refusal_reason(&mut self, pending: &SqlitePending, failure: &SqliteFailure) -> StoreError {
        if let (SqliteFailure::Constraint(_), Some(aliases)) = (failure, &pending.aliases) {
            match self.heads.claim_of(&mut self.connection, pending.append.session).await {
                Ok(_) => return StoreError::Exists(pending.append.session),
                Err(StoreError::Deleted(session)) => return StoreError::Deleted(session),
                Err(_) => {}
            }
            for alias in aliases {
                if let Ok(Some(session)) = find_alias(&mut self.connection, alias).await {
                    return StoreError::AliasTaken(session);
                }
            }
        }
        failure.to_store_error()
    }
}

/// The session behind a name.
pub(super) async fn find_alias(
    connection: impl sqlx::Executor<'_, Database = sqlx::Sqlite>,
    alias: &Alias,
) -> Result<Option<SessionId>, StoreError> {
    let query =
        sqlx::query("SELECT session FROM alias WHERE principal = ? AND door = ? AND namespace = ? AND text = ?")
            .bind(alias.principal.as_str())
            .bind(&alias.door)
            .bind(&alias.namespace)
            .bind(&alias.text);
    let row = query.fetch_optional(connection).await.map_err(sqlite_store_error)?;
    row.map(|row| super::read::read_sqlite_session_id(row.get(0))).transpose()
}

/// Whether statements need a transaction around them.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wrap {
    Bare,
    Transaction,
}

fn wrap_written_script(mut script: SqliteScript, wrap: Wrap) -> SqliteScript {
    match wrap {
        Wrap::Bare => {}
        Wrap::Transaction => script.sql = format!("BEGIN IMMEDIATE;\n{};\nCOMMIT", script.sql),
    }
    script
}

/// Appends that wait together.
#[derive(Default)]
struct WriterBatch {
    pending: Vec<SqlitePending>,
    entries: usize,
    bytes: usize,
}

impl WriterBatch {
    fn add_append(&mut self, pending: SqlitePending) {
        self.entries += pending.append.entries.len();
        self.bytes += super::shared::sqlite_entries_bytes(&pending.append.entries);
        self.pending.push(pending);
    }

    fn is_full(&self) -> bool {
        self.entries >= BATCH_ENTRIES || self.bytes >= BATCH_BYTES
    }

    fn take_appends(&mut self) -> Vec<SqlitePending> {
        std::mem::take(self).pending
    }
}

/// Whoever asked may be gone; the work is done all the same.
fn send_sqlite_writer_reply<T>(reply: oneshot::Sender<T>, value: T) {
    drop(reply.send(value));
}
