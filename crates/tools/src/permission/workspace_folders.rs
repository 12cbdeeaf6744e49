//! The folders of a session, as the permission rules see them: by their letters alone.

use std::path::{Path, PathBuf};

/// The folders of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkspaceFolders {
    /// The workspace: absolute, without symbolic links. Grants belong to it.
    pub root: PathBuf,
    /// Further folders of the session.
    pub extra: Vec<PathBuf>,
}

impl WorkspaceFolders {
    /// True if the path lies in one of the folders.
    pub(crate) fn contains(&self, path: &Path) -> bool {
        path.starts_with(&self.root) || self.extra.iter().any(|extra| path.starts_with(extra))
    }

    /// The path as seen from above the folder that holds it: that folder's own name counts, for somebody may work in
    /// `.github` or `.vscode`. Names above it say nothing about a file in it.
    pub(crate) fn path_from_above<'a>(&self, path: &'a Path) -> &'a Path {
        let roots = std::iter::once(&self.root).chain(&self.extra).filter(|root| path.starts_with(root));
        let above = roots.map(|root| root.parent().unwrap_or(root));
        above.filter_map(|above| path.strip_prefix(above).ok()).next().unwrap_or(path)
    }
}
