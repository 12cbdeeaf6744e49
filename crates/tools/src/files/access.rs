//! What stands between a session and the disk: which folders can be opened at all, and what of a file's text leaves it.

use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::{fmt, io};

use crate::{Redactor, Workspace};

/// What every reader of files for a session or a client goes through.
///
/// The server's own folder is never opened, whatever name, link or mount leads to it; secrets in what is read for a
/// model or a client are masked.
#[derive(Clone, Default)]
pub struct FileAccess {
    hidden: Option<Arc<Hidden>>,
    settings_file: Option<Arc<Path>>,
    /// Shared by all clones: keys that are added later are masked as well.
    redactor: Arc<RwLock<Redactor>>,
}

/// A folder that is never opened, but for what lies below one of its sub-folders.
#[derive(Debug)]
struct Hidden {
    folder: PathBuf,
    except: PathBuf,
}

/// Where a hidden folder really is, and what tells it from others: a bind mount has another path, but the same number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HiddenFolder {
    pub(crate) path: PathBuf,
    id: Option<FolderId>,
    except: PathBuf,
}

/// Device and inode.
type FolderId = (rustix::fs::Dev, u64);

impl FileAccess {
    /// Opens any folder.
    pub fn new(redactor: Redactor) -> Self {
        Self { hidden: None, settings_file: None, redactor: Arc::new(RwLock::new(redactor)) }
    }

    /// Never opens this folder. Folders right below its sub-folder `except` are opened, that sub-folder itself is not.
    #[must_use]
    pub fn with_hidden_folder(self, folder: PathBuf, except: &str) -> Self {
        Self { hidden: Some(Arc::new(Hidden { folder, except: PathBuf::from(except) })), ..self }
    }

    /// Never opens the server's settings file either, wherever it lies: what it says counts at once.
    #[must_use]
    pub fn with_hidden_settings(self, file: &Path) -> Self {
        Self { settings_file: Some(file.into()), ..self }
    }

    /// The same for folders that the owner named in the settings: none is hidden.
    #[must_use]
    pub fn of_owner(&self) -> Self {
        Self { hidden: None, ..self.clone() }
    }

    /// Opens the folder in which relative names are looked up, and further ones.
    pub fn open(&self, root: &Path, extra: &[PathBuf]) -> io::Result<Workspace> {
        Workspace::open(root, extra, self.clone())
    }

    /// True if this path, which has no symbolic links, is the hidden folder or lies in it.
    pub fn hides_path(&self, path: &Path) -> bool {
        self.hidden_folder().is_some_and(|hidden| hidden.contains_path(path))
    }

    /// True if this path, which has no symbolic links, is that of the server's settings file.
    pub(crate) fn is_settings_file(&self, path: &Path) -> bool {
        let Some(file) = &self.settings_file else { return false };
        // It may be made, or moved behind a link, after this was.
        let real = file.canonicalize();
        path == real.as_deref().unwrap_or(file)
            || (real.is_ok()
                && accessed_folder_id(path).is_some()
                && accessed_folder_id(path) == accessed_folder_id(file))
    }

    /// True if the hidden folder lies in this one.
    pub fn is_around_hidden(&self, path: &Path) -> bool {
        self.hidden_folder().is_some_and(|hidden| hidden.path.starts_with(path))
    }

    /// This text without secrets.
    pub fn redact_text(&self, text: &str) -> String {
        self.redactor.read().unwrap_or_else(PoisonError::into_inner).redact_text(text)
    }

    /// Masks what this one masks from now on, in every clone.
    pub fn replace_redactor(&self, redactor: Redactor) {
        *self.redactor.write().unwrap_or_else(PoisonError::into_inner) = redactor;
    }

    /// Looked up each time: the folder may be made, or moved behind a link, after this was.
    pub(crate) fn hidden_folder(&self) -> Option<HiddenFolder> {
        let Hidden { folder, except } = &**self.hidden.as_ref()?;
        let path = folder.canonicalize().unwrap_or_else(|_| folder.clone());
        Some(HiddenFolder { id: accessed_folder_id(&path), path, except: except.clone() })
    }
}

impl fmt::Debug for FileAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileAccess").field("hidden", &self.hidden).finish_non_exhaustive()
    }
}

impl HiddenFolder {
    /// True if a path without symbolic links leads to it or into it.
    pub(crate) fn contains_path(&self, path: &Path) -> bool {
        let same =
            |folder: &&Path| *folder == self.path || (self.id.is_some() && accessed_folder_id(folder) == self.id);
        let Some(top) = path.ancestors().find(same) else { return false };
        let below = path.strip_prefix(top).unwrap_or(Path::new(""));
        let depth = |path: &Path| path.components().count();
        !(below.starts_with(&self.except) && depth(below) > depth(&self.except))
    }

