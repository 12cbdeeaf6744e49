//! Errors as goose words them.

use axum::Json;
use axum::response::{IntoResponse, Response};
use gander_domain::{CommandError, ServiceError, sanitize};
use gander_http::error::error_with_json_body;
use gander_http::large_responses::TooManyWholeResponses;
use gander_http::{Problem, RefusedRequest};
use gander_services::direct_calls::DirectCallError;
use gander_services::sessions::SessionError;
use http::StatusCode;
use serde_json::json;

use super::runs::GooseRunError;

/// A refusal as goose words it.
#[derive(Debug)]
pub(crate) struct GooseError {
    status: StatusCode,
    pub(super) message: String,
}

impl GooseError {
    pub(crate) fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: sanitize::sanitized_text(&message.into()) }
    }
}

impl IntoResponse for GooseError {
    fn into_response(self) -> Response {
        (self.status, Json(json!({ "message": self.message }))).into_response()
    }
}

impl From<ServiceError> for GooseError {
    fn from(refusal: ServiceError) -> Self {
        let status = match &refusal {
            ServiceError::UnknownSession(_) => return no_such_goose_session(),
            ServiceError::Command(CommandError::QueueFull(_)) => StatusCode::TOO_MANY_REQUESTS,
            ServiceError::Command(CommandError::RunActive(_) | CommandError::RunAwaiting(_)) => StatusCode::CONFLICT,
            ServiceError::Command(CommandError::NoSuchRun(_) | CommandError::NoSuchQuestion(_)) => {
                StatusCode::NOT_FOUND
            }
            ServiceError::Command(_) | ServiceError::BadWorkspace(_) | ServiceError::BadParams(_) => {
                StatusCode::BAD_REQUEST
            }
            ServiceError::UnknownCommand(_) => StatusCode::NOT_FOUND,
            ServiceError::UnknownMethod(_) => StatusCode::NOT_IMPLEMENTED,
            ServiceError::AuthRequired => StatusCode::UNAUTHORIZED,
            ServiceError::Forbidden(_) | ServiceError::Denied(_) => StatusCode::FORBIDDEN,
            ServiceError::Unavailable(_) => StatusCode::SERVICE_UNAVAILABLE,
            ServiceError::Internal(_) => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Self::new(status, refusal.to_string())
    }
}

impl From<SessionError> for GooseError {
    fn from(error: SessionError) -> Self {
        ServiceError::from(error).into()
    }
}

impl From<TooManyWholeResponses> for GooseError {
    fn from(error: TooManyWholeResponses) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, error.to_string())
    }
}

impl From<DirectCallError> for GooseError {
    fn from(error: DirectCallError) -> Self {
        let text = error.to_string();
        match error {
            DirectCallError::Refused(refusal) => refusal.into(),
            DirectCallError::AgentOnly(_) => Self::new(StatusCode::FORBIDDEN, text),
            DirectCallError::UnknownTool(_) => Self::new(StatusCode::NOT_FOUND, text),
            DirectCallError::Undecided(_) => Self::new(StatusCode::CONFLICT, text),
            DirectCallError::NotReady | DirectCallError::Gone => Self::new(StatusCode::FAILED_DEPENDENCY, text),
        }
    }
}

impl From<GooseRunError> for GooseError {
    fn from(wrong: GooseRunError) -> Self {
        let text = wrong.to_string();
        match wrong {
            GooseRunError::Refused(refusal) => refusal.into(),
            GooseRunError::Message(_) => Self::new(StatusCode::UNPROCESSABLE_ENTITY, text),
            GooseRunError::BadAction(_) => goose_bad_request(text),
            GooseRunError::NoQuestion(_) | GooseRunError::UnknownMode { .. } => Self::new(StatusCode::NOT_FOUND, text),
            GooseRunError::KeyReused(_) => Self::new(StatusCode::CONFLICT, text),
        }
    }
}

pub(super) fn no_such_goose_session() -> GooseError {
    GooseError::new(StatusCode::NOT_FOUND, "Session not found")
}

pub(super) fn goose_bad_request(message: impl Into<String>) -> GooseError {
    GooseError::new(StatusCode::BAD_REQUEST, message)
}

/// A refusal of the outer layer in the words of this protocol.
pub(super) fn goose_outer_refusal(problem: &Problem, _request: RefusedRequest<'_>, response: Response) -> Response {
    error_with_json_body(response, problem.status, &json!({ "message": problem.message }))
}
