//! `/acp`: the Agent Client Protocol over WebSocket and streamable HTTP.

mod forward;
mod get;
mod post;

use std::sync::Arc;
use std::time::Instant;

use axum::Extension;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use axum::routing::on;
use bytes::Bytes;
use gander_domain::SessionId;
use gander_domain::caller::{Caller, Scope};
use gander_http::error::{problem_response, retry_later_response};
use gander_http::route::{Access, Payload, Route, Size, Verb};
use gander_http::sse_response::SsePermit;
use gander_http::websocket_upgrade::{self, WebSocketUpgrade};
use gander_wire::acp::AcpOptions;
use http::header::{HeaderMap, HeaderName};
use http::request::Parts;
use http::{HeaderValue, StatusCode, Uri};
use uuid::Uuid;

use super::{Addressed, CloseOutcome, MessagePacer, ShutdownSignals};
use crate::protocols::acp::AcpState;

pub(crate) use self::forward::node_client;

/// Which connection a request belongs to.
const CONNECTION_ID: HeaderName = HeaderName::from_static("acp-connection-id");
/// Which session it is about.
const SESSION_ID: HeaderName = HeaderName::from_static("acp-session-id");

/// One endpoint.
pub(crate) const ROUTES: &[Route<Arc<AcpState>>] = &[
    Route::get("/acp", PROMPT, |verb| on(verb, handle_acp_get)),
    Route::post("/acp", PROMPT, Payload::Json(Size::Prompt), |verb| on(verb, handle_acp_post)),
    Route { verb: Verb::Delete, ..Route::get("/acp", PROMPT, |verb| on(verb, handle_acp_delete)) },
];

const PROMPT: Access = Access::Token(Scope::Prompt);

/// Opens a WebSocket or a stream of events.
async fn handle_acp_get(
    State(state): State<Arc<AcpState>>,
    Extension(caller): Extension<Caller>,
    request: Request,
) -> Response {
    let permit = match SsePermit::new(&state, &caller, request.extensions()) {
        Ok(permit) => permit,
        Err(refusal) => return *refusal,
    };
    if websocket_upgrade::wants_websocket(request.headers()) {
        return match requested_acp_options(request.uri()) {
            Ok(options) => accept_acp_websocket(&state, caller, permit, options, request),
            Err(refusal) => *refusal,
        };
    }
    let (parts, _) = request.into_parts();
    if let Ok(Some((id, _))) = addressed_connection_header(&parts.headers)
        && let Some(response) = forward::pass_on_to_holder(&state, id, &parts, Bytes::new()).await
    {
        return forward::hold_stream_permit(response, permit);
    }
    get::get_event_stream(&state, &caller, permit, &parts).await.unwrap_or_else(|refusal| *refusal)
}

/// Answers the handshake of a WebSocket.
fn accept_acp_websocket(
    state: &Arc<AcpState>,
    caller: Caller,
    permit: SsePermit,
    options: AcpOptions,
    request: Request,
) -> Response {
    let options = options.or_default(state.acp.defaults());
    let handshake = match WebSocketUpgrade::from_request(permit, request) {
        Ok(handshake) => handshake,
        Err(refusal) => return *refusal,
    };
    let ending = ShutdownSignals { soon: state.ending.clone(), now: handshake.stop_token() };
    let (services, large_responses) = (Arc::clone(&state.services), Arc::clone(&state.large_responses));
    let (counted, who) = (Arc::clone(state), caller.clone());
    let pace: MessagePacer = Arc::new(move || counted.quotas.charge_message(&who, Instant::now()));
    let mut response = handshake.accept(move |stream| async move {
        super::serve_acp_websocket(services, large_responses, stream, &caller, options, pace, ending).await
    });
    set_acp_id_header(&mut response, CONNECTION_ID, &Uuid::now_v7());
    response
}

/// Takes in a message.
async fn handle_acp_post(
    State(state): State<Arc<AcpState>>,
    Extension(caller): Extension<Caller>,
    request: Parts,
    body: Bytes,
) -> Response {
    if let Ok(Some((id, _))) = addressed_connection_header(&request.headers)
        && let Some(response) = forward::pass_on_to_holder(&state, id, &request, body.clone()).await
    {
        return response;
    }
    post::post_message(&state, &caller, &request, body).await.unwrap_or_else(|refusal| *refusal)
}

