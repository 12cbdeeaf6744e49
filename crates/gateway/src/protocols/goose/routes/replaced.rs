//! Routes of goosed 1.8 to 1.21 that its later versions replaced by others.

use bytes::Bytes;
use gander_agent::recipe::{self, Recipe};
use gander_domain::{Command, SessionId};
use gander_services::apply_recipe::amend_recipe;
use gander_services::errors::service_error_from_recipe;
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

use super::sessions as current;
use super::{
    GooseCaller, HandlerResult, SessionInPath, goose_empty_response, goose_json_response, read_goose_json,
    read_goose_json_for_session,
};
use crate::protocols::goose::error::{GooseError, no_such_goose_session};
use crate::protocols::goose::{config, extensions, runs, sessions};

/// `POST /extensions/add` (until 1.12): for one session, or for all as in 1.8, which had one agent.
pub(crate) async fn replaced_add_extension(caller: GooseCaller, body: Bytes) -> HandlerResult {
    let config: Value = read_goose_json(&body)?;
    let session = optional_session_of_replaced(config.get("session_id"))?;
    let added = extensions::add_goose_extension(caller.services(), &caller.peer, session, &config).await;
    replaced_extension_response(added.map_err(|error| format!("Failed to add extension: {error}")))
}

/// `POST /extensions/remove` (until 1.12): 1.8 sent the name alone.
pub(crate) async fn replaced_remove_extension(caller: GooseCaller, body: Bytes) -> HandlerResult {
    let request: Value = read_goose_json(&body)?;
    let name = request.as_str().or_else(|| request["name"].as_str());
    let name = name.ok_or_else(|| GooseError::new(StatusCode::UNPROCESSABLE_ENTITY, "missing field `name`"))?;
    let session = optional_session_of_replaced(request.get("session_id"))?;
    let removed = extensions::remove_extension(caller.services(), &caller.peer.caller, session, name).await;
    replaced_extension_response(removed.map_err(|error| format!("Failed to remove extension: {error}")))
}

/// `POST /agent/prompt` (until 1.11): more for the agent to heed in this session.
pub(crate) async fn replaced_extend_prompt(caller: GooseCaller, body: Bytes) -> HandlerResult {
    #[derive(Deserialize)]
    struct ExtendPrompt {
        session_id: String,
        extension: String,
    }
    let ExtendPrompt { session_id, extension } = read_goose_json(&body)?;
    amend_recipe_of_replaced(&caller, &session_id, |recipe| {
        let before = recipe.instructions.take().map(|before| format!("{before}\n\n")).unwrap_or_default();
        recipe.instructions = Some(before + &extension);
    })
    .await
}

/// `POST /agent/session_config` (until 1.11): the form of the result.
pub(crate) async fn replaced_set_session_config(caller: GooseCaller, body: Bytes) -> HandlerResult {
    #[derive(Deserialize)]
    struct SessionConfig {
        session_id: String,
        response: Option<Value>,
    }
    let SessionConfig { session_id, response } = read_goose_json(&body)?;
    let checked = check_replaced_recipe_field("response", response.unwrap_or_default())?;
    amend_recipe_of_replaced(&caller, &session_id, |recipe| recipe.response = checked.response).await
}

/// `POST /agent/add_sub_recipes` (until 1.11).
pub(crate) async fn replaced_add_sub_recipes(caller: GooseCaller, body: Bytes) -> HandlerResult {
    #[derive(Deserialize)]
    struct AddSubRecipes {
        session_id: String,
        sub_recipes: Value,
    }
    let AddSubRecipes { session_id, sub_recipes } = read_goose_json(&body)?;
    let checked = check_replaced_recipe_field("sub_recipes", sub_recipes)?;
    amend_recipe_of_replaced(&caller, &session_id, |recipe| {
        recipe.sub_recipes.retain(|old| checked.sub_recipes.iter().all(|new| new.name != old.name));
        recipe.sub_recipes.extend(checked.sub_recipes);
    })
    .await
}

/// `GET /agent/versions`, as it was before there were sessions.
pub(crate) async fn replaced_list_versions(caller: GooseCaller) -> HandlerResult {
    let agent = caller.services().default_session_settings().agent;
    goose_json_response(json!({ "available_versions": [agent], "default_version": agent }))
}

/// `GET /config/current-model` (until 1.10).
pub(crate) async fn replaced_current_model(caller: GooseCaller) -> HandlerResult {
    let default = config::goose_config_default_model(caller.services(), &caller.peer).await?;
    goose_json_response(json!({ "model": default["modelId"] }))
}

