//! What a batch of appends becomes: columns of arrays, and one statement that takes them all.

use std::collections::BTreeMap;

use gander_domain::{Policy, QuestionId, RunId, Seq, SessionId};
use sqlx::postgres::PgArguments;
use sqlx::query::Query;
use sqlx::{AssertSqlSafe, Postgres};
use uuid::Uuid;

use super::text::encode_postgres_text;
use super::writer::PostgresPending;
use crate::fold::{self, RunChange, RunStep, SideTableChanges, SummaryChange, UsageChange};
use crate::row::{Row, RowEncoder};
use crate::types::searchable_title;
use crate::{Epoch, RunSort, RunState, StoreError};

/// A statement on its way.
pub(super) type BatchQuery<'q> = Query<'q, Postgres, PgArguments>;

/// A batch of nothing but deltas. A session that is fenced, deleted or ends elsewhere is not in the answer, and nothing of it
/// is written.
const DELTAS_SQL: &str = "WITH moved AS (UPDATE session s SET head = i.head, node = i.node, has_work = i.node IS NOT NULL \
     FROM unnest($1::uuid[], $2::bigint[], $3::bigint[], $4::bigint[], $5::uuid[]) AS i (id, epoch, before, head, node) \
     WHERE s.id = i.id AND s.epoch = i.epoch AND s.deleted_at IS NULL AND s.head = i.before \
     RETURNING s.id, s.head, s.node IS NULL AND s.commands > 0 AS unowned_work), \
     written AS (INSERT INTO entry (session, epoch, first, last, kind, body) SELECT e.* \
     FROM unnest($6::uuid[], $7::bigint[], $8::bigint[], $9::bigint[], $10::smallint[], $11::text[]) \
     AS e (session, epoch, first, last, kind, body) WHERE e.session IN (SELECT id FROM moved)) \
     SELECT id, head, unowned_work, ARRAY[]::uuid[] FROM moved";

/// The parameters of `append_batch`.
const BATCH_PARAMETERS: usize = 65;

/// The appends of one session in a batch: they are stored together or not at all.
pub(super) struct SessionGroup {
    pub(super) session: SessionId,
    pub(super) epoch: Epoch,
    /// Where the log must end; none if nothing is added.
    pub(super) before: Option<Seq>,
    pub(super) head: Option<Seq>,
    /// The node that owns the session from then on, if any.
    pub(super) node: Option<Uuid>,
    pub(super) pending: Vec<PostgresPending>,
}

/// A batch in columns.
#[derive(Default)]
pub(super) struct BatchColumns {
    created: CreatedColumns,
    appends: AppendColumns,
    entries: EntryColumns,
    folds: FoldColumns,
    scopes: ScopeColumns,
    snapshots: BTreeMap<(Uuid, i64), (i64, Vec<u8>)>,
    /// By command: of which session, and the text.
    answers: BTreeMap<Uuid, (Uuid, String)>,
}

#[derive(Default)]
struct CreatedColumns {
    ids: Vec<Uuid>,
    owners: Vec<String>,
    workspaces: Vec<String>,
    parents: Vec<Option<Uuid>>,
    at: Vec<i64>,
    pins: Vec<Option<String>>,
    alias_principals: Vec<String>,
    alias_doors: Vec<String>,
    alias_namespaces: Vec<String>,
    alias_texts: Vec<String>,
    alias_sessions: Vec<Uuid>,
}

#[derive(Default)]
struct AppendColumns {
    ids: Vec<Uuid>,
    epochs: Vec<i64>,
    befores: Vec<Option<i64>>,
    heads: Vec<Option<i64>>,
    nodes: Vec<Option<Uuid>>,
}

#[derive(Default)]
struct EntryColumns {
    sessions: Vec<Uuid>,
    epochs: Vec<i64>,
    firsts: Vec<i64>,
    lasts: Vec<i64>,
    kinds: Vec<i16>,
    bodies: Vec<String>,
}

/// What entries change in the side tables.
#[derive(Default)]
pub(super) struct FoldColumns {
    runs: Vec<RunUpsert>,
    questions: Vec<QuestionUpsert>,
    summaries: Vec<(Uuid, SummaryChange)>,
}

#[derive(Default)]
struct ScopeColumns {
    sessions: Vec<Uuid>,
    names: Vec<String>,
    times: Vec<i64>,
    expected: Vec<Option<i64>>,
    sizes: Vec<i64>,
    facts: Vec<String>,
}

/// All steps of one run in a batch: one statement may touch a row once.
struct RunUpsert {
    run: Uuid,
    session: Uuid,
    first: i64,
    began_at: i64,
    started: Option<i64>,
    ended: Option<i64>,
    ended_at: Option<i64>,
    ended_as: Option<i16>,
    outcome: Option<String>,
}

