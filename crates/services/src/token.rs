//! Tokens and who they stand for. Only hashes are compared and, but for the owner's own token, only hashes are kept.

use std::fs::File;
use std::io::{self, Read};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, SystemTime};

use gander_domain::caller::{Identity, Scope};
use gander_domain::{Principal, Seq};
use gander_store::StoreError;
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};
use subtle::{Choice, ConstantTimeEq};
use tokio_util::sync::CancellationToken;

use crate::credential_hashes::digest;
pub use crate::credential_hashes::{TokenGrant, TokenId};
use crate::oidc::OidcProvider;
use crate::paths::{Paths, create_private_file, hex_path_text, remove_path_if_exists, write_private_file};
use crate::server_vault::ClusterKeys;
use crate::shared_credentials::SharedCredentials;

/// How often the list is looked at while nobody asks.
const REVOCATION_INTERVAL: Duration = Duration::from_secs(1);

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
    /// The system has no random bytes.
    #[error("cannot make a token: {0}")]
    Random(io::Error),
    /// The database that nodes share.
    #[error("cannot use the tokens of all nodes: {0}")]
    Store(#[from] StoreError),
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
    /// Tokens that count at every node.
    shared: Option<SharedCredentials>,
    /// What every node can prove.
    cluster_keys: Option<ClusterKeys>,
}

#[derive(Debug, Default)]
struct TokenList {
    seen: (Option<(SystemTime, u64)>, Option<Seq>),
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
            shared: None,
            cluster_keys: None,
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

    /// Takes tokens that count at every node too.
    #[must_use]
    pub fn with_shared(mut self, shared: Option<SharedCredentials>) -> Self {
        self.shared = shared;
        self
    }

    /// Proves with these what every node must be able to check.
    #[must_use]
    pub fn with_cluster_keys(mut self, keys: Option<ClusterKeys>) -> Self {
        self.cluster_keys = keys;
        self
    }

    /// Reads what other nodes gave and took back; false if there are none.
    pub async fn refresh_for_unknown(&self) -> bool {
        match &self.shared {
            Some(shared) => shared.refresh_for_unknown().await,
            None => return false,
        }
        true
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

    /// A key for proving one thing, that only this data directory has, or every node.
    pub fn secret_for(&self, purpose: &str) -> [u8; 32] {
        match &self.cluster_keys {
            Some(keys) => keys.secret_for(purpose),
            None => {
                Sha256::new().chain_update(self.owner).chain_update(b" for ").chain_update(purpose).finalize().into()
            }
        }
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
        let given = self.given_tokens();
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
        let given = self.given_tokens();
        let mut found: Option<&GivenToken> = None;
        for given in &given.grants {
            if bool::from(given.hash.ct_eq(presented)) {
                found = Some(given);
            }
        }
        found.map(|given| (given.identity.clone(), Some(given.revoked.clone())))
    }

    /// Ends what was opened with tokens that were taken back, until `stop`: nobody may ask anything meanwhile.
    /// `then` is called after each look.
    pub async fn watch_revocations(&self, then: impl Fn(), stop: CancellationToken) {
        let mut every = tokio::time::interval(REVOCATION_INTERVAL);
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                _ = every.tick() => {
                    if let Some(shared) = &self.shared
                        && let Err(error) = shared.refresh().await
                    {
                        tracing::debug!(%error, "tokens of all nodes were not read");
                    }
                    drop(self.given_tokens());
                    then();
                }
            }
        }
    }

    /// Those that count now.
    fn given_tokens(&self) -> MutexGuard<'_, TokenList> {
        let mut given = self.given.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        given.reread_if_changed(&self.list, self.shared.as_ref());
        given
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
    /// Reads the lists again if they are others than last time. One that cannot be read grants nothing.
    fn reread_if_changed(&mut self, list: &Path, shared: Option<&SharedCredentials>) {
        let stamp = std::fs::metadata(list).and_then(|file| Ok((file.modified()?, file.len()))).ok();
        let stamp = (stamp, shared.map(SharedCredentials::version));
        if stamp == self.seen {
            return;
        }
        self.seen = stamp;
        let mut before = std::mem::take(&mut self.grants);
        let everywhere = shared.map(SharedCredentials::list_tokens).unwrap_or_default();
        let given = read_token_grants(list).unwrap_or_default().into_iter().chain(everywhere).filter_map(identity_of);
        let owners = shared.map(SharedCredentials::owner_tokens).unwrap_or_default();
        let owners = owners.into_iter().filter_map(|(token, _)| Some((hash_of_hex(&token.0)?, Identity::owner())));
        for (hash, identity) in given.chain(owners) {
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
    let mut grants = list_tokens(paths)?;
    let (token, grant) = new_grant(&grants, name, scopes, adk_user)?;
    grants.push(grant);
    write_token_grants(&paths.tokens_file(), &grants)?;
    Ok(token)
}

/// The same, for all nodes that share a database.
pub async fn add_shared_token(
    paths: &Paths,
    shared: &SharedCredentials,
    name: &str,
    scopes: &[Scope],
    adk_user: Option<String>,
) -> Result<SecretString, TokenError> {
    let (token, grant) = new_grant(&list_tokens(paths)?, name, scopes, adk_user)?;
    match shared.add_token(&grant).await? {
        true => Ok(token),
        false => Err(TokenError::Exists(name.to_owned())),
    }
}

/// A token under a name that none of these has, and what is kept of it.
fn new_grant(
    others: &[TokenGrant],
    name: &str,
    scopes: &[Scope],
    adk_user: Option<String>,
) -> Result<(SecretString, TokenGrant), TokenError> {
    let fine = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if name.is_empty() || name.len() > 64 || !name.chars().all(fine) || name == Principal::owner().as_str() {
        return Err(TokenError::BadName(name.to_owned()));
    }
    if others.iter().any(|grant| grant.name == name) {
        return Err(TokenError::Exists(name.to_owned()));
    }
    let token = new_token().map_err(TokenError::Random)?;
    let scopes = scopes.iter().copied().chain([Scope::Read]).collect();
    let grant = TokenGrant { name: name.to_owned(), scopes, adk_user, sha256: hex_path_text(&digest(&token)) };
    Ok((SecretString::from(token), grant))
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

/// The same, whether it counts at every node or at this one alone. `owner@LABEL` is the token that the owner has at nodes of
/// this label: it stops working at the others.
pub async fn revoke_shared_token(paths: &Paths, shared: &SharedCredentials, name: &str) -> Result<(), TokenError> {
    let is_revoked = match name.strip_prefix("owner@") {
        Some(label) => shared.revoke_owner_tokens(label).await?,
        None => shared.revoke_token(name).await?,
    };
    if is_revoked { Ok(()) } else { revoke_token(paths, name) }
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
    let TokenGrant { name, scopes, adk_user, sha256 } = grant;
    Some((hash_of_hex(&sha256)?, Identity { principal: Principal::named(name), scopes, adk_user, roots: None }))
}

fn hash_of_hex(digits: &str) -> Option<[u8; 32]> {
    let mut hash = [0u8; 32];
    if digits.len() != 64 {
        return None;
    }
    for (byte, digits) in hash.iter_mut().zip(digits.as_bytes().chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    }
    Some(hash)
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
#[path = "token_tests.rs"]
mod tests;
