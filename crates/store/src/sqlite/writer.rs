//! The one thread that writes: takes what is waiting, commits it at once, then publishes it.
//!
//! It calls SQLite itself: an append is one hand-over to this thread and one answer.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use gander_domain::{Seq, SessionId};
use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::checkpointer::Checkpointer;
use super::commit_plan::{self, CommitPlan};
use super::failure::SqliteFailure;
use super::heads::Heads;
use super::list::find_alias;
use super::lock::StoreLock;
use super::open::{Incarnation, begin_incarnation, open_writer, read_incarnation};
use super::reclaim::{self, Reclaimed};
use super::script::SqliteScript;
use super::shared::{Faults, SqliteShared};
use super::writer_queue::{WriterBatch, poll_writer_jobs, wait_for_others};
use crate::{Alias, Append, BusyTimeout, Claim, Committed, Durability, Epoch, ScopeAppend, StoreError};

/// A busy file is tried again for so long.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

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
    connection: Connection,
    pub(super) shared: Arc<SqliteShared>,
    heads: Heads,
    /// What `PRAGMA synchronous` is set to, if known.
    level: Option<Durability>,
    checkpointer: Checkpointer,
    incarnation: Incarnation,
    lock: StoreLock,
    /// Appends that found the file busy and are tried again.
    retries: Vec<SqlitePending>,
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
    /// Opens or makes the file of a directory that nobody else has.
    pub(super) fn open(
        path: &Path,
        lock: StoreLock,
        max_pages: Option<u32>,
        faults: Faults,
    ) -> Result<Self, StoreError> {
        let connection = open_writer(path, max_pages)?;
        let incarnation = read_incarnation(&connection)?;
        let shared = Arc::new(SqliteShared::new(incarnation.number, faults));
        let (heads, level, retries) = (Heads::default(), None, Vec::new());
        Ok(Self { connection, shared, heads, level, checkpointer: Checkpointer::new(path), incarnation, lock, retries })
    }

    /// Works until it is closed or nobody can ask any more.
    pub(super) fn run_jobs(mut self, mut jobs: mpsc::Receiver<SqliteWriterJob>) {
        self.mark_open();
        let mut batch = WriterBatch::default();
        loop {
            self.shared.note_idle();
            // What is retries is tried again even if nobody asks for anything.
            let mut next = match self.retries.is_empty() {
                true => jobs.blocking_recv(),
                false => poll_writer_jobs(&mut jobs),
            };
            if next.is_none() && jobs.is_closed() {
                break;
            }
            // Sessions that stream flush at the same moment: let the others send what they have before the commit begins.
            if next.as_ref().is_some_and(SqliteWriterJob::may_gather) {
                wait_for_others(&jobs);
            }
            self.shared.note_working();
            batch.pending.append(&mut self.retries);
            while let Some(job) = next {
                match job {
                    SqliteWriterJob::Append(pending) => batch.add_append(*pending),
                    SqliteWriterJob::Close(reply) => {
                        self.commit_batch(batch.take_appends(), Attempt::Together);
                        return send_sqlite_writer_reply(reply, self.close());
                    }
                    other @ (SqliteWriterJob::Claim(..)
                    | SqliteWriterJob::Scope(..)
                    | SqliteWriterJob::Write(..)
                    | SqliteWriterJob::Probe(_)
                    | SqliteWriterJob::NewIncarnation(_)
                    | SqliteWriterJob::Reclaim(_)) => {
                        self.commit_batch(batch.take_appends(), Attempt::Together);
                        self.handle_job(other);
                    }
                }
                next = if batch.is_full() { None } else { jobs.try_recv().ok() };
            }
            self.commit_batch(batch.take_appends(), Attempt::Together);
            self.checkpointer.wake_or_checkpoint(&self.connection);
        }
        if let Err(error) = self.close() {
            tracing::warn!(%error, "log was not closed cleanly");
        }
    }

    fn handle_job(&mut self, job: SqliteWriterJob) {
        match job {
            SqliteWriterJob::Claim(session, reply) => send_sqlite_writer_reply(reply, self.claim_session(session)),
            SqliteWriterJob::Scope(append, sync, reply) => {
                send_sqlite_writer_reply(reply, self.append_scope(append, sync))
            }
            SqliteWriterJob::Write(write, reply) => send_sqlite_writer_reply(reply, self.execute_write(write)),
            SqliteWriterJob::Probe(reply) => send_sqlite_writer_reply(reply, self.probe_database()),
            SqliteWriterJob::NewIncarnation(reply) => send_sqlite_writer_reply(reply, self.new_incarnation()),
            SqliteWriterJob::Reclaim(reply) => send_sqlite_writer_reply(reply, self.reclaim()),
            SqliteWriterJob::Append(_) | SqliteWriterJob::Close(_) => unreachable!("taken by the loop"),
        }
    }

    /// Commits what can be committed; whoever does not fit is told, the others are not held back.
    fn commit_batch(&mut self, batch: Vec<SqlitePending>, attempt: Attempt) {
        let mut admitted = Vec::with_capacity(batch.len());
        for mut pending in batch {
            match self.check_writer(&mut pending) {
                Ok(()) => admitted.push(pending),
                Err(error) => self.refuse_or_retry(pending, error),
            }
        }
        if admitted.is_empty() {
            return;
        }
        #[cfg(bug = "publish_before_commit")]
        admitted.iter().for_each(|pending| self.shared.publish_committed(pending.append.clone(), 0));
        match self.commit_admitted(&mut admitted) {
            Ok(()) => admitted.into_iter().for_each(|pending| self.shared.publish_and_reply(pending)),
            Err(failure) => self.recover_from_failure(admitted, &failure, attempt),
        }
    }

    /// After a failed commit nothing is known any more; what only did not fit is tried again, one by one.
    fn recover_from_failure(&mut self, batch: Vec<SqlitePending>, failure: &SqliteFailure, attempt: Attempt) {
        batch.iter().for_each(|pending| self.heads.forget_append(&pending.append));
        if attempt == Attempt::Together && matches!(failure, SqliteFailure::Constraint(_)) {
            for pending in batch {
                self.commit_batch(vec![pending], Attempt::Alone);
            }
            return;
        }
        for pending in batch {
            let error = self.refusal_reason(&pending, failure);
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

    fn check_writer(&mut self, pending: &mut SqlitePending) -> Result<(), StoreError> {
        self.shared.check_writable()?;
        match pending.aliases {
            Some(_) => self.heads.admit_new(&self.connection, pending),
            None => self.heads.check_writer(&self.connection, pending),
        }
    }

    fn commit_admitted(&mut self, batch: &mut [SqlitePending]) -> Result<(), SqliteFailure> {
        let mut plan = CommitPlan::for_batch(batch).map_err(|error| SqliteFailure::Other(error.to_string()))?;
        let sync = batch.iter().map(|pending| pending.append.sync).max().unwrap_or(Durability::Relaxed);
        if plan.script.is_empty() {
            if sync == Durability::Relaxed {
                return Ok(());
            }
            // A barrier without anything to write still makes safe what came before.
            plan.script.push_sql("UPDATE meta SET probe = probe + 1;\n");
        }
        self.execute_script(plan.script, sync, if plan.single { Wrap::Bare } else { Wrap::Transaction })?;
        batch.iter_mut().zip(plan.sizes).for_each(|(pending, size)| pending.size = size);
        self.checkpointer.note_written(plan.bytes);
        self.shared.counters.add_batch(batch, plan.rows);
        Ok(())
    }

    /// Runs statements in one commit at a level of safety.
    fn execute_script(&mut self, script: SqliteScript, sync: Durability, wrap: Wrap) -> Result<u64, SqliteFailure> {
        if let Err(error) = self.set_synchronous(sync) {
            return Err(self.roll_back(SqliteFailure::classify_error(&error)));
        }
        self.level = None;
        if let Err(failure) = self.shared.faults.fail_if_seeded() {
            return Err(self.roll_back(failure));
        }
        let result = match wrap {
            Wrap::Bare => script.execute_script(&self.connection),
            Wrap::Transaction => self.execute_transaction(&script),
        };
        match result {
            Ok(changed) => {
                self.level = Some(sync);
                self.shared.note_commit(sync);
                Ok(changed)
            }
            Err(error) => Err(self.roll_back(SqliteFailure::classify_error(&error))),
        }
    }

    /// Sets the level if it is another one. By itself and never kept: a level is set when its statement is compiled.
    fn set_synchronous(&mut self, sync: Durability) -> rusqlite::Result<()> {
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
        self.connection.execute_batch(level)?;
        self.level = Some(sync);
        Ok(())
    }

    fn execute_transaction(&self, script: &SqliteScript) -> rusqlite::Result<u64> {
        self.connection.prepare_cached("BEGIN IMMEDIATE")?.raw_execute()?;
        let changed = script.execute_script(&self.connection)?;
        self.connection.prepare_cached("COMMIT")?.raw_execute()?;
        Ok(changed)
    }

    fn roll_back(&mut self, failure: SqliteFailure) -> SqliteFailure {
        // The error may have ended the transaction already, or none was begun.
        if !self.connection.is_autocommit()
            && let Err(error) = self.connection.execute_batch("ROLLBACK")
        {
            tracing::warn!(%error, "a failed commit was not rolled back");
        }
        self.shared.note_failure(&failure);
        failure
    }

    fn claim_session(&mut self, session: SessionId) -> Result<Claim, StoreError> {
        self.shared.check_writable()?;
        self.heads.forget_session(session);
        let claim = self.heads.claim_of(&self.connection, session)?;
        let mut script = SqliteScript::new("UPDATE session SET epoch = epoch + 1 WHERE id = ?");
        script.bind_session(session);
        self.execute_script(script, Durability::Relaxed, Wrap::Transaction)
            .map_err(|failure| failure.to_store_error())?;
        let claim = Claim { epoch: Epoch(claim.epoch.0 + 1), head: claim.head };
        self.heads.set_claim(session, claim);
        Ok(claim)
    }

    fn append_scope(&mut self, append: ScopeAppend, sync: Durability) -> Result<Seq, StoreError> {
        self.shared.check_writable()?;
        let scopes = [append];
        let heads = self.heads.admit_scopes(&self.connection, &scopes)?;
        let [append] = scopes;
        let mut script = SqliteScript::default();
        commit_plan::plan_scope_facts(&mut script, &append, heads[0]);
        if let Err(failure) = self.execute_script(script, sync, Wrap::Transaction) {
            self.heads.forget_scope(&append.scope);
            return Err(failure.to_store_error());
        }
        Ok(Seq(heads[0].0 + append.facts.len() as u64))
    }

    fn execute_write(&mut self, write: Write) -> Result<u64, StoreError> {
        self.shared.check_writable()?;
        let result = self.execute_script(write.script, write.sync, Wrap::Transaction);
        match write.invalidates {
            Invalidates::Nothing => {}
            Invalidates::Session(session) => self.heads.forget_session(session),
            Invalidates::Scope(scope) => self.heads.forget_scope(&scope),
        }
        result.map_err(|failure| failure.to_store_error())
    }

    /// A full disk may have room again; a broken one is never trusted again.
    fn probe_database(&mut self) -> Result<(), StoreError> {
        self.shared.check_probe_allowed()?;
        let script = SqliteScript::new("UPDATE meta SET probe = probe + 1");
        self.execute_script(script, Durability::Barrier, Wrap::Bare).map_err(|failure| failure.to_store_error())?;
        self.shared.set_writable();
        Ok(())
    }

    fn new_incarnation(&mut self) -> Result<u32, StoreError> {
        self.shared.check_writable()?;
        begin_incarnation(&self.connection)
    }

    fn reclaim(&mut self) -> Result<Reclaimed, StoreError> {
        self.shared.check_writable()?;
        // Whatever a statement here does to the level, the next commit sets its own.
        self.level = None;
        reclaim::reclaim(&self.connection)
    }

    /// From now on a power cut may lose something: the next start must know.
    fn mark_open(&mut self) {
        let mut script = SqliteScript::new("UPDATE meta SET clean = 0, boot = ?");
        script.bind_value(self.incarnation.boot.clone());
        if let Err(failure) = self.execute_script(script, Durability::Barrier, Wrap::Bare) {
            tracing::error!(?failure, "log cannot be written");
        }
    }

    fn close(mut self) -> Result<(), StoreError> {
        let marked = match self.shared.check_writable() {
            Ok(()) => {
                self.execute_script(SqliteScript::new("UPDATE meta SET clean = 1"), Durability::Barrier, Wrap::Bare)
            }
            Err(_) => Ok(0),
        };
        self.checkpointer.finish_checkpoints();
        self.shared.feeds.end_all();
        self.connection.close().map_err(|(_, error)| error)?;
        drop(self.lock);
        marked.map(|_| ()).map_err(|failure| failure.to_store_error())
    }

    /// Why an append that was tried alone did not fit.
    fn refusal_reason(&mut self, pending: &SqlitePending, failure: &SqliteFailure) -> StoreError {
        if let (SqliteFailure::Constraint(_), Some(aliases)) = (failure, &pending.aliases) {
            match self.heads.claim_of(&self.connection, pending.append.session) {
                Ok(_) => return StoreError::Exists(pending.append.session),
                Err(StoreError::Deleted(session)) => return StoreError::Deleted(session),
                Err(_) => {}
            }
            for alias in aliases {
                if let Ok(Some(session)) = find_alias(&self.connection, alias) {
                    return StoreError::AliasTaken(session);
                }
            }
        }
        failure.to_store_error()
    }
}

/// Whether statements need a transaction around them.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wrap {
    Bare,
    Transaction,
}

/// Whoever asked may be gone; the work is done all the same.
fn send_sqlite_writer_reply<T>(reply: oneshot::Sender<T>, value: T) {
    drop(reply.send(value));
}
