//! `Turn`: the pure machine of one run of the native agent.

mod budget;
mod context_compaction;
mod draft;
mod evaluator;
mod goal;
mod model_calls;
mod tool_calls;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use gander_domain::view::UsageTotals;
use gander_domain::{
    Answer, ArtifactContent, Context, Entry, Event, IdGenerator, Message, Notice, Outcome, Plan, Question, QuestionId,
    Report, Role, Settings, Severity, StopReason, TextMark, Timestamp, ToolCall, ToolCallId, ToolContent, ToolResult,
    ToolSpec, Usage,
};
use gander_models::{ModelError, ModelEvent, ModelInfo, Request};
use serde_json::Value;

use crate::{AgentSettings, compact};
use context_compaction::Summary;
use draft::Draft;
use goal::GoalStep;

pub use budget::exceeded_budget;
pub use evaluator::{PermissionEvaluator, ToolDecision};
pub use goal::{Goal, OUTPUT};

/// One run of the native agent: takes in what happened, says what to do.
///
/// Its knowledge of the conversation is a [`Context`] into which it folds what it reports, so a turn that
/// was cut anywhere is rebuilt from the log by the same fold.
///
/// # Laws
/// 1. A tool runs only after the order that says its start is committed, and once per start.
/// 2. A tool that asked runs only on an explicit yes to exactly what was shown.
/// 3. The model is called again only when every call it made has a result.
/// 4. After a cancel nothing starts: the only report is the end.
/// 5. No more than [`AgentSettings::parallel_tool_calls`] tools run at once; the others start in the order of the calls.
/// 6. [`Effect::End`] is the last effect and follows one [`Report::Ended`] or [`Report::Parked`].
pub struct Turn {
    setup: TurnSetup,
    context: Context,
    phase: Phase,
    /// Calls that were reported as ready to start: each waits for its order.
    cleared: Vec<ToolCallId>,
    /// Calls that may run and wait until others have ended, in order.
    queued: VecDeque<ToolCallId>,
    /// Plans that were approved, by the calls that proposed them.
    approved: Vec<(ToolCallId, Plan)>,
    /// Questions of live children. They do not outlast the turn.
    held: Vec<QuestionId>,
    /// Failed tries of the model call under way.
    failures: u32,
    /// Room was made since the last whole answer: doing it again would not help.
    squeezed: bool,
    /// The last answer was empty.
    silent: bool,
    effects: VecDeque<Effect>,
}

/// What a turn works with.
#[derive(Clone)]
pub struct TurnSetup {
    /// Limits and pauses.
    pub settings: AgentSettings,
    /// The model's window and prices.
    pub model: ModelInfo,
    /// The system prompt.
    pub system: String,
    /// The tools on offer.
    pub tools: Arc<[ToolSpec]>,
    /// Describes calls and knows what may run.
    pub evaluator: Arc<dyn PermissionEvaluator>,
    /// What must hold before it may end.
    pub goal: Option<Goal>,
    /// The sub-tasks that a fresh run hands out before the model is asked: arguments of `delegate`.
    pub subtasks: Option<Value>,
    /// What the session used up before.
    pub spent: UsageTotals,
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// Begin, or go on from what the context says.
    Begin,
    /// The model said this.
    Model(Vec<ModelEvent>),
    /// The model call failed, or ended without an end.
    ModelFailed(ModelError),
    /// The pause asked for is over.
    Waited,
    /// The call's start is committed.
    RunTool(ToolCallId),
    /// A running tool shows this now.
    ToolShows(ToolCallId, Vec<ToolContent>),
    /// A running tool made this the plan.
    ToolPlans(ToolCallId, Plan),
    /// A running tool says where text in its result comes from.
    ToolMarked(ToolCallId, TextMark),
    /// A running tool put something away under a name.
    ToolSaved {
        call: ToolCallId,
        /// The name.
        name: String,
        /// The version, from 0.
        version: u64,
        /// The media type, if known.
        mime: Option<String>,
        /// What it is, unless it is large.
        content: Option<ArtifactContent>,
    },
    /// A running tool is done.
    ToolDone(ToolCallId, ToolResult),
    /// A question was answered.
    Answered(QuestionId, Answer),
    /// A person said something into the turn.
    Steer(Message),
    /// A live child asks a person this.
    Held(Question),
    /// Whoever asked this is gone.
    Abandoned(QuestionId),
    /// The tools on offer are now these. They count from the next model call on.
    Tools(Arc<[ToolSpec]>),
    /// Something worth telling a person.
    Noticed(Notice),
    /// A model call on a child's behalf was paid for.
    Spent(Usage),
    /// Settings changed. The model counts from the next run on.
    Configured(Settings),
    /// Settings changed, and what the mode says with them. It counts from the next model call on.
    Refitted {
        /// All of them, as they are now.
        settings: Settings,
        /// The system prompt.
        system: String,
        /// The tools on offer.
        tools: Arc<[ToolSpec]>,
    },
    /// Stop.
    Cancel,
}

