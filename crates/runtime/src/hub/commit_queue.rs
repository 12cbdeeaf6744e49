//! What a session has written and is being stored: one append at a time, whatever gathers meanwhile is the next.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use gander_domain::{Accepted, Context, Effect, Entry, Order, OrderTiming, Seq, Session, SessionId, SessionView};
use gander_store::{
    Alias, Append, BusyTimeout, CommandAnswer, CommandId, Committed, Durability, Epoch, Ownership, Snapshot, Store,
    StoreError,
};
use tokio::time::Instant;

use super::Ack;
use super::commit_log::{CommitLog, CommitRecord};
use super::gathering::{CommitClock, Gathering};
use super::next_append::{NextAppend, OnCommitted};
use super::session_task::Reply;

/// Reports wait in their channel when so many entries wait for the store.
const MAX_WAITING_ENTRIES: usize = 128;

/// A snapshot of the view is kept every so many entries.
const SNAPSHOT_EVERY: u64 = 1_000;

/// The entries of a session on their way into the store.
pub(super) struct CommitQueue {
    session: SessionId,
    epoch: Epoch,
    stored: Seq,
    snapshot_at: Seq,
    /// The names of a session that is not stored yet.
    unsaved: Option<UnsavedParts>,
    /// The store says that this node owns the session, or will once what is on its way is stored.
    owned: bool,
    /// Commands of other nodes whose answer was in an append that failed.
    lost_answers: Vec<CommandId>,
    next: NextAppend,
    in_flight: Option<InFlight>,
    gathering: Gathering,
}

/// What the store is told with the first append alone: names, and the label of its nodes.
type UnsavedParts = (Vec<Alias>, Option<String>);

struct InFlight {
    append: Pin<Box<dyn Future<Output = Result<Committed, StoreError>> + Send>>,
    after: OnCommitted,
    /// Commands of other nodes that it answers.
    answered: Vec<CommandId>,
}

impl CommitQueue {
    pub(super) fn new(session: SessionId, epoch: Epoch, stored: Seq, clock: CommitClock) -> Self {
        let next = NextAppend::default();
        Self {
            session,
            epoch,
            stored,
            snapshot_at: stored,
            unsaved: None,
            owned: false,
            lost_answers: Vec::new(),
            next,
            in_flight: None,
            gathering: Gathering::new(clock),
        }
    }

    /// Of a session that was just claimed.
    pub(super) fn for_claimed_session(session: SessionId, epoch: Epoch, stored: Seq, clock: CommitClock) -> Self {
        Self { owned: true, ..Self::new(session, epoch, stored, clock) }
    }

    /// Of a session whose first append makes it, with these names, for nodes of this label.
    pub(super) fn for_new_session(
        session: SessionId,
        aliases: Vec<Alias>,
        pinned_to: Option<String>,
        clock: CommitClock,
    ) -> Self {
        Self { unsaved: Some((aliases, pinned_to)), ..Self::new(session, Epoch::FIRST, Seq::ZERO, clock) }
    }

    pub(super) fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Takes the machine's effects; gives the orders that need not wait for a commit.
    pub(super) fn take_effects(&mut self, machine: &mut Session, context: &mut Option<Context>) -> Vec<Order> {
        let mut at_once = Vec::new();
        while let Some(effect) = machine.poll_effect() {
            match effect {
                Effect::Append(entry) => {
                    if let Some(context) = context {
                        context.apply(&entry);
                    }
                    self.next.push_entry(entry);
                }
                Effect::Order { when: OrderTiming::Immediately, order } => at_once.push(order),
                Effect::Order { when, order } => self.next.push_order(when, order),
            }
        }
        at_once
    }

    /// Tells the caller once everything that was taken in so far is stored.
    pub(super) fn acknowledge_command(&mut self, ack: Ack, accepted: Accepted, reply: Reply<Accepted>) {
        if ack == Ack::Synced {
            self.next.sync = Durability::Barrier;
        }
        self.next.after.acks.push((accepted, reply));
    }

    /// Answers another node's command once everything that was taken in so far is stored, in the same commit.
    pub(super) fn answer_command(&mut self, ack: Ack, answer: CommandAnswer) {
        if ack == Ack::Synced {
            self.next.sync = Durability::Barrier;
        }
        self.next.answers.push(answer);
    }

    /// True if an order waits for a commit: something will run then.
    pub(super) fn has_orders(&self) -> bool {
        let in_flight = self.in_flight.as_ref().is_some_and(|in_flight| !in_flight.after.orders.is_empty());
        in_flight || !self.next.after.orders.is_empty()
    }

    /// True if this node must still say that it gives the session up.
    pub(super) fn is_owned(&self) -> bool {
        self.owned
    }

    /// When what waits is stored together with what other sessions have to store; none if it need not wait, or waits for
    /// the append that is on its way: a moment that is past already would wake the session's task over and over.
    pub(super) fn gathered_until(&self) -> Option<Instant> {
        self.gathering.until().filter(|_| self.in_flight.is_none())
    }

