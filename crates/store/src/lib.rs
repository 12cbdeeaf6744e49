//! The log: what every session is made of, kept by a [`Store`].
//!
//! A store keeps entries in order, without gaps, and shows nothing that is not committed. Run states,
//! open questions and the list of sessions are folds of the entries, written in the same transaction.
//! [`sqlite`] is the default, [`postgres`] for more than one machine, [`memory`] the model that tests compare them with.

mod append;
pub mod clock;
mod cluster;
mod copy;
mod error;
mod fact_log;
mod fact_log_compaction;
mod feed;
mod fold;
mod hints;
mod live_batch;
pub mod memory;
mod node;
pub mod postgres;
mod row;
mod runs;
pub mod sqlite;
mod types;

use async_trait::async_trait;
use gander_domain::{Entry, Principal, QuestionId, RunId, Seq, SessionId, Timestamp};
use serde::Serialize;
use serde_json::Value;
use tokio::sync::watch;

pub use append::{Append, BusyTimeout, Durability, is_trickle};
pub use cluster::ClusterStore;
pub use copy::{CopyReport, StoreAddress, copy_store};
pub use error::StoreError;
pub use fact_log::{FactEntry, FactLog, FactState, FoldedFacts};
pub use fact_log_compaction::longest_fact_log;
pub use feed::{Tail, TailEvent};
pub use hints::{HintBox, Hints};
pub use live_batch::LiveBatch;
pub use memory::MemoryStore;
pub use node::{CommandAnswer, CommandId, NodeId, NodeInfo, NodeStatus, Ownership, SessionCommand};
pub use postgres::{PostgresOptions, PostgresStore, PostgresUrl};
pub use row::join_decoded_deltas;
pub use runs::{RunKey, RunPage, RunQuery, RunSort};
pub use sqlite::{SqliteStore, StoreOptions};
pub use types::{
    Alias, Claim, Committed, Cursor, DeltaForm, Epoch, Health, Limit, MaintenanceReport, PageKey, QuestionRow, RunRow,
    RunState, ScopeAppend, ScopeEntry, SessionPage, SessionQuery, SessionStatus, SessionSummary, Snapshot, Stats,
    SummaryUsage,
};

/// Facts of a scope that are read in one go.
const SCOPE_PAGE: u32 = 1_000;

