//! Runs over HTTP: all events at the end, or each as it happens.

use std::sync::Arc;

use axum::extract::{Path, Request, State};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use gander_domain::Outcome;
use gander_domain::caller::Caller;
use gander_wire::adk::input::Address;
use gander_wire::adk::{Event, Refusal, RunRequest, Stage};
use http::StatusCode;
use http::header::HeaderMap;
use serde_json::{Value, json};

use super::{Answer, No, whole};
use crate::http::sse_response::{Opening, accepts_events, last_event_id};
use crate::protocols::adk::AdkState;
use crate::protocols::adk::Begun;
use crate::protocols::adk::stream::{self, Listening};

type Place = Path<(String, String, String)>;

/// `POST /run`.
pub(crate) async fn run(state: State<Arc<AdkState>>, identity: Extension<Caller>, request: Request) -> Answer {
    at_once(state, identity, None, request).await
}

/// `POST {S}/{id}/run`, which no official server has and many clients call.
pub(crate) async fn run_at(
    state: State<Arc<AdkState>>,
    identity: Extension<Caller>,
    place: Place,
    request: Request,
) -> Answer {
    at_once(state, identity, Some(address(place)), request).await
}

/// `POST /run_sse`.
pub(crate) async fn run_sse(state: State<Arc<AdkState>>, identity: Extension<Caller>, request: Request) -> Answer {
    as_it_happens(state, identity, None, request).await
}

/// `POST {S}/{id}/run_sse`, which no official server has and many clients call.
pub(crate) async fn run_sse_at(
    state: State<Arc<AdkState>>,
    identity: Extension<Caller>,
    place: Place,
    request: Request,
) -> Answer {
    as_it_happens(state, identity, Some(address(place)), request).await
}

async fn at_once(
    State(state): State<Arc<AdkState>>,
    Extension(identity): Extension<Caller>,
    place: Option<Address>,
    request: Request,
) -> Answer {
    let (_, _, body) = whole(request).await?;
    let mut request = RunRequest::read(&body, place)?;
    request.streaming = false;
    let mut watched = match state.adk.begin(&identity, request).await? {
        Begun::Watching(watched) => watched,
        Begun::Nothing => return Ok(Json(json!([])).into_response()),
        Begun::Unknown(id) => return Err(Refusal::new(400, stream::unknown(&id)).into()),
    };
    let mut events: Vec<Event> = Vec::new();
    while let Some(more) = watched.next().await? {
        events.extend(more);
    }
    Ok(match watched.stage() {
        Stage::Ended(Outcome::Failed { reason, message }) => failure(reason, message, &events),
        Stage::Ended(_) | Stage::Waiting | Stage::Running | Stage::Asking => Json(events).into_response(),
    })
}

/// What happened before the failure is not lost to the caller.
fn failure(reason: &str, message: &str, events: &[Event]) -> Response {
    let text = format!("{reason}: {message}");
    let body = json!({ "detail": text, "error": text, "events": events });
    (StatusCode::INTERNAL_SERVER_ERROR, Json(body)).into_response()
}

async fn as_it_happens(
    State(state): State<Arc<AdkState>>,
    Extension(identity): Extension<Caller>,
    place: Option<Address>,
    request: Request,
) -> Answer {
    let (headers, extensions, body) = whole(request).await?;
    if !accepts_events(&headers) {
        return Err(Refusal::new(406, "this is a stream of text/event-stream").into());
    }
    not_again(&headers)?;
    let request = RunRequest::read(&body, place)?;
    let opening = Opening::new(&state, &identity, &extensions)?;
    let one_event = request.one_event;
    let (stop, join) = (opening.stop(), state.adk.settings().join.0);
    let listening = match state.adk.begin(&identity, request).await? {
        Begun::Watching(watched) => {
            let closes = state.adk.settings().like_adk2goose;
            Listening::new(*watched, one_event, join, stop).closing(closes)
        }
        Begun::Nothing => return Ok(opening.response(futures::stream::empty())),
        Begun::Unknown(id) => {
            let text = stream::unknown(&id);
            let last: Value = stream::error("ValueError", &text);
            return Ok(opening.response(futures::stream::once(async move { Ok(stream::frame(&last)) })));
        }
    };
    Ok(opening.response(listening.events()))
}

/// These streams have no ids and begin a run each: whoever wants the rest of one must not begin another.
fn not_again(headers: &HeaderMap) -> Result<(), No> {
    match last_event_id(headers) {
        Ok(None) => Ok(()),
        Ok(Some(_)) => Err(Refusal::new(409, "this stream is not gone on with: read the session").into()),
        Err(_) => Err(Refusal::new(400, "Last-Event-ID is not an id of this stream").into()),
    }
}

fn address(Path((app, user, session)): Place) -> Address {
    Address { app, user, session }
}
