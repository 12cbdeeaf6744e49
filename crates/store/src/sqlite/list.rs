//! Lists and look-ups in the side tables. Every list walks an index and has a limit.

use gander_domain::{Principal, QuestionId, RunId, Seq, SessionId, SessionPolicy, Timestamp};
use rusqlite::{Connection, OptionalExtension, Row as SqliteRow, params};

use super::read::{id_column, required_id_column, seq_column, session_column, text_column};
use super::script::SqliteScript;
use crate::types::search_words;
use crate::{
    Alias, PageKey, QuestionRow, RunRow, RunState, SessionPage, SessionQuery, SessionStatus, SessionSummary,
    StoreError, SummaryUsage,
};

const SUMMARY_SQL: &str = "SELECT id, owner, workspace, agent, parent, title, created_at, updated_at, state, archived, \
     messages, policy, spent_input, spent_output, spent_cost, last_input, last_output, policy_chosen FROM session ";

const RUN_SQL: &str = "SELECT id, session, first, began_at, started, ended, outcome, ";

/// Whether a run asks something; what more must be true of the question, and `)`, follow.
const HAS_OPEN_QUESTION_SQL: &str = "EXISTS (SELECT 1 FROM question q INDEXED BY question_open \
     WHERE q.session = run.session AND q.run = run.id AND q.answered IS NULL";

pub(super) fn list_sessions(connection: &Connection, query: &SessionQuery) -> Result<SessionPage, StoreError> {
    let limit = query.limit.clamp(1, 1000) as usize;
    let mut sessions = list_sessions_script(query, limit + 1).query_rows(connection, decode_summary)?;
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

pub(super) fn read_summary(connection: &Connection, session: SessionId) -> Result<Option<SessionSummary>, StoreError> {
    let mut script = SqliteScript::new(SUMMARY_SQL);
    script.push_sql(" WHERE id = ? AND deleted_at IS NULL");
    script.bind_session(session);
    Ok(script.query_rows(connection, decode_summary)?.pop())
}

/// The session behind a name.
pub(super) fn find_alias(connection: &Connection, alias: &Alias) -> Result<Option<SessionId>, StoreError> {
    let mut statement = connection
        .prepare_cached("SELECT session FROM alias WHERE principal = ? AND door = ? AND namespace = ? AND text = ?")?;
    let mut rows = statement.query([alias.principal.as_str(), &alias.door, &alias.namespace, &alias.text])?;
    rows.next()?.map(|row| session_column(row, 0)).transpose()
}

pub(super) fn deleted_owner(connection: &Connection, session: SessionId) -> Result<Option<Principal>, StoreError> {
    let mut statement = connection.prepare_cached("SELECT deleted_owner FROM session WHERE id = ?")?;
    let owner = statement.query_row([session.uuid().as_bytes()], |row| row.get::<_, Option<String>>(0)).optional()?;
    Ok(owner.flatten().map(Principal::named))
}

pub(super) fn list_children(connection: &Connection, session: SessionId) -> Result<Vec<SessionId>, StoreError> {
    let mut script = SqliteScript::new("SELECT id FROM session WHERE parent = ? ORDER BY id");
    script.bind_session(session);
    script.query_rows(connection, |row| session_column(row, 0))
}

pub(super) fn session_size(connection: &Connection, session: SessionId) -> Result<u64, StoreError> {
    let mut statement = connection
        .prepare_cached("SELECT COALESCE(SUM(LENGTH(CAST(body AS BLOB))), 0) FROM entry WHERE session = ?")?;
    let size: i64 = statement.query_row([session.uuid().as_bytes()], |row| row.get(0))?;
    Ok(u64::try_from(size).unwrap_or(0))
}

pub(super) fn list_open_runs(
    connection: &Connection,
    after: Option<(RunId, SessionId)>,
    limit: u32,
) -> Result<Vec<RunRow>, StoreError> {
    let mut script = SqliteScript::new(&sqlite_open_runs_sql());
    match after {
        Some((run, session)) => {
            script.bind_id(run.uuid());
            script.bind_session(session);
        }
        None => (0..2).for_each(|_| script.bind_value(Vec::new())),
    }
    script.bind_value(i64::from(limit));
    script.query_rows(connection, decode_run)
}

pub(super) fn find_run(connection: &Connection, run: RunId) -> Result<Option<RunRow>, StoreError> {
    let mut script = SqliteScript::new(RUN_SQL);
    script.push_sql(HAS_OPEN_QUESTION_SQL);
    script.push_sql(") FROM run WHERE id = ? ORDER BY session LIMIT 1");
    script.bind_id(run.uuid());
    Ok(script.query_rows(connection, decode_run)?.pop())
}

pub(super) fn find_run_of_owner(
    connection: &Connection,
    run: RunId,
    owner: &Principal,
) -> Result<Option<RunRow>, StoreError> {
    let mut script = SqliteScript::new(RUN_SQL);
    script.push_sql(HAS_OPEN_QUESTION_SQL);
    script.push_sql(
        ") FROM run WHERE id = ? \
         AND EXISTS (SELECT 1 FROM session WHERE session.id = run.session AND session.owner = ?) \
         ORDER BY session LIMIT 1",
    );
    script.bind_id(run.uuid());
    script.bind_value(owner.as_str().to_owned());
    Ok(script.query_rows(connection, decode_run)?.pop())
}

pub(super) fn find_question(connection: &Connection, question: QuestionId) -> Result<Option<QuestionRow>, StoreError> {
    let mut script = SqliteScript::new(
        "SELECT session, run, asked, answered, held FROM question WHERE id = ? ORDER BY session LIMIT 1",
    );
    script.bind_id(question.uuid());
    let decode = |row: &SqliteRow<'_>| {
        Ok(QuestionRow {
            question,
            session: session_column(row, 0)?,
            run: id_column(row, 1)?.map(RunId::new),
            asked: seq_column(row, 2)?,
            answered: row.get::<_, Option<i64>>(3)?.map(|seq| Seq(seq as u64)),
            held: row.get(4)?,
        })
    };
    Ok(script.query_rows(connection, decode)?.pop())
}

