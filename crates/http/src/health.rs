//! Our own small routes: the page, browsers, whether the server is alive and well, and what it is.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::on;
use axum::{Extension, Json};
use gander_domain::caller::{Caller, Scope};
use gander_runtime::hub::NodeRole;
use gander_services::permission_changes::permitted_server_facts;
use gander_store::Health;
use http::StatusCode;
use serde_json::{Value, json};

use crate::error::{Problem, RefusedRequest};
use crate::oidc_metadata::{OIDC_METADATA_PATH, get_oidc_metadata};
use crate::protocol::HttpProtocol;
use crate::route::{Access, Payload, Route, Size, Verb};
use crate::state::HttpState;
use crate::{audit_log, browser, docs, metrics, openapi, page};

/// Routes that belong to no protocol.
const ROUTES: &[Route<Arc<HttpState>>] = &[
    Route::public("/", |verb| on(verb, page::get_page)),
    Route::public("/assets/{*path}", |verb| on(verb, page::get_page_asset)),
    Route::public("/docs", |verb| on(verb, docs::show_docs)),
    Route::public("/docs/api", |verb| on(verb, docs::show_api)),
    Route::public("/docs/{*path}", |verb| on(verb, docs::get_doc)),
    Route::public("/favicon.ico", |verb| on(verb, page::get_page_root_file)),
    Route::public("/favicon.svg", |verb| on(verb, page::get_page_root_file)),
    Route::public("/frame.html", |verb| on(verb, page::get_page_root_file)),
    Route::public("/inspector", |verb| on(verb, page::get_page)),
    Route::public("/licences", |verb| on(verb, page::get_page_licences)),
    Route::public("/manifest.webmanifest", |verb| on(verb, page::get_page_root_file)),
    Route::public("/sw.js", |verb| on(verb, page::get_page_root_file)),
    Route::post("/gander/tickets", Access::Token(Scope::Read), Payload::Any(Size::Small), |verb| {
        on(verb, browser::create_browser_ticket)
    }),
    Route::post("/gander/login", Access::Public, Payload::Json(Size::Small), |verb| on(verb, browser::log_in_browser)),
    Route { verb: Verb::Delete, ..Route::public("/gander/login", |verb| on(verb, browser::log_out_browser)) },
    Route::get("/openapi.json", Access::Token(Scope::Read), |verb| on(verb, openapi::get_openapi)),
    Route::public("/health", |verb| on(verb, health_status)),
    Route::public("/ping", |verb| on(verb, ping_response)),
    Route::public("/status", |verb| on(verb, health_text)),
    Route::public(OIDC_METADATA_PATH, |verb| on(verb, get_oidc_metadata)),
    Route::public("/features", |verb| on(verb, server_build_features)),
    Route::get("/gander/audit", Access::Token(Scope::Admin), |verb| on(verb, audit_log::get_audit)),
    Route::get("/gander/status", Access::Token(Scope::Read), |verb| on(verb, server_status)),
    Route::get("/metrics", Access::Token(Scope::Admin), |verb| on(verb, metrics::get_metrics)),
];

/// Our own routes, as the route table has them.
#[derive(Debug)]
pub struct GanderRoutes;

impl HttpProtocol for GanderRoutes {
    type State = HttpState;
    type Settings = ();
    const ABOUT: crate::route_tables::ProtocolAbout =
        crate::route_tables::ProtocolAbout { name: "gander", title: "The server's own routes", official: None };
    const ROUTES: &'static [Route<Arc<HttpState>>] = ROUTES;

    fn new_state(http: &Arc<HttpState>, (): ()) -> Arc<HttpState> {
        Arc::clone(http)
    }

    fn word_refusal(_problem: &Problem, _request: RefusedRequest<'_>, response: Response) -> Response {
        response
    }
}

/// Green only if the store works and new work is taken.
async fn health_status(State(state): State<Arc<HttpState>>) -> Response {
    let status = match (state.is_draining(), does_its_part(&state).await) {
        (true, _) => "draining",
        (false, true) => return Json(with_node_role(&state, json!({ "status": "ok" }))).into_response(),
        (false, false) => "failing",
    };
    let body = with_node_role(&state, json!({ "status": status }));
    (StatusCode::SERVICE_UNAVAILABLE, Json(body)).into_response()
}

/// Whether the store works and, on a node that runs sessions, whether it may: one without its lease runs nothing.
async fn does_its_part(state: &HttpState) -> bool {
    let hub = &state.services.hub;
    let runs_sessions = hub.role() != Some(NodeRole::Gateway);
    hub.store().health().await == Health::Ready && (hub.has_lease() || !runs_sessions)
}

/// One of several nodes says which kind it is.
fn with_node_role(state: &HttpState, mut body: Value) -> Value {
    if let Some(role) = state.services.hub.role() {
        body["role"] = role.name().into();
    }
    body
}

/// Alive, as JSON.
pub async fn ping_response() -> Json<Value> {
    Json(json!({}))
}

/// The same as text, for clients that wait until a server is up.
async fn health_text(State(state): State<Arc<HttpState>>) -> Response {
    match does_its_part(&state).await {
        true => "ok".into_response(),
        false => (StatusCode::SERVICE_UNAVAILABLE, "failing").into_response(),
    }
}

/// What this build can do, by name.
async fn server_build_features() -> Json<Value> {
    Json(json!({ "features": { "genai": cfg!(feature = "genai") } }))
}

fn store_health(health: &Health) -> Value {
    match health {
        Health::Ready => json!({ "status": "ok" }),
        Health::ReadOnly(reason) => json!({ "status": "failing", "reason": reason }),
        Health::Stalled => json!({ "status": "failing", "reason": "a write did not come back in time" }),
        Health::Closed => json!({ "status": "failing", "reason": "it was closed" }),
    }
}

/// What is in force. Whoever may see what belongs to the server also sees what the whole server does: to anybody else
/// those numbers would tell when others work, and how much.
async fn server_status(State(state): State<Arc<HttpState>>, Extension(caller): Extension<Caller>) -> Json<Value> {
    let health = state.services.hub.store().health().await;
    let mut status = json!({
        "version": gander_services::VERSION,
        "principal": caller.principal,
        "scopes": caller.scopes,
        "draining": state.is_draining(),
        "limits": state.limits,
        "store": { "status": store_health(&health)["status"] },
    });
    if let (Some(role), Some(node)) = (state.services.hub.role(), state.services.hub.node()) {
        status["node"] = json!({ "id": node, "role": role.name(), "lease": state.services.hub.has_lease() });
    }
    if let Some(facts) = permitted_server_facts(&state.services, &caller) {
        status["pid"] = std::process::id().into();
        status["connections"] = state.connections.load(Ordering::Relaxed).into();
        status["panics"] = state.panics.load(Ordering::Relaxed).into();
        status["store"] = store_health(&health);
        status["app"] = facts;
    }
    Json(status)
}
