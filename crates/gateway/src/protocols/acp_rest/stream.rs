//! A run that is followed, and its events as a stream.

use std::sync::Arc;

use futures::future::BoxFuture;
use gander_domain::{QuestionId, RunId, Seq, SessionId};
use gander_http::sse::{SseProjection, SseWriter};
use gander_runtime::hub::{FollowedBatch, Follower, HubError};
use gander_store::{DeltaForm, Limit, Store, StoreError};
use gander_wire::acp_rest::{AcpRestDialect, AcpRestError, AcpRestProjection, AcpRestRefusal, AcpRestRun, RunStatus};

use super::{acp_rest_hub_refusal, acp_rest_store_refusal};

/// A run that is being followed.
pub struct AcpRestRunStream {
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

impl AcpRestRunStream {
    /// Nothing of the run was read yet.
    pub(super) fn from_start(
        projection: AcpRestProjection,
        follower: Follower,
        session: SessionId,
        after: Seq,
    ) -> Self {
        let begin = RunStart { unread: projection.clone(), after };
        Self { projection, follower, answered: None, session, begin }
    }

    /// The run once it ended or awaits.
    pub async fn wait_settled(mut self) -> Result<AcpRestRun, AcpRestRefusal> {
        while !self.is_settled() {
            let batch = self.next_batch().await?;
            for entry in batch.iter() {
                self.projection.handle_entry(entry);
                self.note_answered();
                if self.is_settled() {
                    break;
                }
            }
        }
        Ok(self.projection.into_run())
    }

    /// The run right after it was accepted.
    pub async fn wait_accepted(mut self) -> Result<AcpRestRun, AcpRestRefusal> {
        let begun = self.answered.is_none();
        loop {
            let batch = self.next_batch().await?;
            for entry in batch.iter() {
                self.projection.handle_entry(entry);
                self.note_answered();
                let run = self.projection.run();
                if begun && entry.run == Some(run.run_id) {
                    return Ok(AcpRestRun { status: RunStatus::Created, ..self.projection.into_run() });
                }
                if !begun && self.answered.is_none() {
                    return Ok(AcpRestRun { status: RunStatus::InProgress, ..self.projection.into_run() });
                }
            }
        }
    }

    async fn next_batch(&mut self) -> Result<FollowedBatch, AcpRestRefusal> {
        let gone = || acp_rest_hub_refusal(&HubError::Gone(self.session));
        self.follower.next_batch().await.map_err(acp_rest_store_refusal)?.ok_or_else(gone)
    }

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
    pub fn from_subscription(subscription: AcpRestRunStream, dialect: AcpRestDialect) -> (Self, Follower) {
        let AcpRestRunStream { projection, follower, answered, session, begin } = subscription;
        let (projection, store) = (projection.without_output(), Arc::clone(follower.store()));
        (Self { projection, answered, over: false, begin, session, store, dialect }, follower)
    }
}

impl SseProjection for RunEventProjection {
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
