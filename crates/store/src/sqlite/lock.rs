//! One process per data directory.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use sqlx::ConnectOptions;
use sqlx::sqlite::SqliteConnection;

use super::failure::sqlite_store_error;
use super::open;
use crate::StoreError;

/// Holds the directory until it is dropped, or the process dies.
#[derive(Debug)]
pub(super) struct StoreLock {
    _file: File,
}

/// The file of a data directory that nobody else has open.
pub(crate) struct ExclusiveFile {
    pub(crate) connection: SqliteConnection,
    _lock: StoreLock,
}

/// Opens the file with the schema of this version, making both if need be.
pub(crate) async fn open_exclusive(directory: &Path) -> Result<ExclusiveFile, StoreError> {
    let (lock, path) = lock_store_file(directory)?;
    drop(open::open_writer(&path, None)?);
    let options = open::connect_options(&path).pragma("secure_delete", "ON");
    let connection = options.connect().await.map_err(sqlite_store_error)?;
    Ok(ExclusiveFile { connection, _lock: lock })
}

/// Takes the directory, and makes the file in it if there is none.
pub(super) fn lock_store_file(directory: &Path) -> Result<(StoreLock, PathBuf), StoreError> {
    let lock = StoreLock::lock_directory(directory)?;
    let path = directory.join("log.db");
    if !path.exists() {
        open::make_log_file(directory, &path)?;
        sync_locked_directory(directory)?;
    }
    Ok((lock, path))
}

impl StoreLock {
    /// Takes the directory, making it if need be.
    pub(super) fn lock_directory(directory: &Path) -> Result<Self, StoreError> {
        let make = || DirBuilder::new().recursive(true).mode(0o700).create(directory);
        make().map_err(|error| StoreError::Failed(format!("cannot make {}: {error}", directory.display())))?;
        let mut file = open_private_lock_file(&directory.join("log.lock"))?;
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            return Err(StoreError::Locked(read_lock_holder(&mut file)));
        }
        write_lock_holder(&mut file)
            .map_err(|error| StoreError::Failed(format!("cannot write the lock file: {error}")))?;
        Ok(Self { _file: file })
    }
}

/// Makes sure that a new file is found again after a power cut.
pub(super) fn sync_locked_directory(directory: &Path) -> Result<(), StoreError> {
    let sync = File::open(directory).and_then(|directory| directory.sync_all());
    sync.map_err(|error| StoreError::Failed(format!("cannot sync {}: {error}", directory.display())))
}

/// Opens or makes a file that only we may read.
pub(super) fn open_private_lock_file(path: &Path) -> Result<File, StoreError> {
    let open = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path);
    open.map_err(|error| StoreError::Failed(format!("cannot open {}: {error}", path.display())))
}

fn read_lock_holder(file: &mut File) -> String {
    let mut pid = String::new();
    match file.read_to_string(&mut pid) {
        Ok(_) if !pid.trim().is_empty() => pid.trim().to_owned(),
        Ok(_) | Err(_) => "unknown".to_owned(),
    }
}

fn write_lock_holder(file: &mut File) -> std::io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    writeln!(file, "{}", std::process::id())
}
