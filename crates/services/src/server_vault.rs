//! Secrets of a server: in its own file, or sealed in the database that nodes share, where these have a key in common.
//!
//! The key is in a file of each node and never in the database: whoever reads the database, or a dump of it, learns the
//! names of secrets and when they changed.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use gander_store::{FactEntry, FactLog, FactState, Store, StoreError};
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::rand::{SecureRandom as _, SystemRandom};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::paths::hex_path_text;
use crate::vault::{Vault, read_key_file};

/// The log's key.
pub(crate) const SCOPE: &str = "secrets";

/// A line of the key file is at least so long: half as many random bytes in hexadecimal digits.
const MIN_KEY_CHARS: usize = 32;

/// Digits that name a key without saying anything about it.
const KEY_NAME_DIGITS: usize = 16;

/// Secrets by name. Cheap to clone.
#[derive(Clone)]
pub struct ServerVault {
    own: Vault,
    sealed: Option<Arc<SealedSecrets>>,
}

/// The keys that nodes have in common: the first one seals, all of them open.
#[derive(Clone)]
pub struct ClusterKeys(Vec<[u8; 32]>);

/// Those in the database.
struct SealedSecrets {
    keys: ClusterKeys,
    log: FactLog<SealedState>,
    known: Mutex<SealedState>,
}

#[derive(Default)]
struct SealedState(BTreeMap<String, SealedSecret>);

#[derive(Clone, Serialize, Deserialize)]
struct SealedSecret {
    /// Names the key.
    key: String,
    /// Nonce, text and tag, in Base64.
    sealed: String,
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum SecretFact {
    Kept { name: String, secret: SealedSecret },
    Removed { name: String },
}

/// Why a key file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ClusterKeyError {
    #[error("cannot read the file of cluster.key_file, {reason}: {path}")]
    File { path: String, reason: io::Error },
    #[error("other users can read the file of cluster.key_file; fix it with chmod 600: {0}")]
    Readable(String),
    #[error(
        "a line of the file of cluster.key_file has at least {MIN_KEY_CHARS} characters, as openssl rand -hex 32 makes them: {0}"
    )]
    TooShort(String),
}

impl ClusterKeys {
    /// One key per line. Nobody but its owner may be able to read the file.
    pub fn read_file(path: &Path) -> Result<Self, ClusterKeyError> {
        let shown = || path.display().to_string();
        let failed = |reason| ClusterKeyError::File { path: shown(), reason };
        let mode = std::os::unix::fs::MetadataExt::mode(&std::fs::metadata(path).map_err(failed)?);
        if mode & 0o077 != 0 {
            return Err(ClusterKeyError::Readable(shown()));
        }
        let text = read_key_file(path).map_err(failed)?;
        let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        if lines.is_empty() || lines.iter().any(|line| line.len() < MIN_KEY_CHARS) {
            return Err(ClusterKeyError::TooShort(shown()));
        }
        Ok(Self(lines.into_iter().map(|line| derived_key("seals secrets", line.as_bytes())).collect()))
    }

    /// A key for proving one thing, that every node has.
    pub fn secret_for(&self, purpose: &str) -> [u8; 32] {
        derived_key(purpose, &self.0[0])
    }

    fn seal(&self, name: &str, value: &Value) -> io::Result<SealedSecret> {
        let mut nonce = [0u8; NONCE_LEN];
        SystemRandom::new().fill(&mut nonce).map_err(|_| io::Error::other("no random bytes"))?;
        let mut text = serde_json::to_vec(value).map_err(io::Error::other)?;
        let key = self.0[0];
        sealing_key(&key)?
            .seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::from(name.as_bytes()), &mut text)
            .map_err(|_| io::Error::other("a secret was not sealed"))?;
        let sealed = STANDARD.encode([nonce.as_slice(), &text].concat());
        Ok(SealedSecret { key: key_name(&key), sealed })
    }

    /// None if it was sealed with another key, or changed since.
    fn open(&self, name: &str, secret: &SealedSecret) -> Option<Value> {
        let key = self.0.iter().find(|key| key_name(key) == secret.key)?;
        let mut bytes = STANDARD.decode(&secret.sealed).ok()?;
        let (nonce, text) = bytes.split_at_mut_checked(NONCE_LEN)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let opened = sealing_key(key).ok()?.open_in_place(nonce, Aad::from(name.as_bytes()), text).ok()?;
        serde_json::from_slice(opened).ok()
    }
}

impl std::fmt::Debug for ClusterKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ClusterKeys({})", self.0.len())
    }
}

impl ServerVault {
    /// Of this node alone.
    pub fn of_node(own: Vault) -> Self {
        Self { own, sealed: None }
    }

