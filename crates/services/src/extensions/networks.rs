//! Which programs of MCP servers people gave the network: facts of no session, kept in their own log.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gander_domain::Principal;
use gander_mcp::NetworkGrantStore;
use gander_store::{Store, StoreError, append_fact, read_scope_all};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The log's key.
const SCOPE: &str = "mcp_networks";

/// What everybody granted, folded from its log. Cheap to clone.
#[derive(Clone)]
pub struct NetworkStore {
    store: Arc<dyn Store>,
    /// Names of servers by who granted and to which. In memory: whoever asks cannot wait for a disk.
    known: Arc<Mutex<HashMap<(Principal, String), String>>>,
}

/// What one person granted.
struct Of {
    all: NetworkStore,
    who: Principal,
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Fact {
    Granted {
        who: Principal,
        name: String,
        server: String,
    },
    /// Nobody's server of this name has it any more.
    Forgotten {
        name: String,
    },
    #[serde(untagged)]
    Unknown(Value),
}

impl NetworkStore {
    /// What this store holds.
    pub async fn load(store: Arc<dyn Store>) -> Result<Self, StoreError> {
        let networks = Self { store, known: Arc::default() };
        for entry in read_scope_all(&*networks.store, SCOPE).await? {
            networks.apply(serde_json::from_value(entry.fact).unwrap_or(Fact::Unknown(Value::Null)));
        }
        Ok(networks)
    }

    /// What this person granted.
    pub fn of(&self, who: &Principal) -> Arc<dyn NetworkGrantStore> {
        Arc::new(Of { all: self.clone(), who: who.clone() })
    }

    /// What was granted to servers of this name is taken back.
    pub async fn forget(&self, name: &str) -> Result<(), StoreError> {
        if self.lock().values().any(|known| known == name) {
            let fact = Fact::Forgotten { name: name.to_owned() };
            append_fact(&*self.store, SCOPE, &fact).await?;
            self.apply(fact);
        }
        Ok(())
    }

    fn apply(&self, fact: Fact) {
        match fact {
            Fact::Granted { who, name, server } => drop(self.lock().insert((who, server), name)),
            Fact::Forgotten { name } => self.lock().retain(|_, known| *known != name),
            Fact::Unknown(_) => {}
        }
    }

    /// A panic while the lock was held leaves nothing half done here.
    fn lock(&self) -> MutexGuard<'_, HashMap<(Principal, String), String>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl NetworkGrantStore for Of {
    fn is_granted(&self, server: &str) -> bool {
        self.all.lock().contains_key(&(self.who.clone(), server.to_owned()))
    }

    /// In force at once, written beside: if that fails a person is asked again another day.
    fn grant(&self, name: &str, server: &str) {
        let fact = || Fact::Granted { who: self.who.clone(), name: name.to_owned(), server: server.to_owned() };
        self.all.apply(fact());
        let (store, fact) = (Arc::clone(&self.all.store), fact());
        tokio::spawn(async move {
            if let Err(error) = append_fact(&*store, SCOPE, &fact).await {
                tracing::warn!(%error, "a grant of the network could not be stored");
            }
        });
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use gander_store::MemoryStore;

    #[tokio::test]
    async fn a_grant_is_one_persons_survives_a_restart_and_goes_with_its_server() {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
        let networks = NetworkStore::load(Arc::clone(&store)).await.unwrap();
        networks.of(&Principal::owner()).grant("search", "abc");
        assert!(networks.of(&Principal::owner()).is_granted("abc"));
        assert!(!networks.of(&Principal::named("bob")).is_granted("abc"));
        let again = loop {
            let again = NetworkStore::load(Arc::clone(&store)).await.unwrap();
            if again.of(&Principal::owner()).is_granted("abc") {
                break again;
            }
            tokio::task::yield_now().await;
        };
        again.forget("search").await.unwrap();
        assert!(!again.of(&Principal::owner()).is_granted("abc"));
        assert!(!NetworkStore::load(store).await.unwrap().of(&Principal::owner()).is_granted("abc"));
    }
}
