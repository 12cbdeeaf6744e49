//! Requests that no route takes.

use axum::extract::Request;
use axum::response::Response;
use http::{StatusCode, header};

use crate::body;
use crate::error::{not_found_response, problem_response};

/// No route has this path. The body of the request may still be on its way.
pub async fn no_such_route_fallback(request: Request) -> Response {
    let refusal = not_found_response(request.uri().clone()).await;
    body::refuse_unread_body(request, refusal).await
}

/// The router adds the `Allow` header, and [`name_allowed_methods`] says the same in words.
pub async fn method_not_allowed_fallback(request: Request) -> Response {
    body::refuse_unread_body(request, method_refusal("method not allowed")).await
}

/// Names the methods that a path has. The router adds its `Allow` header outside of every layer, so they come from the table.
pub fn name_allowed_methods(response: Response, allowed: &str) -> Response {
    if response.status() != StatusCode::METHOD_NOT_ALLOWED || allowed.is_empty() {
        return response;
    }
    let mut named = method_refusal(&format!("method not allowed, allowed: {allowed}"));
    for (name, value) in response.headers() {
        if ![header::CONTENT_LENGTH, header::CONTENT_TYPE].contains(name) {
            named.headers_mut().append(name, value.clone());
        }
    }
    named
}

fn method_refusal(message: &str) -> Response {
    problem_response(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", message)
}
