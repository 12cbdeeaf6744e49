//! Files that make programs of the host run something, kept as they are while commands run in their folder.
//!
//! A sandbox keeps a command inside, but the folder it works in is the person's own: what it leaves there for their
//! git, editor, shell or CI would run outside. So these files ([`crate::permission::is_protected`] names them) are
//! compared before and after each command; a change is undone and waits for a person's yes.

mod change;
mod folder;
mod part;
mod scan;
mod state;
mod text;
mod watched_root;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use gander_domain::ToolContent;
use sha2::{Digest as _, Sha256};
use tokio::sync::OwnedSemaphorePermit;

use change::Change;
use folder::Folder;
use scan::{Reading, scan};
use watched_root::{Outcome, WatchedRoot};

pub(crate) use text::{counts_in_part, is_repository_part, text_objection};
pub use watched_root::OnChange;

/// Characters of all changes in one line.
const LINE: usize = 320;

/// Watches over the folders that commands work in. Cheap to clone; all sessions of a server share one.
#[derive(Clone, Default)]
pub struct Protected {
    inner: Arc<Inner>,
}

#[derive(Default)]
struct Inner {
    places: Mutex<BTreeMap<PathBuf, Arc<WatchedRoot>>>,
    /// Where notes and what is set aside are kept; none: in memory alone.
    store: Option<PathBuf>,
}

/// A command is under way in these folders. To be ended when everything it started is dead.
#[must_use]
pub struct Watched {
    places: Vec<Arc<WatchedRoot>>,
    protected: Protected,
}

/// Changes that were undone and wait for a yes. Until it is dropped no other command begins in these folders.
#[must_use]
pub struct SetAsideChanges {
    parts: Vec<Part>,
    problems: Vec<String>,
}

struct Part {
    place: Arc<WatchedRoot>,
    changes: Vec<Change>,
    /// The new contents, where nobody finds them but the server.
    quarantine: Option<PathBuf>,
    _permit: OwnedSemaphorePermit,
}

/// What of a folder can be mounted read-only, as it is now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Guarded {
    /// Files and folders that stay as they are.
    pub whole: Vec<PathBuf>,
    /// Repositories, which must not be moved away from over these.
    pub repositories: Vec<PathBuf>,
}

impl Protected {
    /// Notes, and what is set aside, are kept in this folder of the server's own.
    pub fn storing(store: PathBuf) -> Self {
        forget_asides(&store);
        Self { inner: Arc::new(Inner { places: Mutex::default(), store: Some(store) }) }
    }

    /// What commands of a server that was killed left in these folders, undone.
    pub async fn left_over(&self, folders: &[PathBuf]) -> io::Result<Option<SetAsideChanges>> {
        self.settle(waiting(self.places(folders)), WatchedRoot::left_over).await
    }

    /// A command begins in these folders. Waits while somebody is asked about them.
    pub async fn begin(&self, folders: &[PathBuf]) -> io::Result<Watched> {
        let mut watched = Watched { places: Vec::new(), protected: self.clone() };
        for place in self.places(folders) {
            let permit = permit(&place).await?;
            // It is left again even if nobody waits until it is entered: the permit keeps that in order.
            watched.places.push(Arc::clone(&place));
            let entered = blocking(move || {
                let entered = place.enter();
                drop(permit);
                entered
            });
            if let Err(error) = entered.await {
                watched.places.pop();
                return Err(error);
            }
        }
        Ok(watched)
    }

    /// Waits until nobody is asked about these folders.
    pub async fn undisputed(&self, folders: &[PathBuf]) -> io::Result<()> {
        for place in self.places(folders) {
            drop(permit(&place).await?);
        }
        Ok(())
    }

    /// A person agreed to this file's change: no command is blamed for it.
    pub async fn accept(&self, path: PathBuf) -> io::Result<()> {
        let places: Vec<_> = self.lock().values().filter(|place| path.starts_with(place.root())).cloned().collect();
        blocking(move || {
            places.iter().for_each(|place| place.accept(&path));
            Ok(())
        })
        .await
    }

