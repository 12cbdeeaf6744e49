//! The data directory: what lies where, who may read it, and the locks that make it one server's.

use std::fs::{DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

/// Above this a socket's path may not fit into what the system allows (104 to 108 bytes).
const MAX_SOCKET_PATH_BYTES: usize = 100;

/// Why there is no data directory.
#[derive(Debug, thiserror::Error)]
pub enum PathsError {
    /// Nothing says where home is.
    #[error("no data directory: set HOME, GANDER_DATA or --data")]
    NoHome,
    /// It cannot be made or read.
    #[error("cannot use the data directory, {reason}: {path}")]
    Unusable { path: PathBuf, reason: io::Error },
    /// Somebody else's.
    #[error("directory belongs to another user: {0}")]
    Foreign(PathBuf),
}

/// Where things lie.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paths {
    data: PathBuf,
    /// Holds sockets whose path under the data directory would be too long.
    short: PathBuf,
}

/// A lock on a file, given back when dropped or when the process ends.
#[derive(Debug)]
pub struct DirectoryLock {
    file: File,
}

impl Paths {
    /// The name of the folder that holds the folders of sessions which were given none.
    pub const SCRATCH: &str = "scratch";

    /// Paths under this data directory; a relative one is taken from the current directory.
    pub fn new(data: PathBuf, runtime: Option<&Path>) -> Self {
        let data = std::path::absolute(&data).unwrap_or(data);
        let user = rustix::process::getuid().as_raw();
        let short =
            runtime.map_or_else(|| PathBuf::from(format!("/tmp/gander-{user}")), |runtime| runtime.join("gander"));
        Self { data, short }
    }

    /// The data directory.
    pub fn data_directory(&self) -> &Path {
        &self.data
    }

    /// The owner's token.
    pub fn token_file(&self) -> PathBuf {
        self.data.join("token")
    }

    /// Hashes of further tokens.
    pub fn tokens_file(&self) -> PathBuf {
        self.data.join("tokens.json")
    }

    /// Hashes of the cookies of browsers.
    pub fn browsers_file(&self) -> PathBuf {
        self.data.join("browsers.json")
    }

    /// Logins at servers elsewhere.
    pub fn logins_file(&self) -> PathBuf {
        self.data.join("logins.json")
    }

    /// How far the audit trail was exported.
    pub fn audit_export_file(&self) -> PathBuf {
        self.data.join("audit-export.json")
    }

    /// Secrets that must last.
    pub fn secrets_file(&self) -> PathBuf {
        self.data.join("secrets.json")
    }

    /// Keys of model providers that `gander setup` put away.
    pub fn provider_keys(&self) -> PathBuf {
        self.data.join("keys.json")
    }

    /// Held by the one server of this directory.
    pub fn server_lock(&self) -> PathBuf {
        self.data.join("server.lock")
    }

    /// Held by the process that is a node of a database with this directory.
    pub fn node_lock(&self) -> PathBuf {
        self.data.join("node.lock")
    }

    /// Which node that process is, or was.
    pub fn node_note(&self) -> PathBuf {
        self.data.join("node")
    }

    /// Held by whoever starts a background server.
    pub fn start_lock(&self) -> PathBuf {
        self.data.join("start.lock")
    }

    /// What a background server says.
    pub fn server_log(&self) -> PathBuf {
        self.data.join("server.log")
    }

    /// Folders of sessions that were given none.
    pub fn scratch_folder(&self) -> PathBuf {
        self.data.join(Self::SCRATCH)
    }

    /// What commands in the sandbox leave behind; made anew with each server.
    pub fn temporary_folder(&self) -> PathBuf {
        self.data.join("temporary")
    }

    /// Homes of the programs of MCP servers: what they keep lasts.
    pub fn extensions_folder(&self) -> PathBuf {
        self.data.join("extensions")
    }

    /// What agents in the sandbox keep, a folder for each.
    pub fn agent_homes_folder(&self) -> PathBuf {
        self.data.join("agent-homes")
    }

    /// What protected files held while a command runs, and what was set aside of it.
    pub fn protected_files_folder(&self) -> PathBuf {
        self.data.join("protected")
    }

    /// There while no server has started since a backup was restored: turns that ran when it was made are not resumed.
    pub fn restored(&self) -> PathBuf {
        self.data.join("restored")
    }

