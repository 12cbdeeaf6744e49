//! A small issuer of our own with real keys: discovery, keys that can be changed, tokens of every kind, device login.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, Router};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _, RSA_PKCS1_SHA256, RsaKeyPair,
    RsaPublicKeyComponents,
};
use serde_json::{Value, json};
use tokio::net::TcpListener;

pub const AUDIENCE: &str = "https://agents.example";

/// A key pair that signs tokens.
pub enum TestKey {
    Rsa(RsaKeyPair),
    Curve(EcdsaKeyPair),
    Edwards(Ed25519KeyPair),
}

/// What the issuer has and has seen.
#[derive(Default)]
pub struct IssuerState {
    pub keys: Vec<Value>,
    pub key_fetches: usize,
    /// Answers to polls of a device login, first to last.
    pub polls: Vec<(u16, Value)>,
    /// What came in as forms: path and body.
    pub forms: Vec<(String, BTreeMap<String, String>)>,
}

#[derive(Clone)]
pub struct TestIssuer {
    pub address: SocketAddr,
    pub state: Arc<Mutex<IssuerState>>,
}

impl TestIssuer {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let issuer = Self { address: listener.local_addr().unwrap(), state: Arc::default() };
        let router = Router::new()
            .route("/.well-known/openid-configuration", get(discovery))
            .route("/keys", get(key_set))
            .route("/device", post(device))
            .route("/token", post(token))
            .with_state(issuer.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        issuer
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn publish(&self, keys: &[(&str, &TestKey)]) {
        self.state.lock().unwrap().keys = keys.iter().map(|(kid, key)| key.jwk(kid)).collect();
    }

    pub fn key_fetches(&self) -> usize {
        self.state.lock().unwrap().key_fetches
    }

    /// The claims of a good token.
    pub fn claims(&self, name: &str) -> Value {
        let now = unix_seconds();
        json!({ "iss": self.url(), "aud": AUDIENCE, "sub": name, "iat": now, "exp": now + 600, "scope": "gander:prompt" })
    }

    /// A good token with some claims changed.
    pub fn token(&self, (kid, key): (&str, &TestKey), name: &str, changed: Value) -> String {
        let mut claims = self.claims(name);
        for (claim, value) in changed.as_object().unwrap() {
            claims[claim] = value.clone();
        }
        key.sign(&json!({ "alg": key.algorithm(), "kid": kid, "typ": "at+jwt" }), &claims)
    }
}

pub fn unix_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

pub fn encode(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// The part of a token that is signed.
pub fn signed_part(header: &Value, claims: &Value) -> String {
    format!("{}.{}", encode(header.to_string()), encode(claims.to_string()))
}

impl TestKey {
    pub fn rsa() -> Self {
        Self::Rsa(RsaKeyPair::from_pkcs8(include_bytes!("rsa-test-key.der")).unwrap())
    }

    pub fn curve() -> Self {
        let (random, kind) = (SystemRandom::new(), &ECDSA_P256_SHA256_FIXED_SIGNING);
        let made = EcdsaKeyPair::generate_pkcs8(kind, &random).unwrap();
        Self::Curve(EcdsaKeyPair::from_pkcs8(kind, made.as_ref(), &random).unwrap())
    }

    pub fn edwards() -> Self {
        let made = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        Self::Edwards(Ed25519KeyPair::from_pkcs8(made.as_ref()).unwrap())
    }

    pub fn algorithm(&self) -> &'static str {
        match self {
            Self::Rsa(_) => "RS256",
            Self::Curve(_) => "ES256",
            Self::Edwards(_) => "EdDSA",
        }
    }

    pub fn jwk(&self, kid: &str) -> Value {
        let (public, mut jwk) = match self {
            Self::Rsa(key) => {
                let RsaPublicKeyComponents { n, e } = RsaPublicKeyComponents::<Vec<u8>>::from(key.public());
                (Vec::new(), json!({ "kty": "RSA", "n": encode(n), "e": encode(e) }))
            }
            Self::Curve(key) => (key.public_key().as_ref().to_vec(), json!({ "kty": "EC", "crv": "P-256" })),
            Self::Edwards(key) => (key.public_key().as_ref().to_vec(), json!({ "kty": "OKP", "crv": "Ed25519" })),
        };
        match self {
            Self::Rsa(_) => {}
            Self::Curve(_) => {
                jwk["x"] = json!(encode(&public[1..33]));
                jwk["y"] = json!(encode(&public[33..]));
            }
            Self::Edwards(_) => jwk["x"] = json!(encode(&public)),
        }
        jwk["kid"] = json!(kid);
        jwk["use"] = json!("sig");
        jwk["alg"] = json!(self.algorithm());
        jwk
    }

    /// A token with exactly this header and these claims.
    pub fn sign(&self, header: &Value, claims: &Value) -> String {
        let (signed, random) = (signed_part(header, claims), SystemRandom::new());
        let signature = match self {
            Self::Rsa(key) => {
                let mut signature = vec![0; key.public().modulus_len()];
                key.sign(&RSA_PKCS1_SHA256, &random, signed.as_bytes(), &mut signature).unwrap();
                signature
            }
            Self::Curve(key) => key.sign(&random, signed.as_bytes()).unwrap().as_ref().to_vec(),
            Self::Edwards(key) => key.sign(signed.as_bytes()).as_ref().to_vec(),
        };
        format!("{signed}.{}", encode(signature))
    }
}

async fn discovery(State(issuer): State<TestIssuer>) -> Json<Value> {
    let url = issuer.url();
    Json(json!({
        "issuer": url,
        "jwks_uri": format!("{url}/keys"),
        "device_authorization_endpoint": format!("{url}/device"),
        "token_endpoint": format!("{url}/token"),
    }))
}

async fn key_set(State(issuer): State<TestIssuer>) -> Json<Value> {
    let mut state = issuer.state.lock().unwrap();
    state.key_fetches += 1;
    Json(json!({ "keys": state.keys }))
}

async fn device(State(issuer): State<TestIssuer>, body: String) -> Json<Value> {
    issuer.keep_form("/device", &body);
    Json(json!({
        "device_code": "device-code",
        "user_code": "WDJB-MJHT",
        "verification_uri": format!("{}/enter", issuer.url()),
        "expires_in": 300,
        "interval": 0,
    }))
}

async fn token(State(issuer): State<TestIssuer>, body: String) -> (StatusCode, Json<Value>) {
    issuer.keep_form("/token", &body);
    let mut state = issuer.state.lock().unwrap();
    let (status, answer) =
        if state.polls.is_empty() { (400, json!({"error": "invalid_grant"})) } else { state.polls.remove(0) };
    (StatusCode::from_u16(status).unwrap(), Json(answer))
}

impl TestIssuer {
    fn keep_form(&self, path: &str, body: &str) {
        let url = reqwest::Url::parse(&format!("http://form/?{body}")).unwrap();
        let fields = url.query_pairs().map(|(name, value)| (name.into_owned(), value.into_owned())).collect();
        self.state.lock().unwrap().forms.push((path.to_owned(), fields));
    }
}
