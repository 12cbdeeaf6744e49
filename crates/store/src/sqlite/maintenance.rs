//! What is written beside appends: names, tombstones, compaction, removal and the rebuilding of folds.

use std::sync::atomic::Ordering;

use gander_domain::{Seq, SessionId, Timestamp};
use rusqlite::{Connection, Row as SqliteRow, params};
use serde_json::Value;

use super::commit_plan::{plan_creation, plan_folds};
use super::read::{entry_row, seq_column, session_column};
use super::reclaim::Reclaimed;
use super::script::SqliteScript;
use super::writer::Invalidates;
use super::{SqliteStore, read};
use crate::row::{Compactor, Replacement};
use crate::{Alias, DeltaForm, Durability, Limit, MaintenanceReport, StoreError, fold};

/// Rows of a deleted session that one piece of maintenance removes.
const PURGE_ROWS: i64 = 500;

pub(super) const NEXT_TO_PURGE_SQL: &str = "SELECT id FROM session WHERE deleted_at IS NOT NULL AND purged = 0 LIMIT 1";

pub(super) const NEXT_TO_COMPACT_SQL: &str = "SELECT id, session, first, ended FROM run WHERE compacted = 0 \
     AND ended IS NOT NULL AND ended_at < ? ORDER BY ended_at LIMIT 1";

/// Names a session, unless the name is taken.
pub(super) fn set_alias_script(alias: &Alias, session: SessionId) -> SqliteScript {
    let mut script = SqliteScript::new(
        "INSERT INTO alias SELECT ?, ?, ?, ?, id FROM session WHERE id = ? AND deleted_at IS NULL ON CONFLICT DO NOTHING",
    );
    bind_alias(&mut script, alias);
    script.bind_session(session);
    script
}

pub(super) fn remove_alias_script(alias: &Alias) -> SqliteScript {
    let mut script =
        SqliteScript::new("DELETE FROM alias WHERE principal = ? AND door = ? AND namespace = ? AND text = ?");
    bind_alias(&mut script, alias);
    script
}

/// One fact in place of all up to an entry, if that is still there.
pub(super) fn compact_scope_script(scope: &str, upto: Seq, at: Timestamp, fact: &Value) -> SqliteScript {
    let mut script = SqliteScript::new(
        "DELETE FROM scope WHERE name = ? AND seq < ? \
         AND EXISTS (SELECT 1 FROM scope last WHERE last.name = ? AND last.seq = ? AND last.at = ?);\n",
    );
    script.push_sql("UPDATE scope SET fact = ? WHERE name = ? AND seq = ? AND at = ?");
    script.bind_value(scope.to_owned());
    script.bind_seq(upto);
    script.bind_value(scope.to_owned());
    script.bind_seq(upto);
    script.bind_value(at.as_micros());
    script.bind_value(fact.to_string());
    script.bind_value(scope.to_owned());
    script.bind_seq(upto);
    script.bind_value(at.as_micros());
    script
}

/// Leaves nothing of a session but its id; its entries go piece by piece.
pub(super) fn delete_session_script(session: SessionId, at: Timestamp) -> SqliteScript {
    let mut script = SqliteScript::new(
        "UPDATE session SET epoch = epoch + 1, deleted_owner = owner, owner = NULL, workspace = '', agent = '', parent = NULL, title = '', \
         search = '', state = 0, messages = 0, policy = NULL, policy_chosen = NULL, spent_input = NULL, spent_output = NULL, spent_cost = NULL, \
         last_input = NULL, last_output = NULL, deleted_at = ? WHERE id = ? AND deleted_at IS NULL;\n",
    );
    script.bind_value(at.as_micros());
    script.bind_session(session);
    for table in ["alias", "run", "question", "snapshot"] {
        script.push_sql(&format!("DELETE FROM {table} WHERE session = ?;\n"));
        script.bind_session(session);
    }
    script
}

/// One bounded piece of maintenance.
pub(super) async fn run_maintenance(store: &SqliteStore, now: Timestamp) -> Result<MaintenanceReport, StoreError> {
    let purged = purge_deleted_session(store).await?;
    let reclaimed = if purged.is_none() { reclaim_if_due(store).await? } else { None };
    let grace = i64::try_from(store.grace.as_micros()).unwrap_or(i64::MAX);
    let compacted = compact_ended_run(store, now.as_micros().saturating_sub(grace)).await?;
    Ok(MaintenanceReport {
        compacted: compacted.unwrap_or_default(),
        purged: purged.unwrap_or_default(),
        more: purged.is_some() || compacted.is_some() || reclaimed == Some(Reclaimed::Some),
    })
}

/// Makes every fold again. Call it while nobody writes.
pub(super) async fn rebuild_folds(store: &SqliteStore) -> Result<u64, StoreError> {
    let mut count = 0;
    let mut after = Vec::new();
    loop {
        let mut script =
            SqliteScript::new("SELECT id FROM session WHERE id > ? AND deleted_at IS NULL ORDER BY id LIMIT 1");
        script.bind_value(after);
        let found = store.readers.read(move |reader| script.query_rows(reader, |row| session_column(row, 0))).await?;
        let Some(session) = found.first().copied() else { return Ok(count) };
        rebuild_session(store, session).await?;
        after = session.uuid().into_bytes().to_vec();
        count += 1;
    }
}

