//! Reading the log from any place, on the primary alone: a standby may not have what was already shown.

use futures::TryStreamExt;
use gander_domain::{Entry, Seq, SessionId};
use sqlx::Row as _;
use sqlx::postgres::{PgPool, PgRow};

use super::failure::postgres_store_error;
use super::text::decode_postgres_text;
use crate::row::{Row, RowDecoder, RowKind};
use crate::{DeltaForm, Limit, Snapshot, StoreError};

/// Rows from the one that holds a place on, until there are enough bytes; a span brings its message, which is the next row.
pub(super) const ENTRIES_SQL: &str = "SELECT e.first, e.last, e.kind, e.body, w.body FROM (\
     SELECT first, last, kind, body, SUM(octet_length(body)) OVER (ORDER BY first ROWS UNBOUNDED PRECEDING) \
     - octet_length(body) AS bytes_before FROM entry WHERE session = $1 AND first >= COALESCE(\
     (SELECT first FROM entry WHERE session = $1 AND first <= $2 ORDER BY first DESC LIMIT 1), 0) \
     ORDER BY first LIMIT $3) e \
     LEFT JOIN entry w ON e.kind = 2 AND w.session = $1 AND w.first = e.last + 1 \
     WHERE e.bytes_before <= $4 AND EXISTS (SELECT FROM session WHERE id = $1 AND deleted_at IS NULL) ORDER BY e.first";

/// Rows that one read gives at most: the server sends all that was asked for, wanted or not.
const PAGE_ROWS: usize = 512;

pub(super) async fn read_entries(
    pool: &PgPool,
    session: SessionId,
    after: Seq,
    limit: Limit,
    form: DeltaForm,
) -> Result<Vec<Entry>, StoreError> {
    let mut decoder = RowDecoder::new(after, form, limit);
    let rows = limit.entries.clamp(1, PAGE_ROWS) as i64;
    let bytes = i64::try_from(limit.bytes).unwrap_or(i64::MAX);
    let query = sqlx::query(ENTRIES_SQL).bind(session.uuid()).bind(after.next().0 as i64).bind(rows).bind(bytes);
    let mut rows = query.fetch(pool);
    while !decoder.is_full()
        && let Some(row) = rows.try_next().await.map_err(postgres_store_error)?
    {
        decoder.push_row(&decode_entry_row(&row)?, row.get(4))?;
    }
    drop(rows);
    let entries = decoder.into_entries();
    if entries.is_empty() {
        let head = read_head(pool, session).await?;
        if after > head {
            return Err(StoreError::Truncated { asked: after, head });
        }
    }
    Ok(entries)
}

pub(super) async fn read_head(pool: &PgPool, session: SessionId) -> Result<Seq, StoreError> {
    let query = sqlx::query("SELECT head, deleted_at IS NOT NULL FROM session WHERE id = $1").bind(session.uuid());
    let row = query.fetch_optional(pool).await.map_err(postgres_store_error)?;
    let row = row.ok_or(StoreError::NotFound(session))?;
    if row.get::<bool, _>(1) {
        return Err(StoreError::Deleted(session));
    }
    Ok(seq_column(&row, 0))
}

pub(super) async fn read_snapshot(
    pool: &PgPool,
    session: SessionId,
    version: u32,
    upto: Seq,
) -> Result<Option<Snapshot>, StoreError> {
    let query = sqlx::query(
        "SELECT seq, body FROM snapshot WHERE session = $1 AND seq <= $2 AND version = $3 ORDER BY seq DESC LIMIT 1",
    );
    let query = query.bind(session.uuid()).bind(upto.0.min(i64::MAX as u64) as i64).bind(i64::from(version));
    let row = query.fetch_optional(pool).await.map_err(postgres_store_error)?;
    Ok(row.map(|row| Snapshot { version, seq: seq_column(&row, 0), body: row.get(1) }))
}

pub(super) fn decode_entry_row(row: &PgRow) -> Result<Row, StoreError> {
    let kind = RowKind::from_code(i64::from(row.get::<i16, _>(2)))?;
    Ok(Row { first: seq_column(row, 0), last: seq_column(row, 1), kind, body: row.get(3) })
}

pub(super) fn seq_column(row: &PgRow, column: usize) -> Seq {
    Seq(row.get::<i64, _>(column) as u64)
}

pub(super) fn text_column(row: &PgRow, column: usize) -> String {
    decode_postgres_text(row.get(column))
}
