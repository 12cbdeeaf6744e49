//! Lists and look-ups in the side tables. Every list walks an index and has a limit.

use gander_domain::{Principal, QuestionId, RunId, SessionId, SessionPolicy, Timestamp};
use sqlx::sqlite::{SqlitePool, SqliteRow};
use sqlx::{AssertSqlSafe, Row as _};

use super::failure::sqlite_store_error;
use super::read::{decode_sqlite_uuid, read_sqlite_session_id, seq_column, sqlite_session_bytes};
use super::script::SqliteScript;
use crate::types::search_words;
use crate::{
    Alias, PageKey, QuestionRow, RunRow, RunState, SessionPage, SessionQuery, SessionStatus, SessionSummary,
    StoreError, SummaryUsage,
};

const SUMMARY_SQL: &str = "SELECT id, owner, workspace, agent, parent, title, created_at, updated_at, state, archived, \
     messages, policy, spent_input, spent_output, spent_cost, last_input, last_output, policy_chosen FROM session ";

pub(super) const ALIAS_SQL: &str =
    "SELECT session FROM alias WHERE principal = ? AND door = ? AND namespace = ? AND text = ?";

const RUN_SQL: &str = "SELECT id, session, first, began_at, started, ended, outcome, ";

/// Whether a run asks something; what more must be true of the question, and `)`, follow.
const HAS_OPEN_QUESTION_SQL: &str = "EXISTS (SELECT 1 FROM question q INDEXED BY question_open \
     WHERE q.session = run.session AND q.run = run.id AND q.answered IS NULL";

pub(super) async fn list_sessions(pool: &SqlitePool, query: SessionQuery) -> Result<SessionPage, StoreError> {
    let limit = query.limit.clamp(1, 1000) as usize;
    let (sql, args) = list_sessions_script(&query, limit + 1).into_query();
    let rows = sqlx::query_with(AssertSqlSafe(sql), args).fetch_all(pool).await.map_err(sqlite_store_error)?;
    let mut sessions = rows.iter().map(decode_summary).collect::<Result<Vec<_>, _>>()?;
    let more = sessions.len() > limit;
    sessions.truncate(limit);
    let key = |card: &SessionSummary| PageKey { updated_at: card.updated_at, session: card.session };
    let next = sessions.last().filter(|_| more).map(key);
    Ok(SessionPage { sessions, next })
}

/// The statement behind a list; a test looks at its plan.
pub(super) fn list_sessions_script(query: &SessionQuery, limit: usize) -> SqliteScript {
    let mut script = SqliteScript::new(SUMMARY_SQL);
    script.push_sql("WHERE owner = ? AND archived = ?");
    script.bind_value(query.principal.as_str().to_owned());
    script.bind_value(query.archived);
    if let Some(workspace) = &query.workspace {
        script.push_sql(" AND workspace = ?");
        script.bind_value(workspace.clone());
    }
    if query.non_empty {
        script.push_sql(" AND (messages > 0 OR title <> '')");
    }
    if let Some(state) = query.state {
        script.push_sql(" AND state = ?");
        script.bind_value(sqlite_status_code(state));
    }
    for word in query.text.as_deref().map(search_words).unwrap_or_default() {
        script.push_sql(" AND instr(search, ?) > 0");
        script.bind_value(word);
    }
    if let Some(after) = query.after {
        script.push_sql(" AND (updated_at, id) < (?, ?)");
        script.bind_value(after.updated_at.as_micros());
        script.bind_session(after.session);
    }
    script.push_sql(" ORDER BY updated_at DESC, id DESC LIMIT ?");
    script.bind_value(limit as i64);
    script
}

pub(super) async fn read_summary(pool: &SqlitePool, session: SessionId) -> Result<Option<SessionSummary>, StoreError> {
    let query = sqlx::query(AssertSqlSafe(format!("{SUMMARY_SQL} WHERE id = ? AND deleted_at IS NULL")));
    let row = query.bind(sqlite_session_bytes(session)).fetch_optional(pool).await.map_err(sqlite_store_error)?;
    row.as_ref().map(decode_summary).transpose()
}

/// The session behind a name.
pub(super) async fn find_alias(pool: &SqlitePool, alias: &Alias) -> Result<Option<SessionId>, StoreError> {
    let query = sqlx::query(ALIAS_SQL).bind(alias.principal.as_str()).bind(&alias.door);
    let query = query.bind(&alias.namespace).bind(&alias.text);
    let row = query.fetch_optional(pool).await.map_err(sqlite_store_error)?;
    row.map(|row| read_sqlite_session_id(row.get(0))).transpose()
}

