//! The task that stores appends: takes what is waiting, commits it with one statement, then publishes it.
//!
//! It remembers nothing of the database: the statement itself checks each session's epoch and end, since another process may
//! have claimed the session. If the connection is lost while a statement is on its way, nobody knows whether it was committed.
//! Nothing is sent again before that is known, see [`super::settle`].

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use gander_domain::{Event, Seq, SessionId};
use sqlx::Row as _;
use sqlx::postgres::PgRow;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use uuid::Uuid;

use super::batch::{BatchColumns, SessionGroup};
use super::connect::{Backend, PostgresUrl, WriterConnection, read_incarnation};
use super::failure::PostgresFailure;
use super::hints::HintMessage;
use super::refusal;
use super::settle::{self, Outcome};
use super::shared::PostgresShared;
use crate::{Alias, Append, BusyTimeout, Committed, Durability, Epoch, NodeId, StoreError};

/// A commit takes at most about this much of what waits.
const BATCH_ENTRIES: usize = 4096;
const BATCH_BYTES: usize = 256 * 1024;

/// A statement that takes longer counts as lost. Longer than a session's lock may be waited for.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(30);

/// Time between two tries to connect.
const RECONNECT_DELAY: Duration = Duration::from_millis(200);

/// What somebody waits for is refused after this time without a connection; it is longer if it may have been stored.
const SHORT_TIMEOUT: Duration = Duration::from_secs(1);
const IN_DOUBT_TIMEOUT: Duration = Duration::from_secs(10);
/// What a run says is kept for longer: a database that restarts or fails over is back by then.
const LONG_TIMEOUT: Duration = Duration::from_secs(60);

/// What the writer is asked to do.
pub(super) enum PostgresWriterJob {
    Append(Box<PostgresPending>),
    Close(oneshot::Sender<()>),
}

/// An append on its way.
pub(super) struct PostgresPending {
    pub(super) append: Append,
    /// Present if this creates the session.
    pub(super) aliases: Option<Vec<Alias>>,
    /// About the size of its entries as rows.
    pub(super) size: usize,
    /// What it counts for among all that wait.
    pub(super) bytes: usize,
    pub(super) since: Instant,
    /// Its sender was told that it may not be stored: it is not sent again.
    pub(super) given_up: bool,
    pub(super) reply: oneshot::Sender<Result<Committed, StoreError>>,
}

pub(super) struct PostgresWriter {
    pub(super) url: PostgresUrl,
    pub(super) shared: Arc<PostgresShared>,
    /// Who owns what is kept; none if this is the only process.
    pub(super) node: Option<NodeId>,
    pub(super) connection: Option<WriterConnection>,
    /// In the order in which they came.
    pub(super) waiting: VecDeque<PostgresPending>,
    /// What was sent over a connection that is gone, and the process that was behind it.
    pub(super) in_doubt: Option<(Backend, Vec<SessionGroup>)>,
}

impl PostgresPending {
    fn is_patient(&self, in_doubt: bool) -> bool {
        let timeout = match (self.append.busy_timeout, in_doubt) {
            (BusyTimeout::Long, _) => LONG_TIMEOUT,
            (BusyTimeout::Short, true) => IN_DOUBT_TIMEOUT,
            (BusyTimeout::Short, false) => SHORT_TIMEOUT,
        };
        self.since.elapsed() < timeout
    }

    /// Tells the sender. What was sent may turn out to be stored all the same, and is shown then.
    fn give_up(&mut self, error: StoreError) {
        self.given_up = true;
        let reply = std::mem::replace(&mut self.reply, oneshot::channel().0);
        drop(reply.send(Err(error)));
    }
}

