//! Why a session is not created or not found.

use gander_domain::authorize::Denied;
use gander_domain::{ServiceError, SessionId};
use gander_runtime::hub::HubError;
use gander_store::StoreError;

use crate::errors::{service_error_from_store, service_refusal_from_hub};
use crate::workspaces::BadWorkspace;

/// Why a session is not created or not found. Protocols that speak [`ServiceError`] convert it, the others word each
/// reason themselves.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SessionError {
    /// It may not work in the folder that was named.
    #[error("{0}")]
    Folder(BadWorkspace),
    /// An alias of the new session is that of this one.
    #[error("the name is taken by session {0}")]
    AliasTaken(SessionId),
    /// A document that does not hold a session.
    #[error("{0}")]
    Document(String),
    /// The hub or the store refuses.
    #[error(transparent)]
    Hub(HubError),
}

impl SessionError {
    /// True if the caller has no such session: there is none, it was deleted, or it is another's.
    pub fn is_unknown(&self) -> bool {
        matches!(self, Self::Hub(HubError::Store(StoreError::NotFound(_) | StoreError::Deleted(_))))
    }
}

impl From<BadWorkspace> for SessionError {
    fn from(error: BadWorkspace) -> Self {
        Self::Folder(error)
    }
}

impl From<HubError> for SessionError {
    fn from(error: HubError) -> Self {
        match error {
            HubError::Store(StoreError::AliasTaken(session)) => Self::AliasTaken(session),
            error @ (HubError::Store(_)
            | HubError::Refused(_)
            | HubError::Denied(_)
            | HubError::Draining
            | HubError::Gone(_)) => Self::Hub(error),
        }
    }
}

impl From<StoreError> for SessionError {
    fn from(error: StoreError) -> Self {
        HubError::from(error).into()
    }
}

impl From<Denied> for SessionError {
    fn from(error: Denied) -> Self {
        Self::Hub(error.into())
    }
}

impl From<SessionError> for ServiceError {
    fn from(error: SessionError) -> Self {
        match error {
            SessionError::Folder(error) => Self::BadWorkspace(error.to_string()),
            SessionError::AliasTaken(session) => service_error_from_store(&StoreError::AliasTaken(session)),
            SessionError::Document(why) => Self::BadParams(why),
            SessionError::Hub(error) => service_refusal_from_hub(&error),
        }
    }
}