/// Something to do.
#[derive(Clone, Debug)]
// Nearly all effects are reports: a box would be an allocation for every delta.
#[allow(clippy::large_enum_variant)]
pub enum Effect {
    /// Call the model; an older call is dropped.
    CallModel(Request),
    /// Drop the model call.
    AbortModel,
    /// Run this tool.
    RunTool(ToolCall),
    /// Stop all tools.
    StopTools,
    /// Give [`Input::Waited`] after this pause.
    Wait(Duration),
    /// Tell the session.
    Report(Report),
    /// It is over: nothing more will come.
    End,
}

/// What a turn is doing.
enum Phase {
    /// Nothing yet.
    New,
    /// The model speaks.
    Calling(Draft),
    /// The model summarises what is old.
    Summarising(Summary),
    /// A pause before the next try of this.
    Waiting(RetryStep),
    /// Calls are without a result.
    Tools,
    /// Nothing any more.
    Over,
}

/// What is tried again.
enum RetryStep {
    Call,
    Summary(Summary),
}

impl Turn {
    /// A turn of the context's active run. It does nothing before [`Input::Begin`].
    pub fn new(setup: TurnSetup, context: Context) -> Self {
        Self {
            setup,
            context,
            phase: Phase::New,
            cleared: Vec::new(),
            queued: VecDeque::new(),
            approved: Vec::new(),
            held: Vec::new(),
            failures: 0,
            squeezed: false,
            silent: false,
            effects: VecDeque::new(),
        }
    }

    /// Feeds one thing that happened. Call [`Turn::poll_effect`] until it returns `None` before the next input.
    pub fn handle_input(&mut self, now: Timestamp, input: Input, ids: &mut dyn IdGenerator) {
        if matches!(self.phase, Phase::Over) {
            return;
        }
        match input {
            Input::Begin => self.handle_begin(ids),
            Input::Model(events) => self.handle_model_events(events, ids),
            Input::ModelFailed(error) => self.handle_model_failure(now, &error),
            Input::Waited => self.handle_waited(),
            Input::RunTool(call) => self.handle_run_tool(call, ids),
            Input::ToolShows(call, content) => self.handle_tool_report(call, Report::ToolUpdated { call, content }),
            Input::ToolPlans(call, plan) => self.handle_tool_report(call, Report::PlanSet(plan)),
            Input::ToolMarked(call, mark) => self.handle_tool_marked(call, mark),
            Input::ToolSaved { call, name, version, mime, content } => {
                self.handle_tool_report(call, Report::ArtifactSaved { name, version, mime, content, call: Some(call) });
            }
            Input::ToolDone(call, result) => self.handle_tool_done(call, result, ids),
            Input::Answered(question, answer) => self.handle_answered(question, answer, ids),
            Input::Steer(message) => self.handle_steer(message),
            Input::Held(question) => self.hold_question(question),
            Input::Abandoned(question) => self.handle_abandoned(question),
            Input::Tools(tools) => self.setup.tools = tools,
            Input::Noticed(notice) => self.push_report(Report::Noticed(notice)),
            Input::Spent(usage) => self.handle_child_usage(usage),
            Input::Configured(settings) => self.context.settings = settings,
            Input::Refitted { settings, system, tools } => {
                self.context.settings = settings;
                (self.setup.system, self.setup.tools) = (system, tools);
            }
            Input::Cancel => self.handle_cancel(),
        }
    }

