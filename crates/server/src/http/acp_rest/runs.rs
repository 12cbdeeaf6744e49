//! Runs over HTTP: in one answer, later, or as a stream.

use std::sync::Arc;

use axum::extract::{Path, Request, State};
use axum::response::IntoResponse;
use axum::{Extension, Json};
use bytes::Bytes;
use gander_domain::{RunId, Seq};
use gander_wire::acp_rest::{Error, NewRun, Refusal, Resume, RunMode};
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Extensions, StatusCode};
use serde_json::json;

use super::{Answer, Called, No, refuse};
use crate::door::acp_rest::{RunEvents, Watched};
use crate::http::body;
use crate::http::site::Site;
use crate::http::sse::{Opening, accepts_events, last_event_id};
use crate::log::Cursor;
use crate::sse::{Follow, Position};
use crate::token::Identity;

const RUN_ID: HeaderName = HeaderName::from_static("run-id");

/// `POST /runs`. A `Run-ID` header, or `run_id` in the body, makes a repeated request the same run.
pub(super) async fn create(
    State(site): State<Arc<Site>>,
    Extension(identity): Extension<Identity>,
    Called(base): Called,
    request: Request,
) -> Answer {
    let (headers, extensions, body) = parts(request).await?;
    let mut new = NewRun::read(&body)?;
    if let Some(id) = headers.get(RUN_ID) {
        let id = id.to_str().ok().and_then(|id| id.parse().ok());
        new.run = Some(id.ok_or_else(|| Refusal::unreadable("Run-ID must be a UUID"))?);
    }
    let mode = new.mode;
    let opening = opening(mode, &site, &identity, &headers, &extensions)?;
    let watched = site.acp_rest.begin(&identity, base, new).await?;
    let run = watched.run();
    let mut response = answer(&site, watched, mode, opening, &headers).await?;
    if let Ok(id) = HeaderValue::try_from(run.to_string()) {
        response.headers_mut().insert(RUN_ID, id);
    }
    Ok(response)
}

/// `POST /runs/{id}`.
pub(super) async fn resume(
    State(site): State<Arc<Site>>,
    Extension(identity): Extension<Identity>,
    Called(base): Called,
    Path(id): Path<String>,
    request: Request,
) -> Answer {
    let run = run_id(&id)?;
    let (headers, extensions, body) = parts(request).await?;
    let resume = Resume::read(&body)?;
    let opening = opening(resume.mode, &site, &identity, &headers, &extensions)?;
    let watched = site.acp_rest.resume(&identity, &base, run, &resume).await?;
    answer(&site, watched, resume.mode, opening, &HeaderMap::new()).await
}

/// `GET /runs/{id}`.
pub(super) async fn find(
    State(site): State<Arc<Site>>,
    Extension(identity): Extension<Identity>,
    Called(base): Called,
    Path(id): Path<String>,
) -> Answer {
    let found = site.acp_rest.find(&identity, &base, run_id(&id)?).await?;
    Ok(Json(found.run()).into_response())
}

/// `POST /runs/{id}/cancel`.
pub(super) async fn cancel(
    State(site): State<Arc<Site>>,
    Extension(identity): Extension<Identity>,
    Called(base): Called,
    Path(id): Path<String>,
) -> Answer {
    let run = site.acp_rest.cancel(&identity, &base, run_id(&id)?).await?;
    Ok((StatusCode::ACCEPTED, Json(run)).into_response())
}

/// `GET /runs/{id}/events`: all so far; or, for a client that wants a stream, from the beginning or its place on.
pub(super) async fn events(
    State(site): State<Arc<Site>>,
    Extension(identity): Extension<Identity>,
    Called(base): Called,
    Path(id): Path<String>,
    request: Request,
) -> Answer {
    let run = run_id(&id)?;
    if !wants_stream(request.headers()) {
        let events = site.acp_rest.events(&identity, &base, run).await?;
        return Ok(Json(json!({ "events": events })).into_response());
    }
    let opening = Opening::new(&site, &identity, request.extensions())?;
    let watched = site.acp_rest.open(&identity, &base, run).await?;
    stream(&site, watched, opening, request.headers()).await
}

async fn answer(site: &Site, watched: Watched, mode: RunMode, opening: Option<Opening>, headers: &HeaderMap) -> Answer {
    match (mode, opening) {
        (RunMode::Stream, Some(opening)) => stream(site, watched, opening, headers).await,
        (RunMode::Async, _) => Ok((StatusCode::ACCEPTED, Json(watched.accepted().await?)).into_response()),
        (RunMode::Sync | RunMode::Stream, _) => Ok(Json(watched.settled().await?).into_response()),
    }
}

async fn stream(site: &Site, watched: Watched, opening: Opening, headers: &HeaderMap) -> Answer {
    let bad = |_| refuse(StatusCode::BAD_REQUEST, Error::invalid("Last-Event-ID is no id of this stream"));
    let store = site.app.desk().hub.store();
    let seen = match last_event_id(headers).map_err(bad)? {
        None => Position::default(),
        Some(id) => {
            let cursor = Cursor { incarnation: id.incarnation, seq: Seq(id.position.seq) };
            let gone = |_| {
                let error = Error::invalid("the log does not have this place: read the run's events anew");
                refuse(StatusCode::CONFLICT, error.because("log_truncated"))
            };
            store.honour(watched.session(), cursor).await.map_err(gone)?;
            id.position
        }
    };
    let (incarnation, stop) = (store.incarnation(), opening.stop());
    let (reading, follower) = RunEvents::of(watched);
    Ok(opening.response(Follow { follower, reading, seen, incarnation, stop }.events()))
}

/// The place of a stream, if this is to be one.
fn opening(
    mode: RunMode,
    site: &Site,
    identity: &Identity,
    headers: &HeaderMap,
    extensions: &Extensions,
) -> Result<Option<Opening>, No> {
    if mode != RunMode::Stream {
        return Ok(None);
    }
    if !accepts_events(headers) {
        return Err(refuse(StatusCode::NOT_ACCEPTABLE, Error::invalid("this is a stream of text/event-stream")));
    }
    Ok(Some(Opening::new(site, identity, extensions)?))
}

/// A body of any type or none, but in UTF-8.
async fn parts(request: Request) -> Result<(HeaderMap, Extensions, Bytes), No> {
    let (parts, body) = request.into_parts();
    if body::is_foreign(&parts.headers) {
        return Err(refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, Error::invalid("the body must be UTF-8")));
    }
    let body = axum::body::to_bytes(body, usize::MAX).await;
    let body = body.map_err(|_| Refusal::unreadable("the body is broken"))?;
    Ok((parts.headers, parts.extensions, body))
}

fn run_id(id: &str) -> Result<RunId, Refusal> {
    id.parse().map_err(|_| Refusal::unreadable("a run's id is a UUID"))
}

fn wants_stream(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    accepted.flat_map(|value| value.split(',')).any(|kind| kind.trim().starts_with("text/event-stream"))
}
