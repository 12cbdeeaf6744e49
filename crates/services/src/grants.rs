//! What was allowed or refused for good: facts of no session, kept in their own log, revocable.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gander_agent::driver::GrantStore;
use gander_domain::{Principal, Timestamp};
use gander_store::{FactEntry, FactLog, FactState, Store, StoreError};
use gander_tools::permission::Grant;
use serde::{Deserialize, Serialize};

/// The log's key.
pub(crate) const SCOPE: &str = "grants";

/// A grant in force.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HeldGrant {
    /// Whose sessions it counts in.
    #[serde(skip)]
    pub by: Principal,
    /// For revoking it.
    pub id: u64,
    /// In words.
    pub text: String,
    /// What is covered.
    pub grant: Grant,
    pub at: Timestamp,
}

/// Everybody's grants, folded from their log. Cheap to clone.
#[derive(Clone)]
pub struct Grants {
    log: Arc<FactLog<GrantState>>,
    /// The same in memory: decisions cannot wait for a disk.
    known: Arc<Mutex<HashMap<Principal, Vec<Grant>>>>,
}

/// What one principal granted, for runs of its sessions.
struct PrincipalGrants {
    all: Grants,
    principal: Principal,
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum GrantFact {
    Granted {
        grant: Grant,
        /// Absent in logs of a time when there was one list: it was the owner's.
        #[serde(default = "Principal::owner", skip_serializing_if = "is_grant_owner")]
        by: Principal,
        /// Absent until the log is compacted: the place of its entry.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<u64>,
        /// Absent until the log is compacted: the time of its entry.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at: Option<Timestamp>,
    },
    Revoked {
        id: u64,
    },
}

impl Grants {
    /// Grants in this store.
    pub async fn load(store: Arc<dyn Store>) -> Result<Self, StoreError> {
        let grants = Self { log: Arc::new(FactLog::new(store, SCOPE)), known: Arc::default() };
        grants.refresh().await?;
        Ok(grants)
    }

    /// Reads the log, again if another node wrote to it. One that was just given here and is not written yet counts again
    /// when it is.
    pub(crate) async fn refresh(&self) -> Result<(), StoreError> {
        let mut known: HashMap<Principal, Vec<Grant>> = HashMap::new();
        for held in self.all_grants().await? {
            known.entry(held.by).or_default().push(held.grant);
        }
        *self.lock_grants() = known;
        Ok(())
    }

    /// This principal's, for its runs.
    pub fn for_principal(&self, principal: &Principal) -> Arc<dyn GrantStore> {
        Arc::new(PrincipalGrants { all: self.clone(), principal: principal.clone() })
    }

    /// All of this principal's that are in force, oldest first.
    pub async fn list(&self, principal: &Principal) -> Result<Vec<HeldGrant>, StoreError> {
        Ok(self.all_grants().await?.into_iter().filter(|held| held.by == *principal).collect())
    }

    /// Takes one of this principal's back; false if it has none with this id.
    pub async fn revoke(&self, principal: &Principal, id: u64) -> Result<bool, StoreError> {
        let Some(held) = self.list(principal).await?.into_iter().find(|held| held.id == id) else { return Ok(false) };
        self.log.append_fact(&GrantFact::Revoked { id }).await?;
        if let Some(known) = self.lock_grants().get_mut(principal) {
            known.retain(|grant| *grant != held.grant);
        }
        Ok(true)
    }

    async fn all_grants(&self) -> Result<Vec<HeldGrant>, StoreError> {
        Ok(self.log.fold_all().await?.0)
    }

    /// A panic while the lock was held leaves nothing half done here.
    fn lock_grants(&self) -> MutexGuard<'_, HashMap<Principal, Vec<Grant>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl GrantStore for PrincipalGrants {
    fn grants(&self) -> Vec<Grant> {
        self.all.lock_grants().get(&self.principal).cloned().unwrap_or_default()
    }

    /// In force at once, written beside: if that fails the person is asked again another day.
    fn add(&self, grant: Grant) {
        let mut all = self.all.lock_grants();
        let known = all.entry(self.principal.clone()).or_default();
        if known.contains(&grant) {
            return;
        }
        known.push(grant.clone());
        let (log, by) = (Arc::clone(&self.all.log), self.principal.clone());
        tokio::spawn(async move {
            if let Err(error) = log.append_fact(&GrantFact::Granted { grant, by, id: None, at: None }).await {
                tracing::warn!(%error, "a grant could not be stored");
            }
        });
    }
}

fn is_grant_owner(principal: &Principal) -> bool {
    *principal == Principal::owner()
}

/// Grants in force, oldest first.
#[derive(Default)]
struct GrantState(Vec<HeldGrant>);

impl FactState for GrantState {
    type Fact = GrantFact;

    fn apply(&mut self, fact: GrantFact, written: FactEntry) {
        match fact {
            GrantFact::Granted { grant, by, id, at } => self.0.push(HeldGrant {
                by,
                id: id.unwrap_or(written.seq.0),
                text: grant.to_string(),
                grant,
                at: at.unwrap_or(written.at),
            }),
            GrantFact::Revoked { id } => self.0.retain(|held| held.id != id),
        }
    }

    /// With their ids: people revoke grants by them.
    fn facts(&self) -> Vec<GrantFact> {
        let granted = |held: &HeldGrant| GrantFact::Granted {
            grant: held.grant.clone(),
            by: held.by.clone(),
            id: Some(held.id),
            at: Some(held.at),
        };
        self.0.iter().map(granted).collect()
    }
}
