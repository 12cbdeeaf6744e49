//! A refusal on its way out, for protocols whose handlers answer with one.

use axum::Json;
use axum::response::{IntoResponse, Response};
use http::{StatusCode, header};
use serde::Serialize;

/// A response that refuses a request, on its way out of a handler.
pub struct Rejection(Box<Response>);

impl Rejection {
    /// This status, and this body in the protocol's own words. Whoever may come back is told so.
    pub fn new(status: u16, body: impl Serialize) -> Self {
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = (status, Json(body)).into_response();
        if matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) {
            response.headers_mut().insert(header::RETRY_AFTER, 1.into());
        }
        Self(Box::new(response))
    }
}

impl From<Box<Response>> for Rejection {
    fn from(response: Box<Response>) -> Self {
        Self(response)
    }
}

impl IntoResponse for Rejection {
    fn into_response(self) -> Response {
        *self.0
    }
}
