//! Opening the database: version, schema, and which life of the log this is.

use std::path::Path;
use std::time::Duration;

use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqliteSynchronous};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, Row};

use super::failure::sqlite_store_error;
use super::reclaim;
use crate::StoreError;

/// Earlier versions can corrupt a WAL file that is reset while another connection checkpoints it.
const MIN_SQLITE_VERSION: (u32, u32, u32) = (3, 51, 3);

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

/// How every connection is opened.
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

/// The one connection that writes.
pub(super) async fn open_writer(path: &Path, max_pages: Option<u32>) -> Result<SqliteConnection, StoreError> {
    let mut options = connect_options(path)
        // The writer checkpoints when it suits it; the file shrinks when it starts over.
        .pragma("wal_autocheckpoint", "0")
        .pragma("cache_size", "-2048")
        .pragma("journal_size_limit", "16777216")
        .pragma("fullfsync", "1")
        .pragma("checkpoint_fullfsync", "1")
        // What is deleted is overwritten, in pages that stay in use and in those that become free.
        .pragma("secure_delete", "ON");
    if let Some(pages) = max_pages {
        options = options.pragma("max_page_count", pages.to_string());
    }
    if std::fs::metadata(path).is_ok_and(|file| file.len() == 0) {
        reclaim::prepare_file_to_reclaim(path).await?;
    }
    let mut connection = options.connect().await.map_err(sqlite_store_error)?;
    assert_version(&mut connection).await?;
    run_migrations(&mut connection, MIGRATIONS).await?;
    // Once there are callers, they are told sooner.
    sqlx::query("PRAGMA busy_timeout = 800").execute(&mut connection).await.map_err(sqlite_store_error)?;
    Ok(connection)
}

/// Which incarnation of the log this is, and whether the last one ended well.
pub(super) struct Incarnation {
    pub(super) number: u32,
    /// The boot of this machine, if it has a name.
    pub(super) boot: String,
}

/// Begins a new incarnation if the machine went down under a running server: its last commits may be lost.
pub(super) async fn read_incarnation(connection: &mut SqliteConnection) -> Result<Incarnation, StoreError> {
    let query = sqlx::query("SELECT incarnation, boot, clean FROM meta");
    let row = query.fetch_one(&mut *connection).await.map_err(sqlite_store_error)?;
    let (incarnation, boot, clean): (u32, String, bool) = (row.get(0), row.get(1), row.get(2));
    let now = sqlite_boot_id();
    let went_down = !clean && !boot.is_empty() && !now.is_empty() && boot != now;
    let incarnation = if went_down { begin_incarnation(connection).await? } else { incarnation };
    Ok(Incarnation { number: incarnation, boot: now })
}

/// Starts a new incarnation: cursors of earlier ones are refused from now on.
pub(super) async fn begin_incarnation(connection: &mut SqliteConnection) -> Result<u32, StoreError> {
    let query = sqlx::query("UPDATE meta SET incarnation = incarnation + 1, clean = 1 RETURNING incarnation");
    Ok(query.fetch_one(connection).await.map_err(sqlite_store_error)?.get(0))
}

async fn assert_version(connection: &mut SqliteConnection) -> Result<(), StoreError> {
    let query = sqlx::query("SELECT sqlite_version()");
    let version: String = query.fetch_one(connection).await.map_err(sqlite_store_error)?.get(0);
    let mut numbers = version.split('.').map(|number| number.parse().unwrap_or(0));
    let mut next = || numbers.next().unwrap_or(0);
    if (next(), next(), next()) < MIN_SQLITE_VERSION {
        return Err(StoreError::Failed(format!("sqlite is too old to be safe: {version}")));
    }
    Ok(())
}

/// Refuses what a later version wrote; gives the version of the schema.
pub(super) async fn check_schema(connection: &mut SqliteConnection) -> Result<u32, StoreError> {
    let query = sqlx::query("PRAGMA user_version");
    let found: u32 = query.fetch_one(connection).await.map_err(sqlite_store_error)?.get(0);
    let known = MIGRATIONS.len() as u32;
    if found > known { Err(StoreError::Newer { found, known }) } else { Ok(found) }
}

async fn run_migrations(connection: &mut SqliteConnection, migrations: &[&'static str]) -> Result<(), StoreError> {
    let found = check_schema(connection).await? as usize;
    let Some(missing) = migrations.get(found..).filter(|missing| !missing.is_empty()) else { return Ok(()) };
    // All in one transaction: a new file has one commit and not one for each step, and no file stops half way.
    let stamp = format!("PRAGMA user_version = {};", migrations.len());
    let steps = missing.iter().copied().chain([stamp.as_str()]).collect::<Vec<_>>().join("\n");
    let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await.map_err(sqlite_store_error)?;
    sqlx::raw_sql(AssertSqlSafe(steps)).execute(&mut *transaction).await.map_err(sqlite_store_error)?;
    transaction.commit().await.map_err(sqlite_store_error)
}

/// Linux names each boot; elsewhere a power cut is not noticed.
fn sqlite_boot_id() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    name.trim().to_owned()
}

/// The version of the SQLite library that is built in.
pub async fn library_version() -> Result<String, sqlx::Error> {
    let mut memory = SqliteConnection::connect("sqlite::memory:").await?;
    sqlx::query_scalar("SELECT sqlite_version()").fetch_one(&mut memory).await
}