pub(super) async fn deleted_owner(pool: &SqlitePool, session: SessionId) -> Result<Option<Principal>, StoreError> {
    let query = sqlx::query("SELECT deleted_owner FROM session WHERE id = ?").bind(sqlite_session_bytes(session));
    let row = query.fetch_optional(pool).await.map_err(sqlite_store_error)?;
    Ok(row.and_then(|row| row.get::<Option<String>, _>(0)).map(Principal::named))
}

pub(super) async fn list_children(pool: &SqlitePool, session: SessionId) -> Result<Vec<SessionId>, StoreError> {
    let query = sqlx::query("SELECT id FROM session WHERE parent = ? ORDER BY id").bind(sqlite_session_bytes(session));
    query
        .fetch_all(pool)
        .await
        .map_err(sqlite_store_error)?
        .iter()
        .map(|row| read_sqlite_session_id(row.get(0)))
        .collect()
}

pub(super) async fn session_size(pool: &SqlitePool, session: SessionId) -> Result<u64, StoreError> {
    let query = sqlx::query("SELECT COALESCE(SUM(LENGTH(CAST(body AS BLOB))), 0) FROM entry WHERE session = ?");
    let row = query.bind(sqlite_session_bytes(session)).fetch_one(pool).await.map_err(sqlite_store_error)?;
    Ok(u64::try_from(row.get::<i64, _>(0)).unwrap_or(0))
}

pub(super) async fn list_open_runs(
    pool: &SqlitePool,
    after: Option<(RunId, SessionId)>,
    limit: u32,
) -> Result<Vec<RunRow>, StoreError> {
    let (run, session) = after
        .map_or((vec![], vec![]), |(run, session)| (run.uuid().into_bytes().to_vec(), sqlite_session_bytes(session)));
    let query = sqlx::query(AssertSqlSafe(sqlite_open_runs_sql())).bind(run).bind(session).bind(i64::from(limit));
    query.fetch_all(pool).await.map_err(sqlite_store_error)?.iter().map(decode_run).collect()
}

pub(super) async fn find_run(pool: &SqlitePool, run: RunId) -> Result<Option<RunRow>, StoreError> {
    let query = sqlx::query(AssertSqlSafe(format!(
        "{RUN_SQL} {HAS_OPEN_QUESTION_SQL}) FROM run WHERE id = ? ORDER BY session LIMIT 1"
    )));
    let query = query.bind(run.uuid().into_bytes().to_vec());
    query.fetch_optional(pool).await.map_err(sqlite_store_error)?.as_ref().map(decode_run).transpose()
}

pub(super) async fn find_run_of_owner(
    pool: &SqlitePool,
    run: RunId,
    owner: &Principal,
) -> Result<Option<RunRow>, StoreError> {
    let query = sqlx::query(AssertSqlSafe(format!(
        "{RUN_SQL} {HAS_OPEN_QUESTION_SQL}) FROM run WHERE id = ? \
         AND EXISTS (SELECT 1 FROM session WHERE session.id = run.session AND session.owner = ?) \
         ORDER BY session LIMIT 1"
    )));
    let query = query.bind(run.uuid().into_bytes().to_vec()).bind(owner.as_str());
    query.fetch_optional(pool).await.map_err(sqlite_store_error)?.as_ref().map(decode_run).transpose()
}

pub(super) async fn find_question(pool: &SqlitePool, question: QuestionId) -> Result<Option<QuestionRow>, StoreError> {
    let query = "SELECT session, run, asked, answered, held FROM question WHERE id = ? ORDER BY session LIMIT 1";
    let query = sqlx::query(query).bind(question.uuid().into_bytes().to_vec());
    let Some(row) = query.fetch_optional(pool).await.map_err(sqlite_store_error)? else { return Ok(None) };
    Ok(Some(QuestionRow {
        question,
        session: read_sqlite_session_id(row.get(0))?,
        run: row.get::<Option<&[u8]>, _>(1).map(decode_sqlite_uuid).transpose()?.map(RunId::new),
        asked: seq_column(&row, 2),
        answered: row.get::<Option<i64>, _>(3).map(|_| seq_column(&row, 3)),
        held: row.get(4),
    }))
}

pub(super) async fn list_aliases(pool: &SqlitePool, session: SessionId) -> Result<Vec<Alias>, StoreError> {
    let query = "SELECT principal, door, namespace, text FROM alias WHERE session = ? \
         ORDER BY principal, door, namespace, text LIMIT 1000";
    let rows =
        sqlx::query(query).bind(sqlite_session_bytes(session)).fetch_all(pool).await.map_err(sqlite_store_error)?;
    let alias = |row: &SqliteRow| Alias {
        principal: Principal::named(row.get::<String, _>(0)),
        door: row.get(1),
        namespace: row.get(2),
        text: row.get(3),
    };
    Ok(rows.iter().map(alias).collect())
}

