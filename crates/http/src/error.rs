//! Errors as JSON. A client is told what it did wrong; what went wrong here it gets as an id to look up in the log.

use std::borrow::Cow;

use axum::Json;
use axum::body::Body;
use axum::response::{IntoResponse, Response};
use gander_domain::sanitize;
use http::{HeaderValue, Method, StatusCode, Uri, header};
use serde_json::{Value, json};
use uuid::Uuid;

/// What the outer layer refuses, until it is known which protocol's words to use.
#[derive(Clone, Debug)]
pub struct Problem {
    /// The status.
    pub status: StatusCode,
    /// A word for programs.
    pub code: Cow<'static, str>,
    /// A sentence for people.
    pub message: Cow<'static, str>,
}

impl Problem {
    /// The code of a body that is JSON and cannot be taken.
    pub const BAD_JSON: &'static str = "bad_json";

    pub fn is_bad_json(&self) -> bool {
        self.code == Self::BAD_JSON
    }

    /// Two protocols say of a body that is no good JSON that they cannot process it.
    pub fn unprocessable_status(&self) -> StatusCode {
        if self.is_bad_json() { StatusCode::UNPROCESSABLE_ENTITY } else { self.status }
    }
}

/// The request that the outer layer refused, as far as a protocol needs it to word the refusal.
#[derive(Clone, Copy, Debug)]
pub struct RefusedRequest<'a> {
    /// Its method.
    pub method: &'a Method,
    /// Its path alone: a query may hold what is nobody's business.
    pub path: &'a str,
    /// It said that it is gRPC.
    pub is_grpc: bool,
}

/// True if [`take_problem`] may find something.
pub fn has_problem(response: &Response) -> bool {
    let status = response.status();
    status.is_client_error() || status.is_server_error() || response.extensions().get::<Problem>().is_some()
}

/// What is refused, if it is the outer layer that refuses: in our own words, or as the framework's plain text.
pub fn take_problem(response: &mut Response) -> Option<Problem> {
    if let Some(problem_response) = response.extensions_mut().remove::<Problem>() {
        return Some(problem_response);
    }
    let status = response.status();
    let kind = response.headers().get(header::CONTENT_TYPE)?.to_str().ok()?;
    let plain = (status.is_client_error() || status.is_server_error()) && kind.starts_with("text/plain");
    let reason = status.canonical_reason().unwrap_or("refused");
    plain.then(|| Problem { status, code: "refused".into(), message: reason.into() })
}

/// The same response with another status and body.
pub fn error_with_json_body(response: Response, status: StatusCode, body: &Value) -> Response {
    let (mut parts, _) = response.into_parts();
    let (json, body) = Json(body).into_response().into_parts();
    parts.status = status;
    parts.headers.remove(header::CONTENT_LENGTH);
    parts.headers.extend(json.headers);
    Response::from_parts(parts, body)
}

/// An error: a word for programs and a sentence for people. The guard puts it into the words of its protocol.
pub fn problem_response(status: StatusCode, code: &str, message: &str) -> Response {
    let message = sanitize::sanitized_text(message);
    let mut response = (status, Json(json!({ "error": { "code": code, "message": message } }))).into_response();
    let (code, message) = (Cow::Owned(code.to_owned()), Cow::Owned(message));
    response.extensions_mut().insert(Problem { status, code, message });
    response
}

/// A body in another encoding than every protocol here has.
pub fn not_utf8_response() -> Response {
    problem_response(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", "the body must be UTF-8")
}

/// Missing credentials.
pub fn token_needed_response() -> Response {
    unauthorized_response("a token is needed: gander token prints it")
}

/// Wrong credentials.
pub fn invalid_token_response() -> Response {
    unauthorized_response("invalid token: gander token prints the right one")
}

/// A token of the identity provider that does not count, and why (RFC 6750).
pub fn refused_jwt_response(reason: &str) -> Response {
    let mut response = unauthorized_response(&format!("the identity provider's token is refused: {reason}"));
    let plain: String =
        reason.chars().filter(|c| c.is_ascii() && !c.is_ascii_control() && !"\"\\".contains(*c)).collect();
    let challenge = format!("Bearer error=\"invalid_token\", error_description=\"{plain}\"");
    if let Ok(value) = HeaderValue::try_from(challenge) {
        response.headers_mut().insert(header::WWW_AUTHENTICATE, value);
    }
    response
}

fn unauthorized_response(message: &str) -> Response {
    let mut response = problem_response(StatusCode::UNAUTHORIZED, "unauthorized", message);
    response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    response
}

/// Come back later.
pub fn retry_later_response(status: StatusCode, code: &str, message: &str, seconds: u64) -> Response {
    let mut response = problem_response(status, code, message);
    response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
    response
}

/// Whatever is still being sent is not read: the connection ends with this answer.
pub fn error_with_connection_close(mut response: Response) -> Response {
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}

pub async fn not_found_response(_uri: Uri) -> Response {
    problem_response(StatusCode::NOT_FOUND, "not_found", "no such route")
}

/// A handler panicked. The panic hook has counted it and logged what and where, in the same task, just before.
pub fn panic_response() -> http::Response<Body> {
    let id = Uuid::now_v7();
    tracing::error!(%id, "a handler panicked");
    let (status, message) = (StatusCode::INTERNAL_SERVER_ERROR, "something went wrong here, see the log");
    let body = json!({ "error": { "code": "internal", "message": message, "id": id } });
    let mut response = (status, Json(body)).into_response();
    let message = format!("{message}: {id}").into();
    response.extensions_mut().insert(Problem { status, code: "internal".into(), message });
    response
}
