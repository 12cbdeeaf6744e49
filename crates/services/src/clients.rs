//! Who is attached where: by name for people, and counted, so that the last one to leave can be told apart.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use gander_domain::SessionId;
use tokio::sync::watch;

/// The clients that are attached to each session.
#[derive(Debug, Default)]
pub struct AttachedClients {
    sessions: Mutex<HashMap<SessionId, Attached>>,
    /// Told with every arrival and every leaving anywhere.
    changed: watch::Sender<()>,
}

/// One client at one session. Dropping it is leaving.
#[derive(Debug)]
pub struct ClientPresence {
    clients: Arc<AttachedClients>,
    session: SessionId,
    number: u64,
}

/// Who waits for the clients of a session to leave. The session is listed meanwhile.
struct Watcher {
    clients: Arc<AttachedClients>,
    session: SessionId,
    changed: watch::Receiver<()>,
}

/// The clients of one session, and whoever waits for the last of them to leave.
#[derive(Debug, Default)]
struct Attached {
    /// What each calls itself, with the number of its arrival, in the order of arrival.
    present: Vec<(u64, Arc<str>)>,
    arrivals: u64,
    watchers: usize,
    /// Told with every arrival and every leaving: an arrival that is over before anybody looks is seen too.
    changed: watch::Sender<()>,
}

impl Attached {
    fn publish_count(&self) {
        self.changed.send_replace(());
    }

    fn is_unused(&self) -> bool {
        self.present.is_empty() && self.watchers == 0
    }
}

impl AttachedClients {
    /// A client comes that is called this.
    pub fn attach(self: &Arc<Self>, session: SessionId, name: &Arc<str>) -> ClientPresence {
        let mut sessions = self.lock_sessions();
        let attached = sessions.entry(session).or_default();
        attached.arrivals += 1;
        let number = attached.arrivals;
        attached.present.push((number, Arc::clone(name)));
        attached.publish_count();
        self.changed.send_replace(());
        ClientPresence { clients: Arc::clone(self), session, number }
    }

    /// What those call themselves that are attached to this session, in the order of arrival.
    pub fn attached_names(&self, session: SessionId) -> Vec<Arc<str>> {
        let sessions = self.lock_sessions();
        let present = sessions.get(&session).map(|attached| attached.present.as_slice()).unwrap_or_default();
        present.iter().map(|(_, name)| Arc::clone(name)).collect()
    }

    /// Wakes with every arrival and every leaving.
    pub fn changes(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    /// How many are attached to this session.
    pub fn attached_count(&self, session: SessionId) -> usize {
        self.lock_sessions().get(&session).map_or(0, |attached| attached.present.len())
    }

    /// How many are attached at all.
    pub fn total_attached(&self) -> usize {
        self.lock_sessions().values().map(|attached| attached.present.len()).sum()
    }

    /// Waits until nobody has been attached to this session for so long. Safe to drop at any time.
    ///
    /// Whoever comes stops the clock, however soon it leaves again, and whoever is there when the time is over is waited
    /// for: that somebody was there once does not mean that somebody stays.
    pub async fn wait_until_deserted(self: &Arc<Self>, session: SessionId, time: Duration) {
        let mut watcher = Watcher::new(self, session);
        loop {
            watcher.changed.mark_unchanged();
            let nobody = self.attached_count(session) == 0;
            tokio::select! {
                biased;
                told = watcher.changed.changed() => told.expect("the session is listed while somebody watches it"),
                () = tokio::time::sleep(time), if nobody => return,
            }
        }
    }

    /// A panic while the lock was held leaves nothing half done here.
    fn lock_sessions(&self) -> MutexGuard<'_, HashMap<SessionId, Attached>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ClientPresence {
    fn drop(&mut self) {
        let mut sessions = self.clients.lock_sessions();
        if let Some(attached) = sessions.get_mut(&self.session) {
            attached.present.retain(|(number, _)| *number != self.number);
            attached.publish_count();
            if attached.is_unused() {
                sessions.remove(&self.session);
            }
            self.clients.changed.send_replace(());
        }
    }
}

impl Watcher {
    fn new(clients: &Arc<AttachedClients>, session: SessionId) -> Self {
        let mut sessions = clients.lock_sessions();
        let attached = sessions.entry(session).or_default();
        attached.watchers += 1;
        let changed = attached.changed.subscribe();
        Self { clients: Arc::clone(clients), session, changed }
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        let mut sessions = self.clients.lock_sessions();
        if let Some(attached) = sessions.get_mut(&self.session) {
            attached.watchers -= 1;
            if attached.is_unused() {
                sessions.remove(&self.session);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::pin::pin;

    use gander_domain::SessionId;
    use tokio::time::{Instant, advance};
    use uuid::Uuid;

    use super::*;

    const TIME: Duration = Duration::from_secs(10);

    fn session() -> SessionId {
        SessionId::new(Uuid::now_v7())
    }

    #[tokio::test(start_paused = true)]
    async fn a_session_is_deserted_once_nobody_came_for_the_whole_time() {
        let (clients, session, begin) = (Arc::<AttachedClients>::default(), session(), Instant::now());
        let mut deserted = pin!(clients.wait_until_deserted(session, TIME));
        assert!(futures::poll!(deserted.as_mut()).is_pending());
        advance(TIME - Duration::from_secs(1)).await;
        drop(clients.attach(session, &"a".into())); // gone before anybody looks
        deserted.await;
        assert_eq!(begin.elapsed(), 2 * TIME - Duration::from_secs(1));
    }

    /// Whoever listens just when the time is over does not keep the session for good.
    #[tokio::test(start_paused = true)]
    async fn who_is_there_when_the_time_is_over_is_waited_for() {
        let (clients, session) = (Arc::<AttachedClients>::default(), session());
        let present = clients.attach(session, &"a".into());
        let mut deserted = pin!(clients.wait_until_deserted(session, TIME));
        assert!(futures::poll!(deserted.as_mut()).is_pending());
        advance(3 * TIME).await;
        assert!(futures::poll!(deserted.as_mut()).is_pending());
        let left = Instant::now();
        drop(present);
        deserted.await;
        assert_eq!(left.elapsed(), TIME);
    }

    #[test]
    fn who_is_attached_is_told_by_name_in_the_order_of_arrival() {
        let (clients, session) = (Arc::<AttachedClients>::default(), session());
        let (editor, page, other) = ("editor".into(), "page".into(), "page".into());
        let _editor = clients.attach(session, &editor);
        let page = clients.attach(session, &page);
        let _other = clients.attach(session, &other);
        let changes = clients.changes();
        drop(page);
        assert!(changes.has_changed().unwrap());
        assert_eq!(clients.attached_names(session), [editor, other]);
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_is_left_of_those_who_are_gone() {
        let (clients, one, other) = (Arc::<AttachedClients>::default(), session(), session());
        let present = clients.attach(one, &"a".into());
        assert!(tokio::time::timeout(TIME, clients.wait_until_deserted(one, TIME)).await.is_err());
        clients.wait_until_deserted(other, TIME).await;
        assert_eq!((clients.attached_count(one), clients.total_attached(), clients.lock_sessions().len()), (1, 1, 1));
        drop(present);
        assert!(clients.lock_sessions().is_empty());
    }
}
