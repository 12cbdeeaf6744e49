//! `SessionView`: the one fold over a session's log. Small: open items, settings and counters, never the history.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::active_run::{ActiveRun, OpenTool, ToolStage};
use crate::state::filter_state_by_scope;
use crate::{
    Entry, Event, Message, MessageId, Outcome, Part, Plan, Principal, Provenance, ResetReason, Role, RunId, RunOrigin,
    Seq, SessionId, Settings, State, StateScope, Timestamp, Usage,
};

/// How many ended runs a view remembers, so that a retried prompt is recognised.
const MAX_ENDED_RUNS: usize = 64;

/// What a session is now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SessionView {
    /// Its id.
    pub session: SessionId,
    /// Whose it is.
    pub owner: Principal,
    /// The folder it works in.
    pub workspace: String,
    /// Further folders it may use.
    pub folders: Vec<String>,
    /// What it is set to.
    pub settings: Settings,
    /// Where it came from.
    pub parent: Option<SessionId>,
    /// Its title, if it has one.
    pub title: Option<String>,
    /// Put away?
    pub archived: bool,
    /// The last entry.
    pub head: Seq,
    /// When it began.
    pub created_at: Timestamp,
    /// When its last entry was written.
    pub updated_at: Timestamp,
    /// From where a model's context can be folded: the last reset that kept nothing before it.
    pub context_from: Seq,
    /// Where people's view begins: the last reset that was not a compaction.
    pub history_from: Seq,
    /// The run that started and has not ended.
    pub run: Option<ActiveRun>,
    /// Prompts that wait for their turn, oldest first.
    pub queue: Vec<QueuedRun>,
    /// The last runs that ended, newest last.
    pub ended: Vec<(RunId, Outcome)>,
    /// The plan.
    pub plan: Plan,
    /// Values that are kept by name in this session.
    pub state: State,
    /// All model calls together.
    pub spent: UsageTotals,
    /// The last model call.
    pub last_usage: Option<Usage>,
    /// Whole messages since the beginning of people's view.
    pub messages: u64,
    /// Where the text in its context comes from.
    pub provenance: Provenance,
}

/// A prompt that waits for its turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct QueuedRun {
    /// Its id.
    pub id: RunId,
    /// Who asks.
    pub origin: RunOrigin,
    /// What is asked.
    pub parts: Vec<Part>,
    /// What the door left for itself.
    pub meta: Option<Value>,
}

/// All model calls together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsageTotals {
    /// Tokens read.
    pub input: u64,
    /// Tokens written.
    pub output: u64,
    /// Of those read, from a cache.
    pub cached: u64,
    /// Of those written, thinking.
    pub thinking: u64,
    /// Millionths of a US dollar, as far as prices are known.
    pub cost: u64,
}

impl UsageTotals {
    /// One more model call.
    pub fn add_usage(&mut self, usage: &Usage) {
        self.input += usage.input;
        self.output += usage.output;
        self.cached += usage.cached;
        self.thinking += usage.thinking;
        self.cost += usage.cost.unwrap_or(0);
    }
}

/// What a session does, in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Activity {
    /// Nothing.
    Idle,
    /// A run is under way.
    Running,
    /// A run waits for a person and owns nothing.
    Awaiting,
}

impl SessionView {
    /// The form of this type in stored snapshots: a changed form needs a new number.
    pub const VERSION: u32 = 4;

    /// The view after a session's first entry, or `None` if that is no `SessionCreated`.
    pub fn from_created(entry: &Entry) -> Option<Self> {
        let Event::SessionCreated { session, owner, workspace, folders, settings, parent, .. } = &entry.event else {
            return None;
        };
        let mut provenance = Provenance::default();
        provenance.apply(entry);
        Some(Self {
            session: *session,
            owner: owner.clone(),
            workspace: workspace.clone(),
            folders: folders.clone(),
            settings: settings.clone(),
            parent: *parent,
            title: None,
            archived: false,
            head: entry.seq,
            created_at: entry.at,
            updated_at: entry.at,
            context_from: Seq::ZERO,
            history_from: Seq::ZERO,
            run: None,
            queue: Vec::new(),
            ended: Vec::new(),
            plan: Plan::default(),
            state: State::new(),
            spent: UsageTotals::default(),
            last_usage: None,
            messages: 0,
            provenance,
        })
    }

