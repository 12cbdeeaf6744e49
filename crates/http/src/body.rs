//! Bodies: of the right type, never larger than allowed, never slower than allowed, whole before a handler sees them.

use std::time::Duration;

use axum::body::Bytes;
use axum::body::{Body, HttpBody as _};
use axum::extract::Request;
use axum::response::Response;
use gander_wire::json_check::{self, JsonRefused};
use http::header::{self, HeaderMap};
use http::{HeaderValue, StatusCode, request::Parts};
use http_body_util::{BodyExt, LengthLimitError, Limited};

use crate::error::{Problem, error_with_connection_close, problem_response};
use crate::route::{Payload, Size};
use crate::settings::Limits;

/// How long what is too large is read to be thrown away, and how long a client may pause meanwhile.
const DISCARD_TIMEOUT: Duration = Duration::from_secs(10);
const DISCARD_PAUSE_TIMEOUT: Duration = Duration::from_millis(500);

/// A body of so many bytes is read even if nobody wants it.
const MAX_UNWANTED_BODY: usize = 64 << 10;

/// Reads the body of a request, or says why not.
pub async fn read_body(limits: &Limits, payload: Payload, request: Request) -> Result<Request, Box<Response>> {
    let (parts, body) = request.into_parts();
    let size = match payload {
        Payload::None => return Ok(Request::from_parts(parts, Body::empty())),
        Payload::Json(size) if declares_json_body(&parts.headers) => size,
        Payload::Json(_) => return Err(body_refusal(&parts, StatusCode::UNSUPPORTED_MEDIA_TYPE)),
        Payload::Any(size) => size,
    };
    let limit = match size {
        Size::Small => limits.body.len(),
        Size::Prompt => limits.prompt_body.len(),
    };
    if has_content_encoding(&parts.headers) {
        return Err(body_refusal(&parts, StatusCode::UNSUPPORTED_MEDIA_TYPE));
    }
    if let Some(length) = declared_body_length(&parts.headers).filter(|length| *length > limit) {
        // One that waits for leave to send has sent nothing.
        if length <= limit.saturating_mul(2) && !parts.headers.contains_key(header::EXPECT) {
            discard_body(body).await;
        }
        return Err(body_refusal(&parts, StatusCode::PAYLOAD_TOO_LARGE));
    }
    match tokio::time::timeout(limits.body_time.0, Limited::new(body, limit).collect()).await {
        Ok(Ok(whole)) => {
            let whole = whole.to_bytes();
            match check_json_body(&whole) {
                Ok(()) => Ok(Request::from_parts(parts, Body::from(whole))),
                Err(fault) => Err(Box::new(problem_response(
                    StatusCode::BAD_REQUEST,
                    Problem::BAD_JSON,
                    &format!("bad JSON: {fault}"),
                ))),
            }
        }
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(body_refusal(&parts, StatusCode::PAYLOAD_TOO_LARGE)),
        Ok(Err(_)) => Err(body_refusal(&parts, StatusCode::BAD_REQUEST)),
        Err(_) => Err(body_refusal(&parts, StatusCode::REQUEST_TIMEOUT)),
    }
}

/// Why there is no body for a handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyError {
    /// It is declared to be in another encoding than UTF-8.
    ForeignCharset,
    /// It did not come whole.
    Broken,
}

/// The head and the body of a request whose body may be of any type or none, but in UTF-8.
pub async fn take_utf8_body(request: Request) -> Result<(Parts, Bytes), BodyError> {
    let (parts, body) = request.into_parts();
    if declares_foreign_charset(&parts.headers) {
        return Err(BodyError::ForeignCharset);
    }
    Ok((parts, take_body_bytes(body).await.ok_or(BodyError::Broken)?))
}

/// The bytes of a body. It has a limit already: [`read_body`] read it before the handler ran.
pub async fn take_body_bytes(body: Body) -> Option<Bytes> {
    axum::body::to_bytes(body, usize::MAX).await.ok()
}

