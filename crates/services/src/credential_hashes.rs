//! What is kept of tokens, tickets and cookies: hashes, never these themselves.

use std::collections::BTreeSet;

use gander_domain::caller::Scope;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::paths::hex_path_text;

/// Tickets of one token that nobody used yet; its oldest makes room. Nobody pushes out somebody else's.
pub(crate) const MAX_TICKETS: usize = 64;
/// Browsers that are in with one token; its oldest makes room.
pub(crate) const MAX_COOKIES: usize = 64;

/// A token that was given to somebody: its hash, never the token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenGrant {
    pub name: String,
    /// What for.
    pub scopes: BTreeSet<Scope>,
    /// Which ADK user only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adk_user: Option<String>,
    /// SHA-256 of the token, in hexadecimal digits.
    pub sha256: String,
}

/// Names a token without being one: the hash of it, in hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TokenId(pub(crate) String);

impl TokenId {
    /// The name of this secret, which need not be anybody's token.
    pub fn of_secret(secret: &SecretString) -> Self {
        Self(hex_path_text(&digest(secret.expose_secret())))
    }
}

/// A browser that is in.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct BrowserCookie {
    /// SHA-256 of the cookie, in hexadecimal digits.
    pub(crate) sha256: String,
    /// The same of the page key. A cookie of a release that had none is over.
    #[serde(default)]
    pub(crate) page_key_sha256: String,
    /// The token that it stands for.
    pub(crate) token: TokenId,
    /// Seconds since 1970.
    pub(crate) expires: u64,
}

pub(crate) fn digest(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

/// Makes room for one more of those that count.
pub(crate) fn remove_oldest_access<T>(all: &mut Vec<T>, most: usize, counts: impl Fn(&T) -> bool) {
    if all.iter().filter(|each| counts(each)).count() >= most
        && let Some(oldest) = all.iter().position(counts)
    {
        all.remove(oldest);
    }
}
