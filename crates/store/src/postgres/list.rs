//! Lists and look-ups in the side tables. Every list walks an index and has a limit.

use gander_domain::{Principal, QuestionId, RunId, SessionId, SessionPolicy, Timestamp};
use sqlx::postgres::{PgPool, PgRow};
use sqlx::{AssertSqlSafe, Postgres, QueryBuilder, Row as _};
use uuid::Uuid;

use super::failure::postgres_store_error;
use super::read::{seq_column, text_column};
use super::text::encode_postgres_text;
use crate::types::search_words;
use crate::{
    PageKey, QuestionRow, RunRow, RunState, SessionPage, SessionQuery, SessionStatus, SessionSummary, StoreError,
    SummaryUsage,
};

const SUMMARY_SQL: &str = "SELECT id, owner, workspace, agent, parent, title, created_at, updated_at, state, archived, \
     messages, policy, spent_input, spent_output, spent_cost, last_input, last_output, policy_chosen FROM session ";

const RUN_SQL: &str = "SELECT id, session, first, began_at, started, ended, outcome, ";

/// Whether a run asks something. With a limit, since the server may answer `EXISTS` by reading all open questions first.
pub(super) const HAS_OPEN_QUESTION_SQL: &str = "((SELECT 1 FROM question q \
     WHERE q.session = run.session AND q.run = run.id AND q.answered IS NULL LIMIT 1) IS NOT NULL)";
const HAS_HELD_QUESTION_SQL: &str = "((SELECT 1 FROM question q \
     WHERE q.session = run.session AND q.run = run.id AND q.answered IS NULL AND q.held LIMIT 1) IS NOT NULL)";

pub(super) async fn list_sessions(pool: &PgPool, query: SessionQuery) -> Result<SessionPage, StoreError> {
    let limit = query.limit.clamp(1, 1000) as usize;
    let rows = sessions_query(&query, limit + 1).build().fetch_all(pool).await.map_err(postgres_store_error)?;
    let mut sessions = rows.iter().map(decode_summary).collect::<Result<Vec<_>, _>>()?;
    let more = sessions.len() > limit;
    sessions.truncate(limit);
    let key = |summary: &SessionSummary| PageKey { updated_at: summary.updated_at, session: summary.session };
    let next = sessions.last().filter(|_| more).map(key);
    Ok(SessionPage { sessions, next })
}

/// The statement behind a list; a test looks at its plan.
pub(super) fn sessions_query(query: &SessionQuery, limit: usize) -> QueryBuilder<Postgres> {
    let mut builder = QueryBuilder::new(SUMMARY_SQL);
    builder.push("WHERE owner = ").push_bind(encode_postgres_text(query.principal.as_str()).into_owned());
    builder.push(" AND archived = ").push_bind(query.archived);
    if let Some(workspace) = &query.workspace {
        let workspace = encode_postgres_text(workspace).into_owned();
        builder.push(" AND hashtextextended(workspace, 0) = hashtextextended(").push_bind(workspace.clone());
        builder.push(" COLLATE \"C\", 0) AND workspace = ").push_bind(workspace);
    }
    if query.non_empty {
        builder.push(" AND (messages > 0 OR title <> '')");
    }
    if let Some(state) = query.state {
        builder.push(" AND state = ").push_bind(postgres_status_code(state));
    }
    for word in query.text.as_deref().map(search_words).unwrap_or_default() {
        builder.push(" AND strpos(search, ").push_bind(encode_postgres_text(&word).into_owned()).push(") > 0");
    }
    if let Some(after) = query.after {
        builder.push(" AND (updated_at, id) < (").push_bind(after.updated_at.as_micros());
        builder.push(", ").push_bind(after.session.uuid()).push(")");
    }
    builder.push(" ORDER BY updated_at DESC, id DESC LIMIT ").push_bind(limit as i64);
    builder
}

pub(super) async fn read_summary(pool: &PgPool, session: SessionId) -> Result<Option<SessionSummary>, StoreError> {
    let query = sqlx::query(AssertSqlSafe(format!("{SUMMARY_SQL} WHERE id = $1 AND deleted_at IS NULL")));
    let row = query.bind(session.uuid()).fetch_optional(pool).await.map_err(postgres_store_error)?;
    row.as_ref().map(decode_summary).transpose()
}

pub(super) async fn deleted_owner(pool: &PgPool, session: SessionId) -> Result<Option<Principal>, StoreError> {
    let query = sqlx::query("SELECT deleted_owner FROM session WHERE id = $1 AND deleted_owner IS NOT NULL");
    let row = query.bind(session.uuid()).fetch_optional(pool).await.map_err(postgres_store_error)?;
    Ok(row.map(|row| Principal::named(text_column(&row, 0))))
}

