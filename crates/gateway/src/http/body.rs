//! Bodies: of the right type, never larger than allowed, never slower than allowed, whole before a handler sees them.

use std::time::Duration;

use axum::body::{Body, HttpBody as _};
use axum::extract::Request;
use axum::response::Response;
use gander_wire::strict::{self, Fault};
use http::header::{self, HeaderMap};
use http::{HeaderValue, StatusCode, request::Parts};
use http_body_util::{BodyExt, LengthLimitError, Limited};

use super::error::{Problem, closing, problem};
use super::route::{Payload, Size};
use crate::settings::Limits;

/// How long what is too large is read to be thrown away, and how long a client may pause meanwhile.
const DISCARDING: Duration = Duration::from_secs(10);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// A body of so many bytes is read even if nobody wants it.
const SMALL: usize = 64 << 10;

/// Reads the body of a request, or says why not.
pub(crate) async fn take(limits: &Limits, payload: Payload, request: Request) -> Result<Request, Box<Response>> {
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
    if encoded(&parts.headers) {
        return Err(refuse(&parts, StatusCode::UNSUPPORTED_MEDIA_TYPE));
    }
    if let Some(length) = declared(&parts.headers).filter(|length| *length > limit) {
        // One that waits for leave to send has sent nothing.
        if length <= limit.saturating_mul(2) && !parts.headers.contains_key(header::EXPECT) {
            discard(body).await;
        }
        return Err(refuse(&parts, StatusCode::PAYLOAD_TOO_LARGE));
    }
    match tokio::time::timeout(limits.body_time.0, Limited::new(body, limit).collect()).await {
        Ok(Ok(whole)) => {
            let whole = whole.to_bytes();
            match checked(&whole) {
                Ok(()) => Ok(Request::from_parts(parts, Body::from(whole))),
                Err(fault) => {
                    Err(Box::new(problem(StatusCode::BAD_REQUEST, Problem::BAD_JSON, &format!("bad JSON: {fault}"))))
                }
            }
        }
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(refuse(&parts, StatusCode::PAYLOAD_TOO_LARGE)),
        Ok(Err(_)) => Err(refuse(&parts, StatusCode::BAD_REQUEST)),
        Err(_) => Err(refuse(&parts, StatusCode::REQUEST_TIMEOUT)),
    }
}

/// What every protocol refuses in JSON. A body that does not begin like JSON is no business of this.
fn checked(body: &[u8]) -> Result<(), Fault> {
    match body.trim_ascii_start() {
        json @ [b'{' | b'[', ..] => strict::check(json),
        _ => Ok(()),
    }
}

/// The body is compressed, or otherwise not what it is about.
fn encoded(headers: &HeaderMap) -> bool {
    headers.get_all(header::CONTENT_ENCODING).iter().any(|value| !value.as_bytes().eq_ignore_ascii_case(b"identity"))
}

/// The answer to a request whose body nobody wants: what is left unread ends the connection, which a client that would send its
/// next request there must know. A small body is read, so that the connection goes on.
pub(crate) async fn unread(request: Request, answer: Response) -> Response {
    let (parts, body) = request.into_parts();
    let ends =
        parts.headers.get(header::CONNECTION).is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"close"));
    if ends || parts.version > http::Version::HTTP_11 || body.is_end_stream() {
        return answer;
    }
    let small = declared(&parts.headers).is_some_and(|length| length <= SMALL);
    let goes_on = small && !parts.headers.contains_key(header::EXPECT) && discard(body).await;
    if goes_on { answer } else { closing(answer) }
}

/// Reads on for a while and keeps nothing: a client that is still sending when its connection is closed loses the answer.
/// True if the body came to its end.
async fn discard(mut body: Body) -> bool {
    let sent = async {
        loop {
            match tokio::time::timeout(LONGEST_PAUSE, body.frame()).await {
                Ok(Some(Ok(_))) => {}
                Ok(None) => return true,
                Ok(Some(Err(_))) | Err(_) => return false,
            }
        }
    };
    tokio::time::timeout(DISCARDING, sent).await.unwrap_or(false)
}

/// Another encoding than UTF-8 was declared. Protocols whose clients name any type or none refuse only this.
pub(crate) fn is_foreign(headers: &HeaderMap) -> bool {
    let Some(Ok(value)) = headers.get(header::CONTENT_TYPE).map(HeaderValue::to_str) else { return false };
    let mut parameters = value.split(';').skip(1).filter_map(|parameter| parameter.split_once('='));
    parameters.any(|(name, value)| {
        let value = value.trim().trim_matches('"');
        name.trim().eq_ignore_ascii_case("charset") && !value.eq_ignore_ascii_case("utf-8")
    })
}

fn refuse(parts: &Parts, status: StatusCode) -> Box<Response> {
    let response = match status {
        StatusCode::UNSUPPORTED_MEDIA_TYPE if encoded(&parts.headers) => {
            problem(status, "unsupported_encoding", "the body must not be encoded: leave Content-Encoding out")
        }
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
