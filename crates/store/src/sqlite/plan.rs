//! What a batch of appends becomes: one INSERT if it is only deltas, else one transaction.

use std::collections::HashMap;

use gander_domain::{Seq, SessionId};

use super::script::Script;
use super::writer::Pending;
use crate::fold::{self, CardChange, Changes, CreatedSession, RunStep};
use crate::row::{Row, Rows};
use crate::types::searchable;
use crate::{Epoch, ScopeAppend, StoreError};

/// Rows of one INSERT: SQLite takes 32,766 values.
const ROWS: usize = 2048;

/// The statements of a batch.
pub(super) struct Plan {
    pub(super) script: Script,
    /// True if it is one INSERT, which needs no transaction around it.
    pub(super) single: bool,
    pub(super) rows: u64,
    /// About how much it adds to the write-ahead log.
    pub(super) bytes: usize,
    /// About the size of each append's entries.
    pub(super) sizes: Vec<usize>,
}

/// What one session gets in a batch.
struct Group<'a> {
    session: SessionId,
    epoch: Epoch,
    /// With their places in the batch.
    pending: Vec<(usize, &'a Pending)>,
}

impl Plan {
    pub(super) fn of(batch: &[Pending]) -> Result<Self, StoreError> {
        let groups = group(batch);
        let mut rows = Vec::new();
        let mut changes = Vec::new();
        let mut sizes = vec![0; batch.len()];
        for Group { session, epoch, pending } in &groups {
            let mut encoder = Rows::default();
            for (place, pending) in pending {
                let mut entries = pending.append.entries.iter();
                sizes[*place] = entries.try_fold(0, |size, entry| Ok(size + encoder.push(entry)?))?;
            }
            let entries = || pending.iter().flat_map(|(_, pending)| &pending.append.entries);
            rows.extend(encoder.finish()?.into_iter().map(|row| (*session, *epoch, row)));
            changes.push((*session, fold::changes(entries())));
        }
        let (count, bytes) = (rows.len(), rows.iter().map(|(_, _, row)| row.body.len() + 8192).sum());
        let mut script = Script::default();
        batch.iter().filter(|pending| pending.aliases.is_some()).try_for_each(|pending| birth(&mut script, pending))?;
        let before = script.is_empty();
        insert_entries(&mut script, rows);
        let after = script.sql.len();
        fold_all(&mut script, &changes)?;
        batch.iter().for_each(|pending| beside(&mut script, pending));
        let single = before && script.sql.len() == after && count <= ROWS;
        Ok(Self { script, single, rows: count as u64, bytes, sizes })
    }
}

/// Writes what entries change in the side tables.
pub(super) fn fold_all(script: &mut Script, changes: &[(SessionId, Changes)]) -> Result<(), StoreError> {
    runs(script, changes)?;
    questions(script, changes);
    cards(script, changes);
    Ok(())
}

/// Writes facts of a scope after its end.
pub(super) fn scope(script: &mut Script, append: &ScopeAppend, head: Seq) {
    for (seq, fact) in (head.0 + 1..).map(Seq).zip(&append.facts) {
        script.sql("INSERT INTO scope VALUES (?, ?, ?, ?);\n");
        script.bind(append.scope.clone());
        script.bind_seq(seq);
        script.bind(append.at.micros());
        script.bind(fact.to_string());
    }
}

/// Binds what never changes in a session: owner, workspace, parent, creation.
pub(super) fn bind_birth(script: &mut Script, birth: CreatedSession) {
    script.bind(birth.owner.as_str().to_owned());
    script.bind(birth.workspace);
    script.bind(birth.parent.map(|parent| parent.uuid().into_bytes().to_vec()));
    script.bind(birth.at.micros());
}

fn group(batch: &[Pending]) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    let mut places: HashMap<SessionId, usize> = HashMap::new();
    for (index, pending) in batch.iter().enumerate() {
        let (session, epoch) = (pending.append.session, pending.append.epoch);
        let place = *places.entry(session).or_insert(groups.len());
        if place == groups.len() {
            groups.push(Group { session, epoch, pending: Vec::new() });
        }
        groups[place].pending.push((index, pending));
    }
    groups
}

/// The row of a new session and its names.
fn birth(script: &mut Script, pending: &Pending) -> Result<(), StoreError> {
    let session = pending.append.session;
    let card = fold::changes(pending.append.entries.first()).card;
    let Some(birth) = card.and_then(|card| card.birth) else {
        return Err(StoreError::Invalid("first entry does not create the session".to_owned()));
    };
    script.sql(
        "INSERT OR ROLLBACK INTO session (id, epoch, owner, workspace, parent, created_at, agent, updated_at) \
         VALUES (?, ?, ?, ?, ?, ?, '', 0);\n",
    );
    script.bind_session(session);
    script.bind(Epoch::FIRST.0 as i64);
    bind_birth(script, birth);
    for alias in pending.aliases.iter().flatten() {
        script.sql("INSERT INTO alias VALUES (?, ?, ?, ?, ?);\n");
        script.bind(alias.principal.as_str().to_owned());
        script.bind(alias.door.clone());
        script.bind(alias.namespace.clone());
        script.bind(alias.text.clone());
        script.bind_session(session);
    }
    Ok(())
}