impl PostgresWriter {
    /// Works until it is closed or nobody can ask any more.
    pub(super) async fn run_jobs(mut self, mut jobs: mpsc::Receiver<PostgresWriterJob>) {
        let mut closing = None;
        loop {
            if self.waiting.is_empty() && self.in_doubt.is_none() {
                self.shared.note_idle();
                if closing.is_some() {
                    break;
                }
                // Without a connection it goes on trying, also if nobody asks for anything.
                let job = match self.connection {
                    Some(_) => Ok(jobs.recv().await),
                    None => tokio::time::timeout(RECONNECT_DELAY, jobs.recv()).await,
                };
                match job {
                    Ok(Some(job)) => self.take_job(job, &mut closing),
                    Ok(None) => break,
                    Err(_) => {}
                }
            }
            self.shared.note_working();
            let (mut entries, mut bytes) = self.waiting_size();
            while entries < BATCH_ENTRIES
                && bytes < BATCH_BYTES
                && let Ok(job) = jobs.try_recv()
            {
                if let PostgresWriterJob::Append(pending) = &job {
                    (entries, bytes) = (entries + pending.append.entries.len(), bytes + pending.bytes);
                }
                self.take_job(job, &mut closing);
            }
            if let Err(reason) = self.ensure_connected().await {
                self.shared.note_away(&reason);
                self.refuse_impatient(&reason, closing.is_some());
                tokio::time::sleep(RECONNECT_DELAY).await;
                continue;
            }
            self.commit_waiting().await;
            self.shared.note_idle();
        }
        self.shared.feeds.end_all();
        drop(self.connection.take());
        if let Some(reply) = closing {
            // Whoever asked may be gone.
            reply.send(()).ok();
        }
    }

    fn take_job(&mut self, job: PostgresWriterJob, closing: &mut Option<oneshot::Sender<()>>) {
        match job {
            PostgresWriterJob::Append(pending) => self.waiting.push_back(*pending),
            PostgresWriterJob::Close(reply) => *closing = Some(reply),
        }
    }

    /// Entries and bytes that wait.
    fn waiting_size(&self) -> (usize, usize) {
        let size = |pending: &PostgresPending| (pending.append.entries.len(), pending.bytes);
        self.waiting.iter().map(size).fold((0, 0), |sum, size| (sum.0 + size.0, sum.1 + size.1))
    }

    /// Connects if need be. What was in doubt is settled before anything else is sent.
    async fn ensure_connected(&mut self) -> Result<(), String> {
        if self.connection.is_none() {
            let connected = self.url.connect_writer().await;
            let mut writer =
                connected.map_err(|error| PostgresFailure::classify_error(&error).to_store_error().to_string())?;
            // The database may be another one by now.
            let incarnation = read_incarnation(&mut writer.connection).await.map_err(|error| error.to_string())?;
            if self.shared.incarnation.swap(incarnation, Ordering::Relaxed) != incarnation {
                tracing::warn!(incarnation, "the database is a copy, its end may be missing: sessions are read anew");
                self.shared.feeds.end_incarnation();
            }
            self.connection = Some(writer);
        }
        self.settle_in_doubt().await?;
        self.shared.note_connected();
        Ok(())
    }

    async fn settle_in_doubt(&mut self) -> Result<(), String> {
        let (Some((backend, groups)), Some(writer)) = (&self.in_doubt, &mut self.connection) else { return Ok(()) };
        match settle::settle_groups(&mut writer.connection, backend, groups).await {
            Ok(outcomes) => {
                let groups = self.in_doubt.take().map(|(_, groups)| groups).unwrap_or_default();
                groups.into_iter().zip(outcomes).rev().for_each(|(group, outcome)| self.apply_outcome(group, outcome));
                Ok(())
            }
            Err(error) => {
                self.connection = None;
                Err(error.to_string())
            }
        }
    }

    /// What is now known to be stored is shown; what is known not to be is sent again, before what came later.
    fn apply_outcome(&mut self, group: SessionGroup, outcome: Outcome) {
        match outcome {
            Outcome::Committed(head) => {
                self.shared.note_commit(Durability::Relaxed);
                group.pending.into_iter().for_each(|pending| self.shared.publish_and_reply(pending, head));
            }
            Outcome::NotCommitted => {
                for pending in group.pending.into_iter().rev() {
                    match pending.given_up {
                        true => self.shared.reply_refused(pending, StoreError::Busy("it was given up".to_owned())),
                        false => self.waiting.push_front(pending),
                    }
                }
            }
            Outcome::Refused(error) => self.refuse_group(group, &error),
        }
    }

    /// Whoever has waited long enough is told. What is in doubt stays so, for the next connection to settle.
    fn refuse_impatient(&mut self, reason: &str, closing: bool) {
        let error = StoreError::Busy(reason.to_owned());
        let (patient, refused): (VecDeque<_>, VecDeque<_>) =
            std::mem::take(&mut self.waiting).into_iter().partition(|pending| !closing && pending.is_patient(false));
        self.waiting = patient;
        refused.into_iter().for_each(|pending| self.shared.reply_refused(pending, error.clone()));
        if closing {
            self.in_doubt = None;
        }
        let unknown = StoreError::Busy(format!("whether it was stored is not known yet: {reason}"));
        let groups = self.in_doubt.iter_mut().flat_map(|(_, groups)| groups);
        for pending in groups.flat_map(|group| &mut group.pending) {
            if !pending.given_up && !pending.is_patient(true) {
                pending.give_up(unknown.clone());
            }
        }
    }

