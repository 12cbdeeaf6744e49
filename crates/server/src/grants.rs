//! What was allowed or refused for good: facts of no session, kept in their own log, revocable.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gander_agent::driver::GrantBook;
use gander_agent::permission::Grant;
use gander_domain::{Seq, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::log::{Store, StoreError, append_fact, read_scope_all};

/// The log's key.
const SCOPE: &str = "grants";

/// A grant in force.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Held {
    /// For revoking it.
    pub id: u64,
    /// In words.
    pub text: String,
    /// What is covered.
    pub grant: Grant,
    /// When.
    pub at: Timestamp,
}

/// Grants, folded from their log. Cheap to clone.
#[derive(Clone)]
pub struct Grants {
    store: Arc<dyn Store>,
    /// The same in memory: decisions cannot wait for a disk.
    known: Arc<Mutex<Vec<Grant>>>,
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Fact {
    Granted {
        grant: Grant,
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
        let held = grants.list().await?;
        *grants.lock() = held.into_iter().map(|held| held.grant).collect();
        Ok(grants)
    }

    /// All in force, oldest first.
    pub async fn list(&self) -> Result<Vec<Held>, StoreError> {
        let mut held = Vec::new();
        for entry in read_scope_all(&*self.store, SCOPE).await? {
            let fact = serde_json::from_value(entry.fact).unwrap_or(Fact::Unknown(Value::Null));
            apply(&mut held, entry.seq, entry.at, fact);
        }
        Ok(held)
    }

    /// Takes one back; false if there is none with this id.
    pub async fn revoke(&self, id: u64) -> Result<bool, StoreError> {
        let Some(held) = self.list().await?.into_iter().find(|held| held.id == id) else { return Ok(false) };
        append_fact(&*self.store, SCOPE, &Fact::Revoked { id }).await?;
        self.lock().retain(|grant| *grant != held.grant);
        Ok(true)
    }

    /// A panic while the lock was held leaves nothing half done here.
    fn lock(&self) -> MutexGuard<'_, Vec<Grant>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl GrantBook for Grants {
    fn grants(&self) -> Vec<Grant> {
        self.lock().clone()
    }

    /// In force at once, written beside: if that fails the person is asked again another day.
    fn add(&self, grant: Grant) {
        let mut known = self.lock();
        if known.contains(&grant) {
            return;
        }
        known.push(grant.clone());
        let store = Arc::clone(&self.store);
        tokio::spawn(async move {
            if let Err(error) = append_fact(&*store, SCOPE, &Fact::Granted { grant }).await {
                tracing::warn!(%error, "a grant could not be stored");
            }
        });
    }
}

fn apply(held: &mut Vec<Held>, seq: Seq, at: Timestamp, fact: Fact) {
    match fact {
        Fact::Granted { grant } => held.push(Held { id: seq.0, text: grant.to_string(), grant, at }),
        Fact::Revoked { id } => held.retain(|held| held.id != id),
        Fact::Unknown(_) => {}
    }
}