    /// Of all nodes with these keys. What this node kept for itself before is moved there.
    pub async fn of_cluster(own: Vault, store: Arc<dyn Store>, keys: ClusterKeys) -> Result<Self, StoreError> {
        let log = FactLog::new(store, SCOPE);
        let known = Mutex::new(log.fold_all().await?);
        let vault = Self { own, sealed: Some(Arc::new(SealedSecrets { keys, log, known })) };
        vault.move_own_secrets().await.map_err(|error| StoreError::Failed(error.to_string()))?;
        vault.seal_again().await.map_err(|error| StoreError::Failed(error.to_string()))?;
        Ok(vault)
    }

    /// True if what is kept here is there for every node.
    pub fn is_shared(&self) -> bool {
        self.sealed.is_some()
    }

    /// What is kept under this name, as far as is known here.
    pub fn get<T: DeserializeOwned>(&self, name: &str) -> Option<T> {
        match &self.sealed {
            Some(sealed) => serde_json::from_value(sealed.open(name)?).ok(),
            None => self.own.get(name),
        }
    }

    /// Keeps this under the name, in place of what was there.
    pub async fn put(&self, name: &str, value: &impl Serialize) -> io::Result<()> {
        let value = serde_json::to_value(value).map_err(io::Error::other)?;
        match &self.sealed {
            Some(sealed) => sealed.keep(name, &value).await,
            None => {
                let (own, name) = (self.own.clone(), name.to_owned());
                on_disk(move || own.put(&name, &value)).await
            }
        }
    }

    /// Forgets what is kept under this name.
    pub async fn remove(&self, name: &str) -> io::Result<()> {
        match &self.sealed {
            Some(sealed) => sealed.remove(name).await,
            None => {
                let (own, name) = (self.own.clone(), name.to_owned());
                on_disk(move || own.remove(&name)).await
            }
        }
    }

    /// Reads what other nodes keep.
    pub async fn refresh(&self) -> Result<(), StoreError> {
        if let Some(sealed) = &self.sealed {
            let known = sealed.log.fold_all().await?;
            *sealed.lock_known() = known;
        }
        Ok(())
    }

    async fn move_own_secrets(&self) -> io::Result<()> {
        let Some(sealed) = &self.sealed else { return Ok(()) };
        for (name, value) in self.own.all() {
            if sealed.open(&name).is_none() {
                sealed.keep(&name, &value).await?;
            }
            let own = self.own.clone();
            on_disk(move || own.remove(&name)).await?;
        }
        Ok(())
    }

    /// What an older key sealed is sealed with the first one, so that the older one can be taken out of the file.
    async fn seal_again(&self) -> io::Result<()> {
        let Some(sealed) = &self.sealed else { return Ok(()) };
        let newest = key_name(&sealed.keys.0[0]);
        let old: Vec<String> = {
            let known = sealed.lock_known();
            known.0.iter().filter(|(_, secret)| secret.key != newest).map(|(name, _)| name.clone()).collect()
        };
        let mut unknown = 0;
        for name in old {
            match sealed.open(&name) {
                Some(value) => sealed.keep(&name, &value).await?,
                None => unknown += 1,
            }
        }
        if unknown > 0 {
            tracing::warn!(unknown, "secrets in the database were sealed with a key that is not in cluster.key_file");
        }
        Ok(())
    }
}

impl SealedSecrets {
    fn open(&self, name: &str) -> Option<Value> {
        let secret = self.lock_known().0.get(name).cloned()?;
        self.keys.open(name, &secret)
    }

    async fn keep(&self, name: &str, value: &Value) -> io::Result<()> {
        let secret = self.keys.seal(name, value)?;
        self.write(SecretFact::Kept { name: name.to_owned(), secret }).await
    }

    /// The log is compacted, so that what was removed is not in it any more.
    async fn remove(&self, name: &str) -> io::Result<()> {
        if !self.lock_known().0.contains_key(name) {
            return Ok(());
        }
        self.write(SecretFact::Removed { name: name.to_owned() }).await?;
        let mut folded = self.log.read_folded().await.map_err(io::Error::other)?;
        self.log.compact_now(&mut folded).await.map(drop).map_err(io::Error::other)
    }

    async fn write(&self, fact: SecretFact) -> io::Result<()> {
        let written = self.log.append_fact(&fact).await.map_err(io::Error::other)?;
        self.lock_known().apply(fact, written);
        Ok(())
    }

    /// A panic while the lock was held leaves nothing half done here.
    fn lock_known(&self) -> MutexGuard<'_, SealedState> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FactState for SealedState {
    type Fact = SecretFact;

    fn apply(&mut self, fact: SecretFact, _written: FactEntry) {
        match fact {
            SecretFact::Kept { name, secret } => drop(self.0.insert(name, secret)),
            SecretFact::Removed { name } => drop(self.0.remove(&name)),
        }
    }

