//! goose's REST as of 1.35, with the forms of 1.8 to 1.39 and what a branch of it added.

mod agent;
mod apps;
mod config;
mod prompts;
mod recipes;
mod replaced;
mod runs;
mod schedule;
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
use gander_http::error::problem;
use gander_http::route::{Access, Payload, Route, Size, Verb};
use gander_http::state::HttpState;
use gander_services::Services;
use gander_wire::check::contains_nul;
use http::StatusCode;
use http::request::Parts;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::error::{GooseError, bad_request, no_such_session};
use crate::ClientPeer;

const READ: Access = Access::Token(Scope::Read);
const PROMPT: Access = Access::Token(Scope::Prompt);
const APPROVE: Access = Access::Token(Scope::Approve);
const SMALL: Payload = Payload::Json(Size::Small);
const LARGE: Payload = Payload::Json(Size::Prompt);

const UNSUPPORTED: gander_http::Serve<Arc<HttpState>> = |verb| on(verb, unsupported::refuse_unsupported);

/// goose's table.
pub(crate) const ROUTES: &[Route<Arc<HttpState>>] = &[
    Route::post("/reply", PROMPT, LARGE, |verb| on(verb, runs::reply)),
    Route::post("/sessions/{id}/reply", PROMPT, LARGE, |verb| on(verb, runs::session_reply)),
    Route::get("/sessions/{id}/events", READ, |verb| on(verb, runs::session_events)),
    Route::post("/sessions/{id}/cancel", PROMPT, SMALL, |verb| on(verb, runs::cancel_request)),
    Route::post("/action-required/tool-confirmation", APPROVE, SMALL, |verb| on(verb, runs::confirm_tool)),
    Route::post("/confirm", APPROVE, SMALL, |verb| on(verb, runs::confirm_tool)),
    Route::get("/sessions", READ, |verb| on(verb, sessions::list_sessions)),
    Route::get("/sessions/search", READ, |verb| on(verb, sessions::search_sessions)),
    Route::get("/sessions/insights", READ, |verb| on(verb, sessions::session_insights)),
    Route::post("/sessions/import", PROMPT, LARGE, |verb| on(verb, sessions::import_session)),
    delete_route("/sessions/{id}", PROMPT, |verb| on(verb, sessions::delete_session)),
    put_route("/sessions/{id}/name", PROMPT, |verb| on(verb, sessions::rename_session)),
    put_route("/sessions/{id}/user_recipe_values", PROMPT, |verb| on(verb, sessions::set_recipe_values)),
    Route::get("/sessions/{id}/export", READ, |verb| on(verb, sessions::export_session)),
    Route::get("/sessions/{id}/extensions", READ, |verb| on(verb, sessions::list_session_extensions)),
    Route::post("/sessions/{id}/fork", PROMPT, SMALL, |verb| on(verb, sessions::fork_session)),
    Route::post("/sessions/{id}/clear", PROMPT, Payload::None, |verb| on(verb, sessions::clear_session)),
    Route::post("/sessions/{id}/messages", PROMPT, LARGE, |verb| on(verb, sessions::add_message)),
    Route::post("/sessions/{id}/recipe", PROMPT, Payload::None, |verb| on(verb, sessions::recipe_from_session)),
    Route::post("/agent/start", PROMPT, SMALL, |verb| on(verb, agent::start_agent)),
    Route::post("/agent/resume", PROMPT, SMALL, |verb| on(verb, agent::resume_agent)),
    Route::post("/agent/restart", PROMPT, SMALL, |verb| on(verb, agent::restart_agent)),
    Route::post("/agent/stop", PROMPT, SMALL, |verb| on(verb, agent::stop_agent)),
    Route::post("/agent/update_provider", PROMPT, SMALL, |verb| on(verb, agent::update_provider)),
    Route::post("/agent/update_session", PROMPT, SMALL, |verb| on(verb, agent::update_session)),
    Route::post("/agent/update_from_session", PROMPT, SMALL, |verb| on(verb, agent::update_from_session)),
    Route::post("/agent/update_working_dir", PROMPT, SMALL, |verb| on(verb, agent::update_working_dir)),
    Route::get("/agent/tools", READ, |verb| on(verb, agent::list_tools)),
    Route::post("/agent/add_extension", PROMPT, SMALL, |verb| on(verb, agent::add_extension)),
    Route::post("/agent/extensions", PROMPT, SMALL, |verb| on(verb, agent::add_extension)),
    Route::post("/agent/remove_extension", PROMPT, SMALL, |verb| on(verb, agent::remove_extension)),
    Route::get("/agent/list_apps", READ, |verb| on(verb, apps::list_apps)),
    Route::get("/agent/export_app/{name}", READ, |verb| on(verb, apps::export_app)),
    Route::post("/agent/import_app", PROMPT, LARGE, |verb| on(verb, apps::import_app)),
    Route::get("/agent/prompts", READ, |verb| on(verb, prompts::list_prompts)),
    Route::post("/agent/prompts", PROMPT, SMALL, |verb| on(verb, prompts::use_prompt)),
    Route::get("/config", READ, |verb| on(verb, config::get_config)),
    Route::post("/config/read", READ, SMALL, |verb| on(verb, config::read_config_key)),
    Route::post("/config/upsert", PROMPT, SMALL, |verb| on(verb, config::upsert_config_key)),
    Route::post("/config/remove", PROMPT, SMALL, |verb| on(verb, config::remove_config_key)),
    Route::get("/config/extensions", READ, |verb| on(verb, config::list_extensions)),
    Route::get("/config/providers", READ, |verb| on(verb, config::list_providers)),
    Route::get("/config/providers/{name}/models", READ, |verb| on(verb, config::list_models)),
    Route::post("/config/providers/{name}/model-info", READ, SMALL, |verb| on(verb, config::get_model_info)),
    Route::post("/config/canonical-model-info", READ, SMALL, |verb| on(verb, config::get_canonical_model_info)),
    Route::get("/config/provider-catalog", READ, |verb| on(verb, config::list_provider_catalog)),
    Route::get("/config/provider-catalog/{id}", READ, |verb| on(verb, config::get_catalog_entry)),
    Route::post("/config/set_provider", PROMPT, SMALL, |verb| on(verb, config::set_provider)),
    Route::post("/config/check_provider", READ, SMALL, |verb| on(verb, config::check_provider)),
    Route::get("/config/prompts", READ, |verb| on(verb, config::list_prompt_templates)),
    Route::get("/config/slash_commands", READ, |verb| on(verb, config::list_slash_commands)),
    Route::get("/config/validate", READ, |verb| on(verb, config::validate_config)),
    Route::get("/system_info", READ, |verb| on(verb, config::get_system_info)),
    Route::post("/telemetry/event", READ, SMALL, |verb| on(verb, config::discard_telemetry)),
    Route::post("/recipes/create", PROMPT, SMALL, |verb| on(verb, recipes::create_recipe)),
    Route::post("/recipes/encode", READ, SMALL, |verb| on(verb, recipes::encode_recipe)),
    Route::post("/recipes/decode", READ, SMALL, |verb| on(verb, recipes::decode_recipe)),
    Route::post("/recipes/scan", READ, SMALL, |verb| on(verb, recipes::scan_recipe)),
    Route::get("/recipes/list", READ, |verb| on(verb, recipes::list_recipes)),
    Route::post("/recipes/save", PROMPT, SMALL, |verb| on(verb, recipes::save_recipe)),
    Route::post("/recipes/delete", PROMPT, SMALL, |verb| on(verb, recipes::delete_recipe)),
    Route::post("/recipes/parse", READ, SMALL, |verb| on(verb, recipes::parse_recipe)),
    Route::post("/recipes/slash-command", PROMPT, SMALL, |verb| on(verb, recipes::set_slash_command)),
    Route::post("/recipes/schedule", PROMPT, SMALL, |verb| on(verb, recipes::schedule_recipe)),
    Route::post("/recipes/to-yaml", READ, SMALL, |verb| on(verb, recipes::recipe_to_yaml)),
    Route::get("/schedule/list", READ, |verb| on(verb, schedule::list_schedules)),
    Route::post("/schedule/create", PROMPT, SMALL, |verb| on(verb, schedule::create_schedule)),
    put_route("/schedule/{id}", PROMPT, |verb| on(verb, schedule::update_schedule)),
    delete_route("/schedule/delete/{id}", PROMPT, |verb| on(verb, schedule::delete_schedule)),
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
    Route::post("/agent/call_tool", APPROVE, SMALL, |verb| on(verb, tools::call_tool)),
    Route::post("/agent/read_resource", PROMPT, SMALL, |verb| on(verb, tools::read_resource)),
    Route::post("/extensions/add", PROMPT, SMALL, |verb| on(verb, replaced::add_extension)),
    Route::post("/extensions/remove", PROMPT, SMALL, |verb| on(verb, replaced::remove_extension)),
    Route::post("/agent/prompt", PROMPT, SMALL, |verb| on(verb, replaced::extend_prompt)),
    Route::post("/agent/session_config", PROMPT, SMALL, |verb| on(verb, replaced::set_session_config)),
    Route::post("/agent/add_sub_recipes", PROMPT, SMALL, |verb| on(verb, replaced::add_sub_recipes)),
    Route::get("/agent/versions", READ, |verb| on(verb, replaced::list_versions)),
    Route::get("/config/current-model", READ, |verb| on(verb, replaced::current_model)),
    Route::post("/config/pricing", READ, SMALL, |verb| on(verb, replaced::list_prices)),
    put_route("/sessions/{id}/metadata", PROMPT, |verb| on(verb, replaced::set_description)),
    put_route("/sessions/{id}/description", PROMPT, |verb| on(verb, replaced::set_description)),
    delete_route("/sessions/{id}/delete", PROMPT, |verb| on(verb, sessions::delete_session)),
    Route::post("/sessions/{id}/edit_message", PROMPT, SMALL, |verb| on(verb, replaced::edit_message)),
    Route::post("/context/manage", PROMPT, LARGE, |verb| on(verb, replaced::manage_context)),
    Route::post("/tool_result", PROMPT, LARGE, |verb| on(verb, replaced::submit_tool_result)),
    Route::post("/agent/set_container", PROMPT, SMALL, UNSUPPORTED),
    Route::post("/config/permissions", PROMPT, SMALL, UNSUPPORTED),
    Route::post("/config/extensions", PROMPT, SMALL, |verb| on(verb, config::add_extension)),
    delete_route("/config/extensions/{name}", PROMPT, |verb| on(verb, config::remove_extension)),
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

const fn delete_route(
    path: &'static str,
    access: Access,
    serve: gander_http::Serve<Arc<HttpState>>,
) -> Route<Arc<HttpState>> {
    Route { verb: Verb::Delete, ..Route::get(path, access, serve) }
}

const fn put_route(
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
            return Err(problem(StatusCode::UNAUTHORIZED, "unauthorized", "a token is needed"));
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
        id.map(Self).ok_or_else(no_such_session)
    }
}

