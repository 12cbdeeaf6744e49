//! What gathers while an append is being stored.

use gander_domain::{Accepted, Entry, Event, Order, OrderTiming, RunId};
use gander_store::{CommandAnswer, Durability, StoreError, is_trickle};

use super::HubError;
use super::session_task::Reply;

/// What goes with the next append.
pub(super) struct NextAppend {
    pub(super) entries: Vec<Entry>,
    pub(super) answers: Vec<CommandAnswer>,
    pub(super) sync: Durability,
    pub(super) after: OnCommitted,
}

/// What may happen once an append is stored.
#[derive(Default)]
pub(super) struct OnCommitted {
    pub(super) orders: Vec<Order>,
    pub(super) ended: Vec<RunId>,
    pub(super) acks: Vec<(Accepted, Reply<Accepted>)>,
}

impl NextAppend {
    pub(super) fn push_entry(&mut self, entry: Entry) {
        if let (Event::RunEnded { .. }, Some(run)) = (&entry.event, entry.run) {
            // The end of a run is what a prompt's answer acknowledges.
            self.sync = Durability::Barrier;
            self.after.ended.push(run);
        }
        self.entries.push(entry);
    }

    pub(super) fn push_order(&mut self, when: OrderTiming, order: Order) {
        if when == OrderTiming::AfterSync {
            self.sync = Durability::Barrier;
        }
        self.after.orders.push(order);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.answers.is_empty() && self.after.is_empty()
    }

    /// True if these are a few deltas, which nobody waits for but readers.
    pub(super) fn is_trickle(&self) -> bool {
        let nobody_waits = self.answers.is_empty() && self.after.is_empty();
        self.sync == Durability::Relaxed && nobody_waits && is_trickle(&self.entries)
    }
}

impl Default for NextAppend {
    fn default() -> Self {
        Self { entries: Vec::new(), answers: Vec::new(), sync: Durability::Relaxed, after: OnCommitted::default() }
    }
}

impl OnCommitted {
    pub(super) fn is_empty(&self) -> bool {
        self.acks.is_empty() && self.orders.is_empty() && self.ended.is_empty()
    }

    /// A caller that has left does not mind.
    pub(super) fn acknowledge_all(&mut self) {
        for (accepted, reply) in self.acks.drain(..) {
            drop(reply.send(Ok(accepted)));
        }
    }

    pub(super) fn refuse_all(self, error: &StoreError) {
        for (_, reply) in self.acks {
            drop(reply.send(Err(HubError::Store(error.clone()))));
        }
    }
}