    /// Begins to store what waits, unless something is on its way already or more may be gathered.
    pub(super) fn start_append(
        &mut self,
        store: &Arc<dyn Store>,
        commits: &Arc<CommitLog>,
        view: &SessionView,
        ownership: Ownership,
    ) {
        let gives_up = ownership == Ownership::Release && self.owned;
        if self.in_flight.is_some() || (self.next.is_empty() && !gives_up) || (!gives_up && self.must_gather()) {
            return;
        }
        let NextAppend { entries, answers, sync, after } = std::mem::take(&mut self.next);
        let mut append = Append::new(self.session, self.epoch, entries, sync);
        append.ownership = ownership;
        append.answers = answers;
        self.owned = ownership == Ownership::Keep;
        append.owner = Some(view.owner.clone());
        append.snapshot = self.snapshot_if_due(view, &append.entries);
        if after.acks.is_empty() {
            append.busy_timeout = BusyTimeout::Long;
        }
        let (store, commits, session) = (Arc::clone(store), Arc::clone(commits), self.session);
        let (unsaved, range) = (self.unsaved.take(), queued_entry_range(&append.entries));
        let answered = append.answers.iter().map(|answer| answer.command).collect();
        let append = async move {
            let began = Instant::now();
            let committed = match unsaved {
                Some((aliases, pinned_to)) => store.create(Append { pinned_to, ..append }, aliases).await,
                None => store.append(append).await,
            };
            if let (Ok(_), Some((first, last))) = (&committed, range) {
                commits.push(session, CommitRecord { first, last, sync, took: began.elapsed() });
            }
            committed
        };
        self.in_flight = Some(InFlight { append: Box::pin(append), after, answered });
    }

    pub(super) fn is_in_flight(&self) -> bool {
        self.in_flight.is_some()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.in_flight.is_none() && self.next.is_empty()
    }

    pub(super) fn has_room(&self) -> bool {
        self.next.entries.len() < MAX_WAITING_ENTRIES
    }

    /// Waits for the append on its way. Safe to drop: it stays on its way.
    pub(super) async fn append_done(&mut self) -> Result<OnCommitted, StoreError> {
        let Some(in_flight) = &mut self.in_flight else { return std::future::pending().await };
        let result = in_flight.append.as_mut().await;
        let (after, answered) =
            self.in_flight.take().map(|in_flight| (in_flight.after, in_flight.answered)).unwrap_or_default();
        match result {
            Ok(committed) => {
                self.stored = committed.head;
                Ok(after)
            }
            Err(error) => {
                after.refuse_all(&error);
                self.lost_answers.extend(answered);
                Err(error)
            }
        }
    }

    /// Waits until nothing is on its way; gives what the last append was waited for with.
    pub(super) async fn finish_append(&mut self) -> Result<OnCommitted, StoreError> {
        if self.is_in_flight() { self.append_done().await } else { Ok(OnCommitted::default()) }
    }

    /// Tells those whose command waits to be stored that it will not be.
    pub(super) fn refuse_waiting(&mut self, error: &StoreError) {
        std::mem::take(&mut self.next.after).refuse_all(error);
    }

    /// Commands of other nodes whose answer is not stored.
    pub(super) fn unanswered_commands(&self) -> Vec<CommandId> {
        let in_flight = self.in_flight.iter().flat_map(|in_flight| in_flight.answered.iter().copied());
        let next = self.next.answers.iter().map(|answer| answer.command);
        in_flight.chain(next).chain(self.lost_answers.iter().copied()).collect()
    }

    /// The last stored place.
    pub(super) fn stored_head(&self) -> Seq {
        self.stored
    }

    /// Entries that are not on their way yet.
    pub(super) fn unsent_entries(&self) -> &[Entry] {
        &self.next.entries
    }

    /// True if what waits are a few deltas that are stored later.
    fn must_gather(&mut self) -> bool {
        let now = Instant::now();
        if self.next.is_trickle() {
            return self.gathering.must_wait(now);
        }
        match self.next.entries.last() {
            Some(last) if last.event.is_delta() => self.gathering.note_deltas_stored(now),
            Some(_) | None => self.gathering.end_wait(),
        }
        false
    }

    fn snapshot_if_due(&mut self, view: &SessionView, entries: &[Entry]) -> Option<Snapshot> {
        let last = entries.last()?.seq;
        if last.0 - self.snapshot_at.0 < SNAPSHOT_EVERY || last != view.head {
            return None;
        }
        self.snapshot_at = last;
        let body = serde_json::to_vec(view).ok()?;
        Some(Snapshot { version: SessionView::VERSION, seq: last, body })
    }
}

fn queued_entry_range(entries: &[Entry]) -> Option<(Seq, Seq)> {
    Some((entries.first()?.seq, entries.last()?.seq))
}
