//! The driver of one run: does what the [`Turn`] says and tells it what happened.

mod mode_prompt;
mod model_call;
mod network_retry;
mod orders;
mod pending_questions;
mod protected_files;
mod session_tools;
mod tool_tasks;

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use gander_domain::{Context, IdGenerator, Order, QuestionId, Report, Timestamp};
use gander_mcp::{ListenGuard, RunListener, ServerEvent, Servers};
use gander_models::Model;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;
use tokio::time::Sleep;
use tokio_util::sync::CancellationToken;

use crate::turn::{Effect, Input, Turn, TurnSetup};
use model_call::ModelCall;
use pending_questions::{NewQuestion, PendingQuestions};
use tool_tasks::ToolTasks;

pub use mode_prompt::{ModePrompt, ModeSetup};
pub use orders::Orders;

pub use session_tools::{GrantStore, MemoryGrantStore, SessionTools, ToolExecutor};

/// How much servers may say before they have to wait for the driver.
const EVENTS_CAPACITY: usize = 64;

/// What a driver does the work of one run with. The turn itself has its [`TurnSetup`].
pub struct RunDeps {
    /// Who answers.
    pub model: Arc<dyn Model>,
    /// Judges and runs calls.
    pub executor: Arc<dyn ToolExecutor>,
    /// The session's MCP servers, which have something to say by themselves.
    pub servers: Arc<Servers>,
    /// Where ids come from.
    pub ids: Box<dyn IdGenerator + Send>,
    /// Makes prompt and tools anew when the session's mode changes under way; absent: they stay.
    pub mode_prompt: Option<ModePrompt>,
}

/// Drives the context's active run from [`Order::Begin`] or [`Order::Resume`] until it ended or parked.
///
/// Orders are heard at any time, also while nobody takes the reports; the model is read and tools are heard only
/// as fast as the reports are taken. When `cancel` fires it leaves at once and says nothing; likewise when nobody
/// hears its reports. Dropping it stops the model call and kills the tools.
pub async fn drive_turn(
    deps: RunDeps,
    setup: TurnSetup,
    context: Context,
    orders: impl Into<Orders>,
    reports: mpsc::Sender<Report>,
    cancel: CancellationToken,
) {
    let mut orders = orders.into();
    let mut driver = TurnDriver::new(deps, setup, context, reports);
    while let Some(input) = driver.next_input(&mut orders, &cancel).await {
        driver.handle_input(input);
    }
    driver.finish_turn(&cancel).await;
}

struct TurnDriver {
    turn: Turn,
    deps: RunDeps,
    model_call: ModelCall,
    tasks: ToolTasks,
    pause: Option<Pin<Box<Sleep>>>,
    reports: mpsc::Sender<Report>,
    /// Reports that nobody has taken yet. While there are any, nothing is read that could make more.
    outbox: VecDeque<Report>,
    questions: PendingQuestions,
    events: mpsc::Receiver<ServerEvent>,
    /// The session's servers speak to this run.
    _attendance: ListenGuard,
    over: bool,
}

impl TurnDriver {
    fn new(deps: RunDeps, mut setup: TurnSetup, context: Context, reports: mpsc::Sender<Report>) -> Self {
        let (tell, events) = mpsc::channel(EVENTS_CAPACITY);
        // Listens first and lists the tools afterwards: whatever changes in between is told as an event.
        let attendance = deps.servers.listen_for_run(RunListener { events: tell, model: deps.model.clone() });
        setup.tools = deps.executor.tools();
        Self {
            turn: Turn::new(setup, context),
            model_call: ModelCall::Idle,
            tasks: ToolTasks::new(deps.executor.clone()),
            pause: None,
            deps,
            reports,
            outbox: VecDeque::new(),
            questions: PendingQuestions::default(),
            events,
            _attendance: attendance,
            over: false,
        }
    }

