//! The model's data and its rules.

use std::collections::{BTreeMap, HashMap};

use gander_domain::{Entry, Event, Principal, QuestionId, RunId, Seq, SessionId, Timestamp};
use serde_json::Value;

use super::cluster::{ClusterState, MemoryOwner};
use crate::fold::{self, CreatedSession, RunStep, SideTableChanges, SummaryChange};
use crate::node::NodeId;
use crate::row::join_decoded_deltas;
use crate::types::{search_words, searchable_title};
use crate::{
    Alias, Append, Claim, DeltaForm, Durability, Epoch, Limit, PageKey, QuestionRow, RunKey, RunPage, RunQuery, RunRow,
    RunState, ScopeAppend, ScopeEntry, SessionPage, SessionQuery, SessionStatus, SessionSummary, Snapshot, Stats,
    StoreError, SummaryUsage,
};

#[derive(Default)]
pub(super) struct MemoryState {
    sessions: BTreeMap<SessionId, MemoryLog>,
    /// Whose each was.
    deleted: HashMap<SessionId, Principal>,
    runs: BTreeMap<(RunId, SessionId), RunRow>,
    questions: BTreeMap<(QuestionId, SessionId), QuestionRow>,
    pub(super) aliases: BTreeMap<Alias, SessionId>,
    pub(super) scopes: BTreeMap<String, Vec<ScopeEntry>>,
    pub(super) cluster: ClusterState,
    pub(super) stats: Stats,
    pub(super) closed: bool,
}

struct MemoryLog {
    epoch: Epoch,
    owner: MemoryOwner,
    entries: Vec<Entry>,
    snapshots: BTreeMap<Seq, Snapshot>,
    summary: SessionSummary,
}

impl MemoryLog {
    fn last_seq(&self) -> Seq {
        Seq(self.entries.len() as u64)
    }
}

impl MemoryState {
    pub(super) fn create_session(
        &mut self,
        append: Append,
        aliases: Vec<Alias>,
        node: Option<NodeId>,
    ) -> Result<(Seq, Vec<NodeId>), StoreError> {
        let session = append.session;
        if self.deleted.contains_key(&session) {
            return Err(StoreError::Deleted(session));
        }
        if self.sessions.contains_key(&session) {
            return Err(StoreError::Exists(session));
        }
        check_memory_order(Seq::ZERO, &append.entries)?;
        self.check_scopes(&append.scopes)?;
        if let Some(taken) = aliases.iter().find_map(|alias| self.aliases.get(alias)) {
            return Err(StoreError::AliasTaken(*taken));
        }
        let summary = first_memory_summary(session, &append.entries)?;
        let owner = MemoryOwner::pinned_to(append.pinned_to.clone());
        let log = MemoryLog { epoch: Epoch::FIRST, owner, entries: Vec::new(), snapshots: BTreeMap::new(), summary };
        self.sessions.insert(session, log);
        self.aliases.extend(aliases.into_iter().map(|alias| (alias, session)));
        self.append_entries(Append { epoch: Epoch::FIRST, ..append }, node)
    }

    /// Gives the log's new end, and the nodes whose commands were answered.
    pub(super) fn append_entries(
        &mut self,
        append: Append,
        node: Option<NodeId>,
    ) -> Result<(Seq, Vec<NodeId>), StoreError> {
        let Append { session, epoch, entries, sync, scopes, snapshot, ownership, answers, .. } = append;
        let log = self.session_log(session)?;
        if log.epoch != epoch {
            return Err(StoreError::Fenced { current: log.epoch });
        }
        check_memory_order(log.last_seq(), &entries)?;
        // Its sender was told that nobody took it. Without entries nothing was carried out.
        if !entries.is_empty() && answers.iter().any(|answer| !self.cluster.has_command(answer.command)) {
            return Err(StoreError::Busy("a command was withdrawn meanwhile".to_owned()));
        }
        self.check_scopes(&scopes)?;
        scopes.into_iter().for_each(|scope| {
            self.append_scope(scope);
        });
        self.count_entries(&entries, sync);
        self.apply_changes(session, &fold::fold_entries(&entries));
        let log = self.log_mut(session)?;
        log.entries.extend(entries);
        log.snapshots.extend(snapshot.map(|snapshot| (snapshot.seq, snapshot)));
        log.owner.apply(ownership, node);
        let head = log.last_seq();
        Ok((head, self.cluster.answer_commands(answers)))
    }

