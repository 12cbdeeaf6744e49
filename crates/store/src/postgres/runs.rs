//! Runs by their id, and lists of them.

use gander_domain::{Principal, RunId, SessionId, Timestamp};
use sqlx::postgres::{PgPool, PgRow};
use sqlx::{AssertSqlSafe, Postgres, QueryBuilder, Row as _};
use uuid::Uuid;

use super::batch::batch_run_sort_code;
use super::failure::postgres_store_error;
use super::questions::{HAS_HELD_QUESTION_SQL, HAS_OPEN_QUESTION_SQL};
use super::read::seq_column;
use super::text::encode_postgres_text;
use crate::{RunKey, RunPage, RunQuery, RunRow, RunSort, RunState, StoreError};

pub(super) async fn list_runs(pool: &PgPool, query: RunQuery) -> Result<RunPage, StoreError> {
    let limit = query.limit.clamp(1, 1000) as usize;
    let total: i64 = count_query(&query).build().fetch_one(pool).await.map_err(postgres_store_error)?.get(0);
    let found = page_query(&query, limit + 1).build().fetch_all(pool).await.map_err(postgres_store_error)?;
    let mut rows = found.iter().map(decode_run).collect::<Result<Vec<_>, _>>()?;
    let more = rows.len() > limit;
    rows.truncate(limit);
    let last = rows.last().zip(found.get(rows.len().saturating_sub(1))).filter(|_| more);
    let next = last.map(|(row, found)| RunKey { at: Timestamp::from_micros(found.get(8)), run: row.run });
    Ok(RunPage { rows, total: total.unsigned_abs(), next })
}

fn count_query(query: &RunQuery) -> QueryBuilder<Postgres> {
    let mut builder = QueryBuilder::new("SELECT COUNT(*) FROM session JOIN run ON run.session = session.id ");
    push_conditions(&mut builder, query);
    builder
}

/// Each run's session is looked up by itself: joined, the server might read all sessions of the principal first.
fn page_query(query: &RunQuery, limit: usize) -> QueryBuilder<Postgres> {
    let mut builder =
        QueryBuilder::new("SELECT run.id, run.session, run.first, run.began_at, run.started, run.ended, run.outcome, ");
    builder.push(HAS_OPEN_QUESTION_SQL).push(", COALESCE(run.ended_at, run.began_at) AS at FROM run, ");
    builder.push("LATERAL (SELECT owner, agent FROM session WHERE session.id = run.session OFFSET 0) session ");
    push_conditions(&mut builder, query);
    if let Some(after) = query.after {
        builder.push(" AND (COALESCE(run.ended_at, run.began_at), run.id) < (").push_bind(after.at.as_micros());
        builder.push(", ").push_bind(after.run.uuid()).push(")");
    }
    builder.push(" ORDER BY COALESCE(run.ended_at, run.began_at) DESC, run.id DESC LIMIT ").push_bind(limit as i64);
    builder
}

/// The statements that list runs by time, for a test that looks at their plans.
pub(super) fn postgres_run_statements() -> Vec<String> {
    let key = RunKey { at: Timestamp::default(), run: RunId::new(Uuid::nil()) };
    let query = |state, after| RunQuery {
        principal: Principal::owner(),
        agent: Some(String::new()),
        session: None,
        state,
        since: None,
        after,
        limit: 50,
    };
    let states = [None, Some(RunSort::Completed)];
    let page = |state, after| page_query(&query(state, after), 50).sql().as_str().to_owned();
    states.iter().flat_map(|state| [None, Some(key)].map(|after| page(*state, after))).collect()
}

