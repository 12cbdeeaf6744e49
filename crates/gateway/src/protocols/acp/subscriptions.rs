//! The sessions that a client watches: whichever has something new is told next.

use std::collections::HashMap;
use std::sync::Arc;

use futures::StreamExt as _;
use futures::future::{AbortHandle, Abortable, BoxFuture};
use futures::stream::FuturesUnordered;
use gander_domain::SessionId;
use gander_runtime::hub::{FollowedBatch, Follower};
use gander_services::clients::{AttachedClients, ClientPresence};
use gander_store::StoreError;

/// A client that does not say what it is called.
const UNNAMED: &str = "ACP client";

type PendingEvent = Abortable<BoxFuture<'static, SessionEvent>>;

/// What a watched session has to tell.
pub(super) struct SessionEvent {
    pub(super) session: SessionId,
    pub(super) follower: Follower,
    pub(super) batch: Result<Option<FollowedBatch>, StoreError>,
}

/// The sessions that a client watches.
pub(super) struct Subscriptions {
    clients: Arc<AttachedClients>,
    /// What the client calls itself.
    name: Arc<str>,
    watches: FuturesUnordered<PendingEvent>,
    present: HashMap<SessionId, (AbortHandle, Option<ClientPresence>)>,
}

/// Whether a client counts as attached to what it watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Attendance {
    Here,
    /// It is only remembered.
    Away,
}

impl Subscriptions {
    pub(super) fn new(clients: Arc<AttachedClients>) -> Self {
        Self { clients, name: UNNAMED.into(), watches: FuturesUnordered::new(), present: HashMap::new() }
    }

    /// The client says what it calls itself.
    pub(super) fn set_name(&mut self, name: &str) {
        if *self.name != *name {
            self.name = name.into();
        }
    }

    /// Watches a session from where the follower stands, in place of an older watch.
    pub(super) fn subscribe(&mut self, session: SessionId, follower: Follower) {
        self.unsubscribe(session);
        let handle = self.spawn_watch(session, follower);
        let presence = self.clients.attach(session, &self.name);
        self.present.insert(session, (handle, Some(presence)));
    }

    /// Counts the client as attached to a session that it watches, or not.
    pub(super) fn set_attendance(&mut self, session: SessionId, attendance: Attendance) {
        let Some((_, presence)) = self.present.get_mut(&session) else { return };
        match attendance {
            Attendance::Here => {
                presence.get_or_insert_with(|| self.clients.attach(session, &self.name));
            }
            Attendance::Away => *presence = None,
        }
    }

    pub(super) fn unsubscribe(&mut self, session: SessionId) {
        if let Some((watch, _)) = self.present.remove(&session) {
            watch.abort();
        }
    }

    /// All of them.
    pub(super) fn session_ids(&self) -> Vec<SessionId> {
        self.present.keys().copied().collect()
    }

    pub(super) fn unsubscribe_all(&mut self) {
        self.watches.clear();
        self.present.clear();
    }

    /// The next news of any session. Safe to drop: what is not taken stays in the log.
    pub(super) async fn next_event(&mut self) -> Option<SessionEvent> {
        loop {
            match self.watches.next().await {
                Some(Ok(event)) => return Some(event),
                Some(Err(_aborted)) => {}
                None => return None,
            }
        }
    }

    /// Goes on watching a session, unless it was let go.
    pub(super) fn resume(&mut self, session: SessionId, follower: Follower) {
        if self.present.contains_key(&session) {
            let handle = self.spawn_watch(session, follower);
            if let Some((watch, _)) = self.present.get_mut(&session) {
                *watch = handle;
            }
        }
    }

    fn spawn_watch(&mut self, session: SessionId, mut follower: Follower) -> AbortHandle {
        let (handle, registration) = AbortHandle::new_pair();
        let watch: BoxFuture<'static, SessionEvent> = Box::pin(async move {
            let batch = follower.next_batch().await;
            SessionEvent { session, follower, batch }
        });
        self.watches.push(Abortable::new(watch, registration));
        handle
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_away_watches_on_and_does_not_count() {
        let (clients, session) = (Arc::new(AttachedClients::default()), SessionId::new(uuid::Uuid::from_u128(1)));
        let mut follows = Subscriptions::new(Arc::clone(&clients));
        follows.set_attendance(session, Attendance::Here);
        assert_eq!(clients.attached_count(session), 0, "nobody watches");
        let (handle, _) = AbortHandle::new_pair();
        follows.present.insert(session, (handle, Some(clients.attach(session, &UNNAMED.into()))));
        let counts = [Attendance::Here, Attendance::Away, Attendance::Away, Attendance::Here].map(|attendance| {
            follows.set_attendance(session, attendance);
            clients.attached_count(session)
        });
        assert_eq!(counts, [1, 0, 0, 1]);
    }
}