pub(super) fn list_aliases(connection: &Connection, session: SessionId) -> Result<Vec<Alias>, StoreError> {
    let mut script = SqliteScript::new(
        "SELECT principal, door, namespace, text FROM alias WHERE session = ? \
         ORDER BY principal, door, namespace, text LIMIT 1000",
    );
    script.bind_session(session);
    script.query_rows(connection, |row| {
        let principal = Principal::named(row.get::<_, String>(0)?);
        Ok(Alias { principal, door: row.get(1)?, namespace: row.get(2)?, text: row.get(3)? })
    })
}

/// The names after one of them; no name is empty.
pub(super) fn list_aliases_in(
    connection: &Connection,
    [principal, door, namespace, after]: &[String; 4],
    limit: u32,
) -> Result<Vec<(String, SessionId)>, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT text, session FROM alias \
         WHERE principal = ? AND door = ? AND namespace = ? AND text > ? ORDER BY text LIMIT ?",
    )?;
    let mut rows = statement.query(params![principal, door, namespace, after, limit])?;
    let mut names = Vec::new();
    while let Some(row) = rows.next()? {
        names.push((row.get(0)?, session_column(row, 1)?));
    }
    Ok(names)
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

fn decode_summary(row: &SqliteRow<'_>) -> Result<SessionSummary, StoreError> {
    Ok(SessionSummary {
        session: session_column(row, 0)?,
        owner: Principal::named(row.get::<_, String>(1)?),
        workspace: row.get(2)?,
        agent: row.get(3)?,
        parent: id_column(row, 4)?.map(SessionId::new),
        title: row.get(5)?,
        created_at: Timestamp::from_micros(row.get(6)?),
        updated_at: Timestamp::from_micros(row.get(7)?),
        state: decode_sqlite_status(row.get(8)?)?,
        archived: row.get(9)?,
        messages: row.get::<_, i64>(10)? as u64,
        usage: decode_usage(row)?,
    })
}

/// `None` for a row from before these columns were there.
fn decode_usage(row: &SqliteRow<'_>) -> Result<Option<SummaryUsage>, StoreError> {
    let count = |column: usize| Ok::<_, StoreError>(row.get::<_, Option<i64>>(column)?.map(|count| count as u64));
    let policy = text_column(row, 11)?.and_then(|policy| serde_json::from_value(policy.into()).ok());
    let policy = policy.zip(row.get::<_, Option<bool>>(17)?);
    let spent = count(12)?.zip(count(13)?).zip(count(14)?);
    let last_call = count(15)?.zip(count(16)?);
    Ok(policy.zip(spent).map(|((policy, chosen), ((input, output), cost))| SummaryUsage {
        policy: SessionPolicy { policy, chosen },
        input,
        output,
        cost,
        last_call,
    }))
}

pub(super) fn decode_run(row: &SqliteRow<'_>) -> Result<RunRow, StoreError> {
    let outcome = text_column(row, 6)?.map(serde_json::from_str).transpose();
    let state = match outcome.map_err(|error| StoreError::Corrupt(error.to_string()))? {
        Some(outcome) => RunState::Ended(seq_column(row, 5)?, outcome),
        None if row.get::<_, Option<i64>>(4)?.is_none() => RunState::Queued,
        None if row.get(7)? => RunState::Awaiting,
        None => RunState::Running,
    };
    let (run, session) = (RunId::new(required_id_column(row, 0)?), session_column(row, 1)?);
    Ok(RunRow { run, session, state, first: seq_column(row, 2)?, began_at: Timestamp::from_micros(row.get(3)?) })
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
