//! What a request came to, whatever the binding: one value, nothing, or a task's updates as events.

use axum::response::Response;
use gander_domain::Seq;
use gander_store::Cursor;
use gander_wire::a2a::encode::{self, Frame};
use gander_wire::a2a::{Error, Request as Wanted, Subject};
use http::request::Parts;
use serde_json::Value;

use super::{agent_card, with_extensions};
use crate::http::sse_response::{Opening, last_event_id};
use crate::protocols::a2a::A2aState;
use crate::protocols::a2a::{Answer, Caller, Stream};
use crate::sse::{Follow, Position};

/// What is told to a client that speaks JSON.
pub(crate) enum Told {
    /// This.
    Value(Value),
    /// That it is done.
    Nothing,
    /// Everything from here on.
    Events(Response),
}

/// Carries out a request; `frame` is how this binding puts an update.
pub(crate) async fn told(
    state: &A2aState,
    caller: &Caller,
    parts: &Parts,
    request: Wanted,
    frame: impl FnOnce(&Subject) -> Frame,
) -> Result<Told, Error> {
    let resumed = match &request {
        Wanted::Subscribe { id } => resumed(state, caller, parts, id).await?,
        Wanted::Send(_)
        | Wanted::Stream(_)
        | Wanted::Get { .. }
        | Wanted::List(_)
        | Wanted::Cancel { .. }
        | Wanted::SetPush(_)
        | Wanted::GetPush { .. }
        | Wanted::ListPush { .. }
        | Wanted::DeletePush { .. }
        | Wanted::ExtendedCard => None,
    };
    let is_whole = matches!(request, Wanted::Get { .. } | Wanted::List(_));
    let _whole = if is_whole { state.whole_response_permit().await } else { None };
    let (stream, seen) = match resumed {
        Some(resumed) => resumed,
        None => match state.a2a.call(caller, request).await? {
            Answer::Stream(stream) => (*stream, Position::default()),
            answer @ (Answer::Sent(_)
            | Answer::Task(_)
            | Answer::Page(_)
            | Answer::Push(_)
            | Answer::Pushes(_)
            | Answer::Deleted
            | Answer::Card) => return Ok(value(state, caller, parts, &answer).map_or(Told::Nothing, Told::Value)),
        },
    };
    let frame = frame(stream.subject());
    Ok(Told::Events(events(state, caller, parts, stream, seen, frame).unwrap_or_else(|refusal| *refusal)))
}

/// An answer that is one value.
pub(crate) fn value(state: &A2aState, caller: &Caller, parts: &Parts, answer: &Answer) -> Option<Value> {
    let dialect = caller.dialect;
    match answer {
        Answer::Sent(update) => Some(encode::event(dialect, update)),
        Answer::Task(task) => Some(encode::task(dialect, task)),
        Answer::Page(page) => Some(encode::page(page)),
        Answer::Push(config) => Some(encode::push(dialect, config)),
        Answer::Pushes(configs) => Some(encode::pushes(dialect, configs)),
        Answer::Card => Some(agent_card::only(state, parts, dialect, &caller.agent)),
        Answer::Deleted | Answer::Stream(_) => None,
    }
}

/// The stream of a client that was cut off and says where. A place that nobody knows is never read as the beginning.
async fn resumed(
    state: &A2aState,
    caller: &Caller,
    parts: &Parts,
    task: &str,
) -> Result<Option<(Stream, Position)>, Error> {
    let seen = last_event_id(&parts.headers);
    let Some(id) = seen.map_err(|_| Error::field("Last-Event-ID", "is no id of this stream"))? else {
        return Ok(None);
    };
    let cursor = Cursor { incarnation: id.incarnation, seq: Seq(id.position.seq) };
    let stream = state.a2a.resume(caller, task, cursor).await?;
    Ok(Some((stream, id.position)))
}

/// A task's updates as server-sent events.
fn events(
    state: &A2aState,
    caller: &Caller,
    parts: &Parts,
    stream: Stream,
    seen: Position,
    frame: Frame,
) -> Result<Response, Box<Response>> {
    let opening = Opening::new(state, &caller.identity, &parts.extensions)?;
    let (follower, reading) = stream.reading(frame);
    let follow = Follow { follower, reading, seen, incarnation: state.a2a.incarnation(), stop: opening.stop() };
    Ok(with_extensions(opening.response(follow.events()), caller))
}
