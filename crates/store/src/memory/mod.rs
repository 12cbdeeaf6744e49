//! The store as a plain model in memory: what the others are compared with, and what fast tests use.

mod cluster;
mod model_faults;
mod state;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use gander_domain::{Entry, Principal, QuestionId, RunId, Seq, SessionId, Timestamp};
use serde_json::Value;
use tokio::sync::watch;

use self::cluster::Member;
pub use self::model_faults::ModelFaults;
use self::state::MemoryState;
use super::feed::Feeds;
use super::{
    Alias, Append, Claim, ClusterStore, Committed, DeltaForm, Durability, Health, Hints, Limit, MaintenanceReport,
    QuestionRow, RunPage, RunQuery, RunRow, ScopeAppend, ScopeEntry, SessionPage, SessionQuery, SessionSummary,
    Snapshot, Stats, Store, StoreError, Tail,
};

/// Keeps everything in memory. Clones share it.
#[derive(Clone, Default)]
pub struct MemoryStore {
    state: Arc<Mutex<MemoryState>>,
    feeds: Arc<Feeds>,
    /// Which node this handle belongs to, if several share the data.
    member: Option<Arc<Member>>,
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// Opens a closed store again, as a new process would.
    pub fn reopen_with_same_data(&self) -> Self {
        self.lock_state().closed = false;
        Self { state: Arc::clone(&self.state), feeds: Arc::default(), member: None }
    }

    fn lock_state(&self) -> MutexGuard<'_, MemoryState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_open(&self) -> Result<MutexGuard<'_, MemoryState>, StoreError> {
        let state = self.lock_state();
        if state.closed { Err(StoreError::Closed) } else { Ok(state) }
    }

    /// Publishing happens under the lock, so that batches cannot overtake each other.
    fn commit_append(&self, mut append: Append, aliases: Option<Vec<Alias>>) -> Result<Committed, StoreError> {
        let mut state = self.lock_open()?;
        let (session, owner, entries) = (append.session, append.owner.clone(), append.entries.clone());
        let (written, current) = self.change_append(&state, &mut append);
        let node = self.node_id();
        let (head, answered) = match aliases {
            Some(aliases) => state.create_session(append, aliases, node)?,
            None => state.append_entries(append, node)?,
        };
        if let Some(faults) = self.faults() {
            faults.on_append(session, written, current);
        }
        let bytes = entries.iter().map(|entry| format!("{entry:?}").len()).sum();
        let has_facts = entries.iter().any(|entry| !entry.event.is_delta());
        self.feeds.publish(session, owner.as_ref(), entries, bytes);
        self.hint_head(&state, session, head, owner.as_ref().filter(|_| has_facts));
        self.hint_nodes(&state, Hints { answers: true, ..Hints::default() }, |node| answered.contains(&node));
        if state.has_unowned_work(session) {
            self.hint_nodes(&state, Hints { work: true, ..Hints::default() }, |_| true);
        }
        Ok(Committed { head })
    }
}

#[async_trait]
impl Store for MemoryStore {
    async fn create(&self, append: Append, aliases: Vec<Alias>) -> Result<Committed, StoreError> {
        self.before_call().await?;
        let committed = self.commit_append(append, Some(aliases))?;
        self.after_write().await?;
        Ok(committed)
    }

    async fn claim(&self, session: SessionId) -> Result<Claim, StoreError> {
        self.before_call().await?;
        let claim = self.lock_open()?.claim_session(session, self.node_id())?;
        self.after_write().await?;
        Ok(claim)
    }

    async fn append(&self, append: Append) -> Result<Committed, StoreError> {
        self.before_call().await?;
        let committed = self.commit_append(append, None)?;
        self.after_write().await?;
        Ok(committed)
    }

    async fn read(
        &self,
        session: SessionId,
        after: Seq,
        limit: Limit,
        form: DeltaForm,
    ) -> Result<Vec<Entry>, StoreError> {
        self.before_call().await?;
        let mut entries = self.lock_open()?.read_entries(session, after, limit, form)?;
        if let Some(faults) = self.faults() {
            faults.change_read(&mut entries);
        }
        Ok(entries)
    }

    async fn head(&self, session: SessionId) -> Result<Seq, StoreError> {
        self.before_call().await?;
        self.lock_open()?.session_head(session)
    }

    fn incarnation(&self) -> u32 {
        1
    }

    fn subscribe(&self, session: SessionId) -> Tail {
        self.feeds.subscribe(session)
    }

    fn changes(&self, principal: &Principal) -> watch::Receiver<u64> {
        self.feeds.change_counter(principal)
    }

    async fn snapshot(&self, session: SessionId, version: u32, upto: Seq) -> Result<Option<Snapshot>, StoreError> {
        self.lock_open()?.latest_snapshot(session, version, upto)
    }

    async fn sessions(&self, query: SessionQuery) -> Result<SessionPage, StoreError> {
        Ok(self.lock_open()?.list_sessions(&query))
    }

    async fn session_summary(&self, session: SessionId) -> Result<SessionSummary, StoreError> {
        self.lock_open()?.session_summary(session)
    }

    async fn open_runs(&self, after: Option<(RunId, SessionId)>, limit: u32) -> Result<Vec<RunRow>, StoreError> {
        Ok(self.lock_open()?.open_runs(after, limit))
    }