    /// True if this open handle is of it.
    pub(crate) fn is_same_folder(&self, handle: impl AsFd) -> bool {
        let id = rustix::fs::fstat(handle).ok().map(|stat| (stat.st_dev, stat.st_ino));
        id.is_some() && id == self.id
    }
}

fn accessed_folder_id(folder: &Path) -> Option<FolderId> {
    rustix::fs::stat(folder).ok().map(|stat| (stat.st_dev, stat.st_ino))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::PathError;

    struct Disk {
        _root: tempfile::TempDir,
        path: PathBuf,
        access: FileAccess,
    }

    fn disk() -> Disk {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().canonicalize().unwrap();
        std::fs::create_dir_all(path.join("data/scratch/one/sub")).unwrap();
        std::fs::create_dir_all(path.join("data/proxy")).unwrap();
        std::fs::create_dir_all(path.join("project")).unwrap();
        std::fs::write(path.join("data/token"), "hush").unwrap();
        std::fs::write(path.join("data/scratch/one/note.txt"), "mine").unwrap();
        std::os::unix::fs::symlink(path.join("data"), path.join("link")).unwrap();
        std::os::unix::fs::symlink(path.join("data"), path.join("project/link")).unwrap();
        let access = FileAccess::new(Redactor::new(["open-sesame"])).with_hidden_folder(path.join("data"), "scratch");
        Disk { _root: root, path, access }
    }

    #[test]
    fn the_hidden_folder_is_never_a_workspace_and_its_scratch_folders_are() {
        let Disk { _root, path, access } = disk();
        for refused in ["data", "data/scratch", "data/proxy", "link", "link/scratch", "project/../data", "project/link"]
        {
            assert!(access.open(&path.join(refused), &[]).is_err(), "{refused}");
            assert!(access.open(&path.join("project"), &[path.join(refused)]).is_err(), "extra {refused}");
        }
        for fine in ["data/scratch/one", "link/scratch/one/sub", "project", "."] {
            assert!(access.open(&path.join(fine), &[]).is_ok(), "{fine}");
        }
    }

    #[test]
    fn nothing_of_the_hidden_folder_is_reached_from_above_or_beside() {
        let Disk { _root, path, access } = disk();
        let outside = |found: Result<(_, String), PathError>| matches!(found, Err(PathError::Outside(_)));
        let above = access.open(&path, &[]).unwrap();
        for name in
            ["data/token", "link/token", "project/link/token", "data/scratch/one/note.txt", "./data/../data/token"]
        {
            assert!(outside(above.read_redacted(name, 100)), "{name}");
        }
        let own = access.open(&path.join("data/scratch/one"), std::slice::from_ref(&path)).unwrap();
        assert_eq!(own.read_redacted("note.txt", 100).unwrap().1, "mine");
        assert!(outside(own.read_redacted("../../token", 100)), "a further folder shows no more");
    }

    #[test]
    fn the_settings_file_is_reached_by_no_name() {
        let Disk { _root, path, access } = disk();
        let file = path.join("project/dev.toml");
        let workspace = access.with_hidden_settings(&file).open(&path.join("project"), &[]).unwrap();
        assert!(workspace.locate_path("dev.toml").is_err(), "nor may it be made");
        std::fs::write(&file, "").unwrap();
        std::os::unix::fs::symlink(&file, path.join("project/soft.toml")).unwrap();
        std::fs::hard_link(&file, path.join("project/hard.toml")).unwrap();
        for name in ["dev.toml", "./dev.toml", "soft.toml", "hard.toml"] {
            assert!(workspace.locate_path(name).is_err(), "{name}");
        }
        assert!(workspace.locate_path("other.toml").is_ok());
    }

    #[test]
    fn what_is_read_is_small_regular_no_secret_and_masked() {
        let Disk { _root, path, access } = disk();
        let project = path.join("project");
        std::fs::write(project.join("plain"), "say open-sesame").unwrap();
        std::fs::write(project.join(".env"), "A=1").unwrap();
        std::os::unix::fs::symlink(project.join(".env"), project.join("harmless")).unwrap();
        let workspace = access.open(&project, &[]).unwrap();
        assert_eq!(workspace.read_redacted("plain", 100).unwrap().1, "say [redacted]");
        for name in [".env", "harmless"] {
            let refused = workspace.read_redacted(name, 100).unwrap_err().to_string();
            assert_eq!(refused, format!("file may hold secrets: {name}"));
        }
        std::fs::write(project.join("later"), "say later-secret").unwrap();
        assert_eq!(workspace.read_redacted("later", 100).unwrap().1, "say later-secret");
        access.replace_redactor(Redactor::new(["open-sesame", "later-secret"]));
        assert_eq!(workspace.read_redacted("later", 100).unwrap().1, "say [redacted]", "a key was added meanwhile");
        assert!(matches!(workspace.read_redacted("plain", 3), Err(PathError::TooLarge { .. })));
        assert!(matches!(workspace.read_redacted(".", 100), Err(PathError::NotRegular(_))));
    }
}
