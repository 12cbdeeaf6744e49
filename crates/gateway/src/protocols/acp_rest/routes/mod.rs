//! The Agent Communication Protocol (REST), at the root and under `/acp-rest`.

mod agents;
mod runs;
mod sessions;

use std::convert::Infallible;
use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::response::Response;
use axum::routing::on;
use gander_domain::caller::Scope;
use gander_wire::acp_rest::{Error, Refusal};
use http::StatusCode;
use http::request::Parts;

use super::Base;
use crate::http::rejection::No;
use crate::http::route::{Access, Payload, Route, Size};
use crate::http::{health, origin_check};
use crate::protocols::acp_rest::AcpRestState;
use crate::settings::Door;

/// Every path twice: where the SDKs look for it, and where it meets no other protocol.
pub(crate) const ROUTES: &[Route<Arc<AcpRestState>>] = &[
    Route::public("/acp-rest/ping", |verb| on(verb, health::ping)),
    Route::public("/resources/{id}", |verb| on(verb, sessions::resource)),
    Route::public("/acp-rest/resources/{id}", |verb| on(verb, sessions::resource)),
    Route::get("/agents", READ, |verb| on(verb, agents::list)),
    Route::get("/acp-rest/agents", READ, |verb| on(verb, agents::list)),
    Route::get("/agents/{name}", READ, |verb| on(verb, agents::find)),
    Route::get("/acp-rest/agents/{name}", READ, |verb| on(verb, agents::find)),
    Route::post("/runs", PROMPT, BODY, |verb| on(verb, runs::create)),
    Route::post("/acp-rest/runs", PROMPT, BODY, |verb| on(verb, runs::create)),
    Route::get("/runs/{id}", READ, |verb| on(verb, runs::find)),
    Route::get("/acp-rest/runs/{id}", READ, |verb| on(verb, runs::find)),
    Route::post("/runs/{id}", ANSWER, BODY, |verb| on(verb, runs::resume)),
    Route::post("/acp-rest/runs/{id}", ANSWER, BODY, |verb| on(verb, runs::resume)),
    Route::post("/runs/{id}/cancel", PROMPT, Payload::Any(Size::Small), |verb| on(verb, runs::cancel)),
    Route::post("/acp-rest/runs/{id}/cancel", PROMPT, Payload::Any(Size::Small), |verb| on(verb, runs::cancel)),
    Route::get("/runs/{id}/events", READ, |verb| on(verb, runs::events)),
    Route::get("/acp-rest/runs/{id}/events", READ, |verb| on(verb, runs::events)),
    Route::get("/session/{id}", READ, |verb| on(verb, sessions::find)),
    Route::get("/acp-rest/session/{id}", READ, |verb| on(verb, sessions::find)),
    Route::get("/sessions/{id}", READ, |verb| on(verb, sessions::find_at_root)),
    Route::get("/acp-rest/sessions/{id}", READ, |verb| on(verb, sessions::find)),
    Route::get("/acp-rest/sessions/{id}/artifacts", READ, |verb| on(verb, sessions::artifact)),
];

const READ: Access = Access::Door(Door::AcpRest, Scope::Read);
const PROMPT: Access = Access::Door(Door::AcpRest, Scope::Prompt);
const ANSWER: Access = Access::Door(Door::AcpRest, Scope::Approve);
const BODY: Payload = Payload::Any(Size::Prompt);

/// Where the caller found us.
struct Called(Base);

impl<S: Send + Sync> FromRequestParts<S> for Called {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self(Base(origin_check::called(parts))))
    }
}

/// A handler's answer, or why there is none.
type Answer = Result<Response, No>;

impl From<Refusal> for No {
    fn from(refusal: Refusal) -> Self {
        Self::new(refusal.status, refusal.error)
    }
}

fn refuse(status: StatusCode, error: Error) -> No {
    Refusal { status: status.as_u16(), error }.into()
}
