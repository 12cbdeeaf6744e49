//! goose's REST as of 1.35, with the forms of 1.8 to 1.39 and what a branch of it added.

mod agent;
mod apps;
mod config;
mod prompts;
mod recipes;
mod replaced;
mod runs;
mod schedule;
mod session_list;
mod sessions;
mod tools;
mod unsupported;

use std::sync::Arc;

use axum::Json;
use axum::extract::{FromRequestParts, Path};
use axum::response::{IntoResponse, Response};
use axum::routing::on;
use bytes::Bytes;
use gander_domain::SessionId;
use gander_domain::caller::Scope;
use gander_http::body;
use gander_http::error::problem_response;
use gander_http::route::{Access, Payload, Route, Size, Verb};
use gander_http::state::HttpState;
use gander_services::Services;
use gander_wire::check::contains_nul;
use http::StatusCode;
use http::request::Parts;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::error::{GooseError, goose_bad_request, no_such_goose_session};
use crate::ClientPeer;

const READ: Access = Access::Token(Scope::Read);
const PROMPT: Access = Access::Token(Scope::Prompt);
const APPROVE: Access = Access::Token(Scope::Approve);
const SMALL: Payload = Payload::Json(Size::Small);
const LARGE: Payload = Payload::Json(Size::Prompt);

const UNSUPPORTED: gander_http::Serve<Arc<HttpState>> = |verb| on(verb, unsupported::refuse_unsupported);

