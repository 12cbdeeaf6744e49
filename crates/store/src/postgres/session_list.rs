//! Lists of sessions, and what the list knows of one. Every list walks an index and has a limit.

use gander_domain::{Principal, SessionId, SessionPolicy, Timestamp};
use sqlx::postgres::{PgPool, PgRow};
use sqlx::{AssertSqlSafe, Postgres, QueryBuilder, Row as _};
use uuid::Uuid;

use super::failure::postgres_store_error;
use super::read::text_column;
use super::runs::postgres_open_runs_sql;
use super::text::encode_postgres_text;
use crate::types::search_words;
use crate::{PageKey, SessionPage, SessionQuery, SessionStatus, SessionSummary, StoreError, SummaryUsage};

const SUMMARY_SQL: &str = "SELECT id, owner, workspace, agent, parent, title, created_at, updated_at, state, archived, \
     messages, policy, spent_input, spent_output, spent_cost, last_input, last_output, policy_chosen FROM session ";

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
