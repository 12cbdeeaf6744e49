//! What goosed had and this server has not: said, not pretended.

use http::StatusCode;
use serde_json::json;

use super::{Answer, Caller, Fault, json_answer};

/// Nothing is scheduled here.
pub(super) async fn no_schedules(_caller: Caller) -> Answer {
    json_answer(json!({ "jobs": [] }))
}

/// A route of goosed that nothing stands behind.
pub(super) async fn not_here(_caller: Caller) -> Answer {
    Err(Fault::new(StatusCode::NOT_IMPLEMENTED, "this server does not offer that"))
}
