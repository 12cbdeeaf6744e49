//! Requests that no route takes.

use axum::extract::Request;
use axum::response::Response;
use http::StatusCode;

use super::body;
use super::error::{not_found, problem};

/// No route has this path. The body of the request may still be on its way.
pub(crate) async fn no_such_route(request: Request) -> Response {
    let refusal = not_found(request.uri().clone()).await;
    body::refuse_unread_body(request, refusal).await
}

/// The router adds the `Allow` header.
pub(crate) async fn method_not_allowed(request: Request) -> Response {
    let message = "this route has other methods, see Allow";
    body::refuse_unread_body(request, problem(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", message)).await
}