/// Ends a connection. Its runs go on.
async fn handle_acp_delete(
    State(state): State<Arc<AcpState>>,
    Extension(caller): Extension<Caller>,
    request: Parts,
) -> Response {
    let id = match addressed_connection_header(&request.headers) {
        Ok(Some((id, _))) => id,
        Ok(None) => return missing_connection_id_response(),
        Err(refusal) => return *refusal,
    };
    if let Some(response) = forward::pass_on_to_holder(&state, id, &request, Bytes::new()).await {
        return response;
    }
    match state.acp.close_connection(id, &caller).await {
        CloseOutcome::Over => empty_acp_response(StatusCode::ACCEPTED),
        CloseOutcome::Unknown => unknown_connection_response(),
        CloseOutcome::Unavailable => unavailable_acp_response(),
    }
}

/// The connection that a request names. An id that we cannot have made is the id of none.
fn connection_id_header(headers: &HeaderMap) -> Result<Option<Uuid>, Box<Response>> {
    let Some(value) = single_acp_header(headers, &CONNECTION_ID)? else { return Ok(None) };
    value.parse().map(Some).map_err(|_| Box::new(unknown_connection_response()))
}

/// The connection that a request names, or that of the session which it names alone.
fn addressed_connection_header(headers: &HeaderMap) -> Result<Option<(Uuid, Addressed)>, Box<Response>> {
    if let Some(id) = connection_id_header(headers)? {
        return Ok(Some((id, Addressed::Connection)));
    }
    Ok(session_id_header(headers)?.map(|session| (session.uuid(), Addressed::Session)))
}

/// How the client wants to be spoken to, as the address says: `?dialect=`.
fn requested_acp_options(uri: &Uri) -> Result<AcpOptions, Box<Response>> {
    let pairs = uri.query().unwrap_or_default().split('&').filter_map(|pair| pair.split_once('='));
    let named = pairs.into_iter().find(|(name, _)| *name == "dialect").map(|(_, value)| value.parse());
    let dialect =
        named.transpose().map_err(|error: String| problem_response(StatusCode::BAD_REQUEST, "bad_dialect", &error))?;
    Ok(AcpOptions::with_dialect(dialect))
}

/// The session that a request names.
fn session_id_header(headers: &HeaderMap) -> Result<Option<SessionId>, Box<Response>> {
    let Some(value) = single_acp_header(headers, &SESSION_ID)? else { return Ok(None) };
    value.parse().map(Some).map_err(|_| Box::new(unknown_session_response()))
}

/// A header that may be there once.
fn single_acp_header<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, Box<Response>> {
    let mut values = headers.get_all(name).iter();
    let (value, more) = (values.next(), values.next());
    match value.map(HeaderValue::to_str) {
        None => Ok(None),
        Some(Ok(value)) if more.is_none() => Ok(Some(value.trim())),
        Some(Ok(_) | Err(_)) => Err(Box::new(problem_response(
            StatusCode::BAD_REQUEST,
            "bad_header",
            "a header is there twice, or is no text",
        ))),
    }
}

fn set_acp_id_header(response: &mut Response, name: HeaderName, id: &impl ToString) {
    if let Ok(value) = HeaderValue::try_from(id.to_string()) {
        response.headers_mut().insert(name, value);
    }
}

fn empty_acp_response(status: StatusCode) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}

fn unavailable_acp_response() -> Response {
    retry_later_response(StatusCode::SERVICE_UNAVAILABLE, "unavailable", "the store failed, see the server's log", 1)
}

fn missing_connection_id_response() -> Response {
    problem_response(StatusCode::BAD_REQUEST, "no_connection", "Acp-Connection-Id is missing: begin with initialize")
}

fn unknown_connection_response() -> Response {
    problem_response(StatusCode::NOT_FOUND, "unknown_connection", "no such connection: begin with initialize")
}

fn unknown_session_response() -> Response {
    problem_response(StatusCode::NOT_FOUND, "unknown_session", "no such session")
}
