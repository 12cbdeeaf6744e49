//! The back-end that runs a handler.

use std::fmt;
use std::ops::ControlFlow;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::future::BoxFuture;
use gander_domain::{Context, Order, Outcome, Report, Role, RunId, Seq, SessionView, SlashCommand};
use gander_runtime::backend::{Backend, BackendRun, RunStart};
use gander_services::artifacts::Artifacts;
use gander_store::{DeltaForm, Limit, Store, StoreError, read_all};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::journal::Journal;
use super::run_channel::{RunChannel, RunChannelParts};
use super::{
    CommandInput, HandlerDurability, HandlerError, PromptRequest, PromptResult, SessionInfo, UpdateError, UpdateSink,
};

/// How long a handler may tidy up after a cancel. Less than the session waits for a cancelled back-end.
const CANCEL_GRACE: Duration = Duration::from_secs(4);

/// A handler and how it is run.
#[derive(Clone)]
pub struct PromptHandler {
    call: Arc<dyn Fn(PromptRequest, UpdateSink) -> BoxFuture<'static, PromptResult> + Send + Sync>,
    durability: HandlerDurability,
}

impl PromptHandler {
    /// A function that is called once per prompt, as [`Agent::on_prompt`](crate::Agent::on_prompt) has it.
    pub fn in_memory<H, F>(handler: H) -> Self
    where
        H: Fn(PromptRequest, UpdateSink) -> F + Send + Sync + 'static,
        F: Future<Output = PromptResult> + Send + 'static,
    {
        Self::new(handler, HandlerDurability::InMemory)
    }

    /// A function that is called again after an answer and a restart, as
    /// [`Agent::on_durable_prompt`](crate::Agent::on_durable_prompt) has it.
    pub fn durable<H, F>(handler: H) -> Self
    where
        H: Fn(PromptRequest, UpdateSink) -> F + Send + Sync + 'static,
        F: Future<Output = PromptResult> + Send + 'static,
    {
        Self::new(handler, HandlerDurability::Durable)
    }

    /// The back-end that runs it, for embedders who describe their agents themselves
    /// ([`AppBuilder::with_agents`](crate::AppBuilder::with_agents)).
    pub fn into_backend(self, store: &Arc<dyn Store>) -> Arc<dyn Backend> {
        Arc::new(HandlerBackend { handler: self, commands: Vec::new(), store: Arc::clone(store) })
    }

    fn new<H, F>(handler: H, durability: HandlerDurability) -> Self
    where
        H: Fn(PromptRequest, UpdateSink) -> F + Send + Sync + 'static,
        F: Future<Output = PromptResult> + Send + 'static,
    {
        Self { call: Arc::new(move |request, sink| Box::pin(handler(request, sink))), durability }
    }
}

impl fmt::Debug for PromptHandler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PromptHandler").field("durability", &self.durability).finish_non_exhaustive()
    }
}

/// Runs a handler, once per prompt.
pub(crate) struct HandlerBackend {
    pub(crate) handler: PromptHandler,
    pub(crate) commands: Vec<SlashCommand>,
    pub(crate) store: Arc<dyn Store>,
}

#[async_trait]
impl Backend for HandlerBackend {
    async fn drive(&self, backend_run: BackendRun) {
        let BackendRun { run, view, context, start, mut orders, reports, stop, .. } = backend_run;
        if start == RunStart::Resumed && self.handler.durability == HandlerDurability::InMemory {
            let message = "the server stopped while the agent was at work, and the agent cannot go on from there";
            return tell_last_of_backend(&reports, Report::Ended(Outcome::failed("interrupted", message))).await;
        }
        let cancel = CancellationToken::new();
        let (request, channel) = match self.prepare(run, &view, context, reports.clone(), &cancel).await {
            Ok(prepared) => prepared,
            Err(error) => {
                tracing::error!(%error, "a session cannot be read");
                return tell_last_of_backend(
                    &reports,
                    Report::Ended(Outcome::failed("store", "the session cannot be read")),
                )
                .await;
            }
        };
        drop(reports);
        let last = tokio::select! {
            biased;
            () = stop.cancelled() => return,
            last = self.run_handler(request, &channel, &mut orders, &cancel) => last,
        };
        if let Some(reports) = channel.close() {
            tell_last_of_backend(&reports, last).await;
        }
    }

    async fn list_slash_commands(&self) -> Vec<SlashCommand> {
        self.commands.clone()
    }
}