    fn facts(&self) -> Vec<SecretFact> {
        let kept =
            |(name, secret): (&String, &SealedSecret)| SecretFact::Kept { name: name.clone(), secret: secret.clone() };
        self.0.iter().map(kept).collect()
    }
}

/// Writing a file waits for the disk.
async fn on_disk(write: impl FnOnce() -> io::Result<()> + Send + 'static) -> io::Result<()> {
    tokio::task::spawn_blocking(write).await.map_err(io::Error::other)?
}

fn derived_key(purpose: &str, secret: &[u8]) -> [u8; 32] {
    Sha256::new()
        .chain_update(b"gander cluster key ")
        .chain_update(purpose)
        .chain_update(b" ")
        .chain_update(secret)
        .finalize()
        .into()
}

fn sealing_key(key: &[u8; 32]) -> io::Result<LessSafeKey> {
    let key = UnboundKey::new(&AES_256_GCM, key).map_err(|_| io::Error::other("not a key"))?;
    Ok(LessSafeKey::new(key))
}

fn key_name(key: &[u8; 32]) -> String {
    hex_path_text(&derived_key("name", key)).chars().take(KEY_NAME_DIGITS).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::os::unix::fs::PermissionsExt as _;

    use gander_store::{MemoryStore, read_scope_all};

    use super::*;

    fn keys(folder: &Path, lines: &str, mode: u32) -> Result<ClusterKeys, ClusterKeyError> {
        let path = folder.join("cluster.key");
        std::fs::write(&path, lines).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        ClusterKeys::read_file(&path)
    }

    #[tokio::test]
    async fn what_one_node_keeps_another_with_the_same_key_opens_and_nobody_else() {
        let (root, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
        let (first, second) = ("a".repeat(64), "b".repeat(64));
        let own = Vault::open(root.path().join("secrets.json")).unwrap();
        own.put("before", &"older hush").unwrap();
        let open = |key: ClusterKeys, own: Vault| ServerVault::of_cluster(own, Arc::clone(&store), key);
        let elsewhere = || Vault::open(other.path().join("secrets.json")).unwrap();
        let one = open(keys(root.path(), &first, 0o600).unwrap(), own.clone()).await.unwrap();
        assert_eq!(own.get::<String>("before"), None, "what the node had is in the database now");
        let two = open(keys(root.path(), &first, 0o600).unwrap(), elsewhere()).await.unwrap();
        assert_eq!(two.get::<String>("before").as_deref(), Some("older hush"));
        one.put("a", &"hush").await.unwrap();
        two.refresh().await.unwrap();
        assert_eq!(two.get::<String>("a").as_deref(), Some("hush"));
        let stored = format!("{:?}", read_scope_all(&*store, SCOPE).await.unwrap());
        assert!(!stored.contains("hush") && stored.contains("before"), "{stored}");
        let stranger = open(keys(root.path(), &second, 0o600).unwrap(), elsewhere()).await.unwrap();
        assert_eq!(stranger.get::<String>("a"), None);
        let newer =
            open(keys(root.path(), &format!("{second}\n{first}\n"), 0o600).unwrap(), elsewhere()).await.unwrap();
        assert_eq!(newer.get::<String>("a").as_deref(), Some("hush"));
        stranger.refresh().await.unwrap();
        assert_eq!(stranger.get::<String>("a").as_deref(), Some("hush"), "it was sealed again with the first key");
        newer.remove("a").await.unwrap();
        stranger.refresh().await.unwrap();
        assert_eq!(stranger.get::<String>("a"), None);
    }

    #[tokio::test]
    async fn a_sealed_secret_opens_under_its_own_name_alone() {
        let root = tempfile::tempdir().unwrap();
        let keys = keys(root.path(), &"a".repeat(32), 0o600).unwrap();
        let sealed = keys.seal("a", &Value::from("hush")).unwrap();
        assert_eq!(keys.open("a", &sealed), Some(Value::from("hush")));
        assert_eq!(keys.open("b", &sealed), None);
        assert_ne!(sealed.sealed, keys.seal("a", &Value::from("hush")).unwrap().sealed);
    }

    #[test]
    fn a_key_file_that_others_can_read_or_that_is_guessed_easily_is_refused() {
        let root = tempfile::tempdir().unwrap();
        assert!(matches!(keys(root.path(), &"a".repeat(64), 0o640), Err(ClusterKeyError::Readable(_))));
        for short in ["", "\n", "secret", &format!("{}\nsecret", "a".repeat(64))] {
            assert!(matches!(keys(root.path(), short, 0o600), Err(ClusterKeyError::TooShort(_))), "{short}");
        }
        assert!(matches!(ClusterKeys::read_file(&root.path().join("none")), Err(ClusterKeyError::File { .. })));
    }
}
