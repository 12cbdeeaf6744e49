//! Ids of new sessions: random ones, or numbers that count up.

use gander_domain::SessionId;
use gander_store::clock::{self, SystemIds};
use gander_store::{Durability, ScopeAppend, Store, StoreError};
use serde_json::Value;

use super::{SessionError, Sessions};

/// Where numbers are given out: each is the place of one fact.
const NUMBERS_SCOPE: &str = "session-numbers";

/// Numbers that are kept before they are put together into one fact.
const COMPACTION_INTERVAL: u64 = 1_000;

/// How new sessions are called.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SessionIds {
    /// UUIDs of version 7: nobody can guess another one, or count them.
    #[default]
    Random,
    /// `session-1`, `session-2` and so on. A number is never given twice, also if its session is deleted.
    Sequential,
}

impl Sessions {
    /// The same, with ids of this kind for sessions to come.
    #[must_use]
    pub fn with_ids(self, ids: SessionIds) -> Self {
        Self { ids, ..self }
    }

    /// An id that no session had before.
    pub async fn new_id(&self) -> Result<SessionId, SessionError> {
        match self.ids {
            SessionIds::Random => Ok(SessionId::make(&mut SystemIds)),
            SessionIds::Sequential => Ok(next_session_id_number(&**self.hub.store()).await?),
        }
    }
}

/// The store puts facts of one scope in an order: so two who ask at once get two numbers.
async fn next_session_id_number(store: &dyn Store) -> Result<SessionId, StoreError> {
    let at = clock::current_time();
    let append = ScopeAppend { scope: NUMBERS_SCOPE.to_owned(), at, facts: vec![Value::Null], after: None };
    // Not synced by itself: the session that gets the number is written behind it.
    let place = store.append_scope(append, Durability::Relaxed).await?;
    if place.0.is_multiple_of(COMPACTION_INTERVAL) {
        store.compact_scope(NUMBERS_SCOPE, place, at, Value::Null).await?;
    }
    let number = u32::try_from(place.0).map_err(|_| StoreError::Invalid("no session numbers are left".to_owned()))?;
    Ok(SessionId::numbered(number))
}
