//! What the hub and the store refuse, as errors of A2A.

use axum::body::Body;
use axum::response::Response;
use gander_domain::CommandError;
use gander_http::error::error_with_json_body;
use gander_http::{Problem, RefusedRequest};
use gander_runtime::hub::HubError;
use gander_services::sessions::SessionError;
use gander_store::StoreError;
use gander_wire::a2a::{A2aError, A2aErrorKind};
use http::header::{self, HeaderValue};
use http::{Method, StatusCode};
use serde_json::{Value, json};

/// What the hub refuses, in the words of this protocol.
pub(super) fn a2a_hub_error(error: HubError) -> A2aError {
    match error {
        HubError::Refused(CommandError::QueueFull(_)) => A2aError::new(A2aErrorKind::TooMany, error.to_string()),
        HubError::Refused(CommandError::EmptyPrompt) => A2aError::invalid_field("message.parts", "must say something"),
        HubError::Refused(CommandError::BadTitle) => A2aError::invalid_field("message.parts", error.to_string()),
        HubError::Refused(CommandError::BadAnswer(why)) => A2aError::invalid_field("message.parts", why),
        HubError::Refused(_) => A2aError::new(A2aErrorKind::UnsupportedOperation, error.to_string()),
        HubError::Denied(denied) => A2aError::new(A2aErrorKind::Forbidden, denied.to_string()),
        HubError::Draining => A2aError::new(A2aErrorKind::Unavailable, error.to_string()),
        HubError::Store(error) => a2a_store_error(error),
        HubError::Gone(_) => A2aError::new(A2aErrorKind::Internal, error.to_string()),
    }
}

/// Why a session is not created or not found, in the words of this protocol.
pub(super) fn a2a_session_error(error: SessionError) -> A2aError {
    match error {
        SessionError::Hub(error) => a2a_hub_error(error),
        SessionError::AliasTaken(session) => a2a_store_error(StoreError::AliasTaken(session)),
        SessionError::Folder(_) | SessionError::Document(_) => A2aError::new(A2aErrorKind::Internal, error.to_string()),
    }
}

/// What the store refuses. What went wrong inside is told to the log alone.
pub(super) fn a2a_store_error(error: StoreError) -> A2aError {
    match error {
        StoreError::NotFound(id) | StoreError::Deleted(id) => {
            A2aError::new(A2aErrorKind::TaskNotFound, format!("context not found: {id}"))
        }
        elsewhere @ (StoreError::Owned(_) | StoreError::Pinned(_)) => {
            A2aError::new(A2aErrorKind::Unavailable, elsewhere.to_string())
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
            A2aError::new(A2aErrorKind::Unavailable, "the store failed, see the server's log")
        }
    }
}

/// A refusal of the outer layer in the words of this protocol.
pub(super) fn a2a_outer_refusal(problem: &Problem, request: RefusedRequest<'_>, response: Response) -> Response {
    if request.is_grpc {
        return a2a_grpc_refusal(problem, &response);
    }
    let (status, body) = match is_a2a_json_rpc_path(request.method, request.path) {
        true => a2a_json_rpc_refusal(problem),
        false => (problem.status, a2a_rest_refusal(problem)),
    };
    error_with_json_body(response, status, &body)
}

fn a2a_error_kind(problem: &Problem) -> A2aErrorKind {
    match problem.status {
        _ if problem.is_bad_json() => A2aErrorKind::Parse,
        StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED => A2aErrorKind::MethodNotFound,
        StatusCode::UNSUPPORTED_MEDIA_TYPE => A2aErrorKind::ContentTypeNotSupported,
        StatusCode::TOO_MANY_REQUESTS => A2aErrorKind::TooMany,
        StatusCode::SERVICE_UNAVAILABLE => A2aErrorKind::Unavailable,
        status if status.is_client_error() => A2aErrorKind::InvalidRequest,
        _ => A2aErrorKind::Internal,
    }
}

/// JSON-RPC knows what is wrong with a message, HTTP what is wrong with a caller.
fn a2a_json_rpc_refusal(problem: &Problem) -> (StatusCode, Value) {
    let error = A2aError::new(a2a_error_kind(problem), problem.message.as_ref());
    let status = if problem.is_bad_json() { StatusCode::OK } else { problem.status };
    let body = json!({ "jsonrpc": "2.0", "id": null, "error": error.json_rpc_error(gander_wire::a2a::A2aDialect::V1) });
    (status, body)
}

/// `google.rpc.Status`, with the status that HTTP says.
fn a2a_rest_refusal(problem: &Problem) -> Value {
    let mut body = A2aError::new(a2a_error_kind(problem), problem.message.as_ref()).rest_body();
    body["error"]["code"] = problem.status.as_u16().into();
    match problem.status {
        StatusCode::UNAUTHORIZED => body["error"]["status"] = "UNAUTHENTICATED".into(),
        StatusCode::FORBIDDEN => body["error"]["status"] = "PERMISSION_DENIED".into(),
        StatusCode::NOT_FOUND => body["error"]["status"] = "NOT_FOUND".into(),
        _ => {}
    }
    body
}

/// A call that ends before it begins, as gRPC has it: the status stands in the header.
fn a2a_grpc_refusal(problem: &Problem, response: &Response) -> Response {
    let code = match problem.status {
        StatusCode::UNAUTHORIZED => tonic::Code::Unauthenticated,
        StatusCode::FORBIDDEN => tonic::Code::PermissionDenied,
        StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED => tonic::Code::Unimplemented,
        StatusCode::TOO_MANY_REQUESTS | StatusCode::PAYLOAD_TOO_LARGE => tonic::Code::ResourceExhausted,
        StatusCode::SERVICE_UNAVAILABLE => tonic::Code::Unavailable,
        StatusCode::REQUEST_TIMEOUT => tonic::Code::DeadlineExceeded,
        status if status.is_client_error() => tonic::Code::InvalidArgument,
        _ => tonic::Code::Internal,
    };
    let (parts, _) = tonic::Status::new(code, problem.message.as_ref()).into_http::<Body>().into_parts();
    let mut ended = Response::from_parts(parts, Body::empty());
    for name in [header::RETRY_AFTER, header::WWW_AUTHENTICATE] {
        if let Some(value) = response.headers().get(&name) {
            ended.headers_mut().insert(name, HeaderValue::clone(value));
        }
    }
    ended
}

/// The addresses of the JSON-RPC binding: an agent and nothing behind it.
fn is_a2a_json_rpc_path(method: &Method, path: &str) -> bool {
    let rest = path.strip_prefix("/a2a").unwrap_or("//").trim_matches('/');
    method == Method::POST && !rest.contains(['/', ':'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_agent_and_nothing_behind_it_is_json_rpc() {
        let rpc =
            ["/a2a", "/a2a/", "/a2a/gander", "/a2a/gander/"].map(|path| is_a2a_json_rpc_path(&Method::POST, path));
        assert_eq!(rpc, [true; 4]);
        let rest = ["/a2a/message:send", "/a2a/gander/tasks"].map(|path| is_a2a_json_rpc_path(&Method::POST, path));
        assert_eq!((rest, is_a2a_json_rpc_path(&Method::GET, "/a2a")), ([false; 2], false));
    }
}