    /// The next thing to do.
    pub fn poll_effect(&mut self) -> Option<Effect> {
        self.effects.pop_front()
    }

    /// What the model would be shown now.
    pub fn context(&self) -> &Context {
        &self.context
    }

    fn handle_begin(&mut self, ids: &mut dyn IdGenerator) {
        if !matches!(self.phase, Phase::New) {
            return;
        }
        if !self.context.has_title {
            self.push_report(Report::Titled(crate::title::title_from_text(&first_user_text_of_turn(
                &self.context.messages,
            ))));
        }
        self.phase = Phase::Tools;
        if is_answered_in_turn(&self.context) && self.setup.goal.is_none() {
            return self.end_run(Outcome::Completed { stop: StopReason::EndTurn });
        }
        if self.is_compaction_requested() {
            return self.compact_on_request();
        }
        if let Some(subtasks) = self.setup.subtasks.take().filter(|_| self.is_fresh()) {
            return self.hand_out_subtasks(subtasks, ids);
        }
        self.pick_up_calls(ids);
        self.continue_after_tools(ids);
    }

    /// Nothing but the request is there.
    fn is_fresh(&self) -> bool {
        let run = &self.context.messages[self.context.run_start_index()..];
        !run.is_empty() && run.iter().all(|message| message.role == Role::User)
    }

    /// The request is several: sub-agents come first, then the model joins what they give.
    fn hand_out_subtasks(&mut self, subtasks: Value, ids: &mut dyn IdGenerator) {
        match self.limit_outcome() {
            Some(outcome) => self.end_run(outcome),
            None => self.call_without_model(gander_tools::DELEGATE, subtasks, ids),
        }
    }

    /// Goes on when no call is without a result; parks when only people can go on.
    fn continue_after_tools(&mut self, ids: &mut dyn IdGenerator) {
        if !matches!(self.phase, Phase::Tools) {
            return;
        }
        if self.context.pending.is_empty() {
            self.go_on_to_goal(ids);
        } else if self.waits_for_answers_only() {
            self.park_run();
        }
    }

    /// The next step towards the goal; without one it is the model's turn.
    fn go_on_to_goal(&mut self, ids: &mut dyn IdGenerator) {
        let Some(goal) = &self.setup.goal else { return self.call_model_or_end() };
        match goal.next_goal_step(&self.context.messages[self.context.run_start_index()..]) {
            GoalStep::Model => self.call_model_or_end(),
            GoalStep::Call(name, arguments) => self.call_for_goal(name, arguments, ids),
            GoalStep::End => self.end_run(Outcome::Completed { stop: StopReason::EndTurn }),
            GoalStep::Fail(reason, message) => self.end_run(Outcome::failed(reason, message)),
        }
    }

    /// A turn that is gone holds no child, so what a child asks is not asked any more.
    fn park_run(&mut self) {
        for question in std::mem::take(&mut self.held) {
            self.push_report(Report::Withdrawn(question));
        }
        self.finish_with(Report::Parked);
    }

    fn hold_question(&mut self, question: Question) {
        self.held.push(question.id);
        self.push_report(Report::Asked(question));
    }

    fn handle_abandoned(&mut self, question: QuestionId) {
        if self.held.contains(&question) {
            self.held.retain(|held| *held != question);
            self.push_report(Report::Withdrawn(question));
        }
    }

    /// The next model call, unless a limit is reached or room has to be made first.
    fn call_model_or_end(&mut self) {
        if let Some(outcome) = self.limit_outcome() {
            return self.end_run(outcome);
        }
        if self.is_context_full() {
            return self.compact_context();
        }
        self.call_model();
    }

    fn limit_outcome(&self) -> Option<Outcome> {
        let settings = &self.setup.settings;
        let run = &self.context.messages[self.context.run_start_index()..];
        if tool_calls::count_bad_tool_calls(run) >= settings.max_bad_calls {
            let message = format!("the model called tools wrongly {} times in a row", settings.max_bad_calls);
            return Some(Outcome::failed("tool_calls", message));
        }
        if let Some(message) = budget::exceeded_budget(self.context.settings.budget, self.setup.spent) {
            return Some(Outcome::failed("budget", message));
        }
        let most = self.context.settings.max_turns.unwrap_or(settings.max_turns);
        (self.context.turns >= most).then_some(Outcome::Completed { stop: StopReason::MaxTurns })
    }