    pub(super) fn claim_session(&mut self, session: SessionId, node: Option<NodeId>) -> Result<Claim, StoreError> {
        if let Some(node) = node {
            self.cluster.check_claim(&self.session_log(session)?.owner, node)?;
        }
        let log = self.log_mut(session)?;
        log.owner.keep(node);
        log.epoch = Epoch(log.epoch.0 + 1);
        Ok(Claim { epoch: log.epoch, head: log.last_seq() })
    }

    pub(super) fn session_epoch(&self, session: SessionId) -> Option<Epoch> {
        self.sessions.get(&session).map(|log| log.epoch)
    }

    pub(super) fn truncate_log(&mut self, session: SessionId, head: Seq) -> Result<(), StoreError> {
        let log = self.log_mut(session)?;
        log.entries.truncate(head.0 as usize);
        log.snapshots.retain(|seq, _| *seq <= head);
        Ok(())
    }

    pub(super) fn session_owner(&self, session: SessionId) -> Option<&MemoryOwner> {
        self.sessions.get(&session).map(|log| &log.owner)
    }

    pub(super) fn all_owners(&self) -> impl Iterator<Item = (SessionId, &MemoryOwner)> {
        self.sessions.iter().map(|(session, log)| (*session, &log.owner))
    }

    pub(super) fn all_owners_mut(&mut self) -> impl Iterator<Item = &mut MemoryOwner> {
        self.sessions.values_mut().map(|log| &mut log.owner)
    }

    pub(super) fn session_head(&self, session: SessionId) -> Result<Seq, StoreError> {
        self.session_log(session).map(MemoryLog::last_seq)
    }

    pub(super) fn read_entries(
        &self,
        session: SessionId,
        after: Seq,
        limit: Limit,
        form: DeltaForm,
    ) -> Result<Vec<Entry>, StoreError> {
        let log = self.session_log(session)?;
        if after > log.last_seq() {
            return Err(StoreError::Truncated { asked: after, head: log.last_seq() });
        }
        let entries = log.entries[after.0 as usize..].iter().take(limit.entries.max(1)).cloned();
        Ok(match form {
            DeltaForm::Exact => entries.collect(),
            DeltaForm::Joined => join_decoded_deltas(entries),
        })
    }

    pub(super) fn latest_snapshot(
        &self,
        session: SessionId,
        version: u32,
        upto: Seq,
    ) -> Result<Option<Snapshot>, StoreError> {
        let mut older = self.session_log(session)?.snapshots.range(..=upto).rev().map(|(_, snapshot)| snapshot);
        Ok(older.find(|snapshot| snapshot.version == version).cloned())
    }

    pub(super) fn session_summary(&self, session: SessionId) -> Result<SessionSummary, StoreError> {
        self.session_log(session).map(|log| log.summary.clone())
    }

    pub(super) fn list_sessions(&self, query: &SessionQuery) -> SessionPage {
        let words = query.text.as_deref().map(search_words).unwrap_or_default();
        let mut sessions: Vec<&SessionSummary> = self.sessions.values().map(|log| &log.summary).collect();
        sessions.retain(|summary| matches_memory_query(summary, query, &words));
        sessions.sort_by_key(|summary| std::cmp::Reverse((summary.updated_at, summary.session)));
        let limit = query.limit.clamp(1, 1000) as usize;
        let more = sessions.len() > limit;
        sessions.truncate(limit);
        let next = sessions.last().filter(|_| more).map(|summary| memory_page_key(summary));
        SessionPage { sessions: sessions.into_iter().cloned().collect(), next }
    }

    pub(super) fn open_runs(&self, after: Option<(RunId, SessionId)>, limit: u32) -> Vec<RunRow> {
        let open = self.runs.iter().filter(|(_, row)| !matches!(row.state, RunState::Ended(..)));
        let rest = open.filter(|(key, _)| after.is_none_or(|after| **key > after));
        rest.take(limit as usize).map(|(_, row)| self.with_recoverable_state(row)).collect()
    }

