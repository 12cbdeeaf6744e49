//! One file that holds the whole log and other files beside it: written while a server runs, verified when it is read.
//!
//! It is a SQLite database itself: the log's own tables, as `VACUUM INTO` copies them from one snapshot, and two more.
//! So nothing but SQLite is needed to look into one.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use gander_domain::Timestamp;
use sha2::{Digest as _, Sha256};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteJournalMode};
use sqlx::{ConnectOptions, Connection, Row};

use super::failure::sqlite_store_error;
use super::{lock, open, reclaim};
use crate::StoreError;

/// A file is kept in pieces of this size: a row has a limit, and so has memory.
const PIECE_BYTES: usize = 1 << 20;

/// Incarnations of restored logs begin at the seconds since 2020: the same backup may be restored twice, and a cursor of
/// the first time must not fit the second.
const INCARNATION_EPOCH_SECONDS: i64 = 1_577_836_800;

const TABLES_SQL: &str = "CREATE TABLE backup_info (made_at INTEGER NOT NULL, version TEXT NOT NULL, data TEXT NOT NULL);\n\
     CREATE TABLE backup_file (name TEXT NOT NULL, part INTEGER NOT NULL, kind TEXT NOT NULL, mode INTEGER NOT NULL, \
     body BLOB NOT NULL, PRIMARY KEY (name, part)) WITHOUT ROWID;";

/// Before the digest at the end of the file. SQLite does not look there: its header says where the database ends.
const TRAILER: &[u8; 8] = b"gander\x00\x01";

const DIGEST_BYTES: usize = 32;

/// What a backup says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackupInfo {
    /// When it was made.
    pub made_at: Timestamp,
    /// The version that made it.
    pub version: String,
    /// The data directory that it was made of.
    pub data: String,
    /// Sessions in it.
    pub sessions: u64,
    /// Questions in it that nobody has answered.
    pub open_questions: u64,
}

/// What a name in a backup means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackupFileKind {
    /// A folder.
    Folder,
    /// A file with its content.
    File,
    /// A symbolic link; its content is where it leads.
    Link,
}

/// One name in a backup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackupFile {
    /// Its path, with slashes, relative to nothing in particular.
    pub name: String,
    /// What it is.
    pub kind: BackupFileKind,
    /// Its permissions.
    pub mode: u32,
}

/// A backup that is being written.
pub struct BackupWriter {
    connection: SqliteConnection,
    path: PathBuf,
}

impl BackupWriter {
    /// Copies the log of a data directory into a new file for its owner alone. The log is only read, in one snapshot:
    /// whatever a server adds meanwhile is not in it.
    pub async fn create(directory: &Path, target: &Path) -> Result<Self, StoreError> {
        // SQLite fills an empty file, and leaves its permissions.
        drop(lock::open_private_lock_file(target)?);
        let mut log = open::connect_options(&directory.join("log.db"))
            .read_only(true)
            .connect()
            .await
            .map_err(sqlite_store_error)?;
        let name = target.to_str().ok_or_else(|| StoreError::Failed("the backup's path is no text".to_owned()))?;
        sqlx::query("VACUUM INTO ?").bind(name).execute(&mut log).await.map_err(sqlite_store_error)?;
        log.close().await.map_err(sqlite_store_error)?;
        // Nobody reads it before it is whole: it needs no journal on the disk.
        let options = backup_file_options(target).journal_mode(SqliteJournalMode::Memory);
        let mut connection = options.connect().await.map_err(sqlite_store_error)?;
        sqlx::raw_sql(TABLES_SQL).execute(&mut connection).await.map_err(sqlite_store_error)?;
        sqlx::raw_sql("BEGIN").execute(&mut connection).await.map_err(sqlite_store_error)?;
        Ok(Self { connection, path: target.to_owned() })
    }

    /// Adds a file, folder or link with its content.
    pub async fn add(&mut self, file: &BackupFile, mut content: impl Read + Send) -> Result<(), StoreError> {
        let mut piece = Vec::new();
        for part in 0.. {
            piece.clear();
            let unreadable = |error| StoreError::Failed(format!("cannot read {}: {error}", file.name));
            (&mut content).take(PIECE_BYTES as u64).read_to_end(&mut piece).map_err(unreadable)?;
            if piece.is_empty() && part > 0 {
                break;
            }
            let insert = sqlx::query("INSERT INTO backup_file VALUES (?, ?, ?, ?, ?)").bind(&file.name).bind(part);
            let insert = insert.bind(backup_kind_name(file.kind)).bind(i64::from(file.mode)).bind(&piece);
            insert.execute(&mut self.connection).await.map_err(sqlite_store_error)?;
        }
        Ok(())
    }