    /// The view after all these entries, the first of which began the session.
    pub fn replay<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> Option<Self> {
        let mut entries = entries.into_iter();
        let mut view = Self::from_created(entries.next()?)?;
        entries.for_each(|entry| view.apply(entry));
        Some(view)
    }

    /// Takes in the next entry.
    pub fn apply(&mut self, entry: &Entry) {
        self.head = entry.seq;
        self.updated_at = entry.at;
        self.provenance.apply(entry);
        if let Some(run) = self.run.as_mut().filter(|run| entry.run == Some(run.id)) {
            run.last_at = entry.at;
        }
        match &entry.event {
            Event::SessionCreated { .. }
            | Event::Noticed { .. }
            | Event::ToolUpdated { .. }
            | Event::ArtifactSaved { .. }
            | Event::TextMarked { .. }
            | Event::OpaqueUpdate { .. }
            | Event::Unknown(_) => {}
            Event::TitleSet { title } => self.title = Some(title.clone()),
            Event::SettingsChanged { patch } => self.settings.apply_patch(patch),
            Event::Routed { route } => self.settings.apply_route(route),
            Event::ArchiveSet { archived } => self.archived = *archived,
            Event::HistoryReset { keep_to, replacement, reason } => {
                if *keep_to == Seq::ZERO {
                    self.context_from = entry.seq;
                }
                self.apply_reset(entry.seq, replacement.len(), *reason);
            }
            Event::PlanSet { plan } => self.plan = plan.clone(),
            Event::StateChanged { delta, .. } => self.state.extend(filter_state_by_scope(delta, StateScope::Session)),
            Event::UsageAdded { usage } => self.add_usage(usage),
            Event::RunQueued { origin, parts } => self.enqueue_run(entry, origin, parts),
            Event::RunStarted { origin } => self.start_run(entry, origin),
            Event::RunEnded { outcome } => self.end_run(entry.run, outcome),
            Event::MessageDone { message } => self.close_open_message(message),
            Event::RunRecovered { .. }
            | Event::CancelRequested { .. }
            | Event::MessageStarted { .. }
            | Event::PartDelta { .. }
            | Event::ToolCalled { .. }
            | Event::ToolStarted { .. }
            | Event::ToolDone { .. }
            | Event::QuestionAsked { .. }
            | Event::QuestionAnswered { .. } => self.apply_to_run(&entry.event),
        }
    }

    /// Forgets the text of the message that is growing: a reader that has told it need not keep it.
    pub fn clear_open_text(&mut self) {
        let open = self.run.as_mut().and_then(|run| run.open.as_mut());
        for part in open.into_iter().flat_map(|open| &mut open.parts) {
            if let Part::Text { text } | Part::Thought { text } = part {
                *text = String::new();
            }
        }
    }

    /// What it does, in one word.
    pub fn activity(&self) -> Activity {
        match &self.run {
            None => Activity::Idle,
            Some(run) if run.is_awaiting() => Activity::Awaiting,
            Some(_) => Activity::Running,
        }
    }

    /// How this run ended, if it is one of the last.
    pub fn run_outcome(&self, run: RunId) -> Option<&Outcome> {
        self.ended.iter().rev().find(|(id, _)| *id == run).map(|(_, outcome)| outcome)
    }

    /// True if this run was accepted before, as far as this view remembers.
    pub fn has_seen_run(&self, run: RunId) -> bool {
        self.is_run_open(run) || self.run_outcome(run).is_some()
    }

    /// True if this run is under way or waits for its turn.
    pub fn is_run_open(&self, run: RunId) -> bool {
        self.run.as_ref().is_some_and(|active| active.id == run) || self.queue.iter().any(|queued| queued.id == run)
    }

