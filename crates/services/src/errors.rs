//! What the hub and the store refuse, as the one error that protocols word.

use gander_agent::recipe::Flaw;
use gander_domain::authorize::Denied;
use gander_domain::{ServiceError, SessionId};
use gander_runtime::hub::HubError;
use gander_store::StoreError;

/// What a client is told who asked for this session.
pub fn service_error_from_hub(session: SessionId, error: &HubError) -> ServiceError {
    let refusal = service_refusal_from_hub(error);
    if matches!(refusal, ServiceError::UnknownSession(_)) { ServiceError::UnknownSession(session) } else { refusal }
}

/// What a client is told, and what only the log is.
pub(crate) fn service_refusal_from_hub(error: &HubError) -> ServiceError {
    match error {
        HubError::Refused(command) => ServiceError::Command(command.clone()),
        HubError::Store(StoreError::NotFound(session) | StoreError::Deleted(session)) => {
            ServiceError::UnknownSession(*session)
        }
        HubError::Denied(why) => service_error_from_denied(why.clone()),
        HubError::Draining => ServiceError::Unavailable("the server is stopping, try again in a moment".to_owned()),
        HubError::Store(store) => service_error_from_store(store),
        HubError::Gone(_) => ServiceError::Internal("the session stopped before it could answer".to_owned()),
    }
}

/// A recipe that cannot be used, as every protocol words it.
pub fn service_error_from_recipe(flaw: &Flaw) -> ServiceError {
    ServiceError::BadParams(format!("not a recipe that can be used, {flaw}"))
}

/// What a client is told that lacks the authority.
pub fn service_error_from_denied(denied: Denied) -> ServiceError {
    ServiceError::Denied(denied.to_string())
}

/// What a client is told when the store does not work; the log gets the cause.
pub fn service_error_from_store(error: &StoreError) -> ServiceError {
    tracing::error!(%error, "store failed");
    match error {
        StoreError::ReadOnly(_) => ServiceError::Unavailable("the store is read-only, see `gander doctor`".to_owned()),
        StoreError::Busy(_) => ServiceError::Unavailable("the store is busy, try again in a moment".to_owned()),
        StoreError::Owned(_) => {
            ServiceError::Unavailable("the session is just being taken over, try again in a moment".to_owned())
        }
        StoreError::Truncated { .. } => {
            ServiceError::Unavailable("the database may have lost the end of the session, load it again".to_owned())
        }
        StoreError::Pinned(label) => ServiceError::Unavailable(format!(
            "the session works on a local disk of another node, and no such node runs, label: {label}"
        )),
        StoreError::NotFound(_)
        | StoreError::Deleted(_)
        | StoreError::Exists(_)
        | StoreError::Fenced { .. }
        | StoreError::Gap { .. }
        | StoreError::AliasTaken(_)
        | StoreError::Invalid(_)
        | StoreError::Failed(_)
        | StoreError::Corrupt(_)
        | StoreError::Locked(_)
        | StoreError::Newer { .. }
        | StoreError::Closed => ServiceError::Internal("the store failed, see the server's log".to_owned()),
    }
}