fn push_conditions(builder: &mut QueryBuilder<Postgres>, query: &RunQuery) {
    builder.push("WHERE session.owner = ").push_bind(encode_postgres_text(query.principal.as_str()).into_owned());
    if let Some(agent) = &query.agent {
        builder.push(" AND session.agent = ").push_bind(encode_postgres_text(agent).into_owned());
    }
    if let Some(session) = query.session {
        builder.push(" AND run.session = ").push_bind(session.uuid());
    }
    if let Some(since) = query.since {
        builder.push(" AND COALESCE(run.ended_at, run.began_at) >= ").push_bind(since.as_micros());
    }
    let open = " AND run.ended IS NULL AND run.started IS NOT NULL AND ";
    match query.state {
        None => {}
        Some(RunSort::Queued) => drop(builder.push(" AND run.ended IS NULL AND run.started IS NULL")),
        Some(RunSort::Running) => drop(builder.push(open).push("NOT ").push(HAS_OPEN_QUESTION_SQL)),
        Some(RunSort::Awaiting) => drop(builder.push(open).push(HAS_OPEN_QUESTION_SQL)),
        Some(sort @ (RunSort::Completed | RunSort::Refused | RunSort::Cancelled | RunSort::Failed)) => {
            builder.push(" AND run.ended_as = ").push_bind(batch_run_sort_code(sort));
        }
    }
}

const RUN_SQL: &str = "SELECT id, session, first, began_at, started, ended, outcome, ";

pub(super) async fn list_open_runs(
    pool: &PgPool,
    after: Option<(RunId, SessionId)>,
    limit: u32,
) -> Result<Vec<RunRow>, StoreError> {
    let sql = postgres_open_runs_sql(after.is_some());
    let query = sqlx::query(AssertSqlSafe(sql)).bind(i64::from(limit));
    let query = match after {
        Some((run, session)) => query.bind(run.uuid()).bind(session.uuid()),
        None => query,
    };
    query.fetch_all(pool).await.map_err(postgres_store_error)?.iter().map(decode_run).collect()
}

pub(super) async fn find_run(pool: &PgPool, run: RunId) -> Result<Option<RunRow>, StoreError> {
    let query = sqlx::query(AssertSqlSafe(format!(
        "{RUN_SQL} {HAS_OPEN_QUESTION_SQL} FROM run WHERE id = $1 ORDER BY session LIMIT 1"
    )));
    query
        .bind(run.uuid())
        .fetch_optional(pool)
        .await
        .map_err(postgres_store_error)?
        .as_ref()
        .map(decode_run)
        .transpose()
}

pub(super) async fn find_run_of_owner(
    pool: &PgPool,
    run: RunId,
    owner: &Principal,
) -> Result<Option<RunRow>, StoreError> {
    let query = sqlx::query(AssertSqlSafe(format!(
        "{RUN_SQL} {HAS_OPEN_QUESTION_SQL} FROM run WHERE id = $1 \
         AND EXISTS (SELECT FROM session WHERE session.id = run.session AND session.owner = $2) \
         ORDER BY session LIMIT 1"
    )));
    let query = query.bind(run.uuid()).bind(encode_postgres_text(owner.as_str()).into_owned());
    query.fetch_optional(pool).await.map_err(postgres_store_error)?.as_ref().map(decode_run).transpose()
}

/// What a run waits for that a child of the last process asks is asked by nobody any more.
pub(super) fn postgres_open_runs_sql(after: bool) -> String {
    let place = if after { " AND (id, session) > ($2, $3)" } else { "" };
    format!(
        "{RUN_SQL} {HAS_OPEN_QUESTION_SQL} AND NOT {HAS_HELD_QUESTION_SQL} FROM run \
         WHERE ended IS NULL{place} ORDER BY id, session LIMIT $1"
    )
}

pub(super) fn decode_run(row: &PgRow) -> Result<RunRow, StoreError> {
    let outcome: Option<&str> = row.get(6);
    let outcome = outcome.map(serde_json::from_str).transpose();
    let state = match outcome.map_err(|error| StoreError::Corrupt(error.to_string()))? {
        Some(outcome) => RunState::Ended(seq_column(row, 5), outcome),
        None if row.get::<Option<i64>, _>(4).is_none() => RunState::Queued,
        None if row.get(7) => RunState::Awaiting,
        None => RunState::Running,
    };
    let (run, session) = (RunId::new(row.get(0)), SessionId::new(row.get(1)));
    Ok(RunRow { run, session, state, first: seq_column(row, 2), began_at: Timestamp::from_micros(row.get(3)) })
}
