//! `POST /acp`: one message of a client.

use std::borrow::Cow;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures::{StreamExt as _, stream};
use gander_domain::SessionId;
use gander_domain::caller::Caller;
use gander_http::accept_header::names_event_stream;
use gander_http::body;
use gander_http::error::{not_utf8_response, problem_response, retry_later_response};
use gander_http::sse;
use gander_http::sse_response::SsePermit;
use gander_wire::acp::AcpOptions;
use gander_wire::jsonrpc::{Incoming, Peer, RequestId};
use http::header;
use http::request::Parts;
use http::{HeaderValue, StatusCode};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::oneshot;
use uuid::Uuid;

use super::{
    CONNECTION_ID, SESSION_ID, addressed_connection_header, empty_acp_response, missing_connection_id_response,
    requested_acp_options, session_id_header, set_acp_id_header, unknown_session_response,
};
use crate::protocols::acp::AcpState;
use crate::protocols::acp::{Addressed, CreateOutcome, PostOutcome, PostedMessage, SsePipeReader};

type Refused<T> = Result<T, Box<Response>>;

/// Takes in a message: `initialize` is answered in the body, everything else on a stream.
pub(crate) async fn post_message(state: &AcpState, caller: &Caller, parts: &Parts, body: Bytes) -> Refused<Response> {
    let (uri, headers) = (&parts.uri, &parts.headers);
    if body::declares_foreign_charset(headers) {
        return Err(Box::new(not_utf8_response()));
    }
    let envelope: InboundEnvelope<'_> = serde_json::from_slice(&body).unwrap_or_default();
    if envelope.method.as_deref() == Some("initialize") {
        return Ok(post_initialize(state, caller, requested_acp_options(uri)?, body).await);
    }
    let Some((id, by)) = addressed_connection_header(headers)? else {
        return Ok(malformed_post_response(&body).unwrap_or_else(missing_connection_id_response));
    };
    let named = session_id_header(headers)?;
    let session = envelope.agreed_session(named.filter(|_| by == Addressed::Connection))?;
    let answers = envelope.id.clone().filter(|_| envelope.is_answer());
    let request = envelope.id.clone().filter(|_| envelope.method.is_some());
    let message = body.clone();
    // Only a stream that is wanted counts as one.
    let wants_events = envelope.is_prompt() && names_event_stream(headers);
    let permit = wants_events.then(|| SsePermit::new(state, caller, &parts.extensions)).transpose()?;
    let events = permit.as_ref().map(SsePermit::stop_token);
    let post = PostedMessage { message, request, answers, by, named, session, events };
    match state.acp.post_message(id, caller, post).await {
        PostOutcome::Accepted => Ok(empty_acp_response(StatusCode::ACCEPTED)),
        PostOutcome::Answered(answer, events) => match permit {
            Some(permit) => Ok(post_answer_in_stream(id, permit, events, answer)),
            None => post_answer_in_body(id, answer).await,
        },
        PostOutcome::Malformed(error) => Ok(post_json_response(StatusCode::BAD_REQUEST, error)),
        PostOutcome::Denied(denied) => {
            Err(Box::new(problem_response(StatusCode::FORBIDDEN, "forbidden", &denied.to_string())))
        }
        PostOutcome::UnknownSession => Err(Box::new(unknown_session_response())),
        PostOutcome::OtherSession => {
            let message = "Acp-Session-Id is not the session of the question";
            Err(Box::new(problem_response(StatusCode::BAD_REQUEST, "session_mismatch", message)))
        }
        PostOutcome::Unknown => Err(Box::new(super::unknown_connection_response())),
        PostOutcome::Unavailable => Err(Box::new(super::unavailable_acp_response())),
    }
}

/// Clients of the legacy goose dialect hear the answer where they asked, however long a prompt takes.
async fn post_answer_in_body(id: Uuid, answer: oneshot::Receiver<Vec<u8>>) -> Refused<Response> {
    let answer = answer.await.map_err(|_| super::unknown_connection_response())?;
    let mut response = post_json_response(StatusCode::OK, answer);
    set_acp_id_header(&mut response, SESSION_ID, &id);
    Ok(response)
}