    pub(super) fn find_run(&self, run: RunId) -> Option<RunRow> {
        self.runs.iter().find(|((id, _), _)| *id == run).map(|(_, row)| self.with_awaiting_state(row))
    }

    pub(super) fn run_of_owner(&self, run: RunId, owner: &Principal) -> Option<RunRow> {
        let owned = |session| self.sessions.get(&session).is_some_and(|log| log.summary.owner == *owner);
        let mut rows = self.runs.iter().filter(|((id, session), _)| *id == run && owned(*session));
        rows.next().map(|(_, row)| self.with_awaiting_state(row))
    }

    pub(super) fn list_runs(&self, query: &RunQuery) -> RunPage {
        let mut all: Vec<(RunKey, RunRow)> = Vec::new();
        for row in self.runs.values().map(|row| self.with_awaiting_state(row)) {
            let Some(log) = self.sessions.get(&row.session).filter(|log| log.summary.owner == query.principal) else {
                continue;
            };
            let at = match &row.state {
                RunState::Ended(seq, _) => log.entries.get(seq.0 as usize - 1).map_or(row.began_at, |entry| entry.at),
                RunState::Queued | RunState::Running | RunState::Awaiting => row.began_at,
            };
            let fits = query.agent.as_ref().is_none_or(|agent| *agent == log.summary.agent)
                && query.session.is_none_or(|session| session == row.session)
                && query.state.is_none_or(|state| state == row.state.sort_key())
                && query.since.is_none_or(|since| at >= since);
            if fits {
                all.push((RunKey { at, run: row.run }, row));
            }
        }
        all.sort_by_key(|(key, _)| std::cmp::Reverse(*key));
        let total = all.len() as u64;
        all.retain(|(key, _)| query.after.is_none_or(|after| *key < after));
        let limit = query.limit.clamp(1, 1000) as usize;
        let more = all.len() > limit;
        all.truncate(limit);
        let next = all.last().filter(|_| more).map(|(key, _)| *key);
        RunPage { rows: all.into_iter().map(|(_, row)| row).collect(), total, next }
    }

    pub(super) fn find_question(&self, question: QuestionId) -> Option<QuestionRow> {
        self.questions.iter().find(|((id, _), _)| *id == question).map(|(_, row)| *row)
    }

    pub(super) fn set_alias(&mut self, alias: Alias, session: SessionId) -> Result<(), StoreError> {
        self.session_log(session)?;
        match self.aliases.get(&alias) {
            Some(taken) if *taken != session => Err(StoreError::AliasTaken(*taken)),
            _ => {
                self.aliases.insert(alias, session);
                Ok(())
            }
        }
    }

    pub(super) fn delete_session(&mut self, session: SessionId) -> Result<(), StoreError> {
        let owner = self.session_summary(session)?.owner;
        self.sessions.remove(&session);
        self.deleted.insert(session, owner);
        self.runs.retain(|(_, owner), _| *owner != session);
        self.questions.retain(|(_, owner), _| *owner != session);
        self.aliases.retain(|_, target| *target != session);
        self.cluster.forget_session(session);
        Ok(())
    }

    pub(super) fn children(&self, session: SessionId) -> Vec<SessionId> {
        let children = self.sessions.values().filter(|log| log.summary.parent == Some(session));
        children.map(|log| log.summary.session).collect()
    }

    pub(super) fn session_size(&self, session: SessionId) -> Result<u64, StoreError> {
        let sizes =
            self.session_log(session)?.entries.iter().map(|entry| serde_json::to_vec(entry).map_or(0, |row| row.len()));
        Ok(sizes.sum::<usize>() as u64)
    }

    pub(super) fn deleted_owner(&self, session: SessionId) -> Option<Principal> {
        self.deleted.get(&session).cloned()
    }

