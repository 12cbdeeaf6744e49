//! Gives the pages of deleted content back to the system, and empties the write-ahead log that held them.
//!
//! `secure_delete` overwrites what is deleted where it stood. That leaves two places: pages that became free before the
//! file was opened that way, and the write-ahead log, which holds pages as they were until it starts over.

use std::path::Path;

use rusqlite::Connection;

use super::open::open_connection;
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
pub(super) fn prepare_file_to_reclaim(connection: &Connection) -> Result<(), StoreError> {
    // Setting it writes the file's first page: an empty file needs no VACUUM for it, which would sync the disk four times.
    execute(connection, "PRAGMA auto_vacuum = INCREMENTAL")
}

/// Gives some free pages back; once there are no more, empties the write-ahead log.
pub(super) fn reclaim(connection: &Connection) -> Result<Reclaimed, StoreError> {
    if read_number(connection, "PRAGMA auto_vacuum")? == 0 {
        rewrite_small_file(connection)?;
    } else if read_number(connection, "PRAGMA freelist_count")? > 0 {
        execute(connection, &format!("PRAGMA incremental_vacuum({PAGES_PER_STEP})"))?;
        if read_number(connection, "PRAGMA freelist_count")? > 0 {
            return Ok(Reclaimed::Some);
        }
    }
    execute(connection, READER_TIMEOUT)?;
    let busy = read_number(connection, "PRAGMA wal_checkpoint(TRUNCATE)");
    execute(connection, USUAL_TIMEOUT)?;
    Ok(if busy? == 0 { Reclaimed::All } else { Reclaimed::Busy })
}

/// Writes the whole file anew, without free pages, so that it gives them back by itself from then on. Nobody else may
/// have it open.
pub fn reclaim_whole_file(directory: &Path) -> Result<(), StoreError> {
    let connection = open_connection(&directory.join("log.db"))?;
    rewrite(&connection)?;
    read_number(&connection, "PRAGMA wal_checkpoint(TRUNCATE)").map(drop)
}

/// Files of earlier versions keep their free pages, with what was in them. A large one is left to `doctor --rebuild`:
/// nobody could write for as long as that takes.
fn rewrite_small_file(connection: &Connection) -> Result<(), StoreError> {
    let pages = read_number(connection, "PRAGMA page_count")?;
    if pages <= MAX_REWRITE_PAGES {
        return rewrite(connection);
    }
    tracing::warn!(pages, "the log keeps free pages that earlier versions did not overwrite: gander doctor --rebuild");
    Ok(())
}

/// Writes a file anew that is no server's.
pub(super) fn rewrite_file(path: &Path) -> Result<(), StoreError> {
    rewrite(&Connection::open(path)?)
}

fn rewrite(connection: &Connection) -> Result<(), StoreError> {
    execute(connection, "PRAGMA auto_vacuum = INCREMENTAL")?;
    execute(connection, "VACUUM")
}

/// Never as a kept statement: these change what other statements are compiled against. Some work row by row.
fn execute(connection: &Connection, sql: &str) -> Result<(), StoreError> {
    let mut statement = connection.prepare(sql)?;
    let mut rows = statement.query([])?;
    while rows.next()?.is_some() {}
    Ok(())
}

fn read_number(connection: &Connection, sql: &str) -> Result<i64, StoreError> {
    connection.query_row(sql, [], |row| row.get(0)).map_err(StoreError::from)
}
