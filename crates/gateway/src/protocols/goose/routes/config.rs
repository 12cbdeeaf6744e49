//! Settings, providers and models as goose's pages ask for them.

use axum::extract::Path;
use axum::response::IntoResponse;
use bytes::Bytes;
use gander_models::ModelInfo;
use gander_services::extension_changes::Switch;
use gander_services::models::Provider;
use gander_services::user_store::Shelf;
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{Answer, Caller, Fault, bad, empty, json_answer, read};
use crate::protocols::goose::{commands, config, extensions, providers as shown};

/// A model that says nothing of its window is shown with this one, as goose does.
const WINDOW: u64 = 128_000;

#[derive(Deserialize)]
struct Key {
    key: String,
    #[serde(default)]
    is_secret: bool,
    #[serde(default)]
    value: Value,
}

#[derive(Deserialize)]
struct Chosen {
    provider: String,
    model: Option<String>,
}

/// `GET /config`.
pub(crate) async fn all(caller: Caller) -> Answer {
    json_answer(json!({ "config": config::all(caller.desk(), &caller.peer).await? }))
}

/// `POST /config/read`: of a secret only whether it is set.
pub(crate) async fn read_key(caller: Caller, body: Bytes) -> Answer {
    let Key { key, is_secret, .. } = read(&body)?;
    if is_secret || config::is_secret(caller.desk(), &key) {
        let providers = caller.desk().models.providers();
        let set = providers.iter().flat_map(|provider| &provider.variables).any(|known| known.name == key && known.set);
        return json_answer(if set { json!({ "maskedValue": "***" }) } else { Value::Null });
    }
    json_answer(config::all(caller.desk(), &caller.peer).await?.remove(&key).unwrap_or_default())
}

/// `POST /config/upsert`.
pub(crate) async fn upsert(caller: Caller, body: Bytes) -> Answer {
    let Key { key, is_secret, value } = read(&body)?;
    if is_secret {
        let why = "keys come from the environment or the settings file, not over the network";
        return Err(Fault::new(StatusCode::FORBIDDEN, format!("{why}: {key}")));
    }
    config::save(caller.desk(), &caller.peer, Shelf::Config, &key, value).await?;
    json_answer(json!(format!("Upserted key {key}")))
}

/// `POST /config/remove`.
pub(crate) async fn remove(caller: Caller, body: Bytes) -> Answer {
    let Key { key, .. } = read(&body)?;
    match config::forget(caller.desk(), &caller.peer, Shelf::Config, &key).await? {
        true => json_answer(json!(format!("Removed key {key}"))),
        false => Err(Fault::new(StatusCode::NOT_FOUND, format!("no such key: {key}"))),
    }
}

/// `GET /config/extensions`.
pub(crate) async fn extensions(caller: Caller) -> Answer {
    let enabled = |(mut config, on): (Value, bool)| {
        config["enabled"] = json!(on);
        config
    };
    let all: Vec<Value> = extensions::known(caller.desk(), &caller.peer.caller).into_iter().map(enabled).collect();
    json_answer(json!({ "extensions": all, "warnings": [] }))
}

/// `POST /config/extensions`.
pub(crate) async fn add_extension(caller: Caller, body: Bytes) -> Answer {
    #[derive(Deserialize)]
    struct Add {
        name: String,
        #[serde(default)]
        config: Value,
        enabled: Option<bool>,
    }
    let Add { name, mut config, enabled } = read(&body)?;
    if enabled == Some(false) {
        return switched_off(&caller, &name).await;
    }
    if !config.is_object() {
        config = json!({});
    }
    config["name"] = json!(name);
    extensions::add(caller.desk(), &caller.peer, None, &config).await?;
    json_answer(json!(format!("Extension '{name}' added")))
}

/// `DELETE /config/extensions/{name}`.
pub(crate) async fn remove_extension(caller: Caller, Path(name): Path<String>) -> Answer {
    remove_named(&caller, &name).await
}

/// One that is not used stays in the list.
async fn switched_off(caller: &Caller, name: &str) -> Answer {
    known(caller, name)?;
    extensions::switch(caller.desk(), &caller.peer.caller, name, Switch::Off).await?;
    json_answer(json!(format!("Extension '{name}' disabled")))
}

fn known(caller: &Caller, name: &str) -> Result<(), Fault> {
    match extensions::known(caller.desk(), &caller.peer.caller).iter().any(|(known, _)| extensions::name(known) == name)
    {
        true => Ok(()),
        false => Err(Fault::new(StatusCode::NOT_FOUND, format!("no such extension: {name}"))),
    }
}

