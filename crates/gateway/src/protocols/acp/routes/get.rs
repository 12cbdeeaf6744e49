//! `GET /acp`: the streams of a connection as server-sent events.

use axum::response::Response;
use gander_domain::SessionId;
use gander_domain::caller::Caller;
use http::StatusCode;
use http::header::HeaderMap;
use http::request::Parts;

use super::{CONNECTION_ID, SESSION_ID, connection, no_connection, one, session, with_id};
use crate::http::error::problem;
use crate::http::sse_response::{LAST_EVENT_ID, Opening, accepts_events, last_event_id};
use crate::protocols::acp::AcpState;
use crate::protocols::acp::{From, Open, Unopened};

/// Opens a stream; it ends with its connection or with the server.
pub(crate) async fn open(
    state: &AcpState,
    identity: &Caller,
    opening: Opening,
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
    match state.acp.open(id, identity, Open { session, from, stop: opening.stop() }).await {
        Ok(events) => {
            let mut response = opening.response(events);
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
    if session.is_some() {
        return Ok(last_event_id(headers).map_err(|_| bad())?.map_or(From::Wherever, From::Event));
    }
    match one(headers, &LAST_EVENT_ID).map_err(|_| bad())? {
        None => Ok(From::Wherever),
        Some(id) if id.bytes().all(|byte| byte.is_ascii_digit()) => id.parse().map(From::Number).map_err(|_| bad()),
        Some(_) => Err(bad()),
    }
}
