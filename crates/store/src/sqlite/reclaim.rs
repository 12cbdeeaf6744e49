//! Gives the pages of deleted content back to the system, and empties the write-ahead log that held them.
//!
//! `secure_delete` overwrites what is deleted where it stood. That leaves two places: pages that became free before the
//! file was opened that way, and the write-ahead log, which holds pages as they were until it starts over.

use std::path::Path;

use sqlx::sqlite::{SqliteAutoVacuum, SqliteConnectOptions, SqliteConnection};
use sqlx::{ConnectOptions, Connection, Row};

use super::failure::sqlite_store_error;
use super::open::connect_options;
use crate::StoreError;

/// Free pages that are given back in one go: whoever waits for the writer waits no longer than that takes.
const PAGES_PER_STEP: u32 = 1_024;

/// A file that does not give pages back yet is written anew when something is deleted, unless it is larger than this.
const MAX_REWRITE_PAGES: i64 = 32_768;

/// How long the writer waits for whoever still reads from the write-ahead log.
const READER_TIMEOUT: &str = "PRAGMA busy_timeout = 100";
const USUAL_TIMEOUT: &str = "PRAGMA busy_timeout = 800";

/// How far it came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reclaimed {
    /// Nothing that was deleted is left.
    All,
    /// There are more free pages.
    Some,
    /// Somebody still reads pages as they were.
    Busy,
}

/// A file that is to give free pages back must know so before anything is in it, also no write-ahead log.
pub(super) async fn prepare_file_to_reclaim(path: &Path) -> Result<(), StoreError> {
    // Setting it writes the file's first page: an empty file needs no VACUUM for it, which would sync the disk four times.
    let options = SqliteConnectOptions::new().filename(path).auto_vacuum(SqliteAutoVacuum::Incremental);
    let connection = options.disable_statement_logging().connect().await.map_err(sqlite_store_error)?;
    connection.close().await.map_err(sqlite_store_error)
}

/// Gives some free pages back; once there are no more, empties the write-ahead log.
pub(super) async fn reclaim(connection: &mut SqliteConnection) -> Result<Reclaimed, StoreError> {
    if read_number(connection, "PRAGMA auto_vacuum").await? == 0 {
        rewrite_small_file(connection).await?;
    } else if read_number(connection, "PRAGMA freelist_count").await? > 0 {
        let vacuum = sqlx::AssertSqlSafe(format!("PRAGMA incremental_vacuum({PAGES_PER_STEP})"));
        sqlx::raw_sql(vacuum).fetch_all(&mut *connection).await.map_err(sqlite_store_error)?;
        if read_number(connection, "PRAGMA freelist_count").await? > 0 {
            return Ok(Reclaimed::Some);
        }
    }
    execute(connection, READER_TIMEOUT).await?;
    let busy = read_number(connection, "PRAGMA wal_checkpoint(TRUNCATE)").await;
    execute(connection, USUAL_TIMEOUT).await?;
    Ok(if busy? == 0 { Reclaimed::All } else { Reclaimed::Busy })
}

/// Writes the whole file anew, without free pages, so that it gives them back by itself from then on. Nobody else may
/// have it open.
pub async fn reclaim_whole_file(directory: &Path) -> Result<(), StoreError> {
    let mut connection = connect_options(&directory.join("log.db")).connect().await.map_err(sqlite_store_error)?;
    rewrite(&mut connection).await?;
    read_number(&mut connection, "PRAGMA wal_checkpoint(TRUNCATE)").await?;
    connection.close().await.map_err(sqlite_store_error)
}

/// Files of earlier versions keep their free pages, with what was in them. A large one is left to `doctor --rebuild`:
/// nobody could write for as long as that takes.
async fn rewrite_small_file(connection: &mut SqliteConnection) -> Result<(), StoreError> {
    let pages = read_number(connection, "PRAGMA page_count").await?;
    if pages <= MAX_REWRITE_PAGES {
        return rewrite(connection).await;
    }
    tracing::warn!(pages, "the log keeps free pages that earlier versions did not overwrite: gander doctor --rebuild");
    Ok(())
}

pub(super) async fn rewrite(connection: &mut SqliteConnection) -> Result<(), StoreError> {
    execute(connection, "PRAGMA auto_vacuum = INCREMENTAL").await?;
    execute(connection, "VACUUM").await
}

/// Never as a kept statement: these change what other statements are compiled against.
async fn execute(connection: &mut SqliteConnection, sql: &'static str) -> Result<(), StoreError> {
    sqlx::raw_sql(sql).execute(connection).await.map(drop).map_err(sqlite_store_error)
}

async fn read_number(connection: &mut SqliteConnection, sql: &'static str) -> Result<i64, StoreError> {
    let query = sqlx::query(sql).persistent(false);
    query.fetch_one(connection).await.and_then(|row| row.try_get(0)).map_err(sqlite_store_error)
}