    pub(super) fn check_scopes(&self, scopes: &[ScopeAppend]) -> Result<(), StoreError> {
        let mut heads: HashMap<&str, Seq> = HashMap::new();
        for append in scopes {
            let stored = || self.scope_end(&append.scope);
            let head = heads.entry(&append.scope).or_insert_with(stored);
            if let Some(after) = append.after
                && after != *head
            {
                return Err(StoreError::Gap { expected: head.next(), found: after.next() });
            }
            head.0 += append.facts.len() as u64;
        }
        Ok(())
    }

    pub(super) fn append_scope(&mut self, append: ScopeAppend) -> Seq {
        let mut end = self.scope_end(&append.scope);
        let log = self.scopes.entry(append.scope).or_default();
        for fact in append.facts {
            end = end.next();
            log.push(ScopeEntry { seq: end, at: append.at, fact });
        }
        end
    }

    pub(super) fn compact_scope(&mut self, scope: &str, upto: Seq, at: Timestamp, fact: Value) {
        let Some(log) = self.scopes.get_mut(scope) else { return };
        let Some(place) = log.iter().position(|entry| entry.seq == upto && entry.at == at) else { return };
        log[place].fact = fact;
        log.drain(..place);
    }

    pub(super) fn scope_end(&self, scope: &str) -> Seq {
        self.scopes.get(scope).and_then(|log| log.last()).map_or(Seq::ZERO, |entry| entry.seq)
    }

    pub(super) fn read_scope(&self, scope: &str, after: Seq, limit: u32) -> Vec<ScopeEntry> {
        let entries = self.scopes.get(scope).map(Vec::as_slice).unwrap_or_default();
        entries.iter().filter(|entry| entry.seq > after).take(limit as usize).cloned().collect()
    }

    pub(super) fn rebuild_folds(&mut self) -> u64 {
        self.runs.clear();
        self.questions.clear();
        let sessions: Vec<SessionId> = self.sessions.keys().copied().collect();
        for session in &sessions {
            let Some(log) = self.sessions.get_mut(session) else { continue };
            log.summary.messages = 0;
            log.summary.usage = None;
            log.summary.updated_at = Timestamp::default();
            let changes = fold::fold_entries(&log.entries);
            self.apply_changes(*session, &changes);
        }
        sessions.len() as u64
    }

    fn session_log(&self, session: SessionId) -> Result<&MemoryLog, StoreError> {
        self.sessions.get(&session).ok_or_else(|| self.missing_error(session))
    }

    fn log_mut(&mut self, session: SessionId) -> Result<&mut MemoryLog, StoreError> {
        let absent = self.missing_error(session);
        self.sessions.get_mut(&session).ok_or(absent)
    }

    fn missing_error(&self, session: SessionId) -> StoreError {
        if self.deleted.contains_key(&session) { StoreError::Deleted(session) } else { StoreError::NotFound(session) }
    }

    fn count_entries(&mut self, entries: &[Entry], sync: Durability) {
        self.stats.commits += 1;
        self.stats.barriers += u64::from(sync == Durability::Barrier);
        self.stats.rows += entries.len() as u64;
        self.stats.entries += entries.len() as u64;
        self.stats.deltas += entries.iter().filter(|entry| entry.event.is_delta()).count() as u64;
    }

    fn apply_changes(&mut self, session: SessionId, changes: &SideTableChanges) {
        for change in &changes.runs {
            let (run, first, began_at) = (change.run, change.seq, change.at);
            let row = RunRow { run, session, state: RunState::Queued, first, began_at };
            let row = self.runs.entry((run, session)).or_insert(row);
            match &change.step {
                RunStep::Queued => {}
                RunStep::Started => row.state = RunState::Running,
                RunStep::Ended(outcome) => row.state = RunState::Ended(change.seq, outcome.clone()),
            }
        }
        for change in &changes.questions {
            let (question, run, asked) = (change.question, change.run, change.asked.unwrap_or_default());
            let row = QuestionRow { question, session, run, asked, answered: None, held: change.held };
            let row = self.questions.entry((question, session)).or_insert(row);
            row.answered = change.answered.or(row.answered);
        }
        let state = self.session_status(session);
        if let (Some(change), Some(log)) = (&changes.summary, self.sessions.get_mut(&session)) {
            let summary = &mut log.summary;
            summary.title = change.title.clone().unwrap_or_else(|| summary.title.clone());
            summary.agent = change.agent.clone().unwrap_or_else(|| summary.agent.clone());
            summary.archived = change.archived.unwrap_or(summary.archived);
            summary.messages += change.messages;
            summary.updated_at = summary.updated_at.max(change.updated_at);
            summary.state = state;
            summary.usage = changed_memory_usage(summary.usage, change);
        }
    }

