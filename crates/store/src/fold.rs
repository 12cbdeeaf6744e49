//! What entries change in the side tables: a pure fold, the same for every store and for a rebuild.

use gander_domain::{
    Entry, Event, Outcome, Principal, QuestionId, QuestionOrigin, ResetReason, RunId, Seq, SessionId, SessionPolicy,
    Timestamp, Usage,
};

/// What some entries of one session change.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct SideTableChanges {
    pub(super) summary: Option<SummaryChange>,
    pub(super) runs: Vec<RunChange>,
    pub(super) questions: Vec<QuestionChange>,
}

/// What changes in a session's summary; `None` stays. Its state follows from its runs and questions.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct SummaryChange {
    pub(super) creation: Option<CreatedSession>,
    pub(super) title: Option<String>,
    pub(super) agent: Option<String>,
    pub(super) archived: Option<bool>,
    pub(super) messages: u64,
    pub(super) updated_at: Timestamp,
    pub(super) policy: Option<SessionPolicy>,
    pub(super) usage: UsageChange,
}

/// What changes in a session's usage.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct UsageChange {
    /// What was counted before these entries counts no more.
    pub(super) reset: bool,
    pub(super) input: u64,
    pub(super) output: u64,
    pub(super) cost: u64,
    pub(super) last_call: Option<(u64, u64)>,
}

/// What never changes in a session.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct CreatedSession {
    pub(super) owner: Principal,
    pub(super) workspace: String,
    pub(super) parent: Option<SessionId>,
    pub(super) at: Timestamp,
}

/// A step of a run.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct RunChange {
    pub(super) run: RunId,
    pub(super) seq: Seq,
    pub(super) at: Timestamp,
    pub(super) step: RunStep,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum RunStep {
    Queued,
    Started,
    Ended(Outcome),
}

/// A step of a question.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct QuestionChange {
    pub(super) question: QuestionId,
    pub(super) run: Option<RunId>,
    pub(super) asked: Option<Seq>,
    pub(super) answered: Option<Seq>,
    /// A live child waits for the answer.
    pub(super) held: bool,
}

impl UsageChange {
    fn add_call(&mut self, usage: &Usage) {
        self.input += usage.input;
        self.output += usage.output;
        self.cost += usage.cost.unwrap_or(0);
        if usage.child.is_none() {
            self.last_call = Some((usage.input, usage.output));
        }
    }
}

/// Folds entries of one session, in order.
pub(super) fn fold_entries<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> SideTableChanges {
    let mut changes = SideTableChanges::default();
    for entry in entries {
        // What a message that grows begins with is no news for a list, and comes with the first delta: that one would
        // have to wait for the summary and its indices.
        if !entry.event.is_delta() && !matches!(entry.event, Event::MessageStarted { .. }) {
            changes.apply_entry(entry);
        }
    }
    changes
}

impl SideTableChanges {
    fn apply_entry(&mut self, entry: &Entry) {
        let summary = self.summary.get_or_insert_default();
        summary.updated_at = summary.updated_at.max(entry.at);
        match &entry.event {
            Event::SessionCreated { owner, workspace, settings, parent, .. } => {
                let (owner, workspace) = (owner.clone(), workspace.clone());
                summary.creation = Some(CreatedSession { owner, workspace, parent: *parent, at: entry.at });
                summary.agent = Some(settings.agent.clone());
                summary.policy = Some(settings.session_policy());
            }
            Event::TitleSet { title } => summary.title = Some(title.clone()),
            Event::SettingsChanged { patch } => {
                summary.agent = patch.agent.clone().or_else(|| summary.agent.take());
                summary.policy = patch.policy.map(SessionPolicy::chosen).or(summary.policy);
            }
            Event::Routed { route } => summary.agent = Some(route.agent.clone()),
            Event::ArchiveSet { archived } => summary.archived = Some(*archived),
            Event::RunQueued { .. } => self.push_run(entry, RunStep::Queued),
            Event::RunStarted { .. } => self.push_run(entry, RunStep::Started),
            Event::RunEnded { outcome } => self.push_run(entry, RunStep::Ended(outcome.clone())),
            Event::MessageDone { .. } => summary.messages += 1,
            Event::QuestionAsked { question } => {
                // No run waits for what is asked aside.
                let run = entry.run.filter(|_| !question.is_non_blocking());
                let held = question.origin == QuestionOrigin::Held;
                let (question, asked) = (question.id, Some(entry.seq));
                self.questions.push(QuestionChange { question, run, asked, answered: None, held });
            }
            Event::QuestionAnswered { question, .. } => {
                let (run, question, answered) = (entry.run, *question, Some(entry.seq));
                self.questions.push(QuestionChange { question, run, asked: None, answered, held: false });
            }
            Event::UsageAdded { usage } => summary.usage.add_call(usage),
            Event::HistoryReset { reason, .. } if *reason != ResetReason::Compacted => {
                summary.usage = UsageChange { reset: true, ..UsageChange::default() };
            }
            Event::HistoryReset { .. }
            | Event::Noticed { .. }
            | Event::PlanSet { .. }
            | Event::StateChanged { .. }
            | Event::ArtifactSaved { .. }
            | Event::TextMarked { .. }
            | Event::RunRecovered { .. }
            | Event::CancelRequested { .. }
            | Event::MessageStarted { .. }
            | Event::PartDelta { .. }
            | Event::ToolCalled { .. }
            | Event::ToolStarted { .. }
            | Event::ToolUpdated { .. }
            | Event::ToolDone { .. }
            | Event::OpaqueUpdate { .. }
            | Event::Unknown(_) => {}
        }
    }

    fn push_run(&mut self, entry: &Entry, step: RunStep) {
        let Some(run) = entry.run else { return };
        self.runs.push(RunChange { run, seq: entry.seq, at: entry.at, step });
    }
}
