//! Tokens and who they stand for. Only hashes are compared and, but for the owner's own token, only hashes are kept.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, SystemTime};

use gander_domain::Principal;
use gander_domain::caller::{Identity, Scope};
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use subtle::{Choice, ConstantTimeEq};
use tokio_util::sync::CancellationToken;

use crate::oidc::OidcProvider;
use crate::paths::{Paths, create_private_file, hex_path_text, remove_path_if_exists, write_private_file};

/// How often the list is looked at while nobody asks.
const REVOCATION_INTERVAL: Duration = Duration::from_secs(1);

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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TokenId(String);

impl TokenId {
    /// The name of this secret, which need not be anybody's token.
    pub fn of_secret(secret: &SecretString) -> Self {
        Self(hex_path_text(&digest(secret.expose_secret())))
    }
}

/// Keys that count at one listener each.
type ListenerKeys = Arc<Mutex<Vec<(SocketAddr, TokenId)>>>;

/// A key counts for the owner's token at its listener until this is dropped.
#[derive(Debug)]
pub struct ListenerKey {
    keys: ListenerKeys,
    listener: SocketAddr,
    key: TokenId,
}

/// Why a token was not made or taken back.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// Names are for programs too.
    #[error("a token name has 1 to 64 letters, digits, `-` or `_`, and is not owner: {0}")]
    BadName(String),
    /// One token per name.
    #[error("a token with this name already exists: {0}")]
    Exists(String),
    /// Nothing to take back.
    #[error("no token with this name: {0}")]
    Unknown(String),
    /// The file.
    #[error("cannot use the token file, {reason}: {path}")]
    File { path: PathBuf, reason: io::Error },
}

/// Knows every token of a data directory, and notices when their list changes.
#[derive(Debug)]
pub struct Tokens {
    owner: [u8; 32],
    /// A second one of the owner's own choice.
    chosen: Option<[u8; 32]>,
    keys: ListenerKeys,
    list: PathBuf,
    given: Mutex<TokenList>,
    /// Whose tokens count beside these.
    provider: Option<Arc<OidcProvider>>,
}

#[derive(Debug, Default)]
struct TokenList {
    seen: Option<(SystemTime, u64)>,
    grants: Vec<GivenToken>,
}

/// A token that counts now.
#[derive(Debug)]
struct GivenToken {
    hash: [u8; 32],
    identity: Identity,
    /// Cancelled when it counts no longer, or for less.
    revoked: CancellationToken,
}

impl Tokens {
    /// Opens the tokens of a data directory; makes the owner's at the first start.
    pub fn open(paths: &Paths) -> Result<Self, TokenError> {
        let owner = owner_token(paths)?;
        Ok(Self {
            owner: digest(owner.expose_secret()),
            chosen: None,
            keys: ListenerKeys::default(),
            list: paths.tokens_file(),
            given: Mutex::default(),
            provider: None,
        })
    }

    /// Takes tokens of this identity provider too.
    #[must_use]
    pub fn with_provider(mut self, provider: Option<OidcProvider>) -> Self {
        self.provider = provider.map(Arc::new);
        self
    }

    /// The identity provider whose tokens count, if there is one.
    pub fn provider(&self) -> Option<&Arc<OidcProvider>> {
        self.provider.as_ref()
    }

    /// Takes one more token for the owner's.
    #[must_use]
    pub fn with_chosen_token(mut self, chosen: Option<&SecretString>) -> Self {
        self.chosen = chosen.map(|chosen| digest(chosen.expose_secret()));
        self
    }

    /// Takes this key for the owner's at one listener, as processes do that were started with a key of their own.
    pub fn accept_at(&self, listener: SocketAddr, key: TokenId) -> ListenerKey {
        lock_token_keys(&self.keys).push((listener, key.clone()));
        ListenerKey { keys: Arc::clone(&self.keys), listener, key }
    }

    /// A key for proving one thing, that only this data directory has.
    pub fn secret_for(&self, purpose: &str) -> [u8; 32] {
        Sha256::new().chain_update(self.owner).chain_update(b" for ").chain_update(purpose).finalize().into()
    }

    /// The owner's token, by name.
    pub fn owner_id(&self) -> TokenId {
        TokenId(hex_path_text(&self.owner))
    }

    /// The name of a token, if it is one at this end of a connection.
    pub fn id_of(&self, token: &str, local: SocketAddr) -> Option<TokenId> {
        self.identify_at(token, local).map(|_| TokenId(hex_path_text(&digest(token))))
    }