    fn session_status(&self, session: SessionId) -> SessionStatus {
        let asked = |row: &QuestionRow| row.session == session && row.run.is_some() && row.answered.is_none();
        let asked = self.questions.values().any(asked);
        let runs = || self.runs.values().any(|row| row.session == session && row.state == RunState::Running);
        match asked {
            true => SessionStatus::Awaiting,
            false if runs() => SessionStatus::Running,
            false => SessionStatus::Idle,
        }
    }

    fn with_recoverable_state(&self, row: &RunRow) -> RunRow {
        let waits = |question: &QuestionRow| {
            question.held
                && question.run == Some(row.run)
                && question.session == row.session
                && question.answered.is_none()
        };
        if self.questions.values().any(waits) { row.clone() } else { self.with_awaiting_state(row) }
    }

    fn with_awaiting_state(&self, row: &RunRow) -> RunRow {
        let mut row = row.clone();
        let waits = |question: &QuestionRow| {
            question.session == row.session && question.run == Some(row.run) && question.answered.is_none()
        };
        if row.state == RunState::Running && self.questions.values().any(waits) {
            row.state = RunState::Awaiting;
        }
        row
    }
}

fn first_memory_summary(session: SessionId, entries: &[Entry]) -> Result<SessionSummary, StoreError> {
    let creation = entries.first().filter(|entry| matches!(entry.event, Event::SessionCreated { .. }));
    let summary = creation.and_then(|entry| fold::fold_entries([entry]).summary);
    let Some(CreatedSession { owner, workspace, parent, at }) = summary.and_then(|summary| summary.creation) else {
        return Err(StoreError::Invalid("first entry does not create the session".to_owned()));
    };
    Ok(SessionSummary {
        session,
        owner,
        workspace,
        agent: String::new(),
        title: String::new(),
        created_at: at,
        updated_at: at,
        state: SessionStatus::Idle,
        archived: false,
        messages: 0,
        parent,
        usage: None,
    })
}

/// Nothing is known before the session was created.
fn changed_memory_usage(before: Option<SummaryUsage>, change: &SummaryChange) -> Option<SummaryUsage> {
    let policy = change.policy.or_else(|| before.map(|before| before.policy))?;
    let before = before.filter(|_| !change.usage.reset);
    let total = |count: fn(&SummaryUsage) -> u64| before.as_ref().map_or(0, count);
    Some(SummaryUsage {
        policy,
        input: total(|usage| usage.input) + change.usage.input,
        output: total(|usage| usage.output) + change.usage.output,
        cost: total(|usage| usage.cost) + change.usage.cost,
        last_call: change.usage.last_call.or_else(|| before?.last_call),
    })
}

fn check_memory_order(head: Seq, entries: &[Entry]) -> Result<(), StoreError> {
    let mut expected = head.next();
    for entry in entries {
        if entry.seq != expected {
            return Err(StoreError::Gap { expected, found: entry.seq });
        }
        expected = expected.next();
    }
    Ok(())
}

fn matches_memory_query(summary: &SessionSummary, query: &SessionQuery, words: &[String]) -> bool {
    let title = searchable_title(&summary.title);
    summary.owner == query.principal
        && summary.archived == query.archived
        && (!query.non_empty || summary.messages > 0 || !summary.title.is_empty())
        && query.workspace.as_ref().is_none_or(|workspace| summary.workspace == *workspace)
        && query.state.is_none_or(|state| summary.state == state)
        && words.iter().all(|word| title.contains(word.as_str()))
        && query.after.is_none_or(|after| (summary.updated_at, summary.session) < (after.updated_at, after.session))
}

fn memory_page_key(summary: &SessionSummary) -> PageKey {
    PageKey { updated_at: summary.updated_at, session: summary.session }
}
