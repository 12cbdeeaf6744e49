//! A run that is followed, and its events as a stream.

use std::sync::Arc;

use futures::future::BoxFuture;
use gander_domain::{QuestionId, RunId, Seq, SessionId};
use gander_http::sse::{Projection, SseWriter};
use gander_runtime::hub::Follower;
use gander_store::{DeltaForm, Limit, Store, StoreError};
use gander_wire::acp_rest::{AcpRestDialect, AcpRestError, AcpRestProjection};

/// A run that is being followed.
pub struct AcpRestRunSubscription {
    /// What was read of it so far.
    pub projection: AcpRestProjection,
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
    projection: AcpRestProjection,
    answered: Option<QuestionId>,
    over: bool,
    begin: RunStart,
    session: SessionId,
    store: Arc<dyn Store>,
    dialect: AcpRestDialect,
}

impl AcpRestRunSubscription {
    /// Which run.
    pub fn run(&self) -> RunId {
        self.projection.run().run_id
    }

    /// Its session.
    pub fn session(&self) -> SessionId {
        self.session
    }

    pub(super) fn is_settled(&self) -> bool {
        self.answered.is_none() && self.projection.is_settled()
    }

    /// The answer's own entry ends the pretence.
    pub(super) fn note_answered(&mut self) {
        let open = self.projection.question().map(|question| question.id);
        if self.answered.is_some() && open != self.answered {
            self.answered = None;
        }
    }
}

impl RunEventProjection {
    /// The events of this run that were not read yet, and where they come from.
    pub fn from_subscription(subscription: AcpRestRunSubscription, dialect: AcpRestDialect) -> (Self, Follower) {
        let AcpRestRunSubscription { projection, follower, answered, session, begin } = subscription;
        let (projection, store) = (projection.without_output(), Arc::clone(follower.store()));
        (Self { projection, answered, over: false, begin, session, store, dialect }, follower)
    }
}

impl Projection for RunEventProjection {
    fn project_entry(&mut self, entry: &gander_domain::Entry, frames: &mut SseWriter) {
        let dialect = self.dialect;
        self.projection.project_entry(entry, &mut |event| match dialect {
            AcpRestDialect::Standard => frames.write_event(event),
            AcpRestDialect::Goosed => dialect.event_objects(event).iter().for_each(|told| frames.write_event(told)),
        });
        let open = self.projection.question().map(|question| question.id);
        if open != self.answered {
            self.answered = None;
        }
        self.over = self.answered.is_none() && self.projection.is_settled();
    }

    fn is_complete(&self) -> bool {
        self.over
    }

    fn needs_restore(&self, entry: &gander_domain::Entry) -> bool {
        self.projection.needs_restore(entry)
    }

    fn restore(&mut self, upto: Seq) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            let RunStart { unread: mut projection, after: mut position } = self.begin.clone();
            while position < upto {
                let page = self.store.read(self.session, position, Limit::default(), DeltaForm::Joined).await?;
                let Some(last) = page.last() else { break };
                position = last.seq;
                page.iter().take_while(|entry| entry.seq <= upto).for_each(|entry| projection.handle_entry(entry));
            }
            self.projection = projection.without_output();
            Ok(())
        })
    }

    fn write_log_lost(&mut self, frames: &mut SseWriter) {
        let error = AcpRestError::server_error("the log can be read no further");
        frames.write_unlogged(&gander_wire::acp_rest::AcpRestEvent::Error { error: &error });
    }
}
