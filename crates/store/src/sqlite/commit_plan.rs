//! What a batch of appends becomes: one INSERT if it is only deltas, else one transaction.

use std::collections::HashMap;

use gander_domain::{Policy, Seq, SessionId};

use super::script::SqliteScript;
use super::writer::SqlitePending;
use crate::fold::{self, CreatedSession, RunStep, SideTableChanges, SummaryChange, UsageChange};
use crate::row::{Row, RowEncoder};
use crate::types::searchable_title;
use crate::{Epoch, ScopeAppend, StoreError};

/// Rows of one INSERT: SQLite takes 32,766 values.
const MAX_INSERT_ROWS: usize = 2048;

/// The statements of a batch.
pub(super) struct CommitPlan {
    pub(super) script: SqliteScript,
    /// True if it is one INSERT, which needs no transaction around it.
    pub(super) single: bool,
    pub(super) rows: u64,
    /// About how much it adds to the write-ahead log.
    pub(super) bytes: usize,
    /// About the size of each append's entries.
    pub(super) sizes: Vec<usize>,
}

/// What one session gets in a batch.
struct SessionGroup<'a> {
    session: SessionId,
    epoch: Epoch,
    /// With their places in the batch.
    pending: Vec<(usize, &'a SqlitePending)>,
}

impl CommitPlan {
    pub(super) fn for_batch(batch: &[SqlitePending]) -> Result<Self, StoreError> {
        let groups = plan_by_session(batch);
        let mut rows = Vec::new();
        let mut changes = Vec::new();
        let mut sizes = vec![0; batch.len()];
        for SessionGroup { session, epoch, pending } in &groups {
            let mut encoder = RowEncoder::default();
            for (place, pending) in pending {
                let mut entries = pending.append.entries.iter();
                sizes[*place] =
                    entries.try_fold(0, |size, entry| encoder.push_entry(entry).map(|added| size + added))?;
            }
            let entries = || pending.iter().flat_map(|(_, pending)| &pending.append.entries);
            rows.extend(encoder.into_rows()?.into_iter().map(|row| (*session, *epoch, row)));
            changes.push((*session, fold::fold_entries(entries())));
        }
        let (count, bytes) = (rows.len(), rows.iter().map(|(_, _, row)| row.body.len() + 8192).sum());
        let mut script = SqliteScript::default();
        batch
            .iter()
            .filter(|pending| pending.aliases.is_some())
            .try_for_each(|pending| plan_session_insert(&mut script, pending))?;
        let before = script.is_empty();
        plan_entry_inserts(&mut script, rows);
        let after = script.sql.len();
        plan_folds(&mut script, &changes)?;
        batch.iter().for_each(|pending| plan_scopes_and_snapshot(&mut script, pending));
        let single = before && script.sql.len() == after && count <= MAX_INSERT_ROWS;
        Ok(Self { script, single, rows: count as u64, bytes, sizes })
    }
}

/// Writes what entries change in the side tables.
pub(super) fn plan_folds(
    script: &mut SqliteScript,
    changes: &[(SessionId, SideTableChanges)],
) -> Result<(), StoreError> {
    plan_run_upserts(script, changes)?;
    plan_question_upserts(script, changes);
    plan_summary_updates(script, changes);
    Ok(())
}

/// Writes facts of a scope after its end.
pub(super) fn plan_scope_facts(script: &mut SqliteScript, append: &ScopeAppend, head: Seq) {
    for (seq, fact) in (head.0 + 1..).map(Seq).zip(&append.facts) {
        script.push_sql("INSERT INTO scope VALUES (?, ?, ?, ?);\n");
        script.bind_value(append.scope.clone());
        script.bind_seq(seq);
        script.bind_value(append.at.as_micros());
        script.bind_value(fact.to_string());
    }
}

/// Binds what never changes in a session: owner, workspace, parent, creation.
pub(super) fn plan_creation(script: &mut SqliteScript, creation: CreatedSession) {
    script.bind_value(creation.owner.as_str().to_owned());
    script.bind_value(creation.workspace);
    script.bind_value(creation.parent.map(|parent| parent.uuid().into_bytes().to_vec()));
    script.bind_value(creation.at.as_micros());
}

fn plan_by_session(batch: &[SqlitePending]) -> Vec<SessionGroup<'_>> {
    let mut groups: Vec<SessionGroup<'_>> = Vec::new();
    let mut places: HashMap<SessionId, usize> = HashMap::new();
    for (index, pending) in batch.iter().enumerate() {
        let (session, epoch) = (pending.append.session, pending.append.epoch);
        let place = *places.entry(session).or_insert(groups.len());
        if place == groups.len() {
            groups.push(SessionGroup { session, epoch, pending: Vec::new() });
        }
        groups[place].pending.push((index, pending));
    }
    groups
}

