//! The back-end of an active run: started by an order, heard through its reports, stopped when it is over.

use std::sync::Arc;
use std::time::Duration;

use gander_domain::{Context, MachineContext, Order, Report, RunId};
use gander_store::StoreError;
use gander_store::clock::{self, SystemIds};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::commit::After;
use super::task::Live;
use super::{load, lock};
use crate::backend::{Beginning, Stay};

/// Reports in flight from a back-end. Each may hold many deltas.
const REPORTS: usize = 3;

/// Orders in flight to a back-end: far more than one turn can cause.
const ORDERS: usize = 1_024;

/// A cancelled back-end that has not ended after this time is stopped.
const PATIENCE: Duration = Duration::from_secs(5);

/// Reports taken in one go before what they caused is written.
const REPORTS_AT_ONCE: usize = 64;

/// The back-end of the active run, if there is one, and the conversation it is shown.
pub(super) struct Stays {
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
pub(super) enum Heard {
    /// These, about this run.
    Reports(RunId, Vec<Report>),
    /// It is gone.
    Silence(Running),
}

impl Stays {
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
    pub(super) async fn report(&mut self) -> Heard {
        let Some(running) = &mut self.running else { return std::future::pending().await };
        let mut reports = Vec::new();
        if running.reports.recv_many(&mut reports, REPORTS_AT_ONCE).await > 0 {
            return Heard::Reports(running.run, reports);
        }
        self.deadline = None;
        match self.running.take() {
            Some(running) => Heard::Silence(running),
            None => std::future::pending().await,
        }
    }

    /// The reports that are there already.
    pub(super) fn ready(&mut self) -> Option<Heard> {
        let running = self.running.as_mut()?;
        let reports: Vec<Report> =
            std::iter::from_fn(|| running.reports.try_recv().ok()).take(REPORTS_AT_ONCE).collect();
        (!reports.is_empty()).then_some(Heard::Reports(running.run, reports))
    }

    fn hear(&mut self, report: &Report) {
        if let Some(running) = &mut self.running {
            running.leaving |= matches!(report, Report::Parked | Report::Ended(_));
        }
    }

    /// When a cancelled back-end has had its time.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// Stops the back-end.
    pub(super) fn abandon(&mut self) -> Option<Running> {
        self.deadline = None;
        self.running.take()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.work.abort();
    }
}

impl Live {
    /// Sends an order. Beginning and resuming start a back-end, the rest goes to the one that runs.
    pub(super) async fn dispatch(&mut self, order: Order) -> Result<(), StoreError> {
        match order {
            Order::Begin { run } => self.start(run, Beginning::Fresh, order).await,
            Order::Resume { run } => self.start(run, Beginning::Resumed, order).await,
            Order::Cancel => {
                self.stays.deadline = Some(Instant::now() + PATIENCE);
                self.pass_on(Order::Cancel);
                Ok(())
            }
            order @ (Order::RunTool { .. }
            | Order::Answered { .. }
            | Order::Steer { .. }
            | Order::Configured { .. }) => {
                self.pass_on(order);
                Ok(())
            }
        }
    }

    /// A back-end that is gone, or deaf for a thousand orders, says so by its silence.
    fn pass_on(&mut self, order: Order) {
        let Some(running) = &self.stays.running else { return };
        if let Err(mpsc::error::TrySendError::Full(_)) = running.orders.try_send(order) {
            running.work.abort();
        }
    }

    async fn start(&mut self, run: RunId, beginning: Beginning, first: Order) -> Result<(), StoreError> {
        if !self.is_wanted(run) {
            return Ok(());
        }
        let context = self.context().await?;
        let lent = lock(&self.hub.lent).get(&run).cloned().unwrap_or_default();
        let (orders, orders_in) = mpsc::channel(ORDERS);
        let (reports_out, reports) = mpsc::channel(REPORTS);
        let stop = CancellationToken::new();
        let stay = Stay {
            run,
            view: self.machine.view().clone(),
            context,
            beginning,
            lent,
            orders: orders_in,
            reports: reports_out,
            stop: stop.clone(),
        };
        let backend = Arc::clone(&self.hub.backend);
        let work = tokio::spawn(async move { backend.drive(stay).await });
        self.stays.deadline = None;
        self.stays.running = Some(Running { run, orders, reports, leaving: false, work, _stop: stop.drop_guard() });
        self.pass_on(first);
        Ok(())
    }

    /// While its order waited for a commit, a run may have been cancelled, or ended and followed by another. Nobody else
    /// would tell a cancelled one: the cancel found no back-end to go to.
    fn is_wanted(&mut self, run: RunId) -> bool {
        let Some(active) = self.machine.view().run.as_ref().filter(|active| active.id == run) else { return false };
        let cancelled = active.cancelling;
        if cancelled {
            self.stays.deadline = None;
            self.machine.handle_backend_exit(
                &mut MachineContext { at: clock::now(), ids: &mut SystemIds },
                run,
                "cancelled",
            );
        }
        !cancelled
    }

    /// The conversation, with what is not stored yet. It is read from the log once, then kept up to date.
    async fn context(&mut self) -> Result<Context, StoreError> {
        if let Some(context) = &self.stays.context {
            return Ok(context.clone());
        }
        let after = self.commits.land().await?;
        let mut context = load::context(&*self.hub.store, self.machine.view(), self.commits.stored()).await?;
        self.commits.unsent().iter().for_each(|entry| context.apply(entry));
        self.stays.context = Some(context.clone());
        Box::pin(self.after_commit(after)).await?;
        Ok(context)
    }

    /// What waited for a commit may go now.
    pub(super) async fn after_commit(&mut self, mut after: After) -> Result<(), StoreError> {
        after.acknowledge();
        for run in after.ended.drain(..) {
            lock(&self.hub.lent).remove(&run);
        }
        for order in after.orders.drain(..) {
            self.dispatch(order).await?;
        }
        Ok(())
    }

    pub(super) async fn reported(&mut self, heard: Heard) {
        let (at, mut ids) = (clock::now(), SystemIds);
        match heard {
            Heard::Reports(run, reports) => {
                for report in reports {
                    self.stays.hear(&report);
                    self.machine.handle_report(&mut MachineContext { at, ids: &mut ids }, run, report);
                }
            }
            // The next one may have been ordered already and wait for a commit.
            Heard::Silence(running) if running.leaving => {}
            Heard::Silence(mut running) => {
                let reason = last_words(&mut running.work).await;
                self.machine.handle_backend_exit(&mut MachineContext { at, ids: &mut ids }, running.run, &reason);
            }
        }
    }
}

/// Waits until then; for ever if there is no such time.
pub(super) async fn overdue(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

async fn last_words(work: &mut JoinHandle<()>) -> String {
    match work.await {
        Err(error) if error.is_panic() => {
            tracing::error!("back-end panicked");
            "the agent failed inside, see the server's log".to_owned()
        }
        Ok(()) | Err(_) => "the agent stopped without an end".to_owned(),
    }
}
