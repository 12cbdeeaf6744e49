//! What is written beside appends: names, tombstones, scopes, compaction, removal and the rebuilding of folds.

use gander_domain::{Seq, SessionId, Timestamp};
use serde_json::Value;
use sqlx::postgres::{PgConnection, PgPool};
use sqlx::{AssertSqlSafe, Row as _};
use uuid::Uuid;

use super::batch::FoldColumns;
use super::cluster;
use super::failure::postgres_store_error;
use super::read::{self, bind_alias, decode_entry_row, seq_column};
use super::text::encode_postgres_text;
use crate::fold::CreatedSession;
use crate::row::{Compactor, Replacement};
use crate::{Alias, DeltaForm, Limit, MaintenanceReport, ScopeAppend, StoreError, fold};

/// Rows of a deleted session that one piece of maintenance removes.
const PURGE_ROWS: i64 = 500;

pub(super) const NEXT_TO_PURGE_SQL: &str =
    "SELECT id FROM session WHERE deleted_at IS NOT NULL AND NOT purged ORDER BY id LIMIT 1";

pub(super) const NEXT_TO_COMPACT_SQL: &str = "SELECT id, session, first, ended FROM run WHERE NOT compacted \
     AND ended IS NOT NULL AND ended_at < $1 ORDER BY ended_at LIMIT 1";

/// The arguments of `apply_folds`.
const FOLD_PARAMETERS: usize = 31;

/// Names a session, unless the name is taken. The session is locked, so that it is not deleted meanwhile.
pub(super) async fn set_alias(pool: &PgPool, alias: &Alias, session: SessionId) -> Result<(), StoreError> {
    read::read_head(pool, session).await?;
    let query = sqlx::query(
        "INSERT INTO alias SELECT $1, $2, $3, $4, id FROM session WHERE id = $5 AND deleted_at IS NULL FOR SHARE \
         ON CONFLICT DO NOTHING",
    );
    bind_alias(query, alias).bind(session.uuid()).execute(pool).await.map_err(postgres_store_error)?;
    match read::find_alias(pool, alias).await? {
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

/// Makes every fold again. Call it while nobody writes.
pub(super) async fn rebuild_folds(pool: &PgPool) -> Result<u64, StoreError> {
    let mut count = 0;
    let mut after = Uuid::nil();
    loop {
        let query = sqlx::query("SELECT id FROM session WHERE id > $1 AND deleted_at IS NULL ORDER BY id LIMIT 1");
        let row = query.bind(after).fetch_optional(pool).await.map_err(postgres_store_error)?;
        let Some(row) = row else { return Ok(count) };
        after = row.get(0);
        rebuild_session(pool, SessionId::new(after)).await?;
        count += 1;
    }
}

async fn rebuild_session(pool: &PgPool, session: SessionId) -> Result<(), StoreError> {
    let mut transaction = pool.begin().await.map_err(postgres_store_error)?;
    let statements = [
        "UPDATE session SET title = '', search = '', archived = FALSE, messages = 0, updated_at = 0, spent_input = 0, \
         spent_output = 0, spent_cost = 0, last_input = NULL, last_output = NULL WHERE id = $1",
        "DELETE FROM run WHERE session = $1",
        "DELETE FROM question WHERE session = $1",
    ];
    for sql in statements {
        sqlx::query(sql).bind(session.uuid()).execute(&mut *transaction).await.map_err(postgres_store_error)?;
    }
    let mut after = Seq::ZERO;
    loop {
        let entries = read::read_entries(pool, session, after, Limit::default(), DeltaForm::Joined).await?;
        let Some(last) = entries.last() else { break };
        after = last.seq;
        let changes = fold::fold_entries(&entries);
        if let Some(creation) = changes.summary.as_ref().and_then(|summary| summary.creation.clone()) {
            set_creation(&mut transaction, session, creation).await?;
        }
        let mut folds = FoldColumns::default();
        folds.push_changes(session, changes)?;
        apply_folds(&mut transaction, session, folds).await?;
    }
    transaction.commit().await.map_err(postgres_store_error)
}

async fn set_creation(
    connection: &mut PgConnection,
    session: SessionId,
    creation: CreatedSession,
) -> Result<(), StoreError> {
    let query =
        sqlx::query("UPDATE session SET owner = $2, workspace = $3, parent = $4, created_at = $5 WHERE id = $1");
    let query = query.bind(session.uuid()).bind(encode_postgres_text(creation.owner.as_str()).into_owned());
    let query = query.bind(encode_postgres_text(&creation.workspace).into_owned());
    let query = query.bind(creation.parent.map(|parent| parent.uuid())).bind(creation.at.as_micros());
    query.execute(connection).await.map(drop).map_err(postgres_store_error)
}

async fn apply_folds(connection: &mut PgConnection, session: SessionId, folds: FoldColumns) -> Result<(), StoreError> {
    if folds.is_empty() {
        return Ok(());
    }
    let parameters: Vec<String> = (1..=FOLD_PARAMETERS).map(|number| format!("${number}")).collect();
    let query = sqlx::query(AssertSqlSafe(format!("SELECT apply_folds({})", parameters.join(", "))));
    folds.bind_to(query.bind(vec![session.uuid()])).execute(connection).await.map(drop).map_err(postgres_store_error)
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
