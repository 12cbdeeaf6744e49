//! Files that make programs of the host run something, kept as they are while commands run in their folder.
//!
//! A sandbox keeps a command inside, but the folder it works in is the person's own: what it leaves there for their
//! git, editor, shell or CI would run outside. So these files ([`crate::permission::is_protected_path`] names them) are
//! compared before and after each command; a change is undone and waits for a person's yes.

mod change;
mod file_state;
mod open_folder;
mod relevant_part;
mod scan;
mod set_aside_changes;
mod text_objection;
mod watched_root;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use sha2::{Digest as _, Sha256};
use tokio::sync::OwnedSemaphorePermit;

use open_folder::OpenFolder;
use scan::{ScanDepth, scan_protected_paths};
use set_aside_changes::RootChanges;
use watched_root::{Comparison, WatchedRoot};

pub use set_aside_changes::SetAsideChanges;
pub(crate) use text_objection::{is_repository_text_part, text_has_relevant_part, text_objection};
pub use watched_root::{Afterwards, OnChange};

/// Folders whose files are remembered between two commands.
const MAX_LAST_KNOWN: usize = 64;

/// Watches over the folders that commands work in. Cheap to clone; all sessions of a server share one.
#[derive(Clone, Default)]
pub struct ProtectedFiles {
    inner: Arc<Inner>,
}

#[derive(Default)]
struct Inner {
    watched_roots: Mutex<BTreeMap<PathBuf, Arc<WatchedRoot>>>,
    /// Where notes and what is set aside are kept; none: in memory alone.
    store: Option<PathBuf>,
}

/// A command is under way in these folders. To be ended when everything it started is dead.
#[must_use]
pub struct WatchedCommand {
    watched_roots: Vec<Arc<WatchedRoot>>,
    afterwards: Afterwards,
    protected: ProtectedFiles,
}

/// What of a folder can be mounted read-only, as it is now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadOnlyPaths {
    /// Files and folders that stay as they are.
    pub whole: Vec<PathBuf>,
    /// Repositories, which must not be moved away from over these.
    pub repositories: Vec<PathBuf>,
}

impl ProtectedFiles {
    /// Notes, and what is set aside, are kept in this folder of the server's own.
    pub fn with_store(store: PathBuf) -> Self {
        remove_old_protected_quarantines(&store);
        Self { inner: Arc::new(Inner { watched_roots: Mutex::default(), store: Some(store) }) }
    }

    /// What commands of a server that was killed left in these folders, undone.
    pub async fn recover_interrupted(&self, folders: &[PathBuf]) -> io::Result<Option<SetAsideChanges>> {
        self.compare_roots(without_watch_permits(self.watched_roots(folders)), WatchedRoot::recover_interrupted).await
    }

    /// What changed in these folders since the last command that left programs running.
    pub async fn changes_since_last(
        &self,
        folders: &[PathBuf],
        on_change: OnChange,
    ) -> io::Result<Option<SetAsideChanges>> {
        let watched_roots = without_watch_permits(self.watched_roots(folders));
        self.compare_roots(watched_roots, move |watched_root| watched_root.compare_with_last_known(on_change)).await
    }

    /// True if an earlier server left a note of what was there while its programs ran, and nobody has compared yet.
    pub async fn has_old_note(&self, folders: &[PathBuf]) -> bool {
        let watched_roots = self.watched_roots(folders);
        run_protected_blocking(move || Ok(watched_roots.iter().any(|root| root.has_old_note()))).await.unwrap_or(true)
    }

    /// The server ends in order: the next one asks about what its programs did up to now, not about what comes later.
    pub async fn note_server_end(&self) {
        let watched_roots: Vec<_> = self.lock_roots().values().cloned().collect();
        let noted = run_protected_blocking(move || {
            watched_roots.iter().for_each(|root| root.note_server_end());
            Ok(())
        });
        if let Err(error) = noted.await {
            tracing::warn!(%error, "the end of the server is not noted");
        }
    }

