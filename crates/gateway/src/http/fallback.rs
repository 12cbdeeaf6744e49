//! Requests that no route takes.

use axum::extract::Request;
use axum::response::Response;
use http::{StatusCode, header};

use super::body;
use super::error::{not_found, problem};

/// No route has this path. The body of the request may still be on its way.
pub(crate) async fn no_such_route(request: Request) -> Response {
    let refusal = not_found(request.uri().clone()).await;
    body::refuse_unread_body(request, refusal).await
}

/// The router adds the `Allow` header, and [`name_allowed_methods`] the methods in it.
pub(crate) async fn method_not_allowed(request: Request) -> Response {
    body::refuse_unread_body(request, method_refusal("method not allowed")).await
}

/// Says in words what the `Allow` header says, which the router adds after the refusal was made.
pub(crate) fn name_allowed_methods(response: Response) -> Response {
    let allowed = response.headers().get(header::ALLOW).and_then(|allowed| allowed.to_str().ok());
    let Some(allowed) = allowed.filter(|_| response.status() == StatusCode::METHOD_NOT_ALLOWED) else {
        return response;
    };
    let mut named = method_refusal(&format!("method not allowed, allowed: {}", allowed.replace(',', ", ")));
    for (name, value) in response.headers() {
        if ![header::CONTENT_LENGTH, header::CONTENT_TYPE].contains(name) {
            named.headers_mut().append(name, value.clone());
        }
    }
    named
}

fn method_refusal(message: &str) -> Response {
    problem(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", message)
}
