//! `/schedule/*`: recipes that run by the clock.

use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query};
use axum::response::IntoResponse;
use bytes::Bytes;
use gander_services::schedules::call::{self, Plan};
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{Answer, Caller, bad, json_answer, limit, read};
use crate::protocols::goose::recipes;

/// `POST /schedule/create`.
pub(crate) async fn create(caller: Caller, body: Bytes) -> Answer {
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
    let Create { id, recipe, cron, zone, working_dir, values } = read(&body)?;
    let values = recipes::values(&values);
    let plan = Plan { id, cron, zone, recipe, values, workspace: working_dir, folder: None, source: None };
    json_answer(call::create(caller.desk(), &caller.peer.caller, plan).await?)
}

/// `GET /schedule/list`.
pub(crate) async fn list(caller: Caller) -> Answer {
    json_answer(json!({ "jobs": call::list(caller.desk(), &caller.peer.caller).await }))
}

/// `PUT /schedule/{id}`.
pub(crate) async fn update(caller: Caller, Path(id): Path<String>, body: Bytes) -> Answer {
    #[derive(Deserialize)]
    struct Update {
        cron: String,
    }
    let Update { cron } = read(&body)?;
    json_answer(call::update(caller.desk(), &caller.peer.caller, &id, &cron).await?)
}

/// `DELETE /schedule/delete/{id}`.
pub(crate) async fn delete(caller: Caller, Path(id): Path<String>) -> Answer {
    call::delete(caller.desk(), &caller.peer.caller, &id).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// `POST /schedule/{id}/run_now`.
pub(crate) async fn run_now(caller: Caller, Path(id): Path<String>) -> Answer {
    json_answer(json!({ "session_id": call::run_now(caller.desk(), &caller.peer.caller, &id).await? }))
}

/// `POST /schedule/{id}/pause`.
pub(crate) async fn pause(caller: Caller, Path(id): Path<String>) -> Answer {
    call::pause(caller.desk(), &caller.peer.caller, &id, true).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// `POST /schedule/{id}/unpause`.
pub(crate) async fn unpause(caller: Caller, Path(id): Path<String>) -> Answer {
    call::pause(caller.desk(), &caller.peer.caller, &id, false).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// `POST /schedule/{id}/kill`.
pub(crate) async fn kill(caller: Caller, Path(id): Path<String>) -> Answer {
    let message = match call::kill(caller.desk(), &caller.peer.caller, &id).await? {
        true => format!("Killed running job: {id}"),
        false => format!("Job is not running: {id}"),
    };
    json_answer(json!({ "message": message }))
}

/// `GET /schedule/{id}/inspect`.
pub(crate) async fn inspect(caller: Caller, Path(id): Path<String>) -> Answer {
    json_answer(call::inspect(caller.desk(), &caller.peer.caller, &id).await?)
}

#[derive(Deserialize)]
pub(crate) struct Limited {
    limit: Option<String>,
}

/// Sessions of a schedule in one list, unless fewer are wanted.
const MAX_SESSIONS: usize = 1_000;

/// `GET /schedule/{id}/sessions`.
pub(crate) async fn sessions(
    caller: Caller,
    Path(id): Path<String>,
    query: Result<Query<Limited>, QueryRejection>,
) -> Answer {
    let Query(Limited { limit: said }) = query.map_err(|_| bad("limit must be a number"))?;
    let limit = limit(said.as_deref(), MAX_SESSIONS)?.unwrap_or(50);
    json_answer(Value::Array(call::sessions_of(caller.desk(), &caller.peer.caller, &id, limit).await?))
}
