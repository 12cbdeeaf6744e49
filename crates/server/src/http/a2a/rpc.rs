//! The JSON-RPC binding: every method through one address.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use bytes::Bytes;
use gander_domain::AgentManifest;
use gander_wire::a2a::encode::{self, Frame};
use gander_wire::a2a::rpc::{Envelope, Refusal, response};
use gander_wire::a2a::{Error, Kind, Request as Wanted, card as cards};
use http::StatusCode;
use http::header::{self, HeaderMap};
use http::request::Parts;
use serde_json::{Value, json};

use super::{caller, card, events, place, version, with_extensions};
use crate::door::a2a::{Answer, Caller};
use crate::http::body::is_foreign;
use crate::http::site::Site;
use crate::sse::Position;
use crate::token::Identity;

/// A request to the first agent.
pub(super) async fn first(
    State(site): State<Arc<Site>>,
    Extension(identity): Extension<Identity>,
    request: Request,
) -> Response {
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, usize::MAX).await.unwrap_or_default();
    let Some(agent) = site.a2a.agent("") else { return StatusCode::NOT_FOUND.into_response() };
    call(&site, identity, agent, &parts, &body).await
}

/// A request to this agent.
pub(super) async fn call(
    site: &Site,
    identity: Identity,
    agent: Arc<AgentManifest>,
    parts: &Parts,
    body: &Bytes,
) -> Response {
    if is_foreign(&parts.headers) {
        return StatusCode::UNSUPPORTED_MEDIA_TYPE.into_response();
    }
    let version = version(&parts.headers, &parts.uri);
    let opened = Envelope::open(body, &version).and_then(|mut envelope| {
        let agent = tenant(site, &mut envelope, &agent)?;
        Ok((agent, envelope.request()?))
    });
    let (agent, (id, dialect, request)) = match opened {
        Ok(opened) => opened,
        Err(mut refusal) => {
            // What is no JSON and does not claim to be is not a broken request but one of another kind.
            if refusal.error.kind == Kind::Parse && !claims_json(&parts.headers) {
                refusal.error = Error::new(Kind::ContentTypeNotSupported, "a request is JSON");
            }
            return Json(refusal.response()).into_response();
        }
    };
    let caller = caller(identity, agent, dialect, &parts.headers);
    match carried_out(site, &caller, parts, &id, request).await {
        Ok(response) => with_extensions(response, &caller),
        Err(error) => Json(Refusal { id, dialect, error }.response()).into_response(),
    }
}

fn claims_json(headers: &HeaderMap) -> bool {
    let value = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    value.is_none_or(|value| value.to_ascii_lowercase().contains("json"))
}

async fn carried_out(
    site: &Site,
    caller: &Caller,
    parts: &Parts,
    id: &Value,
    request: Wanted,
) -> Result<Response, Error> {
    let resumed = match (&request, place(&site.a2a, &parts.headers)) {
        (Wanted::Subscribe { id: task }, Some(seen)) => {
            let stream = site.a2a.resume(caller, task, seen).await?;
            Some((stream, seen))
        }
        (_, _) => None,
    };
    let (stream, seen) = match resumed {
        Some(resumed) => resumed,
        None => match site.a2a.call(caller, request).await? {
            Answer::Stream(stream) => (*stream, Position::default()),
            answer @ (Answer::Sent(_)
            | Answer::Task(_)
            | Answer::Page(_)
            | Answer::Push(_)
            | Answer::Pushes(_)
            | Answer::Deleted
            | Answer::Card) => return Ok(Json(response(id, result(site, caller, parts, &answer))).into_response()),
        },
    };
    let frame = Frame::response(caller.dialect, stream.subject(), id);
    Ok(events(site, caller, &parts.extensions, stream, seen, frame).unwrap_or_else(|refusal| *refusal))
}

/// An answer as the result of a method.
fn result(site: &Site, caller: &Caller, parts: &Parts, answer: &Answer) -> Value {
    let dialect = caller.dialect;
    match answer {
        Answer::Sent(update) => encode::event(dialect, update),
        Answer::Task(task) => encode::task(dialect, task),
        Answer::Page(page) => encode::page(page),
        Answer::Push(config) => encode::push(dialect, config),
        Answer::Pushes(configs) => encode::pushes(dialect, configs),
        Answer::Deleted => Value::Null,
        Answer::Card => cards::only(dialect, &caller.agent, &card::place(site, parts, &caller.agent)),
        Answer::Stream(_) => json!({}),
    }
}

/// The agent that a request's tenant names, else the one of the address.
fn tenant(
    site: &Site,
    envelope: &mut Envelope,
    agent: &Arc<AgentManifest>,
) -> Result<Arc<AgentManifest>, Box<Refusal>> {
    let named = envelope.params.remove("tenant");
    let Some(name) = named.as_ref().and_then(Value::as_str).filter(|name| !name.is_empty()) else {
        return Ok(Arc::clone(agent));
    };
    site.a2a.agent(name).ok_or_else(|| {
        let error = Error::field("tenant", format!("no such agent here: {name}"));
        Box::new(Refusal { id: envelope.id.clone(), dialect: envelope.dialect, error })
    })
}
