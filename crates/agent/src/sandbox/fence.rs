//! One command's fence: what it sees, what it may write, and whether it reaches the network.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::bounds::Bounds;
use super::caps::Caps;

/// One command's fence.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fence {
    /// Nothing of these is seen.
    pub hidden: Vec<PathBuf>,
    /// Seen although they lie in something hidden, read-only.
    pub readable: Vec<PathBuf>,
    /// Lent for writing.
    pub writable: Vec<PathBuf>,
    /// Hidden although they lie in something lent.
    pub secret: Vec<PathBuf>,
    /// Read-only although they lie in something lent for writing.
    pub guarded: Vec<PathBuf>,
    /// The same where that costs nothing: only a mount can keep them without taking their folder apart.
    pub delicate: Vec<PathBuf>,
    /// The command's own folder for temporary files.
    pub temporary: PathBuf,
    /// The owner's home.
    pub home: Option<PathBuf>,
    /// The network.
    pub network: Network,
    /// How much it may have.
    #[serde(default)]
    pub caps: Caps,
}

/// Whether the network is there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Network {
    /// It is not.
    #[default]
    Closed,
    /// It is.
    Open,
}

impl Fence {
    /// Around these folders, which are lent for writing.
    pub fn around(bounds: &Bounds, folders: &[PathBuf], network: Network) -> Self {
        let folders = folders.iter().map(|folder| folder.canonicalize().unwrap_or_else(|_| folder.clone()));
        let writable: Vec<PathBuf> = folders.chain(bounds.writable.iter().cloned()).collect();
        let inside = |path: &&PathBuf| writable.iter().any(|folder| path.starts_with(folder) && *path != folder);
        let named = writable.iter().flat_map(|folder| bounds.guarded_in_folder.iter().map(|name| folder.join(name)));
        let named = named.filter(|path| path.symlink_metadata().is_ok());
        Self {
            hidden: bounds.hidden.clone(),
            readable: bounds.readable.clone(),
            secret: bounds.secret.clone(),
            guarded: bounds.guarded.iter().filter(inside).cloned().collect(),
            delicate: named.collect(),
            temporary: bounds.scratch.join(private_name(&writable)),
            home: bounds.home.clone(),
            network,
            caps: bounds.caps,
            writable,
        }
    }

    /// The same, with these to read.
    #[must_use]
    pub fn reading(mut self, paths: impl IntoIterator<Item = PathBuf>) -> Self {
        self.readable.extend(paths);
        self
    }

    /// The same, with these to write.
    #[must_use]
    pub fn writing(mut self, paths: impl IntoIterator<Item = PathBuf>) -> Self {
        self.writable.extend(paths);
        self
    }

    /// True if nothing of this path is seen.
    pub(super) fn hides(&self, path: &Path) -> bool {
        let lent = || self.readable.iter().chain(&self.writable).any(|lent| path.starts_with(lent));
        let under = |paths: &[PathBuf]| paths.iter().any(|hidden| path.starts_with(hidden));
        (under(&self.hidden) && !lent()) || under(&self.secret)
    }

    /// What is hidden inside of something lent.
    pub(super) fn holes(&self) -> Vec<&PathBuf> {
        let lent = |path: &PathBuf| self.readable.iter().chain(&self.writable).any(|lent| path.starts_with(lent));
        self.secret.iter().filter(|path| lent(path)).collect()
    }

    /// The tree without these branches: as few roots as possible, none of which holds one of them.
    pub(super) fn without(root: &Path, branches: &[&Path]) -> Vec<PathBuf> {
        if branches.contains(&root) {
            return Vec::new();
        }
        if !branches.iter().any(|branch| branch.starts_with(root)) {
            return vec![root.to_owned()];
        }
        let children = std::fs::read_dir(root).into_iter().flatten().flatten().map(|entry| entry.path());
        let real = children.filter(|path| path.symlink_metadata().is_ok_and(|child| !child.is_symlink()));
        real.flat_map(|child| Self::without(&child, branches)).collect()
    }
}

/// The same folders share what is temporary, others see nothing of it.
fn private_name(folders: &[PathBuf]) -> String {
    use sha2::{Digest as _, Sha256};
    let mut hash = Sha256::new();
    for folder in folders {
        hash.update(folder.as_os_str().as_encoded_bytes());
        hash.update([0]);
    }
    hash.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_tree_without_its_branches_has_no_root_above_them() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        for name in ["a/secret", "a/open", "b/deep/secret", "b/deep/open", "c"] {
            std::fs::create_dir_all(at(name)).unwrap();
        }
        std::os::unix::fs::symlink(at("a/secret"), at("link")).unwrap();
        let (one, two) = (at("a/secret"), at("b/deep/secret"));
        let mut left = Fence::without(root.path(), &[&one, &two]);
        left.sort();
        assert_eq!(left, [at("a/open"), at("b/deep/open"), at("c")]);
        assert_eq!(Fence::without(&one, &[&one]), Vec::<PathBuf>::new());
    }

    #[test]
    fn what_is_lent_is_seen_but_not_the_secrets_in_it() {
        let fence = Fence {
            hidden: vec!["/home".into()],
            readable: vec!["/home/u/.cargo".into()],
            writable: vec!["/home/u/code".into()],
            secret: vec!["/home/u/.cargo/credentials".into()],
            ..Fence::default()
        };
        let seen = ["/usr/bin", "/home/u/.cargo/bin", "/home/u/code/x"];
        let hidden = ["/home/u/.ssh", "/home", "/home/u/.cargo/credentials"];
        assert!(seen.iter().all(|path| !fence.hides(Path::new(path))));
        assert!(hidden.iter().all(|path| fence.hides(Path::new(path))));
    }
}
