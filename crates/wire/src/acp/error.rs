//! Why a request is refused, and how that reads on the wire.

use gander_domain::{CommandError, Outcome, RunId, SessionId};
use serde_json::{Value, json};

use crate::jsonrpc::{Code, Error};

/// Why the server refuses a request.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Refusal {
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
    /// Nobody here knows the method.
    #[error("method not found: {0}")]
    UnknownMethod(String),
    /// The client must log in first.
    #[error("authentication required")]
    AuthRequired,
    /// A command may be named by local peers only; the setting that would allow it.
    #[error("not allowed here, see the setting: {0}")]
    Forbidden(String),
    /// Not now: the server drains or its store is read-only.
    #[error("unavailable: {0}")]
    Unavailable(String),
    /// Something broke; the details are in the log.
    #[error("internal error: {0}")]
    Internal(String),
}

/// How a refusal reads on the wire.
pub fn refusal(refusal: &Refusal) -> Error {
    let error = |code| Error::new(code, refusal.to_string());
    match refusal {
        Refusal::UnknownSession(session) => unknown_session(&session.to_string()),
        Refusal::Command(command) => command_error(command),
        Refusal::BadWorkspace(_) => error(Code::InvalidParams).with_data(reason("bad_cwd")),
        Refusal::BadParams(_) => error(Code::InvalidParams),
        Refusal::UnknownMethod(method) => Error::method_not_found(method),
        Refusal::AuthRequired => error(Code::AuthRequired),
        Refusal::Forbidden(_) => error(Code::InvalidParams).with_data(reason("forbidden")),
        Refusal::Unavailable(_) => error(Code::Internal).with_data(reason("unavailable")),
        Refusal::Internal(_) => error(Code::Internal),
    }
}

/// A session that does not exist, or that the client may not know of.
pub fn unknown_session(session: &str) -> Error {
    Error::new(Code::NotFound, "session not found").with_data(json!({ "sessionId": session }))
}

/// Nothing but `initialize` comes first.
pub fn not_initialized() -> Error {
    Error::new(Code::InvalidRequest, "not initialized").with_data(reason("not_initialized"))
}

/// The client logged out.
pub fn login_needed() -> Error {
    refusal(&Refusal::AuthRequired)
}

/// The caller took the request back.
pub fn cancelled() -> Error {
    Error::new(Code::Cancelled, "request cancelled")
}

/// A run that failed, for the request that started it.
pub fn failed_run(why: &str, message: &str) -> Error {
    Error::new(Code::Internal, message).with_data(json!({ "reason": why, "outcome": "failed" }))
}

/// How a run's end reads to the request that started it: a stop reason, or an error.
pub fn prompt_outcome(outcome: &Outcome) -> Result<super::schema::StopReason, Error> {
    use super::schema::StopReason as Wire;
    use gander_domain::StopReason;
    match outcome {
        Outcome::Completed { stop: StopReason::EndTurn } => Ok(Wire::EndTurn),
        Outcome::Completed { stop: StopReason::MaxTokens } => Ok(Wire::MaxTokens),
        Outcome::Completed { stop: StopReason::MaxTurns } => Ok(Wire::MaxTurnRequests),
        Outcome::Completed { stop: StopReason::Refusal } => Ok(Wire::Refusal),
        Outcome::Cancelled => Ok(Wire::Cancelled),
        Outcome::Failed { reason, message } => Err(failed_run(reason, message)),
    }
}

fn command_error(command: &CommandError) -> Error {
    let error = |code| Error::new(code, command.to_string());
    match command {
        CommandError::RunActive(run) => error(Code::InvalidRequest).with_data(busy("running", *run)),
        CommandError::RunAwaiting(run) => error(Code::InvalidRequest).with_data(busy("awaiting", *run)),
        CommandError::QueueFull(_) => error(Code::InvalidRequest).with_data(reason("session_busy")),
        CommandError::NotRunning => error(Code::InvalidRequest).with_data(reason("not_running")),
        CommandError::NoSuchRun(_) => error(Code::InvalidRequest).with_data(reason("no_such_run")),
        CommandError::NoSuchQuestion(_) => error(Code::InvalidRequest).with_data(reason("no_such_question")),
        CommandError::BadAnswer(_)
        | CommandError::EmptyPrompt
        | CommandError::StateFull(_)
        | CommandError::NoSuchPlace(_) => error(Code::InvalidParams),
    }
}

fn reason(reason: &str) -> Value {
    json!({ "reason": reason })
}

fn busy(state: &str, run: RunId) -> Value {
    json!({ "reason": "session_busy", "state": state, "run": run })
}
