//! Why the hub refuses or fails.

use gander_domain::authorize::Denied;
use gander_domain::{CommandError, SessionId};
use gander_store::StoreError;

/// Why the hub refuses or fails.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HubError {
    /// The session says no.
    #[error(transparent)]
    Refused(#[from] CommandError),
    /// The caller may not.
    #[error(transparent)]
    Denied(#[from] Denied),
    /// The store says no.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The server is about to stop.
    #[error("server is stopping and takes no new work")]
    Draining,
    /// The session's task ended before it could answer: nothing is known to have happened.
    #[error("session stopped before it could answer: {0}")]
    Gone(SessionId),
}
