//! What an error of PostgreSQL means to us.

use gander_domain::Seq;
use sqlx::postgres::PgDatabaseError;

use crate::StoreError;

/// What a failed statement means.
#[derive(Clone, Debug)]
pub(super) enum PostgresFailure {
    /// The connection is gone: whether the statement was committed is not known.
    Lost(String),
    /// The data does not fit: a duplicate, a taken name.
    Constraint(String),
    /// A scope ends elsewhere than its writer thought: the next place there, and the one that was offered.
    ScopeGap(Seq, Seq),
    /// It was not committed, and may be if it is tried again.
    Busy(String),
    /// The database takes no writes: no room, or a standby.
    ReadOnly(String),
    /// Anything else; it was not committed.
    Other(String),
}

impl PostgresFailure {
    pub(super) fn classify_error(error: &sqlx::Error) -> Self {
        let Some(database) = error.as_database_error().and_then(|error| error.try_downcast_ref::<PgDatabaseError>())
        else {
            return Self::classify_transport(error);
        };
        let text = format!("{} ({})", database.message(), database.code());
        match database.code() {
            "GA001" => postgres_scope_gap(database.detail().unwrap_or_default()),
            // Serialization, deadlock, lock and statement timeouts: rolled back.
            "40001" | "40P01" | "55P03" | "57014" => Self::Busy(text),
            // Read-only transaction, out of disk space.
            "25006" | "53100" => Self::ReadOnly(text),
            // Too many connections, out of memory: rolled back or never begun.
            code if code.starts_with("53") => Self::Busy(text),
            // Shut down, crashed, or starting up; and every connection exception.
            code if code.starts_with("57P") || code.starts_with("08") => Self::Lost(text),
            code if code.starts_with("23") => Self::Constraint(text),
            _ => Self::Other(text),
        }
    }

    fn classify_transport(error: &sqlx::Error) -> Self {
        if matches!(error, sqlx::Error::Io(_) | sqlx::Error::Protocol(_) | sqlx::Error::Tls(_)) {
            Self::Lost(error.to_string())
        } else if matches!(error, sqlx::Error::PoolTimedOut) {
            Self::Busy("no connection to PostgreSQL became free in time".to_owned())
        } else {
            Self::Other(error.to_string())
        }
    }

    pub(super) fn to_store_error(&self) -> StoreError {
        match self {
            Self::Lost(text) => StoreError::Busy(format!("no connection to PostgreSQL: {text}")),
            Self::Busy(text) => StoreError::Busy(text.clone()),
            Self::ReadOnly(text) => StoreError::ReadOnly(text.clone()),
            Self::ScopeGap(expected, found) => StoreError::Gap { expected: *expected, found: *found },
            Self::Constraint(text) | Self::Other(text) => StoreError::Failed(text.clone()),
        }
    }
}

/// The detail says where the scope ends and where its writer thought so.
fn postgres_scope_gap(detail: &str) -> PostgresFailure {
    let mut ends = detail.split('/').map(|end| Seq(end.parse().unwrap_or_default()).next());
    let mut next = || ends.next().unwrap_or_default();
    PostgresFailure::ScopeGap(next(), next())
}

/// For reads and for writes that are not appends.
pub(super) fn postgres_store_error(error: sqlx::Error) -> StoreError {
    if let sqlx::Error::PoolClosed = error {
        return StoreError::Closed;
    }
    PostgresFailure::classify_error(&error).to_store_error()
}
