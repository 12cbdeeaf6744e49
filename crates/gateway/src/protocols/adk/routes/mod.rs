//! Google's Agent Development Kit (REST), at the root and under `/api`, and what its web page asks for.

mod agents;
mod artifacts;
mod evaluations;
mod live;
mod runs;
mod session_path;
mod sessions;
mod telemetry;
mod ui;
mod unsupported;

use std::sync::Arc;

use axum::extract::Request;
use axum::response::Response;
use axum::routing::on;
use bytes::Bytes;
use gander_domain::caller::Scope;
use gander_http::body::{self, BodyError};
use gander_http::route::{Access, Payload, Route, Serve, Size, Verb};
use gander_http::settings::OpenProtocol;
use gander_wire::adk::AdkRefusal;
use http::header::HeaderMap;

use crate::protocols::adk::AdkState;
use crate::rejection::Rejection;

const READ: Access = Access::OpenProtocol(OpenProtocol::Adk, Scope::Read);
const PROMPT: Access = Access::OpenProtocol(OpenProtocol::Adk, Scope::Prompt);
const SMALL: Payload = Payload::Any(Size::Small);
const LARGE: Payload = Payload::Any(Size::Prompt);

/// Two lines for every path: where the clients of python look for it, and where those of Go do.
macro_rules! table {
    ($($verb:ident $path:literal $access:ident $payload:expr => $handler:path),* $(,)?) => {
        /// This protocol's table.
        pub(crate) const ROUTES: &[Route<Arc<AdkState>>] = &[
            $(
                adk_route(Verb::$verb, $path, $access, $payload, |verb| on(verb, $handler)),
                adk_route(Verb::$verb, concat!("/api", $path), $access, $payload, |verb| on(verb, $handler)),
            )*
            Route::public("/dev-ui", |verb| on(verb, ui::redirect_to_ui)),
            Route::public("/dev-ui/", |verb| on(verb, ui::get_ui_index)),
            Route::public("/dev-ui/{*path}", |verb| on(verb, ui::get_ui_file)),
        ];
    };
}

table! {
    Get "/version" READ Payload::None => agents::get_adk_version,
    Get "/list-apps" READ Payload::None => agents::list_adk_agents,
    Get "/apps/{app}/app-info" READ Payload::None => agents::get_adk_agent_info,
    Get "/config/telemetry" READ Payload::None => agents::get_telemetry,
    Post "/config/telemetry" PROMPT SMALL => telemetry::answer_telemetry_consent,
    Post "/agent-identity/finalize" PROMPT SMALL => unsupported::refuse_finalize_identity,
    Get "/apps/{app}/users/{user}/sessions" READ Payload::None => sessions::list_adk_sessions,
    Post "/apps/{app}/users/{user}/sessions" PROMPT LARGE => sessions::create_adk_session,
    Get "/apps/{app}/users/{user}/sessions/{id}" READ Payload::None => sessions::get_adk_session,
    Post "/apps/{app}/users/{user}/sessions/{id}" PROMPT LARGE => sessions::create_named_adk_session,
    Patch "/apps/{app}/users/{user}/sessions/{id}" PROMPT SMALL => sessions::patch_adk_session,
    Delete "/apps/{app}/users/{user}/sessions/{id}" PROMPT Payload::None => sessions::delete_adk_session,
    Patch "/apps/{app}/users/{user}/memory" PROMPT SMALL => sessions::add_session_to_memory,
    Post "/run" PROMPT LARGE => runs::post_adk_run,
    Post "/run_sse" PROMPT LARGE => runs::post_adk_run_sse,
    Get "/run_live" PROMPT Payload::None => live::open_live_connection,
    Post "/apps/{app}/users/{user}/sessions/{id}/run" PROMPT LARGE => runs::post_adk_run_at_session,
    Post "/apps/{app}/users/{user}/sessions/{id}/run_sse" PROMPT LARGE => runs::post_adk_run_sse_at_session,
    Get "/apps/{app}/users/{user}/sessions/{id}/artifacts" READ Payload::None => artifacts::list_adk_artifacts,
    Post "/apps/{app}/users/{user}/sessions/{id}/artifacts" PROMPT LARGE => artifacts::save_adk_artifact,
    Get "/apps/{app}/users/{user}/sessions/{id}/artifacts/{*name}" READ Payload::None => artifacts::get_adk_artifact,
    Delete "/apps/{app}/users/{user}/sessions/{id}/artifacts/{*name}" PROMPT Payload::None => artifacts::delete_adk_artifact,
    Get "/dev/apps/{app}/{*what}" READ Payload::None => agents::get_agent_dev_info,
    Post "/dev/apps/{app}/{*what}" PROMPT LARGE => unsupported::change_adk_agent,
    Put "/dev/apps/{app}/{*what}" PROMPT LARGE => unsupported::change_adk_agent,
    Delete "/dev/apps/{app}/{*what}" PROMPT Payload::None => unsupported::change_adk_agent,
}

const fn adk_route(
    verb: Verb,
    path: &'static str,
    access: Access,
    payload: Payload,
    serve: Serve<Arc<AdkState>>,
) -> Route<Arc<AdkState>> {
    Route { verb, ..Route::post(path, access, payload, serve) }
}

/// A handler's answer, or why there is none.
type HandlerResult = Result<Response, Rejection>;

impl From<AdkRefusal> for Rejection {
    fn from(refusal: AdkRefusal) -> Self {
        Self::new(refusal.status, refusal.response_body())
    }
}

/// A body of any type or none, but in UTF-8.
async fn read_adk_body(request: Request) -> Result<(HeaderMap, http::Extensions, Bytes), Rejection> {
    match body::take_utf8_body(request).await {
        Ok((parts, bytes)) => Ok((parts.headers, parts.extensions, bytes)),
        Err(BodyError::ForeignCharset) => Err(AdkRefusal::new(415, "the body must be UTF-8").into()),
        Err(BodyError::Broken) => Err(AdkRefusal::new(400, "the body is broken").into()),
    }
}
