//! The back-end of an active run: started by an order, heard through its reports, stopped when it is over.

use std::sync::Arc;
use std::time::Duration;

use gander_domain::{Context, MachineContext, Order, Report, RunId, SessionView};
use gander_store::StoreError;
use gander_store::clock::{self, SystemIds};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::cluster::empty_folder_notice;
use super::next_append::OnCommitted;
use super::session_task::SessionTaskState;
use super::{lock_hub_mutex, rebuild};
use crate::backend::{BackendRun, RunStart};

/// Reports in flight from a back-end. Each may hold many deltas.
const REPORT_CAPACITY: usize = 3;

/// Orders in flight to a back-end: far more than one turn can cause.
const ORDER_CAPACITY: usize = 1_024;

/// A cancelled back-end that has not ended after this time is stopped.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(5);

/// Reports taken in one go before what they caused is written.
const MAX_REPORTS_PER_STEP: usize = 64;

/// The back-end of the active run, if there is one, and the conversation it is shown.
pub(super) struct ActiveBackend {
    context: Option<Context>,
    running: Option<Running>,
    deadline: Option<Instant>,
}

/// A back-end at work. Dropping it stops it.
pub(super) struct Running {
    pub(super) run: RunId,
    orders: mpsc::Sender<Order>,
    reports: mpsc::Receiver<Report>,
    /// It said that it leaves: that it is gone then is no news.
    leaving: bool,
    work: JoinHandle<()>,
    _stop: DropGuard,
}

/// What came from a back-end.
pub(super) enum BackendEvent {
    /// These, about this run.
    Reports(RunId, Vec<Report>),
    /// It is gone.
    Gone(Running),
}

impl ActiveBackend {
    pub(super) fn new(context: Option<Context>) -> Self {
        Self { context, running: None, deadline: None }
    }

    pub(super) fn context_mut(&mut self) -> &mut Option<Context> {
        &mut self.context
    }

    pub(super) fn into_context(self) -> Option<Context> {
        self.context
    }

    /// The next reports, as many as are there. Safe to drop at any time.
    pub(super) async fn next_event(&mut self) -> BackendEvent {
        let Some(running) = &mut self.running else { return std::future::pending().await };
        let mut reports = Vec::new();
        if running.reports.recv_many(&mut reports, MAX_REPORTS_PER_STEP).await > 0 {
            return BackendEvent::Reports(running.run, reports);
        }
        self.deadline = None;
        match self.running.take() {
            Some(running) => BackendEvent::Gone(running),
            None => std::future::pending().await,
        }
    }

    /// The reports that are there already.
    pub(super) fn ready_event(&mut self) -> Option<BackendEvent> {
        let running = self.running.as_mut()?;
        let reports: Vec<Report> =
            std::iter::from_fn(|| running.reports.try_recv().ok()).take(MAX_REPORTS_PER_STEP).collect();
        (!reports.is_empty()).then_some(BackendEvent::Reports(running.run, reports))
    }

    fn note_leaving(&mut self, report: &Report) {
        if let Some(running) = &mut self.running {
            running.leaving |= matches!(report, Report::Parked | Report::Ended(_));
        }
    }

    /// When a cancelled back-end has had its time.
    pub(super) fn cancel_deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// Stops the back-end.
    pub(super) fn stop(&mut self) -> Option<Running> {
        self.deadline = None;
        self.running.take()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.work.abort();
    }
}

impl SessionTaskState {
    /// Sends an order. Beginning and resuming start a back-end, the rest goes to the one that runs.
    pub(super) async fn dispatch_order(&mut self, order: Order) -> Result<(), StoreError> {
        match order {
            Order::Begin { run } => self.start_backend(run, RunStart::Fresh, order).await,
            Order::Resume { run } => self.start_backend(run, RunStart::Resumed, order).await,
            Order::Cancel => {
                self.active_backend.deadline = Some(Instant::now() + CANCEL_TIMEOUT);
                self.forward_order(Order::Cancel);
                Ok(())
            }
            order @ (Order::RunTool { .. }
            | Order::Answered { .. }
            | Order::Steer { .. }
            | Order::Configured { .. }) => {
                self.forward_order(order);
                Ok(())
            }
        }
    }

    /// A back-end that is gone, or deaf for a thousand orders, says so by its silence.
    fn forward_order(&mut self, order: Order) {
        let Some(running) = &self.active_backend.running else { return };
        if let Err(mpsc::error::TrySendError::Full(_)) = running.orders.try_send(order) {
            running.work.abort();
        }
    }

