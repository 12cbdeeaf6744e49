//! One command's policy: what it sees, what it may write, and whether it reaches the network.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::limits::SandboxLimits;
use super::paths::SandboxPaths;
use crate::protected;

/// Mounts of each kind that a command gets: more would take longer than most commands. What is beyond is compared.
const MOUNTS: usize = 400;

/// One command's policy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxPolicy {
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
    #[serde(skip)]
    pub delicate: Vec<PathBuf>,
    /// Repositories in what is lent. A mount of its own cannot be renamed, so none is put in its place.
    #[serde(skip)]
    pub repositories: Vec<PathBuf>,
    /// Folders that are lent, of which names are seen even where content is hidden.
    #[serde(default)]
    pub listed: Vec<PathBuf>,
    /// The command's own folder for temporary files.
    pub temporary: PathBuf,
    /// Where a program keeps what must last, if it has such a place.
    #[serde(skip)]
    pub program_home: Option<PathBuf>,
    /// The owner's home.
    pub home: Option<PathBuf>,
    /// The network.
    pub network: Network,
    /// How much it may have.
    #[serde(default)]
    pub caps: SandboxLimits,
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

impl SandboxPolicy {
    /// Around these folders, which are lent for writing.
    pub fn for_folders(bounds: &SandboxPaths, folders: &[PathBuf], network: Network) -> Self {
        let folders = folders.iter().map(|folder| folder.canonicalize().unwrap_or_else(|_| folder.clone()));
        let writable: Vec<PathBuf> = folders.chain(bounds.writable.iter().cloned()).collect();
        let inside = |path: &&PathBuf| writable.iter().any(|folder| path.starts_with(folder) && *path != folder);
        let policy = Self {
            hidden: bounds.hidden.clone(),
            readable: bounds.readable.clone(),
            secret: bounds.secret.clone(),
            guarded: bounds.guarded.iter().filter(inside).cloned().collect(),
            delicate: Vec::new(),
            repositories: Vec::new(),
            listed: Vec::new(),
            temporary: bounds.scratch.join(private_policy_name(&writable)),
            program_home: None,
            home: bounds.home.clone(),
            network,
            caps: bounds.caps,
            writable: writable.clone(),
        };
        policy.with_protected_folders(&writable)
    }

    /// The same, with what makes something run in these folders kept as it is. What is lent by its own name is lent.
    fn with_protected_folders(mut self, folders: &[PathBuf]) -> Self {
        for guarded in
            folders.iter().filter(|folder| folder.is_dir()).map(|folder| protected::protected_read_only_paths(folder))
        {
            self.delicate.extend(guarded.whole.into_iter().filter(|path| !self.writable.contains(path)));
            self.repositories.extend(guarded.repositories);
        }
        self.delicate.truncate(MOUNTS);
        self.repositories.truncate(MOUNTS);
        self
    }

    /// The same, with these to read.
    #[must_use]
    pub fn with_readable_paths(mut self, paths: impl IntoIterator<Item = PathBuf>) -> Self {
        self.readable.extend(paths);
        self
    }

    /// The same, with these to write.
    #[must_use]
    pub fn with_writable_paths(mut self, paths: impl IntoIterator<Item = PathBuf>) -> Self {
        let paths: Vec<PathBuf> = paths.into_iter().collect();
        self.writable.extend(paths.iter().cloned());
        self.with_protected_folders(&paths)
    }

    /// The same for a program that keeps things in a folder of its own. That is not looked through for what makes
    /// something run: it is full of packages, and nobody but this program runs them.
    #[must_use]
    pub fn keeping_in(mut self, home: PathBuf) -> Self {
        self.writable.push(home.clone());
        self.program_home = Some(home);
        self
    }

    /// The same for a command that only reads: nothing that is lent can be written, and nothing of these is seen.
    #[must_use]
    pub fn read_only(mut self, secrets: impl IntoIterator<Item = PathBuf>) -> Self {
        self.listed = std::mem::take(&mut self.writable);
        self.readable.extend(self.listed.iter().cloned());
        self.secret.extend(secrets);
        // Mounts that tell what may be written from what may not are not needed where nothing may.
        self.delicate.clear();
        self.repositories.clear();
        self
    }

    /// True if nothing of this path is seen.
    #[cfg_attr(not(target_os = "linux"), allow(dead_code))]
    pub(super) fn is_hidden(&self, path: &Path) -> bool {
        let lent = || self.readable.iter().chain(&self.writable).any(|lent| path.starts_with(lent));
        let under = |paths: &[PathBuf]| paths.iter().any(|hidden| path.starts_with(hidden));
        (under(&self.hidden) && !lent()) || under(&self.secret)
    }

    /// What is hidden inside of something lent.
    pub(super) fn hidden_inside_allowed(&self) -> Vec<&PathBuf> {
        let lent = |path: &PathBuf| self.readable.iter().chain(&self.writable).any(|lent| path.starts_with(lent));
        self.secret.iter().filter(|path| lent(path)).collect()
    }

    /// The tree without these branches: as few roots as possible, none of which holds one of them.
    #[cfg_attr(not(target_os = "linux"), allow(dead_code))]
    pub(super) fn roots_without_branches(root: &Path, branches: &[&Path]) -> Vec<PathBuf> {
        if branches.contains(&root) {
            return Vec::new();
        }
        if !branches.iter().any(|branch| branch.starts_with(root)) {
            return vec![root.to_owned()];
        }
        let children = std::fs::read_dir(root).into_iter().flatten().flatten().map(|entry| entry.path());
        let real = children.filter(|path| path.symlink_metadata().is_ok_and(|child| !child.is_symlink()));
        real.flat_map(|child| Self::roots_without_branches(&child, branches)).collect()
    }
}

/// The same folders share what is temporary, others see nothing of it.
fn private_policy_name(folders: &[PathBuf]) -> String {
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
        let mut left = SandboxPolicy::roots_without_branches(root.path(), &[&one, &two]);
        left.sort();
        assert_eq!(left, [at("a/open"), at("b/deep/open"), at("c")]);
        assert_eq!(SandboxPolicy::roots_without_branches(&one, &[&one]), Vec::<PathBuf>::new());
    }

    #[test]
    fn what_is_lent_is_seen_but_not_the_secrets_in_it() {
        let policy = SandboxPolicy {
            hidden: vec!["/home".into()],
            readable: vec!["/home/u/.cargo".into()],
            writable: vec!["/home/u/code".into()],
            secret: vec!["/home/u/.cargo/credentials".into()],
            ..SandboxPolicy::default()
        };
        let seen = ["/usr/bin", "/home/u/.cargo/bin", "/home/u/code/x"];
        let hidden = ["/home/u/.ssh", "/home", "/home/u/.cargo/credentials"];
        assert!(seen.iter().all(|path| !policy.is_hidden(Path::new(path))));
        assert!(hidden.iter().all(|path| policy.is_hidden(Path::new(path))));
    }
}
