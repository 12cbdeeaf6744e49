//! The JSON-RPC binding: every method through one address.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use bytes::Bytes;
use gander_domain::AgentManifest;
use gander_http::body::{declares_foreign_charset, take_body_bytes};
use gander_http::error;
use gander_wire::a2a::json::JsonEventFrame;
use gander_wire::a2a::json_rpc::{RpcRefusal, RpcRequest, json_rpc_result_response};
use gander_wire::a2a::{A2aError, A2aErrorKind, TaskSubject};
use http::StatusCode;
use http::header::{self, HeaderMap};
use http::request::Parts;
use serde_json::Value;

use super::response::{A2aResponse, a2a_response};
use super::{a2a_caller, requested_a2a_version, with_a2a_extensions_header};
use crate::protocols::a2a::A2aState;

/// A request to the first agent.
pub(crate) async fn handle_json_rpc_of_default_agent(
    State(state): State<Arc<A2aState>>,
    Extension(identity): Extension<gander_domain::caller::Caller>,
    request: Request,
) -> Response {
    let (parts, body) = request.into_parts();
    let body = take_body_bytes(body).await.unwrap_or_default();
    let Some(agent) = state.a2a.find_agent("") else { return StatusCode::NOT_FOUND.into_response() };
    handle_json_rpc(&state, identity, agent, &parts, &body).await
}

/// A request to this agent.
pub(crate) async fn handle_json_rpc(
    state: &A2aState,
    identity: gander_domain::caller::Caller,
    agent: Arc<AgentManifest>,
    parts: &Parts,
    body: &Bytes,
) -> Response {
    if declares_foreign_charset(&parts.headers) {
        return error::not_utf8_response();
    }
    let version = requested_a2a_version(&parts.headers, &parts.uri);
    let opened = RpcRequest::parse(body, &version).and_then(|mut envelope| {
        let agent = json_rpc_tenant_agent(state, &mut envelope, &agent)?;
        Ok((agent, envelope.into_request()?))
    });
    let (agent, (id, dialect, request)) = match opened {
        Ok(opened) => opened,
        Err(mut refusal) => {
            // What is no JSON and does not claim to be is not a broken request but one of another kind.
            if refusal.error.kind == A2aErrorKind::Parse && !declares_json_rpc_body(&parts.headers) {
                refusal.error = A2aError::new(A2aErrorKind::ContentTypeNotSupported, "a request is JSON");
            }
            // A notification is not answered, and that of an unknown method does nothing.
            if refusal.error.kind == A2aErrorKind::MethodNotFound && refusal.id.is_null() {
                return StatusCode::OK.into_response();
            }
            return Json(refusal.response()).into_response();
        }
    };
    let caller = a2a_caller(state, identity, agent, dialect, parts);
    let frame = |subject: &TaskSubject| JsonEventFrame::json_rpc_response(dialect, subject, &id);
    let result = match a2a_response(state, &caller, parts, request, frame).await {
        Ok(A2aResponse::Value(value)) => value,
        Ok(A2aResponse::Nothing) => Value::Null,
        Ok(A2aResponse::Events(response)) => return response,
        Err(error) => return Json(RpcRefusal { id, dialect, error }.response()).into_response(),
    };
    with_a2a_extensions_header(Json(json_rpc_result_response(&id, result)).into_response(), &caller)
}

fn declares_json_rpc_body(headers: &HeaderMap) -> bool {
    let value = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    value.is_none_or(|value| value.to_ascii_lowercase().contains("json"))
}

/// The agent that a request's tenant names, else the one of the address.
fn json_rpc_tenant_agent(
    state: &A2aState,
    envelope: &mut RpcRequest,
    agent: &Arc<AgentManifest>,
) -> Result<Arc<AgentManifest>, Box<RpcRefusal>> {
    let named = envelope.params.remove("tenant");
    let Some(name) = named.as_ref().and_then(Value::as_str).filter(|name| !name.is_empty()) else {
        return Ok(Arc::clone(agent));
    };
    state.a2a.find_agent(name).ok_or_else(|| {
        let error = A2aError::invalid_field("tenant", "no such agent here");
        Box::new(RpcRefusal { id: envelope.id.clone(), dialect: envelope.dialect, error })
    })
}
