//! A folder held open: everything below it is reached step by step, never through a link.
//!
//! Whoever restores files acts with the server's rights, so a link that is swapped in must lead nowhere.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use rustix::fs::{AtFlags, Dev, FileType, Mode, OFlags, RawMode, Stat};
use rustix::io::Errno;
use uuid::Uuid;

use super::file_state::{Bytes, Content, FileState};

const WALK: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const READ: OFlags = OFlags::NONBLOCK.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const NEW: OFlags = OFlags::CREATE.union(OFlags::EXCL).union(OFlags::WRONLY).union(READ);

/// Bytes of one file that are kept.
const MAX_FILE_BYTES: u64 = 8 << 20;

/// A folder held open.
pub(super) struct OpenFolder {
    handle: OwnedFd,
    name: OsString,
}

/// How many more bytes may be kept.
pub(super) struct ByteBudget(pub u64);

/// Which folder it is, wherever it is moved.
pub(super) type Identity = (Dev, u64);

impl OpenFolder {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let handle = rustix::fs::open(path, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        Ok(Self { handle, name: path.file_name().unwrap_or_default().to_owned() })
    }

    /// Its own name, which says something about what lies right below it.
    pub(super) fn folder_name(&self) -> &OsStr {
        &self.name
    }

    /// The names right below a folder, and what they are.
    pub(super) fn list_entries(&self, relative: &Path) -> io::Result<Vec<(OsString, FileType)>> {
        let folder = self.open_below(relative)?;
        let mut entries = Vec::new();
        for entry in rustix::fs::Dir::read_from(&folder)? {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name == "." || name == ".." {
                continue;
            }
            let known = entry.file_type();
            // Some file systems do not say.
            let kind = match known == FileType::Unknown {
                true => file_type_in_folder(&rustix::fs::statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW)?),
                false => known,
            };
            entries.push((name.to_owned(), kind));
        }
        Ok(entries)
    }

    pub(super) fn file_identity(&self, relative: &Path) -> io::Result<Identity> {
        let stat = rustix::fs::fstat(self.open_below(relative)?)?;
        Ok((stat.st_dev, stat.st_ino))
    }

    /// What stands there; a folder counts as nothing, for it runs nothing by itself.
    pub(super) fn read_state(&self, relative: &Path, budget: &mut ByteBudget) -> io::Result<Option<FileState>> {
        let Some(name) = relative.file_name() else { return Ok(None) };
        let parent = match self.open_below(parent_in_folder(relative)) {
            Ok(parent) => parent,
            Err(error) if is_missing_folder(&error) => return Ok(None),
            Err(error) => return Err(error),
        };
        let stat = match rustix::fs::statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            Err(Errno::NOENT) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        match file_type_in_folder(&stat) {
            FileType::Directory => Ok(None),
            FileType::RegularFile => read_file_state_in_folder(&parent, name, &stat, budget).map(Some),
            FileType::Symlink => {
                let target = rustix::fs::readlinkat(&parent, name, Vec::new())?;
                Ok(Some(FileState::Link { target: target.to_string_lossy().into_owned() }))
            }
            FileType::Fifo
            | FileType::Socket
            | FileType::CharacterDevice
            | FileType::BlockDevice
            | FileType::Unknown => Ok(Some(FileState::Other { kind: stat.st_mode & 0o170_000 })),
        }
    }

    /// True if something of this name is there.
    pub(super) fn contains(&self, relative: &Path) -> bool {
        let Some(name) = relative.file_name() else { return false };
        let parent = self.open_below(parent_in_folder(relative));
        parent.is_ok_and(|parent| rustix::fs::statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW).is_ok())
    }

    /// Seconds since 1970 at which something was last done to what stands there.
    pub(super) fn change_time(&self, relative: &Path) -> io::Result<i64> {
        let name = relative.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let stat = rustix::fs::statat(self.open_below(parent_in_folder(relative))?, name, AtFlags::SYMLINK_NOFOLLOW)?;
        Ok(stat.st_ctime)
    }

    /// Removes a file or a link, and folders that are empty without it, up to `keep`.
    pub(super) fn remove(&self, relative: &Path, keep: &Path) -> io::Result<()> {
        let name = relative.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        rustix::fs::unlinkat(self.open_below(parent_in_folder(relative))?, name, AtFlags::empty())?;
        let mut emptied = parent_in_folder(relative);
        while emptied != keep && emptied.starts_with(keep) {
            let Some(name) = emptied.file_name() else { break };
            let above = self.open_below(parent_in_folder(emptied))?;
            if rustix::fs::unlinkat(&above, name, AtFlags::REMOVEDIR).is_err() {
                break; // it holds something else
            }
            emptied = parent_in_folder(emptied);
        }
        Ok(())
    }

    /// Puts this there at once; what is in its way is moved aside under another name.
    pub(super) fn write_state(&self, relative: &Path, state: &FileState) -> io::Result<()> {
        let name = relative.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let parent = self.create_below(parent_in_folder(relative))?;
        let temporary = format!(".gander-{}.tmp", Uuid::now_v7());
        match state {
            FileState::File { mode, content: Content::Whole(Bytes(bytes)) } => {
                write_file_in_folder(&parent, &temporary, *mode, bytes)?
            }
            FileState::Link { target } => rustix::fs::symlinkat(target, &parent, &temporary)?,
            FileState::File { content: Content::Large { .. }, .. } | FileState::Other { .. } => {
                return Err(io::Error::new(io::ErrorKind::Unsupported, "it was not kept"));
            }
        }
        match rustix::fs::renameat(&parent, &temporary, &parent, name) {
            Err(Errno::ISDIR | Errno::NOTEMPTY | Errno::EXIST) => {
                move_aside_in_folder(&parent, name)?;
                Ok(rustix::fs::renameat(&parent, &temporary, &parent, name)?)
            }
            done => Ok(done?),
        }
    }

    /// Moves a folder back to where it was.
    pub(super) fn move_folder(&self, from: &Path, to: &Path) -> io::Result<()> {
        let (from_name, to_name) = (from.file_name(), to.file_name());
        let (Some(from_name), Some(to_name)) = (from_name, to_name) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let (from, to) = (self.open_below(parent_in_folder(from))?, self.create_below(parent_in_folder(to))?);
        if rustix::fs::statat(&to, to_name, AtFlags::SYMLINK_NOFOLLOW).is_ok() {
            move_aside_in_folder(&to, to_name)?;
        }
        Ok(rustix::fs::renameat(&from, from_name, &to, to_name)?)
    }

    fn open_below(&self, relative: &Path) -> io::Result<OwnedFd> {
        relative.iter().try_fold(self.handle.try_clone()?, |parent, name| {
            Ok(rustix::fs::openat(&parent, name, WALK, Mode::empty())?)
        })
    }

    fn create_below(&self, relative: &Path) -> io::Result<OwnedFd> {
        relative.iter().try_fold(self.handle.try_clone()?, |parent, name| {
            match rustix::fs::openat(&parent, name, WALK, Mode::empty()) {
                Ok(folder) => return Ok(folder),
                Err(Errno::NOENT) => {}
                Err(Errno::NOTDIR | Errno::LOOP) => move_aside_in_folder(&parent, name)?,
                Err(error) => return Err(error.into()),
            }
            rustix::fs::mkdirat(&parent, name, Mode::from_raw_mode(0o777))?;
            Ok(rustix::fs::openat(&parent, name, WALK, Mode::empty())?)
        })
    }
}

