//! Runs over HTTP: in one answer, later, or as a stream.

use axum::Json;
use axum::extract::Request;
use axum::response::IntoResponse;
use bytes::Bytes;
use gander_domain::caller::Caller;
use gander_domain::{RunId, Seq};
use gander_http::accept_header::{accepts_event_stream, names_event_stream};
use gander_http::body::{self, BodyError};
use gander_http::sse::{SseStream, StreamPosition};
use gander_http::sse_response::{SsePermit, last_event_id};
use gander_store::Cursor;
use gander_wire::acp_rest::requests::check_acp_rest_cancel_request;
use gander_wire::acp_rest::{AcpRestDialect, AcpRestError, AcpRestRefusal, AcpRestRunRequest, ResumeRequest, RunMode};
use http::header::{HeaderMap, HeaderName, HeaderValue};
use http::{Extensions, StatusCode};

use super::{AcpRestCaller, HandlerResult, Rejection, RunInPath, acp_rest_error_rejection, acp_rest_unavailable};
use crate::protocols::acp_rest::AcpRestState;
use crate::protocols::acp_rest::{AcpRestRunStream, RunEventProjection};

const RUN_ID: HeaderName = HeaderName::from_static("run-id");

/// Names the folder of a session that the run begins: the protocol has no field for it.
const WORKSPACE: HeaderName = HeaderName::from_static("gander-workspace");

/// `POST /runs`. A `Run-ID` header, or `run_id` in the body, makes a repeated request the same run.
/// `Gander-Workspace` names the folder of a new session.
pub(crate) async fn create_acp_rest_run(
    AcpRestCaller { state, caller, base, dialect }: AcpRestCaller,
    request: Request,
) -> HandlerResult {
    let (headers, extensions, body) = read_acp_rest_run_body(request).await?;
    let mut new = AcpRestRunRequest::from_body(&body)?;
    if let Some(id) = run_id_header(&headers)? {
        if new.run.is_some_and(|run| run != id) {
            return Err(AcpRestRefusal::ids_disagree("Run-ID and run_id differ").into());
        }
        new.run = Some(id);
    }
    let mode = new.mode;
    let permit = acp_rest_run_permit(mode, &state, &caller, &headers, &extensions)?;
    let subscription = state.acp_rest.begin_run(&caller, base, new, run_workspace_header(&headers)?).await?;
    let run = subscription.run();
    let mut response = acp_rest_run_response(&state, subscription, mode, permit, (&headers, dialect)).await?;
    if let Ok(id) = HeaderValue::try_from(run.to_string()) {
        response.headers_mut().insert(RUN_ID, id);
    }
    Ok(response)
}

/// `POST /runs/{id}`.
pub(crate) async fn resume_acp_rest_run(
    AcpRestCaller { state, caller, base, dialect }: AcpRestCaller,
    RunInPath(run): RunInPath,
    request: Request,
) -> HandlerResult {
    let (headers, extensions, body) = read_acp_rest_run_body(request).await?;
    check_run_id_header(run, &headers)?;
    let resume = ResumeRequest::from_body(run, &body)?;
    let permit = acp_rest_run_permit(resume.mode, &state, &caller, &headers, &extensions)?;
    let subscription = state.acp_rest.resume_run(&caller, &base, run, &resume).await?;
    acp_rest_run_response(&state, subscription, resume.mode, permit, (&HeaderMap::new(), dialect)).await
}

/// `GET /runs/{id}`.
pub(crate) async fn get_acp_rest_run(
    AcpRestCaller { state, caller, base, dialect }: AcpRestCaller,
    RunInPath(run): RunInPath,
) -> HandlerResult {
    let _whole = state.whole_response_permit().await.map_err(acp_rest_unavailable)?;
    let found = state.acp_rest.find_run(&caller, &base, run).await?;
    Ok(Json(dialect.run_object(found.run())).into_response())
}

/// `POST /runs/{id}/cancel`.
pub(crate) async fn cancel_acp_rest_run(
    AcpRestCaller { state, caller, base, dialect }: AcpRestCaller,
    RunInPath(run): RunInPath,
    request: Request,
) -> HandlerResult {
    let (headers, _, body) = read_acp_rest_run_body(request).await?;
    check_run_id_header(run, &headers)?;
    check_acp_rest_cancel_request(run, &body)?;
    let _whole = state.whole_response_permit().await.map_err(acp_rest_unavailable)?;
    let run = state.acp_rest.cancel_run(&caller, &base, run).await?;
    Ok((StatusCode::ACCEPTED, Json(dialect.run_object(&run))).into_response())
}

/// `GET /runs/{id}/events`: all so far; or, for a client that wants a stream, from the beginning or its place on.
pub(crate) async fn list_acp_rest_run_events(
    AcpRestCaller { state, caller, base, dialect }: AcpRestCaller,
    RunInPath(run): RunInPath,
    request: Request,
) -> HandlerResult {
    let permit = SsePermit::new(&state, &caller, request.extensions())?;
    if !names_event_stream(request.headers()) {
        let (subscription, end) = state.acp_rest.run_events(&caller, &base, run).await?;
        let (projection, follower) = RunEventProjection::from_subscription(subscription, dialect);
        let (seen, incarnation, stop) =
            (StreamPosition::default(), state.services.hub.store().incarnation(), permit.stop_token());
        let follow = SseStream { follower, projection, seen, incarnation, stop };
        return Ok(permit.json_response(follow.into_json_list(end, "{\"events\":[", "]}")));
    }
    let subscription = state.acp_rest.open_run(&caller, &base, run).await?;
    stream_acp_rest_run(&state, subscription, permit, (request.headers(), dialect)).await
}