    async fn commit_waiting(&mut self) {
        let (mut groups, odd) = group_postgres_writes_by_session(&mut self.waiting, self.node);
        if !groups.is_empty() {
            let result = self.execute_groups(&mut groups).await;
            self.finish_groups(groups, result).await;
        }
        for pending in odd {
            self.refuse_odd(pending).await;
        }
    }

    /// Sends one statement; gives where each session ends that was appended to.
    async fn execute_groups(
        &mut self,
        groups: &mut [SessionGroup],
    ) -> Result<HashMap<SessionId, Seq>, PostgresFailure> {
        let columns = BatchColumns::from_groups(groups).map_err(|error| PostgresFailure::Other(error.to_string()))?;
        let Some(writer) = &mut self.connection else { return Err(PostgresFailure::Busy("no connection".to_owned())) };
        let rows = columns.row_count();
        let statement = columns.into_query().fetch_all(&mut writer.connection);
        let answer = match tokio::time::timeout(STATEMENT_TIMEOUT, statement).await {
            Ok(answer) => answer.map_err(|error| PostgresFailure::classify_error(&error))?,
            Err(_) => return Err(PostgresFailure::Lost("no answer in time".to_owned())),
        };
        let appends = || groups.iter().flat_map(|group| &group.pending).map(|pending| pending.append.sync);
        self.shared.note_commit(appends().max().unwrap_or(Durability::Relaxed));
        self.shared.count_rows(rows);
        self.send_hints(&answer);
        let end = |row: &PgRow| (SessionId::new(row.get(0)), Seq(row.get::<i64, _>(1) as u64));
        Ok(answer.iter().map(end).collect())
    }

    /// To nodes whose commands were answered, and to all if a session was released while commands wait for it.
    fn send_hints(&self, answer: &[PgRow]) {
        let origins: BTreeSet<Uuid> =
            answer.first().map(|row| row.get::<Vec<Uuid>, _>(3)).into_iter().flatten().collect();
        origins.into_iter().for_each(|origin| self.shared.hint(HintMessage::Answers(NodeId(origin))));
        if answer.iter().any(|row| row.get(2)) {
            self.shared.hint(HintMessage::Work);
        }
    }

    async fn finish_groups(
        &mut self,
        groups: Vec<SessionGroup>,
        result: Result<HashMap<SessionId, Seq>, PostgresFailure>,
    ) {
        match result {
            Ok(ends) => {
                for group in groups {
                    match ends.get(&group.session) {
                        Some(head) => {
                            group.pending.into_iter().for_each(|pending| self.shared.publish_and_reply(pending, *head));
                        }
                        None => {
                            self.retry_alone(group, &PostgresFailure::Busy("session changed meanwhile".to_owned()))
                                .await
                        }
                    }
                }
            }
            Err(PostgresFailure::Lost(reason)) => {
                self.shared.note_away(&reason);
                self.in_doubt = self.connection.take().map(|writer| (writer.backend, groups));
            }
            Err(PostgresFailure::Busy(reason)) => {
                self.put_back(groups);
                self.refuse_impatient(&reason, false);
                tokio::time::sleep(RECONNECT_DELAY).await;
            }
            Err(PostgresFailure::ReadOnly(reason)) => {
                groups.into_iter().for_each(|group| self.refuse_group(group, &StoreError::ReadOnly(reason.clone())));
            }
            Err(
                failure @ (PostgresFailure::Constraint(_) | PostgresFailure::ScopeGap(..) | PostgresFailure::Other(_)),
            ) => {
                for group in groups {
                    self.retry_alone(group, &failure).await;
                }
            }
        }
    }

