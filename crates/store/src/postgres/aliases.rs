//! Names of sessions: set, found and removed.

use gander_domain::{Principal, SessionId};
use sqlx::postgres::{PgPool, PgRow};
use sqlx::{Executor, Postgres, Row as _};

use super::failure::postgres_store_error;
use super::read::{self, text_column};
use super::text::encode_postgres_text;
use crate::{Alias, StoreError};

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

/// Names a session, unless the name is taken. The session is locked, so that it is not deleted meanwhile.
pub(super) async fn set_alias(pool: &PgPool, alias: &Alias, session: SessionId) -> Result<(), StoreError> {
    read::read_head(pool, session).await?;
    let query = sqlx::query(
        "INSERT INTO alias SELECT $1, $2, $3, $4, id FROM session WHERE id = $5 AND deleted_at IS NULL FOR SHARE \
         ON CONFLICT DO NOTHING",
    );
    bind_alias(query, alias).bind(session.uuid()).execute(pool).await.map_err(postgres_store_error)?;
    match find_alias(pool, alias).await? {
        Some(taken) if taken != session => Err(StoreError::AliasTaken(taken)),
        Some(_) => Ok(()),
        None => Err(StoreError::Deleted(session)),
    }
}

pub(super) async fn remove_alias(pool: &PgPool, alias: &Alias) -> Result<bool, StoreError> {
    let query = sqlx::query("DELETE FROM alias WHERE principal = $1 AND door = $2 AND namespace = $3 AND text = $4");
    let done = bind_alias(query, alias).execute(pool).await.map_err(postgres_store_error)?;
    Ok(done.rows_affected() > 0)
}
