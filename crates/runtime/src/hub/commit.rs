//! What a session has written and is being stored: one append at a time, whatever gathers meanwhile is the next.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use gander_domain::{
    Accepted, Context, Effect, Entry, Event, Order, OrderTiming, RunId, Seq, Session, SessionId, SessionView,
};
use gander_store::{Alias, Append, Committed, Durability, Epoch, Patience, Snapshot, Store, StoreError};

use super::task::Reply;
use super::{Ack, HubError};

/// Reports wait in their channel when so many entries wait for the store.
const MOST_WAITING: usize = 128;

/// A snapshot of the view is kept every so many entries.
const SNAPSHOT_EVERY: u64 = 1_000;

/// The entries of a session on their way into the store.
pub(super) struct Commits {
    session: SessionId,
    epoch: Epoch,
    stored: Seq,
    snapshot_at: Seq,
    /// The names of a session that is not stored yet.
    newborn: Option<Vec<Alias>>,
    waiting: Waiting,
    flight: Option<Flight>,
}

/// What goes with the next append.
struct Waiting {
    entries: Vec<Entry>,
    sync: Durability,
    after: After,
}

/// What may happen once an append is stored.
#[derive(Default)]
pub(super) struct After {
    pub(super) orders: Vec<Order>,
    pub(super) ended: Vec<RunId>,
    acks: Vec<(Accepted, Reply<Accepted>)>,
}

struct Flight {
    append: Pin<Box<dyn Future<Output = Result<Committed, StoreError>> + Send>>,
    after: After,
}

impl Commits {
    pub(super) fn new(session: SessionId, epoch: Epoch, stored: Seq) -> Self {
        let waiting = Waiting::default();
        Self { session, epoch, stored, snapshot_at: stored, newborn: None, waiting, flight: None }
    }

    /// Of a session whose first append makes it, with these names.
    pub(super) fn newborn(session: SessionId, aliases: Vec<Alias>) -> Self {
        Self { newborn: Some(aliases), ..Self::new(session, Epoch::FIRST, Seq::ZERO) }
    }

    pub(super) fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Takes the machine's effects; gives the orders that need not wait for a commit.
    pub(super) fn take(&mut self, machine: &mut Session, context: &mut Option<Context>) -> Vec<Order> {
        let mut at_once = Vec::new();
        while let Some(effect) = machine.poll_effect() {
            match effect {
                Effect::Append(entry) => {
                    if let Some(context) = context {
                        context.apply(&entry);
                    }
                    self.waiting.push(entry);
                }
                Effect::Order { when: OrderTiming::Immediately, order } => at_once.push(order),
                Effect::Order { when, order } => self.waiting.order(when, order),
            }
        }
        at_once
    }

    /// Tells the caller once everything that was taken in so far is stored.
    pub(super) fn acknowledge(&mut self, ack: Ack, accepted: Accepted, reply: Reply<Accepted>) {
        if ack == Ack::Synced {
            self.waiting.sync = Durability::Barrier;
        }
        self.waiting.after.acks.push((accepted, reply));
    }

    /// Begins to store what waits, unless something is on its way already.
    pub(super) fn start(&mut self, store: &Arc<dyn Store>, view: &SessionView) {
        if self.flight.is_some() || self.waiting.is_empty() {
            return;
        }
        let Waiting { entries, sync, after } = std::mem::take(&mut self.waiting);
        let mut append = Append::new(self.session, self.epoch, entries, sync);
        append.snapshot = self.snapshot(view, &append.entries);
        if after.acks.is_empty() {
            append.patience = Patience::Long;
        }
        let (store, newborn) = (Arc::clone(store), self.newborn.take());
        let append = async move {
            match newborn {
                Some(aliases) => store.create(append, aliases).await,
                None => store.append(append).await,
            }
        };
        self.flight = Some(Flight { append: Box::pin(append), after });
    }

    pub(super) fn in_flight(&self) -> bool {
        self.flight.is_some()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.flight.is_none() && self.waiting.is_empty()
    }

    pub(super) fn has_room(&self) -> bool {
        self.waiting.entries.len() < MOST_WAITING
    }

    /// Waits for the append on its way. Safe to drop: it stays on its way.
    pub(super) async fn landed(&mut self) -> Result<After, StoreError> {
        let Some(flight) = &mut self.flight else { return std::future::pending().await };
        let result = flight.append.as_mut().await;
        let after = self.flight.take().map(|flight| flight.after).unwrap_or_default();
        match result {
            Ok(committed) => {
                self.stored = committed.head;
                Ok(after)
            }
            Err(error) => {
                after.refuse(&error);
                Err(error)
            }
        }
    }

    /// Waits until nothing is on its way; gives what the last append was waited for with.
    pub(super) async fn land(&mut self) -> Result<After, StoreError> {
        if self.in_flight() { self.landed().await } else { Ok(After::default()) }
    }

    /// The last stored place.
    pub(super) fn stored(&self) -> Seq {
        self.stored
    }

    /// Entries that are not on their way yet.
    pub(super) fn unsent(&self) -> &[Entry] {
        &self.waiting.entries
    }

    fn snapshot(&mut self, view: &SessionView, entries: &[Entry]) -> Option<Snapshot> {
        let last = entries.last()?.seq;
        if last.0 - self.snapshot_at.0 < SNAPSHOT_EVERY || last != view.head {
            return None;
        }
        self.snapshot_at = last;
        let body = serde_json::to_vec(view).ok()?;
        Some(Snapshot { version: SessionView::VERSION, seq: last, body })
    }
}

impl Waiting {
    fn push(&mut self, entry: Entry) {
        if let (Event::RunEnded { .. }, Some(run)) = (&entry.event, entry.run) {
            // The end of a run is what a prompt's answer acknowledges.
            self.sync = Durability::Barrier;
            self.after.ended.push(run);
        }
        self.entries.push(entry);
    }

    fn order(&mut self, when: OrderTiming, order: Order) {
        if when == OrderTiming::AfterSync {
            self.sync = Durability::Barrier;
        }
        self.after.orders.push(order);
    }

    fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.after.acks.is_empty() && self.after.orders.is_empty()
    }
}

impl Default for Waiting {
    fn default() -> Self {
        Self { entries: Vec::new(), sync: Durability::Relaxed, after: After::default() }
    }
}

impl After {
    /// A caller that has left does not mind.
    pub(super) fn acknowledge(&mut self) {
        for (accepted, reply) in self.acks.drain(..) {
            drop(reply.send(Ok(accepted)));
        }
    }

    fn refuse(self, error: &StoreError) {
        for (_, reply) in self.acks {
            drop(reply.send(Err(HubError::Store(error.clone()))));
        }
    }
}
