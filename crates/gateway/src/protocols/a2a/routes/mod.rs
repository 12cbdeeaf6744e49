//! A2A over HTTP: the bindings on one port under `/a2a` and `/a2a/{agent}`, and the cards where clients look for them.

mod agent_card;
mod grpc;
mod json_rpc;
mod response;
mod rest;

use std::sync::Arc;

use axum::response::Response;
use axum::routing::on;
use gander_domain::AgentManifest;
use gander_wire::a2a::{Detail, Dialect, EXTENSION};
use http::Uri;
use http::header::{HeaderMap, HeaderName, HeaderValue};
use http::request::Parts;

use super::Caller;
use crate::http::route::{Access, Payload, Route, Size, Verb};
use crate::protocols::a2a::A2aState;
use crate::settings::Door;
use gander_domain::caller::Scope;

const VERSION: HeaderName = HeaderName::from_static("a2a-version");
const EXTENSIONS: HeaderName = HeaderName::from_static("a2a-extensions");

/// One address has every method: which of them needs more than reading is decided where it is carried out.
const READ: Access = Access::Door(Door::A2a, Scope::Read);

/// A2A's.
pub(crate) const ROUTES: &[Route<Arc<A2aState>>] = &[
    Route::public("/.well-known/agent-card.json", |verb| on(verb, agent_card::first)),
    Route::public("/.well-known/agent.json", |verb| on(verb, agent_card::first)),
    Route::public("/.well-known/ai-catalog.json", |verb| on(verb, agent_card::catalog)),
    Route::public("/.well-known/jwks.json", |verb| on(verb, agent_card::keys)),
    Route::public("/a2a/.well-known/agent-card.json", |verb| on(verb, agent_card::first)),
    Route::public("/a2a/.well-known/agent.json", |verb| on(verb, agent_card::first)),
    Route::public("/a2a/{agent}/.well-known/agent-card.json", |verb| on(verb, agent_card::named)),
    Route::public("/a2a/{agent}/.well-known/agent.json", |verb| on(verb, agent_card::named)),
    Route::post("/a2a", READ, Payload::Any(Size::Prompt), |verb| on(verb, json_rpc::first)),
    Route::post("/a2a/", READ, Payload::Any(Size::Prompt), |verb| on(verb, json_rpc::first)),
    Route::get("/a2a/.artifacts/{session}", READ, |verb| on(verb, rest::artifact)),
    // The router knows no verbs behind a colon, and neither which piece is an agent: `rest` takes addresses apart.
    post("/a2a/{agent}"),
    post("/a2a/{agent}/"),
    get("/a2a/{agent}"),
    get("/a2a/{agent}/{b}"),
    post("/a2a/{agent}/{b}"),
    get("/a2a/{agent}/{b}/{c}"),
    post("/a2a/{agent}/{b}/{c}"),
    get("/a2a/{agent}/{b}/{c}/{d}"),
    post("/a2a/{agent}/{b}/{c}/{d}"),
    delete("/a2a/{agent}/{b}/{c}/{d}"),
    get("/a2a/{agent}/{b}/{c}/{d}/{e}"),
    post("/a2a/{agent}/{b}/{c}/{d}/{e}"),
    delete("/a2a/{agent}/{b}/{c}/{d}/{e}"),
    get("/a2a/{agent}/{b}/{c}/{d}/{e}/{f}"),
    post("/a2a/{agent}/{b}/{c}/{d}/{e}/{f}"),
    delete("/a2a/{agent}/{b}/{c}/{d}/{e}/{f}"),
    get("/a2a/{agent}/{b}/{c}/{d}/{e}/{f}/{g}"),
    post("/a2a/{agent}/{b}/{c}/{d}/{e}/{f}/{g}"),
    delete("/a2a/{agent}/{b}/{c}/{d}/{e}/{f}/{g}"),
    Route::post("/lf.a2a.v1.A2AService/{method}", READ, Payload::Any(Size::Prompt), |verb| on(verb, grpc::call)),
];

const fn get(path: &'static str) -> Route<Arc<A2aState>> {
    Route::get(path, READ, |verb| on(verb, rest::call))
}

const fn post(path: &'static str) -> Route<Arc<A2aState>> {
    Route::post(path, READ, Payload::Any(Size::Prompt), |verb| on(verb, rest::call))
}

const fn delete(path: &'static str) -> Route<Arc<A2aState>> {
    Route { verb: Verb::Delete, ..Route::get(path, READ, |verb| on(verb, rest::call)) }
}

/// Who asks, of which agent.
fn caller(
    state: &A2aState,
    identity: gander_domain::caller::Caller,
    agent: Arc<AgentManifest>,
    dialect: Dialect,
    parts: &Parts,
) -> Caller {
    let detail = if activates(&parts.headers) { Detail::Full } else { Detail::Plain };
    Caller { identity, agent, dialect, detail, base: agent_card::base(state, parts) }
}

/// The version that a client says it speaks: in a header or in the address, else nothing.
fn version(headers: &HeaderMap, uri: &Uri) -> String {
    let header = headers.get(VERSION).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let query = || rest::query(uri).into_iter().find(|(name, _)| name.eq_ignore_ascii_case("a2a-version"));
    header.or_else(|| query().map(|(_, value)| value)).unwrap_or_default()
}

/// Whether a client wants our extension.
fn activates(headers: &HeaderMap) -> bool {
    let values = headers.get_all(EXTENSIONS).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|uri| uri.trim() == EXTENSION)
}

/// The response names the extensions that are in use.
fn with_extensions(mut response: Response, caller: &Caller) -> Response {
    if caller.detail == Detail::Full {
        response.headers_mut().insert(EXTENSIONS, HeaderValue::from_static(EXTENSION));
    }
    response
}
