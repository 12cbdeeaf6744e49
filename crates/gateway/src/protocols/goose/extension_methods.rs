//! goose's extension methods (`_goose/…`): those that chat, sessions, tools, providers and settings need.

use gander_domain::{Command, QuestionId, Reply, RunOrigin, ServiceError, SessionId};
use gander_runtime::hub::Ack;
use gander_services::Services;
use gander_services::errors::{refusal, unavailable};
use gander_services::extension_changes::Switch;
use gander_services::models::Provider;
use gander_services::recipes::Slash;
use gander_services::user_store::Shelf;
use gander_wire::goose::session::time;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{config, extensions, providers, recipe_methods, sessions};
use crate::Peer;

/// Preferences that goose's pages keep at the server.
const PREFERENCES: [&str; 5] = [
    "autoCompactThreshold",
    "gooseThinkingEffort",
    "voiceAutoSubmitPhrases",
    "voiceDictationProvider",
    "voiceDictationPreferredMic",
];

/// Carries out a method; its name comes without `_goose/`. 1.35 had the same methods without `unstable/`.
pub async fn call(desk: &Services, peer: &Peer, name: &str, params: Value) -> Result<Value, ServiceError> {
    let name = name.strip_prefix("unstable/").unwrap_or(name);
    match name.split('/').next() {
        Some("session" | "working_dir" | "elicitation") => about_session(desk, peer, name, params).await,
        Some("config" | "defaults" | "preferences") => about_settings(desk, peer, name, params).await,
        Some("providers") => about_providers(desk, name, params),
        Some("apps") => recipe_methods::about_apps(desk, peer, name, params).await,
        Some("recipes") => recipe_methods::about_recipes(desk, peer, name, params).await,
        Some("schedules") => recipe_methods::about_schedules(desk, peer, name, params).await,
        Some(_) | None => match name {
            "tools/list" | "tools" => {
                let view = sessions::own(desk, peer, read::<Named>(params)?.session_id).await?;
                Ok(json!({ "tools": providers::tools(desk, &view) }))
            }
            "extensions/available" => Ok(json!({ "extensions": extensions::everywhere(desk, &peer.caller) })),
            "extensions/add" => add_extension(desk, peer, params).await,
            "extensions/remove" => remove_extension(desk, peer, params).await,
            "slash-commands/list" => Ok(json!({ "availableCommands": all_commands(desk, peer).await? })),
            "sources/list" => Ok(json!({ "sources": [] })),
            _ => Err(unknown(name)),
        },
    }
}

/// The slash commands there are, with the kind that goose's menus show.
pub fn commands() -> Vec<Value> {
    let command = |name: &str, description: &str| json!({ "name": name, "description": description, "_meta": { "commandType": "Builtin" } });
    vec![
        command("clear", "Start over with an empty conversation in the same workspace"),
        command("title", "Give this session a title"),
    ]
}

