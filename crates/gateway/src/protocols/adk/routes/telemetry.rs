//! Consent to telemetry: nothing is sent anywhere.

use axum::Json;
use axum::extract::Request;
use axum::response::IntoResponse;
use gander_wire::adk::{AdkRefusal, requests};
use http::HeaderMap;
use serde_json::json;

use super::{HandlerResult, read_adk_body};

/// Without it a page of somebody else could ask, says the original.
const TELEMETRY_HEADER: &str = "x-adk-telemetry-request";

/// `POST /config/telemetry`: nothing is sent anywhere, so no is the only consent there is.
pub(crate) async fn answer_telemetry_consent(request: Request) -> HandlerResult {
    let (headers, _, body) = read_adk_body(request).await?;
    if !has_telemetry_header(&headers) {
        return Err(AdkRefusal::new(403, format!("the header {TELEMETRY_HEADER}: true is needed")).into());
    }
    if requests::read_adk_telemetry_consent(&body)? {
        return Err(AdkRefusal::new(501, "this server sends nothing to anybody: there is nothing to consent to").into());
    }
    Ok(Json(json!({ "telemetry": false })).into_response())
}

fn has_telemetry_header(headers: &HeaderMap) -> bool {
    headers.get(TELEMETRY_HEADER).is_some_and(|value| value == "true")
}
