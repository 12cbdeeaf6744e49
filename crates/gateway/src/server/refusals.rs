//! Refusals of the outer layer in the words of the protocol whose address was called.

use axum::Json;
use axum::body::Body;
use axum::response::{IntoResponse as _, Response};
use gander_domain::caller::Protocol;
use gander_wire::a2a::{A2aError, ErrorKind};
use gander_wire::{acp_rest, adk};
use http::header::{self, HeaderValue};
use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::http::error::Problem;

/// A refusal in the words of its protocol; everything else as it is.
pub(super) fn translate_refusal(
    protocol: Protocol,
    method: &Method,
    path: &str,
    grpc: bool,
    mut response: Response,
) -> Response {
    let Some(problem) = take_problem(&mut response) else { return response };
    let spoken = match protocol {
        Protocol::Gander | Protocol::Internal => return response,
        Protocol::A2a if grpc => return grpc_refusal(&problem, &response),
        Protocol::A2a if is_json_rpc_path(method, path) => a2a_json_rpc_refusal(&problem),
        Protocol::A2a => (problem.status, a2a_rest_refusal(&problem)),
        Protocol::Acp => (problem.status, acp_refusal(&problem)),
        Protocol::AcpRest => acp_rest_refusal(&problem),
        Protocol::Goose => (problem.status, json!({ "message": problem.message })),
        Protocol::Adk => adk_refusal(&problem),
    };
    let (mut parts, _) = response.into_parts();
    let (status, body) = spoken;
    let (spoken, body) = Json(body).into_response().into_parts();
    parts.status = status;
    parts.headers.remove(header::CONTENT_LENGTH);
    parts.headers.extend(spoken.headers);
    Response::from_parts(parts, body)
}

/// What is refused, if it is the outer layer that refuses: in our own words, or as the framework's plain text.
fn take_problem(response: &mut Response) -> Option<Problem> {
    if let Some(problem) = response.extensions_mut().remove::<Problem>() {
        return Some(problem);
    }
    let status = response.status();
    let kind = response.headers().get(header::CONTENT_TYPE)?.to_str().ok()?;
    let plain = (status.is_client_error() || status.is_server_error()) && kind.starts_with("text/plain");
    let reason = status.canonical_reason().unwrap_or("refused");
    plain.then(|| Problem { status, code: "refused".into(), message: reason.into() })
}

fn acp_rest_refusal(problem: &Problem) -> (StatusCode, Value) {
    let (status, message) = (problem.status, problem.message.as_ref());
    let error = match status {
        StatusCode::NOT_FOUND => acp_rest::AcpRestError::not_found(message),
        StatusCode::TOO_MANY_REQUESTS => acp_rest::AcpRestError::server_error(message),
        status if status.is_client_error() => acp_rest::AcpRestError::invalid(message),
        _ => acp_rest::AcpRestError::server_error(message),
    };
    (unprocessable_status(problem), json!(error.with_reason(&problem.code)))
}

fn adk_refusal(problem: &Problem) -> (StatusCode, Value) {
    let status = unprocessable_status(problem);
    (status, adk::AdkRefusal::new(status.as_u16(), problem.message.as_ref()).response_body())
}

/// Two protocols say of a body that is no good JSON that they cannot process it.
fn unprocessable_status(problem: &Problem) -> StatusCode {
    if problem.is_bad_json() { StatusCode::UNPROCESSABLE_ENTITY } else { problem.status }
}

/// An error that answers no request: which one it was was not read.
fn acp_refusal(problem: &Problem) -> Value {
    let code = match problem.status {
        _ if problem.is_bad_json() => -32_700,
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => -32_000,
        StatusCode::NOT_FOUND => -32_002,
        status if status.is_client_error() && status != StatusCode::TOO_MANY_REQUESTS => -32_600,
        _ => -32_603,
    };
    let error = json!({ "code": code, "message": problem.message, "data": { "reason": problem.code } });
    json!({ "jsonrpc": "2.0", "id": null, "error": error })
}

fn a2a_error_kind(problem: &Problem) -> ErrorKind {
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
fn a2a_json_rpc_refusal(problem: &Problem) -> (StatusCode, Value) {
    let error = A2aError::new(a2a_error_kind(problem), problem.message.as_ref());
    let status = if problem.is_bad_json() { StatusCode::OK } else { problem.status };
    let body = json!({ "jsonrpc": "2.0", "id": null, "error": error.json_rpc_error(gander_wire::a2a::Dialect::V1) });
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
