//! Reading the log from any place.

use futures::TryStreamExt;
use gander_domain::{Entry, Seq, SessionId, Timestamp};
use sqlx::Row as _;
use sqlx::sqlite::{SqlitePool, SqliteRow};
use uuid::Uuid;

use super::failure::sqlite_store_error;
use crate::row::{Row, RowDecoder, RowKind};
use crate::{DeltaForm, Limit, ScopeEntry, Snapshot, StoreError};

/// Epoch, whether it was deleted, and the end of a session.
pub(super) const HEAD_SQL: &str = "SELECT epoch, deleted_at IS NOT NULL, COALESCE((SELECT last FROM entry \
     WHERE session = session.id ORDER BY first DESC LIMIT 1), 0) FROM session WHERE id = ?";

/// Rows from the one that holds a place on; a span brings its message, which is the next row.
pub(super) const ENTRIES_SQL: &str = "SELECT e.first, e.last, e.kind, e.body, w.body FROM entry e \
     LEFT JOIN entry w ON e.kind = 2 AND w.session = e.session AND w.first = e.last + 1 \
     WHERE e.session = ?1 AND e.first >= COALESCE(\
     (SELECT first FROM entry WHERE session = ?1 AND first <= ?2 ORDER BY first DESC LIMIT 1), 0) \
     AND EXISTS (SELECT 1 FROM session WHERE id = ?1 AND deleted_at IS NULL) ORDER BY e.first";

pub(super) async fn read_entries(
    pool: &SqlitePool,
    session: SessionId,
    after: Seq,
    limit: Limit,
    form: DeltaForm,
) -> Result<Vec<Entry>, StoreError> {
    let mut expand = RowDecoder::new(after, form, limit);
    let query = sqlx::query(ENTRIES_SQL).bind(sqlite_session_bytes(session)).bind(after.next().0 as i64);
    let mut rows = query.fetch(pool);
    while !expand.is_full()
        && let Some(row) = rows.try_next().await.map_err(sqlite_store_error)?
    {
        expand.push_row(&decode_entry_row(&row)?, row.get(4))?;
    }
    drop(rows);
    let entries = expand.into_entries();
    if entries.is_empty() {
        let head = read_head(pool, session).await?;
        if after > head {
            return Err(StoreError::Truncated { asked: after, head });
        }
    }
    Ok(entries)
}

pub(super) async fn read_head(pool: &SqlitePool, session: SessionId) -> Result<Seq, StoreError> {
    let row = sqlx::query(HEAD_SQL)
        .bind(sqlite_session_bytes(session))
        .fetch_optional(pool)
        .await
        .map_err(sqlite_store_error)?;
    let row = row.ok_or(StoreError::NotFound(session))?;
    if row.get::<bool, _>(1) {
        return Err(StoreError::Deleted(session));
    }
    Ok(Seq(row.get::<i64, _>(2) as u64))
}

pub(super) async fn read_snapshot(
    pool: &SqlitePool,
    session: SessionId,
    version: u32,
    upto: Seq,
) -> Result<Option<Snapshot>, StoreError> {
    let query = sqlx::query(
        "SELECT seq, body FROM snapshot WHERE session = ? AND seq <= ? AND version = ? ORDER BY seq DESC LIMIT 1",
    );
    let query =
        query.bind(sqlite_session_bytes(session)).bind(upto.0.min(i64::MAX as u64) as i64).bind(i64::from(version));
    let row = query.fetch_optional(pool).await.map_err(sqlite_store_error)?;
    Ok(row.map(|row| Snapshot { version, seq: seq_column(&row, 0), body: row.get(1) }))
}

pub(super) async fn read_scope(
    pool: &SqlitePool,
    scope: &str,
    after: Seq,
    limit: u32,
) -> Result<Vec<ScopeEntry>, StoreError> {
    let query = sqlx::query("SELECT seq, at, fact FROM scope WHERE name = ? AND seq > ? ORDER BY seq LIMIT ?");
    let query = query.bind(scope).bind(after.0 as i64).bind(i64::from(limit));
    let rows = query.fetch_all(pool).await.map_err(sqlite_store_error)?;
    let entry = |row: &SqliteRow| {
        let fact = serde_json::from_str(row.get(2)).map_err(|error| StoreError::Corrupt(error.to_string()))?;
        Ok(ScopeEntry { seq: seq_column(row, 0), at: Timestamp::from_micros(row.get(1)), fact })
    };
    rows.iter().map(entry).collect()
}

/// Along the primary key: names that begin so lie together.
pub(super) async fn list_scopes(
    pool: &SqlitePool,
    prefix: &str,
    after: &str,
    limit: u32,
) -> Result<Vec<(String, Timestamp)>, StoreError> {
    let query = "SELECT name, MAX(at) FROM scope WHERE name >= ? AND name < ? AND name > ? \
         GROUP BY name ORDER BY name LIMIT ?";
    let beyond = format!("{prefix}{}", char::MAX);
    let query = sqlx::query(query).bind(prefix).bind(beyond).bind(after).bind(i64::from(limit));
    let rows = query.fetch_all(pool).await.map_err(sqlite_store_error)?;
    Ok(rows.iter().map(|row| (row.get(0), Timestamp::from_micros(row.get(1)))).collect())
}

pub(super) fn decode_entry_row(row: &SqliteRow) -> Result<Row, StoreError> {
    Ok(Row {
        first: seq_column(row, 0),
        last: seq_column(row, 1),
        kind: RowKind::from_code(row.get(2))?,
        body: row.get(3),
    })
}

pub(super) fn seq_column(row: &SqliteRow, column: usize) -> Seq {
    Seq(row.get::<i64, _>(column) as u64)
}

pub(super) fn sqlite_session_bytes(session: SessionId) -> Vec<u8> {
    session.uuid().into_bytes().to_vec()
}

pub(super) fn read_sqlite_session_id(bytes: &[u8]) -> Result<SessionId, StoreError> {
    decode_sqlite_uuid(bytes).map(SessionId::new)
}

pub(super) fn decode_sqlite_uuid(bytes: &[u8]) -> Result<Uuid, StoreError> {
    Uuid::from_slice(bytes).map_err(|error| StoreError::Corrupt(error.to_string()))
}
