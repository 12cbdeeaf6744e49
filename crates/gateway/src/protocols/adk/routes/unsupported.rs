//! What pages want to change about agents: evaluations are, the rest is not done here, and each answer says why.

use std::sync::Arc;

use axum::extract::{Path, Request, State};
use axum::response::IntoResponse;
use axum::{Extension, Json};
use gander_domain::caller::Caller;
use gander_wire::adk::{AdkRefusal, input};
use http::HeaderMap;
use serde_json::json;

use super::evaluations::{change_evaluation, is_evaluation};
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
pub(crate) async fn change_adk_agent(
    State(state): State<Arc<AdkState>>,
    Extension(caller): Extension<Caller>,
    Path((app, what)): Path<(String, String)>,
    request: Request,
) -> HandlerResult {
    let agent = state.adk.find_app(&app)?;
    let steps: Vec<&str> = what.split('/').collect();
    if is_evaluation(&steps) {
        let method = request.method().clone();
        let (_, _, body) = read_adk_body(request).await?;
        return change_evaluation(&state, &caller, &agent.name, (&method, &steps), &body).await;
    }
    let (status, text) = match steps.first().copied().unwrap_or_default() {
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
