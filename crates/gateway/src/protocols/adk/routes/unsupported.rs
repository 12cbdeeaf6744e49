//! What pages want to change about agents: none of it is done here, and each answer says why.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, Request, State};
use axum::response::IntoResponse;
use gander_wire::adk::{AdkRefusal, input};
use http::HeaderMap;
use serde_json::json;

use super::{HandlerResult, read_adk_body};
use crate::protocols::adk::AdkState;

/// Without it a page of somebody else could ask, says the original.
const TELEMETRY_HEADER: &str = "x-adk-telemetry-request";

/// `POST /config/telemetry`: nothing is sent anywhere, so no is the only consent there is.
pub(crate) async fn set_telemetry(request: Request) -> HandlerResult {
    let (headers, _, body) = read_adk_body(request).await?;
    if !has_telemetry_header(&headers) {
        return Err(AdkRefusal::new(403, format!("the header {TELEMETRY_HEADER}: true is needed")).into());
    }
    if input::read_telemetry_consent(&body)? {
        return Err(AdkRefusal::new(501, "this server sends nothing to anybody: there is nothing to consent to").into());
    }
    Ok(Json(json!({ "telemetry": false })).into_response())
}

/// `POST /agent-identity/finalize`.
pub(crate) async fn refuse_finalize_identity() -> HandlerResult {
    Err(AdkRefusal::new(501, "there are no identities of a cloud here").into())
}

/// `POST`, `PUT` and `DELETE` of `/dev/apps/{app}/…`.
pub(crate) async fn refuse_agent_change(
    State(state): State<Arc<AdkState>>,
    Path((app, what)): Path<(String, String)>,
) -> HandlerResult {
    state.adk.find_app(&app)?;
    let (status, text) = match what.split('/').next().unwrap_or_default() {
        "eval_sets" | "eval-sets" | "eval_results" | "eval-results" => (501, "there are no evaluations here"),
        "tests" => (501, "there are no recorded tests here"),
        "builder" => (501, "agents are files in the server's folder of agents, they are not built here"),
        "deploy" => (501, "nothing is deployed from here"),
        _ => (404, "Not Found"),
    };
    Err(AdkRefusal::new(status, text).into())
}

fn has_telemetry_header(headers: &HeaderMap) -> bool {
    headers.get(TELEMETRY_HEADER).is_some_and(|value| value == "true")
}
