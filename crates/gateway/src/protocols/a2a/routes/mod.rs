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
use gander_http::route::{Access, Payload, Route, Size, Verb};
use gander_http::settings::OpenProtocol;
use gander_wire::a2a::{A2aDialect, DetailLevel, EXTENSION};
use http::Uri;
use http::header::{HeaderMap, HeaderName, HeaderValue};
use http::request::Parts;

use super::A2aCaller;
use crate::protocols::a2a::A2aState;
use gander_domain::caller::Scope;

const VERSION: HeaderName = HeaderName::from_static("a2a-version");
const EXTENSIONS: HeaderName = HeaderName::from_static("a2a-extensions");

/// One address has every method: which of them needs more than reading is decided where it is carried out.
const READ: Access = Access::OpenProtocol(OpenProtocol::A2a, Scope::Read);

/// A2A's.
pub(crate) const ROUTES: &[Route<Arc<A2aState>>] = &[
    Route::public("/.well-known/agent-card.json", |verb| on(verb, agent_card::get_default_card)),
    Route::public("/.well-known/agent.json", |verb| on(verb, agent_card::get_default_card)),
    Route::public("/.well-known/ai-catalog.json", |verb| on(verb, agent_card::get_agent_catalog)),
    Route::public("/.well-known/jwks.json", |verb| on(verb, agent_card::get_signing_keys)),
    Route::public("/a2a/.well-known/agent-card.json", |verb| on(verb, agent_card::get_default_card)),
    Route::public("/a2a/.well-known/agent.json", |verb| on(verb, agent_card::get_default_card)),
    Route::public("/a2a/{agent}/.well-known/agent-card.json", |verb| on(verb, agent_card::get_agent_card)),
    Route::public("/a2a/{agent}/.well-known/agent.json", |verb| on(verb, agent_card::get_agent_card)),
    Route::post("/a2a", READ, Payload::Any(Size::Prompt), |verb| on(verb, json_rpc::handle_json_rpc_of_default_agent)),
    Route::post("/a2a/", READ, Payload::Any(Size::Prompt), |verb| on(verb, json_rpc::handle_json_rpc_of_default_agent)),
    Route::get("/a2a/.artifacts/{session}", READ, |verb| on(verb, rest::get_a2a_artifact)),
    // The router knows no verbs behind a colon, and neither which piece is an agent: `rest` takes addresses apart.
    a2a_post_route("/a2a/{agent}"),
    a2a_post_route("/a2a/{agent}/"),
    a2a_get_route("/a2a/{agent}"),
    a2a_get_route("/a2a/{agent}/{b}"),
    a2a_post_route("/a2a/{agent}/{b}"),
    a2a_get_route("/a2a/{agent}/{b}/{c}"),
    a2a_post_route("/a2a/{agent}/{b}/{c}"),
    a2a_get_route("/a2a/{agent}/{b}/{c}/{d}"),
    a2a_post_route("/a2a/{agent}/{b}/{c}/{d}"),
    a2a_delete_route("/a2a/{agent}/{b}/{c}/{d}"),
    a2a_get_route("/a2a/{agent}/{b}/{c}/{d}/{e}"),
    a2a_post_route("/a2a/{agent}/{b}/{c}/{d}/{e}"),
    a2a_delete_route("/a2a/{agent}/{b}/{c}/{d}/{e}"),
    a2a_get_route("/a2a/{agent}/{b}/{c}/{d}/{e}/{f}"),
    a2a_post_route("/a2a/{agent}/{b}/{c}/{d}/{e}/{f}"),
    a2a_delete_route("/a2a/{agent}/{b}/{c}/{d}/{e}/{f}"),
    a2a_get_route("/a2a/{agent}/{b}/{c}/{d}/{e}/{f}/{g}"),
    a2a_post_route("/a2a/{agent}/{b}/{c}/{d}/{e}/{f}/{g}"),
    a2a_delete_route("/a2a/{agent}/{b}/{c}/{d}/{e}/{f}/{g}"),
    Route::post("/lf.a2a.v1.A2AService/{method}", READ, Payload::Any(Size::Prompt), |verb| {
        on(verb, grpc::handle_grpc_call)
    }),
];

const fn a2a_get_route(path: &'static str) -> Route<Arc<A2aState>> {
    Route::get(path, READ, |verb| on(verb, rest::handle_rest_request))
}

const fn a2a_post_route(path: &'static str) -> Route<Arc<A2aState>> {
    Route::post(path, READ, Payload::Any(Size::Prompt), |verb| on(verb, rest::handle_rest_request))
}

const fn a2a_delete_route(path: &'static str) -> Route<Arc<A2aState>> {
    Route { verb: Verb::Delete, ..Route::get(path, READ, |verb| on(verb, rest::handle_rest_request)) }
}

/// Who asks, of which agent.
fn a2a_caller(
    state: &A2aState,
    identity: gander_domain::caller::Caller,
    agent: Arc<AgentManifest>,
    dialect: A2aDialect,
    parts: &Parts,
) -> A2aCaller {
    let detail = if wants_a2a_extension(&parts.headers) { DetailLevel::Full } else { DetailLevel::Plain };
    A2aCaller { identity, agent, dialect, detail, base: agent_card::card_base_url(state, parts) }
}

/// The version that a client says it speaks: in a header or in the address, else nothing.
fn requested_a2a_version(headers: &HeaderMap, uri: &Uri) -> String {
    let header = headers.get(VERSION).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let query = || rest::rest_query_pairs(uri).into_iter().find(|(name, _)| name.eq_ignore_ascii_case("a2a-version"));
    header.or_else(|| query().map(|(_, value)| value)).unwrap_or_default()
}

/// Whether a client wants our extension.
fn wants_a2a_extension(headers: &HeaderMap) -> bool {
    let values = headers.get_all(EXTENSIONS).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|uri| uri.trim() == EXTENSION)
}

/// The response names the extensions that are in use.
fn with_a2a_extensions_header(mut response: Response, caller: &A2aCaller) -> Response {
    if caller.detail == DetailLevel::Full {
        response.headers_mut().insert(EXTENSIONS, HeaderValue::from_static(EXTENSION));
    }
    response
}
