//! `/schedule/*`: recipes that run by the clock.

use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query};
use axum::response::IntoResponse;
use bytes::Bytes;
use gander_services::schedule_methods::{self, NewSchedule};
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{GooseCaller, HandlerResult, goose_json_response, parse_goose_limit, read_goose_json};
use crate::protocols::goose::error::goose_bad_request;
use crate::protocols::goose::recipes;

/// `POST /schedule/create`.
pub(crate) async fn create_schedule(caller: GooseCaller, body: Bytes) -> HandlerResult {
    #[derive(Deserialize)]
    struct Create {
        id: String,
        recipe: Value,
        cron: String,
        #[serde(default)]
        zone: Option<String>,
        #[serde(default)]
        working_dir: Option<String>,
        #[serde(default)]
        values: Map<String, Value>,
    }
    let Create { id, recipe, cron, zone, working_dir, values } = read_goose_json(&body)?;
    let values = recipes::goose_recipe_values(&values);
    let plan = NewSchedule { id, cron, zone, recipe, values, workspace: working_dir, folder: None, source: None };
    goose_json_response(schedule_methods::create_schedule(caller.services(), &caller.peer.caller, plan).await?)
}

/// `GET /schedule/list`.
pub(crate) async fn list_schedules(caller: GooseCaller) -> HandlerResult {
    goose_json_response(
        json!({ "jobs": schedule_methods::list_schedules(caller.services(), &caller.peer.caller).await }),
    )
}

/// `PUT /schedule/{id}`.
pub(crate) async fn update_schedule(caller: GooseCaller, Path(id): Path<String>, body: Bytes) -> HandlerResult {
    #[derive(Deserialize)]
    struct Update {
        cron: String,
    }
    let Update { cron } = read_goose_json(&body)?;
    goose_json_response(
        schedule_methods::update_schedule_cron(caller.services(), &caller.peer.caller, &id, &cron).await?,
    )
}

/// `DELETE /schedule/delete/{id}`.
pub(crate) async fn delete_schedule(caller: GooseCaller, Path(id): Path<String>) -> HandlerResult {
    schedule_methods::delete_schedule(caller.services(), &caller.peer.caller, &id).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// `POST /schedule/{id}/run_now`.
pub(crate) async fn run_schedule_now(caller: GooseCaller, Path(id): Path<String>) -> HandlerResult {
    goose_json_response(
        json!({ "session_id": schedule_methods::run_schedule_now(caller.services(), &caller.peer.caller, &id).await? }),
    )
}

/// `POST /schedule/{id}/pause`.
pub(crate) async fn pause_schedule(caller: GooseCaller, Path(id): Path<String>) -> HandlerResult {
    schedule_methods::pause_schedule(caller.services(), &caller.peer.caller, &id, true).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// `POST /schedule/{id}/unpause`.
pub(crate) async fn unpause_schedule(caller: GooseCaller, Path(id): Path<String>) -> HandlerResult {
    schedule_methods::pause_schedule(caller.services(), &caller.peer.caller, &id, false).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// `POST /schedule/{id}/kill`.
pub(crate) async fn kill_running_schedule(caller: GooseCaller, Path(id): Path<String>) -> HandlerResult {
    let message = match schedule_methods::cancel_schedule_run(caller.services(), &caller.peer.caller, &id).await? {
        true => format!("Killed running job: {id}"),
        false => format!("Job is not running: {id}"),
    };
    goose_json_response(json!({ "message": message }))
}

/// `GET /schedule/{id}/inspect`.
pub(crate) async fn inspect_schedule(caller: GooseCaller, Path(id): Path<String>) -> HandlerResult {
    goose_json_response(schedule_methods::inspect_schedule_run(caller.services(), &caller.peer.caller, &id).await?)
}

#[derive(Deserialize)]
pub(crate) struct LimitQuery {
    limit: Option<String>,
}

/// Sessions of a schedule in one list, unless fewer are wanted.
const MAX_SESSIONS: usize = 1_000;

/// `GET /schedule/{id}/sessions`.
pub(crate) async fn list_schedule_sessions(
    caller: GooseCaller,
    Path(id): Path<String>,
    query: Result<Query<LimitQuery>, QueryRejection>,
) -> HandlerResult {
    let Query(LimitQuery { limit: said }) = query.map_err(|_| goose_bad_request("limit must be a number"))?;
    let limit = parse_goose_limit(said.as_deref(), MAX_SESSIONS)?.unwrap_or(50);
    goose_json_response(Value::Array(
        schedule_methods::list_schedule_sessions(caller.services(), &caller.peer.caller, &id, limit).await?,
    ))
}