/// The row of a new session and its names.
fn plan_session_insert(script: &mut SqliteScript, pending: &SqlitePending) -> Result<(), StoreError> {
    let session = pending.append.session;
    let summary = fold::fold_entries(pending.append.entries.first()).summary;
    let Some(creation) = summary.and_then(|summary| summary.creation) else {
        return Err(StoreError::Invalid("first entry does not create the session".to_owned()));
    };
    script.push_sql(
        "INSERT OR ROLLBACK INTO session (id, epoch, owner, workspace, parent, created_at, agent, updated_at, \
spent_input, spent_output, spent_cost) VALUES (?, ?, ?, ?, ?, ?, '', 0, 0, 0, 0);\n",
    );
    script.bind_session(session);
    script.bind_value(Epoch::FIRST.0 as i64);
    plan_creation(script, creation);
    for alias in pending.aliases.iter().flatten() {
        script.push_sql("INSERT INTO alias VALUES (?, ?, ?, ?, ?);\n");
        script.bind_value(alias.principal.as_str().to_owned());
        script.bind_value(alias.door.clone());
        script.bind_value(alias.namespace.clone());
        script.bind_value(alias.text.clone());
        script.bind_session(session);
    }
    Ok(())
}

/// The entries. A session that is fenced or deleted has no id here, which fails the whole statement.
///
/// A statement that fails ends its transaction, so SQLite need not keep copies of pages to undo it alone.
/// The number of rows is rounded up with empty ones, so that few forms of the statement exist.
fn plan_entry_inserts(script: &mut SqliteScript, rows: Vec<(SessionId, Epoch, Row)>) {
    let mut rows = rows.into_iter().peekable();
    while rows.peek().is_some() {
        let some: Vec<_> = rows.by_ref().take(MAX_INSERT_ROWS).collect();
        let count = some.len().next_power_of_two();
        script.push_sql("INSERT OR ROLLBACK INTO entry (session, first, last, kind, body) SELECT ");
        script.push_sql(FENCE);
        script.push_sql(", column3, column4, column5, column6 FROM (VALUES ");
        script.push_tuples(count, 6);
        script.push_sql(") WHERE column1 IS NOT NULL;\n");
        let empty = (count - some.len()) * 6;
        for (session, epoch, row) in some {
            script.bind_session(session);
            script.bind_value(epoch.0 as i64);
            script.bind_seq(row.first);
            script.bind_seq(row.last);
            script.bind_value(row.kind.code());
            script.bind_value(row.body);
        }
        (0..empty).for_each(|_| script.bind_value(None::<i64>));
    }
}

#[cfg(not(bug = "ignore_epoch"))]
const FENCE: &str = "(SELECT id FROM session WHERE id = column1 AND epoch = column2 AND deleted_at IS NULL)";
#[cfg(bug = "ignore_epoch")]
const FENCE: &str = "column1";

fn plan_run_upserts(script: &mut SqliteScript, changes: &[(SessionId, SideTableChanges)]) -> Result<(), StoreError> {
    let all: Vec<_> = changes.iter().flat_map(|(session, c)| c.runs.iter().map(move |run| (*session, run))).collect();
    for some in all.chunks(MAX_INSERT_ROWS) {
        script.push_sql(
            "INSERT OR ROLLBACK INTO run (id, session, first, began_at, started, ended, ended_at, outcome) VALUES ",
        );
        script.push_tuples(some.len(), 8);
        script.push_sql(
            " ON CONFLICT (id, session) DO UPDATE SET started = COALESCE(started, excluded.started), \
ended = COALESCE(ended, excluded.ended), ended_at = COALESCE(ended_at, excluded.ended_at), \
outcome = COALESCE(outcome, excluded.outcome);\n",
        );
        for (session, run) in some {
            let (seq, at) = (run.seq.0 as i64, run.at.as_micros());
            let (started, ended) = match &run.step {
                RunStep::Queued => (None, None),
                RunStep::Started => (Some(seq), None),
                RunStep::Ended(outcome) => (None, Some(outcome)),
            };
            let outcome = ended.map(serde_json::to_string).transpose();
            script.bind_id(run.run.uuid());
            script.bind_session(*session);
            script.bind_value(seq);
            script.bind_value(at);
            script.bind_value(started);
            script.bind_value(ended.map(|_| seq));
            script.bind_value(ended.map(|_| at));
            script.bind_value(outcome.map_err(|error| StoreError::Invalid(error.to_string()))?);
        }
    }
    Ok(())
}

