//! Settings, providers and models as goose's pages ask for them.

use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query};
use axum::response::IntoResponse;
use bytes::Bytes;
use gander_domain::SessionId;
use gander_models::ModelInfo;
use gander_services::extension_changes::Switch;
use gander_services::models::Provider;
use gander_services::user_store::Collection;
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{GooseCaller, HandlerResult, goose_empty_response, goose_json_response, read_goose_json};
use crate::protocols::goose::error::{GooseError, goose_bad_request};
use crate::protocols::goose::extension_methods::{goose_command_type, goose_slash_commands_of};
use crate::protocols::goose::{config, extensions, providers as shown};

/// A model that says nothing of its window is shown with this one, as goose does.
const DEFAULT_CONTEXT_WINDOW: u64 = 128_000;

#[derive(Deserialize)]
struct ConfigKey {
    key: String,
    #[serde(default)]
    is_secret: bool,
    #[serde(default)]
    value: Value,
}

#[derive(Deserialize)]
struct ChosenProvider {
    provider: String,
    model: Option<String>,
}

/// `GET /config`.
pub(crate) async fn get_config(caller: GooseCaller) -> HandlerResult {
    goose_json_response(json!({ "config": config::all_goose_config(caller.services(), &caller.peer).await? }))
}

/// `POST /config/read`: of a secret only whether it is set.
pub(crate) async fn read_config_key(caller: GooseCaller, body: Bytes) -> HandlerResult {
    let ConfigKey { key, is_secret, .. } = read_goose_json(&body)?;
    if is_secret || config::is_secret_config_key(caller.services(), &key) {
        let providers = caller.services().models.providers();
        let set = providers.iter().flat_map(|provider| &provider.variables).any(|known| known.name == key && known.set);
        return goose_json_response(if set { json!({ "maskedValue": "***" }) } else { Value::Null });
    }
    goose_json_response(
        config::all_goose_config(caller.services(), &caller.peer).await?.remove(&key).unwrap_or_default(),
    )
}

/// `POST /config/upsert`.
pub(crate) async fn upsert_config_key(caller: GooseCaller, body: Bytes) -> HandlerResult {
    let ConfigKey { key, is_secret, value } = read_goose_json(&body)?;
    if is_secret {
        let why = "keys come from the environment or the settings file, not over the network";
        return Err(GooseError::new(StatusCode::FORBIDDEN, format!("{why}: {key}")));
    }
    config::save_goose_config_key(caller.services(), &caller.peer, Collection::Config, &key, value).await?;
    goose_json_response(json!(format!("Upserted key {key}")))
}

/// `POST /config/remove`.
pub(crate) async fn remove_config_key(caller: GooseCaller, body: Bytes) -> HandlerResult {
    let ConfigKey { key, .. } = read_goose_json(&body)?;
    match config::delete_goose_config_key(caller.services(), &caller.peer, Collection::Config, &key).await? {
        true => goose_json_response(json!(format!("Removed key {key}"))),
        false => Err(GooseError::new(StatusCode::NOT_FOUND, format!("no such key: {key}"))),
    }
}

/// `GET /config/extensions`.
pub(crate) async fn get_config_extensions(caller: GooseCaller) -> HandlerResult {
    let enabled = |(mut config, on): (Value, bool)| {
        config["enabled"] = json!(on);
        config
    };
    let all: Vec<Value> = extensions::list_known_goose_extensions(caller.services(), &caller.peer.caller)
        .into_iter()
        .map(enabled)
        .collect();
    goose_json_response(json!({ "extensions": all, "warnings": [] }))
}

/// `POST /config/extensions`.
pub(crate) async fn post_config_extension(caller: GooseCaller, body: Bytes) -> HandlerResult {
    #[derive(Deserialize)]
    struct Add {
        name: String,
        #[serde(default)]
        config: Value,
        enabled: Option<bool>,
    }
    let Add { name, mut config, enabled } = read_goose_json(&body)?;
    if enabled == Some(false) {
        return switch_config_extension_off(&caller, &name).await;
    }
    if !config.is_object() {
        config = json!({});
    }
    config["name"] = json!(name);
    extensions::add_goose_extension(caller.services(), &caller.peer, None, &config).await?;
    goose_json_response(json!(format!("Extension '{name}' added")))
}

/// `DELETE /config/extensions/{name}`.
pub(crate) async fn delete_config_extension(caller: GooseCaller, Path(name): Path<String>) -> HandlerResult {
    remove_config_extension(&caller, &name).await
}

