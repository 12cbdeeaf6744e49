//! The Agent Communication Protocol (REST), at the root and under `/acp-rest`.

mod agents;
mod runs;
mod sessions;

use std::sync::Arc;

use axum::Extension;
use axum::extract::{FromRequestParts, Path};
use axum::response::{IntoResponse, Response};
use axum::routing::on;
use gander_domain::RunId;
use gander_domain::caller::{Caller, Scope};
use gander_http::large_responses::TooManyWholeResponses;
use gander_http::route::{Access, Payload, Route, Size};
use gander_http::settings::OpenProtocol;
use gander_http::{health, origin_check};
use gander_wire::acp_rest::{AcpRestDialect, AcpRestError, AcpRestRefusal};
use http::StatusCode;
use http::request::Parts;

use super::BaseUrl;
use crate::protocols::acp_rest::AcpRestState;
use crate::rejection::Rejection;

/// Every path twice: where the SDKs look for it, and where it meets no other protocol.
pub(crate) const ROUTES: &[Route<Arc<AcpRestState>>] = &[
    Route::public("/acp-rest/ping", |verb| on(verb, health::ping_response)),
    Route::public("/resources/{id}", |verb| on(verb, sessions::get_session_resource)),
    Route::public("/acp-rest/resources/{id}", |verb| on(verb, sessions::get_session_resource)),
    Route::get("/agents", READ, |verb| on(verb, agents::list_acp_rest_agents)),
    Route::get("/acp-rest/agents", READ, |verb| on(verb, agents::list_acp_rest_agents)),
    Route::get("/agents/{name}", READ, |verb| on(verb, agents::get_acp_rest_agent)),
    Route::get("/acp-rest/agents/{name}", READ, |verb| on(verb, agents::get_acp_rest_agent)),
    Route::post("/runs", PROMPT, BODY, |verb| on(verb, runs::create_acp_rest_run)),
    Route::post("/acp-rest/runs", PROMPT, BODY, |verb| on(verb, runs::create_acp_rest_run)),
    Route::get("/runs/{id}", READ, |verb| on(verb, runs::get_acp_rest_run)),
    Route::get("/acp-rest/runs/{id}", READ, |verb| on(verb, runs::get_acp_rest_run)),
    Route::post("/runs/{id}", ANSWER, BODY, |verb| on(verb, runs::resume_acp_rest_run)),
    Route::post("/acp-rest/runs/{id}", ANSWER, BODY, |verb| on(verb, runs::resume_acp_rest_run)),
    Route::post("/runs/{id}/cancel", PROMPT, Payload::Any(Size::Small), |verb| on(verb, runs::cancel_acp_rest_run)),
    Route::post("/acp-rest/runs/{id}/cancel", PROMPT, Payload::Any(Size::Small), |verb| {
        on(verb, runs::cancel_acp_rest_run)
    }),
    Route::get("/runs/{id}/events", READ, |verb| on(verb, runs::list_acp_rest_run_events)),
    Route::get("/acp-rest/runs/{id}/events", READ, |verb| on(verb, runs::list_acp_rest_run_events)),
    Route::get("/session/{id}", READ, |verb| on(verb, sessions::get_acp_rest_session)),
    Route::get("/acp-rest/session/{id}", READ, |verb| on(verb, sessions::get_acp_rest_session)),
    Route::get("/sessions/{id}", READ, |verb| on(verb, sessions::get_acp_rest_session_at_root)),
    Route::get("/acp-rest/sessions/{id}", READ, |verb| on(verb, sessions::get_acp_rest_session)),
    Route::get("/acp-rest/sessions/{id}/artifacts", READ, |verb| on(verb, sessions::get_acp_rest_session_artifact)),
];

const READ: Access = Access::OpenProtocol(OpenProtocol::AcpRest, Scope::Read);
const PROMPT: Access = Access::OpenProtocol(OpenProtocol::AcpRest, Scope::Prompt);
const ANSWER: Access = Access::OpenProtocol(OpenProtocol::AcpRest, Scope::Approve);
const BODY: Payload = Payload::Any(Size::Prompt);

/// Who asks, and where the server was found: what every handler begins with.
pub(crate) struct AcpRestCaller {
    state: Arc<AcpRestState>,
    caller: Caller,
    base: BaseUrl,
    dialect: AcpRestDialect,
}

/// The run that an address names.
pub(crate) struct RunInPath(RunId);

impl FromRequestParts<Arc<AcpRestState>> for AcpRestCaller {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, state: &Arc<AcpRestState>) -> Result<Self, Response> {
        let caller = Extension::<Caller>::from_request_parts(parts, state).await;
        let Extension(caller) = caller.map_err(IntoResponse::into_response)?;
        let base = BaseUrl(origin_check::request_base_url(parts));
        let dialect = requested_acp_rest_dialect(parts).map_err(IntoResponse::into_response)?;
        Ok(Self { state: Arc::clone(state), caller, base, dialect })
    }
}

/// `?dialect=NAME`, for clients of the server branch of goose that answered in another form.
fn requested_acp_rest_dialect(parts: &Parts) -> Result<AcpRestDialect, Rejection> {
    let mut pairs = parts.uri.query().unwrap_or_default().split('&').filter_map(|pair| pair.split_once('='));
    let Some((_, name)) = pairs.find(|(key, _)| *key == "dialect") else { return Ok(AcpRestDialect::default()) };
    AcpRestDialect::from_name(name).ok_or_else(|| {
        let known = AcpRestDialect::NAMES.join(", ");
        let shown = &name[..name.floor_char_boundary(64)];
        AcpRestRefusal::unreadable(format!("no such dialect: {shown}; known dialects: {known}")).into()
    })
}

impl<S: Send + Sync> FromRequestParts<S> for RunInPath {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Response> {
        let Path(id) = Path::<String>::from_request_parts(parts, state).await.map_err(IntoResponse::into_response)?;
        let bad = |_| Rejection::from(AcpRestRefusal::unreadable("a run's id is a UUID")).into_response();
        id.parse().map(Self).map_err(bad)
    }
}

/// A handler's answer, or why there is none.
type HandlerResult = Result<Response, Rejection>;

impl From<AcpRestRefusal> for Rejection {
    fn from(refusal: AcpRestRefusal) -> Self {
        Self::new(refusal.status, refusal.error)
    }
}

fn acp_rest_unavailable(error: TooManyWholeResponses) -> Rejection {
    acp_rest_error_rejection(StatusCode::SERVICE_UNAVAILABLE, AcpRestError::server_error(error.to_string()))
}

fn acp_rest_error_rejection(status: StatusCode, error: AcpRestError) -> Rejection {
    AcpRestRefusal { status: status.as_u16(), error }.into()
}