/// goose's table.
pub(crate) const ROUTES: &[Route<Arc<HttpState>>] = &[
    Route::post("/reply", PROMPT, LARGE, |verb| on(verb, runs::post_reply)),
    Route::post("/sessions/{id}/reply", PROMPT, LARGE, |verb| on(verb, runs::post_session_reply)),
    Route::get("/sessions/{id}/events", READ, |verb| on(verb, runs::get_session_run_events)),
    Route::post("/sessions/{id}/cancel", PROMPT, SMALL, |verb| on(verb, runs::post_run_cancel)),
    Route::post("/action-required/tool-confirmation", APPROVE, SMALL, |verb| on(verb, runs::post_run_confirm)),
    Route::post("/confirm", APPROVE, SMALL, |verb| on(verb, runs::post_run_confirm)),
    Route::get("/sessions", READ, |verb| on(verb, session_list::list_goose_sessions)),
    Route::get("/sessions/search", READ, |verb| on(verb, session_list::search_goose_sessions)),
    Route::get("/sessions/insights", READ, |verb| on(verb, session_list::get_session_insights)),
    Route::post("/sessions/import", PROMPT, LARGE, |verb| on(verb, sessions::post_session_import)),
    goose_delete_route("/sessions/{id}", PROMPT, |verb| on(verb, sessions::delete_goose_session)),
    goose_put_route("/sessions/{id}/name", PROMPT, |verb| on(verb, sessions::rename_goose_session)),
    goose_put_route("/sessions/{id}/user_recipe_values", PROMPT, |verb| on(verb, sessions::set_session_recipe_values)),
    Route::get("/sessions/{id}/export", READ, |verb| on(verb, sessions::get_session_export)),
    Route::get("/sessions/{id}/extensions", READ, |verb| on(verb, sessions::list_session_extensions)),
    Route::post("/sessions/{id}/fork", PROMPT, SMALL, |verb| on(verb, sessions::post_session_fork)),
    Route::post("/sessions/{id}/clear", PROMPT, Payload::None, |verb| on(verb, sessions::clear_goose_session)),
    Route::post("/sessions/{id}/messages", PROMPT, LARGE, |verb| on(verb, sessions::post_session_message)),
    Route::post("/sessions/{id}/recipe", PROMPT, Payload::None, |verb| on(verb, sessions::get_session_recipe)),
    Route::post("/agent/start", PROMPT, SMALL, |verb| on(verb, agent::post_agent_start)),
    Route::post("/agent/resume", PROMPT, SMALL, |verb| on(verb, agent::post_agent_resume)),
    Route::post("/agent/restart", PROMPT, SMALL, |verb| on(verb, agent::post_agent_restart)),
    Route::post("/agent/stop", PROMPT, SMALL, |verb| on(verb, agent::post_agent_stop)),
    Route::post("/agent/update_provider", PROMPT, SMALL, |verb| on(verb, agent::post_agent_provider)),
    Route::post("/agent/update_session", PROMPT, SMALL, |verb| on(verb, agent::post_agent_session)),
    Route::post("/agent/update_from_session", PROMPT, SMALL, |verb| on(verb, agent::post_agent_from_session)),
    Route::post("/agent/update_working_dir", PROMPT, SMALL, |verb| on(verb, agent::post_agent_working_dir)),
    Route::get("/agent/tools", READ, |verb| on(verb, agent::get_agent_tools)),
    Route::post("/agent/add_extension", PROMPT, SMALL, |verb| on(verb, agent::post_agent_add_extension)),
    Route::post("/agent/extensions", PROMPT, SMALL, |verb| on(verb, agent::post_agent_add_extension)),
    Route::post("/agent/remove_extension", PROMPT, SMALL, |verb| on(verb, agent::post_agent_remove_extension)),
    Route::get("/agent/list_apps", READ, |verb| on(verb, apps::list_goose_apps)),
    Route::get("/agent/export_app/{name}", READ, |verb| on(verb, apps::export_goose_app)),
    Route::post("/agent/import_app", PROMPT, LARGE, |verb| on(verb, apps::import_goose_app)),
    Route::get("/agent/prompts", READ, |verb| on(verb, prompts::list_goose_prompts)),
    Route::post("/agent/prompts", PROMPT, SMALL, |verb| on(verb, prompts::use_goose_prompt)),
    Route::get("/config", READ, |verb| on(verb, config::get_config)),
    Route::post("/config/read", READ, SMALL, |verb| on(verb, config::read_config_key)),
    Route::post("/config/upsert", PROMPT, SMALL, |verb| on(verb, config::upsert_config_key)),
    Route::post("/config/remove", PROMPT, SMALL, |verb| on(verb, config::remove_config_key)),
    Route::get("/config/extensions", READ, |verb| on(verb, config::get_config_extensions)),
    Route::get("/config/providers", READ, |verb| on(verb, config::get_config_providers)),
    Route::get("/config/providers/{name}/models", READ, |verb| on(verb, config::get_config_provider_models)),
    Route::post("/config/providers/{name}/model-info", READ, SMALL, |verb| on(verb, config::get_config_model_info)),
    Route::post("/config/canonical-model-info", READ, SMALL, |verb| on(verb, config::get_config_canonical_model_info)),
    Route::get("/config/provider-catalog", READ, |verb| on(verb, config::get_config_provider_catalog)),
    Route::get("/config/provider-catalog/{id}", READ, |verb| on(verb, config::get_config_catalog_entry)),
    Route::post("/config/set_provider", PROMPT, SMALL, |verb| on(verb, config::set_config_provider)),
    Route::post("/config/check_provider", READ, SMALL, |verb| on(verb, config::check_config_provider)),
    Route::get("/config/prompts", READ, |verb| on(verb, config::get_config_prompts)),
    Route::get("/config/slash_commands", READ, |verb| on(verb, config::get_config_slash_commands)),
    Route::get("/config/validate", READ, |verb| on(verb, config::validate_config)),
    Route::get("/system_info", READ, |verb| on(verb, config::get_config_system_info)),
    Route::post("/telemetry/event", READ, SMALL, |verb| on(verb, config::discard_config_telemetry)),
    Route::post("/recipes/create", PROMPT, SMALL, |verb| on(verb, recipes::post_recipe_create)),
    Route::post("/recipes/encode", READ, SMALL, |verb| on(verb, recipes::post_recipe_encode)),
    Route::post("/recipes/decode", READ, SMALL, |verb| on(verb, recipes::post_recipe_decode)),
    Route::post("/recipes/scan", READ, SMALL, |verb| on(verb, recipes::post_recipe_scan)),
    Route::get("/recipes/list", READ, |verb| on(verb, recipes::get_recipe_list)),
    Route::post("/recipes/save", PROMPT, SMALL, |verb| on(verb, recipes::post_recipe_save)),
    Route::post("/recipes/delete", PROMPT, SMALL, |verb| on(verb, recipes::post_recipe_delete)),
    Route::post("/recipes/parse", READ, SMALL, |verb| on(verb, recipes::post_recipe_parse)),
    Route::post("/recipes/slash-command", PROMPT, SMALL, |verb| on(verb, recipes::post_recipe_slash_command)),
    Route::post("/recipes/schedule", PROMPT, SMALL, |verb| on(verb, recipes::post_recipe_schedule)),
    Route::post("/recipes/to-yaml", READ, SMALL, |verb| on(verb, recipes::post_recipe_to_yaml)),
    Route::get("/schedule/list", READ, |verb| on(verb, schedule::list_schedules)),
    Route::post("/schedule/create", PROMPT, SMALL, |verb| on(verb, schedule::create_schedule)),
    goose_put_route("/schedule/{id}", PROMPT, |verb| on(verb, schedule::update_schedule)),
    goose_delete_route("/schedule/delete/{id}", PROMPT, |verb| on(verb, schedule::delete_schedule)),
    Route::post("/schedule/{id}/run_now", PROMPT, Payload::Any(Size::Small), |verb| {
        on(verb, schedule::run_schedule_now)
    }),
    Route::post("/schedule/{id}/pause", PROMPT, Payload::Any(Size::Small), |verb| on(verb, schedule::pause_schedule)),
    Route::post("/schedule/{id}/unpause", PROMPT, Payload::Any(Size::Small), |verb| {
        on(verb, schedule::unpause_schedule)
    }),
    Route::post("/schedule/{id}/kill", PROMPT, Payload::Any(Size::Small), |verb| {
        on(verb, schedule::kill_running_schedule)
    }),
    Route::get("/schedule/{id}/inspect", READ, |verb| on(verb, schedule::inspect_schedule)),
    Route::get("/schedule/{id}/sessions", READ, |verb| on(verb, schedule::list_schedule_sessions)),
    Route::post("/agent/call_tool", APPROVE, SMALL, |verb| on(verb, tools::call_goose_tool)),
    Route::post("/agent/read_resource", PROMPT, SMALL, |verb| on(verb, tools::read_goose_tool_resource)),
    Route::post("/extensions/add", PROMPT, SMALL, |verb| on(verb, replaced::replaced_add_extension)),
    Route::post("/extensions/remove", PROMPT, SMALL, |verb| on(verb, replaced::replaced_remove_extension)),
    Route::post("/agent/prompt", PROMPT, SMALL, |verb| on(verb, replaced::replaced_extend_prompt)),
    Route::post("/agent/session_config", PROMPT, SMALL, |verb| on(verb, replaced::replaced_set_session_config)),
    Route::post("/agent/add_sub_recipes", PROMPT, SMALL, |verb| on(verb, replaced::replaced_add_sub_recipes)),
    Route::get("/agent/versions", READ, |verb| on(verb, replaced::replaced_list_versions)),
    Route::get("/config/current-model", READ, |verb| on(verb, replaced::replaced_current_model)),
    Route::post("/config/pricing", READ, SMALL, |verb| on(verb, replaced::replaced_list_prices)),
    goose_put_route("/sessions/{id}/metadata", PROMPT, |verb| on(verb, replaced::replaced_set_description)),
    goose_put_route("/sessions/{id}/description", PROMPT, |verb| on(verb, replaced::replaced_set_description)),
    goose_delete_route("/sessions/{id}/delete", PROMPT, |verb| on(verb, sessions::delete_goose_session)),
    Route::post("/sessions/{id}/edit_message", PROMPT, SMALL, |verb| on(verb, replaced::replaced_edit_message)),
    Route::post("/context/manage", PROMPT, LARGE, |verb| on(verb, replaced::replaced_manage_context)),
    Route::post("/tool_result", PROMPT, LARGE, |verb| on(verb, replaced::replaced_submit_tool_result)),
    Route::post("/agent/set_container", PROMPT, SMALL, UNSUPPORTED),
    Route::post("/config/permissions", PROMPT, SMALL, UNSUPPORTED),
    Route::post("/config/extensions", PROMPT, SMALL, |verb| on(verb, config::post_config_extension)),
    goose_delete_route("/config/extensions/{name}", PROMPT, |verb| on(verb, config::delete_config_extension)),
    Route::post("/config/custom-providers", PROMPT, SMALL, UNSUPPORTED),
    Route::post("/sessions/import/nostr", PROMPT, SMALL, UNSUPPORTED),
    Route::post("/sessions/{id}/share/nostr", PROMPT, SMALL, UNSUPPORTED),
    Route::post("/sessions/{id}/sampling/message", PROMPT, SMALL, UNSUPPORTED),
    Route::get("/diagnostics/{id}", READ, UNSUPPORTED),
    Route::get("/tunnel/status", READ, UNSUPPORTED),
    Route::post("/tunnel/start", PROMPT, Payload::None, UNSUPPORTED),
    Route::post("/tunnel/stop", PROMPT, Payload::None, UNSUPPORTED),
    Route::get("/dictation/config", READ, UNSUPPORTED),
    Route::get("/dictation/models", READ, UNSUPPORTED),
    Route::post("/dictation/transcribe", PROMPT, LARGE, UNSUPPORTED),
    Route::get("/local-inference/models", READ, UNSUPPORTED),
    Route::get("/local-inference/search", READ, UNSUPPORTED),
];

