//! What a request came to, whatever the binding: one value, nothing, or a task's updates as events.

use axum::response::Response;
use gander_domain::Seq;
use gander_http::sse::{SseStream, StreamPosition};
use gander_http::sse_response::{SsePermit, last_event_id};
use gander_store::Cursor;
use gander_wire::a2a::json::{self, JsonEventFrame};
use gander_wire::a2a::{A2aError, A2aErrorKind, A2aRequest, TaskSubject};
use http::request::Parts;
use serde_json::Value;
use tokio::sync::OwnedSemaphorePermit;

use super::{agent_card, with_a2a_extensions_header};
use crate::protocols::a2a::A2aState;
use crate::protocols::a2a::{A2aAnswer, A2aCaller, TaskStream};

/// What is told to a client that speaks JSON.
pub(crate) enum A2aResponse {
    Value(Value),
    /// That it is done.
    Nothing,
    /// Everything from here on.
    Events(Response),
}

/// Carries out a request; `frame` is how this binding puts an update.
pub(crate) async fn a2a_response(
    state: &A2aState,
    caller: &A2aCaller,
    parts: &Parts,
    request: A2aRequest,
    frame: impl FnOnce(&TaskSubject) -> JsonEventFrame,
) -> Result<A2aResponse, A2aError> {
    let resumed = match &request {
        A2aRequest::Subscribe { id } => resume_task_response(state, caller, parts, id).await?,
        A2aRequest::Send(_)
        | A2aRequest::Stream(_)
        | A2aRequest::Get { .. }
        | A2aRequest::List(_)
        | A2aRequest::Cancel { .. }
        | A2aRequest::SetPush(_)
        | A2aRequest::GetPush { .. }
        | A2aRequest::ListPush { .. }
        | A2aRequest::DeletePush { .. }
        | A2aRequest::ExtendedCard => None,
    };
    let _whole = a2a_whole_response_permit(state, &request).await?;
    let (stream, seen) = match resumed {
        Some(resumed) => resumed,
        None => match state.a2a.handle_request(caller, request).await? {
            A2aAnswer::Stream(stream) => (*stream, StreamPosition::default()),
            answer @ (A2aAnswer::Sent(_)
            | A2aAnswer::Task(_)
            | A2aAnswer::Page(_)
            | A2aAnswer::Push(_)
            | A2aAnswer::Pushes(_)
            | A2aAnswer::Deleted
            | A2aAnswer::Card(_)) => {
                return Ok(
                    a2a_response_json(state, caller, parts, &answer).map_or(A2aResponse::Nothing, A2aResponse::Value)
                );
            }
        },
    };
    let frame = frame(stream.subject());
    Ok(A2aResponse::Events(
        task_sse_response(state, caller, parts, stream, seen, frame).unwrap_or_else(|refusal| *refusal),
    ))
}

/// Waits for the permit to make a response, if it holds whole tasks.
pub(crate) async fn a2a_whole_response_permit(
    state: &A2aState,
    request: &A2aRequest,
) -> Result<Option<OwnedSemaphorePermit>, A2aError> {
    if !matches!(request, A2aRequest::Get { .. } | A2aRequest::List(_)) {
        return Ok(None);
    }
    let permit = state.whole_response_permit().await;
    permit.map(Some).map_err(|error| A2aError::new(A2aErrorKind::Unavailable, error.to_string()))
}

/// An answer that is one value.
pub(crate) fn a2a_response_json(
    state: &A2aState,
    caller: &A2aCaller,
    parts: &Parts,
    answer: &A2aAnswer,
) -> Option<Value> {
    let dialect = caller.dialect;
    match answer {
        A2aAnswer::Sent(update) => Some(json::a2a_stream_event_json(dialect, update)),
        A2aAnswer::Task(task) => Some(json::a2a_task_json(dialect, task)),
        A2aAnswer::Page(page) => Some(json::a2a_task_page_json(page)),
        A2aAnswer::Push(config) => Some(json::a2a_push_config_json(dialect, config)),
        A2aAnswer::Pushes(configs) => Some(json::a2a_push_configs_json(dialect, configs)),
        A2aAnswer::Card(commands) => {
            Some(agent_card::card_for_version(state, parts, dialect, (&caller.agent, commands)))
        }
        A2aAnswer::Deleted | A2aAnswer::Stream(_) => None,
    }
}

/// The stream of a client that was cut off and says where. A place that nobody knows is never read as the beginning.
async fn resume_task_response(
    state: &A2aState,
    caller: &A2aCaller,
    parts: &Parts,
    task: &str,
) -> Result<Option<(TaskStream, StreamPosition)>, A2aError> {
    let seen = last_event_id(&parts.headers);
    let Some(id) = seen.map_err(|_| A2aError::invalid_field("Last-Event-ID", "is no id of this stream"))? else {
        return Ok(None);
    };
    let cursor = Cursor { incarnation: id.incarnation, seq: Seq(id.position.seq) };
    let stream = state.a2a.resume_stream(caller, task, cursor).await?;
    Ok(Some((stream, id.position)))
}

/// A task's updates as server-sent events.
fn task_sse_response(
    state: &A2aState,
    caller: &A2aCaller,
    parts: &Parts,
    stream: TaskStream,
    seen: StreamPosition,
    frame: JsonEventFrame,
) -> Result<Response, Box<Response>> {
    let permit = SsePermit::new(state, &caller.identity, &parts.extensions)?;
    let (follower, projection) = stream.into_projection(frame);
    let follow =
        SseStream { follower, projection, seen, incarnation: state.a2a.incarnation(), stop: permit.stop_token() };
    Ok(with_a2a_extensions_header(permit.sse_response(follow.into_events()), caller))
}
