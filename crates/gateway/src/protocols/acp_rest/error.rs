//! What the hub and the store refuse, as errors of ACP-REST.

use axum::response::Response;
use gander_domain::CommandError;
use gander_http::error::error_with_json_body;
use gander_http::{Problem, RefusedRequest};
use gander_runtime::hub::HubError;
use gander_services::sessions::SessionError;
use gander_store::StoreError;
use gander_wire::acp_rest::{AcpRestError, AcpRestRefusal};
use http::StatusCode;
use serde_json::json;

/// What a client is told of a refusal inside.
pub(super) fn acp_rest_hub_refusal(error: &HubError) -> AcpRestRefusal {
    let server = |status, error: AcpRestError| AcpRestRefusal { status, error };
    match error {
        HubError::Refused(CommandError::QueueFull(_)) => server(429, AcpRestError::server_error(error.to_string())),
        HubError::Refused(
            CommandError::EmptyPrompt
            | CommandError::BadTitle
            | CommandError::BadAnswer(_)
            | CommandError::StateFull(_),
        ) => AcpRestRefusal::unreadable(error.to_string()),
        HubError::Refused(
            CommandError::RunActive(_)
            | CommandError::RunAwaiting(_)
            | CommandError::NotRunning
            | CommandError::NoSuchRun(_)
            | CommandError::NoSuchQuestion(_)
            | CommandError::NoSuchSeq(_),
        ) => AcpRestRefusal::wrong_state(error.to_string()),
        HubError::Store(StoreError::NotFound(session) | StoreError::Deleted(session)) => {
            AcpRestRefusal::not_found(format!("no such session: {session}"))
        }
        HubError::Store(StoreError::Truncated { .. }) => {
            server(409, AcpRestError::invalid("the log does not have this place").with_reason("log_truncated"))
        }
        HubError::Denied(_) => AcpRestRefusal::wrong_state(error.to_string()),
        HubError::Draining | HubError::Store(StoreError::Closed) => {
            server(503, AcpRestError::server_error(HubError::Draining.to_string()))
        }
        HubError::Store(inside) => {
            tracing::error!(error = %inside, "a run could not be served");
            server(
                if inside.is_outage() { 503 } else { 500 },
                AcpRestError::server_error("the store failed, see the server's log"),
            )
        }
        HubError::Gone(_) => server(500, AcpRestError::server_error(error.to_string())),
    }
}

/// What a client is told of a session that is not created or not found.
pub(super) fn acp_rest_session_refusal(error: SessionError) -> AcpRestRefusal {
    match error {
        SessionError::Folder(error) => AcpRestRefusal::unreadable(format!("workspace {error}")),
        SessionError::Document(why) => AcpRestRefusal::unreadable(why),
        SessionError::AliasTaken(session) => acp_rest_store_refusal(StoreError::AliasTaken(session)),
        SessionError::Hub(error) => acp_rest_hub_refusal(&error),
    }
}

pub(super) fn acp_rest_store_refusal(error: StoreError) -> AcpRestRefusal {
    acp_rest_hub_refusal(&HubError::Store(error))
}

/// A refusal of the outer layer in the words of this protocol.
pub(super) fn acp_rest_outer_refusal(problem: &Problem, _request: RefusedRequest<'_>, response: Response) -> Response {
    let (status, message) = (problem.status, problem.message.as_ref());
    let error = match status {
        StatusCode::NOT_FOUND => AcpRestError::not_found(message),
        StatusCode::TOO_MANY_REQUESTS => AcpRestError::server_error(message),
        status if status.is_client_error() => AcpRestError::invalid(message),
        _ => AcpRestError::server_error(message),
    };
    error_with_json_body(response, problem.unprocessable_status(), &json!(error.with_reason(&problem.code)))
}