const fn goose_delete_route(
    path: &'static str,
    access: Access,
    serve: gander_http::Serve<Arc<HttpState>>,
) -> Route<Arc<HttpState>> {
    Route { verb: Verb::Delete, ..Route::get(path, access, serve) }
}

const fn goose_put_route(
    path: &'static str,
    access: Access,
    serve: gander_http::Serve<Arc<HttpState>>,
) -> Route<Arc<HttpState>> {
    Route { verb: Verb::Put, ..Route::post(path, access, SMALL, serve) }
}

/// Who calls, and what every handler shares.
pub(crate) struct GooseCaller {
    pub(crate) state: Arc<HttpState>,
    pub(crate) identity: gander_domain::caller::Caller,
    pub(crate) peer: ClientPeer,
}

impl GooseCaller {
    fn services(&self) -> &Arc<Services> {
        &self.state.services
    }
}

impl FromRequestParts<Arc<HttpState>> for GooseCaller {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, state: &Arc<HttpState>) -> Result<Self, Response> {
        let Some(identity) = parts.extensions.get::<gander_domain::caller::Caller>().cloned() else {
            return Err(problem_response(StatusCode::UNAUTHORIZED, "unauthorized", "a token is needed"));
        };
        if body::declares_foreign_charset(&parts.headers) {
            return Err(GooseError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "the body must be UTF-8").into_response());
        }
        let peer = ClientPeer::new(identity.clone());
        Ok(Self { state: Arc::clone(state), identity, peer })
    }
}

