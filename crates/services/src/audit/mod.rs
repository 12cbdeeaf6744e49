//! The audit trail: who asked for what, what was shown, who answered from where, what ran and how it ended.
//!
//! It is a view of the sessions' logs and nothing of its own, so that it cannot differ from them. Only what a deleted
//! session leaves is written down: its actions without their content, for as long as `audit.keep` says.

mod export;
mod otel;
mod syslog;
mod trail;

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use gander_domain::caller::Caller;
use gander_domain::{Principal, ServiceError, SessionId, Timestamp};
use gander_store::{DeltaForm, Limit, PageKey, SessionQuery, Store, StoreError, append_fact, clock, read_scope_all};

use crate::errors::{service_error_from_denied, service_error_from_store};

pub use export::{AuditExport, AuditSinks};
pub use syslog::SyslogAddress;
pub use trail::{AuditDecision, AuditRecord, AuditTrail};

/// What deleted sessions left, by session.
const SCOPE: &str = "audit/";

/// Who has had a session, by name: whoever has no token here, or none any more, is known by this alone.
const PRINCIPALS_SCOPE: &str = "principal/";

/// Sessions and scopes that are looked at in one go.
const PAGE_SIZE: u32 = 500;

/// Which actions to show.
#[derive(Clone, Debug, Default)]
pub struct AuditQuery {
    /// Only of this session.
    pub session: Option<SessionId>,
    /// Only those that were called at this time or later.
    pub since: Option<Timestamp>,
    /// Only those that concern this principal; absent: everybody's that the server knows.
    pub principal: Option<Principal>,
    /// At most so many, the newest.
    pub limit: usize,
}

/// The audit trail of a server.
#[derive(Clone)]
pub struct Audit {
    store: Arc<dyn Store>,
    /// How long what a deleted session left is kept, as the settings are now.
    keep: Arc<dyn Fn() -> Duration + Send + Sync>,
    /// Everybody who may have sessions.
    principals: Arc<dyn Fn() -> Vec<Principal> + Send + Sync>,
    /// Those whose names are written down.
    noted: Arc<Mutex<HashSet<Principal>>>,
}

impl Audit {
    /// The trail of the sessions in this store.
    pub fn new(
        store: Arc<dyn Store>,
        keep: Arc<dyn Fn() -> Duration + Send + Sync>,
        principals: Arc<dyn Fn() -> Vec<Principal> + Send + Sync>,
    ) -> Self {
        Self { store, keep, principals, noted: Arc::default() }
    }

    /// Actions, oldest first. Whoever may see what belongs to the server sees everybody's.
    pub async fn list(&self, caller: &Caller, query: &AuditQuery) -> Result<Vec<AuditRecord>, ServiceError> {
        caller.may_read_audit().map_err(service_error_from_denied)?;
        self.collect(query).await.map_err(|error| service_error_from_store(&error))
    }

    /// Everything that has ended since. Sessions that nobody touched since are not looked at.
    async fn ended_since(&self, since: Timestamp) -> Result<Vec<AuditRecord>, StoreError> {
        let mut records = self.deleted_records(None).await?;
        for (session, owner) in self.sessions(&AuditQuery { since: Some(since), ..AuditQuery::default() }).await? {
            records.extend(self.session_records(session, owner).await?);
        }
        records.retain(|record| record.ended_at.is_some_and(|ended| ended >= since));
        Ok(records)
    }

    /// Writes down who has a session, once, so that it is found among everybody's. Before the session is made.
    pub async fn note_principal(&self, principal: &Principal) -> Result<(), StoreError> {
        let is_noted = |this: &Self| this.noted.lock().unwrap_or_else(PoisonError::into_inner).contains(principal);
        if *principal == Principal::owner() || is_noted(self) {
            return Ok(());
        }
        if !self.noted_principals().await?.contains(principal) {
            append_fact(&*self.store, &format!("{PRINCIPALS_SCOPE}{principal}"), &principal).await?;
        }
        self.noted.lock().unwrap_or_else(PoisonError::into_inner).insert(principal.clone());
        Ok(())
    }

    async fn noted_principals(&self) -> Result<Vec<Principal>, StoreError> {
        let scopes = self.scopes_below(PRINCIPALS_SCOPE).await?;
        Ok(scopes.iter().filter_map(|(scope, _)| scope.strip_prefix(PRINCIPALS_SCOPE)).map(Principal::named).collect())
    }

    async fn collect(&self, query: &AuditQuery) -> Result<Vec<AuditRecord>, StoreError> {
        self.forget_expired().await?;
        let mut records = self.deleted_records(query.session).await?;
        for (session, owner) in self.sessions(query).await? {
            records.extend(self.session_records(session, owner).await?);
        }
        let concerns = |record: &AuditRecord| query.principal.as_ref().is_none_or(|wanted| record.concerns(wanted));
        records.retain(|record| query.since.is_none_or(|since| record.at >= since) && concerns(record));
        records.sort_by_key(|record| (record.at, record.session, record.seq));
        let excess = records.len().saturating_sub(query.limit.max(1));
        Ok(records.split_off(excess))
    }

