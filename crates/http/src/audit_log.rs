//! `GET /gander/audit`: what agents did and with whose consent, for those who may administer the server.

use std::sync::Arc;

use axum::extract::{Query, State};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use gander_domain::caller::Caller;
use gander_domain::{Principal, ServiceError, SessionId, Timestamp};
use gander_services::audit::AuditQuery;
use http::StatusCode;
use serde::Deserialize;
use serde_json::json;

use crate::state::HttpState;

/// What one answer holds at most.
const MAX_RECORDS: usize = 10_000;

/// Which actions to show.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AuditParams {
    session: Option<SessionId>,
    /// Microseconds since 1970.
    since: Option<i64>,
    principal: Option<String>,
    #[serde(default = "default_limit")]
    limit: usize,
}

fn default_limit() -> usize {
    1_000
}

pub(crate) async fn get_audit(
    State(state): State<Arc<HttpState>>,
    Extension(caller): Extension<Caller>,
    Query(params): Query<AuditParams>,
) -> Response {
    let AuditParams { session, since, principal, limit } = params;
    let (since, principal) = (since.map(Timestamp::from_micros), principal.map(Principal::named));
    let query = AuditQuery { session, since, principal, limit: limit.clamp(1, MAX_RECORDS) };
    match state.services.audit.list(&caller, &query).await {
        Ok(records) => Json(json!({ "records": records })).into_response(),
        Err(error @ ServiceError::Denied(_)) => refusal(StatusCode::FORBIDDEN, &error),
        Err(error) => refusal(StatusCode::SERVICE_UNAVAILABLE, &error),
    }
}

fn refusal(status: StatusCode, error: &ServiceError) -> Response {
    (status, Json(json!({ "error": error.to_string() }))).into_response()
}