struct QuestionUpsert {
    question: Uuid,
    session: Uuid,
    run: Option<Uuid>,
    asked: i64,
    answered: Option<i64>,
    held: bool,
}

impl BatchColumns {
    /// The groups must be in the order of their sessions. Each append learns about its size.
    pub(super) fn from_groups(groups: &mut [SessionGroup]) -> Result<Self, StoreError> {
        let mut columns = Self::default();
        groups.iter_mut().try_for_each(|group| columns.push_group(group))?;
        Ok(columns)
    }

    /// Rows of entries.
    pub(super) fn row_count(&self) -> u64 {
        self.entries.sessions.len() as u64
    }

    /// The one statement that stores it all.
    pub(super) fn into_query<'q>(self) -> BatchQuery<'q> {
        if self.is_deltas_only() {
            let query = self.appends.bind_to(sqlx::query(DELTAS_SQL));
            return self.entries.bind_to(query);
        }
        let parameters: Vec<String> = (1..=BATCH_PARAMETERS).map(|number| format!("${number}")).collect();
        let sql =
            format!("SELECT appended, reached, unowned_work, answered FROM append_batch({})", parameters.join(", "));
        let query = self.created.bind_to(sqlx::query(AssertSqlSafe(sql)));
        let query = self.entries.bind_to(self.appends.bind_to(query));
        let query = self.scopes.bind_to(self.folds.bind_to(query));
        let (answered, answers): (Vec<Uuid>, Vec<(Uuid, String)>) = self.answers.into_iter().unzip();
        let (sessions, bodies): (Vec<Uuid>, Vec<String>) = answers.into_iter().unzip();
        bind_batch_snapshots(query, self.snapshots).bind(answered).bind(bodies).bind(sessions)
    }

    fn is_deltas_only(&self) -> bool {
        self.created.ids.is_empty()
            && self.folds.summaries.is_empty()
            && self.scopes.names.is_empty()
            && self.snapshots.is_empty()
            && self.answers.is_empty()
            && self.appends.befores.iter().all(Option::is_some)
    }

    fn push_group(&mut self, group: &mut SessionGroup) -> Result<(), StoreError> {
        let session = group.session.uuid();
        let mut encoder = RowEncoder::default();
        for pending in &mut group.pending {
            let mut entries = pending.append.entries.iter();
            pending.size = entries.try_fold(0, |size, entry| encoder.push_entry(entry).map(|added| size + added))?;
            self.created.push_pending(pending)?;
            self.scopes.push_pending(pending);
            let answers = pending.append.answers.iter();
            self.answers.extend(answers.map(|answer| (answer.command.0, (session, answer.body.to_string()))));
            if let Some(snapshot) = &pending.append.snapshot {
                let value = (i64::from(snapshot.version), snapshot.body.clone());
                self.snapshots.insert((session, snapshot.seq.0 as i64), value);
            }
        }
        let epoch = group.epoch.0 as i64;
        encoder.into_rows()?.into_iter().for_each(|row| self.entries.push_row(session, epoch, row));
        let entries = group.pending.iter().flat_map(|pending| &pending.append.entries);
        self.folds.push_changes(group.session, fold::fold_entries(entries))?;
        self.appends.ids.push(session);
        self.appends.epochs.push(epoch);
        self.appends.befores.push(group.before.map(|seq| seq.0 as i64));
        self.appends.heads.push(group.head.map(|seq| seq.0 as i64));
        self.appends.nodes.push(group.node);
        Ok(())
    }
}

impl CreatedColumns {
    fn push_pending(&mut self, pending: &PostgresPending) -> Result<(), StoreError> {
        let Some(aliases) = &pending.aliases else { return Ok(()) };
        let summary = fold::fold_entries(pending.append.entries.first()).summary;
        let Some(creation) = summary.and_then(|summary| summary.creation) else {
            return Err(StoreError::Invalid("first entry does not create the session".to_owned()));
        };
        let session = pending.append.session.uuid();
        self.ids.push(session);
        self.owners.push(encode_postgres_text(creation.owner.as_str()).into_owned());
        self.workspaces.push(encode_postgres_text(&creation.workspace).into_owned());
        self.parents.push(creation.parent.map(|parent| parent.uuid()));
        self.at.push(creation.at.as_micros());
        self.pins.push(pending.append.pinned_to.as_deref().map(|label| encode_postgres_text(label).into_owned()));
        for alias in aliases {
            self.alias_principals.push(encode_postgres_text(alias.principal.as_str()).into_owned());
            self.alias_doors.push(encode_postgres_text(&alias.door).into_owned());
            self.alias_namespaces.push(encode_postgres_text(&alias.namespace).into_owned());
            self.alias_texts.push(encode_postgres_text(&alias.text).into_owned());
            self.alias_sessions.push(session);
        }
        Ok(())
    }

