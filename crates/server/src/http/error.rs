//! Errors as JSON. A client is told what it did wrong; what went wrong here it gets as an id to look up in the log.

use std::sync::atomic::Ordering;

use axum::Json;
use axum::body::Body;
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, Method, StatusCode, Uri, header};
use serde_json::json;
use uuid::Uuid;

use super::site::Site;

/// An error: a word for programs and a sentence for people.
pub fn problem(status: StatusCode, code: &str, message: &str) -> Response {
    (status, Json(json!({ "error": { "code": code, "message": message } }))).into_response()
}

/// Wrong or missing credentials.
pub(super) fn unauthorized() -> Response {
    let mut response = problem(StatusCode::UNAUTHORIZED, "unauthorized", "a token is needed: gander token prints it");
    response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    response
}

/// Come back later.
pub(super) fn later(status: StatusCode, code: &str, message: &str, seconds: u64) -> Response {
    let mut response = problem(status, code, message);
    response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
    response
}

/// Whatever is still being sent is not read: the connection ends with this answer.
pub(super) fn closing(mut response: Response) -> Response {
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}

pub(super) async fn not_found(_uri: Uri) -> Response {
    problem(StatusCode::NOT_FOUND, "not_found", "no such route")
}

/// The router adds the `Allow` header.
pub(super) async fn method_not_allowed(_method: Method) -> Response {
    problem(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", "this route has other methods, see Allow")
}

/// A handler panicked. The panic hook has logged what and where, in the same task, just before.
pub(super) fn panicked(site: &Site) -> http::Response<Body> {
    let id = Uuid::now_v7();
    site.panics.fetch_add(1, Ordering::Relaxed);
    tracing::error!(%id, "a handler panicked");
    let body =
        json!({ "error": { "code": "internal", "message": "something went wrong here, see the log", "id": id } });
    (StatusCode::INTERNAL_SERVER_ERROR, Json(body)).into_response()
}