/// `POST /config/pricing` (until 1.25): what is known of prices, for one model or for all.
pub(crate) async fn replaced_list_prices(caller: GooseCaller, body: Bytes) -> HandlerResult {
    #[derive(Deserialize)]
    struct PricingQuery {
        configured_only: Option<bool>,
        provider: Option<String>,
        model: Option<String>,
    }
    let PricingQuery { configured_only, provider, model } = read_goose_json(&body)?;
    let wanted = |name: &str, other: &Option<String>| other.as_deref().is_none_or(|other| other == name);
    let mut pricing = Vec::new();
    for known in caller.services().models.providers() {
        let left_out = configured_only == Some(true) && !known.configured;
        if left_out || !wanted(&known.name, &provider) {
            continue;
        }
        pricing.extend(known.models.iter().filter(|info| wanted(&info.model, &model)).filter_map(|info| {
            let price = info.price.as_ref()?;
            let per_token = |micros: u64| micros as f64 / 1e12;
            Some(json!({
                "provider": known.name, "model": info.model, "input_token_cost": per_token(price.input),
                "output_token_cost": per_token(price.output), "currency": "$", "context_length": info.window,
            }))
        }));
    }
    goose_json_response(json!({ "pricing": pricing, "source": "gander" }))
}

/// `PUT /sessions/{id}/metadata` (until 1.9) and `/description` (until 1.12): what is now its name.
pub(crate) async fn replaced_set_description(
    caller: GooseCaller,
    SessionInPath(session): SessionInPath,
    body: Bytes,
) -> HandlerResult {
    #[derive(Deserialize)]
    struct SetDescription {
        description: String,
    }
    let title =
        sessions::check_session_title(&read_goose_json_for_session::<SetDescription>(session, &body)?.description)?;
    sessions::find_own_goose_session(caller.services(), &caller.peer, session).await?;
    runs::send_goose_command(caller.services(), &caller.peer, session, Command::SetTitle { title }).await?;
    goose_empty_response()
}

/// `POST /sessions/{id}/edit_message` (1.16 to 1.21): goes back before a message, in this session or in a copy of it.
pub(crate) async fn replaced_edit_message(caller: GooseCaller, session: SessionInPath, body: Bytes) -> HandlerResult {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct EditMessage {
        timestamp: i64,
        #[serde(default)]
        edit_type: EditType,
    }
    #[derive(Default, PartialEq, Deserialize)]
    #[serde(rename_all = "camelCase")]
    enum EditType {
        #[default]
        Fork,
        Edit,
    }
    let EditMessage { timestamp, edit_type } = read_goose_json(&body)?;
    let fork = json!({ "timestamp": timestamp, "truncate": true, "copy": edit_type == EditType::Fork });
    current::post_session_fork(caller, session, Bytes::from(fork.to_string())).await
}

/// `POST /context/manage` (until 1.12): clients called it when goose said that the window was full.
pub(crate) async fn replaced_manage_context(_caller: GooseCaller) -> HandlerResult {
    let why = "this server makes room by itself when the window fills up: send the prompt, or /compact";
    Err(GooseError::new(StatusCode::NOT_IMPLEMENTED, why))
}

/// `POST /tool_result` (until 1.9): the result of a tool that the client carries out. Such tools cannot be added here.
pub(crate) async fn replaced_submit_tool_result(_caller: GooseCaller, body: Bytes) -> HandlerResult {
    #[derive(Deserialize)]
    struct ToolResultRequest {
        id: String,
    }
    let ToolResultRequest { id } = read_goose_json(&body)?;
    let id = &id[..id.floor_char_boundary(64)];
    Err(GooseError::new(StatusCode::NOT_FOUND, format!("no tool waits for a result of its client: {id}")))
}

fn optional_session_of_replaced(said: Option<&Value>) -> Result<Option<SessionId>, GooseError> {
    let said = said.filter(|said| !said.is_null());
    said.map(|said| said.as_str().and_then(|id| id.parse().ok()).ok_or_else(no_such_goose_session)).transpose()
}

/// These routes say in the body whether they succeeded.
fn replaced_extension_response(done: Result<(), String>) -> HandlerResult {
    goose_json_response(json!({ "error": done.is_err(), "message": done.err() }))
}

/// A recipe that has this field and nothing else that matters: it says whether the field is in order.
fn check_replaced_recipe_field(field: &str, value: Value) -> Result<Recipe, GooseError> {
    let mut stub = json!({ "title": "-", "description": "-", "prompt": "-" });
    stub[field] = value;
    recipe::recipe_from_value(stub).map_err(|flaw| service_error_from_recipe(&flaw).into())
}

async fn amend_recipe_of_replaced(
    caller: &GooseCaller,
    session: &str,
    change: impl FnOnce(&mut Recipe),
) -> HandlerResult {
    let session: SessionId = session.parse().map_err(|_| no_such_goose_session())?;
    let view = sessions::find_own_goose_session(caller.services(), &caller.peer, session).await?;
    amend_recipe(caller.services(), &caller.identity, &view, change).await?;
    goose_json_response(json!({ "success": true }))
}