/// Keeps the logs of all sessions.
///
/// A call that resolved with `Ok` is committed. Dropping a writing future does not take the write back.
#[async_trait]
pub trait Store: Send + Sync + 'static {
    /// Begins a session under epoch [`Epoch::FIRST`]; its first entry must be `SessionCreated`.
    ///
    /// Session and aliases are made together or not at all.
    async fn create(&self, append: Append, aliases: Vec<Alias>) -> Result<Committed, StoreError>;

    /// Makes the caller the only writer of a session: every earlier epoch is fenced.
    ///
    /// In a cluster the session is then owned by this node; [`ClusterStore`] says when that is refused.
    async fn claim(&self, session: SessionId) -> Result<Claim, StoreError>;

    /// Adds entries. Resolves after the commit (and the sync, for [`Durability::Barrier`]), when subscribers have them.
    ///
    /// Appends of one session are committed in the order in which they were sent.
    async fn append(&self, append: Append) -> Result<Committed, StoreError>;

    /// Entries after a place, in order; at least one if there is any.
    ///
    /// [`StoreError::Truncated`] if the place is beyond the log's end.
    async fn read(
        &self,
        session: SessionId,
        after: Seq,
        limit: Limit,
        form: DeltaForm,
    ) -> Result<Vec<Entry>, StoreError>;

    /// The place of a session's last entry.
    async fn head(&self, session: SessionId) -> Result<Seq, StoreError>;

    /// Which life of the log this is: a cursor of another life cannot be honoured.
    fn incarnation(&self) -> u32;

    /// The place a cursor names, or [`StoreError::Truncated`] if this log never had it.
    async fn validate_cursor(&self, session: SessionId, cursor: Cursor) -> Result<Seq, StoreError> {
        let head = self.head(session).await?;
        if cursor.incarnation != self.incarnation() || cursor.seq > head {
            return Err(StoreError::Truncated { asked: cursor.seq, head });
        }
        Ok(cursor.seq)
    }

    /// A live tail. Subscribe first, read the log until it is dry, then wait on the tail.
    fn subscribe(&self, session: SessionId) -> Tail;

    /// Wakes when facts of this principal's sessions were committed or one was deleted. Deltas do not count.
    fn changes(&self, principal: &Principal) -> watch::Receiver<u64>;

    /// The newest snapshot of this version that is not beyond a place.
    async fn snapshot(&self, session: SessionId, version: u32, upto: Seq) -> Result<Option<Snapshot>, StoreError>;

    /// A page of somebody's sessions, last changed first.
    ///
    /// No session shows twice; one that changes meanwhile moves to the front.
    async fn sessions(&self, query: SessionQuery) -> Result<SessionPage, StoreError>;

    /// One session's summary.
    async fn session_summary(&self, session: SessionId) -> Result<SessionSummary, StoreError>;

    /// Runs that have not ended, by id, after one of them. Those that wait for people alone are awaiting.
    async fn open_runs(&self, after: Option<(RunId, SessionId)>, limit: u32) -> Result<Vec<RunRow>, StoreError>;

    /// Where a run is. If copies of a session share it, the oldest session's.
    async fn run(&self, run: RunId) -> Result<Option<RunRow>, StoreError>;

    /// The same among the runs of this principal: ids that callers choose are nobody else's business.
    async fn run_of_owner(&self, run: RunId, owner: &Principal) -> Result<Option<RunRow>, StoreError>;

    /// A page of somebody's runs, those whose state changed last first.
    async fn runs(&self, query: RunQuery) -> Result<RunPage, StoreError>;

    /// Where a question is. If copies of a session share it, the oldest session's.
    async fn question(&self, question: QuestionId) -> Result<Option<QuestionRow>, StoreError>;

    /// The session behind a name that a client chose.
    async fn resolve_alias(&self, alias: &Alias) -> Result<Option<SessionId>, StoreError>;

    /// The names of a session.
    async fn aliases(&self, session: SessionId) -> Result<Vec<Alias>, StoreError>;

    /// The names of one namespace and their sessions, by name, after one of them.
    async fn aliases_in(
        &self,
        principal: &Principal,
        door: &str,
        namespace: &str,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<(String, SessionId)>, StoreError>;

    /// Names a session; [`StoreError::AliasTaken`] if the name means another one.
    async fn set_alias(&self, alias: Alias, session: SessionId) -> Result<(), StoreError>;

    /// Forgets a name; true if it meant something.
    async fn remove_alias(&self, alias: &Alias) -> Result<bool, StoreError>;

    /// Removes a session. Its names are free again, its id never is.
    async fn delete(&self, session: SessionId, at: Timestamp) -> Result<(), StoreError>;

    /// Whose session this was before it was deleted. None if it was not, or by a version that did not write it down.
    async fn deleted_owner(&self, session: SessionId) -> Result<Option<Principal>, StoreError>;

    /// The sessions that this one began or that are copies of it.
    async fn children(&self, session: SessionId) -> Result<Vec<SessionId>, StoreError>;

    /// About how many bytes a session's entries take up.
    async fn session_size(&self, session: SessionId) -> Result<u64, StoreError>;

    /// Adds facts of no session; gives the scope's new end.
    async fn append_scope(&self, append: ScopeAppend, sync: Durability) -> Result<Seq, StoreError>;

    /// Facts of a scope after a place, in order.
    async fn read_scope(&self, scope: &str, after: Seq, limit: u32) -> Result<Vec<ScopeEntry>, StoreError>;

    /// Scopes whose name begins like this, by name, after one of them; each with the time of its last fact.
    async fn scopes(
        &self,
        prefix: &str,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<(String, Timestamp)>, StoreError>;

    /// Puts one fact in place of everything in a scope up to this entry, which keeps its place and its time.
    ///
    /// Nothing happens if there is no such entry any more: somebody else was faster.
    async fn compact_scope(&self, scope: &str, upto: Seq, at: Timestamp, fact: Value) -> Result<(), StoreError>;

    /// Forgets a scope.
    async fn delete_scope(&self, scope: &str) -> Result<(), StoreError>;

    /// One bounded piece of upkeep: joins deltas of runs that ended long ago into their messages, removes what
    /// deleted sessions left. Call it now and then, and again at once while it says [`MaintenanceReport::more`].
    async fn maintain(&self, now: Timestamp) -> Result<MaintenanceReport, StoreError>;

    /// Makes every fold again from the log; gives the number of sessions.
    async fn rebuild_folds(&self) -> Result<u64, StoreError>;

    /// Whether a write succeeded within the last seconds, by trying one if need be.
    async fn health(&self) -> Health;

    /// What several nodes share, if this store is one that several processes open at once.
    fn cluster(&self) -> Option<&dyn ClusterStore> {
        None
    }

    /// What was done so far.
    fn stats(&self) -> Stats;

    /// Writes what waits, then ends. Later calls fail with [`StoreError::Closed`].
    async fn close(&self) -> Result<(), StoreError>;
}

/// Everything of a log, for tests and exports of small sessions.
pub async fn read_all(store: &dyn Store, session: SessionId, form: DeltaForm) -> Result<Vec<Entry>, StoreError> {
    let mut entries: Vec<Entry> = Vec::new();
    loop {
        let after = entries.last().map_or(Seq::ZERO, |entry| entry.seq);
        let page = store.read(session, after, Limit::default(), form).await?;
        if page.is_empty() {
            return Ok(entries);
        }
        entries.extend(page);
    }
}

/// Everything of a scope's log: small ones, folded at the start.
pub async fn read_scope_all(store: &dyn Store, scope: &str) -> Result<Vec<ScopeEntry>, StoreError> {
    let mut entries: Vec<ScopeEntry> = Vec::new();
    loop {
        let after = entries.last().map_or(Seq::ZERO, |entry| entry.seq);
        let page = store.read_scope(scope, after, SCOPE_PAGE).await?;
        if page.is_empty() {
            return Ok(entries);
        }
        entries.extend(page);
    }
}

/// Writes one fact into a scope's log, safe from a power cut.
pub async fn append_fact(store: &dyn Store, scope: &str, fact: &impl Serialize) -> Result<(), StoreError> {
    let fact = serde_json::to_value(fact).map_err(|error| StoreError::Invalid(error.to_string()))?;
    let append = ScopeAppend { scope: scope.to_owned(), at: clock::current_time(), facts: vec![fact], after: None };
    store.append_scope(append, Durability::Barrier).await.map(drop)
}

/// The query for everything a principal sees.
pub fn sessions_of(principal: Principal) -> SessionQuery {
    SessionQuery {
        principal,
        workspace: None,
        text: None,
        archived: false,
        non_empty: false,
        state: None,
        after: None,
        limit: 50,
    }
}
