//! The folders an agent may touch, held open as directory handles.
//!
//! A name is first resolved to a path without symbolic links; every later step walks that path from the
//! root's handle without following any link. Whatever is swapped in between, nothing outside is reached.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};

use super::access::HiddenFolder;
use super::located::Located;
use crate::FileAccess;
use crate::permission::WorkspaceFolders;

/// Bytes of a path that is looked up.
const LONGEST: usize = 1_024;

/// The folders an agent may touch.
#[derive(Debug)]
pub struct Workspace {
    roots: Vec<Root>,
    access: FileAccess,
    hidden: Option<HiddenFolder>,
}

#[derive(Debug)]
struct Root {
    path: PathBuf,
    handle: OwnedFd,
}

/// Why a path cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PathError {
    /// It leads out.
    #[error("path is outside the workspace: {0}")]
    Outside(String),
    /// No honest path is that long.
    #[error("path is longer than {LONGEST} bytes: {0}")]
    TooLong(usize),
    /// No such thing.
    #[error("no such file or directory: {0}")]
    NotFound(String),
    /// Directories, pipes, devices and sockets are not read or written.
    #[error("not a regular file: {0}")]
    NotRegular(String),
    /// Its name says that it holds secrets.
    #[error("file may hold secrets: {0}")]
    Secret(String),
    /// It was expected to be a directory.
    #[error("not a directory: {0}")]
    NotDirectory(String),
    /// It is no text.
    #[error("not a text file: {0}")]
    NotText(String),
    /// It is too much.
    #[error("file is larger than {limit} bytes: {path}")]
    TooLarge {
        path: String,
        /// What is allowed.
        limit: u64,
    },
    /// The system says no.
    #[error("{error}: {path}")]
    Io { path: String, error: io::Error },
}

impl Workspace {
    pub(crate) fn open(root: &Path, extra: &[PathBuf], access: FileAccess) -> io::Result<Self> {
        let hidden = access.hidden_folder();
        let folders = std::iter::once(root).chain(extra.iter().map(PathBuf::as_path));
        let roots = folders.map(|folder| Root::open(folder, hidden.as_ref()));
        Ok(Self { roots: roots.collect::<io::Result<_>>()?, access, hidden })
    }

    /// How its files, and those of other folders for the same session, are read.
    pub fn file_access(&self) -> &FileAccess {
        &self.access
    }

    /// The folder in which relative names are looked up.
    pub fn root(&self) -> &Path {
        &self.roots[0].path
    }

    /// What the permission rules need to know of it.
    pub fn rule_folders(&self) -> WorkspaceFolders {
        let extra = self.roots[1..].iter().map(|root| root.path.clone()).collect();
        WorkspaceFolders { root: self.root().to_owned(), extra }
    }

    /// All folders.
    pub fn root_folders(&self) -> Vec<PathBuf> {
        self.roots.iter().map(|root| root.path.clone()).collect()
    }

    /// Finds where a name given by a model leads. What does not exist yet may be named too.
    pub fn locate_path(&self, given: impl AsRef<Path>) -> Result<Located, PathError> {
        let given = given.as_ref();
        let length = given.as_os_str().len();
        if length > LONGEST {
            return Err(PathError::TooLong(length));
        }
        let canonical = canonicalize_workspace_path(&self.root().join(given))?;
        let inside = self.roots.iter().enumerate().find_map(|(index, root)| {
            let relative = canonical.strip_prefix(&root.path).ok()?;
            let located = Located { root: index, relative: relative.to_owned(), absolute: canonical.clone() };
            (!self.is_hidden(&located)).then_some(located)
        });
        let is_open = |found: &Located| {
            !is_special_workspace_path(&found.absolute) && !self.access.is_settings_file(&found.absolute)
        };
        inside.filter(is_open).ok_or_else(|| PathError::Outside(displayed_workspace_path(given)))
    }

    /// How a path is named to the model: relative to the first root where that is possible.
    pub(crate) fn display_name(&self, located: &Located) -> String {
        let path = match located.root {
            0 => located.relative.as_path(),
            _ => located.absolute_path(),
        };
        match path.as_os_str().is_empty() {
            true => ".".to_owned(),
            false => displayed_workspace_path(path),
        }
    }

    pub(crate) fn root_handle(&self, located: &Located) -> &OwnedFd {
        &self.roots[located.root].handle
    }

    pub(crate) fn root_of(&self, located: &Located) -> &Path {
        &self.roots[located.root].path
    }

    /// True if it belongs to the server. A root that lies there is one of the folders that are lent to sessions.
    pub(crate) fn is_hidden(&self, located: &Located) -> bool {
        let hidden = self.hidden.as_ref().filter(|hidden| !self.roots[located.root].path.starts_with(&hidden.path));
        hidden.is_some_and(|hidden| located.absolute.starts_with(&hidden.path))
    }

    /// The same of an open folder on the way down, by what it is: a mount may have put it anywhere.
    pub(crate) fn is_hidden_handle(&self, handle: &OwnedFd) -> bool {
        self.hidden.as_ref().is_some_and(|hidden| hidden.is_same_folder(handle))
    }
}

impl Root {
    fn open(path: &Path, hidden: Option<&HiddenFolder>) -> io::Result<Self> {
        let path = path.canonicalize()?;
        if hidden.is_some_and(|hidden| hidden.contains_path(&path)) {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, "the server's own folder is no workspace"));
        }
        let handle = File::open(&path)?;
        match handle.metadata()?.is_dir() {
            true => Ok(Self { path, handle: handle.into() }),
            false => Err(io::Error::new(io::ErrorKind::NotADirectory, "workspace is not a directory")),
        }
    }
}

impl PathError {
    pub(crate) fn from_io(path: &Path, error: impl Into<io::Error>) -> Self {
        let (path, error) = (displayed_workspace_path(path), error.into());
        match error.kind() == io::ErrorKind::NotFound {
            true => Self::NotFound(path),
            false => Self::Io { path, error: error.kind().into() },
        }
    }
}

/// The path without links; what does not exist yet is kept as it is named.
fn canonicalize_workspace_path(path: &Path) -> Result<PathBuf, PathError> {
    let mut missing = Vec::new();
    let mut existing = path;
    loop {
        match existing.canonicalize() {
            Ok(found) => return Ok(missing.iter().rev().fold(found, |path, name| path.join(name))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(PathError::from_io(path, error)),
        }
        let last = existing.components().next_back();
        let (Some(Component::Normal(name)), Some(parent)) = (last, existing.parent()) else {
            return Err(PathError::NotFound(displayed_workspace_path(path)));
        };
        missing.push(name);
        existing = parent;
    }
}

/// The kernel's own files look regular and are not.
fn is_special_workspace_path(path: &Path) -> bool {
    ["/proc", "/sys", "/dev"].iter().any(|special| path.starts_with(special))
}

fn displayed_workspace_path(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