async fn acp_rest_run_response(
    state: &AcpRestState,
    subscription: AcpRestRunStream,
    mode: RunMode,
    permit: Option<SsePermit>,
    (headers, dialect): (&HeaderMap, AcpRestDialect),
) -> HandlerResult {
    match (mode, permit) {
        (RunMode::Stream, Some(permit)) => stream_acp_rest_run(state, subscription, permit, (headers, dialect)).await,
        (RunMode::Async, _) => {
            let run = subscription.wait_accepted().await?;
            Ok((StatusCode::ACCEPTED, Json(dialect.run_object(&run))).into_response())
        }
        (RunMode::Sync | RunMode::Stream, _) => {
            Ok(Json(dialect.run_object(&subscription.wait_settled().await?)).into_response())
        }
    }
}

async fn stream_acp_rest_run(
    state: &AcpRestState,
    subscription: AcpRestRunStream,
    permit: SsePermit,
    (headers, dialect): (&HeaderMap, AcpRestDialect),
) -> HandlerResult {
    let bad = |_| {
        acp_rest_error_rejection(
            StatusCode::BAD_REQUEST,
            AcpRestError::invalid("Last-Event-ID is no id of this stream"),
        )
    };
    let store = state.services.hub.store();
    let seen = match last_event_id(headers).map_err(bad)? {
        None => StreamPosition::default(),
        Some(id) => {
            let cursor = Cursor { incarnation: id.incarnation, seq: Seq(id.position.seq) };
            let gone = |_| {
                let error = AcpRestError::invalid("the log does not have this place: read the run's events anew");
                acp_rest_error_rejection(StatusCode::CONFLICT, error.with_reason("log_truncated"))
            };
            store.validate_cursor(subscription.session(), cursor).await.map_err(gone)?;
            id.position
        }
    };
    let (incarnation, stop) = (store.incarnation(), permit.stop_token());
    let (projection, follower) = RunEventProjection::from_subscription(subscription, dialect);
    Ok(permit.sse_response(SseStream { follower, projection, seen, incarnation, stop }.into_events()))
}

/// The place of a stream, if this is to be one.
fn acp_rest_run_permit(
    mode: RunMode,
    state: &AcpRestState,
    caller: &Caller,
    headers: &HeaderMap,
    extensions: &Extensions,
) -> Result<Option<SsePermit>, Rejection> {
    if mode != RunMode::Stream {
        return Ok(None);
    }
    if !accepts_event_stream(headers) {
        return Err(acp_rest_error_rejection(
            StatusCode::NOT_ACCEPTABLE,
            AcpRestError::invalid("this is a stream of text/event-stream"),
        ));
    }
    Ok(Some(SsePermit::new(state, caller, extensions)?))
}

/// The run that a header names.
fn run_id_header(headers: &HeaderMap) -> Result<Option<RunId>, AcpRestRefusal> {
    let Some(id) = headers.get(RUN_ID) else { return Ok(None) };
    let id = id.to_str().ok().and_then(|id| id.parse().ok());
    id.map(Some).ok_or_else(|| AcpRestRefusal::unreadable("Run-ID must be a UUID"))
}

/// The folder that a header names.
fn run_workspace_header(headers: &HeaderMap) -> Result<Option<String>, AcpRestRefusal> {
    let Some(folder) = headers.get(WORKSPACE) else { return Ok(None) };
    let folder = std::str::from_utf8(folder.as_bytes());
    folder
        .map(|folder| Some(folder.to_owned()))
        .map_err(|_| AcpRestRefusal::unreadable("Gander-Workspace must be UTF-8"))
}

/// A header that names a run names that of the address.
fn check_run_id_header(run: RunId, headers: &HeaderMap) -> Result<(), AcpRestRefusal> {
    match run_id_header(headers)? {
        Some(named) if named != run => {
            Err(AcpRestRefusal::ids_disagree(format!("Run-ID and the run of the address differ: {named}")))
        }
        Some(_) | None => Ok(()),
    }
}

/// A body of any type or none, but in UTF-8.
async fn read_acp_rest_run_body(request: Request) -> Result<(HeaderMap, Extensions, Bytes), Rejection> {
    match body::take_utf8_body(request).await {
        Ok((parts, bytes)) => Ok((parts.headers, parts.extensions, bytes)),
        Err(BodyError::ForeignCharset) => {
            let error = AcpRestError::invalid("the body must be UTF-8").with_reason("unsupported_media_type");
            Err(acp_rest_error_rejection(StatusCode::UNSUPPORTED_MEDIA_TYPE, error))
        }
        Err(BodyError::Broken) => Err(AcpRestRefusal::unreadable("the body is broken").into()),
    }
}
