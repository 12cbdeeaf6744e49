//! What a database error means to us.

use crate::StoreError;

/// What a failed statement means.
#[derive(Clone, Debug)]
pub(super) enum SqliteFailure {
    /// The data does not fit: fenced, a duplicate, a taken name.
    Constraint(String),
    /// No room; it may come back.
    Full(String),
    /// The disk or the file is broken: nothing can be trusted to be written again.
    Disk(String),
    /// Another process holds the file.
    Busy(String),
    /// Anything else.
    Other(String),
}

impl SqliteFailure {
    pub(super) fn classify_error(error: &rusqlite::Error) -> Self {
        let text = error.to_string();
        match writer_code(error) {
            Some(19) => Self::Constraint(text),
            Some(13) => Self::Full(text),
            // BUSY, LOCKED
            Some(5 | 6) => Self::Busy(text),
            // READONLY, IOERR, CORRUPT, CANTOPEN, NOTADB
            Some(8 | 10 | 11 | 14 | 26) => Self::Disk(text),
            Some(_) => Self::Other(text),
            None => Self::Other(text),
        }
    }

    pub(super) fn to_store_error(&self) -> StoreError {
        match self {
            Self::Constraint(text) | Self::Other(text) => StoreError::Failed(text.clone()),
            Self::Full(text) | Self::Disk(text) => StoreError::ReadOnly(text.clone()),
            Self::Busy(text) => StoreError::Busy(text.clone()),
        }
    }
}

/// Of a statement of the writer that is no commit.
pub(super) fn writer_store_error(error: rusqlite::Error) -> StoreError {
    match writer_code(&error) {
        Some(5 | 6) => StoreError::Busy(error.to_string()),
        Some(_) | None => StoreError::Failed(error.to_string()),
    }
}

/// For reads, where every failure is just that.
pub(super) fn sqlite_store_error(error: sqlx::Error) -> StoreError {
    if let sqlx::Error::PoolClosed = error {
        StoreError::Closed
    } else if let sqlx::Error::PoolTimedOut = error {
        StoreError::Busy("too many read at once".to_owned())
    } else if matches!(primary_code(&error), Some(5 | 6)) {
        StoreError::Busy(error.to_string())
    } else {
        StoreError::Failed(error.to_string())
    }
}

/// SQLite's result code without its extension.
fn writer_code(error: &rusqlite::Error) -> Option<i32> {
    error.sqlite_error().map(|error| error.extended_code & 0xff)
}

/// SQLite's result code without its extension.
fn primary_code(error: &sqlx::Error) -> Option<i32> {
    let code: i32 = error.as_database_error()?.code()?.parse().ok()?;
    Some(code & 0xff)
}
