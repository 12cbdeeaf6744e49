//! An issuer that takes connections and does not answer. Time is the paused clock's: it passes only while somebody waits.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use gander_domain::caller::Identity;
use serde_json::json;
use sha2::{Digest, Sha256};
use tokio::net::TcpListener;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::jwt::JwtHeader;
use super::keys::SigningKeys;
use super::settings::SignatureAlgorithm;
use super::{Jwk, KnownToken, OidcError, OidcHttp, OidcProvider, OidcSettings, oidc_unix_seconds};

const KEYS_AGE: Duration = Duration::from_secs(11 * 60);

fn signing_key(kid: &str) -> Jwk {
    serde_json::from_value(json!({
        "kty": "EC", "crv": "P-256", "kid": kid, "alg": "ES256",
        "x": "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU", "y": "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0",
    }))
    .unwrap()
}

fn header(kid: &str) -> JwtHeader {
    JwtHeader { algorithm: SignatureAlgorithm::ES256, kid: Some(kid.to_owned()) }
}

/// Connections stay in its queue, unanswered.
async fn hanging_issuer() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let issuer = format!("http://{}", listener.local_addr().unwrap());
    (listener, issuer)
}

#[tokio::test(start_paused = true)]
async fn known_keys_count_without_a_wait_while_the_issuer_hangs() {
    let (_listener, issuer) = hanging_issuer().await;
    let keys = SigningKeys::new(OidcHttp::new(&issuer).unwrap(), issuer);
    keys.put_fetched(vec![signing_key("one")]);
    tokio::time::advance(KEYS_AGE).await;
    let began = Instant::now();
    assert_eq!(keys.find(&header("one")).await, Ok(signing_key("one")));
    assert_eq!(began.elapsed(), Duration::ZERO, "nobody waited for the issuer");
    let (one, two) = (header("two"), header("three"));
    let late = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        keys.find(&two).await
    };
    let both = tokio::join!(keys.find(&one), late);
    assert_eq!(both, (Err(OidcError::UnknownKey), Err(OidcError::UnknownKey)));
    assert_eq!(keys.fetches_begun(), 1, "whoever comes during a fetch shares it");
    tokio::time::advance(Duration::from_secs(24 * 60 * 60)).await;
    assert_eq!(keys.find(&header("one")).await, Err(OidcError::Unavailable), "but not for ever");
}

#[tokio::test(start_paused = true)]
async fn a_token_that_was_checked_counts_without_a_wait_and_ends_in_time_while_the_issuer_hangs() {
    let (_listener, issuer) = hanging_issuer().await;
    let settings = OidcSettings {
        issuer,
        audience: "here".to_owned(),
        algorithms: vec![SignatureAlgorithm::ES256],
        clock_skew: Duration::ZERO,
        principal_claim: "sub".to_owned(),
        owners: Vec::new(),
        scopes_claim: "scope".to_owned(),
        scopes: BTreeMap::new(),
        default_scopes: Vec::new(),
        roots_claim: None,
        client_id: None,
        login_scopes: Vec::new(),
    };
    let provider = Arc::new(OidcProvider::new(settings).unwrap());
    provider.keys.put_fetched(vec![signing_key("one")]);
    let (identity, ended) = (Identity::owner(), CancellationToken::new());
    let now = SystemTime::now();
    let remember = |token: &str, until: u64| {
        let hash: [u8; 32] = Sha256::digest(token.as_bytes()).into();
        let known =
            KnownToken { identity: identity.clone(), key: signing_key("one"), until, ended: ended.child_token() };
        provider.remember(hash, known).1
    };
    let lasting = remember("a.b.lasting", oidc_unix_seconds(now) + 3_600);
    tokio::time::advance(KEYS_AGE).await;
    let began = Instant::now();
    let (found, _) = provider.identify("a.b.lasting", now).await.unwrap();
    assert_eq!((found.principal, began.elapsed()), (identity.principal.clone(), Duration::ZERO));
    let stop = CancellationToken::new();
    let watch = tokio::spawn(Arc::clone(&provider).watch_expiry(stop.clone()));
    // The watch is in the middle of a fetch by then.
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(provider.keys.fetches_begun(), 1);
    let over = remember("a.b.over", oidc_unix_seconds(now) - 1);
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!((over.is_cancelled(), lasting.is_cancelled()), (true, false));
    stop.cancel();
    watch.await.unwrap();
}
