//! The sessions that use one server: what it says by itself goes to all of them, what it asks to the one that called.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gander_domain::Severity;

use super::listener::{Outage, ServerEvent, SessionHandle};

/// The places of all sessions that use one server. Cheap to clone.
#[derive(Clone, Default)]
pub(super) struct SessionHandles(Arc<Mutex<Vec<SessionHandle>>>);

impl SessionHandles {
    /// One more session; the same twice is one.
    pub(super) fn join(&self, session: &SessionHandle) {
        let mut sessions = self.lock();
        if !sessions.iter().any(|known| known.is_same(session)) {
            sessions.push(session.clone());
        }
    }

    pub(super) fn leave(&self, session: &SessionHandle) {
        self.lock().retain(|known| !known.is_same(session));
    }

    /// True if a run listens in any of them.
    pub(super) fn is_attended(&self) -> bool {
        self.lock().iter().any(|session| session.listener().is_some())
    }

    /// The session that it is for, where it is for one alone.
    pub(super) fn first(&self) -> Option<SessionHandle> {
        self.lock().first().cloned()
    }

    /// The tools on offer changed.
    pub(super) fn send_tools_changed(&self) {
        self.lock().iter().for_each(|session| session.send_event(ServerEvent::Tools));
    }

    pub(super) fn notice(&self, severity: Severity, title: &str) {
        self.lock().iter().for_each(|session| session.notice(severity, title, None));
    }

    /// Each session is told of an outage once.
    pub(super) fn send_outage(&self, server: &str, outage: &Outage) {
        self.lock().iter().for_each(|session| session.send_outage(server, outage));
    }

    fn lock(&self) -> MutexGuard<'_, Vec<SessionHandle>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
