//! What tools of MCP servers were when they were first seen: facts of no session, kept in their own log.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gander_agent::mcp::PinBook;
use gander_domain::Seq;
use serde::{Deserialize, Serialize};

use crate::clock;
use crate::log::{ScopeAppend, Store, StoreError, Sync};

/// The log's key.
const SCOPE: &str = "mcp_pins";

/// Facts read in one go.
const PAGE: u32 = 1_000;

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
        let (mut known, mut after) = (HashMap::new(), Seq::ZERO);
        loop {
            let page = store.read_scope(SCOPE, after, PAGE).await?;
            let Some(last) = page.last() else { return Ok(Self { store, known: Mutex::new(known) }) };
            after = last.seq;
            let facts = page.into_iter().filter_map(|entry| serde_json::from_value(entry.fact).ok());
            known.extend(facts.map(|Pinned { server, tool, definition }| ((server, tool), definition)));
        }
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
            if let Err(error) = append(&*store, &pinned).await {
                tracing::warn!(%error, "a tool's definition could not be stored");
            }
        });
    }
}

async fn append(store: &dyn Store, pinned: &Pinned) -> Result<(), StoreError> {
    let fact = serde_json::to_value(pinned).map_err(|error| StoreError::Invalid(error.to_string()))?;
    let append = ScopeAppend { scope: SCOPE.to_owned(), at: clock::now(), facts: vec![fact], after: None };
    store.append_scope(append, Sync::Barrier).await.map(drop)
}
