//! Folds made anew from the log.

use gander_domain::{Seq, SessionId};
use sqlx::postgres::{PgConnection, PgPool};
use sqlx::{AssertSqlSafe, Row as _};
use uuid::Uuid;

use super::batch::FoldColumns;
use super::failure::postgres_store_error;
use super::read;
use super::text::encode_postgres_text;
use crate::fold::CreatedSession;
use crate::{DeltaForm, Limit, StoreError, fold};

/// The arguments of `apply_folds`.
const FOLD_PARAMETERS: usize = 31;

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