    /// Who this token stands for at this end of a connection, where a key of the listener's own counts too; and what is
    /// cancelled when the token is taken back or changed.
    pub fn identify_at(&self, token: &str, local: SocketAddr) -> Option<(Identity, Option<CancellationToken>)> {
        let presented = digest(token);
        let found = self.is_key_of_listener(&presented, local);
        let other = self.identify_revocable(&presented);
        if found.into() { Some((Identity::owner(), None)) } else { other }
    }

    fn is_key_of_listener(&self, presented: &[u8; 32], local: SocketAddr) -> Choice {
        let (keys, mut found) = (lock_token_keys(&self.keys), Choice::from(0));
        // Most listeners have no key of their own, and every request comes by here.
        if keys.is_empty() {
            return found;
        }
        let presented = hex_path_text(presented);
        for (listener, key) in keys.iter() {
            let is_here = Choice::from(u8::from(serves_token_listener(*listener, local)));
            found |= is_here & key.0.as_bytes().ct_eq(presented.as_bytes());
        }
        found
    }

    /// Who the token of this name stands for, as of now.
    pub fn identity_of(&self, id: &TokenId) -> Option<Identity> {
        if [Some(self.owner), self.chosen].iter().flatten().any(|own| hex_path_text(own) == id.0) {
            return Some(Identity::owner());
        }
        if lock_token_keys(&self.keys).iter().any(|(_, key)| key == id) {
            return Some(Identity::owner());
        }
        let mut given = self.given.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        given.reread_if_changed(&self.list);
        given.grants.iter().find(|given| hex_path_text(&given.hash) == id.0).map(|given| given.identity.clone())
    }

    /// Who this token stands for. Takes as long for a wrong one wherever it is wrong.
    pub fn identify_token(&self, token: &str) -> Option<Identity> {
        self.identify_revocable(&digest(token)).map(|(identity, _)| identity)
    }

    /// The same, and what is cancelled when the token is taken back or changed. The owner's stays as it is: it needs no
    /// look at the list of the others, and whoever is let in knows already that the token was right.
    fn identify_revocable(&self, presented: &[u8; 32]) -> Option<(Identity, Option<CancellationToken>)> {
        let owner: Choice = self.owner.ct_eq(presented) | self.chosen.unwrap_or(self.owner).ct_eq(presented);
        if owner.into() {
            return Some((Identity::owner(), None));
        }
        let mut given = self.given.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        given.reread_if_changed(&self.list);
        let mut found: Option<&GivenToken> = None;
        for given in &given.grants {
            if bool::from(given.hash.ct_eq(presented)) {
                found = Some(given);
            }
        }
        found.map(|given| (given.identity.clone(), Some(given.revoked.clone())))
    }

    /// Ends what was opened with tokens that were taken back, until `stop`: nobody may ask anything meanwhile.
    pub async fn watch_revocations(&self, stop: CancellationToken) {
        let mut every = tokio::time::interval(REVOCATION_INTERVAL);
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                _ = every.tick() => {
                    self.given.lock().unwrap_or_else(std::sync::PoisonError::into_inner).reread_if_changed(&self.list);
                }
            }
        }
    }
}

impl Drop for ListenerKey {
    fn drop(&mut self) {
        let mut keys = lock_token_keys(&self.keys);
        if let Some(place) = keys.iter().position(|(listener, key)| (listener, key) == (&self.listener, &self.key)) {
            keys.remove(place);
        }
    }
}

/// A panic while the lock was held leaves nothing half done here.
fn lock_token_keys(keys: &ListenerKeys) -> MutexGuard<'_, Vec<(SocketAddr, TokenId)>> {
    keys.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// True if a connection with this end came in by this listener.
fn serves_token_listener(listener: SocketAddr, local: SocketAddr) -> bool {
    let (own, end) = (listener.ip().to_canonical(), local.ip().to_canonical());
    listener.port() == local.port() && (own.is_unspecified() || own == end)
}