/// What happens in the session while the request is carried out, then its answer.
fn post_answer_in_stream(
    id: Uuid,
    permit: SsePermit,
    events: Option<SsePipeReader>,
    answer: oneshot::Receiver<Vec<u8>>,
) -> Response {
    let events = match events {
        Some(events) => events.into_events().boxed(),
        None => stream::pending().boxed(),
    };
    let told = stream::unfold((events, Some(answer)), |(mut events, mut answer)| async move {
        let waiting = answer.as_mut()?;
        tokio::select! {
            // What happened before the answer is told before it.
            biased;
            event = events.next() => Some((event?, (events, answer))),
            said = waiting => {
                let mut frame = Vec::new();
                sse::append_sse_event(&mut frame, None, &said.ok()?);
                Some((Ok(Bytes::from(frame)), (events, None)))
            }
        }
    });
    let mut response = permit.sse_response(told);
    set_acp_id_header(&mut response, SESSION_ID, &id);
    response
}

async fn post_initialize(state: &AcpState, caller: &Caller, options: AcpOptions, body: Bytes) -> Response {
    match state.acp.create(caller, options, body).await {
        CreateOutcome::Connection(id, answer) => {
            let mut response = post_json_response(StatusCode::OK, answer);
            set_acp_id_header(&mut response, CONNECTION_ID, &id);
            // Reserved for a session that the client may begin without asking for one.
            set_acp_id_header(&mut response, SESSION_ID, &id);
            response
        }
        CreateOutcome::Refused(answer) => post_json_response(StatusCode::OK, answer),
        CreateOutcome::Malformed(error) => post_json_response(StatusCode::BAD_REQUEST, error),
        CreateOutcome::Full => {
            retry_later_response(StatusCode::TOO_MANY_REQUESTS, "too_many_connections", "too many connections", 5)
        }
        CreateOutcome::Unavailable => super::unavailable_acp_response(),
    }
}

/// What an HTTP front needs to know of a message; the rest is read by the connection.
#[derive(Default, Deserialize)]
struct InboundEnvelope<'a> {
    id: Option<RequestId>,
    #[serde(borrow)]
    method: Option<Cow<'a, str>>,
    /// Read apart: odd parameters must not hide whom the message answers.
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct EnvelopeParams<'a> {
    #[serde(borrow, rename = "sessionId", alias = "session_id")]
    session: Option<Cow<'a, str>>,
}

impl InboundEnvelope<'_> {
    fn is_prompt(&self) -> bool {
        self.id.is_some() && matches!(self.method.as_deref(), Some("prompt" | "session/prompt"))
    }

    fn is_answer(&self) -> bool {
        self.method.is_none() && self.id.is_some()
    }

    /// The session that header and parameters agree on. Either may be silent.
    fn agreed_session(&self, header: Option<SessionId>) -> Refused<Option<SessionId>> {
        let params = self.params.and_then(|params| serde_json::from_str::<EnvelopeParams<'_>>(params.get()).ok());
        let named = params.as_ref().and_then(|params| params.session.as_deref());
        let parsed = named.and_then(|named| named.parse().ok());
        if header.is_some() && named.is_some() && header != parsed {
            let message = "Acp-Session-Id and sessionId differ";
            return Err(Box::new(problem_response(StatusCode::BAD_REQUEST, "session_mismatch", message)));
        }
        Ok(header.or(parsed))
    }
}

/// The answer to what is no message.
fn malformed_post_response(body: &[u8]) -> Option<Response> {
    let mut peer = Peer::<()>::default();
    let Some(Incoming::Malformed(malformed)) = peer.handle_message(body) else { return None };
    peer.respond_malformed(&malformed);
    Some(post_json_response(StatusCode::BAD_REQUEST, peer.out.bytes().trim_ascii_end().to_vec()))
}

fn post_json_response(status: StatusCode, body: Vec<u8>) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