async fn remove_named(caller: &Caller, name: &str) -> Answer {
    known(caller, name)?;
    extensions::remove(caller.desk(), &caller.peer.caller, None, name).await?;
    json_answer(json!(format!("Extension '{name}' removed")))
}

/// `GET /config/providers`.
pub(crate) async fn providers(caller: Caller) -> Answer {
    let providers = caller.desk().models.providers();
    json_answer(Value::Array(providers.iter().map(details).collect()))
}

/// `GET /config/providers/{name}/models`.
pub(crate) async fn models(caller: Caller, Path(name): Path<String>) -> Answer {
    let provider = provider(&caller, &name)?;
    json_answer(provider.models.iter().map(info).collect())
}

/// `POST /config/providers/{name}/model-info`.
pub(crate) async fn model_info(caller: Caller, Path(name): Path<String>, body: Bytes) -> Answer {
    #[derive(Deserialize)]
    struct Wanted {
        model: String,
    }
    let Wanted { model } = read(&body)?;
    let provider = provider(&caller, &name)?;
    let known = provider.models.iter().find(|known| known.model == model);
    json_answer(known.map_or_else(|| json!({ "name": model, "context_limit": WINDOW }), info))
}

/// `POST /config/canonical-model-info`.
pub(crate) async fn canonical_model_info(caller: Caller, body: Bytes) -> Answer {
    #[derive(Deserialize)]
    struct Wanted {
        provider: String,
        model: String,
    }
    let Wanted { provider: name, model } = read(&body)?;
    let provider = provider(&caller, &name).ok();
    let known = provider.and_then(|provider| provider.models.into_iter().find(|known| known.model == model));
    let data = known.map(|known| {
        let mut data = info(&known);
        data["provider"] = json!(name);
        data["model"] = json!(model);
        data["max_output_tokens"] = json!(known.max_output);
        data["currency"] = json!("$");
        data
    });
    json_answer(json!({ "model_info": data, "source": "canonical" }))
}

/// `GET /config/provider-catalog`.
pub(crate) async fn catalog(caller: Caller) -> Answer {
    json_answer(caller.desk().models.providers().iter().map(catalogued).collect())
}

/// `GET /config/provider-catalog/{id}`.
pub(crate) async fn catalog_entry(caller: Caller, Path(id): Path<String>) -> Answer {
    let provider = provider(&caller, &id).map_err(|_| Fault::new(StatusCode::NOT_FOUND, "no such provider"))?;
    let mut entry = catalogued(&provider);
    entry["supports_streaming"] = json!(true);
    entry["models"] = provider
        .models
        .iter()
        .map(|model| {
            let capabilities = json!({
                "tool_call": true, "reasoning": model.thinking, "attachment": model.images, "temperature": true,
            });
            json!({
                "id": model.model, "name": model.model, "context_limit": model.window.unwrap_or(WINDOW),
                "capabilities": capabilities, "deprecated": false,
            })
        })
        .collect();
    json_answer(entry)
}

/// `POST /config/set_provider`: for new sessions.
pub(crate) async fn set_provider(caller: Caller, body: Bytes) -> Answer {
    let Chosen { provider, model } = read(&body)?;
    config::save_defaults(caller.desk(), &caller.peer, &provider, model.as_deref()).await?;
    empty()
}

/// `POST /config/check_provider`.
pub(crate) async fn check_provider(caller: Caller, body: Bytes) -> Answer {
    let Chosen { provider: name, .. } = read(&body)?;
    match provider(&caller, &name)?.configured {
        true => empty(),
        false => Err(bad(format!("provider is not configured: {name}"))),
    }
}

/// `GET /config/prompts`: the built-in agent's prompt is made anew for every turn, there is no template to edit.
pub(crate) async fn templates(_caller: Caller) -> Answer {
    json_answer(json!({ "prompts": [] }))
}

/// `GET /agent/prompts`: prompts that somebody kept, and the recipes that have one.
pub(crate) async fn prompts(caller: Caller) -> Answer {
    let kept = config::saved(caller.desk(), &caller.peer, Shelf::Prompt).await?;
    let prompts: Vec<Value> =
        kept.iter().map(|(name, text)| json!({ "name": name, "description": null, "content": text })).collect();
    json_answer(json!({ "prompts": prompts }))
}

