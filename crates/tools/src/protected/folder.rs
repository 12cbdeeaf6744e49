//! A folder held open: everything below it is reached step by step, never through a link.
//!
//! Whoever restores files acts with the server's rights, so a link that is swapped in must lead nowhere.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use uuid::Uuid;

use super::state::{Bytes, Content, State};

const WALK: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const READ: OFlags = OFlags::NONBLOCK.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
const NEW: OFlags = OFlags::CREATE.union(OFlags::EXCL).union(OFlags::WRONLY).union(READ);

/// Bytes of one file that are kept.
const LARGEST: u64 = 8 << 20;

/// A folder held open.
pub(super) struct Folder {
    handle: OwnedFd,
    name: OsString,
}

/// How many more bytes may be kept.
pub(super) struct Room(pub u64);

/// Which folder it is, wherever it is moved.
pub(super) type Identity = (u64, u64);

impl Folder {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let handle = rustix::fs::open(path, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        Ok(Self { handle, name: path.file_name().unwrap_or_default().to_owned() })
    }

    /// Its own name, which says something about what lies right below it.
    pub(super) fn name(&self) -> &OsStr {
        &self.name
    }

    /// The names right below a folder, and what they are.
    pub(super) fn list(&self, relative: &Path) -> io::Result<Vec<(OsString, FileType)>> {
        let folder = self.descend(relative)?;
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
                true => kind(&rustix::fs::statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW)?),
                false => known,
            };
            entries.push((name.to_owned(), kind));
        }
        Ok(entries)
    }

    pub(super) fn identity(&self, relative: &Path) -> io::Result<Identity> {
        let stat = rustix::fs::fstat(self.descend(relative)?)?;
        Ok((stat.st_dev, stat.st_ino))
    }

    /// What stands there; a folder counts as nothing, for it runs nothing by itself.
    pub(super) fn state(&self, relative: &Path, room: &mut Room) -> io::Result<Option<State>> {
        let Some(name) = relative.file_name() else { return Ok(None) };
        let parent = match self.descend(parent(relative)) {
            Ok(parent) => parent,
            Err(error) if is_gone(&error) => return Ok(None),
            Err(error) => return Err(error),
        };
        let stat = match rustix::fs::statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            Err(Errno::NOENT) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        match kind(&stat) {
            FileType::Directory => Ok(None),
            FileType::RegularFile => read(&parent, name, &stat, room).map(Some),
            FileType::Symlink => {
                let target = rustix::fs::readlinkat(&parent, name, Vec::new())?;
                Ok(Some(State::Link { target: target.to_string_lossy().into_owned() }))
            }
            FileType::Fifo
            | FileType::Socket
            | FileType::CharacterDevice
            | FileType::BlockDevice
            | FileType::Unknown => Ok(Some(State::Other { kind: stat.st_mode & 0o170_000 })),
        }
    }

    /// True if something of this name is there.
    pub(super) fn holds(&self, relative: &Path) -> bool {
        let Some(name) = relative.file_name() else { return false };
        let parent = self.descend(parent(relative));
        parent.is_ok_and(|parent| rustix::fs::statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW).is_ok())
    }

    /// Seconds since 1970 at which something was last done to what stands there.
    pub(super) fn changed_at(&self, relative: &Path) -> io::Result<i64> {
        let name = relative.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let stat = rustix::fs::statat(self.descend(parent(relative))?, name, AtFlags::SYMLINK_NOFOLLOW)?;
        Ok(stat.st_ctime)
    }

    /// Removes a file or a link, and folders that are empty without it, up to `keep`.
    pub(super) fn remove(&self, relative: &Path, keep: &Path) -> io::Result<()> {
        let name = relative.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        rustix::fs::unlinkat(self.descend(parent(relative))?, name, AtFlags::empty())?;
        let mut emptied = parent(relative);
        while emptied != keep && emptied.starts_with(keep) {
            let Some(name) = emptied.file_name() else { break };
            let above = self.descend(parent(emptied))?;
            if rustix::fs::unlinkat(&above, name, AtFlags::REMOVEDIR).is_err() {
                break; // it holds something else
            }
            emptied = parent(emptied);
        }
        Ok(())
    }

    /// Puts this there at once; what is in its way is moved aside under another name.
    pub(super) fn place(&self, relative: &Path, state: &State) -> io::Result<()> {
        let name = relative.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let parent = self.make(parent(relative))?;
        let temporary = format!(".gander-{}.tmp", Uuid::now_v7());
        match state {
            State::File { mode, content: Content::Whole(Bytes(bytes)) } => fill(&parent, &temporary, *mode, bytes)?,
            State::Link { target } => rustix::fs::symlinkat(target, &parent, &temporary)?,
            State::File { content: Content::Large { .. }, .. } | State::Other { .. } => {
                return Err(io::Error::new(io::ErrorKind::Unsupported, "it was not kept"));
            }
        }
        match rustix::fs::renameat(&parent, &temporary, &parent, name) {
            Err(Errno::ISDIR | Errno::NOTEMPTY | Errno::EXIST) => {
                move_aside(&parent, name)?;
                Ok(rustix::fs::renameat(&parent, &temporary, &parent, name)?)
            }
            done => Ok(done?),
        }
    }

    /// Moves a folder back to where it was.
    pub(super) fn move_back(&self, from: &Path, to: &Path) -> io::Result<()> {
        let (from_name, to_name) = (from.file_name(), to.file_name());
        let (Some(from_name), Some(to_name)) = (from_name, to_name) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let (from, to) = (self.descend(parent(from))?, self.make(parent(to))?);
        if rustix::fs::statat(&to, to_name, AtFlags::SYMLINK_NOFOLLOW).is_ok() {
            move_aside(&to, to_name)?;
        }
        Ok(rustix::fs::renameat(&from, from_name, &to, to_name)?)
    }

    fn descend(&self, relative: &Path) -> io::Result<OwnedFd> {
        relative.iter().try_fold(self.handle.try_clone()?, |parent, name| {
            Ok(rustix::fs::openat(&parent, name, WALK, Mode::empty())?)
        })
    }

    fn make(&self, relative: &Path) -> io::Result<OwnedFd> {
        relative.iter().try_fold(self.handle.try_clone()?, |parent, name| {
            match rustix::fs::openat(&parent, name, WALK, Mode::empty()) {
                Ok(folder) => return Ok(folder),
                Err(Errno::NOENT) => {}
                Err(Errno::NOTDIR | Errno::LOOP) => move_aside(&parent, name)?,
                Err(error) => return Err(error.into()),
            }
            rustix::fs::mkdirat(&parent, name, Mode::from_raw_mode(0o777))?;
            Ok(rustix::fs::openat(&parent, name, WALK, Mode::empty())?)
        })
    }
}

