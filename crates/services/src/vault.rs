//! Secrets that must last: one file for its owner alone, written whole. Nothing of it is ever logged.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::paths::write_private_file;

/// Secrets by name. Cheap to clone.
#[derive(Clone)]
pub struct Vault {
    path: PathBuf,
    known: Arc<Mutex<BTreeMap<String, Value>>>,
}

impl Vault {
    /// What this file holds; nothing if there is none.
    pub fn open(path: PathBuf) -> io::Result<Self> {
        let known = match std::fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(io::Error::other)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => BTreeMap::new(),
            Err(error) => return Err(error),
        };
        Ok(Self { path, known: Arc::new(Mutex::new(known)) })
    }

    /// What is kept under this name.
    pub fn get<T: DeserializeOwned>(&self, name: &str) -> Option<T> {
        let value = self.lock_secrets().get(name).cloned()?;
        serde_json::from_value(value).ok()
    }

    /// Keeps this under the name, in place of what was there.
    pub fn put(&self, name: &str, value: &impl Serialize) -> io::Result<()> {
        let value = serde_json::to_value(value).map_err(io::Error::other)?;
        let mut known = self.lock_secrets();
        known.insert(name.to_owned(), value);
        self.write_file(&known)
    }

    /// Forgets what is kept under this name.
    pub fn remove(&self, name: &str) -> io::Result<()> {
        let mut known = self.lock_secrets();
        match known.remove(name) {
            Some(_) => self.write_file(&known),
            None => Ok(()),
        }
    }

    /// Everything that is kept.
    pub(crate) fn all(&self) -> BTreeMap<String, Value> {
        self.lock_secrets().clone()
    }

    fn write_file(&self, known: &BTreeMap<String, Value>) -> io::Result<()> {
        write_private_file(&self.path, &serde_json::to_vec(known).map_err(io::Error::other)?)
    }

    /// A panic while the lock was held leaves nothing half done here.
    fn lock_secrets(&self) -> MutexGuard<'_, BTreeMap<String, Value>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The text of a file that holds keys.
pub(crate) fn read_key_file(path: &Path) -> io::Result<String> {
    std::fs::read_to_string(path)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::os::unix::fs::MetadataExt as _;

    use super::*;

    #[test]
    fn secrets_last_and_are_for_their_owner_alone() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("secrets.json");
        Vault::open(path.clone()).unwrap().put("a", &"hush").unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        let again = Vault::open(path).unwrap();
        assert_eq!(again.get::<String>("a").as_deref(), Some("hush"));
        again.remove("a").unwrap();
        assert_eq!(again.get::<String>("a"), None);
    }
}