/// What every protocol refuses in JSON. A body that does not begin like JSON is no business of this.
fn check_json_body(body: &[u8]) -> Result<(), JsonRefused> {
    match body.trim_ascii_start() {
        json @ [b'{' | b'[', ..] => json_check::check_json(json),
        _ => Ok(()),
    }
}

/// The body is compressed, or otherwise not what it is about.
fn has_content_encoding(headers: &HeaderMap) -> bool {
    headers.get_all(header::CONTENT_ENCODING).iter().any(|value| !value.as_bytes().eq_ignore_ascii_case(b"identity"))
}

/// The answer to a request whose body nobody wants: what is left unread ends the connection, which a client that would send its
/// next request there must know. A small body is read, so that the connection goes on.
pub async fn refuse_unread_body(request: Request, answer: Response) -> Response {
    let (parts, body) = request.into_parts();
    let ends =
        parts.headers.get(header::CONNECTION).is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"close"));
    if ends || parts.version > http::Version::HTTP_11 || body.is_end_stream() {
        return answer;
    }
    let small = declared_body_length(&parts.headers).is_some_and(|length| length <= MAX_UNWANTED_BODY);
    let goes_on = small && !parts.headers.contains_key(header::EXPECT) && discard_body(body).await;
    if goes_on { answer } else { error_with_connection_close(answer) }
}

/// Reads on for a while and keeps nothing: a client that is still sending when its connection is closed loses the answer.
/// True if the body came to its end.
async fn discard_body(mut body: Body) -> bool {
    let sent = async {
        loop {
            match tokio::time::timeout(DISCARD_PAUSE_TIMEOUT, body.frame()).await {
                Ok(Some(Ok(_))) => {}
                Ok(None) => return true,
                Ok(Some(Err(_))) | Err(_) => return false,
            }
        }
    };
    tokio::time::timeout(DISCARD_TIMEOUT, sent).await.unwrap_or(false)
}

/// Another encoding than UTF-8 was declared. Protocols whose clients name any type or none refuse only this.
pub fn declares_foreign_charset(headers: &HeaderMap) -> bool {
    let Some(Ok(value)) = headers.get(header::CONTENT_TYPE).map(HeaderValue::to_str) else { return false };
    let mut parameters = value.split(';').skip(1).filter_map(|parameter| parameter.split_once('='));
    parameters.any(|(name, value)| {
        let value = value.trim().trim_matches('"');
        name.trim().eq_ignore_ascii_case("charset") && !value.eq_ignore_ascii_case("utf-8")
    })
}

fn body_refusal(parts: &Parts, status: StatusCode) -> Box<Response> {
    let response = match status {
        StatusCode::UNSUPPORTED_MEDIA_TYPE if has_content_encoding(&parts.headers) => {
            problem_response(status, "unsupported_encoding", "the body must not be encoded: leave Content-Encoding out")
        }
        StatusCode::UNSUPPORTED_MEDIA_TYPE => {
            problem_response(status, "unsupported_media_type", "the body must be application/json")
        }
        StatusCode::PAYLOAD_TOO_LARGE => problem_response(status, "body_too_large", "the body is too large"),
        StatusCode::REQUEST_TIMEOUT => problem_response(status, "body_timeout", "the body took too long"),
        _ => problem_response(status, "bad_body", "the body is broken"),
    };
    // HTTP/2 ends the stream, not the connection, and has no such header.
    Box::new(if parts.version <= http::Version::HTTP_11 { error_with_connection_close(response) } else { response })
}

fn declared_body_length(headers: &HeaderMap) -> Option<usize> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

fn declares_json_body(headers: &HeaderMap) -> bool {
    let Some(Ok(value)) = headers.get(header::CONTENT_TYPE).map(|value| value.to_str()) else { return false };
    let kind = value.split(';').next().unwrap_or_default().trim();
    kind.eq_ignore_ascii_case("application/json")
}
