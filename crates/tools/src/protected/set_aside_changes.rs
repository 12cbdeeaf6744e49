//! Changes of protected files that were undone and wait for a person's yes.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use gander_domain::ToolContent;
use tokio::sync::OwnedSemaphorePermit;

use super::change::Change;
use super::run_protected_blocking;
use super::watched_root::WatchedRoot;

/// Characters of all changes in one line.
const MAX_LINE_CHARS: usize = 320;

/// Changes that were undone and wait for a yes. Until it is dropped no other command begins in these folders.
#[must_use]
pub struct SetAsideChanges {
    pub(super) roots: Vec<RootChanges>,
    pub(super) problems: Vec<String>,
}

/// Those of one folder.
pub(super) struct RootChanges {
    pub(super) watched_root: Arc<WatchedRoot>,
    pub(super) changes: Vec<Change>,
    /// The new contents, where nobody finds them but the server.
    pub(super) quarantine: Option<PathBuf>,
    pub(super) _permit: OwnedSemaphorePermit,
}

impl SetAsideChanges {
    /// True if there is something to be put in place.
    pub fn has_changes(&self) -> bool {
        !self.roots.is_empty()
    }

    /// What changed, in one line.
    pub fn one_line(&self) -> String {
        let lines = self.all_changes().map(|(_, change)| change.one_line()).chain(self.problems.iter().cloned());
        let line = lines.collect::<Vec<_>>().join("; ");
        match line.char_indices().nth(MAX_LINE_CHARS) {
            Some((end, _)) => format!("{}… ({} in all)", &line[..end], self.all_changes().count()),
            None => line,
        }
    }

    /// Which paths, for a model, and what could not be done.
    pub fn path_names(&self) -> String {
        let names = self.all_changes().map(|(_, change)| change.path.display().to_string());
        names.chain(self.problems.iter().cloned()).collect::<Vec<_>>().join(", ")
    }

    /// What changed, for people to look at.
    pub fn change_diffs(&self) -> Vec<ToolContent> {
        self.all_changes().filter_map(|(watched_root, change)| change.diff_content(watched_root.root())).collect()
    }

    /// Puts the changes in place. Returns what could not be.
    pub async fn apply_changes(self) -> io::Result<Vec<String>> {
        self.for_each_root(|watched_root, changes| watched_root.apply_changes(changes)).await
    }

    /// Lets changes stay that were not undone.
    pub async fn accept(self) -> io::Result<()> {
        self.for_each_root(|watched_root, changes| {
            watched_root.note_changes(changes);
            Vec::new()
        })
        .await
        .map(drop)
    }

    /// Undoes changes that were not undone yet. Returns what could not be.
    pub async fn undo(self) -> io::Result<Vec<String>> {
        self.for_each_root(|watched_root, changes| watched_root.undo_changes(changes)).await
    }

    async fn for_each_root(
        &self,
        work: impl Fn(&WatchedRoot, &[Change]) -> Vec<String> + Send + 'static,
    ) -> io::Result<Vec<String>> {
        let roots: Vec<(Arc<WatchedRoot>, Vec<Change>)> =
            self.roots.iter().map(|root| (Arc::clone(&root.watched_root), root.changes.clone())).collect();
        run_protected_blocking(move || Ok(roots.iter().flat_map(|(root, changes)| work(root, changes)).collect())).await
    }

    fn all_changes(&self) -> impl Iterator<Item = (&WatchedRoot, &Change)> {
        self.roots.iter().flat_map(|root| root.changes.iter().map(|change| (&*root.watched_root, change)))
    }
}

impl Drop for RootChanges {
    fn drop(&mut self) {
        if let Some(quarantine) = &self.quarantine
            && let Err(error) = std::fs::remove_file(quarantine)
        {
            tracing::warn!(%error, "what was set aside stays");
        }
    }
}
