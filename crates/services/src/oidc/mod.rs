//! OpenID Connect: bearer tokens of an identity provider stand for principals beside the tokens of this server.
//!
//! A token is a JWT that the issuer signed for this server's audience. It is checked with the issuer's public keys and
//! becomes an [`Identity`]; it is neither stored nor sent on to anybody.

mod claims;
mod device_login;
mod http;
mod jwt;
mod keys;
mod settings;
mod stored_logins;

#[cfg(test)]
mod hanging_issuer_tests;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use gander_domain::caller::Identity;
use jsonwebtoken::jwk::Jwk;
use sha2::{Digest, Sha256};
use tokio_util::sync::CancellationToken;

pub use device_login::{DeviceLogin, LoginError, LoginTokens, ServerLogin};
pub use http::{OidcHttp, OidcHttpError};
pub use keys::{IssuerStatus, probe_oidc_issuer};
pub(crate) use settings::is_loopback_url;
pub use settings::{OidcSection, OidcSettings, SignatureAlgorithm};
pub use stored_logins::{StoredLoginError, StoredLogins};

use keys::SigningKeys;

/// Tokens that are remembered as checked; the one that ends first makes room, and what it opened ends.
const MAX_KNOWN_TOKENS: usize = 10_000;
/// How often it is looked which tokens have ended.
const EXPIRY_INTERVAL: Duration = Duration::from_secs(1);

/// Why a token of the identity provider is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OidcError {
    #[error("it is no signed JSON Web Token")]
    Malformed,
    #[error("its algorithm is not allowed: {0}")]
    Algorithm(String),
    #[error("it is of another type than an access token: {0}")]
    Type(String),
    #[error("it is signed with a key that the issuer does not publish")]
    UnknownKey,
    #[error("its signature is wrong")]
    Signature,
    #[error("it has expired")]
    Expired,
    #[error("it is not valid yet")]
    NotYetValid,
    #[error("it is meant for another audience")]
    Audience,
    #[error("it comes from another issuer")]
    Issuer,
    #[error("it lacks a claim, or the claim is of the wrong type: {0}")]
    Claim(String),
    /// The only one that is nobody's fault who calls: it is worth a second try.
    #[error("the keys of the identity provider cannot be fetched")]
    Unavailable,
}

/// The identity provider whose tokens count here.
pub struct OidcProvider {
    settings: OidcSettings,
    keys: SigningKeys,
    known: Mutex<HashMap<[u8; 32], KnownToken>>,
}

/// A token that was checked and has not ended.
#[derive(Clone, Debug)]
struct KnownToken {
    identity: Identity,
    /// The key that signed it: without the key it does not count any more.
    key: Jwk,
    /// Seconds since 1970.
    until: u64,
    /// Cancelled when it has ended.
    ended: CancellationToken,
}

impl OidcProvider {
    /// The provider of these settings. Nothing is fetched before the first token comes.
    pub fn new(settings: OidcSettings) -> Result<Self, OidcHttpError> {
        let keys = SigningKeys::new(OidcHttp::new(&settings.issuer)?, settings.issuer.clone());
        Ok(Self { settings, keys, known: Mutex::default() })
    }

    /// What it was configured with.
    pub fn settings(&self) -> &OidcSettings {
        &self.settings
    }

    /// True if a token may be one of the provider's: three parts, which none of our own has.
    pub fn is_jwt(token: &str) -> bool {
        token.split('.').count() == 3
    }

    /// Who a token stands for, and what is cancelled when it ends.
    pub async fn identify(&self, token: &str, now: SystemTime) -> Result<(Identity, CancellationToken), OidcError> {
        let hash: [u8; 32] = Sha256::digest(token.as_bytes()).into();
        if let Some(known) = self.known_token(&hash, oidc_unix_seconds(now)) {
            return Ok((known.identity, known.ended));
        }
        let header = jwt::read_jwt_header(token, &self.settings)?;
        let key = self.keys.find(&header).await?;
        let claims = jwt::verify_jwt(token, &header, &key, &self.settings)?;
        let identity = claims::identity_from_claims(&claims, &self.settings)?;
        let skew = self.settings.clock_skew.as_secs();
        let until = claims["exp"].as_f64().map_or(0, |seconds| seconds as u64).saturating_add(skew);
        // In the second in which it ends it counts no longer (RFC 7519, 4.1.4).
        if until <= oidc_unix_seconds(now) {
            return Err(OidcError::Expired);
        }
        Ok(self.remember(hash, KnownToken { identity, key, until, ended: CancellationToken::new() }))
    }

    fn known_token(&self, hash: &[u8; 32], now: u64) -> Option<KnownToken> {
        let found = self.lock_known().get(hash).cloned()?;
        (found.until > now && self.keys.publishes(&found.key)).then_some(found)
    }

    /// Two requests with one token that are checked at the same time share what ends it.
    fn remember(&self, hash: [u8; 32], token: KnownToken) -> (Identity, CancellationToken) {
        let mut known = self.lock_known();
        if let Some(there) = known.get(&hash).filter(|there| !there.ended.is_cancelled()) {
            return (there.identity.clone(), there.ended.clone());
        }
        if known.len() >= MAX_KNOWN_TOKENS
            && let Some(first) = known.iter().min_by_key(|(_, token)| token.until).map(|(hash, _)| *hash)
            && let Some(removed) = known.remove(&first)
        {
            removed.ended.cancel();
        }
        let answer = (token.identity.clone(), token.ended.clone());
        known.insert(hash, token);
        answer
    }

    /// Ends what was opened with tokens that have ended, or whose key the issuer has taken back, until `stop`.
    ///
    /// An issuer that does not answer holds up no end.
    pub async fn watch_expiry(self: Arc<Self>, stop: CancellationToken) {
        let end_tokens = async {
            let mut every = tokio::time::interval(EXPIRY_INTERVAL);
            loop {
                every.tick().await;
                self.end_expired(oidc_unix_seconds(SystemTime::now()));
            }
        };
        let refresh_keys = async {
            loop {
                tokio::time::sleep(EXPIRY_INTERVAL).await;
                self.keys.refresh_if_old().await;
            }
        };
        tokio::select! {
            () = stop.cancelled() => {}
            () = end_tokens => {}
            () = refresh_keys => {}
        }
    }

    fn end_expired(&self, now: u64) {
        self.lock_known().retain(|_, token| {
            let counts = token.until > now && self.keys.publishes(&token.key);
            if !counts {
                token.ended.cancel();
            }
            counts
        });
    }

    /// A panic while the lock was held leaves nothing half done here.
    fn lock_known(&self) -> MutexGuard<'_, HashMap<[u8; 32], KnownToken>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for OidcProvider {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OidcProvider").field("issuer", &self.settings.issuer).finish_non_exhaustive()
    }
}

fn oidc_unix_seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