    fn bind_to(self, query: BatchQuery<'_>) -> BatchQuery<'_> {
        let query = query.bind(self.ids).bind(self.owners).bind(self.workspaces).bind(self.parents).bind(self.at);
        let query =
            query.bind(self.pins).bind(self.alias_principals).bind(self.alias_doors).bind(self.alias_namespaces);
        query.bind(self.alias_texts).bind(self.alias_sessions)
    }
}

impl AppendColumns {
    fn bind_to(self, query: BatchQuery<'_>) -> BatchQuery<'_> {
        query.bind(self.ids).bind(self.epochs).bind(self.befores).bind(self.heads).bind(self.nodes)
    }
}

impl EntryColumns {
    fn push_row(&mut self, session: Uuid, epoch: i64, row: Row) {
        self.sessions.push(session);
        self.epochs.push(epoch);
        self.firsts.push(row.first.0 as i64);
        self.lasts.push(row.last.0 as i64);
        self.kinds.push(row.kind.code() as i16);
        self.bodies.push(row.body);
    }

    fn bind_to(self, query: BatchQuery<'_>) -> BatchQuery<'_> {
        let query = query.bind(self.sessions).bind(self.epochs).bind(self.firsts).bind(self.lasts);
        query.bind(self.kinds).bind(self.bodies)
    }
}

impl ScopeColumns {
    fn push_pending(&mut self, pending: &PostgresPending) {
        for append in &pending.append.scopes {
            self.sessions.push(pending.append.session.uuid());
            self.names.push(encode_postgres_text(&append.scope).into_owned());
            self.times.push(append.at.as_micros());
            self.expected.push(append.after.map(|seq| seq.0 as i64));
            self.sizes.push(append.facts.len() as i64);
            self.facts.extend(append.facts.iter().map(ToString::to_string));
        }
    }

    fn bind_to(self, query: BatchQuery<'_>) -> BatchQuery<'_> {
        let query = query.bind(self.sessions).bind(self.names).bind(self.times).bind(self.expected);
        query.bind(self.sizes).bind(self.facts)
    }
}

impl FoldColumns {
    pub(super) fn is_empty(&self) -> bool {
        self.summaries.is_empty()
    }

    /// What some entries of a session change, after what was pushed of it before.
    pub(super) fn push_changes(&mut self, session: SessionId, changes: SideTableChanges) -> Result<(), StoreError> {
        let id = session.uuid();
        let mut runs: BTreeMap<RunId, RunUpsert> = BTreeMap::new();
        for change in &changes.runs {
            let upsert = runs.entry(change.run).or_insert_with(|| RunUpsert::new(id, change));
            upsert.apply_step(change)?;
        }
        self.runs.extend(runs.into_values());
        let mut questions: BTreeMap<QuestionId, QuestionUpsert> = BTreeMap::new();
        for change in changes.questions {
            let upsert = questions.entry(change.question).or_insert_with(|| QuestionUpsert {
                question: change.question.uuid(),
                session: id,
                run: change.run.map(|run| run.uuid()),
                asked: change.asked.unwrap_or_default().0 as i64,
                answered: None,
                held: change.held,
            });
            upsert.answered = upsert.answered.or(change.answered.map(|seq| seq.0 as i64));
        }
        self.questions.extend(questions.into_values());
        self.summaries.extend(changes.summary.map(|summary| (id, summary)));
        Ok(())
    }

    /// The arguments of `apply_folds` behind its first.
    pub(super) fn bind_to(self, query: BatchQuery<'_>) -> BatchQuery<'_> {
        let runs = self.runs;
        let query = query.bind(batch_column(&runs, |run| run.run)).bind(batch_column(&runs, |run| run.session));
        let query = query.bind(batch_column(&runs, |run| run.first)).bind(batch_column(&runs, |run| run.began_at));
        let query = query.bind(batch_column(&runs, |run| run.started)).bind(batch_column(&runs, |run| run.ended));
        let query = query.bind(batch_column(&runs, |run| run.ended_at)).bind(batch_column(&runs, |run| run.ended_as));
        let query = query.bind(batch_column(&runs, |run| run.outcome.clone()));
        let asked = self.questions;
        let query =
            query.bind(batch_column(&asked, |asked| asked.question)).bind(batch_column(&asked, |asked| asked.session));
        let query = query.bind(batch_column(&asked, |asked| asked.run)).bind(batch_column(&asked, |asked| asked.asked));
        let query =
            query.bind(batch_column(&asked, |asked| asked.answered)).bind(batch_column(&asked, |asked| asked.held));
        bind_batch_summaries(query, &self.summaries)
    }
}

impl RunUpsert {
    fn new(session: Uuid, change: &RunChange) -> Self {
        Self {
            run: change.run.uuid(),
            session,
            first: change.seq.0 as i64,
            began_at: change.at.as_micros(),
            started: None,
            ended: None,
            ended_at: None,
            ended_as: None,
            outcome: None,
        }
    }

