//! The sessions that use one server: what it says by itself goes to all of them, what it asks to the one that called.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gander_domain::Severity;

use super::session_handle::{Outage, ServerEvent, SessionHandle};

/// The places of all sessions that use one server. Cheap to clone.
#[derive(Clone, Default)]
pub(super) struct SessionHandles(Arc<Mutex<Vec<SessionHandle>>>);

impl SessionHandles {
    /// One more session; the same twice is one.
    pub(super) fn add_session(&self, session: &SessionHandle) {
        let mut sessions = self.lock_sessions();
        if !sessions.iter().any(|known| known.is_same(session)) {
            sessions.push(session.clone());
        }
    }

    pub(super) fn remove_session(&self, session: &SessionHandle) {
        self.lock_sessions().retain(|known| !known.is_same(session));
    }

    /// True if a run listens in any of them.
    pub(super) fn is_attended(&self) -> bool {
        self.lock_sessions().iter().any(|session| session.current_listener().is_some())
    }

    /// The session that it is for, where it is for one alone.
    pub(super) fn first_session(&self) -> Option<SessionHandle> {
        self.lock_sessions().first().cloned()
    }

    /// The tools on offer changed.
    pub(super) fn send_tools_changed(&self) {
        self.lock_sessions().iter().for_each(|session| session.send_event(ServerEvent::Tools));
    }

    pub(super) fn notify_all(&self, severity: Severity, title: &str) {
        self.lock_sessions().iter().for_each(|session| session.send_notice(severity, title, None));
    }

    /// Each session is told of an outage once.
    pub(super) fn send_outage(&self, server: &str, outage: &Outage) {
        self.lock_sessions().iter().for_each(|session| session.send_outage(server, outage));
    }

    fn lock_sessions(&self) -> MutexGuard<'_, Vec<SessionHandle>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