    /// Completes it, safe on the disk.
    pub async fn finish(mut self, made_at: Timestamp, version: &str, data: &str) -> Result<BackupInfo, StoreError> {
        let insert = sqlx::query("INSERT INTO backup_info VALUES (?, ?, ?)").bind(made_at.as_micros()).bind(version);
        insert.bind(data).execute(&mut self.connection).await.map_err(sqlite_store_error)?;
        sqlx::raw_sql("COMMIT").execute(&mut self.connection).await.map_err(sqlite_store_error)?;
        let info = read_backup_info(&mut self.connection).await?;
        self.connection.close().await.map_err(sqlite_store_error)?;
        append_backup_digest(&self.path)
            .map_err(|error| StoreError::Failed(format!("cannot complete the backup: {error}")))?;
        Ok(info)
    }
}

/// A backup that was verified.
pub struct BackupReader {
    connection: SqliteConnection,
    /// What it says of itself.
    pub info: BackupInfo,
    /// Where the database in it ends.
    length: u64,
}

impl BackupReader {
    /// Opens a backup and verifies it: every byte is what was written, and the database is in order.
    pub async fn open(path: &Path) -> Result<Self, StoreError> {
        let broken = |why: String| StoreError::Corrupt(format!("{}: {why}", path.display()));
        let length = verified_backup_length(path)
            .map_err(|error| StoreError::Failed(format!("cannot read {}: {error}", path.display())))?;
        let length = length.ok_or_else(|| broken("not a backup, or a damaged one".to_owned()))?;
        let options = backup_file_options(path).read_only(true).immutable(true);
        let mut connection = options.connect().await.map_err(sqlite_store_error)?;
        let info = read_backup_info(&mut connection).await?;
        let version =
            sqlx::query("PRAGMA user_version").fetch_one(&mut connection).await.map_err(sqlite_store_error)?;
        open::check_schema_version(version.get(0))?;
        let check =
            sqlx::query("PRAGMA integrity_check(1)").fetch_one(&mut connection).await.map_err(sqlite_store_error)?;
        match check.get::<&str, _>(0) {
            "ok" => Ok(Self { connection, info, length }),
            problem => Err(broken(format!("the database in it is damaged: {problem}"))),
        }
    }

    /// The files in it, folders before what is in them.
    pub async fn files(&mut self) -> Result<Vec<BackupFile>, StoreError> {
        let query = sqlx::query("SELECT name, kind, mode FROM backup_file WHERE part = 0 ORDER BY name");
        let rows = query.fetch_all(&mut self.connection).await.map_err(sqlite_store_error)?;
        let file = |row: &sqlx::sqlite::SqliteRow| {
            let kind: String = row.get(1);
            let mode = u32::try_from(row.get::<i64, _>(2)).unwrap_or(0o600);
            let unknown = || StoreError::Corrupt(format!("a backup holds something of a kind unknown here: {kind}"));
            Ok(BackupFile { name: row.get(0), kind: parse_backup_kind(&kind).ok_or_else(unknown)?, mode })
        };
        rows.iter().map(file).collect()
    }

    /// Writes a file's content.
    pub async fn read(&mut self, name: &str, mut to: impl Write + Send) -> Result<(), StoreError> {
        for part in 0.. {
            let query = sqlx::query("SELECT body FROM backup_file WHERE name = ? AND part = ?").bind(name).bind(part);
            let row = query.fetch_optional(&mut self.connection).await.map_err(sqlite_store_error)?;
            let Some(row) = row else { break };
            let failed = |error| StoreError::Failed(format!("cannot write {name}: {error}"));
            to.write_all(row.get::<&[u8], _>(0)).map_err(failed)?;
        }
        Ok(())
    }

    /// Makes the log of a data directory from it: a new incarnation, so that cursors of before are refused. Private folders
    /// of sessions lie below `data` from now on.
    pub async fn restore_log(
        self,
        backup: &Path,
        target: &Path,
        data: &Path,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let Self { connection, info, length } = self;
        connection.close().await.map_err(sqlite_store_error)?;
        let mut file = lock::open_private_lock_file(target)?;
        let copied = File::open(backup).and_then(|from| io::copy(&mut from.take(length), &mut file));
        copied
            .and_then(|_| file.sync_all())
            .map_err(|error| StoreError::Failed(format!("cannot copy the log: {error}")))?;
        let mut connection =
            backup_file_options(target).pragma("secure_delete", "ON").connect().await.map_err(sqlite_store_error)?;
        let since = (now.as_micros() / 1_000_000).saturating_sub(INCARNATION_EPOCH_SECONDS).max(0);
        let incarnation = sqlx::query("UPDATE meta SET incarnation = MAX(incarnation + 1, ?), clean = 1, boot = ''");
        incarnation.bind(since).execute(&mut connection).await.map_err(sqlite_store_error)?;
        move_backed_up_folders(&mut connection, &info.data, &data.to_string_lossy()).await?;
        // Views hold folders too; they are only a cache.
        let drop_tables = "DELETE FROM snapshot; DROP TABLE backup_info; DROP TABLE backup_file;";
        sqlx::raw_sql(drop_tables).execute(&mut connection).await.map_err(sqlite_store_error)?;
        connection.close().await.map_err(sqlite_store_error)?;
        reclaim::rewrite_file(target)
    }
}