    /// The actions of a session that is there.
    pub async fn session_records(&self, session: SessionId, owner: Principal) -> Result<Vec<AuditRecord>, StoreError> {
        let (mut trail, mut after) = (AuditTrail::new(session, owner), gander_domain::Seq::ZERO);
        loop {
            let page = match self.store.read(session, after, Limit::default(), DeltaForm::Joined).await {
                // Deleted meanwhile: what it left is found the next time.
                Err(StoreError::NotFound(_) | StoreError::Deleted(_)) => return Ok(Vec::new()),
                page => page?,
            };
            let Some(last) = page.last() else { return Ok(trail.into_records()) };
            after = last.seq;
            page.iter().for_each(|entry| trail.apply(entry));
        }
    }

    /// Writes down what is kept of a session that is about to be deleted. Before, so that a crash in between leaves it
    /// twice and not at all; what is there twice is shown once, since the session's own log counts first.
    pub async fn keep_deleted(&self, session: SessionId, owner: Principal, by: &Principal) -> Result<(), StoreError> {
        self.forget_expired().await?;
        let records = self.session_records(session, owner).await?;
        if records.is_empty() {
            return Ok(());
        }
        let records: Vec<AuditRecord> = records.into_iter().map(|record| record.without_content(by)).collect();
        append_fact(&*self.store, &format!("{SCOPE}{session}"), &records).await
    }

    async fn sessions(&self, query: &AuditQuery) -> Result<Vec<(SessionId, Principal)>, StoreError> {
        if let Some(session) = query.session {
            return match self.store.session_summary(session).await {
                Ok(summary) => Ok(vec![(session, summary.owner)]),
                Err(StoreError::NotFound(_) | StoreError::Deleted(_)) => Ok(Vec::new()),
                Err(error) => Err(error),
            };
        }
        let mut owners = (self.principals)();
        owners.extend(self.noted_principals().await?);
        owners.extend(query.principal.clone());
        owners.sort();
        owners.dedup();
        let mut sessions = Vec::new();
        for owner in owners {
            for archived in [false, true] {
                sessions.extend(self.sessions_of(&owner, archived, query.since).await?);
            }
        }
        Ok(sessions)
    }

    /// Last changed first: the rest of the list is older than what is asked for.
    async fn sessions_of(
        &self,
        owner: &Principal,
        archived: bool,
        since: Option<Timestamp>,
    ) -> Result<Vec<(SessionId, Principal)>, StoreError> {
        let (mut sessions, mut after): (Vec<_>, Option<PageKey>) = (Vec::new(), None);
        loop {
            let query = gander_store::sessions_of(owner.clone());
            let page = self.store.sessions(SessionQuery { archived, after, limit: PAGE_SIZE, ..query }).await?;
            let total = page.sessions.len();
            let recent = page.sessions.into_iter().filter(|known| since.is_none_or(|since| known.updated_at >= since));
            let recent: Vec<_> = recent.map(|known| (known.session, known.owner)).collect();
            let is_last = recent.len() < total;
            sessions.extend(recent);
            after = page.next;
            if after.is_none() || is_last {
                return Ok(sessions);
            }
        }
    }

    /// What deleted sessions left.
    async fn deleted_records(&self, only: Option<SessionId>) -> Result<Vec<AuditRecord>, StoreError> {
        let mut records = Vec::new();
        for (scope, _) in self.scopes().await? {
            let is_wanted = only.is_none_or(|session| scope == format!("{SCOPE}{session}"));
            let Some(session) = scope.strip_prefix(SCOPE).and_then(|id| id.parse::<SessionId>().ok()) else { continue };
            if !is_wanted || self.store.session_summary(session).await.is_ok() {
                continue;
            }
            if let Some(last) = read_scope_all(&*self.store, &scope).await?.pop() {
                records.extend(serde_json::from_value::<Vec<AuditRecord>>(last.fact).unwrap_or_default());
            }
        }
        Ok(records)
    }

    async fn forget_expired(&self) -> Result<(), StoreError> {
        let keep = i64::try_from((self.keep)().as_micros()).unwrap_or(i64::MAX);
        let oldest = clock::current_time().as_micros().saturating_sub(keep);
        for (scope, at) in self.scopes().await? {
            if at.as_micros() < oldest {
                self.store.delete_scope(&scope).await?;
            }
        }
        Ok(())
    }

    async fn scopes(&self) -> Result<Vec<(String, Timestamp)>, StoreError> {
        self.scopes_below(SCOPE).await
    }

    async fn scopes_below(&self, prefix: &str) -> Result<Vec<(String, Timestamp)>, StoreError> {
        let (mut scopes, mut after): (Vec<(String, Timestamp)>, Option<String>) = (Vec::new(), None);
        loop {
            let page = self.store.scopes(prefix, after.as_deref(), PAGE_SIZE).await?;
            let is_last = page.len() < PAGE_SIZE as usize;
            scopes.extend(page);
            if is_last {
                return Ok(scopes);
            }
            after = scopes.last().map(|(scope, _)| scope.clone());
        }
    }
}

impl std::fmt::Debug for Audit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Audit").finish_non_exhaustive()
    }
}
