//! Reading the log from any place, on the primary alone: a standby may not have what was already shown.

use futures::TryStreamExt;
use gander_domain::{Entry, Principal, Seq, SessionId, Timestamp};
use sqlx::postgres::{PgPool, PgRow};
use sqlx::{Executor, Postgres, Row as _};

use super::failure::postgres_store_error;
use super::text::{decode_postgres_text, encode_postgres_text};
use crate::row::{Row, RowDecoder, RowKind};
use crate::{Alias, DeltaForm, Limit, ScopeEntry, Snapshot, StoreError};

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

pub(super) async fn read_scope(
    pool: &PgPool,
    scope: &str,
    after: Seq,
    limit: u32,
) -> Result<Vec<ScopeEntry>, StoreError> {
    let query = sqlx::query("SELECT seq, at, fact FROM scope WHERE name = $1 AND seq > $2 ORDER BY seq LIMIT $3");
    let query = query.bind(encode_postgres_text(scope).into_owned()).bind(after.0 as i64).bind(i64::from(limit));
    let rows = query.fetch_all(pool).await.map_err(postgres_store_error)?;
    let entry = |row: &PgRow| {
        let fact = serde_json::from_str(row.get(2)).map_err(|error| StoreError::Corrupt(error.to_string()))?;
        Ok(ScopeEntry { seq: seq_column(row, 0), at: Timestamp::from_micros(row.get(1)), fact })
    };
    rows.iter().map(entry).collect()
}

/// Along the primary key: names that begin so lie together. The last fact of each is found by its end.
pub(super) async fn list_scopes(
    pool: &PgPool,
    prefix: &str,
    after: &str,
    limit: u32,
) -> Result<Vec<(String, Timestamp)>, StoreError> {
    let query = "SELECT h.name, s.at FROM scope_head h JOIN scope s ON s.name = h.name AND s.seq = h.head \
         WHERE h.name >= $1 AND h.name < $2 AND h.name > $3 ORDER BY h.name LIMIT $4";
    let prefix = encode_postgres_text(prefix).into_owned();
    let beyond = format!("{prefix}{}", char::MAX);
    let query = sqlx::query(query).bind(prefix).bind(beyond).bind(encode_postgres_text(after).into_owned());
    let rows = query.bind(i64::from(limit)).fetch_all(pool).await.map_err(postgres_store_error)?;
    Ok(rows.iter().map(|row| (text_column(row, 0), Timestamp::from_micros(row.get(1)))).collect())
}

/// The session behind a name.
pub(super) async fn find_alias(
    executor: impl Executor<'_, Database = Postgres>,
    alias: &Alias,
) -> Result<Option<SessionId>, StoreError> {
    let query =
        sqlx::query("SELECT session FROM alias WHERE principal = $1 AND door = $2 AND namespace = $3 AND text = $4");
    let row = bind_alias(query, alias).fetch_optional(executor).await.map_err(postgres_store_error)?;
    Ok(row.map(|row| SessionId::new(row.get(0))))
}

pub(super) async fn list_aliases(pool: &PgPool, session: SessionId) -> Result<Vec<Alias>, StoreError> {
    let query = "SELECT principal, door, namespace, text FROM alias WHERE session = $1 \
         ORDER BY principal, door, namespace, text LIMIT 1000";
    let rows = sqlx::query(query).bind(session.uuid()).fetch_all(pool).await.map_err(postgres_store_error)?;
    let alias = |row: &PgRow| Alias {
        principal: Principal::named(text_column(row, 0)),
        door: text_column(row, 1),
        namespace: text_column(row, 2),
        text: text_column(row, 3),
    };
    Ok(rows.iter().map(alias).collect())
}

/// The names after one of them; no name is empty.
pub(super) async fn list_aliases_in(
    pool: &PgPool,
    names: [&str; 4],
    limit: u32,
) -> Result<Vec<(String, SessionId)>, StoreError> {
    let query = "SELECT text, session FROM alias \
         WHERE principal = $1 AND door = $2 AND namespace = $3 AND text > $4 ORDER BY text LIMIT $5";
    let query =
        names.iter().fold(sqlx::query(query), |query, name| query.bind(encode_postgres_text(name).into_owned()));
    let rows = query.bind(i64::from(limit)).fetch_all(pool).await.map_err(postgres_store_error)?;
    Ok(rows.iter().map(|row| (text_column(row, 0), SessionId::new(row.get(1)))).collect())
}

pub(super) fn bind_alias<'q>(query: super::batch::BatchQuery<'q>, alias: &Alias) -> super::batch::BatchQuery<'q> {
    let text = |text: &str| encode_postgres_text(text).into_owned();
    let query = query.bind(text(alias.principal.as_str())).bind(text(&alias.door));
    query.bind(text(&alias.namespace)).bind(text(&alias.text))
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
