//! Logs of facts of no session.

use gander_domain::{Seq, Timestamp};
use serde_json::Value;
use sqlx::Row as _;
use sqlx::postgres::{PgPool, PgRow};

use super::failure::postgres_store_error;
use super::read::{seq_column, text_column};
use super::text::encode_postgres_text;
use crate::row::parse_stored_json;
use crate::{ScopeAppend, ScopeEntry, StoreError};

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
        let fact = parse_stored_json(row.get(2)).map_err(|error| StoreError::Corrupt(error.to_string()))?;
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

pub(super) async fn append_scope(pool: &PgPool, append: ScopeAppend) -> Result<Seq, StoreError> {
    let facts: Vec<String> = append.facts.iter().map(ToString::to_string).collect();
    let query = sqlx::query("SELECT append_scope($1, $2, $3, $4)");
    let query = query.bind(encode_postgres_text(&append.scope).into_owned()).bind(append.at.as_micros());
    let query = query.bind(append.after.map(|seq| seq.0 as i64)).bind(facts);
    let row = query.fetch_one(pool).await.map_err(postgres_store_error)?;
    Ok(seq_column(&row, 0))
}

/// One fact in place of all up to an entry, if that is still there.
pub(super) async fn compact_scope(
    pool: &PgPool,
    scope: &str,
    upto: Seq,
    at: Timestamp,
    fact: &Value,
) -> Result<(), StoreError> {
    let query = sqlx::query(
        "WITH kept AS (UPDATE scope SET fact = $4 WHERE name = $1 AND seq = $2 AND at = $3 RETURNING 1) \
         DELETE FROM scope WHERE name = $1 AND seq < $2 AND EXISTS (SELECT FROM kept)",
    );
    let query = query.bind(encode_postgres_text(scope).into_owned()).bind(upto.0 as i64).bind(at.as_micros());
    query.bind(fact.to_string()).execute(pool).await.map(drop).map_err(postgres_store_error)
}

/// Its end first, as whoever appends does.
pub(super) async fn delete_scope(pool: &PgPool, scope: &str) -> Result<(), StoreError> {
    let scope = encode_postgres_text(scope).into_owned();
    let mut transaction = pool.begin().await.map_err(postgres_store_error)?;
    for sql in ["DELETE FROM scope_head WHERE name = $1", "DELETE FROM scope WHERE name = $1"] {
        sqlx::query(sql).bind(scope.clone()).execute(&mut *transaction).await.map_err(postgres_store_error)?;
    }
    transaction.commit().await.map_err(postgres_store_error)
}