    async fn run(&self, run: RunId) -> Result<Option<RunRow>, StoreError> {
        Ok(self.lock_open()?.find_run(run))
    }

    async fn run_of_owner(&self, run: RunId, owner: &Principal) -> Result<Option<RunRow>, StoreError> {
        Ok(self.lock_open()?.run_of_owner(run, owner))
    }

    async fn runs(&self, query: RunQuery) -> Result<RunPage, StoreError> {
        Ok(self.lock_open()?.list_runs(&query))
    }

    async fn question(&self, question: QuestionId) -> Result<Option<QuestionRow>, StoreError> {
        Ok(self.lock_open()?.find_question(question))
    }

    async fn resolve_alias(&self, alias: &Alias) -> Result<Option<SessionId>, StoreError> {
        Ok(self.lock_open()?.aliases.get(alias).copied())
    }

    async fn aliases(&self, session: SessionId) -> Result<Vec<Alias>, StoreError> {
        let state = self.lock_open()?;
        let of_session = state.aliases.iter().filter(|(_, target)| **target == session);
        Ok(of_session.map(|(alias, _)| alias.clone()).collect())
    }

    async fn aliases_in(
        &self,
        principal: &Principal,
        door: &str,
        namespace: &str,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<(String, SessionId)>, StoreError> {
        let state = self.lock_open()?;
        let here = |alias: &Alias| {
            alias.principal == *principal
                && alias.door == door
                && alias.namespace == namespace
                && after.is_none_or(|after| alias.text.as_str() > after)
        };
        let found = state.aliases.iter().filter(|(alias, _)| here(alias));
        Ok(found.take(limit as usize).map(|(alias, session)| (alias.text.clone(), *session)).collect())
    }

    async fn set_alias(&self, alias: Alias, session: SessionId) -> Result<(), StoreError> {
        self.lock_open()?.set_alias(alias, session)
    }

    async fn remove_alias(&self, alias: &Alias) -> Result<bool, StoreError> {
        Ok(self.lock_open()?.aliases.remove(alias).is_some())
    }

    async fn delete(&self, session: SessionId, _at: Timestamp) -> Result<(), StoreError> {
        if self.faults().is_some_and(|faults| faults.refuses_delete()) {
            return Err(StoreError::Failed("sessions cannot be deleted".to_owned()));
        }
        self.lock_open()?.delete_session(session)?;
        let owner = self.deleted_owner(session).await?;
        self.feeds.end_session(session, owner.as_ref());
        Ok(())
    }

    async fn deleted_owner(&self, session: SessionId) -> Result<Option<Principal>, StoreError> {
        Ok(self.lock_open()?.deleted_owner(session))
    }

    async fn children(&self, session: SessionId) -> Result<Vec<SessionId>, StoreError> {
        Ok(self.lock_open()?.children(session))
    }

    async fn session_size(&self, session: SessionId) -> Result<u64, StoreError> {
        self.lock_open()?.session_size(session)
    }

    async fn append_scope(&self, append: ScopeAppend, _sync: Durability) -> Result<Seq, StoreError> {
        let mut state = self.lock_open()?;
        state.check_scopes(std::slice::from_ref(&append))?;
        Ok(state.append_scope(append))
    }

    async fn read_scope(&self, scope: &str, after: Seq, limit: u32) -> Result<Vec<ScopeEntry>, StoreError> {
        Ok(self.lock_open()?.read_scope(scope, after, limit))
    }

    async fn scopes(
        &self,
        prefix: &str,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<(String, Timestamp)>, StoreError> {
        let state = self.lock_open()?;
        let named = state.scopes.iter().filter(|(name, _)| name.starts_with(prefix));
        let later = named.filter(|(name, _)| after.is_none_or(|after| name.as_str() > after));
        let last = later.filter_map(|(name, entries)| Some((name.clone(), entries.last()?.at)));
        Ok(last.take(limit as usize).collect())
    }

    async fn compact_scope(&self, scope: &str, upto: Seq, at: Timestamp, fact: Value) -> Result<(), StoreError> {
        self.lock_open()?.compact_scope(scope, upto, at, fact);
        Ok(())
    }

    async fn delete_scope(&self, scope: &str) -> Result<(), StoreError> {
        self.lock_open()?.scopes.remove(scope);
        Ok(())
    }

    async fn maintain(&self, _now: Timestamp) -> Result<MaintenanceReport, StoreError> {
        drop(self.lock_open()?);
        self.feeds.drop_quiet_rings();
        Ok(MaintenanceReport::default())
    }

    async fn rebuild_folds(&self) -> Result<u64, StoreError> {
        Ok(self.lock_open()?.rebuild_folds())
    }

    async fn health(&self) -> Health {
        if self.lock_state().closed { Health::Closed } else { Health::Ready }
    }

    fn cluster(&self) -> Option<&dyn ClusterStore> {
        self.member.as_ref().map(|_| self as &dyn ClusterStore)
    }

    fn stats(&self) -> Stats {
        self.lock_state().stats
    }

    async fn close(&self) -> Result<(), StoreError> {
        self.lock_state().closed = true;
        self.feeds.end_all();
        Ok(())
    }
}
