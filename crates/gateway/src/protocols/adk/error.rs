//! What the hub and the store refuse, as errors of ADK.

use axum::response::Response;
use gander_domain::CommandError;
use gander_http::error::error_with_json_body;
use gander_http::large_responses::TooManyWholeResponses;
use gander_http::{Problem, RefusedRequest};
use gander_runtime::hub::HubError;
use gander_services::sessions::SessionError;
use gander_services::state::StateError;
use gander_store::StoreError;
use gander_wire::adk::AdkRefusal;
use serde_json::Value;

/// What a client is told of a refusal inside.
pub(super) fn adk_hub_refusal(error: &HubError) -> AdkRefusal {
    match error {
        HubError::Refused(CommandError::QueueFull(_)) => AdkRefusal::new(429, error.to_string()),
        HubError::Refused(CommandError::EmptyPrompt | CommandError::BadTitle | CommandError::BadAnswer(_)) => {
            AdkRefusal::invalid_body(&["newMessage"], format!("Value error, {error}"), Value::Null)
        }
        HubError::Refused(CommandError::StateFull(_)) => {
            AdkRefusal::invalid_body(&["stateDelta"], format!("Value error, {error}"), Value::Null)
        }
        HubError::Refused(
            CommandError::RunActive(_)
            | CommandError::RunAwaiting(_)
            | CommandError::NotRunning
            | CommandError::NoSuchRun(_)
            | CommandError::NoSuchQuestion(_)
            | CommandError::NoSuchSeq(_),
        ) => AdkRefusal::new(409, error.to_string()),
        HubError::Store(StoreError::NotFound(_) | StoreError::Deleted(_)) => AdkRefusal::no_such_session(),
        HubError::Denied(_) => AdkRefusal::new(403, error.to_string()),
        HubError::Draining | HubError::Store(StoreError::Closed) => {
            AdkRefusal::new(503, HubError::Draining.to_string())
        }
        HubError::Store(inside) => {
            tracing::error!(error = %inside, "a request could not be served");
            AdkRefusal::new(if inside.is_outage() { 503 } else { 500 }, "the store failed, see the server's log")
        }
        HubError::Gone(_) => AdkRefusal::new(500, error.to_string()),
    }
}

/// What a client is told of a session that is not created or not found.
pub(super) fn adk_session_refusal(error: SessionError) -> AdkRefusal {
    match error {
        SessionError::Folder(error) => AdkRefusal::new(500, format!("workspace {error}")),
        SessionError::Document(why) => AdkRefusal::new(400, why),
        SessionError::AliasTaken(session) => adk_store_refusal(StoreError::AliasTaken(session)),
        SessionError::Hub(error) => adk_hub_refusal(&error),
    }
}

/// The status that adk2goose answered with for why goose failed, by the word that the outcome of a run has for it.
pub(super) fn adk_error_status(reason: &str) -> u16 {
    match reason {
        "unauthorized" => 401,
        "not_found" => 404,
        "rate_limited" => 429,
        "unavailable" | "not_ready" => 503,
        _ => 500,
    }
}

pub(super) fn adk_store_refusal(error: StoreError) -> AdkRefusal {
    adk_hub_refusal(&HubError::Store(error))
}

pub(super) fn adk_state_refusal(error: StateError) -> AdkRefusal {
    match error {
        StateError::Full(_) => AdkRefusal::invalid_body(&["stateDelta"], format!("Value error, {error}"), Value::Null),
        StateError::Store(error) => adk_store_refusal(error),
    }
}

/// A refusal of the outer layer in the words of this protocol.
pub(super) fn adk_outer_refusal(problem: &Problem, _request: RefusedRequest<'_>, response: Response) -> Response {
    let status = problem.unprocessable_status();
    let refusal = AdkRefusal::new(status.as_u16(), problem.message.as_ref());
    error_with_json_body(response, status, &refusal.response_body())
}

pub(super) fn adk_whole_response_refusal(error: TooManyWholeResponses) -> AdkRefusal {
    AdkRefusal::new(503, error.to_string())
}
