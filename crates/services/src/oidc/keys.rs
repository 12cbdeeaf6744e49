//! The issuer's public keys: found by discovery, cached, and fetched again when they are old or a key is unknown.
//!
//! Whoever sends made-up tokens must not make this server send requests: there are few fetches in a minute, whatever
//! comes in, and all who wait for one share its result.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, PublicKeyUse};
use serde_json::Value;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::OidcError;
use super::http::{OidcHttp, OidcHttpError};
use super::jwt::JwtHeader;
use super::settings::SignatureAlgorithm;

/// How old keys may be before they are fetched again: what a reachable issuer took back counts no longer than this.
const KEYS_TTL: Duration = Duration::from_secs(10 * 60);
/// How long keys count while the issuer cannot be reached.
const STALE_KEYS_TTL: Duration = Duration::from_secs(24 * 60 * 60);
/// So many fetches in a minute and no more, whatever comes in: keys that were changed twice are found at once, and a
/// flood of unknown ones costs the issuer nothing.
const MAX_FETCHES_PER_MINUTE: usize = 6;
/// More keys than this are not looked at.
const MAX_KEYS: usize = 64;

/// What a look at an issuer has shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IssuerStatus {
    /// Keys that can check a signature.
    pub keys: usize,
    /// It lets programs without a browser log in.
    pub device_login: bool,
}

/// The keys of one issuer.
pub(super) struct SigningKeys {
    http: OidcHttp,
    issuer: String,
    state: Mutex<KeysState>,
    /// One fetch at a time. It is not held while keys are looked up.
    fetching: Semaphore,
}

#[derive(Default)]
struct KeysState {
    keys: Vec<Jwk>,
    fetched_at: Option<Instant>,
    /// When the fetches of the last minute began, whether they worked or not.
    tried_at: VecDeque<Instant>,
    /// How many came to an end.
    fetches: u64,
}

impl SigningKeys {
    pub(super) fn new(http: OidcHttp, issuer: String) -> Self {
        Self { http, issuer, state: Mutex::default(), fetching: Semaphore::new(1) }
    }

    /// The key that signed a token with this header.
    ///
    /// Known keys count while the issuer does not answer, and nobody waits for it then: they are kept fresh apart from
    /// requests.
    pub(super) async fn find(&self, header: &JwtHeader) -> Result<Jwk, OidcError> {
        if let Ok(Some(key)) = self.lookup(header) {
            return Ok(key);
        }
        // The first token, or the issuer may have changed its keys.
        self.refresh().await;
        self.lookup(header)?.ok_or(OidcError::UnknownKey)
    }

    /// True if the keys were had and are due to be fetched again.
    fn are_old(&self) -> bool {
        self.lock_state().fetched_at.is_some_and(|at| at.elapsed() >= KEYS_TTL)
    }

    /// True if the issuer still has this key.
    pub(super) fn publishes(&self, key: &Jwk) -> bool {
        let state = self.lock_state();
        let is_usable = state.fetched_at.is_some_and(|at| at.elapsed() < STALE_KEYS_TTL);
        is_usable && state.keys.contains(key)
    }

    /// Nothing is fetched before the first token came.
    pub(super) async fn refresh_if_old(&self) {
        if self.are_old() {
            self.refresh().await;
        }
    }

    /// Fetches the keys, unless that was done too often. Whoever comes meanwhile waits and shares the result.
    async fn refresh(&self) {
        let seen = self.lock_state().fetches;
        let Ok(_permit) = self.fetching.acquire().await else { return };
        if !self.lock_state().begin_fetch(seen, Instant::now()) {
            return;
        }
        let fetched = fetch_signing_keys(&self.http, &self.issuer).await;
        let mut state = self.lock_state();
        // Counted at its end: whoever came meanwhile shares it.
        state.fetches += 1;
        match fetched {
            Ok((keys, _)) => {
                state.keys = keys;
                state.fetched_at = Some(Instant::now());
            }
            Err(error) => tracing::warn!(%error, "the keys of the identity provider cannot be fetched"),
        }
    }

    /// An issuer whose keys were never had, or long ago, cannot vouch for anybody.
    fn lookup(&self, header: &JwtHeader) -> Result<Option<Jwk>, OidcError> {
        let state = self.lock_state();
        if state.fetched_at.is_none_or(|at| at.elapsed() >= STALE_KEYS_TTL) {
            return Err(OidcError::Unavailable);
        }
        let fits = |key: &&Jwk| key_fits_algorithm(key, header.algorithm);
        let mut fitting = state.keys.iter().filter(fits);
        Ok(match &header.kid {
            Some(kid) => fitting.find(|key| key.common.key_id.as_ref() == Some(kid)).cloned(),
            // Without a name only one key can be meant.
            None => match (fitting.next(), fitting.next()) {
                (Some(only), None) => Some(only.clone()),
                (Some(_) | None, _) => None,
            },
        })
    }