    /// In one order, so that nobody waits for each other.
    fn places(&self, folders: &[PathBuf]) -> Vec<Arc<WatchedRoot>> {
        let mut known = self.lock();
        known.retain(|_, place| Arc::strong_count(place) > 1 || !place.is_idle());
        let mut folders: Vec<PathBuf> =
            folders.iter().map(|folder| folder.canonicalize().unwrap_or_else(|_| folder.clone())).collect();
        folders.sort();
        folders.dedup();
        let folders = folders.into_iter().filter(|folder| folder.is_dir());
        let place = |folder: PathBuf| {
            let note = self.inner.store.as_ref().map(|store| store.join(format!("{}.json", name(&folder))));
            Arc::clone(known.entry(folder.clone()).or_insert_with(|| Arc::new(WatchedRoot::new(folder, note))))
        };
        folders.map(place).collect()
    }

    async fn settle(
        &self,
        places: Vec<(Arc<WatchedRoot>, Option<OwnedSemaphorePermit>)>,
        look: impl Fn(&WatchedRoot) -> io::Result<Outcome> + Copy + Send + 'static,
    ) -> io::Result<Option<SetAsideChanges>> {
        let mut aside = SetAsideChanges { parts: Vec::new(), problems: Vec::new() };
        for (place, held) in places {
            let permit = match held {
                Some(permit) => permit,
                None => permit(&place).await?,
            };
            let (looked, store) = (Arc::clone(&place), self.inner.store.clone());
            let (outcome, quarantine) = blocking(move || {
                let outcome = look(&looked)?;
                let quarantine =
                    store.filter(|_| !outcome.changes.is_empty()).and_then(|store| put_away(&store, &outcome));
                Ok((outcome, quarantine))
            })
            .await?;
            aside.problems.extend(outcome.problems);
            if !outcome.changes.is_empty() {
                aside.parts.push(Part { place, changes: outcome.changes, quarantine, _permit: permit });
            }
        }
        Ok(Some(aside).filter(|aside| !(aside.parts.is_empty() && aside.problems.is_empty())))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<PathBuf, Arc<WatchedRoot>>> {
        self.inner.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watched {
    /// Compares. What changed is undone and returned, or only returned.
    pub async fn end(mut self, manner: OnChange) -> io::Result<Option<SetAsideChanges>> {
        let places = std::mem::take(&mut self.places);
        self.protected.settle(waiting(places), move |place| place.leave(manner)).await
    }
}

impl Drop for Watched {
    /// Whoever stops waiting for a command is not asked: what it changed is undone for good.
    fn drop(&mut self) {
        let places = std::mem::take(&mut self.places);
        if places.is_empty() {
            return;
        }
        let protected = self.protected.clone();
        // Before anybody else begins, unless somebody already has.
        let places: Vec<_> = places.into_iter().map(|place| (Arc::clone(&place), at_once(&place))).collect();
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        runtime.spawn(async move {
            match protected.settle(places, |place| place.leave(OnChange::SetAside)).await {
                Ok(Some(aside)) => {
                    tracing::warn!(changes = %aside.line(), "changes of an interrupted command were undone")
                }
                Ok(None) => {}
                Err(error) => tracing::warn!(%error, "protected files could not be compared"),
            }
        });
    }
}

impl SetAsideChanges {
    /// True if there is something to be put in place.
    pub fn is_question(&self) -> bool {
        !self.parts.is_empty()
    }

    /// What changed, in one line.
    pub fn line(&self) -> String {
        let lines = self.changes().map(|(_, change)| change.line()).chain(self.problems.iter().cloned());
        let line = lines.collect::<Vec<_>>().join("; ");
        match line.char_indices().nth(LINE) {
            Some((end, _)) => format!("{}… ({} in all)", &line[..end], self.changes().count()),
            None => line,
        }
    }

    /// Which paths, for a model, and what could not be done.
    pub fn names(&self) -> String {
        let names = self.changes().map(|(_, change)| change.path.display().to_string());
        names.chain(self.problems.iter().cloned()).collect::<Vec<_>>().join(", ")
    }

    /// What changed, for people to look at.
    pub fn diffs(&self) -> Vec<ToolContent> {
        self.changes().filter_map(|(place, change)| change.diff(place.root())).collect()
    }

    /// Puts the changes in place. Returns what could not be.
    pub async fn keep(self) -> io::Result<Vec<String>> {
        let work: Vec<(Arc<WatchedRoot>, Vec<Change>)> =
            self.parts.iter().map(|part| (Arc::clone(&part.place), part.changes.clone())).collect();
        let problems = blocking(move || Ok(work.iter().flat_map(|(place, changes)| place.keep(changes)).collect()));
        problems.await
    }

    fn changes(&self) -> impl Iterator<Item = (&WatchedRoot, &Change)> {
        self.parts.iter().flat_map(|part| part.changes.iter().map(|change| (&*part.place, change)))
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        if let Some(quarantine) = &self.quarantine
            && let Err(error) = std::fs::remove_file(quarantine)
        {
            tracing::warn!(%error, "what was set aside stays");
        }
    }
}

/// What of this folder can be mounted read-only.
pub(crate) fn guarded(folder: &Path) -> Guarded {
    let found = Folder::open(folder).and_then(|folder| scan(&folder, Reading::Names));
    let found =
        found.inspect_err(|error| tracing::warn!(%error, "a folder was not looked through")).unwrap_or_default();
    let inner = |path: &PathBuf| folder.join(path);
    let real = |path: &PathBuf| path.symlink_metadata().is_ok_and(|there| !there.is_symlink());
    let repositories = found.repositories.keys().filter(|path| !path.as_os_str().is_empty());
    Guarded {
        whole: found.whole.iter().map(inner).filter(real).collect(),
        repositories: repositories.map(inner).collect(),
    }
}

/// Keeps the new contents where no command and no tool of the person finds them.
fn put_away(store: &Path, outcome: &Outcome) -> Option<PathBuf> {
    let path = store.join(format!("aside-{}.json", uuid::Uuid::now_v7()));
    let bytes = serde_json::to_vec(&outcome.changes).ok()?;
    match watched_root::write_private(&path, &bytes) {
        Ok(()) => Some(path),
        Err(error) => {
            tracing::warn!(%error, "what was set aside is kept in memory alone");
            None
        }
    }
}

/// Nobody answers any more about what an earlier server set aside.
fn forget_asides(store: &Path) {
    for entry in std::fs::read_dir(store).into_iter().flatten().flatten() {
        let dropped =
            entry.file_name().to_string_lossy().starts_with("aside-").then(|| std::fs::remove_file(entry.path()));
        if let Some(Err(error)) = dropped {
            tracing::warn!(%error, "what was set aside stays");
        }
    }
}

fn waiting(places: Vec<Arc<WatchedRoot>>) -> Vec<(Arc<WatchedRoot>, Option<OwnedSemaphorePermit>)> {
    places.into_iter().map(|place| (place, None)).collect()
}

fn at_once(place: &Arc<WatchedRoot>) -> Option<OwnedSemaphorePermit> {
    Arc::clone(&place.gate).try_acquire_owned().ok()
}

async fn permit(place: &Arc<WatchedRoot>) -> io::Result<OwnedSemaphorePermit> {
    Arc::clone(&place.gate).acquire_owned().await.map_err(io::Error::other)
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> io::Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(io::Error::other)?
}

fn name(folder: &Path) -> String {
    let hash = Sha256::digest(folder.as_os_str().as_encoded_bytes());
    hash.iter().take(12).map(|byte| format!("{byte:02x}")).collect()
}
