//! `GET /acp`: the streams of a connection as server-sent events.

use std::sync::Arc;

use axum::body::Body;
use axum::response::Response;
use futures::StreamExt as _;
use gander_domain::SessionId;
use http::header::{self, HeaderMap, HeaderName};
use http::request::Parts;
use http::{HeaderValue, StatusCode};

use super::streams::Stream;
use super::{CONNECTION_ID, SESSION_ID, connection, no_connection, one, session, with_id};
use crate::door::acp::{EventId, From, Open, Unopened};
use crate::http::accept::Seat;
use crate::http::error::problem;
use crate::http::site::Site;
use crate::token::Identity;

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
const X_ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// Opens a stream; it ends with its connection or with the server.
pub(super) async fn open(
    site: &Site,
    identity: &Identity,
    stream: Stream,
    request: &Parts,
) -> Result<Response, Box<Response>> {
    let headers = &request.headers;
    let Some(id) = connection(headers)? else { return Err(Box::new(no_connection())) };
    if !accepts_events(headers) {
        let message = "this is a stream of text/event-stream";
        return Err(Box::new(problem(StatusCode::NOT_ACCEPTABLE, "not_acceptable", message)));
    }
    let session = session(headers)?;
    let from = from(headers, session)?;
    let seat = request.extensions.get::<Arc<Seat>>().cloned();
    let stop = seat.as_ref().map(|seat| seat.stop.clone()).unwrap_or_default();
    match site.acp.open(id, identity, Open { session, from, stop }).await {
        Ok(events) => {
            // What the stream takes up is given back when its body is dropped.
            let body = events.inspect(move |_| {
                let _held = (&stream, &seat);
            });
            let mut response = Response::new(Body::from_stream(body));
            let headers = response.headers_mut();
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
            headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform"));
            headers.insert(X_ACCEL_BUFFERING, HeaderValue::from_static("no"));
            with_id(&mut response, CONNECTION_ID, &id);
            if let Some(session) = session {
                with_id(&mut response, SESSION_ID, &session);
            }
            Ok(response)
        }
        Err(why) => Err(Box::new(refuse(why, session))),
    }
}

fn refuse(why: Unopened, session: Option<SessionId>) -> Response {
    match (why, session) {
        (Unopened::Unknown, None) => super::unknown_connection(),
        (Unopened::Unknown, Some(_)) => {
            problem(StatusCode::NOT_FOUND, "unknown_session", "no such connection or session")
        }
        (Unopened::Taken, _) => problem(StatusCode::CONFLICT, "stream_taken", "this stream has a reader already"),
        (Unopened::Truncated, _) => {
            problem(StatusCode::CONFLICT, "log_truncated", "the log does not have this place: load the session anew")
        }
        (Unopened::Failed, _) => {
            problem(StatusCode::SERVICE_UNAVAILABLE, "unavailable", "the store failed, see the server's log")
        }
    }
}

/// What the client has. An id that is none is refused, never read as the beginning.
fn from(headers: &HeaderMap, session: Option<SessionId>) -> Result<From, Box<Response>> {
    let bad = || Box::new(problem(StatusCode::BAD_REQUEST, "bad_event_id", "Last-Event-ID is no id of this stream"));
    let Some(id) = one(headers, &LAST_EVENT_ID).map_err(|_| bad())? else { return Ok(From::Wherever) };
    match session {
        Some(_) => id.parse::<EventId>().map(From::Event).map_err(|_| bad()),
        None if id.bytes().all(|byte| byte.is_ascii_digit()) => id.parse().map(From::Number).map_err(|_| bad()),
        None => Err(bad()),
    }
}

/// A client that says nothing takes everything.
fn accepts_events(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT);
    let mut kinds = accepted.iter().filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(','));
    let takes = |kind: &str| {
        let kind = kind.split(';').next().unwrap_or_default().trim();
        ["text/event-stream", "text/*", "*/*"].iter().any(|known| kind.eq_ignore_ascii_case(known))
    };
    !headers.contains_key(header::ACCEPT) || kinds.any(takes)
}