pub(super) async fn list_children(pool: &PgPool, session: SessionId) -> Result<Vec<SessionId>, StoreError> {
    let query = sqlx::query("SELECT id FROM session WHERE parent = $1 ORDER BY id").bind(session.uuid());
    let rows = query.fetch_all(pool).await.map_err(postgres_store_error)?;
    Ok(rows.iter().map(|row| SessionId::new(row.get(0))).collect())
}

pub(super) async fn session_size(pool: &PgPool, session: SessionId) -> Result<u64, StoreError> {
    let query = sqlx::query("SELECT COALESCE(SUM(octet_length(body)), 0)::BIGINT FROM entry WHERE session = $1");
    let row = query.bind(session.uuid()).fetch_one(pool).await.map_err(postgres_store_error)?;
    Ok(u64::try_from(row.get::<i64, _>(0)).unwrap_or(0))
}

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

/// Every list statement in every form, for a test that looks at their plans.
pub fn postgres_list_statements() -> Vec<String> {
    let key = PageKey { updated_at: Timestamp::default(), session: SessionId::new(Uuid::nil()) };
    let mut statements = vec![
        postgres_open_runs_sql(false),
        postgres_open_runs_sql(true),
        super::read::ENTRIES_SQL.to_owned(),
        super::maintenance::NEXT_TO_COMPACT_SQL.to_owned(),
        super::maintenance::NEXT_TO_PURGE_SQL.to_owned(),
    ];
    statements.extend(super::runs::postgres_run_statements());
    for bits in 0..32 {
        let query = SessionQuery {
            workspace: (bits & 1 > 0).then(String::new),
            text: (bits & 2 > 0).then(|| "word".to_owned()),
            state: (bits & 4 > 0).then_some(SessionStatus::Running),
            after: (bits & 8 > 0).then_some(key),
            non_empty: bits & 16 > 0,
            ..crate::sessions_of(Principal::owner())
        };
        statements.push(sessions_query(&query, 50).sql().as_str().to_owned());
    }
    statements
}

/// What a run waits for that a child of the last process asks is asked by nobody any more.
fn postgres_open_runs_sql(after: bool) -> String {
    let place = if after { " AND (id, session) > ($2, $3)" } else { "" };
    format!(
        "{RUN_SQL} {HAS_OPEN_QUESTION_SQL} AND NOT {HAS_HELD_QUESTION_SQL} FROM run \
         WHERE ended IS NULL{place} ORDER BY id, session LIMIT $1"
    )
}

fn decode_summary(row: &PgRow) -> Result<SessionSummary, StoreError> {
    Ok(SessionSummary {
        session: SessionId::new(row.get(0)),
        owner: Principal::named(text_column(row, 1)),
        workspace: text_column(row, 2),
        agent: text_column(row, 3),
        parent: row.get::<Option<Uuid>, _>(4).map(SessionId::new),
        title: text_column(row, 5),
        created_at: Timestamp::from_micros(row.get(6)),
        updated_at: Timestamp::from_micros(row.get(7)),
        state: decode_postgres_status(row.get(8))?,
        archived: row.get(9),
        messages: row.get::<i64, _>(10) as u64,
        usage: decode_usage(row),
    })
}

/// `None` for a session that was copied from a store that did not count.
fn decode_usage(row: &PgRow) -> Option<SummaryUsage> {
    let count = |column: usize| row.get::<Option<i64>, _>(column).map(|count| count as u64);
    Some(SummaryUsage {
        policy: SessionPolicy {
            policy: serde_json::from_value(row.get::<Option<String>, _>(11)?.into()).ok()?,
            chosen: row.get::<Option<bool>, _>(17)?,
        },
        input: count(12)?,
        output: count(13)?,
        cost: count(14)?,
        last_call: count(15).zip(count(16)),
    })
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

fn postgres_status_code(state: SessionStatus) -> i16 {
    match state {
        SessionStatus::Idle => 0,
        SessionStatus::Running => 1,
        SessionStatus::Awaiting => 2,
    }
}

fn decode_postgres_status(code: i16) -> Result<SessionStatus, StoreError> {
    match code {
        0 => Ok(SessionStatus::Idle),
        1 => Ok(SessionStatus::Running),
        2 => Ok(SessionStatus::Awaiting),
        _ => Err(StoreError::Corrupt(format!("session in state {code}"))),
    }
}
