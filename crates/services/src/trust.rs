//! Folders whose own settings (`.gander/`) count: facts of no session, kept in their own log, revocable.
//!
//! Whatever a project brings along (agents, extensions, rules) is only text until its folder is trusted: whoever
//! reads it asks [`Trust::is_trusted`] first.

use std::collections::{BTreeMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gander_domain::{Notice, SessionId, Severity, Timestamp};
use gander_store::{FactEntry, FactLog, FactState, Store, StoreError};
use gander_tools::{FileAccess, PathError};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::paths::hex_path_text;

/// The log's key.
pub(crate) const SCOPE: &str = "trust";

/// Where a project keeps its own settings.
pub const PROJECT_FOLDER: &str = ".gander";

/// The file in it that names programs to start.
pub const PROGRAMS_FILE: &str = "extensions.toml";

/// Bytes of that file; a longer one is not read.
const MAX_PROGRAM_FILE: u64 = 256 << 10;

/// Sessions that are remembered as told about their folder.
const MAX_NOTICED_SESSIONS: usize = 10_000;

/// Why a folder is not trusted now.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// It is none.
    #[error("not a folder that can be entered, {reason}: {folder}")]
    NoFolder {
        /// What was named.
        folder: PathBuf,
        reason: io::Error,
    },
    /// It could not be written down.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Which folders are trusted, folded from their log. Cheap to clone.
#[derive(Clone)]
pub struct Trust {
    log: Arc<FactLog<TrustState>>,
    /// The same in memory: whoever asks cannot wait for a disk.
    known: Arc<Mutex<BTreeMap<PathBuf, TrustedSince>>>,
    told: Arc<Mutex<HashSet<SessionId>>>,
}

/// When a folder was trusted, and what its programs were then.
#[derive(Clone)]
struct TrustedSince {
    at: Timestamp,
    programs: String,
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum TrustFact {
    Trusted {
        folder: PathBuf,
        #[serde(default)]
        programs: String,
        /// Absent until the log is compacted: the time of its entry.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at: Option<Timestamp>,
    },
    Revoked {
        folder: PathBuf,
    },
}

#[derive(Default)]
struct TrustState(BTreeMap<PathBuf, TrustedSince>);

impl FactState for TrustState {
    type Fact = TrustFact;

    fn apply(&mut self, fact: TrustFact, written: FactEntry) {
        match fact {
            TrustFact::Trusted { folder, programs, at } => {
                self.0.insert(folder, TrustedSince { at: at.unwrap_or(written.at), programs });
            }
            TrustFact::Revoked { folder } => drop(self.0.remove(&folder)),
        }
    }

    fn facts(&self) -> Vec<TrustFact> {
        let trusted = |(folder, since): (&PathBuf, &TrustedSince)| TrustFact::Trusted {
            folder: folder.clone(),
            programs: since.programs.clone(),
            at: Some(since.at),
        };
        self.0.iter().map(trusted).collect()
    }
}

impl Trust {
    /// What this store knows.
    pub async fn load(store: Arc<dyn Store>) -> Result<Self, StoreError> {
        let log = Arc::new(FactLog::<TrustState>::new(store, SCOPE));
        let known = log.fold_all().await?.0;
        Ok(Self { log, known: Arc::new(Mutex::new(known)), told: Arc::default() })
    }

    /// Reads the log again: another node wrote to it.
    pub(crate) async fn refresh(&self) -> Result<(), StoreError> {
        let known = self.log.fold_all().await?.0;
        *lock_trust(&self.known) = known;
        Ok(())
    }

    /// True if the settings that this very folder brings along count. What lies below it needs its own trust.
    pub fn is_trusted(&self, folder: &Path) -> bool {
        // Asked several times per turn, and most people trust no folder: then its real name does not matter.
        !lock_trust(&self.known).is_empty()
            && folder.canonicalize().is_ok_and(|folder| lock_trust(&self.known).contains_key(&folder))
    }

    /// True if the programs that it names are also still those that were there when it was trusted.
    pub fn is_trusted_with_programs(&self, folder: &Path) -> bool {
        if lock_trust(&self.known).is_empty() {
            return false;
        }
        let Ok(folder) = folder.canonicalize() else { return false };
        let since = lock_trust(&self.known).get(&folder).cloned();
        since.is_some_and(|since| since.programs == trusted_programs_fingerprint(&folder))
    }

    /// From now on they count; the folder as it is really called.
    pub async fn trust(&self, folder: &Path) -> Result<PathBuf, TrustError> {
        let real = folder.canonicalize().and_then(|real| std::fs::read_dir(&real).map(|_| real));
        let folder = real.map_err(|reason| TrustError::NoFolder { folder: folder.to_owned(), reason })?;
        let programs = trusted_programs_fingerprint(&folder);
        let fact = TrustFact::Trusted { folder: folder.clone(), programs: programs.clone(), at: None };
        let at = self.log.append_fact(&fact).await?.at;
        lock_trust(&self.known).insert(folder.clone(), TrustedSince { at, programs });
        Ok(folder)
    }

    /// They count no longer; false if they did not. Folders that are gone are named as they were listed.
    pub async fn revoke(&self, folder: &Path) -> Result<bool, StoreError> {
        let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        let was = lock_trust(&self.known).remove(&folder).is_some();
        if was {
            self.log.append_fact(&TrustFact::Revoked { folder }).await?;
        }
        Ok(was)
    }

    /// All trusted folders by name, and since when.
    pub fn list(&self) -> Vec<(PathBuf, Timestamp)> {
        lock_trust(&self.known).iter().map(|(folder, since)| (folder.clone(), since.at)).collect()
    }

    /// What a session's people should know: their folder brings settings along that do not count. Said once.
    pub fn untrusted_notice(&self, session: SessionId, folder: &Path) -> Option<Notice> {
        let title = match (self.is_trusted(folder), self.is_trusted_with_programs(folder)) {
            _ if !folder.join(PROJECT_FOLDER).is_dir() => return None,
            (true, true) => return None,
            (true, false) => {
                format!(
                    "{PROJECT_FOLDER}/{PROGRAMS_FILE} changed since you trusted this folder: it is off until you do again"
                )
            }
            (false, _) => {
                format!("This folder brings settings of its own ({PROJECT_FOLDER}): they are off until you trust it")
            }
        };
        let mut told = lock_trust(&self.told);
        if told.len() >= MAX_NOTICED_SESSIONS {
            told.clear();
        }
        told.insert(session).then(|| Notice {
            severity: Severity::Info,
            title,
            detail: Some(format!("read them first, then: gander trust {}", folder.display())),
        })
    }
}

/// What the file that names a project's programs says; none if it is not there. A link does not lead out of the folder.
pub fn read_trusted_program_file(folder: &Path) -> Result<Option<Vec<u8>>, PathError> {
    let name = format!("{PROJECT_FOLDER}/{PROGRAMS_FILE}");
    // The file configures the server and is shown to nobody, so nothing in it is masked.
    let Ok(opened) = FileAccess::default().open(folder, &[]) else { return Ok(None) };
    match opened.read_plain(&name, MAX_PROGRAM_FILE) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(PathError::NotFound(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// What the file that names programs holds now, in short; empty if there is none.
fn trusted_programs_fingerprint(folder: &Path) -> String {
    match read_trusted_program_file(folder) {
        Ok(Some(bytes)) => hex_path_text(&Sha256::digest(&bytes)),
        Ok(None) => String::new(),
        // Its programs are not started either.
        Err(error) => format!("unreadable: {error}"),
    }
}

/// A panic while the lock was held leaves nothing half done here.
fn lock_trust<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use gander_store::MemoryStore;
    use gander_store::clock::SystemIds;

    #[tokio::test]
    async fn a_folder_is_trusted_by_its_real_name_until_that_is_taken_back() {
        let root = tempfile::tempdir().unwrap();
        let real = root.path().canonicalize().unwrap().join("real");
        std::fs::create_dir_all(real.join("below")).unwrap();
        std::os::unix::fs::symlink(&real, root.path().join("link")).unwrap();
        let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
        let trust = Trust::load(Arc::clone(&store)).await.unwrap();
        assert!(!trust.is_trusted(&real));
        assert_eq!(trust.trust(&root.path().join("link")).await.unwrap(), real);
        let again = Trust::load(Arc::clone(&store)).await.unwrap();
        for trust in [&trust, &again] {
            assert!(trust.is_trusted(&real) && trust.is_trusted(&root.path().join("link")));
            assert!(!trust.is_trusted(&real.join("below")) && !trust.is_trusted(root.path()));
        }
        assert!(again.revoke(&real).await.unwrap() && !again.revoke(&real).await.unwrap());
        assert!(!Trust::load(store).await.unwrap().is_trusted(&real));
        assert!(matches!(trust.trust(&root.path().join("none")).await, Err(TrustError::NoFolder { .. })));
    }

    #[tokio::test]
    async fn people_are_told_once_that_a_folder_waits_for_their_trust() {
        let root = tempfile::tempdir().unwrap();
        let trust = Trust::load(Arc::new(MemoryStore::default())).await.unwrap();
        let (one, other) = (SessionId::make(&mut SystemIds), SessionId::make(&mut SystemIds));
        assert!(trust.untrusted_notice(one, root.path()).is_none());
        std::fs::create_dir(root.path().join(PROJECT_FOLDER)).unwrap();
        assert!(
            trust.untrusted_notice(one, root.path()).is_some() && trust.untrusted_notice(one, root.path()).is_none()
        );
        trust.trust(root.path()).await.unwrap();
        assert!(trust.untrusted_notice(other, root.path()).is_none() && trust.is_trusted_with_programs(root.path()));
        std::fs::write(root.path().join(PROJECT_FOLDER).join(PROGRAMS_FILE), "[evil]\ncommand = \"rm\"").unwrap();
        assert!(trust.is_trusted(root.path()) && !trust.is_trusted_with_programs(root.path()));
        assert!(trust.untrusted_notice(other, root.path()).is_some_and(|notice| notice.title.contains("changed")));
    }
}
