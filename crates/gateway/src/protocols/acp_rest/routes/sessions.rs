//! Sessions and their messages over HTTP.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, Request, State};
use axum::response::IntoResponse;
use gander_domain::SessionId;
use gander_domain::caller::Caller;
use gander_http::artifact_download::{self, DownloadError};
use gander_http::sse_response::SsePermit;
use gander_wire::acp_rest::{AcpRestError, AcpRestRefusal};
use http::Uri;
use serde_json::json;

use super::{AcpRestCaller, HandlerResult, Rejection, acp_rest_unavailable};
use crate::json_stream::{JsonStream, JsonStyle};
use crate::protocols::acp_rest::AcpRestState;
use crate::protocols::acp_rest::BaseUrl;
use crate::protocols::goose;

/// A session, where this protocol is alone: what is no id of a session is a wrong request.
pub(crate) async fn get_acp_rest_session(
    AcpRestCaller { state, caller, base, .. }: AcpRestCaller,
    Path(id): Path<String>,
) -> HandlerResult {
    let id = id.parse().map_err(|_| AcpRestRefusal::unreadable("a session's id is a UUID"))?;
    acp_rest_session_response(&state, &caller, id, &base).await
}

/// A session, where other protocols have ids of their own form.
pub(crate) async fn get_acp_rest_session_at_root(
    AcpRestCaller { state, caller, base, .. }: AcpRestCaller,
    Path(id): Path<String>,
    request: Request,
) -> HandlerResult {
    let id = id.parse().map_err(|_| no_such_acp_rest_session(&id))?;
    let view = state.acp_rest.find_session(&caller, id).await?;
    let view = view.ok_or_else(|| Rejection::from(no_such_acp_rest_session(&id.to_string())))?;
    let described = state.acp_rest.describe_session(id, &view, &base).await?;
    let permit = SsePermit::new(&state, &caller, request.extensions())?;
    // One object for both protocols that have this address: goose's clients find their names in it too.
    let services = &state.services;
    let mut object = goose::sessions::load_goose_session_object(services, &view).await.unwrap_or_default();
    object.insert("sessionId".to_owned(), json!(id));
    object.extend(json!(described).as_object().cloned().unwrap_or_default());
    let mut lists = Vec::new();
    for name in ["conversation", "messages"] {
        let said = goose::sessions::session_conversation_list(services, &view).await;
        let failed = |error| AcpRestRefusal {
            status: 503,
            error: AcpRestError::server_error(format!("the session cannot be read: {error}")),
        };
        lists.push((name, said.map_err(failed)?));
    }
    Ok(permit.json_response(JsonStream::new(JsonStyle::Plain, &object, lists, Some("message_count")).into_stream()))
}

/// A message of a session, for whoever was given its address.
pub(crate) async fn get_session_resource(
    State(state): State<Arc<AcpRestState>>,
    Path(id): Path<String>,
) -> HandlerResult {
    let found = state.acp_rest.find_resource(&id).await;
    let message = found.map_err(|_| AcpRestRefusal::not_found("no such resource"))?;
    Ok(Json(message).into_response())
}

/// Something that a session keeps under a name.
pub(crate) async fn get_acp_rest_session_artifact(
    AcpRestCaller { state, caller, .. }: AcpRestCaller,
    Path(id): Path<String>,
    uri: Uri,
) -> HandlerResult {
    Ok(artifact_download::download_artifact(&state, &caller, &id, &uri).await.map_err(|error| match error {
        DownloadError::Unreadable(_) => AcpRestRefusal::unreadable(error.to_string()),
        DownloadError::Missing(_) => AcpRestRefusal::not_found(error.to_string()),
        DownloadError::Later => AcpRestRefusal { status: 503, error: AcpRestError::server_error(error.to_string()) },
        DownloadError::Failed => AcpRestRefusal { status: 500, error: AcpRestError::server_error(error.to_string()) },
    })?)
}

async fn acp_rest_session_response(
    state: &AcpRestState,
    caller: &Caller,
    id: SessionId,
    base: &BaseUrl,
) -> HandlerResult {
    let view = state.acp_rest.find_session(caller, id).await?;
    let view = view.ok_or_else(|| Rejection::from(no_such_acp_rest_session(&id.to_string())))?;
    let _whole = state.whole_response_permit().await.map_err(acp_rest_unavailable)?;
    Ok(Json(state.acp_rest.describe_session(id, &view, base).await?).into_response())
}

fn no_such_acp_rest_session(id: &str) -> AcpRestRefusal {
    let shown: String = id.chars().take(64).collect();
    AcpRestRefusal::not_found(format!("no such session: {shown}"))
}