    fn apply_step(&mut self, change: &RunChange) -> Result<(), StoreError> {
        let (seq, at) = (change.seq.0 as i64, change.at.as_micros());
        match &change.step {
            RunStep::Queued => {}
            RunStep::Started => self.started = self.started.or(Some(seq)),
            RunStep::Ended(outcome) if self.ended.is_none() => {
                let text = serde_json::to_string(outcome).map_err(|error| StoreError::Invalid(error.to_string()))?;
                let sort = RunState::Ended(change.seq, outcome.clone()).sort_key();
                (self.ended, self.ended_at, self.outcome) = (Some(seq), Some(at), Some(text));
                self.ended_as = Some(batch_run_sort_code(sort));
            }
            RunStep::Ended(_) => {}
        }
        Ok(())
    }
}

/// A run's state in one number, as `run.ended_as` holds it.
pub(super) fn batch_run_sort_code(sort: RunSort) -> i16 {
    match sort {
        RunSort::Queued => 0,
        RunSort::Running => 1,
        RunSort::Awaiting => 2,
        RunSort::Completed => 3,
        RunSort::Refused => 4,
        RunSort::Cancelled => 5,
        RunSort::Failed => 6,
    }
}

fn bind_batch_summaries<'q>(query: BatchQuery<'q>, summaries: &[(Uuid, SummaryChange)]) -> BatchQuery<'q> {
    let text = |text: Option<&str>| text.map(|text| encode_postgres_text(text).into_owned());
    let usage = |take: fn(&UsageChange) -> u64| batch_column(summaries, |(_, summary)| take(&summary.usage) as i64);
    let query = query.bind(batch_column(summaries, |(session, _)| *session));
    let query = query.bind(batch_column(summaries, |(_, summary)| text(summary.title.as_deref())));
    let search = |title: &String| encode_postgres_text(&searchable_title(title)).into_owned();
    let query = query.bind(batch_column(summaries, |(_, summary)| summary.title.as_ref().map(search)));
    let query = query.bind(batch_column(summaries, |(_, summary)| text(summary.agent.as_deref())));
    let query = query.bind(batch_column(summaries, |(_, summary)| summary.archived));
    let query = query.bind(batch_column(summaries, |(_, summary)| summary.messages as i64));
    let query = query.bind(batch_column(summaries, |(_, summary)| summary.updated_at.as_micros()));
    let query = query
        .bind(batch_column(summaries, |(_, summary)| summary.policy.and_then(|set| batch_policy_name(set.policy))));
    let query = query.bind(batch_column(summaries, |(_, summary)| summary.policy.map(|policy| policy.chosen)));
    let query = query.bind(batch_column(summaries, |(_, summary)| summary.usage.reset));
    let query =
        query.bind(usage(|usage| usage.input)).bind(usage(|usage| usage.output)).bind(usage(|usage| usage.cost));
    let last = |(_, summary): &(Uuid, SummaryChange)| summary.usage.last_call;
    let query = query.bind(batch_column(summaries, |change| last(change).map(|(input, _)| input as i64)));
    query.bind(batch_column(summaries, |change| last(change).map(|(_, output)| output as i64)))
}

fn bind_batch_snapshots(query: BatchQuery<'_>, snapshots: BTreeMap<(Uuid, i64), (i64, Vec<u8>)>) -> BatchQuery<'_> {
    let (keys, values): (Vec<_>, Vec<_>) = snapshots.into_iter().unzip();
    let (sessions, seqs): (Vec<Uuid>, Vec<i64>) = keys.into_iter().unzip();
    let (versions, bodies): (Vec<i64>, Vec<Vec<u8>>) = values.into_iter().unzip();
    query.bind(sessions).bind(seqs).bind(versions).bind(bodies)
}

fn batch_column<R, T>(rows: &[R], take: impl Fn(&R) -> T) -> Vec<T> {
    rows.iter().map(take).collect()
}

/// As serde spells it, which is what the column is read with.
fn batch_policy_name(policy: Policy) -> Option<String> {
    serde_json::to_value(policy).ok()?.as_str().map(str::to_owned)
}