/// The entries. A session that is fenced or deleted has no id here, which fails the whole statement.
///
/// A statement that fails ends its transaction, so SQLite need not keep copies of pages to undo it alone.
/// The number of rows is rounded up with empty ones, so that few forms of the statement exist.
fn insert_entries(script: &mut Script, rows: Vec<(SessionId, Epoch, Row)>) {
    let mut rows = rows.into_iter().peekable();
    while rows.peek().is_some() {
        let some: Vec<_> = rows.by_ref().take(ROWS).collect();
        let count = some.len().next_power_of_two();
        script.sql("INSERT OR ROLLBACK INTO entry (session, first, last, kind, body) SELECT ");
        script.sql(FENCE);
        script.sql(", column3, column4, column5, column6 FROM (VALUES ");
        script.tuples(count, 6);
        script.sql(") WHERE column1 IS NOT NULL;\n");
        let empty = (count - some.len()) * 6;
        for (session, epoch, row) in some {
            script.bind_session(session);
            script.bind(epoch.0 as i64);
            script.bind_seq(row.first);
            script.bind_seq(row.last);
            script.bind(row.kind.code());
            script.bind(row.body);
        }
        (0..empty).for_each(|_| script.bind(None::<i64>));
    }
}

#[cfg(not(bug = "ignore_epoch"))]
const FENCE: &str = "(SELECT id FROM session WHERE id = column1 AND epoch = column2 AND deleted_at IS NULL)";
#[cfg(bug = "ignore_epoch")]
const FENCE: &str = "column1";

fn runs(script: &mut Script, changes: &[(SessionId, Changes)]) -> Result<(), StoreError> {
    let all: Vec<_> = changes.iter().flat_map(|(session, c)| c.runs.iter().map(move |run| (*session, run))).collect();
    for some in all.chunks(ROWS) {
        script.sql(
            "INSERT OR ROLLBACK INTO run (id, session, first, began_at, started, ended, ended_at, outcome) VALUES ",
        );
        script.tuples(some.len(), 8);
        script.sql(
            " ON CONFLICT (id, session) DO UPDATE SET started = COALESCE(started, excluded.started), \
             ended = COALESCE(ended, excluded.ended), ended_at = COALESCE(ended_at, excluded.ended_at), \
             outcome = COALESCE(outcome, excluded.outcome);\n",
        );
        for (session, run) in some {
            let (seq, at) = (run.seq.0 as i64, run.at.micros());
            let (started, ended) = match &run.step {
                RunStep::Queued => (None, None),
                RunStep::Started => (Some(seq), None),
                RunStep::Ended(outcome) => (None, Some(outcome)),
            };
            let outcome = ended.map(serde_json::to_string).transpose();
            script.bind_id(run.run.uuid());
            script.bind_session(*session);
            script.bind(seq);
            script.bind(at);
            script.bind(started);
            script.bind(ended.map(|_| seq));
            script.bind(ended.map(|_| at));
            script.bind(outcome.map_err(|error| StoreError::Invalid(error.to_string()))?);
        }
    }
    Ok(())
}

fn questions(script: &mut Script, changes: &[(SessionId, Changes)]) {
    let of = |(session, changes): &(SessionId, Changes)| {
        let session = *session;
        changes.questions.clone().into_iter().map(move |question| (session, question))
    };
    let all: Vec<_> = changes.iter().flat_map(of).collect();
    for some in all.chunks(ROWS) {
        script.sql("INSERT OR ROLLBACK INTO question (id, session, run, asked, answered, held) VALUES ");
        script.tuples(some.len(), 6);
        script.sql(" ON CONFLICT (id, session) DO UPDATE SET answered = COALESCE(answered, excluded.answered);\n");
        for (session, question) in some {
            script.bind_id(question.question.uuid());
            script.bind_session(*session);
            script.bind(question.run.map(|run| run.uuid().into_bytes().to_vec()));
            script.bind_seq(question.asked.unwrap_or_default());
            script.bind(question.answered.map(|seq| seq.0 as i64));
            script.bind(question.held);
        }
    }
}

/// Without being told, SQLite looks through all runs of the session for the open one.
fn cards(script: &mut Script, changes: &[(SessionId, Changes)]) {
    let all: Vec<_> = changes.iter().filter_map(|(session, c)| Some((*session, c.card.as_ref()?))).collect();
    for some in all.chunks(ROWS) {
        script.sql(
            "UPDATE OR ROLLBACK session SET title = COALESCE(column2, title), search = COALESCE(column3, search), \
             agent = COALESCE(column4, agent), archived = COALESCE(column5, archived), \
             messages = messages + column6, updated_at = MAX(updated_at, column7), state = CASE \
             WHEN EXISTS (SELECT 1 FROM question q INDEXED BY question_open \
             WHERE q.session = session.id AND q.answered IS NULL AND q.run IS NOT NULL) THEN 2 \
             WHEN EXISTS (SELECT 1 FROM run r INDEXED BY run_active \
             WHERE r.session = session.id AND r.ended IS NULL AND r.started IS NOT NULL) THEN 1 ELSE 0 END FROM (VALUES ",
        );
        script.tuples(some.len(), 7);
        script.sql(") WHERE session.id = column1;\n");
        some.iter().for_each(|(session, card)| bind_card(script, *session, card));
    }
}

fn bind_card(script: &mut Script, session: SessionId, card: &CardChange) {
    script.bind_session(session);
    script.bind(card.title.clone());
    script.bind(card.title.as_deref().map(searchable));
    script.bind(card.agent.clone());
    script.bind(card.archived);
    script.bind(card.messages as i64);
    script.bind(card.updated_at.micros());
}

/// Facts of scopes, and the snapshot.
fn beside(script: &mut Script, pending: &Pending) {
    pending.append.scopes.iter().zip(&pending.scope_heads).for_each(|(append, head)| scope(script, append, *head));
    if let Some(snapshot) = &pending.append.snapshot {
        script.sql("INSERT OR REPLACE INTO snapshot VALUES (?, ?, ?, ?);\n");
        script.bind_session(pending.append.session);
        script.bind_seq(snapshot.seq);
        script.bind(i64::from(snapshot.version));
        script.bind(snapshot.body.clone());
    }
}
