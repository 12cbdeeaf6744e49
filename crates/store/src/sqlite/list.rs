//! Lists and look-ups in the side tables. Every list walks an index and has a limit.

use gander_domain::{Principal, QuestionId, RunId, SessionId, Timestamp};
use sqlx::sqlite::{SqlitePool, SqliteRow};
use sqlx::{AssertSqlSafe, Row as _};

use super::failure::failed;
use super::read::{bytes, seq, session_id, uuid};
use super::script::Script;
use crate::types::words;
use crate::{Alias, Card, CardState, Page, PageKey, QuestionRow, RunRow, RunState, SessionQuery, StoreError};

const CARD: &str = "SELECT id, owner, workspace, agent, parent, title, created_at, updated_at, state, archived, \
     messages FROM session ";

const RUN: &str = "SELECT id, session, first, began_at, started, ended, outcome, ";

/// Whether a run asks something; what more must be true of the question, and `)`, follow.
const ASKS: &str = "EXISTS (SELECT 1 FROM question q INDEXED BY question_open \
     WHERE q.session = run.session AND q.run = run.id AND q.answered IS NULL";

pub(super) async fn sessions(pool: &SqlitePool, query: SessionQuery) -> Result<Page, StoreError> {
    let limit = query.limit.clamp(1, 1000) as usize;
    let Script { sql, args } = sessions_script(&query, limit + 1);
    let rows = sqlx::query_with(AssertSqlSafe(sql), args).fetch_all(pool).await.map_err(failed)?;
    let mut cards = rows.iter().map(card_of).collect::<Result<Vec<_>, _>>()?;
    let more = cards.len() > limit;
    cards.truncate(limit);
    let key = |card: &Card| PageKey { updated_at: card.updated_at, session: card.session };
    let next = cards.last().filter(|_| more).map(key);
    Ok(Page { cards, next })
}

/// The statement behind a list; a test looks at its plan.
pub(super) fn sessions_script(query: &SessionQuery, limit: usize) -> Script {
    let mut script = Script::new(CARD);
    script.sql("WHERE owner = ? AND archived = ?");
    script.bind(query.principal.as_str().to_owned());
    script.bind(query.archived);
    if let Some(workspace) = &query.workspace {
        script.sql(" AND workspace = ?");
        script.bind(workspace.clone());
    }
    if let Some(state) = query.state {
        script.sql(" AND state = ?");
        script.bind(state_code(state));
    }
    for word in query.text.as_deref().map(words).unwrap_or_default() {
        script.sql(" AND instr(search, ?) > 0");
        script.bind(word);
    }
    if let Some(after) = query.after {
        script.sql(" AND (updated_at, id) < (?, ?)");
        script.bind(after.updated_at.micros());
        script.bind_session(after.session);
    }
    script.sql(" ORDER BY updated_at DESC, id DESC LIMIT ?");
    script.bind(limit as i64);
    script
}

pub(super) async fn card(pool: &SqlitePool, session: SessionId) -> Result<Option<Card>, StoreError> {
    let query = sqlx::query(AssertSqlSafe(format!("{CARD} WHERE id = ? AND deleted_at IS NULL")));
    let row = query.bind(bytes(session)).fetch_optional(pool).await.map_err(failed)?;
    row.as_ref().map(card_of).transpose()
}

pub(super) async fn deleted_owner(pool: &SqlitePool, session: SessionId) -> Result<Option<Principal>, StoreError> {
    let query = sqlx::query("SELECT deleted_owner FROM session WHERE id = ?").bind(bytes(session));
    let row = query.fetch_optional(pool).await.map_err(failed)?;
    Ok(row.and_then(|row| row.get::<Option<String>, _>(0)).map(Principal::named))
}

pub(super) async fn open_runs(
    pool: &SqlitePool,
    after: Option<(RunId, SessionId)>,
    limit: u32,
) -> Result<Vec<RunRow>, StoreError> {
    let (run, session) =
        after.map_or((vec![], vec![]), |(run, session)| (run.uuid().into_bytes().to_vec(), bytes(session)));
    let query = sqlx::query(AssertSqlSafe(open_runs_sql())).bind(run).bind(session).bind(i64::from(limit));
    query.fetch_all(pool).await.map_err(failed)?.iter().map(run_of).collect()
}

pub(super) async fn run(pool: &SqlitePool, run: RunId) -> Result<Option<RunRow>, StoreError> {
    let query = sqlx::query(AssertSqlSafe(format!("{RUN} {ASKS}) FROM run WHERE id = ? ORDER BY session LIMIT 1")));
    let query = query.bind(run.uuid().into_bytes().to_vec());
    query.fetch_optional(pool).await.map_err(failed)?.as_ref().map(run_of).transpose()
}

pub(super) async fn run_of_owner(
    pool: &SqlitePool,
    run: RunId,
    owner: &Principal,
) -> Result<Option<RunRow>, StoreError> {
    let query = sqlx::query(AssertSqlSafe(format!(
        "{RUN} {ASKS}) FROM run WHERE id = ? \
         AND EXISTS (SELECT 1 FROM session WHERE session.id = run.session AND session.owner = ?) \
         ORDER BY session LIMIT 1"
    )));
    let query = query.bind(run.uuid().into_bytes().to_vec()).bind(owner.as_str());
    query.fetch_optional(pool).await.map_err(failed)?.as_ref().map(run_of).transpose()
}