fn read_file_state_in_folder(
    parent: &OwnedFd,
    name: &OsStr,
    stat: &Stat,
    budget: &mut ByteBudget,
) -> io::Result<FileState> {
    let (mode, size) = (stat.st_mode & 0o7777, u64::try_from(stat.st_size).unwrap_or(u64::MAX));
    let stamp = (stat.st_mtime, stat.st_ctime, stat.st_ino);
    if size > MAX_FILE_BYTES.min(budget.0) {
        return Ok(FileState::File { mode, content: Content::Large { size, stamp } });
    }
    let mut bytes = Vec::new();
    let file = rustix::fs::openat(parent, name, READ, Mode::empty());
    // What the server itself may not read says nothing to it but when it was changed.
    let Ok(file) = file else { return Ok(FileState::File { mode, content: Content::Large { size, stamp } }) };
    File::from(file).take(MAX_FILE_BYTES).read_to_end(&mut bytes)?;
    budget.0 = budget.0.saturating_sub(bytes.len() as u64);
    Ok(FileState::File { mode, content: Content::Whole(Bytes(bytes)) })
}

fn write_file_in_folder(parent: &OwnedFd, name: &str, mode: RawMode, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::from(rustix::fs::openat(parent, name, NEW, Mode::from_raw_mode(0o600))?);
    file.write_all(bytes)?;
    rustix::fs::fchmod(&file, Mode::from_raw_mode(mode))?;
    file.sync_data()
}

fn move_aside_in_folder(parent: &OwnedFd, name: &OsStr) -> io::Result<()> {
    let mut aside = name.to_owned();
    aside.push(format!(".set-aside-{}", Uuid::now_v7().simple()));
    Ok(rustix::fs::renameat(parent, name, parent, aside)?)
}

fn file_type_in_folder(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

fn parent_in_folder(relative: &Path) -> &Path {
    relative.parent().unwrap_or(Path::new(""))
}

/// There is no such folder any more, or something else in its place.
fn is_missing_folder(error: &io::Error) -> bool {
    let gone = [Errno::NOENT, Errno::NOTDIR, Errno::LOOP].map(Errno::raw_os_error);
    error.raw_os_error().is_some_and(|code| gone.contains(&code))
}