/// The same, and the recipes that somebody calls by a slash.
async fn all_commands(desk: &Services, peer: &Peer) -> Result<Vec<Value>, ServiceError> {
    let slashes = desk.recipes.slashes(&peer.caller.principal).await.map_err(|error| unavailable(&error))?;
    let recipe = |slash: &Slash| {
        let kind = json!({ "commandType": "Recipe" });
        json!({ "name": slash.name, "description": slash.recipe.description, "_meta": kind })
    };
    Ok(commands().into_iter().chain(slashes.iter().map(recipe)).collect())
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Named {
    session_id: SessionId,
}

async fn about_session(desk: &Services, peer: &Peer, name: &str, params: Value) -> Result<Value, ServiceError> {
    let known = |command| async { command_own(desk, peer, read::<Named>(params.clone())?.session_id, command).await };
    match name {
        "session/info" => info(desk, peer, params).await,
        "session/export" => {
            let view = sessions::own(desk, peer, read::<Named>(params)?.session_id).await?;
            Ok(json!({ "data": sessions::export(desk, &view).await? }))
        }
        "session/import" => import(desk, peer, params).await,
        "session/rename" => {
            let title = sessions::title(params["title"].as_str().unwrap_or_default())?;
            known(Command::SetTitle { title }).await
        }
        "session/archive" => known(Command::Archive { archived: true }).await,
        "session/unarchive" => known(Command::Archive { archived: false }).await,
        "session/conversation/truncate" => truncate(desk, peer, params).await,
        "session/extensions/list" | "session/extensions" => {
            let session = read::<Named>(params)?.session_id;
            let view = sessions::own(desk, peer, session).await?;
            let keyed = |config: Value| json!({ "extensionKey": extensions::name(&config), "extension": config });
            Ok(json!({ "extensions": extensions::of_session(desk, &view).into_iter().map(keyed).collect::<Vec<_>>() }))
        }
        "session/extensions/add" => add_extension(desk, peer, params).await,
        "session/extensions/remove" => remove_extension(desk, peer, params).await,
        "session/working-dir/update" | "working_dir/update" => keep_folder(desk, peer, params).await,
        "elicitation/respond" => respond(desk, peer, params).await,
        _ => Err(unknown(name)),
    }
}

async fn toggle(desk: &Services, peer: &Peer, params: &Value) -> Result<Value, ServiceError> {
    let switch = match params["enabled"].as_bool() {
        Some(true) => Switch::On,
        Some(false) => Switch::Off,
        None => return Err(ServiceError::BadParams("missing field `enabled`".to_owned())),
    };
    let name = params["configKey"].as_str().unwrap_or_default();
    extensions::switch(desk, &peer.caller, name, switch).await.map(|()| json!({}))
}

async fn add_extension(desk: &Services, peer: &Peer, params: Value) -> Result<Value, ServiceError> {
    let session = read::<Named>(params.clone())?.session_id;
    extensions::add(desk, peer, Some(session), &params["config"]).await.map(|()| json!({}))
}

async fn remove_extension(desk: &Services, peer: &Peer, params: Value) -> Result<Value, ServiceError> {
    let session = read::<Named>(params.clone())?.session_id;
    let name = params["name"].as_str().unwrap_or_default();
    extensions::remove(desk, &peer.caller, Some(session), name).await.map(|()| json!({}))
}

async fn about_settings(desk: &Services, peer: &Peer, name: &str, params: Value) -> Result<Value, ServiceError> {
    let key = || params["key"].as_str().unwrap_or_default();
    match name {
        "config/read" if config::is_secret(desk, key()) => Ok(json!({ "value": null })),
        "config/read" => Ok(json!({ "value": config::all(desk, peer).await?.get(key()) })),
        "config/read-all" => Ok(json!({ "config": config::all(desk, peer).await? })),
        "config/upsert" => {
            config::save(desk, peer, Shelf::Config, key(), params["value"].clone()).await?;
            Ok(json!({}))
        }
        "config/remove" => config::forget(desk, peer, Shelf::Config, key()).await.map(|_| json!({})),
        "config/extensions/list" | "config/extensions" => {
            let entry = |(config, on): (Value, bool)| json!({ "configKey": extensions::name(&config), "extension": config, "enabled": on });
            let entries: Vec<Value> = extensions::known(desk, &peer.caller).into_iter().map(entry).collect();
            Ok(json!({ "extensions": entries, "warnings": [] }))
        }
        "config/extensions/add" => {
            let Some(mut config) = params["extensionConfig"].as_object().cloned().map(Value::Object) else {
                return Err(ServiceError::BadParams("extensionConfig must be an object".to_owned()));
            };
            config["name"] = params["name"].clone();
            extensions::add(desk, peer, None, &config).await.map(|()| json!({}))
        }
        "config/extensions/remove" => {
            let name = params["configKey"].as_str().unwrap_or_default();
            extensions::remove(desk, &peer.caller, None, name).await.map(|()| json!({}))
        }
        "config/extensions/toggle" => toggle(desk, peer, &params).await,
        "defaults/read" => config::defaults(desk, peer).await,
        "defaults/save" => {
            let provider = params["providerId"].as_str().unwrap_or_default();
            config::save_defaults(desk, peer, provider, params["modelId"].as_str()).await?;
            config::defaults(desk, peer).await
        }
        "preferences/read" => preferences(desk, peer, &params).await,
        "preferences/save" => save_preferences(desk, peer, &params).await,
        "preferences/remove" => {
            for key in params["keys"].as_array().into_iter().flatten().filter_map(Value::as_str) {
                config::forget(desk, peer, Shelf::Preference, key).await?;
            }
            Ok(json!({}))
        }
        _ => Err(unknown(name)),
    }
}

fn about_providers(desk: &Services, name: &str, params: Value) -> Result<Value, ServiceError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Wanted {
        #[serde(default)]
        provider_ids: Vec<String>,
        provider_id: Option<String>,
    }
    let Wanted { provider_ids, provider_id } = read(params)?;
    let all = desk.models.providers();
    let listed = || all.iter().filter(|known| provider_ids.is_empty() || provider_ids.contains(&known.name));
    let named = || -> Result<&Provider, ServiceError> {
        let id = provider_id.clone().unwrap_or_default();
        let found = all.iter().find(|known| known.name == id);
        found.ok_or_else(|| ServiceError::BadParams(format!("no such provider: {id}")))
    };
    match name {
        "providers/list" => Ok(json!({ "entries": listed().map(providers::entry).collect::<Vec<_>>() })),
        "providers/supported-models/list" => {
            let models: Vec<&str> = named()?.models.iter().map(|model| model.model.as_str()).collect();
            Ok(json!({ "providerId": named()?.name, "models": models }))
        }
        "providers/config/read" => Ok(json!({ "fields": providers::fields(named()?) })),
        "providers/config/status" => {
            let status = |known: &Provider| json!({ "providerId": known.name, "isConfigured": known.configured });
            Ok(json!({ "statuses": listed().map(status).collect::<Vec<_>>() }))
        }
        _ => Err(unknown(name)),
    }
}

