//! Opening the database: version, schema, and which life of the log this is.

use std::path::Path;
use std::time::Duration;

use rusqlite::{OpenFlags, TransactionBehavior};
use sqlx::ConnectOptions;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};

use super::lock::open_private_lock_file;
use super::reclaim;
use crate::StoreError;

/// Earlier versions can corrupt a WAL file that is reset while another connection checkpoints it.
const MIN_SQLITE_VERSION: (u32, u32, u32) = (3, 51, 3);

/// How long the writer waits for another process that has the file.
const WRITER_BUSY_TIMEOUT: Duration = Duration::from_millis(800);

/// Compiled statements that the writer keeps.
const CACHED_STATEMENTS: usize = 64;

/// The schema, step by step. A step that was released is never changed.
const MIGRATIONS: &[&str] = &[
    include_str!("../../migrations/sqlite/0001_log.sql"),
    include_str!("../../migrations/sqlite/0002_snapshot.sql"),
    include_str!("../../migrations/sqlite/0003_runs_by_time.sql"),
    include_str!("../../migrations/sqlite/0004_held_questions.sql"),
    include_str!("../../migrations/sqlite/0005_deleted_owner.sql"),
    include_str!("../../migrations/sqlite/0006_sessions_by_parent.sql"),
    include_str!("../../migrations/sqlite/0007_policy_and_usage.sql"),
];

/// How commands open the file that copy or back it up.
pub(super) fn connect_options(path: &Path) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(path)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Normal)
        .busy_timeout(Duration::from_secs(10))
        .foreign_keys(false)
        // Who reads goes through a log once, and the system has its pages anyway.
        .pragma("cache_size", "-256")
        .disable_statement_logging()
}

/// A connection that reads. Who reads goes through a log once, and the system has its pages anyway.
pub(super) fn open_reader(path: &Path) -> Result<rusqlite::Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = rusqlite::Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(Duration::from_secs(10))?;
    connection.execute_batch("PRAGMA cache_size = -256")?;
    Ok(connection)
}

/// A connection that writes or checkpoints.
pub(super) fn open_connection(path: &Path) -> rusqlite::Result<rusqlite::Connection> {
    let connection = open_file(path)?;
    set_up_connection(&connection)?;
    Ok(connection)
}

fn set_up_connection(connection: &rusqlite::Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(Duration::from_secs(10))?;
    connection.execute_batch(
        "PRAGMA journal_mode = WAL;\nPRAGMA synchronous = NORMAL;\nPRAGMA foreign_keys = OFF;\n\
         PRAGMA wal_autocheckpoint = 0;\nPRAGMA cache_size = -256",
    )
}

/// Makes a file with the schema of this version. Under another name first: whoever finds the log finds it whole, and one
/// sync is enough for all of it, where every step in its place would be synced with its journal.
pub(super) fn make_log_file(directory: &Path, path: &Path) -> Result<(), StoreError> {
    let failed = |error: std::io::Error| StoreError::Failed(format!("cannot make {}: {error}", path.display()));
    let draft = directory.join("log.db.draft");
    // What a log left that is gone would be taken for a part of the new one.
    for leftover in ["log.db.draft", "log.db-wal", "log.db-shm", "log.db-journal"] {
        match std::fs::remove_file(directory.join(leftover)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(failed(error)),
            Ok(()) | Err(_) => {}
        }
    }
    let file = open_private_lock_file(&draft)?;
    let connection = open_file(&draft)?;
    connection.execute_batch("PRAGMA journal_mode = OFF;\nPRAGMA synchronous = OFF")?;
    reclaim::prepare_file_to_reclaim(&connection)?;
    run_migrations(&connection, MIGRATIONS)?;
    connection.execute_batch("PRAGMA journal_mode = WAL")?;
    connection.close().map_err(|(_, error)| error)?;
    let renamed = file.sync_all().and_then(|()| std::fs::rename(&draft, path));
    // A name is on the disk when its folder is: before anybody relies on the log.
    renamed.and_then(|()| std::fs::File::open(directory)?.sync_all()).map_err(failed)
}

fn open_file(path: &Path) -> rusqlite::Result<rusqlite::Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    rusqlite::Connection::open_with_flags(path, flags)
}

