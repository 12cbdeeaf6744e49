//! What the hub and the store refuse, as errors of A2A.

use axum::body::Body;
use axum::response::Response;
use gander_domain::CommandError;
use gander_http::error::with_json_body;
use gander_http::{Problem, RefusedRequest};
use gander_runtime::hub::HubError;
use gander_services::sessions::SessionError;
use gander_store::StoreError;
use gander_wire::a2a::{A2aError, ErrorKind};
use http::header::{self, HeaderValue};
use http::{Method, StatusCode};
use serde_json::{Value, json};

/// What the hub refuses, in the words of this protocol.
pub(super) fn hub_error(error: HubError) -> A2aError {
    match error {
        HubError::Refused(CommandError::QueueFull(_)) => A2aError::new(ErrorKind::TooMany, error.to_string()),
        HubError::Refused(CommandError::EmptyPrompt) => A2aError::invalid_field("message.parts", "must say something"),
        HubError::Refused(CommandError::BadTitle) => A2aError::invalid_field("message.parts", error.to_string()),
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
        elsewhere @ (StoreError::Owned(_) | StoreError::Pinned(_)) => {
            A2aError::new(ErrorKind::Unavailable, elsewhere.to_string())
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

/// A refusal of the outer layer in the words of this protocol.
pub(super) fn outer_refusal(problem: &Problem, request: RefusedRequest<'_>, response: Response) -> Response {
    if request.is_grpc {
        return grpc_refusal(problem, &response);
    }
    let (status, body) = match is_json_rpc_path(request.method, request.path) {
        true => json_rpc_refusal(problem),
        false => (problem.status, rest_refusal(problem)),
    };
    with_json_body(response, status, &body)
}

fn error_kind(problem: &Problem) -> ErrorKind {
    match problem.status {
        _ if problem.is_bad_json() => ErrorKind::Parse,
        StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED => ErrorKind::MethodNotFound,
        StatusCode::UNSUPPORTED_MEDIA_TYPE => ErrorKind::ContentTypeNotSupported,
        StatusCode::TOO_MANY_REQUESTS => ErrorKind::TooMany,
        StatusCode::SERVICE_UNAVAILABLE => ErrorKind::Unavailable,
        status if status.is_client_error() => ErrorKind::InvalidRequest,
        _ => ErrorKind::Internal,
    }
}

/// JSON-RPC knows what is wrong with a message, HTTP what is wrong with a caller.
fn json_rpc_refusal(problem: &Problem) -> (StatusCode, Value) {
    let error = A2aError::new(error_kind(problem), problem.message.as_ref());
    let status = if problem.is_bad_json() { StatusCode::OK } else { problem.status };
    let body = json!({ "jsonrpc": "2.0", "id": null, "error": error.json_rpc_error(gander_wire::a2a::Dialect::V1) });
    (status, body)
}

/// `google.rpc.Status`, with the status that HTTP says.
fn rest_refusal(problem: &Problem) -> Value {
    let mut body = A2aError::new(error_kind(problem), problem.message.as_ref()).rest_body();
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
fn grpc_refusal(problem: &Problem, response: &Response) -> Response {
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
fn is_json_rpc_path(method: &Method, path: &str) -> bool {
    let rest = path.strip_prefix("/a2a").unwrap_or("//").trim_matches('/');
    method == Method::POST && !rest.contains(['/', ':'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_agent_and_nothing_behind_it_is_json_rpc() {
        let rpc = ["/a2a", "/a2a/", "/a2a/gander", "/a2a/gander/"].map(|path| is_json_rpc_path(&Method::POST, path));
        assert_eq!(rpc, [true; 4]);
        let rest = ["/a2a/message:send", "/a2a/gander/tasks"].map(|path| is_json_rpc_path(&Method::POST, path));
        assert_eq!((rest, is_json_rpc_path(&Method::GET, "/a2a")), ([false; 2], false));
    }
}