async fn info(desk: &Services, peer: &Peer, params: Value) -> Result<Value, ServiceError> {
    let view = sessions::own(desk, peer, read::<Named>(params)?.session_id).await?;
    let object = sessions::object(desk, &view).await?;
    let meta = json!({
        "messageCount": view.messages, "createdAt": time(view.created_at), "userSetName": view.title.is_some(),
        "sessionType": "acp", "hasRecipe": !object["recipe"].is_null(), "providerId": object["provider_name"],
        "modelId": object["model_config"]["model_name"],
    });
    let session = json!({
        "sessionId": view.session, "cwd": view.workspace, "title": object["name"],
        "updatedAt": time(view.updated_at), "_meta": meta,
    });
    Ok(json!({ "session": session }))
}

async fn import(desk: &Services, peer: &Peer, params: Value) -> Result<Value, ServiceError> {
    #[derive(Deserialize)]
    struct Import {
        data: String,
    }
    let view = sessions::import(desk, peer, &read::<Import>(params)?.data).await?;
    Ok(json!({
        "sessionId": view.session, "title": view.title, "updatedAt": time(view.updated_at),
        "messageCount": view.messages,
    }))
}

/// Goes back to before a message, which is named by its id or by the second it was said in.
async fn truncate(desk: &Services, peer: &Peer, params: Value) -> Result<Value, ServiceError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Truncate {
        session_id: SessionId,
        truncate_from: Value,
    }
    let Truncate { session_id, truncate_from } = read(params)?;
    sessions::own(desk, peer, session_id).await?;
    let transcript = sessions::transcript(desk, session_id).await?;
    let by_time = truncate_from.as_i64().map(|second| transcript.before_second(second));
    let count = truncate_from.as_str().map_or(by_time, |id| transcript.before_message(id));
    let count = count.ok_or_else(|| ServiceError::BadParams(format!("no such message: {truncate_from}")))?;
    command_own(desk, peer, session_id, transcript.rewind(count)).await
}

/// A session keeps the folder it began in: every path in its history is about that one.
async fn keep_folder(desk: &Services, peer: &Peer, params: Value) -> Result<Value, ServiceError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Update {
        session_id: SessionId,
        working_dir: String,
    }
    let Update { session_id, working_dir } = read(params)?;
    let view = sessions::own(desk, peer, session_id).await?;
    if desk.workspaces.is_same(&working_dir, &view.workspace) {
        return Ok(json!({}));
    }
    let chosen = desk.workspaces.choose(&desk.hub, &peer.caller, &working_dir).await;
    chosen.map_err(|error| ServiceError::BadWorkspace(error.to_string()))?;
    Err(ServiceError::BadWorkspace("a session keeps its folder, begin another one there".to_owned()))
}

async fn respond(desk: &Services, peer: &Peer, params: Value) -> Result<Value, ServiceError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Respond {
        session_id: SessionId,
        elicitation_id: QuestionId,
        #[serde(default)]
        user_data: Value,
    }
    let Respond { session_id, elicitation_id, user_data } = read(params)?;
    let reply = if user_data.is_null() { Reply::Declined } else { Reply::Filled { content: user_data } };
    let origin = RunOrigin { by: peer.caller.principal.clone(), door: "goose".to_owned() };
    command_own(desk, peer, session_id, Command::Answer { question: elicitation_id, reply, origin, meta: None }).await
}

async fn preferences(desk: &Services, peer: &Peer, params: &Value) -> Result<Value, ServiceError> {
    let saved = config::saved(desk, peer, Shelf::Preference).await?;
    let wanted: Vec<&str> = params["keys"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let keys = if wanted.is_empty() { PREFERENCES.to_vec() } else { wanted };
    let values: Vec<Value> = keys.iter().map(|key| json!({ "key": key, "value": saved.get(*key) })).collect();
    Ok(json!({ "values": values }))
}

async fn save_preferences(desk: &Services, peer: &Peer, params: &Value) -> Result<Value, ServiceError> {
    for entry in params["values"].as_array().into_iter().flatten() {
        let key = entry["key"].as_str().unwrap_or_default();
        config::save(desk, peer, Shelf::Preference, key, entry["value"].clone()).await?;
    }
    Ok(json!({}))
}

async fn command_own(
    desk: &Services,
    peer: &Peer,
    session: SessionId,
    command: Command,
) -> Result<Value, ServiceError> {
    sessions::own(desk, peer, session).await?;
    let done = desk.hub.command(&peer.caller, session, command, Ack::Synced).await;
    done.map(|_| json!({})).map_err(|error| refusal(session, &error))
}

pub(super) fn unknown(name: &str) -> ServiceError {
    ServiceError::UnknownMethod(format!("_goose/unstable/{name}"))
}

/// An id that we cannot have made is the id of no session.
pub(super) fn read<T: DeserializeOwned>(params: Value) -> Result<T, ServiceError> {
    serde_json::from_value(params).map_err(|error| ServiceError::BadParams(error.to_string()))
}
