//! Sessions over HTTP.

use std::sync::Arc;

use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, Request, State};
use axum::response::IntoResponse;
use axum::{Extension, Json};
use gander_domain::caller::Caller;
use gander_http::sse_response::SsePermit;
use gander_wire::adk::{AdkRefusal, NewAdkSession, requests};
use serde::Deserialize;
use serde_json::{Value, json};

use super::session_path::SessionPath;
use super::{HandlerResult, read_adk_body};
use crate::json_stream::{JsonStream, JsonStyle};
use crate::protocols::adk::AdkState;
use crate::protocols::adk::error::adk_whole_response_refusal;
use crate::protocols::adk::{AppUser, ListRange};

/// Which part of a list. The names are those of the JavaScript kit's session service.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct PageQuery {
    limit: Option<String>,
    offset: Option<String>,
    page: Option<String>,
    order: Option<String>,
}

impl PageQuery {
    /// A limit larger than the list is no limit.
    fn list_range(&self) -> Result<ListRange, AdkRefusal> {
        let limit = parse_session_query_number("limit", self.limit.as_deref(), 1)?;
        let (offset, page) = (
            parse_session_query_number("offset", self.offset.as_deref(), 0)?,
            parse_session_query_number("page", self.page.as_deref(), 0)?,
        );
        let skipped = page.map(|page| page.saturating_sub(1).saturating_mul(limit.unwrap_or(0)));
        let newest_first = match self.order.as_deref().map(str::to_ascii_lowercase).as_deref() {
            None | Some("asc") => false,
            Some("desc") => true,
            Some(other) => {
                return Err(AdkRefusal::invalid_query("order", "enum", "Input should be 'asc' or 'desc'", other));
            }
        };
        Ok(ListRange { offset: offset.or(skipped).unwrap_or(0), limit, newest_first })
    }
}

fn parse_session_query_number(name: &str, said: Option<&str>, least: usize) -> Result<Option<usize>, AdkRefusal> {
    let Some(said) = said else { return Ok(None) };
    match said.parse::<usize>() {
        Ok(number) if number >= least => Ok(Some(number)),
        Ok(_) => {
            let message = format!("Input should be greater than or equal to {least}");
            Err(AdkRefusal::invalid_query(name, "greater_than_equal", message, said))
        }
        Err(_) => {
            let message = "Input should be a valid integer, unable to parse string as an integer";
            Err(AdkRefusal::invalid_query(name, "int_parsing", message, said))
        }
    }
}

/// `GET {S}`.
pub(crate) async fn list_adk_sessions(
    State(state): State<Arc<AdkState>>,
    Extension(caller): Extension<Caller>,
    Path((app, user)): Path<(String, String)>,
    query: Result<Query<PageQuery>, QueryRejection>,
) -> HandlerResult {
    let query = query.map(|Query(query)| query);
    let range = query.map_err(|error| AdkRefusal::new(400, error.body_text()))?.list_range()?;
    // Each session of the list is read from its log for its values.
    let _whole = state.whole_response_permit().await.map_err(adk_whole_response_refusal)?;
    Ok(Json(state.adk.list_sessions(&caller, &AppUser { app, user }, range).await?).into_response())
}

/// `POST {S}`.
pub(crate) async fn create_adk_session(
    State(state): State<Arc<AdkState>>,
    Extension(caller): Extension<Caller>,
    Path((app, user)): Path<(String, String)>,
    request: Request,
) -> HandlerResult {
    let (_, _, body) = read_adk_body(request).await?;
    let new = NewAdkSession::from_body(&body)?;
    Ok(Json(state.adk.create_session(&caller, AppUser { app, user }, new).await?).into_response())
}

/// `POST {S}/{id}`.
pub(crate) async fn create_named_adk_session(at: SessionPath, request: Request) -> HandlerResult {
    let (_, _, body) = read_adk_body(request).await?;
    let new = NewAdkSession::from_named_body(&at.id, &body)?;
    Ok(Json(at.state.adk.create_session(&at.caller, at.app_user, new).await?).into_response())
}

/// `GET {S}/{id}`.
pub(crate) async fn get_adk_session(at: SessionPath, request: Request) -> HandlerResult {
    let permit = SsePermit::new(&at.state, &at.caller, request.extensions())?;
    let (session, events) = at.state.adk.load_session(&at.caller, at.app_user, &at.id).await?;
    let object = json!(session).as_object().cloned().unwrap_or_default();
    Ok(permit.json_response(JsonStream::new(JsonStyle::Plain, &object, vec![("events", events)], None).into_stream()))
}

/// `PATCH {S}/{id}`.
pub(crate) async fn patch_adk_session(at: SessionPath, request: Request) -> HandlerResult {
    let (_, _, body) = read_adk_body(request).await?;
    let delta = requests::read_adk_state_delta(&body)?;
    let _whole = at.state.whole_response_permit().await.map_err(adk_whole_response_refusal)?;
    Ok(Json(at.state.adk.patch_state(&at.caller, at.app_user, &at.id, delta).await?).into_response())
}

/// `DELETE {S}/{id}`. Clients in JavaScript read the body as JSON.
pub(crate) async fn delete_adk_session(at: SessionPath) -> HandlerResult {
    at.state.adk.delete_session(&at.caller, at.app_user, &at.id).await?;
    Ok(Json(Value::Null).into_response())
}

/// `PATCH /apps/{app}/users/{user}/memory`: every session is remembered anyway.
pub(crate) async fn add_session_to_memory(
    State(state): State<Arc<AdkState>>,
    Extension(caller): Extension<Caller>,
    Path((app, user)): Path<(String, String)>,
    request: Request,
) -> HandlerResult {
    let (_, _, body) = read_adk_body(request).await?;
    let session = requests::read_adk_memory_session_id(&body)?;
    state.adk.find_session(&caller, AppUser { app, user }, &session).await?;
    Ok(Json(Value::Null).into_response())
}