/// The session in an address. An id that we cannot have made is the id of none.
pub(crate) struct SessionInPath(SessionId);

impl FromRequestParts<Arc<HttpState>> for SessionInPath {
    type Rejection = GooseError;

    async fn from_request_parts(parts: &mut Parts, state: &Arc<HttpState>) -> Result<Self, GooseError> {
        let path = Path::<String>::from_request_parts(parts, state).await;
        let id = path.ok().and_then(|Path(text)| text.parse().ok());
        id.map(Self).ok_or_else(no_such_goose_session)
    }
}

/// What is answered, or why not.
pub(crate) type HandlerResult = Result<Response, GooseError>;

fn goose_json_response(value: Value) -> HandlerResult {
    Ok(Json(value).into_response())
}

fn goose_empty_response() -> HandlerResult {
    Ok(StatusCode::OK.into_response())
}

/// Reads a body: what is no JSON is a bad request, what has another form or no store can hold cannot be processed.
fn read_goose_json<T: DeserializeOwned>(body: &Bytes) -> Result<T, GooseError> {
    let unprocessable = |text: String| GooseError::new(StatusCode::UNPROCESSABLE_ENTITY, text);
    let value: Value = serde_json::from_slice(body).map_err(|error| match error.to_string() {
        text if text.starts_with("number out of range") => unprocessable(text),
        text => goose_bad_request(format!("not JSON: {text}")),
    })?;
    if contains_nul(&value) {
        return Err(unprocessable("NUL in a text".to_owned()));
    }
    serde_json::from_value(value).map_err(|error| unprocessable(error.to_string()))
}

/// Reads a body that is sent to the address of a session: if it names a session, then this one.
fn read_goose_json_for_session<T: DeserializeOwned>(session: SessionId, body: &Bytes) -> Result<T, GooseError> {
    let value: Value = read_goose_json(body)?;
    let named = ["session_id", "sessionId"].iter().filter_map(|name| value.get(name)).find(|named| !named.is_null());
    if named.is_some_and(|named| named.as_str().and_then(|id| id.parse().ok()) != Some(session)) {
        return Err(goose_bad_request("session_id of the body and the session of the address differ"));
    }
    serde_json::from_value(value).map_err(|error| GooseError::new(StatusCode::UNPROCESSABLE_ENTITY, error.to_string()))
}

/// How many of a list are wanted: a number from 1 on. More than `most` are never given at once.
fn parse_goose_limit(said: Option<&str>, most: usize) -> Result<Option<usize>, GooseError> {
    let Some(said) = said else { return Ok(None) };
    match said.parse::<u32>() {
        Ok(0) | Err(_) => Err(goose_bad_request(format!("limit must be a number from 1 to {most}"))),
        Ok(limit) => Ok(Some((limit as usize).min(most))),
    }
}

/// Reads an answer to a question: what has another form is as bad a request as what is no JSON.
fn read_goose_answer_json<T: DeserializeOwned>(body: &Bytes) -> Result<T, GooseError> {
    read_goose_json(body).map_err(|error| goose_bad_request(error.message))
}
