//! `GET /gander/audit`: what agents did and with whose consent, for those who may administer the server.

use std::sync::Arc;

use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use gander_domain::caller::Caller;
use gander_domain::{Principal, ServiceError, SessionId, Timestamp};
use gander_services::audit::AuditQuery;
use http::StatusCode;
use serde::Deserialize;
use serde_json::json;

use crate::error;
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
    #[serde(default = "default_audit_limit")]
    limit: usize,
}

fn default_audit_limit() -> usize {
    1_000
}

pub(crate) async fn get_audit(
    State(state): State<Arc<HttpState>>,
    Extension(caller): Extension<Caller>,
    params: Result<Query<AuditParams>, QueryRejection>,
) -> Response {
    let Query(AuditParams { session, since, principal, limit }) = match params {
        Ok(params) => params,
        Err(rejection) => {
            return error::problem_response(StatusCode::BAD_REQUEST, "invalid_query", &rejection.body_text());
        }
    };
    let (since, principal) = (since.map(Timestamp::from_micros), principal.map(Principal::named));
    let query = AuditQuery { session, since, principal, limit: limit.clamp(1, MAX_RECORDS) };
    match state.services.audit.list(&caller, &query).await {
        Ok(records) => Json(json!({ "records": records })).into_response(),
        Err(denied @ ServiceError::Denied(_)) => {
            error::problem_response(StatusCode::FORBIDDEN, "forbidden", &denied.to_string())
        }
        Err(failed) => error::problem_response(StatusCode::SERVICE_UNAVAILABLE, "unavailable", &failed.to_string()),
    }
}
