//! Runs over HTTP: all events at the end, or each as it happens.

use std::sync::Arc;

use axum::extract::{Path, Request, State};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use gander_domain::Outcome;
use gander_domain::caller::Caller;
use gander_http::accept_header::accepts_event_stream;
use gander_http::sse_response::{SsePermit, last_event_id};
use gander_wire::adk::requests::SessionAddress;
use gander_wire::adk::{AdkEvent, AdkRefusal, AdkRunRequest, RunStage};
use http::StatusCode;
use http::header::HeaderMap;
use serde_json::{Value, json};

use super::{HandlerResult, Rejection, read_adk_body};
use crate::protocols::adk::AdkState;
use crate::protocols::adk::BeginOutcome;
use crate::protocols::adk::adk_error_status;
use crate::protocols::adk::stream::{self, AdkRunStream};

type SessionPathNames = Path<(String, String, String)>;

/// `POST /run`.
pub(crate) async fn post_adk_run(
    state: State<Arc<AdkState>>,
    caller: Extension<Caller>,
    request: Request,
) -> HandlerResult {
    adk_run_to_end(state, caller, None, request).await
}

/// `POST {S}/{id}/run`, which no official server has and many clients call.
pub(crate) async fn post_adk_run_at_session(
    state: State<Arc<AdkState>>,
    caller: Extension<Caller>,
    path: SessionPathNames,
    request: Request,
) -> HandlerResult {
    adk_run_to_end(state, caller, Some(run_session_address(path)), request).await
}

/// `POST /run_sse`.
pub(crate) async fn post_adk_run_sse(
    state: State<Arc<AdkState>>,
    caller: Extension<Caller>,
    request: Request,
) -> HandlerResult {
    adk_run_streaming(state, caller, None, request).await
}

/// `POST {S}/{id}/run_sse`, which no official server has and many clients call.
pub(crate) async fn post_adk_run_sse_at_session(
    state: State<Arc<AdkState>>,
    caller: Extension<Caller>,
    path: SessionPathNames,
    request: Request,
) -> HandlerResult {
    adk_run_streaming(state, caller, Some(run_session_address(path)), request).await
}

async fn adk_run_to_end(
    State(state): State<Arc<AdkState>>,
    Extension(caller): Extension<Caller>,
    address: Option<SessionAddress>,
    request: Request,
) -> HandlerResult {
    let (_, _, body) = read_adk_body(request).await?;
    let mut request = AdkRunRequest::from_body(&body, address)?;
    request.streaming = false;
    let mut subscription = match state.adk.begin_run(&caller, request).await? {
        BeginOutcome::Watching(subscription) => subscription,
        BeginOutcome::Nothing => return Ok(Json(json!([])).into_response()),
        BeginOutcome::Unknown(id) => return Err(AdkRefusal::new(400, stream::stream_unknown_question_text(&id)).into()),
    };
    let mut events: Vec<AdkEvent> = Vec::new();
    while let Some(more) = subscription.next_events().await? {
        events.extend(more);
    }
    Ok(match subscription.stage() {
        RunStage::Ended(Outcome::Failed { reason, message }) => {
            // An agent here fails as in ADK, with 500 whatever the reason.
            let status = if state.adk.settings().like_adk2goose { adk_error_status(reason) } else { 500 };
            failed_run_response(status, (reason, message), &events)
        }
        RunStage::Ended(_) | RunStage::Waiting | RunStage::Running | RunStage::Asking => Json(events).into_response(),
    })
}

/// What happened before the failure is not lost to the caller.
fn failed_run_response(status: u16, (reason, message): (&str, &str), events: &[AdkEvent]) -> Response {
    let text = format!("{reason}: {message}");
    let body = json!({ "detail": text, "error": text, "events": events });
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    (status, Json(body)).into_response()
}

async fn adk_run_streaming(
    State(state): State<Arc<AdkState>>,
    Extension(caller): Extension<Caller>,
    address: Option<SessionAddress>,
    request: Request,
) -> HandlerResult {
    let (headers, extensions, body) = read_adk_body(request).await?;
    if !accepts_event_stream(&headers) {
        return Err(AdkRefusal::new(406, "this is a stream of text/event-stream").into());
    }
    refuse_run_resume(&headers)?;
    let request = AdkRunRequest::from_body(&body, address)?;
    let permit = SsePermit::new(&state, &caller, &extensions)?;
    let one_event = request.one_event;
    let (stop, join) = (permit.stop_token(), state.adk.settings().join.0);
    let listening = match state.adk.begin_run(&caller, request).await? {
        BeginOutcome::Watching(subscription) => {
            let closes = state.adk.settings().like_adk2goose;
            AdkRunStream::new(*subscription, one_event, join, stop).with_closing_event(closes)
        }
        BeginOutcome::Nothing => return Ok(permit.sse_response(futures::stream::empty())),
        BeginOutcome::Unknown(id) => {
            let text = stream::stream_unknown_question_text(&id);
            let last: Value = stream::stream_error_event("ValueError", &text);
            return Ok(
                permit.sse_response(futures::stream::once(async move { Ok(stream::single_stream_frame(&last)) }))
            );
        }
    };
    Ok(permit.sse_response(listening.into_events()))
}

/// These streams have no ids and begin a run each: whoever wants the rest of one must not begin another.
fn refuse_run_resume(headers: &HeaderMap) -> Result<(), Rejection> {
    match last_event_id(headers) {
        Ok(None) => Ok(()),
        Ok(Some(_)) => Err(AdkRefusal::new(409, "this stream is not gone on with: read the session").into()),
        Err(_) => Err(AdkRefusal::new(400, "Last-Event-ID is not an id of this stream").into()),
    }
}

fn run_session_address(Path((app, user, session)): SessionPathNames) -> SessionAddress {
    SessionAddress { app, user, session }
}
