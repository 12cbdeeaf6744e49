//! Idempotency keys: the same key with the same request is one run, with another request it is refused.
//!
//! A client's run id, request id or message id is its key. The hash of the request stands in the meta of the entry that
//! the request made. Entries of earlier versions have none, and fit every request.

use gander_domain::{Seq, SessionId};
use gander_store::{DeltaForm, Limit, RunRow, Store, StoreError};
use serde::Serialize;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

/// The member of an entry's meta.
const META_MEMBER: &str = "request_hash";

/// What a key stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestHash(String);

impl RequestHash {
    /// The hash of whatever makes a request another one.
    pub fn new(request: &impl Serialize) -> Self {
        let mut hash = Sha256::new();
        // Writing into a hash never fails; a value that cannot be written as JSON came in as JSON.
        if let Err(error) = serde_json::to_writer(&mut hash, request) {
            tracing::error!(%error, "a request cannot be hashed");
        }
        Self(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// The meta of an entry with this hash in it.
    pub fn add_to_meta(&self, meta: Option<Value>) -> Value {
        let mut meta = match meta {
            Some(Value::Object(meta)) => meta,
            Some(_) | None => Map::new(),
        };
        meta.insert(META_MEMBER.to_owned(), json!(self.0));
        Value::Object(meta)
    }

    /// True if an entry with this meta was made by the same request, as far as it says.
    pub fn matches_meta(&self, meta: Option<&Value>) -> bool {
        let kept = meta.and_then(|meta| meta.get(META_MEMBER)).and_then(Value::as_str);
        kept.is_none_or(|kept| kept == self.0)
    }

    /// True if the run was begun by the same request, as far as its first entry says.
    pub async fn started_run(&self, store: &dyn Store, row: &RunRow) -> Result<bool, StoreError> {
        Ok(self.matches_meta(request_entry_meta(store, row.session, row.first).await?.as_ref()))
    }
}

async fn request_entry_meta(store: &dyn Store, session: SessionId, first: Seq) -> Result<Option<Value>, StoreError> {
    let (before, one) = (Seq(first.0.saturating_sub(1)), Limit { entries: 1, ..Limit::default() });
    let page = store.read(session, before, one, DeltaForm::Joined).await?;
    Ok(page.into_iter().next().and_then(|entry| entry.meta).map(|meta| *meta))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_fits_its_own_request_and_entries_without_one() {
        let (one, other) = (RequestHash::new(&json!({ "a": 1 })), RequestHash::new(&json!({ "a": 2 })));
        let meta = one.add_to_meta(Some(json!({ "a2a": { "messageId": "m" } })));
        assert_eq!(meta["a2a"]["messageId"], "m");
        assert_eq!((one.matches_meta(Some(&meta)), other.matches_meta(Some(&meta))), (true, false));
        assert!(other.matches_meta(None) && other.matches_meta(Some(&json!({ "a2a": {} }))));
    }
}
