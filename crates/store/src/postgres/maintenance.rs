//! What is written beside appends: tombstones, compaction and removal.

use gander_domain::{Seq, SessionId, Timestamp};
use sqlx::postgres::PgPool;
use sqlx::{AssertSqlSafe, Row as _};
use uuid::Uuid;

use super::cluster;
use super::failure::postgres_store_error;
use super::read::{self, decode_entry_row, seq_column};
use crate::row::{Compactor, Replacement};
use crate::{MaintenanceReport, StoreError};

/// Rows of a deleted session that one piece of maintenance removes.
const PURGE_ROWS: i64 = 500;

pub(super) const NEXT_TO_PURGE_SQL: &str =
    "SELECT id FROM session WHERE deleted_at IS NOT NULL AND NOT purged ORDER BY id LIMIT 1";

pub(super) const NEXT_TO_COMPACT_SQL: &str = "SELECT id, session, first, ended FROM run WHERE NOT compacted \
     AND ended IS NOT NULL AND ended_at < $1 ORDER BY ended_at LIMIT 1";

/// Leaves nothing of a session but its id; its entries go piece by piece.
pub(super) async fn delete_session(pool: &PgPool, session: SessionId, at: Timestamp) -> Result<(), StoreError> {
    read::read_head(pool, session).await?;
    let mut transaction = pool.begin().await.map_err(postgres_store_error)?;
    let query = sqlx::query(
        "UPDATE session SET epoch = epoch + 1, deleted_owner = owner, owner = NULL, workspace = '', agent = '', \
         parent = NULL, title = '', search = '', state = 0, messages = 0, policy = NULL, policy_chosen = NULL, \
         spent_input = NULL, spent_output = NULL, spent_cost = NULL, last_input = NULL, last_output = NULL, \
         node = NULL, has_work = FALSE, commands = 0, deleted_at = $2 WHERE id = $1 AND deleted_at IS NULL",
    );
    let query = query.bind(session.uuid()).bind(at.as_micros());
    query.execute(&mut *transaction).await.map_err(postgres_store_error)?;
    for table in ["alias", "run", "question", "snapshot"] {
        let sql = AssertSqlSafe(format!("DELETE FROM {table} WHERE session = $1"));
        sqlx::query(sql).bind(session.uuid()).execute(&mut *transaction).await.map_err(postgres_store_error)?;
    }
    let query = sqlx::query("DELETE FROM command WHERE session = $1 AND answer IS NULL").bind(session.uuid());
    query.execute(&mut *transaction).await.map_err(postgres_store_error)?;
    transaction.commit().await.map_err(postgres_store_error)
}

/// One bounded piece of maintenance.
pub(super) async fn run_maintenance(pool: &PgPool, ended_before: i64) -> Result<MaintenanceReport, StoreError> {
    cluster::forget_gone_nodes(pool).await?;
    let purged = purge_deleted_session(pool).await?;
    let compacted = compact_ended_run(pool, ended_before).await?;
    Ok(MaintenanceReport {
        compacted: compacted.unwrap_or_default(),
        purged: purged.unwrap_or_default(),
        more: purged.is_some() || compacted.is_some(),
    })
}

/// Removes some rows that a deleted session left; `None` if there were none.
async fn purge_deleted_session(pool: &PgPool) -> Result<Option<u64>, StoreError> {
    let query = sqlx::query(NEXT_TO_PURGE_SQL);
    let Some(row) = query.fetch_optional(pool).await.map_err(postgres_store_error)? else { return Ok(None) };
    let session: Uuid = row.get(0);
    let query = sqlx::query(
        "DELETE FROM entry WHERE session = $1 AND first IN (SELECT first FROM entry WHERE session = $1 LIMIT $2)",
    );
    let done = query.bind(session).bind(PURGE_ROWS).execute(pool).await.map_err(postgres_store_error)?;
    if done.rows_affected() == 0 {
        let query = sqlx::query("UPDATE session SET purged = TRUE WHERE id = $1").bind(session);
        query.execute(pool).await.map_err(postgres_store_error)?;
    }
    Ok(Some(done.rows_affected()))
}

/// Compacts one run that ended long ago; `None` if there is none. Nodes that do it at the same time do it twice, to the
/// same end.
async fn compact_ended_run(pool: &PgPool, ended_before: i64) -> Result<Option<u64>, StoreError> {
    let query = sqlx::query(NEXT_TO_COMPACT_SQL);
    let Some(row) = query.bind(ended_before).fetch_optional(pool).await.map_err(postgres_store_error)? else {
        return Ok(None);
    };
    let (run, session): (Uuid, Uuid) = (row.get(0), row.get(1));
    let mut compacted = 0;
    for replacement in span_replacements(pool, session, seq_column(&row, 2), seq_column(&row, 3)).await? {
        compacted += replace_chunks(pool, session, replacement).await?;
    }
    let query = sqlx::query("UPDATE run SET compacted = TRUE WHERE id = $1 AND session = $2").bind(run).bind(session);
    query.execute(pool).await.map_err(postgres_store_error)?;
    Ok(Some(compacted))
}

async fn span_replacements(
    pool: &PgPool,
    session: Uuid,
    first: Seq,
    last: Seq,
) -> Result<Vec<Replacement>, StoreError> {
    use futures::TryStreamExt;
    let query = sqlx::query(
        "SELECT first, last, kind, body FROM entry WHERE session = $1 AND first >= $2 AND first <= $3 \
         AND kind IN (1, 3) ORDER BY first",
    );
    let mut rows = query.bind(session).bind(first.0 as i64).bind(last.0 as i64).fetch(pool);
    let mut compactor = Compactor::default();
    let mut replacements = Vec::new();
    while let Some(row) = rows.try_next().await.map_err(postgres_store_error)? {
        replacements.extend(compactor.push_row(&decode_entry_row(&row)?)?);
    }
    Ok(replacements)
}

/// The span takes its chunks' place and its first chunk's epoch, if all of them are still there: another node may have been
/// faster, or the session deleted. Gives how many there were.
async fn replace_chunks(pool: &PgPool, session: Uuid, replacement: Replacement) -> Result<u64, StoreError> {
    let row = replacement.row;
    let (first, last) = (row.first.0 as i64, row.last.0 as i64);
    let mut transaction = pool.begin().await.map_err(postgres_store_error)?;
    // Whoever compacts or deletes the same session waits here.
    let query = sqlx::query("SELECT 1 FROM session WHERE id = $1 AND deleted_at IS NULL FOR UPDATE").bind(session);
    if query.fetch_optional(&mut *transaction).await.map_err(postgres_store_error)?.is_none() {
        return Ok(0);
    }
    let query = sqlx::query(
        "DELETE FROM entry WHERE session = $1 AND first >= $2 AND first <= $3 AND kind = 1 RETURNING epoch",
    );
    let query = query.bind(session).bind(first).bind(last);
    let chunks = query.fetch_all(&mut *transaction).await.map_err(postgres_store_error)?;
    let Some(epoch) = chunks.iter().map(|row| row.get::<i64, _>(0)).min() else { return Ok(0) };
    if chunks.len() as u64 != replacement.chunks {
        return Ok(0);
    }
    let query =
        sqlx::query("INSERT INTO entry (session, first, last, epoch, kind, body) VALUES ($1, $2, $3, $4, $5, $6)");
    let query = query.bind(session).bind(first).bind(last).bind(epoch).bind(row.kind.code() as i16).bind(row.body);
    query.execute(&mut *transaction).await.map_err(postgres_store_error)?;
    transaction.commit().await.map_err(postgres_store_error)?;
    Ok(replacement.chunks)
}
