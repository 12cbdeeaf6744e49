//! A run that is followed, and its events as a stream.

use std::sync::Arc;

use futures::future::BoxFuture;
use gander_domain::{QuestionId, RunId, Seq, SessionId};
use gander_runtime::hub::Follower;
use gander_store::{DeltaForm, Limit, Store, StoreError};
use gander_wire::acp_rest::{AcpRestError, AcpRestProjection};

use crate::sse::{Projection, SseWriter};

/// A run that is being followed.
pub struct AcpRestRunSubscription {
    /// What was read of it so far.
    pub reading: AcpRestProjection,
    /// The rest.
    pub follower: Follower,
    /// The question that was just answered: until the log says so, the run only seems to await.
    pub(super) answered: Option<QuestionId>,
    pub(super) session: SessionId,
    pub(super) begin: RunStart,
}

/// Where a run begins, for who must read it again.
#[derive(Clone, Debug)]
pub(super) struct RunStart {
    pub(super) unread: AcpRestProjection,
    pub(super) after: Seq,
}

/// A run as a stream of events, until it ends or awaits.
pub struct RunEventProjection {
    reading: AcpRestProjection,
    answered: Option<QuestionId>,
    over: bool,
    begin: RunStart,
    session: SessionId,
    store: Arc<dyn Store>,
}

impl AcpRestRunSubscription {
    /// Which run.
    pub fn run(&self) -> RunId {
        self.reading.run().run_id
    }

    /// Its session.
    pub fn session(&self) -> SessionId {
        self.session
    }

    pub(super) fn is_settled(&self) -> bool {
        self.answered.is_none() && self.reading.is_settled()
    }

    /// The answer's own entry ends the pretence.
    pub(super) fn note_answered(&mut self) {
        let open = self.reading.question().map(|question| question.id);
        if self.answered.is_some() && open != self.answered {
            self.answered = None;
        }
    }
}

impl RunEventProjection {
    /// The events of this run that were not read yet, and where they come from.
    pub fn from_subscription(watched: AcpRestRunSubscription) -> (Self, Follower) {
        let AcpRestRunSubscription { reading, follower, answered, session, begin } = watched;
        let (reading, store) = (reading.without_output(), Arc::clone(follower.store()));
        (Self { reading, answered, over: false, begin, session, store }, follower)
    }
}

impl Projection for RunEventProjection {
    fn project_entry(&mut self, entry: &gander_domain::Entry, frames: &mut SseWriter) {
        self.reading.project_entry(entry, &mut |event| frames.write_event(event));
        let open = self.reading.question().map(|question| question.id);
        if open != self.answered {
            self.answered = None;
        }
        self.over = self.answered.is_none() && self.reading.is_settled();
    }

    fn is_complete(&self) -> bool {
        self.over
    }

    fn needs_restore(&self, entry: &gander_domain::Entry) -> bool {
        self.reading.needs_restore(entry)
    }

    fn restore(&mut self, upto: Seq) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            let RunStart { unread: mut reading, after: mut place } = self.begin.clone();
            while place < upto {
                let page = self.store.read(self.session, place, Limit::default(), DeltaForm::Joined).await?;
                let Some(last) = page.last() else { break };
                place = last.seq;
                page.iter().take_while(|entry| entry.seq <= upto).for_each(|entry| reading.handle_entry(entry));
            }
            self.reading = reading.without_output();
            Ok(())
        })
    }

    fn write_log_lost(&mut self, frames: &mut SseWriter) {
        let error = AcpRestError::server_error("the log can be read no further");
        frames.write_unlogged(&gander_wire::acp_rest::Event::Error { error: &error });
    }
}
