//! A path inside a workspace.

use std::path::{Path, PathBuf};

/// A path inside the workspace, without symbolic links when it was looked up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Located {
    pub(crate) root: usize,
    pub(crate) relative: PathBuf,
    pub(crate) absolute: PathBuf,
}

impl Located {
    /// Where it is.
    pub fn absolute_path(&self) -> &Path {
        &self.absolute
    }

    /// The same, seen from its root.
    pub(crate) fn relative_path(&self) -> &Path {
        &self.relative
    }

    /// Something right below it.
    pub(crate) fn child_path(&self, name: &str) -> Self {
        Self { root: self.root, relative: self.relative.join(name), absolute: self.absolute.join(name) }
    }
}
