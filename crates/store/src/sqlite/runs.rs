//! Lists of somebody's runs.

use gander_domain::Timestamp;
use rusqlite::Connection;

use super::list::decode_run;
use super::script::SqliteScript;
use crate::{RunKey, RunPage, RunQuery, RunSort, StoreError};

const RUN_ROWS_SQL: &str = "SELECT run.id, run.session, run.first, run.began_at, run.started, run.ended, run.outcome, \
     EXISTS (SELECT 1 FROM question q WHERE q.session = run.session AND q.run = run.id AND q.answered IS NULL), \
     COALESCE(run.ended_at, run.began_at) AS at ";
const HAS_OPEN_QUESTION_SQL: &str =
    "EXISTS (SELECT 1 FROM question q WHERE q.session = run.session AND q.run = run.id AND q.answered IS NULL)";

pub(super) fn list_runs(connection: &Connection, query: &RunQuery) -> Result<RunPage, StoreError> {
    let limit = query.limit.clamp(1, 1000) as usize;
    let total = count_runs_script(query).query_rows(connection, |row| Ok(row.get::<_, i64>(0)?))?.pop();
    let found = page_runs_script(query, limit + 1)
        .query_rows(connection, |row| Ok((decode_run(row)?, Timestamp::from_micros(row.get(8)?))))?;
    let more = found.len() > limit;
    let last = found.iter().take(limit).next_back().filter(|_| more);
    let next = last.map(|(row, at)| RunKey { at: *at, run: row.run });
    let rows = found.into_iter().take(limit).map(|(row, _)| row).collect();
    Ok(RunPage { rows, total: total.unwrap_or_default().unsigned_abs(), next })
}

fn count_runs_script(query: &RunQuery) -> SqliteScript {
    let mut script = SqliteScript::new("SELECT COUNT(*) FROM session JOIN run ON run.session = session.id ");
    push_run_conditions(&mut script, query);
    script
}

fn page_runs_script(query: &RunQuery, limit: usize) -> SqliteScript {
    let mut script = SqliteScript::new(RUN_ROWS_SQL);
    script.push_sql(&format!(
        "FROM run INDEXED BY {} CROSS JOIN session ON session.id = run.session ",
        page_runs_index(query)
    ));
    push_run_conditions(&mut script, query);
    if let Some(after) = query.after {
        // The first says where in the index to begin, the second where exactly.
        script.push_sql(" AND COALESCE(run.ended_at, run.began_at) <= ?");
        script.bind_value(after.at.as_micros());
        script.push_sql(" AND (COALESCE(run.ended_at, run.began_at), run.id) < (?, ?)");
        script.bind_value(after.at.as_micros());
        script.bind_id(after.run.uuid());
    }
    script.push_sql(" ORDER BY at DESC, run.id DESC LIMIT ?");
    script.bind_value(limit as i64);
    script
}

/// The index that a page is read from: the runs of one session and those that are open are few and sorted, of all others
/// the newest come first and the rest is not looked at.
fn page_runs_index(query: &RunQuery) -> &'static str {
    match (query.session, query.state) {
        (Some(_), _) => "run_by_session",
        (None, Some(RunSort::Queued | RunSort::Running | RunSort::Awaiting)) => "run_open",
        (None, Some(RunSort::Completed | RunSort::Refused | RunSort::Cancelled | RunSort::Failed) | None) => {
            "run_by_time"
        }
    }
}

/// The statements that list runs by time, for a test that looks at their plans.
pub(super) fn sqlite_run_statements() -> Vec<String> {
    let key = RunKey { at: Timestamp::default(), run: gander_domain::RunId::new(uuid::Uuid::nil()) };
    let query = |state, after| RunQuery {
        principal: gander_domain::Principal::owner(),
        agent: Some(String::new()),
        session: None,
        state,
        since: None,
        after,
        limit: 50,
    };
    let states = [None, Some(RunSort::Completed)];
    states
        .iter()
        .flat_map(|state| [None, Some(key)].map(|after| page_runs_script(&query(*state, after), 50).sql))
        .collect()
}

fn push_run_conditions(script: &mut SqliteScript, query: &RunQuery) {
    script.push_sql("WHERE session.owner = ?");
    script.bind_value(query.principal.as_str().to_owned());
    if let Some(agent) = &query.agent {
        script.push_sql(" AND session.agent = ?");
        script.bind_value(agent.clone());
    }
    if let Some(session) = query.session {
        script.push_sql(" AND run.session = ?");
        script.bind_session(session);
    }
    if let Some(since) = query.since {
        script.push_sql(" AND COALESCE(run.ended_at, run.began_at) >= ?");
        script.bind_value(since.as_micros());
    }
    let open = "run.ended IS NULL AND run.started IS NOT NULL";
    script.push_sql(&match query.state {
        None => String::new(),
        Some(RunSort::Queued) => " AND run.ended IS NULL AND run.started IS NULL".to_owned(),
        Some(RunSort::Running) => format!(" AND {open} AND NOT {HAS_OPEN_QUESTION_SQL}"),
        Some(RunSort::Awaiting) => format!(" AND {open} AND {HAS_OPEN_QUESTION_SQL}"),
        Some(RunSort::Completed) => {
            " AND run.outcome ->> 'type' = 'completed' AND run.outcome ->> 'stop' NOT IN ('refusal', 'max_turns')"
                .to_owned()
        }
        Some(RunSort::Refused) => " AND run.outcome ->> 'stop' = 'refusal'".to_owned(),
        Some(RunSort::Cancelled) => " AND run.outcome ->> 'type' = 'cancelled'".to_owned(),
        Some(RunSort::Failed) => {
            " AND (run.outcome ->> 'type' = 'failed' OR run.outcome ->> 'stop' = 'max_turns')".to_owned()
        }
    });
}
