//! Why a request is refused, and how that reads on the wire.

use gander_domain::{CommandError, Outcome, RunId, ServiceError};
use serde_json::{Value, json};

use crate::jsonrpc::{Code, Error};

/// Why a command is refused that a client names as such.
pub(super) const UNKNOWN_COMMAND: &str = "unknown_command";

/// How a refusal reads on the wire.
pub fn acp_service_error(refusal: &ServiceError) -> Error {
    let error = |code| Error::new(code, refusal.to_string());
    match refusal {
        ServiceError::UnknownSession(session) => acp_unknown_session_error(&session.to_string()),
        ServiceError::Command(command) => acp_command_error(command),
        ServiceError::BadWorkspace(_) => error(Code::InvalidParams).with_data(acp_error_reason_data("bad_cwd")),
        ServiceError::BadParams(_) => error(Code::InvalidParams),
        ServiceError::UnknownCommand(_) => error(Code::InvalidParams).with_data(acp_error_reason_data(UNKNOWN_COMMAND)),
        ServiceError::UnknownMethod(method) => Error::method_not_found(method),
        ServiceError::AuthRequired => error(Code::AuthRequired),
        ServiceError::Forbidden(_) | ServiceError::Denied(_) => {
            error(Code::InvalidParams).with_data(acp_error_reason_data("forbidden"))
        }
        ServiceError::Unavailable(_) => error(Code::Internal).with_data(acp_error_reason_data("unavailable")),
        ServiceError::Internal(_) => error(Code::Internal),
    }
}

/// A session that does not exist, or that the client may not know of.
pub fn acp_unknown_session_error(session: &str) -> Error {
    Error::new(Code::NotFound, "session not found").with_data(json!({ "sessionId": session }))
}

/// Nothing but `initialize` comes first.
pub fn acp_not_initialized_error() -> Error {
    Error::new(Code::InvalidRequest, "not initialized").with_data(acp_error_reason_data("not_initialized"))
}

/// The client logged out.
pub fn acp_login_needed_error() -> Error {
    acp_service_error(&ServiceError::AuthRequired)
}

/// The caller took the request back.
pub fn acp_cancelled_error() -> Error {
    Error::new(Code::Cancelled, "request cancelled")
}

/// A run that failed, for the request that started it.
pub fn acp_failed_run_error(why: &str, message: &str) -> Error {
    Error::new(Code::Internal, message).with_data(json!({ "reason": why, "outcome": "failed" }))
}

/// How a run's end reads to the request that started it: a stop reason, or an error.
pub fn acp_prompt_outcome_or_error(outcome: &Outcome) -> Result<super::schema::StopReason, Error> {
    use super::schema::StopReason as Wire;
    use gander_domain::StopReason;
    match outcome {
        Outcome::Completed { stop: StopReason::EndTurn | StopReason::StopSequence } => Ok(Wire::EndTurn),
        Outcome::Completed { stop: StopReason::MaxTokens } => Ok(Wire::MaxTokens),
        Outcome::Completed { stop: StopReason::MaxTurns } => Ok(Wire::MaxTurnRequests),
        Outcome::Completed { stop: StopReason::Refusal } => Ok(Wire::Refusal),
        Outcome::Cancelled => Ok(Wire::Cancelled),
        Outcome::Failed { reason, message } => Err(acp_failed_run_error(reason, message)),
    }
}

/// Where in a prompt's answer stands a stop reason that version 1 has no word for.
pub(super) const STOP_REASON_META: &str = "gander/stopReason";

/// What a prompt's answer says beside its stop reason.
pub(super) fn acp_stop_reason_meta(outcome: &Outcome) -> Option<super::schema::Meta> {
    let stopped = matches!(outcome, Outcome::Completed { stop: gander_domain::StopReason::StopSequence });
    stopped.then(|| serde_json::Map::from_iter([(STOP_REASON_META.to_owned(), json!("stop_sequence"))]))
}

/// What a client can do whose prompt is refused.
const BUSY_HINT: &str = "wait for the end of the turn, cancel it, or send _meta.ifBusy as queue or steer";

fn acp_command_error(command: &CommandError) -> Error {
    let error = |code| Error::new(code, command.to_string());
    match command {
        CommandError::RunActive(run) => {
            let message = format!("{BUSY_HINT}; {command}");
            Error::new(Code::InvalidRequest, message).with_data(acp_busy_error_data("running", *run))
        }
        CommandError::RunAwaiting(run) => error(Code::InvalidRequest).with_data(acp_busy_error_data("awaiting", *run)),
        CommandError::QueueFull(_) => error(Code::InvalidRequest).with_data(acp_error_reason_data("session_busy")),
        CommandError::NotRunning => error(Code::InvalidRequest).with_data(acp_error_reason_data("not_running")),
        CommandError::NoSuchRun(_) => error(Code::InvalidRequest).with_data(acp_error_reason_data("no_such_run")),
        CommandError::NoSuchQuestion(_) => {
            error(Code::InvalidRequest).with_data(acp_error_reason_data("no_such_question"))
        }
        CommandError::BadAnswer(_)
        | CommandError::EmptyPrompt
        | CommandError::BadTitle
        | CommandError::StateFull(_)
        | CommandError::NoSuchSeq(_) => error(Code::InvalidParams),
    }
}

fn acp_error_reason_data(reason: &str) -> Value {
    json!({ "reason": reason })
}

fn acp_busy_error_data(state: &str, run: RunId) -> Value {
    json!({ "reason": "session_busy", "state": state, "run": run })
}