fn plan_question_upserts(script: &mut SqliteScript, changes: &[(SessionId, SideTableChanges)]) {
    let of = |(session, changes): &(SessionId, SideTableChanges)| {
        let session = *session;
        changes.questions.clone().into_iter().map(move |question| (session, question))
    };
    let all: Vec<_> = changes.iter().flat_map(of).collect();
    for some in all.chunks(MAX_INSERT_ROWS) {
        script.push_sql("INSERT OR ROLLBACK INTO question (id, session, run, asked, answered, held) VALUES ");
        script.push_tuples(some.len(), 6);
        script.push_sql(" ON CONFLICT (id, session) DO UPDATE SET answered = COALESCE(answered, excluded.answered);\n");
        for (session, question) in some {
            script.bind_id(question.question.uuid());
            script.bind_session(*session);
            script.bind_value(question.run.map(|run| run.uuid().into_bytes().to_vec()));
            script.bind_seq(question.asked.unwrap_or_default());
            script.bind_value(question.answered.map(|seq| seq.0 as i64));
            script.bind_value(question.held);
        }
    }
}

/// Without being told, SQLite looks through all runs of the session for the open one.
fn plan_summary_updates(script: &mut SqliteScript, changes: &[(SessionId, SideTableChanges)]) {
    let all: Vec<_> = changes.iter().filter_map(|(session, c)| Some((*session, c.summary.as_ref()?))).collect();
    for some in all.chunks(MAX_INSERT_ROWS) {
        script.push_sql(
            "UPDATE OR ROLLBACK session SET title = COALESCE(column2, title), search = COALESCE(column3, search), \
agent = COALESCE(column4, agent), archived = COALESCE(column5, archived), \
messages = messages + column6, updated_at = MAX(updated_at, column7), policy = COALESCE(column8, policy), \
spent_input = iif(column9, 0, spent_input) + column10, spent_output = iif(column9, 0, spent_output) + column11, \
spent_cost = iif(column9, 0, spent_cost) + column12, last_input = COALESCE(column13, iif(column9, NULL, last_input)), \
last_output = COALESCE(column14, iif(column9, NULL, last_output)), \
policy_chosen = COALESCE(column15, policy_chosen), state = CASE \
WHEN EXISTS (SELECT 1 FROM question q INDEXED BY question_open \
WHERE q.session = session.id AND q.answered IS NULL AND q.run IS NOT NULL) THEN 2 \
WHEN EXISTS (SELECT 1 FROM run r INDEXED BY run_active \
WHERE r.session = session.id AND r.ended IS NULL AND r.started IS NOT NULL) THEN 1 ELSE 0 END FROM (VALUES ",
        );
        script.push_tuples(some.len(), 15);
        script.push_sql(") WHERE session.id = column1;\n");
        some.iter().for_each(|(session, summary)| plan_summary(script, *session, summary));
    }
}

fn plan_summary(script: &mut SqliteScript, session: SessionId, summary: &SummaryChange) {
    script.bind_session(session);
    script.bind_value(summary.title.clone());
    script.bind_value(summary.title.as_deref().map(searchable_title));
    script.bind_value(summary.agent.clone());
    script.bind_value(summary.archived);
    script.bind_value(summary.messages as i64);
    script.bind_value(summary.updated_at.as_micros());
    script.bind_value(summary.policy.and_then(|chosen| planned_policy_name(chosen.policy)));
    let UsageChange { reset, input, output, cost, last_call } = summary.usage;
    script.bind_value(reset);
    [input, output, cost].into_iter().for_each(|count| script.bind_value(count as i64));
    script.bind_value(last_call.map(|(input, _)| input as i64));
    script.bind_value(last_call.map(|(_, output)| output as i64));
    script.bind_value(summary.policy.map(|policy| policy.chosen));
}

/// As serde spells it, which is what the column is read with.
fn planned_policy_name(policy: Policy) -> Option<String> {
    serde_json::to_value(policy).ok()?.as_str().map(str::to_owned)
}

/// Facts of scopes, and the snapshot.
fn plan_scopes_and_snapshot(script: &mut SqliteScript, pending: &SqlitePending) {
    pending
        .append
        .scopes
        .iter()
        .zip(&pending.scope_heads)
        .for_each(|(append, head)| plan_scope_facts(script, append, *head));
    if let Some(snapshot) = &pending.append.snapshot {
        script.push_sql("INSERT OR REPLACE INTO snapshot VALUES (?, ?, ?, ?);\n");
        script.bind_session(pending.append.session);
        script.bind_seq(snapshot.seq);
        script.bind_value(i64::from(snapshot.version));
        script.bind_value(snapshot.body.clone());
    }
}