/// The one connection that writes.
pub(super) fn open_writer(path: &Path, max_pages: Option<u32>) -> Result<rusqlite::Connection, StoreError> {
    let is_new = std::fs::metadata(path).is_ok_and(|file| file.len() == 0);
    let connection = connect_writer(path, is_new, max_pages)?;
    assert_version()?;
    run_migrations(&connection, MIGRATIONS)?;
    // Once there are callers, they are told sooner.
    connection.busy_timeout(WRITER_BUSY_TIMEOUT)?;
    Ok(connection)
}

fn connect_writer(path: &Path, is_new: bool, max_pages: Option<u32>) -> Result<rusqlite::Connection, StoreError> {
    let connection = open_file(path)?;
    if is_new {
        reclaim::prepare_file_to_reclaim(&connection)?;
    }
    set_up_connection(&connection)?;
    connection.set_prepared_statement_cache_capacity(CACHED_STATEMENTS);
    // The writer checkpoints when it suits it; the file shrinks when it starts over. What is deleted is overwritten, in pages
    // that stay in use and in those that become free.
    let mut pragmas = "PRAGMA cache_size = -2048;\nPRAGMA journal_size_limit = 16777216;\nPRAGMA fullfsync = 1;\n\
         PRAGMA checkpoint_fullfsync = 1;\nPRAGMA secure_delete = ON;\n"
        .to_owned();
    if let Some(pages) = max_pages {
        pragmas.push_str(&format!("PRAGMA max_page_count = {pages}"));
    }
    connection.execute_batch(&pragmas)?;
    Ok(connection)
}

/// Which incarnation of the log this is, and whether the last one ended well.
pub(super) struct Incarnation {
    pub(super) number: u32,
    /// The boot of this machine, if it has a name.
    pub(super) boot: String,
}

/// Begins a new incarnation if the machine went down under a running server: its last commits may be lost.
pub(super) fn read_incarnation(connection: &rusqlite::Connection) -> Result<Incarnation, StoreError> {
    let (incarnation, boot, clean): (u32, String, bool) =
        connection.query_row("SELECT incarnation, boot, clean FROM meta", [], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?))
        })?;
    let now = sqlite_boot_id();
    let went_down = !clean && !boot.is_empty() && !now.is_empty() && boot != now;
    let incarnation = if went_down { begin_incarnation(connection)? } else { incarnation };
    Ok(Incarnation { number: incarnation, boot: now })
}

/// Starts a new incarnation: cursors of earlier ones are refused from now on.
pub(super) fn begin_incarnation(connection: &rusqlite::Connection) -> Result<u32, StoreError> {
    let sql = "UPDATE meta SET incarnation = incarnation + 1, clean = 1 RETURNING incarnation";
    connection.query_row(sql, [], |row| row.get(0)).map_err(StoreError::from)
}

fn assert_version() -> Result<(), StoreError> {
    let version = rusqlite::version();
    let mut numbers = version.split('.').map(|number| number.parse().unwrap_or(0));
    let mut next = || numbers.next().unwrap_or(0);
    if (next(), next(), next()) < MIN_SQLITE_VERSION {
        return Err(StoreError::Failed(format!("sqlite is too old to be safe: {version}")));
    }
    Ok(())
}

/// Refuses what a later version wrote; gives the version of the schema.
pub(super) fn check_schema_version(found: u32) -> Result<u32, StoreError> {
    let known = MIGRATIONS.len() as u32;
    if found > known { Err(StoreError::Newer { found, known }) } else { Ok(found) }
}

fn run_migrations(connection: &rusqlite::Connection, migrations: &[&'static str]) -> Result<(), StoreError> {
    let found = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    let found = check_schema_version(found)? as usize;
    let Some(missing) = migrations.get(found..).filter(|missing| !missing.is_empty()) else { return Ok(()) };
    // All in one transaction: a new file has one commit and not one for each step, and no file stops half way.
    let stamp = format!("PRAGMA user_version = {};", migrations.len());
    let steps = missing.iter().copied().chain([stamp.as_str()]).collect::<Vec<_>>().join("\n");
    let transaction = rusqlite::Transaction::new_unchecked(connection, TransactionBehavior::Immediate);
    transaction
        .and_then(|transaction| {
            transaction.execute_batch(&steps)?;
            transaction.commit()
        })
        .map_err(StoreError::from)
}

/// Linux names each boot; elsewhere a power cut is not noticed.
fn sqlite_boot_id() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    name.trim().to_owned()
}

/// The version of the SQLite library that is built in.
pub fn library_version() -> &'static str {
    rusqlite::version()
}