/// One that is not used stays in the list.
async fn switch_config_extension_off(caller: &GooseCaller, name: &str) -> HandlerResult {
    check_known_config_extension(caller, name)?;
    extensions::switch_extension(caller.services(), &caller.peer.caller, name, Switch::Off).await?;
    goose_json_response(json!(format!("Extension '{name}' disabled")))
}

fn check_known_config_extension(caller: &GooseCaller, name: &str) -> Result<(), GooseError> {
    match extensions::list_known_goose_extensions(caller.services(), &caller.peer.caller)
        .iter()
        .any(|(known, _)| extensions::extension_config_name(known) == name)
    {
        true => Ok(()),
        false => Err(GooseError::new(StatusCode::NOT_FOUND, format!("no such extension: {name}"))),
    }
}

async fn remove_config_extension(caller: &GooseCaller, name: &str) -> HandlerResult {
    check_known_config_extension(caller, name)?;
    extensions::remove_extension(caller.services(), &caller.peer.caller, None, name).await?;
    goose_json_response(json!(format!("Extension '{name}' removed")))
}

/// `GET /config/providers`.
pub(crate) async fn get_config_providers(caller: GooseCaller) -> HandlerResult {
    let providers = caller.services().models.providers();
    goose_json_response(Value::Array(providers.iter().map(config_provider_details).collect()))
}

/// `GET /config/providers/{name}/models`.
pub(crate) async fn get_config_provider_models(caller: GooseCaller, Path(name): Path<String>) -> HandlerResult {
    let provider = find_config_provider(&caller, &name)?;
    goose_json_response(provider.models.iter().map(config_model_info_object).collect())
}

/// `POST /config/providers/{name}/model-info`.
pub(crate) async fn get_config_model_info(caller: GooseCaller, Path(name): Path<String>, body: Bytes) -> HandlerResult {
    #[derive(Deserialize)]
    struct ModelInfoRequest {
        model: String,
    }
    let ModelInfoRequest { model } = read_goose_json(&body)?;
    let provider = find_config_provider(&caller, &name)?;
    let known = provider.models.iter().find(|known| known.model == model);
    goose_json_response(
        known.map_or_else(
            || json!({ "name": model, "context_limit": DEFAULT_CONTEXT_WINDOW }),
            config_model_info_object,
        ),
    )
}

/// `POST /config/canonical-model-info`.
pub(crate) async fn get_config_canonical_model_info(caller: GooseCaller, body: Bytes) -> HandlerResult {
    #[derive(Deserialize)]
    struct CanonicalModelRequest {
        provider: String,
        model: String,
    }
    let CanonicalModelRequest { provider: name, model } = read_goose_json(&body)?;
    let provider = find_config_provider(&caller, &name).ok();
    let known = provider.and_then(|provider| provider.models.into_iter().find(|known| known.model == model));
    let data = known.map(|known| {
        let mut data = config_model_info_object(&known);
        data["provider"] = json!(name);
        data["model"] = json!(model);
        data["max_output_tokens"] = json!(known.max_output);
        data["currency"] = json!("$");
        data
    });
    goose_json_response(json!({ "model_info": data, "source": "canonical" }))
}

/// `GET /config/provider-catalog`.
pub(crate) async fn get_config_provider_catalog(caller: GooseCaller) -> HandlerResult {
    goose_json_response(caller.services().models.providers().iter().map(config_provider_catalog_object).collect())
}

/// `GET /config/provider-catalog/{id}`.
pub(crate) async fn get_config_catalog_entry(caller: GooseCaller, Path(id): Path<String>) -> HandlerResult {
    let provider =
        find_config_provider(&caller, &id).map_err(|_| GooseError::new(StatusCode::NOT_FOUND, "no such provider"))?;
    let mut entry = config_provider_catalog_object(&provider);
    entry["supports_streaming"] = json!(true);
    entry["models"] = provider
        .models
        .iter()
        .map(|model| {
            let capabilities = json!({
                "tool_call": true, "reasoning": model.thinking, "attachment": model.images, "temperature": true,
            });
            json!({
                "id": model.model, "name": model.model, "context_limit": model.window.unwrap_or(DEFAULT_CONTEXT_WINDOW),
                "capabilities": capabilities, "deprecated": false,
            })
        })
        .collect();
    goose_json_response(entry)
}

/// `POST /config/set_provider`: for new sessions.
pub(crate) async fn set_config_provider(caller: GooseCaller, body: Bytes) -> HandlerResult {
    let ChosenProvider { provider, model } = read_goose_json(&body)?;
    config::save_goose_config_default_model(caller.services(), &caller.peer, &provider, model.as_deref()).await?;
    goose_empty_response()
}

