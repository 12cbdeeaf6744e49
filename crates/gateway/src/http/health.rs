//! Our own small routes: is it alive, is it well, what is it.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::extract::State;
use axum::response::{Html, IntoResponse, Response};
use axum::routing::on;
use axum::{Extension, Json};
use gander_domain::caller::{Caller, Scope};
use gander_store::Health;
use http::StatusCode;
use serde_json::{Value, json};

use super::route::{Access, Route};
use super::state::HttpState;

const WELCOME_PAGE: &str = "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>gander</title>\
<h1>gander</h1><p>An agent server. Ask <code>gander token</code> for the token, \
<code>GET /gander/status</code> for what is in force.</p></html>\n";

/// Routes that belong to no protocol.
pub(crate) const ROUTES: &[Route] = &[
    Route::public("/", |verb| on(verb, welcome_page)),
    Route::public("/health", |verb| on(verb, health_status)),
    Route::public("/ping", |verb| on(verb, ping_response)),
    Route::public("/status", |verb| on(verb, alive_text)),
    Route::public("/features", |verb| on(verb, build_features)),
    Route::get("/gander/status", Access::Token(Scope::Read), |verb| on(verb, server_status)),
];

/// Says what this is.
async fn welcome_page() -> Html<&'static str> {
    Html(WELCOME_PAGE)
}

/// Green only if the store works and new work is taken.
async fn health_status(State(state): State<Arc<HttpState>>) -> Response {
    let status = match (state.is_draining(), state.services.hub.store().health().await) {
        (true, _) => "draining",
        (false, Health::Ready) => return Json(json!({ "status": "ok" })).into_response(),
        (false, Health::ReadOnly(_) | Health::Stalled | Health::Closed) => "failing",
    };
    (StatusCode::SERVICE_UNAVAILABLE, Json(json!({ "status": status }))).into_response()
}

/// Alive, as JSON.
pub(crate) async fn ping_response() -> Json<Value> {
    Json(json!({}))
}

/// The same as text, for clients that wait until a server is up.
async fn alive_text(State(state): State<Arc<HttpState>>) -> Response {
    match state.services.hub.store().health().await {
        Health::Ready => "ok".into_response(),
        Health::ReadOnly(_) | Health::Stalled | Health::Closed => {
            (StatusCode::SERVICE_UNAVAILABLE, "failing").into_response()
        }
    }
}

/// What this build can do, by name.
async fn build_features() -> Json<Value> {
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
    if caller.is_owner() || caller.has_scope(Scope::Admin) {
        status["pid"] = std::process::id().into();
        status["connections"] = state.connections.load(Ordering::Relaxed).into();
        status["panics"] = state.panics.load(Ordering::Relaxed).into();
        status["store"] = store_health(&health);
        status["app"] = (state.services.status)();
    }
    Json(status)
}