/// `POST /agent/prompts`: keeps a prompt, or gives one with its arguments filled in.
pub(crate) async fn use_prompt(caller: Caller, body: Bytes) -> Answer {
    #[derive(Deserialize)]
    struct Prompt {
        name: String,
        #[serde(alias = "template", alias = "text")]
        content: Option<String>,
        #[serde(default)]
        arguments: Map<String, Value>,
    }
    let Prompt { name, content, arguments } = read(&body)?;
    if let Some(content) = content {
        config::save(caller.desk(), &caller.peer, Shelf::Prompt, &name, json!(content)).await?;
        return json_answer(json!({ "name": name, "content": content }));
    }
    let kept = config::saved(caller.desk(), &caller.peer, Shelf::Prompt).await?;
    let text = kept.get(&name).ok_or_else(|| Fault::new(StatusCode::NOT_FOUND, format!("no such prompt: {name}")))?;
    let filled = crate::protocols::goose::recipes::filled(text, &Value::Object(arguments));
    let message = json!({ "role": "user", "content": { "type": "text", "text": filled } });
    json_answer(json!({ "name": name, "content": filled, "messages": [message] }))
}

/// `GET /config/slash_commands`: ours, and those of recipes.
pub(crate) async fn slash_commands(caller: Caller) -> Answer {
    let builtin = commands().into_iter().map(
        |command| json!({ "command": command["name"], "help": command["description"], "command_type": "Builtin" }),
    );
    let recipes = config::saved(caller.desk(), &caller.peer, Shelf::Slash).await?;
    let recipes =
        recipes.iter().map(|(id, command)| json!({ "command": command, "help": id, "command_type": "Recipe" }));
    json_answer(json!({ "commands": builtin.chain(recipes).collect::<Vec<_>>() }))
}

/// `GET /config/validate`: a server that runs has read its settings.
pub(crate) async fn validate(_caller: Caller) -> Answer {
    json_answer(json!("Config file is valid"))
}

/// `GET /system_info`.
pub(crate) async fn system_info(caller: Caller) -> Answer {
    let all = config::all(caller.desk(), &caller.peer).await?;
    let on = extensions::everywhere(caller.desk(), &caller.peer.caller);
    let on: Vec<&str> = on.iter().map(extensions::name).collect();
    json_answer(json!({
        "app_version": gander_services::VERSION, "os": std::env::consts::OS, "os_version": "",
        "architecture": std::env::consts::ARCH, "provider": all.get("GOOSE_PROVIDER"), "model": all.get("GOOSE_MODEL"),
        "enabled_extensions": on,
    }))
}

/// `POST /telemetry/event`: taken, and thrown away.
pub(crate) async fn telemetry(_caller: Caller) -> Answer {
    Ok(StatusCode::ACCEPTED.into_response())
}

fn provider(caller: &Caller, name: &str) -> Result<Provider, Fault> {
    let found = caller.desk().models.providers().into_iter().find(|known| known.name == name);
    found.ok_or_else(|| bad(format!("no such provider: {name}")))
}

fn details(provider: &Provider) -> Value {
    let keys: Vec<Value> = provider
        .variables
        .iter()
        .map(|variable| {
            let key = shown::config_key(provider, variable);
            json!({
                "name": key["name"], "required": key["required"], "secret": key["secret"], "default": null,
                "oauth_flow": false, "device_code_flow": false, "primary": key["primary"],
            })
        })
        .collect();
    json!({
        "name": provider.name, "is_configured": provider.configured, "provider_type": "Builtin",
        "metadata": {
            "name": provider.name, "display_name": provider.title, "description": shown::description(provider),
            "default_model": provider.default_model.as_deref().unwrap_or_default(),
            "known_models": provider.models.iter().map(info).collect::<Vec<_>>(), "model_doc_link": "",
            "config_keys": keys, "setup_steps": [],
        },
    })
}

fn catalogued(provider: &Provider) -> Value {
    let key = provider.variables.iter().find(|variable| variable.secret).map_or("", |key| key.name.as_str());
    json!({
        "id": provider.name, "name": provider.title, "format": "openai", "api_url": "",
        "model_count": provider.models.len(), "doc_url": "", "env_var": key,
    })
}

fn info(model: &ModelInfo) -> Value {
    let price = model.price.as_ref();
    let per_token = |micros: u64| micros as f64 / 1e12;
    json!({
        "name": model.model, "context_limit": model.window.unwrap_or(WINDOW), "reasoning": model.thinking,
        "input_token_cost": price.map(|price| per_token(price.input)),
        "output_token_cost": price.map(|price| per_token(price.output)), "currency": "$",
    })
}
