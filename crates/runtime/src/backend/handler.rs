//! An agent written as one function, behind the same orders and reports as any other.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use gander_domain::{
    Delta, DeltaKind, Message, MessageId, Order, Outcome, Part, Question, Reply, Report, Role, RunId, SessionView,
    StopReason,
};
use gander_store::clock::SystemIds;
use tokio::sync::mpsc;

use super::{Backend, BackendRun};

/// An agent written as one function.
#[async_trait]
pub trait Handler: Send + Sync + 'static {
    /// Serves one run. After a question was answered it is called again from its beginning: what it said before
    /// is not said twice, and [`Turn::ask`] gives the answer.
    async fn handle(&self, turn: &mut Turn) -> Result<(), Stop>;
}

/// Why a handler does not go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// It waits for an answer.
    Asked,
    /// It cannot go on: a word for programs, a sentence for people.
    Failed(String, String),
    /// Nobody listens any more.
    Gone,
}

/// A back-end that runs a handler.
pub struct HandlerBackend<H>(pub H);

/// One run, as a handler sees it.
pub struct Turn {
    /// Which run.
    pub run: RunId,
    /// The session it belongs to.
    pub view: SessionView,
    prompt: Vec<Part>,
    history: Vec<Arc<Message>>,
    answers: Vec<Reply>,
    /// How many of them were given to the handler.
    given: usize,
    reports: mpsc::Sender<Report>,
}

#[async_trait]
impl<H: Handler> Backend for HandlerBackend<H> {
    async fn drive(&self, backend_run: BackendRun) {
        let (mut turn, mut orders, stop) = Turn::new(backend_run);
        let reports = turn.reports.clone();
        let last = tokio::select! {
            biased;
            () = stop.cancelled() => return,
            () = wait_for_cancel(&mut orders) => Report::Ended(Outcome::Cancelled),
            handled = self.0.handle(&mut turn) => match handled {
                Ok(()) => Report::Ended(Outcome::Completed { stop: StopReason::EndTurn }),
                Err(Stop::Asked) => Report::Parked,
                Err(Stop::Failed(reason, message)) => Report::Ended(Outcome::failed(reason, message)),
                Err(Stop::Gone) => return,
            },
        };
        // Nobody hears it only if the session is gone.
        drop(reports.send(last).await);
    }
}

impl Turn {
    fn new(backend_run: BackendRun) -> (Self, mpsc::Receiver<Order>, tokio_util::sync::CancellationToken) {
        let BackendRun { run, view, mut context, orders, reports, stop, .. } = backend_run;
        let own = context.messages.split_off(context.run_start_index());
        let prompt = own.into_iter().find(|message| message.role == Role::User);
        let answers = context.asked.into_iter().map_while(|asked| asked.answer).map(|answer| answer.reply).collect();
        let turn = Self {
            run,
            view,
            prompt: prompt.map(|message| message.parts.clone()).unwrap_or_default(),
            history: context.messages,
            answers,
            given: 0,
            reports,
        };
        (turn, orders, stop)
    }

    /// What is asked.
    pub fn prompt_parts(&self) -> &[Part] {
        &self.prompt
    }

    /// What was said before, by anybody.
    pub fn earlier_messages(&self) -> &[Arc<Message>] {
        &self.history
    }

    /// Says something: the open message grows.
    pub async fn send_text(&self, text: impl Into<String>) -> Result<(), Stop> {
        self.send_report(Report::Deltas(vec![Delta { growth: DeltaKind::Text, text: text.into() }])).await
    }

    /// Thinks aloud: the open message grows.
    pub async fn send_thought(&self, text: impl Into<String>) -> Result<(), Stop> {
        self.send_report(Report::Deltas(vec![Delta { growth: DeltaKind::Thought, text: text.into() }])).await
    }

    /// Closes the open message, with parts that do not grow.
    pub async fn finish_message(&self, tail: Vec<Part>) -> Result<(), Stop> {
        self.send_report(Report::MessageDone { tail, native: None, interrupted: false }).await
    }

    /// Says a whole message.
    pub async fn send_message(&self, parts: Vec<Part>) -> Result<(), Stop> {
        self.send_report(Report::MessageStarted { message: MessageId::make(&mut SystemIds) }).await?;
        self.finish_message(parts).await
    }

    /// Tells anything else, unless it was told before an answer.
    pub async fn send_report(&self, report: Report) -> Result<(), Stop> {
        if self.given < self.answers.len() {
            return Ok(());
        }
        self.reports.send(report).await.map_err(|_| Stop::Gone)
    }

    /// Asks a person. The answer may come much later: until then the run costs nothing.
    pub async fn ask_question(&mut self, question: Question) -> Result<Reply, Stop> {
        if let Some(reply) = self.answers.get(self.given).cloned() {
            self.given += 1;
            return Ok(reply);
        }
        self.send_report(Report::Asked(question)).await?;
        Err(Stop::Asked)
    }

    /// Waits. A cancelled run does not wait on.
    pub async fn pause_for(&self, time: Duration) {
        if self.given >= self.answers.len() {
            tokio::time::sleep(time).await;
        }
    }
}

/// Waits for the order to stop. A session that is gone gives none: its token says so.
pub(super) async fn wait_for_cancel(orders: &mut mpsc::Receiver<Order>) {
    loop {
        match orders.recv().await {
            Some(Order::Cancel) => return,
            Some(
                Order::Begin { .. }
                | Order::Resume { .. }
                | Order::RunTool { .. }
                | Order::Answered { .. }
                | Order::Steer { .. }
                | Order::Configured { .. },
            ) => {}
            None => return std::future::pending().await,
        }
    }
}
