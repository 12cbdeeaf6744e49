//! What tools of MCP servers were when they were first seen: facts of no session, kept in their own log.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gander_agent::mcp::PinBook;
use serde::{Deserialize, Serialize};

use crate::log::{Store, StoreError, append_fact, read_scope_all};

/// The log's key.
const SCOPE: &str = "mcp_pins";

/// Pins, folded from their log.
pub struct PinStore {
    store: Arc<dyn Store>,
    /// The same in memory: whoever asks cannot wait for a disk.
    known: Mutex<HashMap<(String, String), String>>,
}

#[derive(Serialize, Deserialize)]
struct Pinned {
    server: String,
    tool: String,
    definition: String,
}

impl PinStore {
    /// Pins in this store.
    pub async fn load(store: Arc<dyn Store>) -> Result<Self, StoreError> {
        let facts = read_scope_all(&*store, SCOPE)
            .await?
            .into_iter()
            .filter_map(|entry| serde_json::from_value(entry.fact).ok());
        let known = facts.map(|Pinned { server, tool, definition }| ((server, tool), definition)).collect();
        Ok(Self { store, known: Mutex::new(known) })
    }

    /// A panic while the lock was held leaves nothing half done here.
    fn lock(&self) -> MutexGuard<'_, HashMap<(String, String), String>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PinBook for PinStore {
    fn pinned(&self, server: &str, tool: &str) -> Option<String> {
        self.lock().get(&(server.to_owned(), tool.to_owned())).cloned()
    }

    /// In force at once, written beside: if that fails the tool counts as seen for the first time another day.
    fn pin(&self, server: &str, tool: &str, definition: &str) {
        let [server, tool, definition] = [server, tool, definition].map(str::to_owned);
        self.lock().insert((server.clone(), tool.clone()), definition.clone());
        let (store, pinned) = (Arc::clone(&self.store), Pinned { server, tool, definition });
        tokio::spawn(async move {
            if let Err(error) = append_fact(&*store, SCOPE, &pinned).await {
                tracing::warn!(%error, "a tool's definition could not be stored");
            }
        });
    }
}