impl HandlerBackend {
    async fn prepare(
        &self,
        run: RunId,
        view: &SessionView,
        mut context: Context,
        reports: mpsc::Sender<Report>,
        cancel: &CancellationToken,
    ) -> Result<(PromptRequest, Arc<RunChannel>), StoreError> {
        let own = context.messages.split_off(context.run_start_index());
        let prompt = own.into_iter().find(|message| message.role == Role::User);
        let parts = prompt.map(|message| message.parts.clone()).unwrap_or_default();
        let journal = match self.handler.durability {
            HandlerDurability::InMemory => Journal::default(),
            HandlerDurability::Durable => self.read_journal(run, view).await?,
        };
        let meta = self.read_session_meta(view).await?;
        let request = PromptRequest {
            run,
            session: SessionInfo::new(view, meta.as_ref()),
            command: CommandInput::in_prompt(&parts, &self.commands),
            parts,
            history: context.messages,
            meta: view.run.as_ref().and_then(|run| run.meta.clone()),
            cancel: cancel.clone(),
        };
        let (artifacts, cancel) = (Artifacts::new(Arc::clone(&self.store)), cancel.clone());
        let (session, durability) = (view.session, self.handler.durability);
        let parts = RunChannelParts { session, durability, artifacts, reports, journal, cancel };
        Ok((request, Arc::new(RunChannel::new(parts))))
    }

    /// A back-end that goes on is started after what it goes on from was committed: the log is whole.
    async fn read_journal(&self, run: RunId, view: &SessionView) -> Result<Journal, StoreError> {
        match self.store.head(view.session).await {
            Ok(_) => Ok(Journal::of_run(run, &read_all(&*self.store, view.session, DeltaForm::Joined).await?)),
            // A session that begins with this prompt is not stored yet: nothing was done before.
            Err(StoreError::NotFound(_)) => Ok(Journal::default()),
            Err(error) => Err(error),
        }
    }

    /// What the client said of the session when it began: with its first entry.
    async fn read_session_meta(&self, view: &SessionView) -> Result<Option<Value>, StoreError> {
        let limit = Limit { entries: 1, ..Limit::default() };
        match self.store.read(view.session, Seq::ZERO, limit, DeltaForm::Joined).await {
            Ok(entries) => Ok(entries.into_iter().next().and_then(|first| first.meta).map(|meta| *meta)),
            Err(StoreError::NotFound(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Runs the handler until it ends, parks, or has had its time after a cancel.
    async fn run_handler(
        &self,
        request: PromptRequest,
        channel: &Arc<RunChannel>,
        orders: &mut mpsc::Receiver<Order>,
        cancel: &CancellationToken,
    ) -> Report {
        let mut handled = pin!((self.handler.call)(request, UpdateSink { run: Arc::clone(channel) }));
        let mut deadline = None;
        loop {
            tokio::select! {
                biased;
                // A session that is gone gives no more orders: its token says so.
                Some(order) = orders.recv() => if handle_backend_order(order, channel).is_break() {
                    cancel.cancel();
                    deadline.get_or_insert_with(|| Instant::now() + CANCEL_GRACE);
                },
                () = handler_backend_wait_until(deadline) => return Report::Ended(Outcome::Cancelled),
                () = channel.wait_until_parked() => return Report::Parked,
                result = &mut handled => return Report::Ended(handler_backend_outcome(result, cancel)),
            }
        }
    }
}

/// Takes in an order; one to cancel ends the run.
fn handle_backend_order(order: Order, channel: &RunChannel) -> ControlFlow<()> {
    match order {
        Order::Cancel => return ControlFlow::Break(()),
        Order::Answered { question, answer } => channel.handle_answer(question, answer.reply),
        Order::RunTool { call } => channel.handle_start(call),
        // What a person says meanwhile is in the history of the next prompt.
        Order::Begin { .. } | Order::Resume { .. } | Order::Steer { .. } | Order::Configured { .. } => {}
    }
    ControlFlow::Continue(())
}

fn handler_backend_outcome(result: PromptResult, cancel: &CancellationToken) -> Outcome {
    match result {
        _ if cancel.is_cancelled() => Outcome::Cancelled,
        Ok(stop) => Outcome::Completed { stop },
        Err(error) if error == HandlerError::from(UpdateError::Diverged) => Outcome::failed("handler", error.message()),
        Err(error) => Outcome::failed(error.reason(), error.message()),
    }
}

/// Nobody hears it only if the session is gone.
async fn tell_last_of_backend(reports: &mpsc::Sender<Report>, report: Report) {
    drop(reports.send(report).await);
}

async fn handler_backend_wait_until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