    /// What did not fit together with others is tried append by append; who still does not fit is told why.
    async fn retry_alone(&mut self, group: SessionGroup, failure: &PostgresFailure) {
        let mut rest = group.pending.into_iter();
        while let Some(pending) = rest.next() {
            let alone = refusal::single_refused_group(pending, self.node);
            let mut groups = vec![alone];
            match self.execute_groups(&mut groups).await {
                Ok(ends) if ends.contains_key(&groups[0].session) => self.finish_alone(groups, &ends),
                Ok(_) => self.refuse_with_reason(groups, failure).await,
                Err(PostgresFailure::Lost(reason)) => {
                    self.shared.note_away(&reason);
                    self.in_doubt = self.connection.take().map(|writer| (writer.backend, groups));
                    // They follow what is in doubt.
                    rest.rev().for_each(|pending| self.waiting.push_front(pending));
                    return;
                }
                Err(failure) => self.refuse_with_reason(groups, &failure).await,
            }
        }
    }

    fn finish_alone(&self, groups: Vec<SessionGroup>, ends: &HashMap<SessionId, Seq>) {
        for group in groups {
            let head = ends.get(&group.session).copied().unwrap_or_default();
            group.pending.into_iter().for_each(|pending| self.shared.publish_and_reply(pending, head));
        }
    }

    async fn refuse_with_reason(&mut self, groups: Vec<SessionGroup>, failure: &PostgresFailure) {
        for group in groups {
            for pending in group.pending {
                self.refuse_pending(pending, failure).await;
            }
        }
    }

    /// Entries that do not follow each other: the log's end says which place was expected.
    async fn refuse_odd(&mut self, pending: PostgresPending) {
        self.refuse_pending(pending, &PostgresFailure::Other("entries do not follow each other".to_owned())).await;
    }

    async fn refuse_pending(&mut self, pending: PostgresPending, failure: &PostgresFailure) {
        let error = match &mut self.connection {
            Some(writer) => refusal::refusal_reason(&mut writer.connection, &pending, failure).await,
            None => failure.to_store_error(),
        };
        self.shared.reply_refused(pending, error);
    }

    fn refuse_group(&self, group: SessionGroup, error: &StoreError) {
        group.pending.into_iter().for_each(|pending| self.shared.reply_refused(pending, error.clone()));
    }

    fn put_back(&mut self, groups: Vec<SessionGroup>) {
        let pending = groups.into_iter().rev().flat_map(|group| group.pending.into_iter().rev());
        pending.for_each(|pending| self.waiting.push_front(pending));
    }
}

/// Takes what can be stored with one statement, in the order of the sessions; and what can never be. The rest waits on.
fn group_postgres_writes_by_session(
    waiting: &mut VecDeque<PostgresPending>,
    node: Option<NodeId>,
) -> (Vec<SessionGroup>, Vec<PostgresPending>) {
    let mut groups: BTreeMap<SessionId, SessionGroup> = BTreeMap::new();
    let (mut odd, mut later) = (Vec::new(), VecDeque::new());
    let mut held_back: HashSet<SessionId> = HashSet::new();
    for pending in waiting.drain(..) {
        let session = pending.append.session;
        if held_back.contains(&session) {
            later.push_back(pending);
        } else if let Some(group) = groups.get_mut(&session) {
            match group.follows(&pending) {
                true => group.push_pending(pending, node),
                false => {
                    held_back.insert(session);
                    later.push_back(pending);
                }
            }
        } else if refusal::is_refused_in_order(&pending) {
            groups.insert(session, refusal::single_refused_group(pending, node));
        } else {
            odd.push(pending);
        }
    }
    *waiting = later;
    (groups.into_values().collect(), odd)
}

impl SessionGroup {
    /// True if an append can be stored with these.
    fn follows(&self, pending: &PostgresPending) -> bool {
        let first = pending.append.entries.first().map(|entry| entry.seq);
        pending.aliases.is_none()
            && pending.append.epoch == self.epoch
            && pending.append.scopes.is_empty()
            && refusal::is_refused_in_order(pending)
            && first.is_none_or(|first| self.head.is_some_and(|head| head.next() == first))
    }

    fn push_pending(&mut self, pending: PostgresPending, node: Option<NodeId>) {
        self.node = refusal::owner_after_refusal(&pending, node);
        self.head = pending.append.entries.last().map(|entry| entry.seq).or(self.head);
        self.pending.push(pending);
    }
}

/// True if this creates a session as it should.
pub(super) fn postgres_writer_creates_session(append: &Append) -> bool {
    matches!(append.entries.first().map(|entry| &entry.event), Some(Event::SessionCreated { .. }))
}

/// The epoch that an append counts under: who creates a session is its first writer.
pub(super) fn postgres_writer_epoch(pending: &PostgresPending) -> Epoch {
    if pending.aliases.is_some() { Epoch::FIRST } else { pending.append.epoch }
}