impl TokenList {
    /// Reads the list again if it is another than last time. One that cannot be read grants nothing.
    fn reread_if_changed(&mut self, list: &Path) {
        let stamp = std::fs::metadata(list).and_then(|file| Ok((file.modified()?, file.len()))).ok();
        if stamp == self.seen {
            return;
        }
        self.seen = stamp;
        let mut before = std::mem::take(&mut self.grants);
        for (hash, identity) in read_token_grants(list).unwrap_or_default().into_iter().filter_map(identity_of) {
            let known = before.iter().position(|given| given.hash == hash && given.identity == identity);
            let revoked = known.map_or_else(CancellationToken::new, |known| before.swap_remove(known).revoked);
            self.grants.push(GivenToken { hash, identity, revoked });
        }
        before.iter().for_each(|given| given.revoked.cancel());
    }
}

/// The owner's token: read, or made with 32 random bytes at the first start.
pub fn owner_token(paths: &Paths) -> Result<SecretString, TokenError> {
    let path = paths.token_file();
    let failed = |reason| TokenError::File { path: path.clone(), reason };
    match std::fs::read_to_string(&path) {
        Ok(text) if !text.trim().is_empty() => return Ok(SecretString::from(text.trim().to_owned())),
        // An empty token would let nobody in.
        Ok(_) => remove_path_if_exists(&path).map_err(failed)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(failed(error)),
    }
    let token = new_token().map_err(failed)?;
    // Of two processes that start at the same time one makes the token, and both use it.
    match create_private_file(&path, format!("{token}\n").as_bytes()) {
        Ok(()) => Ok(SecretString::from(token)),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let made = std::fs::read_to_string(&path).map_err(failed)?;
            Ok(SecretString::from(made.trim().to_owned()))
        }
        Err(error) => Err(failed(error)),
    }
}

/// The tokens given to others.
pub fn list_tokens(paths: &Paths) -> Result<Vec<TokenGrant>, TokenError> {
    read_token_grants(&paths.tokens_file())
}

/// Makes a token for somebody. It is shown this once.
pub fn add_token(
    paths: &Paths,
    name: &str,
    scopes: &[Scope],
    adk_user: Option<String>,
) -> Result<SecretString, TokenError> {
    let fine = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if name.is_empty() || name.len() > 64 || !name.chars().all(fine) || name == Principal::owner().as_str() {
        return Err(TokenError::BadName(name.to_owned()));
    }
    let mut grants = list_tokens(paths)?;
    if grants.iter().any(|grant| grant.name == name) {
        return Err(TokenError::Exists(name.to_owned()));
    }
    let token = new_token().map_err(|reason| TokenError::File { path: paths.tokens_file(), reason })?;
    let scopes = scopes.iter().copied().chain([Scope::Read]).collect();
    grants.push(TokenGrant { name: name.to_owned(), scopes, adk_user, sha256: hex_path_text(&digest(&token)) });
    write_token_grants(&paths.tokens_file(), &grants)?;
    Ok(SecretString::from(token))
}

/// Takes a token back. It stops working at once.
pub fn revoke_token(paths: &Paths, name: &str) -> Result<(), TokenError> {
    let mut grants = list_tokens(paths)?;
    let before = grants.len();
    grants.retain(|grant| grant.name != name);
    if grants.len() == before {
        return Err(TokenError::Unknown(name.to_owned()));
    }
    write_token_grants(&paths.tokens_file(), &grants)
}

