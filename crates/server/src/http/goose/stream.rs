//! The answer to `/reply`: one run as a stream, with a sign of life twice a second.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::{Stream, StreamExt as _};
use gander_domain::{RunId, SessionId, SessionView};
use gander_wire::goose::output;
use serde_json::Value;
use tokio::time::{Instant, Interval, MissedTickBehavior};
use tokio_util::sync::CancellationToken;

use crate::app::Peer;
use crate::door::goose::{chat, telling::Reply};
use crate::door::{Desk, Presence};
use crate::hub::{Batch, Follower};
use crate::log::{Form, StoreError};
use crate::sse;

/// How often the client hears that the server is there.
const PING: Duration = Duration::from_millis(500);

/// A run that somebody listens to.
pub(super) struct Listening {
    follower: Follower,
    reply: Reply,
    pings: Interval,
    stop: CancellationToken,
    leaving: Leaving,
}

impl Listening {
    /// The run as told by what follows this view.
    pub(super) fn new(desk: &Arc<Desk>, peer: &Peer, view: SessionView, run: RunId, stop: CancellationToken) -> Self {
        let session = view.session;
        let mut pings = tokio::time::interval_at(Instant::now() + PING, PING);
        pings.set_missed_tick_behavior(MissedTickBehavior::Skip);
        Self {
            follower: desk.hub.follow(session, view.head, Form::Joined),
            reply: Reply::new(view, run),
            pings,
            stop,
            leaving: Leaving {
                presence: Some(desk.clients.enter(session)),
                desk: Arc::clone(desk),
                peer: peer.clone(),
                session,
                run,
                over: false,
            },
        }
    }

    /// The events, until the run has ended. A sign of life goes first: clients wait for one.
    pub(super) fn events(self) -> impl Stream<Item = Result<Bytes, Infallible>> + Send {
        let greeting = futures::stream::iter([Ok(frame(&[output::ping()]))]);
        greeting.chain(futures::stream::unfold(self, |mut listening| async move {
            let piece = listening.next().await?;
            Some((Ok(piece), listening))
        }))
    }

    async fn next(&mut self) -> Option<Bytes> {
        while !self.leaving.over {
            tokio::select! {
                biased;
                () = self.stop.cancelled() => return None,
                _ = self.pings.tick() => return Some(frame(&[output::ping()])),
                batch = self.follower.next() => {
                    let events = self.read(batch);
                    if !events.is_empty() {
                        return Some(frame(&events));
                    }
                }
            }
        }
        None
    }

    fn read(&mut self, batch: Result<Option<Batch>, StoreError>) -> Vec<Value> {
        let Ok(Some(batch)) = batch else {
            self.leaving.over = true;
            return vec![output::error("the session is no more")];
        };
        let events = batch.iter().flat_map(|entry| self.reply.read(entry)).collect();
        self.leaving.over = self.reply.is_over();
        events
    }
}

/// Some events that are told at once.
pub(super) fn frame(events: &[Value]) -> Bytes {
    let mut bytes = Vec::new();
    for event in events {
        sse::event(&mut bytes, None, event.to_string().as_bytes());
    }
    bytes.into()
}

/// Dropping the connection is the only Stop that clients of `/reply` have: if nobody comes back, the run is cancelled.
struct Leaving {
    desk: Arc<Desk>,
    peer: Peer,
    presence: Option<Presence>,
    session: SessionId,
    run: RunId,
    over: bool,
}

impl Drop for Leaving {
    fn drop(&mut self) {
        drop(self.presence.take());
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        if self.over || self.desk.hub.is_draining() {
            return;
        }
        let (desk, peer, session, run) = (Arc::clone(&self.desk), self.peer.clone(), self.session, self.run);
        runtime.spawn(async move {
            tokio::time::sleep(desk.reply_grace).await;
            if desk.clients.at(session) == 0
                && let Err(refusal) = chat::cancel(&desk, &peer, session, Some(run)).await
            {
                tracing::debug!(%refusal, "nothing to cancel");
            }
        });
    }
}