    fn apply_reset(&mut self, seq: Seq, replaced: usize, reason: ResetReason) {
        match reason {
            ResetReason::Compacted => {}
            ResetReason::Cleared | ResetReason::Rewound | ResetReason::Replaced => {
                self.history_from = seq;
                self.plan = Plan::default();
                self.messages = replaced as u64;
                self.spent = UsageTotals::default();
                self.last_usage = None;
            }
        }
    }

    fn add_usage(&mut self, usage: &Usage) {
        self.spent.add_usage(usage);
        // How full the window is says only a call of its own.
        if usage.child.is_none() {
            self.last_usage = Some(usage.clone());
        }
    }

    fn enqueue_run(&mut self, entry: &Entry, origin: &RunOrigin, parts: &[Part]) {
        let Some(id) = entry.run else { return };
        let meta = entry.meta.as_deref().cloned();
        self.queue.push(QueuedRun { id, origin: origin.clone(), parts: parts.to_vec(), meta });
    }

    fn start_run(&mut self, entry: &Entry, origin: &RunOrigin) {
        let Some(id) = entry.run else { return };
        self.queue.retain(|queued| queued.id != id);
        self.run = Some(ActiveRun {
            id,
            origin: origin.clone(),
            from: entry.seq,
            started_at: entry.at,
            last_at: entry.at,
            meta: entry.meta.as_deref().cloned(),
            cancelling: false,
            recovered: 0,
            open: None,
            grown: Vec::new(),
            tools: Vec::new(),
            questions: Vec::new(),
        });
    }

    /// A queued run that is cancelled ends without ever having started.
    fn end_run(&mut self, run: Option<RunId>, outcome: &Outcome) {
        let Some(id) = run else { return };
        self.queue.retain(|queued| queued.id != id);
        if self.run.as_ref().is_some_and(|active| active.id == id) {
            self.run = None;
        }
        if self.ended.len() == MAX_ENDED_RUNS {
            self.ended.remove(0);
        }
        self.ended.push((id, outcome.clone()));
    }

    fn close_open_message(&mut self, message: &Message) {
        self.messages += 1;
        if let Some(run) = &mut self.run
            && run.open.as_ref().is_some_and(|open| open.id == message.id)
        {
            run.open = None;
            run.grown.clear();
        }
    }

    fn apply_to_run(&mut self, event: &Event) {
        let Some(run) = &mut self.run else { return };
        match event {
            Event::RunRecovered { attempt } => run.recovered = *attempt,
            Event::CancelRequested { .. } => run.cancelling = true,
            Event::MessageStarted { message, role } => {
                run.open = Some(empty_view_message(*message, *role));
                run.grown.clear();
            }
            Event::PartDelta { part, growth, text, .. } => run.append_delta(*part, *growth, text),
            Event::ToolCalled { call } => run.tools.push(OpenTool { call: call.clone(), stage: ToolStage::Allowed }),
            Event::ToolStarted { call } => run.set_stage(*call, ToolStage::Started),
            Event::ToolDone { call, .. } => run.tools.retain(|tool| tool.call.id != *call),
            Event::QuestionAsked { question } => run.add_question(question),
            Event::QuestionAnswered { question, answer } => run.record_answer(*question, answer),
            Event::SessionCreated { .. }
            | Event::TitleSet { .. }
            | Event::SettingsChanged { .. }
            | Event::ArchiveSet { .. }
            | Event::HistoryReset { .. }
            | Event::Noticed { .. }
            | Event::PlanSet { .. }
            | Event::StateChanged { .. }
            | Event::ArtifactSaved { .. }
            | Event::TextMarked { .. }
            | Event::Routed { .. }
            | Event::UsageAdded { .. }
            | Event::RunQueued { .. }
            | Event::RunStarted { .. }
            | Event::RunEnded { .. }
            | Event::MessageDone { .. }
            | Event::ToolUpdated { .. }
            | Event::OpaqueUpdate { .. }
            | Event::Unknown(_) => {} // not about the inside of a run
        }
    }
}

fn empty_view_message(id: MessageId, role: Role) -> Message {
    Message { id, role, parts: Vec::new(), interrupted: false, native: None }
}