    /// A command begins in these folders. Waits while somebody is asked about them.
    pub async fn watch_command(&self, folders: &[PathBuf]) -> io::Result<WatchedCommand> {
        let (watched_roots, afterwards) = (Vec::new(), Afterwards::Nothing);
        let mut watched = WatchedCommand { watched_roots, afterwards, protected: self.clone() };
        for watched_root in self.watched_roots(folders) {
            let permit = acquire_watch_permit(&watched_root).await?;
            // It is left again even if nobody waits until it is entered: the permit keeps that in order.
            watched.watched_roots.push(Arc::clone(&watched_root));
            let entered = run_protected_blocking(move || {
                let entered = watched_root.begin_command();
                drop(permit);
                entered
            });
            if let Err(error) = entered.await {
                watched.watched_roots.pop();
                return Err(error);
            }
        }
        Ok(watched)
    }

    /// Waits until nobody is asked about these folders.
    pub async fn wait_until_decided(&self, folders: &[PathBuf]) -> io::Result<()> {
        for watched_root in self.watched_roots(folders) {
            drop(acquire_watch_permit(&watched_root).await?);
        }
        Ok(())
    }

    /// A person agreed to this file's change: no command is blamed for it.
    pub async fn accept_change(&self, path: PathBuf) -> io::Result<()> {
        let watched_roots: Vec<_> =
            self.lock_roots().values().filter(|watched_root| path.starts_with(watched_root.root())).cloned().collect();
        run_protected_blocking(move || {
            watched_roots.iter().for_each(|watched_root| watched_root.accept_change(&path));
            Ok(())
        })
        .await
    }

    /// In one order, so that nobody waits for each other.
    fn watched_roots(&self, folders: &[PathBuf]) -> Vec<Arc<WatchedRoot>> {
        let mut known = self.lock_roots();
        let remembered = known.values().filter(|watched_root| watched_root.has_last_known());
        let too_many = remembered.skip(MAX_LAST_KNOWN).cloned().collect::<Vec<_>>();
        too_many.iter().for_each(|watched_root| watched_root.forget_last_known());
        drop(too_many);
        known.retain(|_, watched_root| Arc::strong_count(watched_root) > 1 || !watched_root.is_idle());
        let mut folders: Vec<PathBuf> =
            folders.iter().map(|folder| folder.canonicalize().unwrap_or_else(|_| folder.clone())).collect();
        folders.sort();
        folders.dedup();
        let folders = folders.into_iter().filter(|folder| folder.is_dir());
        let watched_root = |folder: PathBuf| {
            let baseline_file =
                self.inner.store.as_ref().map(|store| store.join(format!("{}.json", protected_folder_hash(&folder))));
            Arc::clone(known.entry(folder.clone()).or_insert_with(|| Arc::new(WatchedRoot::new(folder, baseline_file))))
        };
        folders.map(watched_root).collect()
    }

    async fn compare_roots(
        &self,
        watched_roots: Vec<(Arc<WatchedRoot>, Option<OwnedSemaphorePermit>)>,
        look: impl Fn(&WatchedRoot) -> io::Result<Comparison> + Copy + Send + 'static,
    ) -> io::Result<Option<SetAsideChanges>> {
        let mut aside = SetAsideChanges { roots: Vec::new(), problems: Vec::new() };
        for (watched_root, held) in watched_roots {
            let permit = match held {
                Some(permit) => permit,
                None => acquire_watch_permit(&watched_root).await?,
            };
            let (looked, store) = (Arc::clone(&watched_root), self.inner.store.clone());
            let (outcome, quarantine) = run_protected_blocking(move || {
                let outcome = look(&looked)?;
                let quarantine = store
                    .filter(|_| !outcome.changes.is_empty())
                    .and_then(|store| write_protected_quarantine(&store, &outcome));
                Ok((outcome, quarantine))
            })
            .await?;
            aside.problems.extend(outcome.problems);
            if !outcome.changes.is_empty() {
                aside.roots.push(RootChanges { watched_root, changes: outcome.changes, quarantine, _permit: permit });
            }
        }
        Ok(Some(aside).filter(|aside| !(aside.roots.is_empty() && aside.problems.is_empty())))
    }