fn read(parent: &OwnedFd, name: &OsStr, stat: &Stat, room: &mut Room) -> io::Result<State> {
    let (mode, size) = (stat.st_mode & 0o7777, u64::try_from(stat.st_size).unwrap_or(u64::MAX));
    let stamp = (stat.st_mtime, stat.st_ctime, stat.st_ino);
    if size > LARGEST.min(room.0) {
        return Ok(State::File { mode, content: Content::Large { size, stamp } });
    }
    let mut bytes = Vec::new();
    let file = rustix::fs::openat(parent, name, READ, Mode::empty());
    // What the server itself may not read says nothing to it but when it was changed.
    let Ok(file) = file else { return Ok(State::File { mode, content: Content::Large { size, stamp } }) };
    File::from(file).take(LARGEST).read_to_end(&mut bytes)?;
    room.0 = room.0.saturating_sub(bytes.len() as u64);
    Ok(State::File { mode, content: Content::Whole(Bytes(bytes)) })
}

fn fill(parent: &OwnedFd, name: &str, mode: u32, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::from(rustix::fs::openat(parent, name, NEW, Mode::from_raw_mode(0o600))?);
    file.write_all(bytes)?;
    rustix::fs::fchmod(&file, Mode::from_raw_mode(mode))?;
    file.sync_data()
}

fn move_aside(parent: &OwnedFd, name: &OsStr) -> io::Result<()> {
    let mut aside = name.to_owned();
    aside.push(format!(".set-aside-{}", Uuid::now_v7().simple()));
    Ok(rustix::fs::renameat(parent, name, parent, aside)?)
}

fn kind(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

fn parent(relative: &Path) -> &Path {
    relative.parent().unwrap_or(Path::new(""))
}

/// There is no such folder any more, or something else in its place.
fn is_gone(error: &io::Error) -> bool {
    let gone = [Errno::NOENT, Errno::NOTDIR, Errno::LOOP].map(Errno::raw_os_error);
    error.raw_os_error().is_some_and(|code| gone.contains(&code))
}
