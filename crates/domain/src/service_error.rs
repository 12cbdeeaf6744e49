//! Why a service refuses: one error for every protocol.

use crate::{CommandError, SessionId};

/// Why a service refuses what was asked of it. Each protocol words it in its own form.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ServiceError {
    /// It does not exist, or belongs to somebody else: the same to whoever asks.
    #[error("session not found: {0}")]
    UnknownSession(SessionId),
    /// The session machine said no.
    #[error(transparent)]
    Command(#[from] CommandError),
    /// The working directory cannot be used.
    #[error("cwd cannot be used: {0}")]
    BadWorkspace(String),
    /// Something else in the parameters.
    #[error("invalid params: {0}")]
    BadParams(String),
    /// A slash command that nobody in the session knows.
    #[error("no such command: {0}")]
    UnknownCommand(String),
    /// Nobody here knows the method.
    #[error("method not found: {0}")]
    UnknownMethod(String),
    /// The client must log in first.
    #[error("authentication required")]
    AuthRequired,
    /// A command may be named by local peers only; the setting that would allow it.
    #[error("not allowed here, see the setting: {0}")]
    Forbidden(String),
    /// The caller lacks the authority; the text says which.
    #[error("{0}")]
    Denied(String),
    /// Not now: the server drains or its store is read-only.
    #[error("unavailable: {0}")]
    Unavailable(String),
    /// Something broke; the details are in the log.
    #[error("internal error: {0}")]
    Internal(String),
}
