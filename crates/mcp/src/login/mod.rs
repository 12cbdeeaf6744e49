//! Logins at servers behind an address (OAuth): found out from the server, agreed to by a person in a browser,
//! kept in a [`Keyring`], renewed by the official SDK.

mod callback;
mod oauth_http;
mod token_store;

use std::sync::Arc;
use std::time::Duration;

use reqwest::Url;
use rmcp::transport::auth::{AuthError, AuthorizationManager, AuthorizationRequest, OAuthState};

use super::spec::{Spec, Transport};
use callback::{Callback, Visitor};
use oauth_http::OAuthHttp;
pub use token_store::{Keyring, MemoryOAuthTokenStore, OAuthTokenStore};

/// How long a person may take.
const LOGIN_TIMEOUT: Duration = Duration::from_secs(600);

/// A login that waits for a person.
pub struct Login {
    /// What the person opens in a browser, on this machine.
    pub url: String,
    state: String,
    oauth: OAuthState,
    callback: Callback,
}

impl Login {
    /// Asks the server who may let us in, and makes ourselves known there.
    pub async fn begin_login(spec: &Spec, keyring: &Keyring) -> Result<Self, String> {
        let Transport::Http { client_id, .. } = &spec.transport else {
            return Err("a program has no login: give it what it needs in env".to_owned());
        };
        let callback = Callback::open().await.map_err(|error| format!("no address to come back to: {error}"))?;
        let mut request = AuthorizationRequest::new(callback.redirect_address()).with_client_name("gander");
        if let Some(client_id) = client_id {
            request = request.with_preregistered_client(client_id);
        }
        let manager = login_authorization_manager(spec, keyring).await?;
        let mut oauth = OAuthState::Unauthorized(manager);
        oauth.start_authorization(request).await.map_err(|error| error.to_string())?;
        let url = oauth.get_authorization_url().await.map_err(|error| error.to_string())?;
        let state = login_state_parameter(&url).ok_or("the server names no web page for its login")?;
        Ok(Self { url, state, oauth, callback })
    }

    /// Until the person agreed and the tokens are kept.
    pub async fn wait_until_done(self) -> Result<(), String> {
        let late = || format!("nobody logged in within {} minutes", LOGIN_TIMEOUT.as_secs() / 60);
        tokio::time::timeout(LOGIN_TIMEOUT, self.wait_for_visitor()).await.unwrap_or_else(|_| Err(late()))
    }

    async fn wait_for_visitor(mut self) -> Result<(), String> {
        let visitor = self.callback.wait_for_redirect(&self.state).await.map_err(|error| error.to_string())?;
        let end = self.exchange_code(&visitor).await;
        visitor.answer_browser(&end).await;
        end
    }

    async fn exchange_code(&mut self, visitor: &Visitor) -> Result<(), String> {
        if let Some((_, error)) = visitor.url.query_pairs().find(|(name, _)| name == "error") {
            return Err(format!("the login was refused: {error}"));
        }
        self.oauth.handle_callback_url(visitor.url.as_str()).await.map_err(|error| error.to_string())
    }
}

/// Forgets the tokens for this server.
pub async fn delete_login_tokens(spec: &Spec, keyring: &Keyring) -> Result<(), String> {
    keyring.token_slot(&spec.identity()).delete_tokens().await
}

/// What a login at this server yielded and nobody may see.
pub(super) fn stored_login_tokens(spec: &Spec, keyring: &Keyring) -> Vec<String> {
    match spec.transport {
        Transport::Stdio { .. } => Vec::new(),
        Transport::Http { .. } => keyring.token_slot(&spec.identity()).stored_secrets(),
    }
}

/// Who adds the token to requests and renews it. Without one it adds nothing.
pub(super) async fn login_authorization_from_keyring(
    spec: &Spec,
    keyring: &Keyring,
) -> Result<AuthorizationManager, String> {
    let mut manager = login_authorization_manager(spec, keyring).await?;
    if !keyring.token_slot(&spec.identity()).is_empty().await {
        let known = manager.initialize_from_store().await;
        known.map_err(|error| format!("its login cannot be used now: {error}"))?;
    }
    Ok(manager)
}

async fn login_authorization_manager(spec: &Spec, keyring: &Keyring) -> Result<AuthorizationManager, String> {
    let Transport::Http { url, reach, .. } = &spec.transport else {
        return Err("a program has no address".to_owned());
    };
    let address = Url::parse(url).map_err(|error| format!("not an address: {error}"))?;
    let http = Arc::new(OAuthHttp::new(&address, reach));
    let manager = AuthorizationManager::new_with_oauth_http_client(address, http).await;
    let mut manager = manager.map_err(|error: AuthError| error.to_string())?;
    manager.set_credential_store(keyring.token_slot(&spec.identity()));
    Ok(manager)
}

/// What the browser will bring back; none if people should not be sent there.
fn login_state_parameter(url: &str) -> Option<String> {
    let url = Url::parse(url).ok().filter(|url| matches!(url.scheme(), "http" | "https"))?;
    let (_, state) = url.query_pairs().find(|(name, _)| name == "state")?;
    Some(state.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_are_sent_to_web_pages_alone() {
        assert_eq!(login_state_parameter("https://id.example/authorize?state=x&a=b").as_deref(), Some("x"));
        assert_eq!(login_state_parameter("javascript:alert(1)?state=x"), None);
        assert_eq!(login_state_parameter("file:///etc/passwd?state=x"), None);
    }
}
