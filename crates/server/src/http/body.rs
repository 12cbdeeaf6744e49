//! Bodies: of the right type, never larger than allowed, never slower than allowed, whole before a handler sees them.

use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use http::header::{self, HeaderMap};
use http::{HeaderValue, StatusCode, request::Parts};
use http_body_util::{BodyExt, LengthLimitError, Limited};

use super::error::{closing, problem};
use super::routes::{Payload, Size};
use crate::config::Limits;

/// Reads the body of a request, or says why not.
pub(super) async fn take(limits: &Limits, payload: Payload, request: Request) -> Result<Request, Box<Response>> {
    let (parts, body) = request.into_parts();
    let size = match payload {
        Payload::None => return Ok(Request::from_parts(parts, Body::empty())),
        Payload::Json(size) if is_json(&parts.headers) => size,
        Payload::Json(_) => return Err(refuse(&parts, StatusCode::UNSUPPORTED_MEDIA_TYPE)),
        Payload::Any(size) => size,
    };
    let limit = match size {
        Size::Small => limits.body.len(),
        Size::Prompt => limits.prompt_body.len(),
    };
    if declared(&parts.headers).is_some_and(|length| length > limit) {
        return Err(refuse(&parts, StatusCode::PAYLOAD_TOO_LARGE));
    }
    match tokio::time::timeout(limits.body_time.0, Limited::new(body, limit).collect()).await {
        Ok(Ok(whole)) => Ok(Request::from_parts(parts, Body::from(whole.to_bytes()))),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(refuse(&parts, StatusCode::PAYLOAD_TOO_LARGE)),
        Ok(Err(_)) => Err(refuse(&parts, StatusCode::BAD_REQUEST)),
        Err(_) => Err(refuse(&parts, StatusCode::REQUEST_TIMEOUT)),
    }
}

/// Another encoding than UTF-8 was declared. Protocols whose clients name any type or none refuse only this.
pub(super) fn is_foreign(headers: &HeaderMap) -> bool {
    let Some(Ok(value)) = headers.get(header::CONTENT_TYPE).map(HeaderValue::to_str) else { return false };
    let mut parameters = value.split(';').skip(1).filter_map(|parameter| parameter.split_once('='));
    parameters.any(|(name, value)| {
        let value = value.trim().trim_matches('"');
        name.trim().eq_ignore_ascii_case("charset") && !value.eq_ignore_ascii_case("utf-8")
    })
}

fn refuse(parts: &Parts, status: StatusCode) -> Box<Response> {
    let response = match status {
        StatusCode::UNSUPPORTED_MEDIA_TYPE => {
            problem(status, "unsupported_media_type", "the body must be application/json")
        }
        StatusCode::PAYLOAD_TOO_LARGE => problem(status, "body_too_large", "the body is too large"),
        StatusCode::REQUEST_TIMEOUT => problem(status, "body_timeout", "the body took too long"),
        _ => problem(status, "bad_body", "the body is broken"),
    };
    // HTTP/2 ends the stream, not the connection, and has no such header.
    Box::new(if parts.version <= http::Version::HTTP_11 { closing(response) } else { response })
}

fn declared(headers: &HeaderMap) -> Option<usize> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

fn is_json(headers: &HeaderMap) -> bool {
    let Some(Ok(value)) = headers.get(header::CONTENT_TYPE).map(|value| value.to_str()) else { return false };
    let kind = value.split(';').next().unwrap_or_default().trim();
    kind.eq_ignore_ascii_case("application/json")
}
