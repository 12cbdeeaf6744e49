//! Reading and writing inside the workspace: handle by handle, never through a link, regular files only.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use uuid::Uuid;

use crate::permission::is_secret_path;
use crate::{Located, PathError, Workspace};

const WALK: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const READ: OFlags = OFlags::NONBLOCK.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const NEW: OFlags = OFlags::CREATE.union(OFlags::EXCL).union(OFlags::WRONLY).union(READ);

impl Workspace {
    /// Opens a directory.
    pub(crate) fn open_directory(&self, located: &Located) -> Result<OwnedFd, PathError> {
        self.open_folder_beneath(located, &located.relative)
    }

    /// Opens a regular file of at most so many bytes.
    pub(crate) fn open_file(&self, located: &Located, limit: u64) -> Result<File, PathError> {
        let path = located.absolute_path();
        let parent = self.open_parent(located)?;
        let name = opened_file_name(located)?;
        check_regular_file(
            path,
            &rustix::fs::statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW).map_err(|e| file_opener_error(path, e))?,
        )?;
        let file = rustix::fs::openat(&parent, name, READ, Mode::empty()).map_err(|e| file_opener_error(path, e))?;
        let stat = rustix::fs::fstat(&file).map_err(|e| file_opener_error(path, e))?;
        check_regular_file(path, &stat)?;
        match u64::try_from(stat.st_size).is_ok_and(|size| size <= limit) {
            true => Ok(file.into()),
            false => Err(PathError::TooLarge { path: path.to_string_lossy().into_owned(), limit }),
        }
    }

    /// The bytes of a regular file.
    pub(crate) fn read_file(&self, located: &Located, limit: u64) -> Result<Vec<u8>, PathError> {
        let mut bytes = Vec::new();
        let file = self.open_file(located, limit)?;
        file.take(limit).read_to_end(&mut bytes).map_err(|error| PathError::from_io(located.absolute_path(), error))?;
        Ok(bytes)
    }

    /// A file's text for a client, or for a model that did not ask by a call: not of a file that holds secrets by its
    /// name, and with the secrets in it masked.
    pub fn read_redacted(&self, given: &str, limit: u64) -> Result<(Located, String), PathError> {
        let located = self.locate_path(given)?;
        if self.is_secret(&located) || is_secret_path(Path::new(given)) {
            return Err(PathError::Secret(given.to_owned()));
        }
        let text = self.read_text(&located, limit)?;
        Ok((located, self.file_access().redact_text(&text)))
    }

    /// By its name inside the root and the root's own. What lies above says nothing about it: a person's notes may lie
    /// in a folder of settings.
    fn is_secret(&self, located: &Located) -> bool {
        let root = self.root_of(located).file_name().map(Path::new).unwrap_or(Path::new(""));
        is_secret_path(&root.join(&located.relative))
    }

    /// A file's bytes as they are, for the server's own use or for a page that its owner published: nothing of it goes
    /// to a model.
    pub fn read_plain(&self, given: &str, limit: u64) -> Result<Vec<u8>, PathError> {
        self.read_file(&self.locate_path(given)?, limit)
    }

    /// The text of a regular file, with the secrets in it: whoever shows it masks them.
    pub(crate) fn read_text(&self, located: &Located, limit: u64) -> Result<String, PathError> {
        let text = String::from_utf8(self.read_file(located, limit)?).ok();
        text.filter(|text| !text.contains('\0'))
            .ok_or_else(|| PathError::NotText(located.absolute_path().to_string_lossy().into_owned()))
    }

    /// Replaces or makes a regular file at once: readers see the old text or the new one. Its mode stays.
    pub(crate) fn write_file(&self, located: &Located, bytes: &[u8]) -> Result<(), PathError> {
        let path = located.absolute_path();
        let name = opened_file_name(located)?;
        let parent = self.make_parent(located)?;
        let old = match rustix::fs::statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => check_regular_file(path, &stat).map(|()| Some(stat))?,
            Err(Errno::NOENT) => None,
            Err(error) => return Err(file_opener_error(path, error)),
        };
        let temporary = format!(".gander-{}.tmp", Uuid::now_v7());
        let placed = write_opener_temporary(&parent, &temporary, old.as_ref(), bytes)
            .and_then(|()| Ok(rustix::fs::renameat(&parent, &temporary, &parent, name)?));
        placed.map_err(|error| {
            if let Err(error) = rustix::fs::unlinkat(&parent, &temporary, AtFlags::empty()) {
                tracing::debug!(%error, "a half-made file stays, or was never made");
            }
            PathError::from_io(path, error)
        })
    }

    fn open_parent(&self, located: &Located) -> Result<OwnedFd, PathError> {
        self.open_folder_beneath(located, located.relative.parent().unwrap_or(Path::new("")))
    }

    fn open_folder_beneath(&self, located: &Located, relative: &Path) -> Result<OwnedFd, PathError> {
        let path = located.absolute_path();
        let top = self.root_handle(located).try_clone().map_err(|error| PathError::from_io(path, error))?;
        relative.iter().try_fold(top, |parent, name| self.open_child_folder(&parent, name, path))
    }

    fn open_child_folder(&self, parent: &OwnedFd, name: &OsStr, path: &Path) -> Result<OwnedFd, PathError> {
        let folder =
            rustix::fs::openat(parent, name, WALK, Mode::empty()).map_err(|error| file_opener_error(path, error))?;
        match self.is_hidden_handle(&folder) {
            true => Err(PathError::Outside(path.to_string_lossy().into_owned())),
            false => Ok(folder),
        }
    }

    fn make_parent(&self, located: &Located) -> Result<OwnedFd, PathError> {
        let path = located.absolute_path();
        let relative = located.relative.parent().unwrap_or(Path::new(""));
        let top = self.root_handle(located).try_clone().map_err(|error| PathError::from_io(path, error))?;
        relative.iter().try_fold(top, |parent, name| {
            match rustix::fs::mkdirat(&parent, name, Mode::from_raw_mode(0o777)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(file_opener_error(path, error)),
            }
            self.open_child_folder(&parent, name, path)
        })
    }
}

fn write_opener_temporary(parent: &OwnedFd, name: &str, old: Option<&Stat>, bytes: &[u8]) -> std::io::Result<()> {
    let mode = if old.is_some() { 0o600 } else { 0o666 };
    let mut file = File::from(rustix::fs::openat(parent, name, NEW, Mode::from_raw_mode(mode))?);
    file.write_all(bytes)?;
    if let Some(old) = old {
        rustix::fs::fchmod(&file, Mode::from_raw_mode(old.st_mode & 0o7777))?;
    }
    file.sync_data()
}

fn opened_file_name(located: &Located) -> Result<&OsStr, PathError> {
    let name = located.relative.file_name();
    name.ok_or_else(|| PathError::NotRegular(located.absolute_path().to_string_lossy().into_owned()))
}

fn check_regular_file(path: &Path, stat: &Stat) -> Result<(), PathError> {
    match FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile {
        true => Ok(()),
        false => Err(PathError::NotRegular(path.to_string_lossy().into_owned())),
    }
}

fn file_opener_error(path: &Path, error: Errno) -> PathError {
    match error {
        // A link where none was: somebody swapped it since the path was looked up.
        Errno::LOOP => PathError::Outside(path.to_string_lossy().into_owned()),
        Errno::NOTDIR => PathError::NotDirectory(path.to_string_lossy().into_owned()),
        other => PathError::from_io(path, other),
    }
}