    fn lock_roots(&self) -> std::sync::MutexGuard<'_, BTreeMap<PathBuf, Arc<WatchedRoot>>> {
        self.inner.watched_roots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WatchedCommand {
    /// Says what goes on in these folders once it has ended.
    pub fn followed_by(mut self, afterwards: Afterwards) -> Self {
        self.afterwards = afterwards;
        self
    }

    /// Compares. What changed is undone and returned, or only returned.
    pub async fn finish_command(mut self, on_change: OnChange) -> io::Result<Option<SetAsideChanges>> {
        let (watched_roots, afterwards) = (std::mem::take(&mut self.watched_roots), self.afterwards);
        let end = move |watched_root: &WatchedRoot| watched_root.end_command(on_change, afterwards);
        self.protected.compare_roots(without_watch_permits(watched_roots), end).await
    }
}

impl Drop for WatchedCommand {
    /// Whoever stops waiting for a command is not asked: what it changed is undone for good.
    fn drop(&mut self) {
        let watched_roots = std::mem::take(&mut self.watched_roots);
        if watched_roots.is_empty() {
            return;
        }
        let (protected, afterwards) = (self.protected.clone(), self.afterwards);
        // Before anybody else begins, unless somebody already has.
        let watched_roots: Vec<_> = watched_roots
            .into_iter()
            .map(|watched_root| (Arc::clone(&watched_root), try_watch_permit(&watched_root)))
            .collect();
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        runtime.spawn(async move {
            let end = move |watched_root: &WatchedRoot| watched_root.end_command(OnChange::SetAside, afterwards);
            match protected.compare_roots(watched_roots, end).await {
                Ok(Some(aside)) => {
                    tracing::warn!(changes = %aside.one_line(), "changes of an interrupted command were undone")
                }
                Ok(None) => {}
                Err(error) => tracing::warn!(%error, "protected files could not be compared"),
            }
        });
    }
}

/// What of this folder can be mounted read-only.
pub(crate) fn protected_read_only_paths(folder: &Path) -> ReadOnlyPaths {
    let found = OpenFolder::open(folder).and_then(|folder| scan_protected_paths(&folder, ScanDepth::Names));
    let found =
        found.inspect_err(|error| tracing::warn!(%error, "a folder was not looked through")).unwrap_or_default();
    let inner = |path: &PathBuf| folder.join(path);
    let real = |path: &PathBuf| path.symlink_metadata().is_ok_and(|there| !there.is_symlink());
    let repositories = found.repositories.keys().filter(|path| !path.as_os_str().is_empty());
    ReadOnlyPaths {
        whole: found.whole.iter().map(inner).filter(real).collect(),
        repositories: repositories.map(inner).collect(),
    }
}

/// Keeps the new contents where no command and no tool of the person finds them.
fn write_protected_quarantine(store: &Path, outcome: &Comparison) -> Option<PathBuf> {
    let path = store.join(format!("aside-{}.json", uuid::Uuid::now_v7()));
    let bytes = serde_json::to_vec(&outcome.changes).ok()?;
    match watched_root::write_private_baseline(&path, &bytes) {
        Ok(()) => Some(path),
        Err(error) => {
            tracing::warn!(%error, "what was set aside is kept in memory alone");
            None
        }
    }
}

/// Nobody answers any more about what an earlier server set aside.
fn remove_old_protected_quarantines(store: &Path) {
    for entry in std::fs::read_dir(store).into_iter().flatten().flatten() {
        let dropped =
            entry.file_name().to_string_lossy().starts_with("aside-").then(|| std::fs::remove_file(entry.path()));
        if let Some(Err(error)) = dropped {
            tracing::warn!(%error, "what was set aside stays");
        }
    }
}

fn without_watch_permits(
    watched_roots: Vec<Arc<WatchedRoot>>,
) -> Vec<(Arc<WatchedRoot>, Option<OwnedSemaphorePermit>)> {
    watched_roots.into_iter().map(|watched_root| (watched_root, None)).collect()
}

fn try_watch_permit(watched_root: &Arc<WatchedRoot>) -> Option<OwnedSemaphorePermit> {
    Arc::clone(&watched_root.gate).try_acquire_owned().ok()
}

async fn acquire_watch_permit(watched_root: &Arc<WatchedRoot>) -> io::Result<OwnedSemaphorePermit> {
    Arc::clone(&watched_root.gate).acquire_owned().await.map_err(io::Error::other)
}

async fn run_protected_blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(io::Error::other)?
}

fn protected_folder_hash(folder: &Path) -> String {
    let hash = Sha256::digest(folder.as_os_str().as_encoded_bytes());
    hash.iter().take(12).map(|byte| format!("{byte:02x}")).collect()
}