    /// Where sockets lie whose path would be too long in the data directory.
    pub fn socket_folder(&self) -> &Path {
        &self.short
    }

    /// Where the server's socket is: as noted by the server, else where it would be put.
    pub fn socket_file(&self) -> PathBuf {
        std::fs::read_to_string(self.socket_note())
            .map_or_else(|_| self.socket_to_bind(), |path| path.trim_end().into())
    }

    /// Where a server puts its socket.
    pub fn socket_to_bind(&self) -> PathBuf {
        let plain = self.data.join("gander.sock");
        if plain.as_os_str().len() <= MAX_SOCKET_PATH_BYTES {
            return plain;
        }
        let digest = Sha256::digest(self.data.as_os_str().as_bytes());
        self.short.join(format!("{}.sock", hex_path_text(&digest[..8])))
    }

    /// Notes a socket that is not in the data directory, and makes the private directory it lies in.
    pub fn note_socket(&self, socket: &Path) -> Result<(), PathsError> {
        let unusable = |path: &Path, reason| PathsError::Unusable { path: path.to_owned(), reason };
        if socket.starts_with(&self.data) {
            return remove_path_if_exists(&self.socket_note()).map_err(|reason| unusable(&self.data, reason));
        }
        create_private_directory(&self.short)?;
        let text = format!("{}\n", socket.display());
        write_private_file(&self.socket_note(), text.as_bytes()).map_err(|reason| unusable(&self.data, reason))
    }

    /// Makes the data directory, for its owner alone.
    ///
    /// One that holds other people's files keeps its mode: the secrets in it have their own.
    pub fn create_folders(&self) -> Result<(), PathsError> {
        let unusable = |reason| PathsError::Unusable { path: self.data.clone(), reason };
        if !self.data.exists() {
            return DirBuilder::new().recursive(true).mode(0o700).create(&self.data).map_err(unusable);
        }
        let mut entries = std::fs::read_dir(&self.data).map_err(unusable)?;
        let metadata = std::fs::metadata(&self.data).map_err(unusable)?;
        if metadata.mode() & 0o077 != 0 && (self.token_file().exists() || entries.next().is_none()) {
            std::fs::set_permissions(&self.data, Permissions::from_mode(0o700)).map_err(unusable)?;
        }
        Ok(())
    }

    fn socket_note(&self) -> PathBuf {
        self.data.join("socket")
    }
}

impl DirectoryLock {
    /// Takes the lock if nobody has it.
    pub fn try_take(path: &Path) -> io::Result<Option<Self>> {
        let file = OpenOptions::new().create(true).truncate(false).read(true).write(true).mode(0o600).open(path)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Self { file })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// Writes into the file which process holds the lock, for whoever has to end it when it does not answer.
    pub fn note_holder(&mut self) -> io::Result<()> {
        self.file.set_len(0)?;
        io::Write::write_all(&mut self.file, format!("{}\n", std::process::id()).as_bytes())
    }

    /// The process that holds this lock. None if nobody does, or if it did not say.
    pub fn holder_pid(path: &Path) -> io::Result<Option<u32>> {
        match Self::try_take(path)? {
            Some(_) => Ok(None),
            None => Ok(std::fs::read_to_string(path)?.trim().parse().ok()),
        }
    }
}

/// Writes a file that only its owner may read, whole or not at all.
pub fn write_private_file(path: &Path, content: &[u8]) -> io::Result<()> {
    std::fs::rename(write_private_draft(path, content)?, path)
}

/// The same for a file that must not be there yet: of several writers at once one succeeds.
pub fn create_private_file(path: &Path, content: &[u8]) -> io::Result<()> {
    let draft = write_private_draft(path, content)?;
    let linked = std::fs::hard_link(&draft, path);
    remove_path_if_exists(&draft)?;
    linked
}

/// Appends to a file, which is made for its owner only, in one write, and syncs it.
pub fn append_private_file(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().create(true).append(true).mode(0o600).open(path)?;
    io::Write::write_all(&mut file, content)?;
    file.sync_data()
}

/// The content on disk, beside where it belongs.
fn write_private_draft(path: &Path, content: &[u8]) -> io::Result<PathBuf> {
    let draft = path.with_extension(format!("draft-{}", std::process::id()));
    remove_path_if_exists(&draft)?;
    let mut file = OpenOptions::new().create_new(true).write(true).mode(0o600).open(&draft)?;
    io::Write::write_all(&mut file, content)?;
    file.sync_all()?;
    Ok(draft)
}