    async fn start_backend(&mut self, run: RunId, start: RunStart, first: Order) -> Result<(), StoreError> {
        if !self.is_still_active(run) {
            return Ok(());
        }
        let context = self.load_context().await?;
        let (view, context) = self.move_private_folder(run, start, context);
        let client_resources = lock_hub_mutex(&self.hub.client_resources).get(&run).cloned().unwrap_or_default();
        let (orders, orders_in) = mpsc::channel(ORDER_CAPACITY);
        let (reports_out, reports) = mpsc::channel(REPORT_CAPACITY);
        let stop = CancellationToken::new();
        let backend_run = BackendRun {
            run,
            view,
            context,
            start,
            client_resources,
            orders: orders_in,
            reports: reports_out,
            stop: stop.clone(),
        };
        let backend = Arc::clone(&self.hub.backend);
        let work = tokio::spawn(async move { backend.drive(backend_run).await });
        self.active_backend.deadline = None;
        self.active_backend.running =
            Some(Running { run, orders, reports, leaving: false, work, _stop: stop.drop_guard() });
        self.forward_order(first);
        Ok(())
    }

    /// A private folder is on the disk of the node that runs the session. The log keeps the name that it had first.
    fn move_private_folder(&mut self, run: RunId, start: RunStart, mut context: Context) -> (SessionView, Context) {
        let (mut view, member) = (self.machine.view().clone(), self.hub.cluster.as_ref());
        let Some(folder) = member.and_then(|member| member.private_folder(&view)) else {
            return (view, context);
        };
        if folder.is_new && (start == RunStart::Resumed || !view.ended.is_empty()) {
            let mut machine = MachineContext { at: clock::current_time(), ids: &mut SystemIds };
            self.machine.handle_report(&mut machine, run, Report::Noticed(empty_folder_notice()));
        }
        view.workspace.clone_from(&folder.path);
        context.workspace = folder.path;
        (view, context)
    }

    /// While its order waited for a commit, a run may have been cancelled, or ended and followed by another. Nobody else
    /// would tell a cancelled one: the cancel found no back-end to go to.
    fn is_still_active(&mut self, run: RunId) -> bool {
        let Some(active) = self.machine.view().run.as_ref().filter(|active| active.id == run) else { return false };
        let cancelled = active.cancelling;
        if cancelled {
            self.active_backend.deadline = None;
            self.machine.handle_backend_exit(
                &mut MachineContext { at: clock::current_time(), ids: &mut SystemIds },
                run,
                "cancelled",
            );
        }
        !cancelled
    }

    /// The conversation, with what is not stored yet. It is read from the log once, then kept up to date.
    async fn load_context(&mut self) -> Result<Context, StoreError> {
        if let Some(context) = &self.active_backend.context {
            return Ok(context.clone());
        }
        let after = self.commit_queue.finish_append().await?;
        let mut context =
            rebuild::rebuild_context(&*self.hub.store, self.machine.view(), self.commit_queue.stored_head()).await?;
        self.commit_queue.unsent_entries().iter().for_each(|entry| context.apply(entry));
        self.active_backend.context = Some(context.clone());
        Box::pin(self.on_committed(after)).await?;
        Ok(context)
    }

    /// What waited for a commit may go now.
    pub(super) async fn on_committed(&mut self, mut after: OnCommitted) -> Result<(), StoreError> {
        after.acknowledge_all();
        for run in after.ended.drain(..) {
            lock_hub_mutex(&self.hub.client_resources).remove(&run);
            (self.hub.on_run_ended)(self.machine.view(), run);
        }
        for order in after.orders.drain(..) {
            self.dispatch_order(order).await?;
        }
        Ok(())
    }

    pub(super) async fn handle_backend_event(&mut self, heard: BackendEvent) {
        let (at, mut ids) = (clock::current_time(), SystemIds);
        match heard {
            BackendEvent::Reports(run, reports) => {
                for report in reports {
                    self.active_backend.note_leaving(&report);
                    self.machine.handle_report(&mut MachineContext { at, ids: &mut ids }, run, report);
                }
            }
            // The next one may have been ordered already and wait for a commit.
            BackendEvent::Gone(running) if running.leaving => {}
            BackendEvent::Gone(mut running) => {
                let reason = active_backend_death_reason(&mut running.work).await;
                self.machine.handle_backend_exit(&mut MachineContext { at, ids: &mut ids }, running.run, &reason);
            }
        }
    }
}

/// Waits until then; for ever if there is no such time.
pub(super) async fn active_backend_wait_until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

async fn active_backend_death_reason(work: &mut JoinHandle<()>) -> String {
    match work.await {
        Err(error) if error.is_panic() => {
            tracing::error!("back-end panicked");
            "the agent failed inside, see the server's log".to_owned()
        }
        Ok(()) | Err(_) => "the agent stopped without an end".to_owned(),
    }
}