/// `POST /config/check_provider`.
pub(crate) async fn check_config_provider(caller: GooseCaller, body: Bytes) -> HandlerResult {
    let ChosenProvider { provider: name, .. } = read_goose_json(&body)?;
    match find_config_provider(&caller, &name)?.configured {
        true => goose_empty_response(),
        false => Err(goose_bad_request(format!("provider is not configured: {name}"))),
    }
}

/// `GET /config/prompts`: the built-in agent's prompt is made anew for every turn, there is no template to edit.
pub(crate) async fn get_config_prompts(_caller: GooseCaller) -> HandlerResult {
    goose_json_response(json!({ "prompts": [] }))
}

/// What `GET /config/slash_commands` may ask for. goose sends `working_dir`, which makes no difference here.
#[derive(Deserialize)]
pub(crate) struct SlashCommandsQuery {
    session_id: Option<SessionId>,
}

/// `GET /config/slash_commands`: what `/reply` carries out in every session, or in the one that is named.
pub(crate) async fn get_config_slash_commands(
    caller: GooseCaller,
    query: Result<Query<SlashCommandsQuery>, QueryRejection>,
) -> HandlerResult {
    let Query(query) = query.map_err(|error| goose_bad_request(error.body_text()))?;
    let commands = goose_slash_commands_of(caller.services(), &caller.peer, query.session_id).await?;
    let told = commands.iter().map(|command| {
        json!({ "command": command.name, "help": command.description, "command_type": goose_command_type(command.kind) })
    });
    goose_json_response(json!({ "commands": told.collect::<Vec<_>>() }))
}

/// `GET /config/validate`: a server that runs has read its settings.
pub(crate) async fn validate_config(_caller: GooseCaller) -> HandlerResult {
    goose_json_response(json!("Config file is valid"))
}

/// `GET /system_info`.
pub(crate) async fn get_config_system_info(caller: GooseCaller) -> HandlerResult {
    let all = config::all_goose_config(caller.services(), &caller.peer).await?;
    let on = extensions::goose_global_extensions(caller.services(), &caller.peer.caller);
    let on: Vec<&str> = on.iter().map(extensions::extension_config_name).collect();
    goose_json_response(json!({
        "app_version": gander_services::VERSION, "os": std::env::consts::OS, "os_version": "",
        "architecture": std::env::consts::ARCH, "provider": all.get("GOOSE_PROVIDER"), "model": all.get("GOOSE_MODEL"),
        "enabled_extensions": on,
    }))
}

/// `POST /telemetry/event`: taken, and thrown away.
pub(crate) async fn discard_config_telemetry(_caller: GooseCaller) -> HandlerResult {
    Ok(StatusCode::ACCEPTED.into_response())
}

fn find_config_provider(caller: &GooseCaller, name: &str) -> Result<Provider, GooseError> {
    let found = caller.services().models.providers().into_iter().find(|known| known.name == name);
    found.ok_or_else(|| goose_bad_request(format!("no such provider: {name}")))
}

fn config_provider_details(provider: &Provider) -> Value {
    let keys: Vec<Value> = provider
        .variables
        .iter()
        .map(|variable| {
            let key = shown::provider_config_key(provider, variable);
            json!({
                "name": key["name"], "required": key["required"], "secret": key["secret"], "default": null,
                "oauth_flow": false, "device_code_flow": false, "primary": key["primary"],
            })
        })
        .collect();
    json!({
        "name": provider.name, "is_configured": provider.configured, "provider_type": "Builtin",
        "metadata": {
            "name": provider.name, "display_name": provider.title, "description": shown::goose_provider_description(provider),
            "default_model": provider.default_model.as_deref().unwrap_or_default(),
            "known_models": provider.models.iter().map(config_model_info_object).collect::<Vec<_>>(), "model_doc_link": "",
            "config_keys": keys, "setup_steps": [],
        },
    })
}

fn config_provider_catalog_object(provider: &Provider) -> Value {
    let key = provider.variables.iter().find(|variable| variable.secret).map_or("", |key| key.name.as_str());
    json!({
        "id": provider.name, "name": provider.title, "format": "openai", "api_url": "",
        "model_count": provider.models.len(), "doc_url": "", "env_var": key,
    })
}

fn config_model_info_object(model: &ModelInfo) -> Value {
    let price = model.price.as_ref();
    let per_token = |micros: u64| micros as f64 / 1e12;
    json!({
        "name": model.model, "context_limit": model.window.unwrap_or(DEFAULT_CONTEXT_WINDOW), "reasoning": model.thinking,
        "input_token_cost": price.map(|price| per_token(price.input)),
        "output_token_cost": price.map(|price| per_token(price.output)), "currency": "$",
    })
}