/// The names after one of them; no name is empty.
pub(super) async fn list_aliases_in(
    pool: &SqlitePool,
    [principal, door, namespace, after]: [&str; 4],
    limit: u32,
) -> Result<Vec<(String, SessionId)>, StoreError> {
    let query = "SELECT text, session FROM alias \
         WHERE principal = ? AND door = ? AND namespace = ? AND text > ? ORDER BY text LIMIT ?";
    let query = sqlx::query(query).bind(principal).bind(door).bind(namespace).bind(after).bind(limit);
    let rows = query.fetch_all(pool).await.map_err(sqlite_store_error)?;
    rows.iter().map(|row: &SqliteRow| Ok((row.get(0), read_sqlite_session_id(row.get(1))?))).collect()
}

/// Every list statement in every form, for a test that looks at their plans.
pub fn sqlite_list_statements() -> Vec<String> {
    let key = PageKey { updated_at: Timestamp::default(), session: SessionId::new(::uuid::Uuid::nil()) };
    let mut statements = vec![
        sqlite_open_runs_sql(),
        super::read::ENTRIES_SQL.to_owned(),
        super::maintenance::NEXT_TO_COMPACT_SQL.to_owned(),
        super::maintenance::NEXT_TO_PURGE_SQL.to_owned(),
    ];
    statements.extend(super::runs::sqlite_run_statements());
    for bits in 0..32 {
        let query = SessionQuery {
            workspace: (bits & 1 > 0).then(String::new),
            text: (bits & 2 > 0).then(|| "word".to_owned()),
            state: (bits & 4 > 0).then_some(SessionStatus::Running),
            after: (bits & 8 > 0).then_some(key),
            non_empty: bits & 16 > 0,
            ..crate::sessions_of(Principal::owner())
        };
        statements.push(list_sessions_script(&query, 50).sql);
    }
    statements
}

/// What a run waits for that a child of the last process asks is asked by nobody any more.
fn sqlite_open_runs_sql() -> String {
    let open = "ended IS NULL AND (id, session) > (?, ?) ORDER BY id, session LIMIT ?";
    format!("{RUN_SQL} {HAS_OPEN_QUESTION_SQL}) AND NOT {HAS_OPEN_QUESTION_SQL} AND q.held) FROM run WHERE {open}")
}

fn decode_summary(row: &SqliteRow) -> Result<SessionSummary, StoreError> {
    Ok(SessionSummary {
        session: read_sqlite_session_id(row.get(0))?,
        owner: Principal::named(row.get::<String, _>(1)),
        workspace: row.get(2),
        agent: row.get(3),
        parent: row.get::<Option<&[u8]>, _>(4).map(read_sqlite_session_id).transpose()?,
        title: row.get(5),
        created_at: Timestamp::from_micros(row.get(6)),
        updated_at: Timestamp::from_micros(row.get(7)),
        state: decode_sqlite_status(row.get(8))?,
        archived: row.get(9),
        messages: row.get::<i64, _>(10) as u64,
        usage: decode_usage(row),
    })
}

/// `None` for a row from before these columns were there.
fn decode_usage(row: &SqliteRow) -> Option<SummaryUsage> {
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

pub(super) fn decode_run(row: &SqliteRow) -> Result<RunRow, StoreError> {
    let outcome: Option<&str> = row.get(6);
    let outcome = outcome.map(serde_json::from_str).transpose();
    let state = match outcome.map_err(|error| StoreError::Corrupt(error.to_string()))? {
        Some(outcome) => RunState::Ended(seq_column(row, 5), outcome),
        None if row.get::<Option<i64>, _>(4).is_none() => RunState::Queued,
        None if row.get(7) => RunState::Awaiting,
        None => RunState::Running,
    };
    let (run, session) = (RunId::new(decode_sqlite_uuid(row.get(0))?), read_sqlite_session_id(row.get(1))?);
    Ok(RunRow { run, session, state, first: seq_column(row, 2), began_at: Timestamp::from_micros(row.get(3)) })
}

fn sqlite_status_code(state: SessionStatus) -> i64 {
    match state {
        SessionStatus::Idle => 0,
        SessionStatus::Running => 1,
        SessionStatus::Awaiting => 2,
    }
}

fn decode_sqlite_status(code: i64) -> Result<SessionStatus, StoreError> {
    match code {
        0 => Ok(SessionStatus::Idle),
        1 => Ok(SessionStatus::Running),
        2 => Ok(SessionStatus::Awaiting),
        _ => Err(StoreError::Corrupt(format!("session in state {code}"))),
    }
}
