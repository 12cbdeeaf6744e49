//! The login of a server that is under way, shared by every run that asks for it.

use std::sync::{Mutex, PoisonError};

use tokio::sync::watch;

/// The login of a server that people were asked for. Every run asks for the same one until it is over.
#[derive(Default)]
pub(super) struct LoginInProgress(Mutex<Option<PendingLogin>>);

/// A login under way, and how it ended.
#[derive(Clone)]
pub(super) struct PendingLogin {
    pub url: String,
    pub end: watch::Receiver<Option<Result<(), String>>>,
}

impl LoginInProgress {
    /// The login under way.
    pub(super) fn pending_login(&self) -> Option<PendingLogin> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.clone().filter(PendingLogin::is_open)
    }

    /// From now on this one, unless another is under way.
    pub(super) fn take_up(&self, new: &PendingLogin) -> Option<PendingLogin> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let earlier = known.clone().filter(PendingLogin::is_open);
        if earlier.is_none() {
            *known = Some(new.clone());
        }
        earlier
    }
}

impl PendingLogin {
    pub(super) fn is_open(&self) -> bool {
        self.end.borrow().is_none()
    }
}
