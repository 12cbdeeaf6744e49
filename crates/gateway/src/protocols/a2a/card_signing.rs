//! Signs agent cards: a detached JWS (ES256) over the card's canonical JSON, with a key of this server's own or a given one.

use std::fmt;
use std::path::{Path, PathBuf};

use super::canonical_card::canonical_card;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use gander_services::paths::write_private_file;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::A2aSection;

/// The lines around a key in a PEM file.
const PEM_BEGIN: &str = "-----BEGIN PRIVATE KEY-----";
const PEM_END: &str = "-----END PRIVATE KEY-----";

/// The first byte of a public key that is written whole, and the length of each of its numbers.
const UNCOMPRESSED_POINT: u8 = 4;
const COORDINATE_LEN: usize = 32;

/// Why there is no key to sign with.
#[derive(Debug, thiserror::Error)]
pub enum SignError {
    /// The file cannot be read or made.
    #[error("cannot use the key that signs agent cards, {reason}: {path}")]
    Unusable { path: PathBuf, reason: std::io::Error },
    /// What is in it is something else.
    #[error("not a private key on the curve P-256 in PKCS #8 and PEM: {0}")]
    NoKey(PathBuf),
}

/// Signs agent cards.
pub struct CardSigner {
    pair: EcdsaKeyPair,
    random: SystemRandom,
    id: String,
    public: Value,
}

impl CardSigner {
    /// With the key that the settings name, else the one in the data directory, which is made at first use.
    pub fn load(settings: &A2aSection, data: &Path) -> Result<Option<Self>, SignError> {
        if !settings.sign {
            return Ok(None);
        }
        let own = data.join("a2a-key.pem");
        let path = settings.signing_key.as_ref().map_or(own.clone(), PathBuf::from);
        if path == own && !own.exists() {
            create_signing_key(&own)?;
        }
        Self::read_key(&path).map(Some)
    }

    fn read_key(path: &Path) -> Result<Self, SignError> {
        let no_key = || SignError::NoKey(path.to_owned());
        let text = std::fs::read_to_string(path).map_err(|reason| unusable_signing_key(path, reason))?;
        let (_, rest) = text.split_once(PEM_BEGIN).ok_or_else(no_key)?;
        let (body, _) = rest.split_once(PEM_END).ok_or_else(no_key)?;
        let key = STANDARD.decode(body.split_whitespace().collect::<String>()).map_err(|_| no_key())?;
        let random = SystemRandom::new();
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &key, &random).map_err(|_| no_key())?;
        let Some((&UNCOMPRESSED_POINT, numbers)) = pair.public_key().as_ref().split_first() else {
            return Err(no_key());
        };
        let (x, y) = numbers.split_at_checked(COORDINATE_LEN).ok_or_else(no_key)?;
        // In this order its text is what names a key (RFC 7638).
        let public = json!({ "crv": "P-256", "kty": "EC", "x": signature_base64url(x), "y": signature_base64url(y) });
        let id = signature_base64url(&Sha256::digest(public.to_string()));
        Ok(Self { pair, random, id, public })
    }

    /// The signature of a card, for whoever looks for its key at `keys`. None if the system has no chance left to give.
    pub fn sign_card(&self, card: &Value, keys: &str) -> Option<Value> {
        let head = json!({ "alg": "ES256", "kid": self.id, "typ": "JOSE", "jku": keys }).to_string();
        let protected = signature_base64url(head.as_bytes());
        let signed = format!("{protected}.{}", signature_base64url(canonical_card(card).as_bytes()));
        let signature = self.pair.sign(&self.random, signed.as_bytes()).ok()?;
        Some(json!({ "protected": protected, "signature": signature_base64url(signature.as_ref()) }))
    }

    /// The set of keys that signatures can be checked with (RFC 7517).
    pub fn jwks(&self) -> Value {
        let mut key = self.public.clone();
        key["kid"] = json!(self.id);
        key["alg"] = json!("ES256");
        key["use"] = json!("sig");
        json!({ "keys": [key] })
    }
}

impl fmt::Debug for CardSigner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signer").field("id", &self.id).finish_non_exhaustive()
    }
}

fn create_signing_key(path: &Path) -> Result<(), SignError> {
    let key = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new())
        .map_err(|_| unusable_signing_key(path, std::io::Error::other("the system gives no random numbers")))?;
    let text = format!("{PEM_BEGIN}\n{}\n{PEM_END}\n", STANDARD.encode(key.as_ref()));
    write_private_file(path, text.as_bytes()).map_err(|reason| unusable_signing_key(path, reason))
}

fn unusable_signing_key(path: &Path, reason: std::io::Error) -> SignError {
    SignError::Unusable { path: path.to_owned(), reason }
}

fn signature_base64url(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}
