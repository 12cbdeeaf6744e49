//! The answer to `/reply`: one run as a stream, with a sign of life twice a second.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::Stream;
use gander_domain::{Event, RunId, SessionId, SessionView};
use gander_http::sse;
use gander_http::sse::{EventSource, KeepAlive, drive_event_stream};
use gander_runtime::hub::{FollowedBatch, Follower};
use gander_services::Services;
use gander_services::clients::ClientPresence;
use gander_services::sessions::SessionError;
use gander_store::{DeltaForm, StoreError};
use gander_wire::goose::projection;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::ClientPeer;
use crate::protocols::goose::reply_projection::ReplyProjection;
use crate::protocols::goose::runs;

/// How often the client hears that the server is there.
const PING_INTERVAL: Duration = Duration::from_millis(500);

/// A run that somebody listens to.
pub(crate) struct ReplyStream {
    follower: Follower,
    reply: ReplyProjection,
    stop: CancellationToken,
    cancel_on_drop: CancelReplyOnDrop,
}

impl ReplyStream {
    /// The run as told by what follows this view.
    pub(crate) fn new(
        services: &Arc<Services>,
        peer: &ClientPeer,
        view: SessionView,
        run: RunId,
        stop: CancellationToken,
    ) -> Self {
        let session = view.session;
        Self {
            follower: services.hub.follow_session(session, view.head, DeltaForm::Joined),
            reply: ReplyProjection::new(view, run),
            stop,
            cancel_on_drop: CancelReplyOnDrop {
                presence: Some(services.clients.attach(session, &super::CLIENT_NAME.into())),
                services: Arc::clone(services),
                peer: peer.clone(),
                session,
                run,
                over: false,
            },
        }
    }

    /// The events, until the run has ended.
    pub(crate) fn into_events(self) -> impl Stream<Item = Result<Bytes, Infallible>> + Send {
        let (stop, ping) = (self.stop.clone(), goose_stream_frame(&[projection::goose_ping_event()]));
        drive_event_stream(self, KeepAlive::message_every(PING_INTERVAL, ping), stop)
    }

    fn project_batch(&mut self, batch: Result<Option<FollowedBatch>, StoreError>) -> Vec<Value> {
        let batch = match batch {
            Ok(Some(batch)) => batch,
            stopped => {
                self.cancel_on_drop.over = true;
                let why = match stopped {
                    Err(StoreError::Closed) => "the server is stopping, the turn goes on: reload the conversation",
                    Ok(_) | Err(_) => "the session is no more",
                };
                return vec![projection::goose_error_event(why)];
            }
        };
        let events = batch.iter().flat_map(|entry| self.reply.project_entry(entry)).collect();
        self.cancel_on_drop.over = self.reply.is_complete();
        events
    }
}

impl EventSource for ReplyStream {
    type Input = Result<Option<FollowedBatch>, StoreError>;

    /// A ping goes first: clients wait for one.
    fn write_start(&mut self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&goose_stream_frame(&[projection::goose_ping_event()]));
    }

    fn next_input(&mut self) -> impl Future<Output = Self::Input> + Send {
        self.follower.next_batch()
    }

    async fn write_input(&mut self, batch: Self::Input, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&goose_stream_frame(&self.project_batch(batch)));
    }

    fn is_complete(&self) -> bool {
        self.cancel_on_drop.over
    }
}

/// Some events that are sent at once.
pub(crate) fn goose_stream_frame(events: &[Value]) -> Bytes {
    let mut bytes = Vec::new();
    for event in events {
        sse::append_sse_event(&mut bytes, None, event.to_string().as_bytes());
    }
    bytes.into()
}

/// Waits until a run is over, so that nobody waits for a client that stays at its session for much longer.
async fn stream_until_run_end(services: &Services, peer: &ClientPeer, session: SessionId, run: RunId) {
    if let Err(error) = follow_stream_to_run_end(services, peer, session, run).await {
        tracing::debug!(%error, "the end of a run is not seen");
        std::future::pending().await // it must not be taken for over
    }
}

async fn follow_stream_to_run_end(
    services: &Services,
    peer: &ClientPeer,
    session: SessionId,
    run: RunId,
) -> Result<(), SessionError> {
    let view = services.sessions.stored_view(&peer.caller, session).await?;
    // Through the log: the run may end after the view was taken and before anybody listens.
    let mut follower = services.hub.follow_session(session, view.head, DeltaForm::Joined);
    let mut is_open = view.is_run_open(run);
    while is_open && let Some(batch) = follower.next_batch().await? {
        is_open = !batch.iter().any(|entry| entry.run == Some(run) && matches!(entry.event, Event::RunEnded { .. }));
    }
    Ok(())
}

/// Dropping the connection is the only Stop that clients of `/reply` have: if nobody comes back, the run is cancelled.
struct CancelReplyOnDrop {
    services: Arc<Services>,
    peer: ClientPeer,
    presence: Option<ClientPresence>,
    session: SessionId,
    run: RunId,
    over: bool,
}

impl Drop for CancelReplyOnDrop {
    fn drop(&mut self) {
        drop(self.presence.take());
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        if self.over || self.services.hub.is_draining() {
            return;
        }
        let (services, peer, session, run) = (Arc::clone(&self.services), self.peer.clone(), self.session, self.run);
        runtime.spawn(async move {
            tokio::select! {
                () = stream_until_run_end(&services, &peer, session, run) => {}
                () = services.clients.wait_until_deserted(session, services.reply_grace) => {
                    if let Err(refusal) = runs::cancel_goose_run(&services, &peer, session, Some(run)).await {
                        tracing::debug!(%refusal, "nothing to cancel");
                    }
                }
            }
        });
    }
}
