//! `GET /acp`: the streams of a connection as server-sent events.

use axum::response::Response;
use gander_domain::SessionId;
use gander_domain::caller::Caller;
use gander_http::accept_header::accepts_event_stream;
use gander_http::error::problem_response;
use gander_http::sse_response::{LAST_EVENT_ID, SsePermit, last_event_id};
use http::StatusCode;
use http::header::HeaderMap;
use http::request::Parts;

use super::{
    CONNECTION_ID, SESSION_ID, addressed_connection_header, missing_connection_id_response, session_id_header,
    set_acp_id_header, single_acp_header,
};
use crate::protocols::acp::AcpState;
use crate::protocols::acp::{OpenError, OpenRequest, ResumeFrom};

/// Opens a stream; it ends with its connection or with the server.
pub(crate) async fn get_event_stream(
    state: &AcpState,
    caller: &Caller,
    permit: SsePermit,
    request: &Parts,
) -> Result<Response, Box<Response>> {
    let headers = &request.headers;
    let Some((id, by)) = addressed_connection_header(headers)? else {
        return Err(Box::new(missing_connection_id_response()));
    };
    if !accepts_event_stream(headers) {
        let message = "this is a stream of text/event-stream";
        return Err(Box::new(problem_response(StatusCode::NOT_ACCEPTABLE, "not_acceptable", message)));
    }
    let session = session_id_header(headers)?;
    let from = get_resume_position(headers, session)?;
    match state.acp.open_stream(id, by, caller, OpenRequest { session, from, stop: permit.stop_token() }).await {
        Ok(events) => {
            let mut response = permit.sse_response(events.into_events());
            set_acp_id_header(&mut response, CONNECTION_ID, &id);
            if let Some(session) = session {
                set_acp_id_header(&mut response, SESSION_ID, &session);
            }
            Ok(response)
        }
        Err(why) => Err(Box::new(get_refusal(why, session))),
    }
}

fn get_refusal(why: OpenError, session: Option<SessionId>) -> Response {
    match (why, session) {
        (OpenError::Unknown, None) => super::unknown_connection_response(),
        (OpenError::Unknown, Some(_)) => {
            problem_response(StatusCode::NOT_FOUND, "unknown_session", "no such connection or session")
        }
        (OpenError::Taken, _) => {
            problem_response(StatusCode::CONFLICT, "stream_taken", "this stream has a reader already")
        }
        (OpenError::Truncated, _) => problem_response(
            StatusCode::CONFLICT,
            "log_truncated",
            "the log does not have this place: load the session anew",
        ),
        (OpenError::Failed, _) => super::unavailable_acp_response(),
    }
}

/// What the client has. An id that is none is refused, never read as the beginning.
fn get_resume_position(headers: &HeaderMap, session: Option<SessionId>) -> Result<ResumeFrom, Box<Response>> {
    let bad =
        || Box::new(problem_response(StatusCode::BAD_REQUEST, "bad_event_id", "Last-Event-ID is no id of this stream"));
    if session.is_some() {
        return Ok(last_event_id(headers).map_err(|_| bad())?.map_or(ResumeFrom::Wherever, ResumeFrom::Event));
    }
    match single_acp_header(headers, &LAST_EVENT_ID).map_err(|_| bad())? {
        None => Ok(ResumeFrom::Wherever),
        Some(id) if id.bytes().all(|byte| byte.is_ascii_digit()) => {
            id.parse().map(ResumeFrom::Number).map_err(|_| bad())
        }
        Some(_) => Err(bad()),
    }
}
