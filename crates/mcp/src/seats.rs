//! The sessions that use one server: what it says by itself goes to all of them, what it asks to the one that called.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gander_domain::Severity;

use super::audience::{News, Seat};
use super::server::Outage;

/// The places of all sessions that use one server. Cheap to clone.
#[derive(Clone, Default)]
pub(super) struct Seats(Arc<Mutex<Vec<Seat>>>);

impl Seats {
    /// One more session; the same twice is one.
    pub(super) fn join(&self, seat: &Seat) {
        let mut seats = self.lock();
        if !seats.iter().any(|known| known.is(seat)) {
            seats.push(seat.clone());
        }
    }

    pub(super) fn leave(&self, seat: &Seat) {
        self.lock().retain(|known| !known.is(seat));
    }

    /// True if a run listens in any of them.
    pub(super) fn is_attended(&self) -> bool {
        self.lock().iter().any(|seat| seat.audience().is_some())
    }

    /// The session that it is for, where it is for one alone.
    pub(super) fn first(&self) -> Option<Seat> {
        self.lock().first().cloned()
    }

    /// The tools on offer changed.
    pub(super) fn tell_tools(&self) {
        self.lock().iter().for_each(|seat| seat.tell(News::Tools));
    }

    pub(super) fn notice(&self, severity: Severity, title: &str) {
        self.lock().iter().for_each(|seat| seat.notice(severity, title, None));
    }

    /// Each session is told of an outage once.
    pub(super) fn tell_outage(&self, server: &str, outage: &Outage) {
        self.lock().iter().for_each(|seat| seat.tell_outage(server, outage));
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Seat>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
