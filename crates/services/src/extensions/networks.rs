//! Which programs of MCP servers people gave the network: facts of no session, kept in their own log.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gander_domain::Principal;
use gander_mcp::NetworkGrantStore;
use gander_store::{FactEntry, FactLog, FactState, Store, StoreError};
use serde::{Deserialize, Serialize};

/// The log's key.
pub(super) const SCOPE: &str = "mcp_networks";

/// What everybody granted, folded from its log. Cheap to clone.
#[derive(Clone)]
pub struct NetworkStore {
    log: Arc<FactLog<NetworkState>>,
    /// Names of servers by who granted and to which. In memory: whoever asks cannot wait for a disk.
    known: Arc<Mutex<NetworkState>>,
}

/// What one person granted.
struct PrincipalNetworks {
    all: NetworkStore,
    who: Principal,
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum NetworkFact {
    Granted {
        who: Principal,
        name: String,
        server: String,
    },
    /// Nobody's server of this name has it any more.
    Forgotten {
        name: String,
    },
}

/// Names of servers by who granted and to which.
#[derive(Default)]
struct NetworkState(HashMap<(Principal, String), String>);

impl FactState for NetworkState {
    type Fact = NetworkFact;

    fn apply(&mut self, fact: NetworkFact, _written: FactEntry) {
        match fact {
            NetworkFact::Granted { who, name, server } => drop(self.0.insert((who, server), name)),
            NetworkFact::Forgotten { name } => self.0.retain(|_, known| *known != name),
        }
    }

    fn facts(&self) -> Vec<NetworkFact> {
        let granted = |((who, server), name): (&(Principal, String), &String)| NetworkFact::Granted {
            who: who.clone(),
            name: name.clone(),
            server: server.clone(),
        };
        self.0.iter().map(granted).collect()
    }
}

impl NetworkStore {
    /// What this store holds.
    pub async fn load(store: Arc<dyn Store>) -> Result<Self, StoreError> {
        let log = Arc::new(FactLog::<NetworkState>::new(store, SCOPE));
        let known = Arc::new(Mutex::new(log.fold_all().await?));
        Ok(Self { log, known })
    }

    /// Reads the log again: another node wrote to it.
    pub(super) async fn refresh(&self) -> Result<(), StoreError> {
        let known = self.log.fold_all().await?;
        *self.lock_state() = known;
        Ok(())
    }

    /// What this person granted.
    pub fn for_principal(&self, who: &Principal) -> Arc<dyn NetworkGrantStore> {
        Arc::new(PrincipalNetworks { all: self.clone(), who: who.clone() })
    }

    /// What was granted to servers of this name is taken back.
    pub async fn forget_server(&self, name: &str) -> Result<(), StoreError> {
        if self.lock_state().0.values().any(|known| known == name) {
            let fact = NetworkFact::Forgotten { name: name.to_owned() };
            let written = self.log.append_fact(&fact).await?;
            self.lock_state().apply(fact, written);
        }
        Ok(())
    }

    /// A panic while the lock was held leaves nothing half done here.
    fn lock_state(&self) -> MutexGuard<'_, NetworkState> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl NetworkGrantStore for PrincipalNetworks {
    fn is_granted(&self, server: &str) -> bool {
        self.all.lock_state().0.contains_key(&(self.who.clone(), server.to_owned()))
    }

    /// In force at once, written beside: if that fails a person is asked again another day.
    fn grant(&self, name: &str, server: &str) {
        let (who, name, server) = (self.who.clone(), name.to_owned(), server.to_owned());
        self.all.lock_state().0.insert((who.clone(), server.clone()), name.clone());
        let (log, fact) = (Arc::clone(&self.all.log), NetworkFact::Granted { who, name, server });
        tokio::spawn(async move {
            if let Err(error) = log.append_fact(&fact).await {
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
        networks.for_principal(&Principal::owner()).grant("search", "abc");
        assert!(networks.for_principal(&Principal::owner()).is_granted("abc"));
        assert!(!networks.for_principal(&Principal::named("bob")).is_granted("abc"));
        let again = loop {
            let again = NetworkStore::load(Arc::clone(&store)).await.unwrap();
            if again.for_principal(&Principal::owner()).is_granted("abc") {
                break again;
            }
            tokio::task::yield_now().await;
        };
        again.forget_server("search").await.unwrap();
        assert!(!again.for_principal(&Principal::owner()).is_granted("abc"));
        assert!(!NetworkStore::load(store).await.unwrap().for_principal(&Principal::owner()).is_granted("abc"));
    }
}
