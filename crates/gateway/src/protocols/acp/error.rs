//! Refusals of the outer layer as errors of JSON-RPC.

use axum::response::Response;
use gander_http::error::error_with_json_body;
use gander_http::{Problem, RefusedRequest};
use http::StatusCode;
use serde_json::json;

/// A refusal of the outer layer: an error that answers no request: which one it was was not read.
pub(super) fn acp_outer_refusal(problem: &Problem, _request: RefusedRequest<'_>, response: Response) -> Response {
    let code = match problem.status {
        _ if problem.is_bad_json() => -32_700,
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => -32_000,
        StatusCode::NOT_FOUND => -32_002,
        status if status.is_client_error() && status != StatusCode::TOO_MANY_REQUESTS => -32_600,
        _ => -32_603,
    };
    let error = json!({ "code": code, "message": problem.message, "data": { "reason": problem.code } });
    error_with_json_body(response, problem.status, &json!({ "jsonrpc": "2.0", "id": null, "error": error }))
}
