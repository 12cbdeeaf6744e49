//! Our own small routes: is it alive, is it well, what is it.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::extract::State;
use axum::response::{Html, IntoResponse, Response};
use axum::routing::on;
use axum::{Extension, Json};
use http::StatusCode;
use serde_json::{Value, json};

use super::routes::{Access, Route};
use super::site::Site;
use crate::token::{Identity, Scope};

const WELCOME: &str = "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>gander</title>\
<h1>gander</h1><p>An agent server. Ask <code>gander token</code> for the token, \
<code>GET /gander/status</code> for what is in force.</p></html>\n";

/// Ours.
pub(super) const ROUTES: &[Route] = &[
    Route::public("/", |verb| on(verb, welcome)),
    Route::public("/health", |verb| on(verb, health)),
    Route::public("/ping", |verb| on(verb, ping)),
    Route::public("/status", |verb| on(verb, alive)),
    Route::public("/features", |verb| on(verb, features)),
    Route::get("/gander/status", Access::Token(Scope::Read), |verb| on(verb, status)),
];

/// Says what this is.
async fn welcome() -> Html<&'static str> {
    Html(WELCOME)
}

/// Green only if the store works and new work is taken.
async fn health(State(site): State<Arc<Site>>) -> Response {
    let status = match (site.draining(), site.app.health().await) {
        (true, _) => "draining",
        (false, true) => return Json(json!({ "status": "ok" })).into_response(),
        (false, false) => "failing",
    };
    (StatusCode::SERVICE_UNAVAILABLE, Json(json!({ "status": status }))).into_response()
}

/// Alive, as JSON.
pub(super) async fn ping() -> Json<Value> {
    Json(json!({}))
}

/// Alive, as text.
async fn alive() -> &'static str {
    "ok"
}

/// What this build can do, by name.
async fn features() -> Json<Value> {
    Json(json!({ "features": { "genai": cfg!(feature = "genai") } }))
}

/// What is in force.
async fn status(State(site): State<Arc<Site>>, Extension(identity): Extension<Identity>) -> Json<Value> {
    Json(json!({
        "version": crate::VERSION,
        "pid": std::process::id(),
        "principal": identity.principal,
        "scopes": identity.scopes,
        "draining": site.draining(),
        "connections": site.connections.load(Ordering::Relaxed),
        "panics": site.panics.load(Ordering::Relaxed),
        "limits": site.limits,
        "app": site.app.status(),
    }))
}
