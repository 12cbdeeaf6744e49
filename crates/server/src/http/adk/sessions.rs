//! Sessions over HTTP.

use std::sync::Arc;

use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, Request, State};
use axum::response::IntoResponse;
use axum::{Extension, Json};
use gander_wire::adk::{NewSession, input};
use serde::Deserialize;
use serde_json::Value;

use super::at::At;
use super::{Answer, whole};
use crate::door::adk::{Asked, Place};
use crate::http::site::Site;
use crate::token::Identity;

/// Which part of a list. The names are those of the JavaScript kit's session service.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Wanted {
    limit: Option<usize>,
    offset: Option<usize>,
    page: Option<usize>,
    order: Option<String>,
}

/// `GET {S}`.
pub(super) async fn list(
    State(site): State<Arc<Site>>,
    Extension(identity): Extension<Identity>,
    Path((app, user)): Path<(String, String)>,
    wanted: Result<Query<Wanted>, QueryRejection>,
) -> Answer {
    let Wanted { limit, offset, page, order } = wanted.map(|Query(wanted)| wanted).unwrap_or_default();
    let skipped = page.map(|page| page.saturating_sub(1).saturating_mul(limit.unwrap_or(0)));
    let newest_first = order.is_some_and(|order| order.eq_ignore_ascii_case("desc"));
    let asked = Asked { offset: offset.or(skipped).unwrap_or(0), limit, newest_first };
    Ok(Json(site.adk.list(&identity, &Place { app, user }, asked).await?).into_response())
}

/// `POST {S}`.
pub(super) async fn create(
    State(site): State<Arc<Site>>,
    Extension(identity): Extension<Identity>,
    Path((app, user)): Path<(String, String)>,
    request: Request,
) -> Answer {
    let (_, _, body) = whole(request).await?;
    let new = NewSession::read(&body)?;
    Ok(Json(site.adk.create(&identity, Place { app, user }, new).await?).into_response())
}

/// `POST {S}/{id}`.
pub(super) async fn create_named(at: At, request: Request) -> Answer {
    let (_, _, body) = whole(request).await?;
    let new = NewSession::named(&at.id, &body)?;
    Ok(Json(at.site.adk.create(&at.identity, at.place, new).await?).into_response())
}

/// `GET {S}/{id}`.
pub(super) async fn get(at: At) -> Answer {
    Ok(Json(at.site.adk.get(&at.identity, at.place, &at.id).await?).into_response())
}

/// `PATCH {S}/{id}`.
pub(super) async fn patch(at: At, request: Request) -> Answer {
    let (_, _, body) = whole(request).await?;
    let delta = input::state_delta(&body)?;
    Ok(Json(at.site.adk.patch(&at.identity, at.place, &at.id, delta).await?).into_response())
}

/// `DELETE {S}/{id}`. Clients in JavaScript read the body as JSON.
pub(super) async fn delete(at: At) -> Answer {
    at.site.adk.delete(&at.identity, at.place, &at.id).await?;
    Ok(Json(Value::Null).into_response())
}

/// `PATCH /apps/{app}/users/{user}/memory`: every session is remembered anyway.
pub(super) async fn memory(
    State(site): State<Arc<Site>>,
    Extension(identity): Extension<Identity>,
    Path((app, user)): Path<(String, String)>,
    request: Request,
) -> Answer {
    let (_, _, body) = whole(request).await?;
    let session = input::session_id(&body)?;
    site.adk.find(&identity, Place { app, user }, &session).await?;
    Ok(Json(Value::Null).into_response())
}
