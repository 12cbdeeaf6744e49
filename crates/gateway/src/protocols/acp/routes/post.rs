//! `POST /acp`: one message of a client.

use std::borrow::Cow;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use gander_domain::SessionId;
use gander_domain::caller::Caller;
use gander_wire::acp::AcpOptions;
use gander_wire::jsonrpc::{Incoming, Peer, RequestId};
use http::header::{self, HeaderMap};
use http::{HeaderValue, StatusCode, Uri};
use serde::Deserialize;
use tokio::sync::oneshot;
use uuid::Uuid;

use super::{CONNECTION_ID, SESSION_ID, addressed, empty, manner, no_connection, session, unknown_session, with_id};
use crate::http::body;
use crate::http::error::{later, not_utf8, problem};
use crate::protocols::acp::AcpState;
use crate::protocols::acp::{Addressed, Made, Post, Posted};

type Refused<T> = Result<T, Box<Response>>;

/// Takes in a message: `initialize` is answered in the body, everything else on a stream.
pub(crate) async fn take(
    state: &AcpState,
    identity: &Caller,
    uri: &Uri,
    headers: &HeaderMap,
    body: Bytes,
) -> Refused<Response> {
    if body::is_foreign(headers) {
        return Err(Box::new(not_utf8()));
    }
    let envelope: Envelope<'_> = serde_json::from_slice(&body).unwrap_or_default();
    if envelope.method.as_deref() == Some("initialize") {
        return Ok(initialize(state, identity, manner(uri)?, body).await);
    }
    let Some((id, by)) = addressed(headers)? else { return Ok(malformed(&body).unwrap_or_else(no_connection)) };
    let named = session(headers)?;
    let session = envelope.session(named.filter(|_| by == Addressed::Connection))?;
    let answers = envelope.id.clone().filter(|_| envelope.is_answer());
    let request = envelope.id.clone().filter(|_| envelope.method.is_some());
    let message = body.clone();
    match state.acp.post(id, identity, Post { message, request, answers, by, named, session }).await {
        Posted::Accepted => Ok(empty(StatusCode::ACCEPTED)),
        Posted::Answered(answer) => in_body(id, answer).await,
        Posted::Malformed(error) => Ok(json(StatusCode::BAD_REQUEST, error)),
        Posted::Denied(denied) => Err(Box::new(problem(StatusCode::FORBIDDEN, "forbidden", &denied.to_string()))),
        Posted::UnknownSession => Err(Box::new(unknown_session())),
        Posted::OtherSession => {
            let message = "Acp-Session-Id is not the session of the question";
            Err(Box::new(problem(StatusCode::BAD_REQUEST, "session_mismatch", message)))
        }
        Posted::Unknown => Err(Box::new(super::unknown_connection())),
    }
}

/// Clients of paper 000 hear the answer where they asked, however long a prompt takes.
async fn in_body(id: Uuid, answer: oneshot::Receiver<Vec<u8>>) -> Refused<Response> {
    let answer = answer.await.map_err(|_| super::unknown_connection())?;
    let mut response = json(StatusCode::OK, answer);
    with_id(&mut response, SESSION_ID, &id);
    Ok(response)
}

async fn initialize(state: &AcpState, identity: &Caller, manner: AcpOptions, body: Bytes) -> Response {
    match state.acp.make(identity, manner, body).await {
        Made::Connection(id, answer) => {
            let mut response = json(StatusCode::OK, answer);
            with_id(&mut response, CONNECTION_ID, &id);
            // Reserved for a session that the client may begin without asking for one.
            with_id(&mut response, SESSION_ID, &id);
            response
        }
        Made::Refused(answer) => json(StatusCode::OK, answer),
        Made::Malformed(error) => json(StatusCode::BAD_REQUEST, error),
        Made::Full => later(StatusCode::TOO_MANY_REQUESTS, "too_many_connections", "too many connections", 5),
    }
}

/// What an HTTP front needs to know of a message; the rest is read by the connection.
#[derive(Default, Deserialize)]
struct Envelope<'a> {
    id: Option<RequestId>,
    #[serde(borrow)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow)]
    params: Option<Named<'a>>,
}

#[derive(Default, Deserialize)]
struct Named<'a> {
    #[serde(borrow, rename = "sessionId", alias = "session_id")]
    session: Option<Cow<'a, str>>,
}

impl Envelope<'_> {
    fn is_answer(&self) -> bool {
        self.method.is_none() && self.id.is_some()
    }

    /// The session that header and parameters agree on. Either may be silent.
    fn session(&self, header: Option<SessionId>) -> Refused<Option<SessionId>> {
        let named = self.params.as_ref().and_then(|params| params.session.as_deref());
        let parsed = named.and_then(|named| named.parse().ok());
        if header.is_some() && named.is_some() && header != parsed {
            let message = "Acp-Session-Id and sessionId differ";
            return Err(Box::new(problem(StatusCode::BAD_REQUEST, "session_mismatch", message)));
        }
        Ok(header.or(parsed))
    }
}

/// The answer to what is no message.
fn malformed(body: &[u8]) -> Option<Response> {
    let mut peer = Peer::<()>::default();
    let Some(Incoming::Malformed(malformed)) = peer.receive(body) else { return None };
    peer.refuse(&malformed);
    Some(json(StatusCode::BAD_REQUEST, peer.out.bytes().trim_ascii_end().to_vec()))
}

fn json(status: StatusCode, body: Vec<u8>) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