pub(crate) fn digest(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

fn new_token() -> io::Result<String> {
    random_token_secret("gander_")
}

/// 32 random bytes as text, behind a word that says what they are.
pub(crate) fn random_token_secret(prefix: &str) -> io::Result<String> {
    let mut random = [0u8; 32];
    File::open("/dev/urandom")?.read_exact(&mut random)?;
    Ok(format!("{prefix}{}", hex_path_text(&random)))
}

fn identity_of(grant: TokenGrant) -> Option<([u8; 32], Identity)> {
    let mut hash = [0u8; 32];
    if grant.sha256.len() != 64 {
        return None;
    }
    for (byte, digits) in hash.iter_mut().zip(grant.sha256.as_bytes().chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    }
    let TokenGrant { name, scopes, adk_user, .. } = grant;
    Some((hash, Identity { principal: Principal::named(name), scopes, adk_user, roots: None }))
}

fn read_token_grants(path: &Path) -> Result<Vec<TokenGrant>, TokenError> {
    let failed = |reason| TokenError::File { path: path.to_owned(), reason };
    match std::fs::read(path) {
        Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| failed(io::Error::other(error))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(failed(error)),
    }
}

fn write_token_grants(path: &Path, grants: &[TokenGrant]) -> Result<(), TokenError> {
    let text = serde_json::to_vec_pretty(grants).expect("grants are plain data");
    write_private_file(path, &text).map_err(|reason| TokenError::File { path: path.to_owned(), reason })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::os::unix::fs::MetadataExt;

    use super::*;

    fn paths(root: &tempfile::TempDir) -> Paths {
        let paths = Paths::new(root.path().join("data"), None);
        paths.create_folders().unwrap();
        paths
    }

    #[test]
    fn the_owners_token_is_made_once_of_32_random_bytes_for_its_owner_alone() {
        let root = tempfile::tempdir().unwrap();
        let paths = paths(&root);
        let token = owner_token(&paths).unwrap();
        assert_eq!(token.expose_secret().len(), "gander_".len() + 64);
        assert_eq!(owner_token(&paths).unwrap().expose_secret(), token.expose_secret());
        assert_eq!(std::fs::metadata(paths.token_file()).unwrap().mode() & 0o777, 0o600);
        assert_eq!(std::fs::metadata(paths.data_directory()).unwrap().mode() & 0o777, 0o700);
        let other = tempfile::tempdir().unwrap();
        assert_ne!(owner_token(&self::paths(&other)).unwrap().expose_secret(), token.expose_secret());
    }

    #[test]
    fn only_the_whole_token_is_the_owner() {
        let root = tempfile::tempdir().unwrap();
        let paths = paths(&root);
        let token = owner_token(&paths).unwrap().expose_secret().to_owned();
        let tokens = Tokens::open(&paths).unwrap();
        assert_eq!(tokens.identify_token(&token), Some(Identity::owner()));
        for wrong in ["", &token[1..], &token[..token.len() - 1], &format!("{token}0"), &token.to_uppercase()] {
            assert_eq!(tokens.identify_token(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_listeners_key_counts_there_alone_and_as_long_as_it_is_held() {
        let root = tempfile::tempdir().unwrap();
        let tokens = Tokens::open(&paths(&root)).unwrap();
        let (here, elsewhere) = (SocketAddr::from(([127, 0, 0, 1], 7)), SocketAddr::from(([127, 0, 0, 1], 8)));
        let everywhere = SocketAddr::from(([0, 0, 0, 0], 9));
        let key = |text: &str| TokenId::of_secret(&SecretString::from(text.to_owned()));
        let (first, _second) = (tokens.accept_at(here, key("k")), tokens.accept_at(everywhere, key("k2")));
        let known = |token: &str, at: SocketAddr| tokens.identify_at(token, at).is_some();
        assert_eq!((known("k", here), known("k", elsewhere), known("k2", here)), (true, false, false));
        assert!(known("k2", SocketAddr::from(([10, 0, 0, 1], 9))));
        assert_eq!(tokens.identity_of(&key("k")), Some(Identity::owner()));
        drop(first);
        assert_eq!((known("k", here), tokens.identity_of(&key("k"))), (false, None));
    }

    #[test]
    fn others_have_what_they_were_given_until_it_is_taken_back() {
        let root = tempfile::tempdir().unwrap();
        let paths = paths(&root);
        let tokens = Tokens::open(&paths).unwrap();
        let token = add_token(&paths, "phone", &[Scope::Approve], Some("ann".into())).unwrap();
        let identity = Identity {
            principal: Principal::named("phone"),
            scopes: [Scope::Read, Scope::Approve].into(),
            adk_user: Some("ann".into()),
            roots: None,
        };
        assert_eq!(tokens.identify_token(token.expose_secret()), Some(identity));
        assert!(!std::fs::read_to_string(paths.tokens_file()).unwrap().contains(token.expose_secret()));
        revoke_token(&paths, "phone").unwrap();
        assert_eq!(tokens.identify_token(token.expose_secret()), None);
    }

    #[test]
    fn names_are_checked_and_unique() {
        let root = tempfile::tempdir().unwrap();
        let paths = paths(&root);
        for bad in ["", "owner", "a b", "../x"] {
            assert!(matches!(add_token(&paths, bad, &[], None), Err(TokenError::BadName(_))), "{bad}");
        }
        add_token(&paths, "a", &[], None).unwrap();
        assert!(matches!(add_token(&paths, "a", &[], None), Err(TokenError::Exists(_))));
        assert!(matches!(revoke_token(&paths, "b"), Err(TokenError::Unknown(_))));
    }
}