    /// As if the issuer had just given these.
    #[cfg(test)]
    pub(super) fn put_fetched(&self, keys: Vec<Jwk>) {
        let mut state = self.lock_state();
        (state.keys, state.fetched_at) = (keys, Some(Instant::now()));
    }

    /// Fetches that were begun within the last minute of them.
    #[cfg(test)]
    pub(super) fn fetches_begun(&self) -> usize {
        self.lock_state().tried_at.len()
    }

    fn lock_state(&self) -> MutexGuard<'_, KeysState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl KeysState {
    /// True if this caller fetches: nobody did since it looked, and it is not too often.
    fn begin_fetch(&mut self, seen: u64, now: Instant) -> bool {
        self.tried_at.retain(|at| now.duration_since(*at) < Duration::from_secs(60));
        if self.fetches != seen || self.tried_at.len() >= MAX_FETCHES_PER_MINUTE {
            return false;
        }
        self.tried_at.push_back(now);
        true
    }
}

/// Looks whether an issuer answers and has keys.
pub async fn probe_oidc_issuer(issuer: &str) -> Result<IssuerStatus, OidcHttpError> {
    let (keys, discovered) = fetch_signing_keys(&OidcHttp::new(issuer)?, issuer).await?;
    let device_login = discovered["device_authorization_endpoint"].is_string();
    Ok(IssuerStatus { keys: keys.len(), device_login })
}

/// The configuration that an issuer publishes about itself.
pub(super) async fn discover_oidc_issuer(http: &OidcHttp, issuer: &str) -> Result<Value, OidcHttpError> {
    let url = format!("{}/.well-known/openid-configuration", issuer.trim_end_matches('/'));
    let found = http.get_json(&url).await?;
    // One who speaks for another issuer is not the one that the owner chose.
    if found["issuer"].as_str() != Some(issuer) {
        let told = found["issuer"].as_str().unwrap_or("none");
        let reason = format!("it calls itself {told:?} and not {issuer:?}");
        return Err(OidcHttpError::Unreachable { url, reason });
    }
    Ok(found)
}

async fn fetch_signing_keys(http: &OidcHttp, issuer: &str) -> Result<(Vec<Jwk>, Value), OidcHttpError> {
    let discovered = discover_oidc_issuer(http, issuer).await?;
    let url = discovered["jwks_uri"].as_str().unwrap_or_default();
    let found = http.get_json(url).await?;
    let listed = found["keys"].as_array().ok_or_else(|| OidcHttpError::NotJson { url: url.to_owned() })?;
    // A key of a kind that is not known here is left out; the others count.
    let keys = listed.iter().take(MAX_KEYS).filter_map(|key| serde_json::from_value::<Jwk>(key.clone()).ok());
    let keys = keys.filter(|key| key.common.public_key_use != Some(PublicKeyUse::Encryption)).collect();
    Ok((keys, discovered))
}

/// True if a key can have made a signature of this kind: its type, and the algorithm that it is meant for, if it says so.
/// A secret (`oct`) never can.
fn key_fits_algorithm(key: &Jwk, algorithm: SignatureAlgorithm) -> bool {
    // Not our enum, and one that grows: RSA has no curve, and nothing else can sign.
    #[allow(clippy::wildcard_enum_match_arm)]
    let curve = match &key.algorithm {
        AlgorithmParameters::EllipticCurve(key) => Some(&key.curve),
        AlgorithmParameters::OctetKeyPair(key) => Some(&key.curve),
        _ => None,
    };
    let is_kind = match algorithm {
        SignatureAlgorithm::ES256 => curve == Some(&EllipticCurve::P256),
        SignatureAlgorithm::ES384 => curve == Some(&EllipticCurve::P384),
        SignatureAlgorithm::EdDSA => curve == Some(&EllipticCurve::Ed25519),
        SignatureAlgorithm::RS256
        | SignatureAlgorithm::RS384
        | SignatureAlgorithm::RS512
        | SignatureAlgorithm::PS256
        | SignatureAlgorithm::PS384
        | SignatureAlgorithm::PS512 => matches!(key.algorithm, AlgorithmParameters::RSA(_)),
    };
    let named = key.common.key_algorithm.as_ref().and_then(|named| serde_json::to_value(named).ok());
    let meant = named.as_ref().and_then(Value::as_str).is_none_or(|named| named == algorithm.name());
    is_kind && meant
}
