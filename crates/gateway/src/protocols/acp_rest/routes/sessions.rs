//! Sessions and their messages over HTTP.

use std::sync::Arc;

use axum::extract::{Path, Request, State};
use axum::response::IntoResponse;
use axum::{Extension, Json};
use gander_domain::SessionId;
use gander_domain::caller::Caller;
use gander_wire::acp_rest::{Error, Refusal};
use http::Uri;
use serde_json::json;

use super::{Answer, Called, No};
use crate::http::artifact_download::{self, NoFile};
use crate::http::json_stream::{Style, Written};
use crate::http::sse_response::Opening;
use crate::protocols::acp_rest::AcpRestState;
use crate::protocols::acp_rest::Base;
use crate::protocols::goose;

/// A session, where this protocol is alone: what is no id of a session is a wrong request.
pub(crate) async fn find(
    State(state): State<Arc<AcpRestState>>,
    Extension(identity): Extension<Caller>,
    Called(base): Called,
    Path(id): Path<String>,
) -> Answer {
    let id = id.parse().map_err(|_| Refusal::unreadable("a session's id is a UUID"))?;
    show(&state, &identity, id, &base).await
}

/// A session, where other protocols have ids of their own form.
pub(crate) async fn find_at_root(
    State(state): State<Arc<AcpRestState>>,
    Extension(identity): Extension<Caller>,
    Called(base): Called,
    Path(id): Path<String>,
    request: Request,
) -> Answer {
    let id = id.parse().map_err(|_| no_such_session(&id))?;
    let view = state.acp_rest.session(&identity, id).await?;
    let view = view.ok_or_else(|| No::from(no_such_session(&id.to_string())))?;
    let described = state.acp_rest.describe(id, &view, &base).await?;
    let opening = Opening::new(&state, &identity, request.extensions())?;
    // One object for both protocols that have this address: goose's clients find their names in it too.
    let desk = &state.services;
    let mut object = goose::sessions::object(desk, &view).await.unwrap_or_default();
    object.insert("sessionId".to_owned(), json!(id));
    object.extend(json!(described).as_object().cloned().unwrap_or_default());
    let mut lists = Vec::new();
    for name in ["conversation", "messages"] {
        let said = goose::sessions::recital(desk, view.session).await;
        let failed =
            |error| Refusal { status: 503, error: Error::server(format!("the session cannot be read: {error}")) };
        lists.push((name, said.map_err(failed)?));
    }
    Ok(opening.list(Written::new(Style::Plain, &object, lists, Some("message_count")).stream()))
}

/// A message of a session, for whoever was given its address.
pub(crate) async fn resource(State(state): State<Arc<AcpRestState>>, Path(id): Path<String>) -> Answer {
    let found = state.acp_rest.resource(&id).await;
    let message = found.map_err(|_| Refusal::not_found("no such resource"))?;
    Ok(Json(message).into_response())
}

/// Something that a session keeps under a name.
pub(crate) async fn artifact(
    State(state): State<Arc<AcpRestState>>,
    Extension(identity): Extension<Caller>,
    Path(id): Path<String>,
    uri: Uri,
) -> Answer {
    Ok(artifact_download::file(&state, &identity, &id, &uri).await.map_err(|error| match error {
        NoFile::Unreadable(_) => Refusal::unreadable(error.to_string()),
        NoFile::Missing(_) => Refusal::not_found(error.to_string()),
        NoFile::Later => Refusal { status: 503, error: Error::server(error.to_string()) },
        NoFile::Failed => Refusal { status: 500, error: Error::server(error.to_string()) },
    })?)
}

async fn show(state: &AcpRestState, identity: &Caller, id: SessionId, base: &Base) -> Answer {
    let view = state.acp_rest.session(identity, id).await?;
    let view = view.ok_or_else(|| No::from(no_such_session(&id.to_string())))?;
    let _whole = state.whole_response_permit().await;
    Ok(Json(state.acp_rest.describe(id, &view, base).await?).into_response())
}

fn no_such_session(id: &str) -> Refusal {
    let shown: String = id.chars().take(64).collect();
    Refusal::not_found(format!("no such session: {shown}"))
}
