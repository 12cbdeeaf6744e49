//! Reading the log from any place.

use gander_domain::{Entry, Seq, SessionId, Timestamp};
use rusqlite::{Connection, OptionalExtension, Row as SqliteRow, params};
use uuid::Uuid;

use crate::row::{RowDecoder, RowKind, RowRef, parse_stored_json};
use crate::{Claim, DeltaForm, Epoch, Limit, ScopeEntry, Snapshot, StoreError};

/// Epoch, whether it was deleted, and the end of a session.
pub(super) const HEAD_SQL: &str = "SELECT epoch, deleted_at IS NOT NULL, COALESCE((SELECT last FROM entry \
     WHERE session = session.id ORDER BY first DESC LIMIT 1), 0) FROM session WHERE id = ?";

/// Rows from the one that holds a place on; a span brings its message, which is the next row.
pub(super) const ENTRIES_SQL: &str = "SELECT e.first, e.last, e.kind, e.body, w.body FROM entry e \
     LEFT JOIN entry w ON e.kind = 2 AND w.session = e.session AND w.first = e.last + 1 \
     WHERE e.session = ?1 AND e.first >= COALESCE(\
     (SELECT first FROM entry WHERE session = ?1 AND first <= ?2 ORDER BY first DESC LIMIT 1), 0) \
     AND EXISTS (SELECT 1 FROM session WHERE id = ?1 AND deleted_at IS NULL) ORDER BY e.first";

pub(super) fn read_entries(
    connection: &Connection,
    session: SessionId,
    after: Seq,
    limit: Limit,
    form: DeltaForm,
) -> Result<Vec<Entry>, StoreError> {
    let mut decoder = RowDecoder::new(after, form, limit);
    let mut statement = connection.prepare_cached(ENTRIES_SQL)?;
    let mut rows = statement.query(params![session.uuid().as_bytes(), after.next().0 as i64])?;
    while !decoder.is_full()
        && let Some(row) = rows.next()?
    {
        decoder.push_row(&entry_row(row)?, text_column(row, 4)?)?;
    }
    let entries = decoder.into_entries();
    if entries.is_empty() {
        let head = read_head(connection, session)?;
        if after > head {
            return Err(StoreError::Truncated { asked: after, head });
        }
    }
    Ok(entries)
}

pub(super) fn read_head(connection: &Connection, session: SessionId) -> Result<Seq, StoreError> {
    read_claim(connection, session).map(|claim| claim.head)
}

/// Who may write to a session, and where it ends.
pub(super) fn read_claim(connection: &Connection, session: SessionId) -> Result<Claim, StoreError> {
    let mut statement = connection.prepare_cached(HEAD_SQL)?;
    let columns = |row: &SqliteRow<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
    let row = statement.query_row([session.uuid().as_bytes()], columns).optional()?;
    let (epoch, is_deleted, head): (i64, bool, i64) = row.ok_or(StoreError::NotFound(session))?;
    if is_deleted {
        return Err(StoreError::Deleted(session));
    }
    Ok(Claim { epoch: Epoch(epoch as u64), head: Seq(head as u64) })
}

pub(super) fn read_snapshot(
    connection: &Connection,
    session: SessionId,
    version: u32,
    upto: Seq,
) -> Result<Option<Snapshot>, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT seq, body FROM snapshot WHERE session = ? AND seq <= ? AND version = ? ORDER BY seq DESC LIMIT 1",
    )?;
    let upto = upto.0.min(i64::MAX as u64) as i64;
    let snapshot = |row: &SqliteRow<'_>| Ok(Snapshot { version, seq: seq_column(row, 0)?, body: row.get(1)? });
    Ok(statement.query_row(params![session.uuid().as_bytes(), upto, version], snapshot).optional()?)
}

pub(super) fn read_scope(
    connection: &Connection,
    scope: &str,
    after: Seq,
    limit: u32,
) -> Result<Vec<ScopeEntry>, StoreError> {
    let mut statement =
        connection.prepare_cached("SELECT seq, at, fact FROM scope WHERE name = ? AND seq > ? ORDER BY seq LIMIT ?")?;
    let mut rows = statement.query(params![scope, after.0 as i64, limit])?;
    let mut entries = Vec::new();
    while let Some(row) = rows.next()? {
        let fact = text_column(row, 2)?.unwrap_or_default();
        let fact = parse_stored_json(fact).map_err(|error| StoreError::Corrupt(error.to_string()))?;
        entries.push(ScopeEntry { seq: seq_column(row, 0)?, at: Timestamp::from_micros(row.get(1)?), fact });
    }
    Ok(entries)
}

/// Along the primary key: names that begin so lie together.
pub(super) fn list_scopes(
    connection: &Connection,
    prefix: &str,
    after: &str,
    limit: u32,
) -> Result<Vec<(String, Timestamp)>, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT name, MAX(at) FROM scope WHERE name >= ? AND name < ? AND name > ? \
         GROUP BY name ORDER BY name LIMIT ?",
    )?;
    let beyond = format!("{prefix}{}", char::MAX);
    let scope = |row: &SqliteRow<'_>| Ok((row.get(0)?, Timestamp::from_micros(row.get(1)?)));
    let scopes = statement.query_map(params![prefix, beyond, after, limit], scope)?;
    Ok(scopes.collect::<Result<_, _>>()?)
}

/// Borrows the body from the database.
pub(super) fn entry_row<'r>(row: &'r SqliteRow<'_>) -> Result<RowRef<'r>, StoreError> {
    Ok(RowRef {
        first: seq_column(row, 0)?,
        last: seq_column(row, 1)?,
        kind: RowKind::from_code(row.get(2)?)?,
        body: text_column(row, 3)?.unwrap_or_default(),
    })
}

pub(super) fn seq_column(row: &SqliteRow<'_>, column: usize) -> rusqlite::Result<Seq> {
    Ok(Seq(row.get::<_, i64>(column)? as u64))
}

/// A text, which is not copied.
pub(super) fn text_column<'r>(row: &'r SqliteRow<'_>, column: usize) -> Result<Option<&'r str>, StoreError> {
    row.get_ref(column)?.as_str_or_null().map_err(|error| StoreError::Corrupt(error.to_string()))
}

pub(super) fn session_column(row: &SqliteRow<'_>, column: usize) -> Result<SessionId, StoreError> {
    required_id_column(row, column).map(SessionId::new)
}

pub(super) fn required_id_column(row: &SqliteRow<'_>, column: usize) -> Result<Uuid, StoreError> {
    id_column(row, column)?.ok_or_else(|| StoreError::Corrupt("a row without its id".to_owned()))
}

pub(super) fn id_column(row: &SqliteRow<'_>, column: usize) -> Result<Option<Uuid>, StoreError> {
    let corrupt = |error: &dyn std::fmt::Display| StoreError::Corrupt(error.to_string());
    let bytes = row.get_ref(column)?.as_blob_or_null().map_err(|error| corrupt(&error))?;
    bytes.map(Uuid::from_slice).transpose().map_err(|error| corrupt(&error))
}