    /// The next thing that happens; `None` if there is nothing more to do.
    async fn next_input(&mut self, orders: &mut Orders, cancel: &CancellationToken) -> Option<Input> {
        while !self.over {
            let free = self.outbox.is_empty();
            tokio::select! {
                biased;
                () = cancel.cancelled() => return None,
                order = orders.next_order() => return order.map(|order| handle_driver_order(&mut self.questions, &self.deps, order)),
                permit = self.reports.reserve(), if !free => permit.ok()?.send(self.outbox.pop_front()?),
                input = self.tasks.next_input(), if free => return Some(input),
                input = self.model_call.next_input(), if free => return Some(input),
                () = wait_for_driver_pause(&mut self.pause) => return Some(Input::Waited),
                question = self.questions.next_abandoned() => return Some(Input::Abandoned(question)),
                Some(events) = self.events.recv(), if free => return Some(handle_driver_server_event(&mut self.questions, &mut self.deps, events)),
            }
        }
        None
    }

    fn handle_input(&mut self, input: Input) {
        self.turn.handle_input(driver_current_time(), input, &mut *self.deps.ids);
        while let Some(effect) = self.turn.poll_effect() {
            self.perform_effect(effect);
        }
    }

    fn perform_effect(&mut self, effect: Effect) {
        match effect {
            Effect::CallModel(request) => self.model_call = ModelCall::start(self.deps.model.clone(), request),
            Effect::AbortModel => self.model_call = ModelCall::Idle,
            Effect::RunTool(call) => self.tasks.spawn_call(call),
            Effect::StopTools => self.tasks.stop(),
            Effect::Wait(pause) => self.pause = Some(Box::pin(tokio::time::sleep(pause))),
            Effect::Report(report) => self.send_report(report),
            Effect::End => self.over = true,
        }
    }

    /// At once if there is room and nothing waits before it.
    fn send_report(&mut self, report: Report) {
        if !self.outbox.is_empty() {
            return self.outbox.push_back(report);
        }
        match self.reports.try_send(report) {
            Ok(()) => {}
            Err(TrySendError::Full(report)) => self.outbox.push_back(report),
            Err(TrySendError::Closed(_)) => self.over = true,
        }
    }

    /// Hands over the last reports, then gives stopped tools a moment to end by themselves.
    async fn finish_turn(mut self, cancel: &CancellationToken) {
        while let Some(report) = self.outbox.pop_front() {
            tokio::select! {
                biased;
                () = cancel.cancelled() => return,
                sent = self.reports.send(report) => if sent.is_err() { return },
            }
        }
        tokio::select! {
            biased;
            () = cancel.cancelled() => {}
            () = self.tasks.wait_for_end(Duration::from_secs(5)) => {}
        }
    }
}

async fn wait_for_driver_pause(pause: &mut Option<Pin<Box<Sleep>>>) {
    match pause {
        Some(sleep) => sleep.await,
        None => std::future::pending().await,
    }
    *pause = None;
}

fn handle_driver_order(questions: &mut PendingQuestions, deps: &RunDeps, order: Order) -> Input {
    if let Order::Answered { question, answer } = &order {
        questions.answer_question(*question, answer);
    }
    match (order, &deps.mode_prompt) {
        (Order::Configured { settings }, Some(mode_prompt)) => {
            let ModeSetup { system, tools } = mode_prompt.apply_settings(&settings);
            Input::Refitted { settings, system, tools }
        }
        (order, _) => driver_order_to_input(order),
    }
}

fn handle_driver_server_event(questions: &mut PendingQuestions, deps: &mut RunDeps, events: ServerEvent) -> Input {
    match events {
        ServerEvent::Tools => {
            deps.servers.ask_pending_reviews();
            Input::Tools(deps.executor.tools())
        }
        ServerEvent::Notice(notice) => Input::Noticed(notice),
        ServerEvent::Asked { title, ask, origin, subagent, reply } => {
            let id = QuestionId::make(&mut *deps.ids);
            Input::Held(questions.add_question(NewQuestion { id, title, ask, origin, subagent }, reply))
        }
        ServerEvent::Spent(usage) => Input::Spent(usage),
    }
}

fn driver_order_to_input(order: Order) -> Input {
    match order {
        Order::Begin { .. } | Order::Resume { .. } => Input::Begin,
        Order::RunTool { call } => Input::RunTool(call),
        Order::Answered { question, answer } => Input::Answered(question, answer),
        Order::Steer { message } => Input::Steer(message),
        Order::Configured { settings } => Input::Configured(settings),
        Order::Cancel => Input::Cancel,
    }
}

fn driver_current_time() -> Timestamp {
    let micros = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros());
    Timestamp::from_micros(i64::try_from(micros).unwrap_or(i64::MAX))
}
