//! What the hub and the store refuse, as errors of A2A.

use gander_domain::CommandError;
use gander_runtime::hub::HubError;
use gander_services::sessions::SessionError;
use gander_store::StoreError;
use gander_wire::a2a::{A2aError, ErrorKind};

/// What the hub refuses, in the words of this protocol.
pub(super) fn hub_error(error: HubError) -> A2aError {
    match error {
        HubError::Refused(CommandError::QueueFull(_)) => A2aError::new(ErrorKind::TooMany, error.to_string()),
        HubError::Refused(CommandError::EmptyPrompt) => A2aError::invalid_field("message.parts", "must say something"),
        HubError::Refused(CommandError::BadAnswer(why)) => A2aError::invalid_field("message.parts", why),
        HubError::Refused(_) => A2aError::new(ErrorKind::UnsupportedOperation, error.to_string()),
        HubError::Denied(denied) => A2aError::new(ErrorKind::Forbidden, denied.to_string()),
        HubError::Draining => A2aError::new(ErrorKind::Unavailable, error.to_string()),
        HubError::Store(error) => store_error(error),
        HubError::Gone(_) => A2aError::new(ErrorKind::Internal, error.to_string()),
    }
}

/// Why a session is not created or not found, in the words of this protocol.
pub(super) fn session_error(error: SessionError) -> A2aError {
    match error {
        SessionError::Hub(error) => hub_error(error),
        SessionError::AliasTaken(session) => store_error(StoreError::AliasTaken(session)),
        SessionError::Folder(_) | SessionError::Document(_) => A2aError::new(ErrorKind::Internal, error.to_string()),
    }
}

/// What the store refuses. What went wrong inside is told to the log alone.
pub(super) fn store_error(error: StoreError) -> A2aError {
    match error {
        StoreError::NotFound(id) | StoreError::Deleted(id) => {
            A2aError::new(ErrorKind::TaskNotFound, format!("context not found: {id}"))
        }
        inside @ (StoreError::Exists(_)
        | StoreError::Fenced { .. }
        | StoreError::Gap { .. }
        | StoreError::Truncated { .. }
        | StoreError::AliasTaken(_)
        | StoreError::Invalid(_)
        | StoreError::Corrupt(_)
        | StoreError::ReadOnly(_)
        | StoreError::Busy(_)
        | StoreError::Failed(_)
        | StoreError::Locked(_)
        | StoreError::Newer { .. }
        | StoreError::Closed) => {
            tracing::error!(error = %inside, "the store failed a request");
            A2aError::new(ErrorKind::Unavailable, "the store failed, see the server's log")
        }
    }
}
