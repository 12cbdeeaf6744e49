//! What tools of MCP servers were when they were first seen: facts of no session, kept in their own log.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gander_domain::Principal;
use gander_mcp::ToolPinStore;
use gander_store::{Store, StoreError, append_fact, read_scope_all};
use serde::{Deserialize, Serialize};

/// The log's key.
const SCOPE: &str = "mcp_pins";

/// Everybody's pins, folded from their log. Cheap to clone.
#[derive(Clone)]
pub struct PinStore {
    store: Arc<dyn Store>,
    /// The same in memory: whoever asks cannot wait for a disk.
    known: Arc<Mutex<Known>>,
}

/// Definitions by whose session saw the tool, its server and its name: what one person accepted is news to another.
type Known = HashMap<(Principal, String, String), String>;

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
    #[serde(default = "Principal::owner", skip_serializing_if = "is_owner")]
    by: Principal,
}

impl PinStore {
    /// Pins in this store.
    pub async fn load(store: Arc<dyn Store>) -> Result<Self, StoreError> {
        let facts = read_scope_all(&*store, SCOPE)
            .await?
            .into_iter()
            .filter_map(|entry| serde_json::from_value(entry.fact).ok());
        let known = facts.map(|Pinned { server, tool, definition, by }| ((by, server, tool), definition)).collect();
        Ok(Self { store, known: Arc::new(Mutex::new(known)) })
    }

    /// This principal's.
    pub fn of(&self, principal: &Principal) -> Arc<dyn ToolPinStore> {
        Arc::new(PrincipalPins { all: self.clone(), principal: principal.clone() })
    }

    /// A panic while the lock was held leaves nothing half done here.
    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ToolPinStore for PrincipalPins {
    fn pinned(&self, server: &str, tool: &str) -> Option<String> {
        self.all.lock().get(&(self.principal.clone(), server.to_owned(), tool.to_owned())).cloned()
    }

    /// In force at once, written beside: if that fails the tool counts as seen for the first time another day.
    fn pin(&self, server: &str, tool: &str, definition: &str) {
        let [server, tool, definition] = [server, tool, definition].map(str::to_owned);
        let by = self.principal.clone();
        self.all.lock().insert((by.clone(), server.clone(), tool.clone()), definition.clone());
        let (store, pinned) = (Arc::clone(&self.all.store), Pinned { server, tool, definition, by });
        tokio::spawn(async move {
            if let Err(error) = append_fact(&*store, SCOPE, &pinned).await {
                tracing::warn!(%error, "a tool's definition could not be stored");
            }
        });
    }
}

fn is_owner(principal: &Principal) -> bool {
    *principal == Principal::owner()
}
