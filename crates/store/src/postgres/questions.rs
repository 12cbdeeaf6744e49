//! Questions by their id, and which sessions have an open one.

use gander_domain::{QuestionId, RunId, SessionId};
use sqlx::Row as _;
use sqlx::postgres::PgPool;
use uuid::Uuid;

use super::failure::postgres_store_error;
use super::read::seq_column;
use crate::{QuestionRow, StoreError};

pub(super) async fn find_question(pool: &PgPool, question: QuestionId) -> Result<Option<QuestionRow>, StoreError> {
    let query = "SELECT session, run, asked, answered, held FROM question WHERE id = $1 ORDER BY session LIMIT 1";
    let query = sqlx::query(query).bind(question.uuid());
    let Some(row) = query.fetch_optional(pool).await.map_err(postgres_store_error)? else { return Ok(None) };
    Ok(Some(QuestionRow {
        question,
        session: SessionId::new(row.get(0)),
        run: row.get::<Option<Uuid>, _>(1).map(RunId::new),
        asked: seq_column(&row, 2),
        answered: row.get::<Option<i64>, _>(3).map(|_| seq_column(&row, 3)),
        held: row.get(4),
    }))
}

/// Whether a run asks something. With a limit, since the server may answer `EXISTS` by reading all open questions first.
pub(super) const HAS_OPEN_QUESTION_SQL: &str = "((SELECT 1 FROM question q \
     WHERE q.session = run.session AND q.run = run.id AND q.answered IS NULL LIMIT 1) IS NOT NULL)";

pub(super) const HAS_HELD_QUESTION_SQL: &str = "((SELECT 1 FROM question q \
     WHERE q.session = run.session AND q.run = run.id AND q.answered IS NULL AND q.held LIMIT 1) IS NOT NULL)";
