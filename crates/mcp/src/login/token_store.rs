//! Where the tokens of logins are kept: each person's apart, and never shown.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use rmcp::transport::auth::{AuthError, CredentialRefreshGuard, CredentialStore, StoredCredentials};
use serde_json::Value;

/// Keeps what logins yielded, by name. It holds secrets.
#[async_trait]
pub trait OAuthTokenStore: Send + Sync {
    /// What is kept under this name, as far as is known here.
    fn load(&self, name: &str) -> Option<Value>;
    /// The same, after a look at what other processes keep.
    async fn load_newest(&self, name: &str) -> Option<Value> {
        self.load(name)
    }
    /// Keeps this under the name.
    async fn save(&self, name: &str, tokens: &Value) -> Result<(), String>;
    /// Forgets it.
    async fn clear(&self, name: &str) -> Result<(), String>;
}

/// Keeps it in memory.
#[derive(Default)]
pub struct MemoryOAuthTokenStore(Mutex<HashMap<String, Value>>);

/// One person's tokens. Cheap to clone.
#[derive(Clone)]
pub struct Keyring {
    store: Arc<dyn OAuthTokenStore>,
    owner: String,
    renewing: Arc<RefreshTurns>,
}

/// Of two that renew the same token at once the second would hold a used one: they take turns, by name of the token.
#[derive(Default)]
struct RefreshTurns(Mutex<HashMap<String, Turn>>);

/// Whoever holds it renews.
type Turn = Arc<tokio::sync::Mutex<()>>;

impl RefreshTurns {
    fn refresh_turn(&self, name: &str) -> Turn {
        let mut turns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        turns.retain(|_, turn| Arc::strong_count(turn) > 1);
        Arc::clone(turns.entry(name.to_owned()).or_default())
    }
}

impl Default for Keyring {
    fn default() -> Self {
        Self::new(Arc::new(MemoryOAuthTokenStore::default()))
    }
}

impl Keyring {
    /// Tokens in this store.
    pub fn new(store: Arc<dyn OAuthTokenStore>) -> Self {
        Self { store, owner: String::new(), renewing: Arc::default() }
    }

    /// Those of this person.
    pub fn for_owner(&self, owner: &str) -> Self {
        Self { owner: owner.to_owned(), ..self.clone() }
    }

    /// The place for one server's tokens.
    pub(super) fn token_slot(&self, server: &str) -> OAuthTokenSlot {
        OAuthTokenSlot { name: format!("login/{}/{server}", self.owner), keyring: self.clone() }
    }
}

/// The place for one server's tokens.
pub(super) struct OAuthTokenSlot {
    name: String,
    keyring: Keyring,
}

impl OAuthTokenSlot {
    pub(super) async fn is_empty(&self) -> bool {
        self.keyring.store.load_newest(&self.name).await.is_none()
    }

    /// Every token in it.
    pub(super) fn stored_secrets(&self) -> Vec<String> {
        let kept = self.keyring.store.load(&self.name).unwrap_or_default();
        let fields = kept["token_response"].as_object().into_iter().flatten();
        let tokens = fields.filter(|(name, _)| name.ends_with("_token"));
        tokens.filter_map(|(_, token)| token.as_str().map(str::to_owned)).collect()
    }

    pub(super) async fn delete_tokens(&self) -> Result<(), String> {
        self.keyring.store.clear(&self.name).await
    }
}

#[async_trait]
impl CredentialStore for OAuthTokenSlot {
    async fn load(&self) -> Result<Option<StoredCredentials>, AuthError> {
        let kept = self.keyring.store.load_newest(&self.name).await.map(serde_json::from_value).transpose();
        kept.map_err(|error| AuthError::CredentialStoreError(error.to_string()))
    }

    async fn save(&self, credentials: StoredCredentials) -> Result<(), AuthError> {
        let tokens = serde_json::to_value(credentials);
        let tokens = tokens.map_err(|error| AuthError::CredentialStoreError(error.to_string()))?;
        self.keyring.store.save(&self.name, &tokens).await.map_err(AuthError::CredentialStoreError)
    }

    async fn clear(&self) -> Result<(), AuthError> {
        self.delete_tokens().await.map_err(AuthError::CredentialStoreError)
    }

    async fn acquire_refresh_guard(&self) -> Result<Option<CredentialRefreshGuard>, AuthError> {
        Ok(Some(CredentialRefreshGuard::new(self.keyring.renewing.refresh_turn(&self.name).lock_owned().await)))
    }
}

#[async_trait]
impl OAuthTokenStore for MemoryOAuthTokenStore {
    fn load(&self, name: &str) -> Option<Value> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    async fn save(&self, name: &str, tokens: &Value) -> Result<(), String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned(), tokens.clone());
        Ok(())
    }

    async fn clear(&self, name: &str) -> Result<(), String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(name);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use futures::FutureExt as _;
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn the_tokens_of_one_person_at_one_server_are_told_to_who_hides_them() {
        let anna = Keyring::default().for_owner("anna");
        let tokens = json!({"access_token": "hush", "refresh_token": "hush too", "token_type": "bearer"});
        anna.store.save("login/anna/web", &json!({"client_id": "us", "token_response": tokens})).await.unwrap();
        assert_eq!(anna.token_slot("web").stored_secrets(), ["hush", "hush too"]);
        assert!(
            anna.token_slot("files").stored_secrets().is_empty()
                && anna.for_owner("ben").token_slot("web").stored_secrets().is_empty()
        );
    }

    #[tokio::test]
    async fn only_who_renews_the_same_token_waits() {
        let keyring = Keyring::default();
        let (anna, ben) = (keyring.for_owner("anna"), keyring.for_owner("ben"));
        let held = anna.token_slot("web").acquire_refresh_guard().await;
        assert!(held.is_ok());
        let (same, else_where, other) = (anna.token_slot("web"), anna.token_slot("files"), ben.token_slot("web"));
        assert!(same.acquire_refresh_guard().now_or_never().is_none());
        assert!(else_where.acquire_refresh_guard().now_or_never().is_some());
        assert!(other.acquire_refresh_guard().now_or_never().is_some());
        drop(held);
        assert!(same.acquire_refresh_guard().now_or_never().is_some());
    }
}
