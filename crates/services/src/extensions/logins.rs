//! Logins at MCP servers that somebody asked for outside of a run, and where their tokens are kept.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use gander_domain::Principal;
use gander_mcp::{Keyring, Login, OAuthTokenStore, Spec, delete_login_tokens};
use serde_json::Value;
use tokio::sync::watch;

use super::{ExtensionError, Extensions};
use crate::server_vault::ServerVault;

/// Tokens among the server's secrets.
pub struct VaultTokenStore(pub ServerVault);

/// Logins under way, by who asked and for which server.
#[derive(Default)]
pub(super) struct Logins(Mutex<HashMap<(Principal, String), LoginOutcome>>);

/// How one ends.
type LoginOutcome = watch::Receiver<Option<Result<(), String>>>;

impl Extensions {
    /// Begins a login; the answer is the address that its person opens. It goes on without whoever asked.
    pub async fn begin_login(self: &Arc<Self>, who: &Principal, spec: &Spec) -> Result<String, ExtensionError> {
        let login = Login::begin_login(spec, &self.keyring_of(who)).await.map_err(ExtensionError::Refused)?;
        let (url, (tell, end)) = (login.url.clone(), watch::channel(None));
        self.logins.lock_logins().insert((who.clone(), spec.name.clone()), end);
        let (extensions, who, spec) = (Arc::downgrade(self), who.clone(), spec.clone());
        tokio::spawn(async move {
            let end = login.wait_until_done().await;
            if let Some(extensions) = extensions.upgrade().filter(|_| end.is_ok()) {
                extensions.retry_after_login(&who, &spec);
            }
            tell.send_replace(Some(end));
        });
        Ok(url)
    }

    /// Until the login is over.
    pub async fn wait_for_login(&self, who: &Principal, name: &str) -> Result<(), ExtensionError> {
        let known = self.logins.lock_logins().get(&(who.clone(), name.to_owned())).cloned();
        let mut end = known.ok_or_else(|| ExtensionError::Refused(format!("nobody logs in there: {name}")))?;
        let end = end.wait_for(Option::is_some).await.ok().and_then(|end| end.clone());
        end.unwrap_or_else(|| Err("the login was given up".to_owned())).map_err(ExtensionError::Refused)
    }

    /// Forgets the tokens for this server.
    pub async fn log_out(&self, who: &Principal, spec: &Spec) -> Result<(), ExtensionError> {
        delete_login_tokens(spec, &self.keyring_of(who)).await.map_err(ExtensionError::Refused)
    }

    pub(super) fn keyring_of(&self, who: &Principal) -> Keyring {
        self.config.keyring.for_owner(who.as_str())
    }
}

impl Logins {
    /// A panic while the lock was held leaves nothing half done here.
    fn lock_logins(&self) -> std::sync::MutexGuard<'_, HashMap<(Principal, String), LoginOutcome>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl OAuthTokenStore for VaultTokenStore {
    fn load(&self, name: &str) -> Option<Value> {
        self.0.get(name)
    }

    /// Another node may have renewed it a moment ago.
    async fn load_newest(&self, name: &str) -> Option<Value> {
        if let Err(error) = self.0.refresh().await {
            tracing::warn!(%error, "logins of other nodes were not read");
        }
        self.0.get(name)
    }

    async fn save(&self, name: &str, tokens: &Value) -> Result<(), String> {
        self.0.put(name, tokens).await.map_err(|error| error.to_string())
    }

    async fn clear(&self, name: &str) -> Result<(), String> {
        self.0.remove(name).await.map_err(|error| error.to_string())
    }
}