pub(super) async fn question(pool: &SqlitePool, question: QuestionId) -> Result<Option<QuestionRow>, StoreError> {
    let query = "SELECT session, run, asked, answered, held FROM question WHERE id = ? ORDER BY session LIMIT 1";
    let query = sqlx::query(query).bind(question.uuid().into_bytes().to_vec());
    let Some(row) = query.fetch_optional(pool).await.map_err(failed)? else { return Ok(None) };
    Ok(Some(QuestionRow {
        question,
        session: session_id(row.get(0))?,
        run: row.get::<Option<&[u8]>, _>(1).map(uuid).transpose()?.map(RunId::new),
        asked: seq(&row, 2),
        answered: row.get::<Option<i64>, _>(3).map(|_| seq(&row, 3)),
        held: row.get(4),
    }))
}

pub(super) async fn aliases(pool: &SqlitePool, session: SessionId) -> Result<Vec<Alias>, StoreError> {
    let query = "SELECT principal, door, namespace, text FROM alias WHERE session = ? \
         ORDER BY principal, door, namespace, text LIMIT 1000";
    let rows = sqlx::query(query).bind(bytes(session)).fetch_all(pool).await.map_err(failed)?;
    let alias = |row: &SqliteRow| Alias {
        principal: Principal::named(row.get::<String, _>(0)),
        door: row.get(1),
        namespace: row.get(2),
        text: row.get(3),
    };
    Ok(rows.iter().map(alias).collect())
}

/// The names after one of them; no name is empty.
pub(super) async fn named(
    pool: &SqlitePool,
    [principal, door, namespace, after]: [&str; 4],
    limit: u32,
) -> Result<Vec<(String, SessionId)>, StoreError> {
    let query = "SELECT text, session FROM alias \
         WHERE principal = ? AND door = ? AND namespace = ? AND text > ? ORDER BY text LIMIT ?";
    let query = sqlx::query(query).bind(principal).bind(door).bind(namespace).bind(after).bind(limit);
    let rows = query.fetch_all(pool).await.map_err(failed)?;
    rows.iter().map(|row: &SqliteRow| Ok((row.get(0), session_id(row.get(1))?))).collect()
}

/// Every list statement in every form, for a test that looks at their plans.
pub fn list_statements() -> Vec<String> {
    let key = PageKey { updated_at: Timestamp::default(), session: SessionId::new(::uuid::Uuid::nil()) };
    let mut statements = vec![
        open_runs_sql(),
        super::read::ENTRIES.to_owned(),
        super::upkeep::TO_COMPACT.to_owned(),
        super::upkeep::TO_PURGE.to_owned(),
    ];
    statements.extend(super::runs::statements());
    for bits in 0..16 {
        let query = SessionQuery {
            workspace: (bits & 1 > 0).then(String::new),
            text: (bits & 2 > 0).then(|| "word".to_owned()),
            state: (bits & 4 > 0).then_some(CardState::Running),
            after: (bits & 8 > 0).then_some(key),
            ..crate::sessions_of(Principal::owner())
        };
        statements.push(sessions_script(&query, 50).sql);
    }
    statements
}

/// What a run waits for that a child of the last process asks is asked by nobody any more.
fn open_runs_sql() -> String {
    let open = "ended IS NULL AND (id, session) > (?, ?) ORDER BY id, session LIMIT ?";
    format!("{RUN} {ASKS}) AND NOT {ASKS} AND q.held) FROM run WHERE {open}")
}

fn card_of(row: &SqliteRow) -> Result<Card, StoreError> {
    Ok(Card {
        session: session_id(row.get(0))?,
        owner: Principal::named(row.get::<String, _>(1)),
        workspace: row.get(2),
        agent: row.get(3),
        parent: row.get::<Option<&[u8]>, _>(4).map(session_id).transpose()?,
        title: row.get(5),
        created_at: Timestamp::from_micros(row.get(6)),
        updated_at: Timestamp::from_micros(row.get(7)),
        state: state_of(row.get(8))?,
        archived: row.get(9),
        messages: row.get::<i64, _>(10) as u64,
    })
}

pub(super) fn run_of(row: &SqliteRow) -> Result<RunRow, StoreError> {
    let outcome: Option<&str> = row.get(6);
    let outcome = outcome.map(serde_json::from_str).transpose();
    let state = match outcome.map_err(|error| StoreError::Corrupt(error.to_string()))? {
        Some(outcome) => RunState::Ended(seq(row, 5), outcome),
        None if row.get::<Option<i64>, _>(4).is_none() => RunState::Queued,
        None if row.get(7) => RunState::Awaiting,
        None => RunState::Running,
    };
    let (run, session) = (RunId::new(uuid(row.get(0))?), session_id(row.get(1))?);
    Ok(RunRow { run, session, state, first: seq(row, 2), began_at: Timestamp::from_micros(row.get(3)) })
}

fn state_code(state: CardState) -> i64 {
    match state {
        CardState::Idle => 0,
        CardState::Running => 1,
        CardState::Awaiting => 2,
    }
}

fn state_of(code: i64) -> Result<CardState, StoreError> {
    match code {
        0 => Ok(CardState::Idle),
        1 => Ok(CardState::Running),
        2 => Ok(CardState::Awaiting),
        _ => Err(StoreError::Corrupt(format!("session in state {code}"))),
    }
}