/// What is answered, or why not.
pub(crate) type HandlerResult = Result<Response, GooseError>;

fn json_response(value: Value) -> HandlerResult {
    Ok(Json(value).into_response())
}

fn empty_response() -> HandlerResult {
    Ok(StatusCode::OK.into_response())
}

/// Reads a body: what is no JSON is a bad request, what has another form or no store can hold cannot be processed.
fn read_json<T: DeserializeOwned>(body: &Bytes) -> Result<T, GooseError> {
    let unprocessable = |text: String| GooseError::new(StatusCode::UNPROCESSABLE_ENTITY, text);
    let value: Value = serde_json::from_slice(body).map_err(|error| match error.to_string() {
        text if text.starts_with("number out of range") => unprocessable(text),
        text => bad_request(format!("not JSON: {text}")),
    })?;
    if contains_nul(&value) {
        return Err(unprocessable("NUL in a text".to_owned()));
    }
    serde_json::from_value(value).map_err(|error| unprocessable(error.to_string()))
}

/// Reads a body that is sent to the address of a session: if it names a session, then this one.
fn read_json_for_session<T: DeserializeOwned>(session: SessionId, body: &Bytes) -> Result<T, GooseError> {
    let value: Value = read_json(body)?;
    let named = ["session_id", "sessionId"].iter().filter_map(|name| value.get(name)).find(|named| !named.is_null());
    if named.is_some_and(|named| named.as_str().and_then(|id| id.parse().ok()) != Some(session)) {
        return Err(bad_request("session_id of the body and the session of the address differ"));
    }
    serde_json::from_value(value).map_err(|error| GooseError::new(StatusCode::UNPROCESSABLE_ENTITY, error.to_string()))
}

/// How many of a list are wanted: a number from 1 on. More than `most` are never given at once.
fn parse_limit(said: Option<&str>, most: usize) -> Result<Option<usize>, GooseError> {
    let Some(said) = said else { return Ok(None) };
    match said.parse::<u32>() {
        Ok(0) | Err(_) => Err(bad_request(format!("limit must be a number from 1 to {most}"))),
        Ok(limit) => Ok(Some((limit as usize).min(most))),
    }
}

/// Reads an answer to a question: what has another form is as bad a request as what is no JSON.
fn read_answer_json<T: DeserializeOwned>(body: &Bytes) -> Result<T, GooseError> {
    read_json(body).map_err(|error| bad_request(error.message))
}
