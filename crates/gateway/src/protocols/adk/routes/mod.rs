//! Google's Agent Development Kit (REST), at the root and under `/api`, and what its web page asks for.

mod agents;
mod artifacts;
mod live;
mod runs;
mod session_path;
mod sessions;
mod ui;
mod unsupported;

use std::sync::Arc;

use axum::extract::Request;
use axum::response::Response;
use axum::routing::on;
use bytes::Bytes;
use gander_domain::caller::Scope;
use gander_wire::adk::Refusal;
use http::header::HeaderMap;

use crate::http::body;
use crate::http::rejection::No;
use crate::http::route::{Access, Payload, Route, Serve, Size, Verb};
use crate::protocols::adk::AdkState;
use crate::settings::Door;

const READ: Access = Access::Door(Door::Adk, Scope::Read);
const PROMPT: Access = Access::Door(Door::Adk, Scope::Prompt);
const SMALL: Payload = Payload::Any(Size::Small);
const LARGE: Payload = Payload::Any(Size::Prompt);

/// Two lines for every path: where the clients of python look for it, and where those of Go do.
macro_rules! table {
    ($($verb:ident $path:literal $access:ident $payload:expr => $handler:path),* $(,)?) => {
        /// This protocol's table.
        pub(crate) const ROUTES: &[Route<Arc<AdkState>>] = &[
            $(
                line(Verb::$verb, $path, $access, $payload, |verb| on(verb, $handler)),
                line(Verb::$verb, concat!("/api", $path), $access, $payload, |verb| on(verb, $handler)),
            )*
            Route::public("/dev-ui", |verb| on(verb, ui::redirect)),
            Route::public("/dev-ui/", |verb| on(verb, ui::index)),
            Route::public("/dev-ui/{*path}", |verb| on(verb, ui::file)),
        ];
    };
}

table! {
    Get "/version" READ Payload::None => agents::version,
    Get "/list-apps" READ Payload::None => agents::list_apps,
    Get "/apps/{app}/app-info" READ Payload::None => agents::app_info,
    Get "/config/telemetry" READ Payload::None => agents::telemetry,
    Post "/config/telemetry" PROMPT SMALL => unsupported::telemetry,
    Post "/agent-identity/finalize" PROMPT SMALL => unsupported::identity,
    Get "/apps/{app}/users/{user}/sessions" READ Payload::None => sessions::list,
    Post "/apps/{app}/users/{user}/sessions" PROMPT LARGE => sessions::create,
    Get "/apps/{app}/users/{user}/sessions/{id}" READ Payload::None => sessions::get,
    Post "/apps/{app}/users/{user}/sessions/{id}" PROMPT LARGE => sessions::create_named,
    Patch "/apps/{app}/users/{user}/sessions/{id}" PROMPT SMALL => sessions::patch,
    Delete "/apps/{app}/users/{user}/sessions/{id}" PROMPT Payload::None => sessions::delete,
    Patch "/apps/{app}/users/{user}/memory" PROMPT SMALL => sessions::memory,
    Post "/run" PROMPT LARGE => runs::run,
    Post "/run_sse" PROMPT LARGE => runs::run_sse,
    Get "/run_live" PROMPT Payload::None => live::open,
    Post "/apps/{app}/users/{user}/sessions/{id}/run" PROMPT LARGE => runs::run_at,
    Post "/apps/{app}/users/{user}/sessions/{id}/run_sse" PROMPT LARGE => runs::run_sse_at,
    Get "/apps/{app}/users/{user}/sessions/{id}/artifacts" READ Payload::None => artifacts::list,
    Post "/apps/{app}/users/{user}/sessions/{id}/artifacts" PROMPT LARGE => artifacts::save,
    Get "/apps/{app}/users/{user}/sessions/{id}/artifacts/{*name}" READ Payload::None => artifacts::get,
    Delete "/apps/{app}/users/{user}/sessions/{id}/artifacts/{*name}" PROMPT Payload::None => artifacts::delete,
    Get "/dev/apps/{app}/{*what}" READ Payload::None => agents::about,
    Post "/dev/apps/{app}/{*what}" PROMPT SMALL => unsupported::about,
    Put "/dev/apps/{app}/{*what}" PROMPT SMALL => unsupported::about,
    Delete "/dev/apps/{app}/{*what}" PROMPT Payload::None => unsupported::about,
}

const fn line(
    verb: Verb,
    path: &'static str,
    access: Access,
    payload: Payload,
    serve: Serve<Arc<AdkState>>,
) -> Route<Arc<AdkState>> {
    Route { verb, ..Route::post(path, access, payload, serve) }
}

/// A handler's answer, or why there is none.
type Answer = Result<Response, No>;

impl From<Refusal> for No {
    fn from(refusal: Refusal) -> Self {
        Self::new(refusal.status, refusal.body())
    }
}

/// A body of any type or none, but in UTF-8.
async fn whole(request: Request) -> Result<(HeaderMap, http::Extensions, Bytes), No> {
    let (parts, body) = request.into_parts();
    if body::is_foreign(&parts.headers) {
        return Err(Refusal::new(415, "the body must be UTF-8").into());
    }
    let bytes = axum::body::to_bytes(body, usize::MAX).await;
    let bytes = bytes.map_err(|_| Refusal::new(400, "the body is broken"))?;
    Ok((parts.headers, parts.extensions, bytes))
}