/// Bytes that a file or folder takes up on disk. What cannot be looked at counts nothing; links are not followed.
pub fn disk_use_of_path(path: &Path) -> u64 {
    let Ok(file) = std::fs::symlink_metadata(path) else { return 0 };
    let entries = if file.is_dir() { std::fs::read_dir(path).ok() } else { None };
    let below = entries.into_iter().flatten().flatten().map(|entry| disk_use_of_path(&entry.path()));
    // Blocks of the file system: what a sparse file does not have is not on the disk.
    below.sum::<u64>() + file.blocks() * 512
}

/// The last lines of a file, for error messages.
pub fn last_lines_of_file(path: &Path, lines: usize) -> String {
    let mut text = String::new();
    if File::open(path).and_then(|mut file| file.read_to_string(&mut text)).is_err() {
        return String::new();
    }
    let all: Vec<&str> = text.lines().collect();
    all[all.len().saturating_sub(lines)..].join("\n")
}

/// Bytes as lower-case hexadecimal digits.
pub fn hex_path_text(bytes: &[u8]) -> String {
    let digit = |four: u8| char::from(b"0123456789abcdef"[usize::from(four)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// Makes a directory that only its owner may enter, and refuses one that somebody else made first.
fn create_private_directory(path: &Path) -> Result<(), PathsError> {
    let unusable = |reason| PathsError::Unusable { path: path.to_owned(), reason };
    match DirBuilder::new().mode(0o700).create(path) {
        Ok(()) => return Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(unusable(error)),
    }
    let metadata = std::fs::symlink_metadata(path).map_err(unusable)?;
    if !metadata.is_dir() || metadata.uid() != rustix::process::getuid().as_raw() {
        return Err(PathsError::Foreign(path.to_owned()));
    }
    std::fs::set_permissions(path, Permissions::from_mode(0o700)).map_err(unusable)
}

pub(crate) fn remove_path_if_exists(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().mode() & 0o777
    }

    #[test]
    fn a_new_data_directory_is_private() {
        let root = tempfile::tempdir().unwrap();
        let paths = Paths::new(root.path().join("a/b"), None);
        paths.create_folders().unwrap();
        assert_eq!(mode(paths.data_directory()), 0o700);
    }

    #[test]
    fn an_empty_directory_is_made_private_a_used_one_is_left_alone() {
        let root = tempfile::tempdir().unwrap();
        std::fs::set_permissions(root.path(), Permissions::from_mode(0o755)).unwrap();
        let paths = Paths::new(root.path().to_owned(), None);
        std::fs::write(root.path().join("somebody's"), "").unwrap();
        paths.create_folders().unwrap();
        assert_eq!(mode(root.path()), 0o755);
        std::fs::remove_file(root.path().join("somebody's")).unwrap();
        paths.create_folders().unwrap();
        assert_eq!(mode(root.path()), 0o700);
    }

    #[test]
    fn a_long_socket_path_is_put_elsewhere_and_noted() {
        let root = tempfile::tempdir().unwrap();
        let long = Paths::new(root.path().join("x".repeat(100)), Some(root.path()));
        long.create_folders().unwrap();
        let socket = long.socket_to_bind();
        assert!(socket.as_os_str().len() <= MAX_SOCKET_PATH_BYTES, "{}", socket.display());
        long.note_socket(&socket).unwrap();
        let other_session = Paths::new(long.data_directory().to_owned(), None);
        assert_eq!(other_session.socket_file(), socket);
        assert_eq!(mode(&root.path().join("gander")), 0o700);
    }

    #[test]
    fn a_lock_is_held_once_and_given_back() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("lock");
        let mut held = DirectoryLock::try_take(&path).unwrap();
        assert!(held.is_some());
        assert!(DirectoryLock::try_take(&path).unwrap().is_none());
        assert_eq!(DirectoryLock::holder_pid(&path).unwrap(), None, "it did not say");
        held.as_mut().unwrap().note_holder().unwrap();
        assert_eq!(DirectoryLock::holder_pid(&path).unwrap(), Some(std::process::id()));
        drop(held);
        assert_eq!(DirectoryLock::holder_pid(&path).unwrap(), None);
        assert!(DirectoryLock::try_take(&path).unwrap().is_some());
    }
}