    fn call_model(&mut self) {
        let request = Request {
            system: self.setup.system.clone(),
            messages: compact::clip_messages_to_compact(&self.context.messages, self.setup.settings.max_result_chars),
            tools: Arc::clone(&self.setup.tools),
            effort: self.context.settings.effort,
            temperature: self.context.settings.temperature.map(|hundredths| f32::from(hundredths) / 100.0),
            max_output: self.setup.settings.max_output,
            params: self.context.settings.model_params.request.clone(),
        };
        self.phase = Phase::Calling(Draft::default());
        self.effects.push_back(Effect::CallModel(request));
    }

    /// The session has closed the open message where the person spoke, so the model is asked anew from there.
    fn handle_steer(&mut self, message: Message) {
        let draft = match std::mem::replace(&mut self.phase, Phase::Tools) {
            Phase::Calling(draft) => draft,
            other @ (Phase::New | Phase::Summarising(_) | Phase::Waiting(_) | Phase::Tools | Phase::Over) => {
                self.phase = other;
                return self.apply_event(Event::MessageDone { message });
            }
        };
        self.effects.push_back(Effect::AbortModel);
        if let Some(said) = draft.into_message() {
            self.apply_event(Event::MessageDone { message: said });
        }
        self.apply_event(Event::MessageDone { message });
        self.call_model_or_end();
    }

    /// The session closes what is open.
    fn handle_cancel(&mut self) {
        self.end_run(Outcome::Cancelled);
    }

    fn end_run(&mut self, outcome: Outcome) {
        self.finish_with(Report::Ended(outcome));
    }

    fn finish_with(&mut self, report: Report) {
        match std::mem::replace(&mut self.phase, Phase::Over) {
            Phase::Calling(_) | Phase::Summarising(_) => self.effects.push_back(Effect::AbortModel),
            Phase::Tools if self.has_running_tools() => self.effects.push_back(Effect::StopTools),
            Phase::New | Phase::Waiting(_) | Phase::Tools | Phase::Over => {}
        }
        self.push_report(report);
        self.effects.push_back(Effect::End);
    }

    /// Sub-agents at the same time may together use up what one alone may not: then all of them stop.
    fn handle_child_usage(&mut self, usage: Usage) {
        let is_sub = usage.child.is_some();
        self.add_usage(usage);
        let exceeded_budget =
            budget::exceeded_budget(self.context.settings.budget, self.setup.spent).filter(|_| is_sub);
        if let Some(message) = exceeded_budget {
            self.end_run(Outcome::failed("budget", message));
        }
    }

    fn add_usage(&mut self, usage: Usage) {
        self.setup.spent.add_usage(&usage);
        self.push_report(Report::UsageAdded(usage));
    }

    fn push_report(&mut self, report: Report) {
        self.effects.push_back(Effect::Report(report));
    }

    fn push_notice(&mut self, severity: Severity, title: impl Into<String>, detail: Option<String>) {
        self.push_report(Report::Noticed(Notice { severity, title: title.into(), detail }));
    }

    /// Takes in what the session will write down for a report. The numbers are this copy's own.
    fn apply_event(&mut self, event: Event) {
        let (seq, run) = (self.context.head.next(), self.context.run);
        self.context.apply(&Entry { seq, at: Timestamp::default(), run, event, meta: None });
    }
}

fn first_user_text_of_turn(messages: &[Arc<Message>]) -> String {
    messages.iter().find(|message| message.role == Role::User).map(|message| message.plain_text()).unwrap_or_default()
}

/// The answer is in the log and only the run's end is missing.
fn is_answered_in_turn(context: &Context) -> bool {
    // A run without a message of its own was to make room, and has made it.
    let nothing_left = context.run_start_index() == context.messages.len() && !context.messages.is_empty();
    let answered = context.messages.last().is_some_and(|last| last.role == Role::Agent);
    context.pending.is_empty() && (answered || nothing_left)
}
