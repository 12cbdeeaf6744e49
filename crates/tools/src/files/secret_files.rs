//! Finds the secret files below folders, so that a search can be kept from them.

use std::path::{Path, PathBuf};

use crate::permission::{WorkspaceFolders, is_secret_path};

/// Folders with more entries are not searched unasked.
const MAX_ENTRIES: usize = 400_000;

/// The sandbox takes each of them on its command line.
const MAX_SECRETS: usize = 400;

/// Why not all of them are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unsearchable {
    #[error("the folder holds more than {MAX_ENTRIES} files, search a smaller one")]
    TooManyFiles,
    #[error("the folder holds more than {MAX_SECRETS} files that may hold secrets, search a smaller one")]
    TooManySecrets,
}

/// Every file and folder below these that may hold secrets; links by what they lead to inside of the workspace.
pub(crate) fn secret_files(searched: &[PathBuf], folders: &WorkspaceFolders) -> Result<Vec<PathBuf>, Unsearchable> {
    let mut walk = SecretFileWalk { folders, left: MAX_ENTRIES, found: Vec::new() };
    for folder in searched {
        if let Ok(real) = folder.canonicalize() {
            walk.visit_folder(&real)?;
        }
    }
    walk.found.sort();
    walk.found.dedup();
    Ok(walk.found)
}

/// True if git itself reads it.
pub(crate) fn is_git_settings(path: &Path) -> bool {
    path.components().any(|name| name.as_os_str() == ".git")
}

struct SecretFileWalk<'a> {
    folders: &'a WorkspaceFolders,
    left: usize,
    found: Vec<PathBuf>,
}

impl SecretFileWalk<'_> {
    fn visit_folder(&mut self, folder: &Path) -> Result<(), Unsearchable> {
        // What cannot be read now cannot be read by the command either.
        let Ok(entries) = std::fs::read_dir(folder) else { return Ok(()) };
        for entry in entries.flatten() {
            self.left = self.left.checked_sub(1).ok_or(Unsearchable::TooManyFiles)?;
            let (path, kind) = (entry.path(), entry.file_type());
            let is_folder = kind.as_ref().is_ok_and(std::fs::FileType::is_dir);
            if is_secret_path(self.folders.path_from_above(&path)) {
                self.add_secret(path)?;
            } else if is_folder && !path.ends_with(".git/objects") {
                self.visit_folder(&path)?;
            }
        }
        Ok(())
    }

    fn add_secret(&mut self, path: PathBuf) -> Result<(), Unsearchable> {
        let real = path.canonicalize().ok().filter(|real| self.folders.contains(real));
        self.found.extend(real);
        match self.found.len() > MAX_SECRETS {
            true => Err(Unsearchable::TooManySecrets),
            false => Ok(()),
        }
    }
}