/// The first entry of a session says where it works. A private folder moves with the data directory.
async fn move_backed_up_folders(connection: &mut SqliteConnection, from: &str, to: &str) -> Result<(), StoreError> {
    let (from, to) = (format!("{from}/scratch/"), format!("{to}/scratch/"));
    if from == to {
        return Ok(());
    }
    let update = sqlx::query(
        "UPDATE session SET workspace = ?2 || SUBSTR(workspace, LENGTH(?1) + 1) \
         WHERE SUBSTR(workspace, 1, LENGTH(?1)) = ?1",
    );
    update.bind(&from).bind(&to).execute(&mut *connection).await.map_err(sqlite_store_error)?;
    // As it stands in JSON, from the quotation mark on: only whole paths are meant.
    let quoted = |path: &str| serde_json::Value::from(path).to_string().trim_end_matches('"').to_owned();
    let update = sqlx::query("UPDATE entry SET body = REPLACE(body, ?1, ?2) WHERE first = 1 AND INSTR(body, ?1) > 0");
    update.bind(quoted(&from)).bind(quoted(&to)).execute(connection).await.map(drop).map_err(sqlite_store_error)
}

fn backup_file_options(path: &Path) -> SqliteConnectOptions {
    SqliteConnectOptions::new().filename(path).foreign_keys(false).disable_statement_logging()
}

async fn read_backup_info(connection: &mut SqliteConnection) -> Result<BackupInfo, StoreError> {
    let query = sqlx::query(
        "SELECT made_at, version, data, (SELECT COUNT(*) FROM session WHERE deleted_at IS NULL), \
         (SELECT COUNT(*) FROM question WHERE answered IS NULL) FROM backup_info",
    );
    let row = query.fetch_one(connection).await.map_err(sqlite_store_error)?;
    let count = |column: usize| u64::try_from(row.get::<i64, _>(column)).unwrap_or(0);
    Ok(BackupInfo {
        made_at: Timestamp::from_micros(row.get(0)),
        version: row.get(1),
        data: row.get(2),
        sessions: count(3),
        open_questions: count(4),
    })
}

/// Notes at the end of a file what the rest of it is.
fn append_backup_digest(path: &Path) -> io::Result<()> {
    let mut file = File::options().read(true).append(true).open(path)?;
    let length = file.metadata()?.len();
    let digest = hash_file(&mut file, length)?;
    file.write_all(TRAILER)?;
    file.write_all(&digest)?;
    file.sync_all()
}

/// The length of the database in a file whose digest is right; none if it is not, or not there.
fn verified_backup_length(path: &Path) -> io::Result<Option<u64>> {
    let mut file = File::open(path)?;
    let whole = file.metadata()?.len();
    let Some(length) = whole.checked_sub((TRAILER.len() + DIGEST_BYTES) as u64) else { return Ok(None) };
    let digest = hash_file(&mut file, length)?;
    let mut trailer = Vec::new();
    file.read_to_end(&mut trailer)?;
    Ok((trailer == [&TRAILER[..], &digest[..]].concat()).then_some(length))
}

/// The digest of this many bytes; the rest is read next.
fn hash_file(file: &mut File, length: u64) -> io::Result<[u8; DIGEST_BYTES]> {
    let mut hash = Sha256::new();
    let mut left = length;
    let mut piece = vec![0; PIECE_BYTES];
    while left > 0 {
        let most = usize::try_from(left).unwrap_or(PIECE_BYTES).min(PIECE_BYTES);
        let read = file.read(&mut piece[..most])?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        hash.update(&piece[..read]);
        left -= read as u64;
    }
    Ok(hash.finalize().into())
}

fn backup_kind_name(kind: BackupFileKind) -> &'static str {
    match kind {
        BackupFileKind::Folder => "folder",
        BackupFileKind::File => "file",
        BackupFileKind::Link => "link",
    }
}

fn parse_backup_kind(name: &str) -> Option<BackupFileKind> {
    match name {
        "folder" => Some(BackupFileKind::Folder),
        "file" => Some(BackupFileKind::File),
        "link" => Some(BackupFileKind::Link),
        _ => None,
    }
}
