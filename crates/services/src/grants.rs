//! What was allowed or refused for good: facts of no session, kept in their own log, revocable.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gander_agent::driver::GrantStore;
use gander_domain::{Principal, Seq, Timestamp};
use gander_store::{Store, StoreError, append_fact, read_scope_all};
use gander_tools::permission::Grant;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The log's key.
const SCOPE: &str = "grants";

/// A grant in force.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Held {
    /// Whose sessions it counts in.
    #[serde(skip)]
    pub by: Principal,
    /// For revoking it.
    pub id: u64,
    /// In words.
    pub text: String,
    /// What is covered.
    pub grant: Grant,
    /// When.
    pub at: Timestamp,
}

/// Everybody's grants, folded from their log. Cheap to clone.
#[derive(Clone)]
pub struct Grants {
    store: Arc<dyn Store>,
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
enum Fact {
    Granted {
        grant: Grant,
        /// Absent in logs of a time when there was one list: it was the owner's.
        #[serde(default = "Principal::owner", skip_serializing_if = "is_owner")]
        by: Principal,
    },
    Revoked {
        id: u64,
    },
    #[serde(untagged)]
    Unknown(Value),
}

impl Grants {
    /// Grants in this store.
    pub async fn load(store: Arc<dyn Store>) -> Result<Self, StoreError> {
        let grants = Self { store, known: Arc::default() };
        let mut known: HashMap<Principal, Vec<Grant>> = HashMap::new();
        for held in grants.held().await? {
            known.entry(held.by).or_default().push(held.grant);
        }
        *grants.lock() = known;
        Ok(grants)
    }

    /// This principal's, for its runs.
    pub fn of(&self, principal: &Principal) -> Arc<dyn GrantStore> {
        Arc::new(PrincipalGrants { all: self.clone(), principal: principal.clone() })
    }

    /// All of this principal's that are in force, oldest first.
    pub async fn list(&self, principal: &Principal) -> Result<Vec<Held>, StoreError> {
        Ok(self.held().await?.into_iter().filter(|held| held.by == *principal).collect())
    }

    /// Takes one of this principal's back; false if it has none with this id.
    pub async fn revoke(&self, principal: &Principal, id: u64) -> Result<bool, StoreError> {
        let Some(held) = self.list(principal).await?.into_iter().find(|held| held.id == id) else { return Ok(false) };
        append_fact(&*self.store, SCOPE, &Fact::Revoked { id }).await?;
        if let Some(known) = self.lock().get_mut(principal) {
            known.retain(|grant| *grant != held.grant);
        }
        Ok(true)
    }

    async fn held(&self) -> Result<Vec<Held>, StoreError> {
        let mut held = Vec::new();
        for entry in read_scope_all(&*self.store, SCOPE).await? {
            let fact = serde_json::from_value(entry.fact).unwrap_or(Fact::Unknown(Value::Null));
            apply(&mut held, entry.seq, entry.at, fact);
        }
        Ok(held)
    }

    /// A panic while the lock was held leaves nothing half done here.
    fn lock(&self) -> MutexGuard<'_, HashMap<Principal, Vec<Grant>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl GrantStore for PrincipalGrants {
    fn grants(&self) -> Vec<Grant> {
        self.all.lock().get(&self.principal).cloned().unwrap_or_default()
    }

    /// In force at once, written beside: if that fails the person is asked again another day.
    fn add(&self, grant: Grant) {
        let mut all = self.all.lock();
        let known = all.entry(self.principal.clone()).or_default();
        if known.contains(&grant) {
            return;
        }
        known.push(grant.clone());
        let (store, by) = (Arc::clone(&self.all.store), self.principal.clone());
        tokio::spawn(async move {
            if let Err(error) = append_fact(&*store, SCOPE, &Fact::Granted { grant, by }).await {
                tracing::warn!(%error, "a grant could not be stored");
            }
        });
    }
}

fn is_owner(principal: &Principal) -> bool {
    *principal == Principal::owner()
}

fn apply(held: &mut Vec<Held>, seq: Seq, at: Timestamp, fact: Fact) {
    match fact {
        Fact::Granted { grant, by } => held.push(Held { by, id: seq.0, text: grant.to_string(), grant, at }),
        Fact::Revoked { id } => held.retain(|held| held.id != id),
        Fact::Unknown(_) => {}
    }
}