async fn rebuild_session(store: &SqliteStore, session: SessionId) -> Result<(), StoreError> {
    let mut script = SqliteScript::new(
        "UPDATE session SET title = '', search = '', archived = 0, messages = 0, updated_at = 0, spent_input = 0, \
         spent_output = 0, spent_cost = 0, last_input = NULL, last_output = NULL WHERE id = ?;\n",
    );
    script.push_sql("DELETE FROM run WHERE session = ?;\n");
    script.push_sql("DELETE FROM question WHERE session = ?;\n");
    (0..3).for_each(|_| script.bind_session(session));
    let mut after = Seq::ZERO;
    loop {
        let read =
            move |reader: &Connection| read::read_entries(reader, session, after, Limit::default(), DeltaForm::Joined);
        let entries = store.readers.read(read).await?;
        let Some(last) = entries.last() else { break };
        after = last.seq;
        let changes = fold::fold_entries(&entries);
        if let Some(creation) = changes.summary.as_ref().and_then(|summary| summary.creation.clone()) {
            script.push_sql("UPDATE session SET owner = ?, workspace = ?, parent = ?, created_at = ? WHERE id = ?;\n");
            plan_creation(&mut script, creation);
            script.bind_session(session);
        }
        plan_folds(&mut script, &[(session, changes)])?;
    }
    store.write_script(script, Durability::Relaxed, Invalidates::Nothing).await.map(|_| ())
}

/// Removes some rows that a deleted session left; `None` if there were none.
async fn purge_deleted_session(store: &SqliteStore) -> Result<Option<u64>, StoreError> {
    let script = SqliteScript::new(NEXT_TO_PURGE_SQL);
    let found = store.readers.read(move |reader| script.query_rows(reader, |row| session_column(row, 0))).await?;
    let Some(session) = found.first().copied() else { return Ok(None) };
    let mut script = SqliteScript::new(
        "DELETE FROM entry WHERE session = ? AND first IN (SELECT first FROM entry WHERE session = ? LIMIT ?)",
    );
    script.bind_session(session);
    script.bind_session(session);
    script.bind_value(PURGE_ROWS);
    let removed = store.write_script(script, Durability::Relaxed, Invalidates::Nothing).await?;
    if removed == 0 {
        let mut script = SqliteScript::new("UPDATE session SET purged = 1 WHERE id = ?");
        script.bind_session(session);
        store.write_script(script, Durability::Relaxed, Invalidates::Nothing).await?;
        store.shared.reclaim_due.store(true, Ordering::Relaxed);
    }
    Ok(Some(removed))
}

/// Removes from the disk what was deleted: once for all rows that are gone. Whoever still reads them is not waited for;
/// the next round tries again.
async fn reclaim_if_due(store: &SqliteStore) -> Result<Option<Reclaimed>, StoreError> {
    // Taken before: what is deleted meanwhile makes it due again.
    if !store.shared.reclaim_due.swap(false, Ordering::Relaxed) {
        return Ok(None);
    }
    let reclaimed = store.reclaim().await;
    if !matches!(reclaimed, Ok(Reclaimed::All)) {
        store.shared.reclaim_due.store(true, Ordering::Relaxed);
    }
    reclaimed.map(Some)
}

/// Compacts one run that ended long ago; `None` if there is none.
async fn compact_ended_run(store: &SqliteStore, ended_before: i64) -> Result<Option<u64>, StoreError> {
    let mut script = SqliteScript::new(NEXT_TO_COMPACT_SQL);
    script.bind_value(ended_before);
    let find_run = move |row: &SqliteRow<'_>| {
        Ok((row.get::<_, Vec<u8>>(0)?, session_column(row, 1)?, seq_column(row, 2)?, seq_column(row, 3)?))
    };
    let mut found = store.readers.read(move |reader| script.query_rows(reader, find_run)).await?;
    let Some((run, session, first, last)) = found.pop() else { return Ok(None) };
    let mut compacted = 0;
    for replacement in store.readers.read(move |reader| span_replacements(reader, session, first, last)).await? {
        compacted += replacement.chunks;
        store.write_script(replacement_script(session, replacement), Durability::Relaxed, Invalidates::Nothing).await?;
    }
    let mut script = SqliteScript::new("UPDATE run SET compacted = 1 WHERE id = ? AND session = ?");
    script.bind_value(run);
    script.bind_session(session);
    store.write_script(script, Durability::Relaxed, Invalidates::Nothing).await?;
    Ok(Some(compacted))
}

fn span_replacements(
    connection: &Connection,
    session: SessionId,
    first: Seq,
    last: Seq,
) -> Result<Vec<Replacement>, StoreError> {
    let mut statement = connection.prepare(
        "SELECT first, last, kind, body FROM entry WHERE session = ? AND first >= ? AND first <= ? AND kind IN (1, 3) \
         ORDER BY first",
    )?;
    let mut rows = statement.query(params![session.uuid().as_bytes(), first.0 as i64, last.0 as i64])?;
    let mut compactor = Compactor::default();
    let mut replacements = Vec::new();
    while let Some(row) = rows.next()? {
        replacements.extend(compactor.push_row(&entry_row(row)?)?);
    }
    Ok(replacements)
}

/// The span takes its chunks' place, unless the session was deleted meanwhile.
fn replacement_script(session: SessionId, replacement: Replacement) -> SqliteScript {
    let row = replacement.row;
    let mut script =
        SqliteScript::new("DELETE FROM entry WHERE session = ? AND first >= ? AND first <= ? AND kind = 1;\n");
    script.bind_session(session);
    script.bind_seq(row.first);
    script.bind_seq(row.last);
    script.push_sql("INSERT INTO entry SELECT id, ?, ?, ?, ? FROM session WHERE id = ? AND deleted_at IS NULL;\n");
    script.bind_seq(row.first);
    script.bind_seq(row.last);
    script.bind_value(row.kind.code());
    script.bind_value(row.body);
    script.bind_session(session);
    script
}

fn bind_alias(script: &mut SqliteScript, alias: &Alias) {
    script.bind_value(alias.principal.as_str().to_owned());
    script.bind_value(alias.door.clone());
    script.bind_value(alias.namespace.clone());
    script.bind_value(alias.text.clone());
}
