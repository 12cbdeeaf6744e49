//! What tools of MCP servers were when they were first seen: facts of no session, kept in their own log.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gander_domain::Principal;
use gander_mcp::ToolPinStore;
use gander_store::{FactEntry, FactLog, FactState, Store, StoreError};
use serde::{Deserialize, Serialize};

/// The log's key.
pub(super) const SCOPE: &str = "mcp_pins";

/// Everybody's pins, folded from their log. Cheap to clone.
#[derive(Clone)]
pub struct PinStore {
    log: Arc<FactLog<PinState>>,
    /// The same in memory: whoever asks cannot wait for a disk.
    known: Arc<Mutex<PinState>>,
}

/// Definitions by whose session saw the tool, its server and its name: what one person accepted is news to another.
#[derive(Default)]
struct PinState(HashMap<(Principal, String, String), String>);

/// The pins of one principal.
struct PrincipalPins {
    all: PinStore,
    principal: Principal,
}

#[derive(Serialize, Deserialize)]
struct Pinned {
    server: String,
    tool: String,
    definition: String,
    /// Absent in logs of a time when there was one list: it was the owner's.
    #[serde(default = "Principal::owner", skip_serializing_if = "is_pin_owner")]
    by: Principal,
}

impl FactState for PinState {
    type Fact = Pinned;

    fn apply(&mut self, pinned: Pinned, _written: FactEntry) {
        let Pinned { server, tool, definition, by } = pinned;
        self.0.insert((by, server, tool), definition);
    }

    fn facts(&self) -> Vec<Pinned> {
        let pinned = |((by, server, tool), definition): (&(Principal, String, String), &String)| Pinned {
            server: server.clone(),
            tool: tool.clone(),
            definition: definition.clone(),
            by: by.clone(),
        };
        self.0.iter().map(pinned).collect()
    }
}

impl PinStore {
    /// Pins in this store.
    pub async fn load(store: Arc<dyn Store>) -> Result<Self, StoreError> {
        let log = Arc::new(FactLog::<PinState>::new(store, SCOPE));
        let known = Arc::new(Mutex::new(log.fold_all().await?));
        Ok(Self { log, known })
    }

    /// Reads the log again: another node wrote to it.
    pub(super) async fn refresh(&self) -> Result<(), StoreError> {
        let known = self.log.fold_all().await?;
        *self.lock_state() = known;
        Ok(())
    }

    /// This principal's.
    pub fn for_principal(&self, principal: &Principal) -> Arc<dyn ToolPinStore> {
        Arc::new(PrincipalPins { all: self.clone(), principal: principal.clone() })
    }

    /// A panic while the lock was held leaves nothing half done here.
    fn lock_state(&self) -> MutexGuard<'_, PinState> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ToolPinStore for PrincipalPins {
    fn pinned(&self, server: &str, tool: &str) -> Option<String> {
        self.all.lock_state().0.get(&(self.principal.clone(), server.to_owned(), tool.to_owned())).cloned()
    }

    /// In force at once, written beside: if that fails the tool counts as seen for the first time another day.
    fn pin(&self, server: &str, tool: &str, definition: &str) {
        let [server, tool, definition] = [server, tool, definition].map(str::to_owned);
        let by = self.principal.clone();
        self.all.lock_state().0.insert((by.clone(), server.clone(), tool.clone()), definition.clone());
        let (log, pinned) = (Arc::clone(&self.all.log), Pinned { server, tool, definition, by });
        tokio::spawn(async move {
            if let Err(error) = log.append_fact(&pinned).await {
                tracing::warn!(%error, "a tool's definition could not be stored");
            }
        });
    }
}

fn is_pin_owner(principal: &Principal) -> bool {
    *principal == Principal::owner()
}
