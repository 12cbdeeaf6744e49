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
        match result_code(error) {
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

/// Of a read, or of a statement of the writer that is no commit.
impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        match result_code(&error) {
            Some(5 | 6) => Self::Busy(error.to_string()),
            Some(_) | None => Self::Failed(error.to_string()),
        }
    }
}

/// Of a command that copies or backs up the file, where every failure is just that.
pub(super) fn sqlite_store_error(error: sqlx::Error) -> StoreError {
    match error.as_database_error().and_then(|error| error.code()?.parse::<i32>().ok()) {
        Some(code) if matches!(code & 0xff, 5 | 6) => StoreError::Busy(error.to_string()),
        Some(_) | None => StoreError::Failed(error.to_string()),
    }
}

/// SQLite's result code without its extension.
fn result_code(error: &rusqlite::Error) -> Option<i32> {
    error.sqlite_error().map(|error| error.extended_code & 0xff)
}
