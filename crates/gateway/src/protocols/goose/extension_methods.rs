//! goose's extension methods (`_goose/…`): those that chat, sessions, tools, providers and settings need.

use gander_domain::{Command, QuestionId, Reply, RunOrigin, ServiceError, SessionId, SlashCommand, SlashCommandKind};
use gander_runtime::hub::Ack;
use gander_services::errors::service_error_from_hub;
use gander_services::extension_changes::Switch;
use gander_services::models::Provider;
use gander_services::user_store::Collection;
use gander_services::{Services, slash_commands};
use gander_wire::goose::session::goose_session_time;
use serde::Deserialize;
use serde_json::{Value, json};

use super::method_params::{read_goose_method_params, unknown_goose_method};
use super::{config, extensions, providers, recipe_methods, sessions, tools};
use crate::ClientPeer;

/// Preferences that goose's pages keep at the server.
const PREFERENCES: [&str; 5] = [
    "autoCompactThreshold",
    "gooseThinkingEffort",
    "voiceAutoSubmitPhrases",
    "voiceDictationProvider",
    "voiceDictationPreferredMic",
];

/// Carries out a method; its name comes without `_goose/`. 1.35 had the same methods without `unstable/`.
pub async fn handle_goose_method(
    services: &Services,
    peer: &ClientPeer,
    name: &str,
    params: Value,
) -> Result<Value, ServiceError> {
    let name = name.strip_prefix("unstable/").unwrap_or(name);
    match name.split('/').next() {
        Some("session" | "working_dir" | "elicitation") => {
            handle_goose_session_method(services, peer, name, params).await
        }
        Some("config" | "defaults" | "preferences") => handle_goose_settings_method(services, peer, name, params).await,
        Some("providers") => handle_goose_provider_method(services, name, params),
        Some("apps") => recipe_methods::handle_app_method(services, peer, name, params).await,
        Some("recipes") => recipe_methods::handle_recipe_method(services, peer, name, params).await,
        Some("schedules") => recipe_methods::handle_schedule_method(services, peer, name, params).await,
        Some(_) | None => match name {
            "tools/list" | "tools" => {
                let view = sessions::find_own_goose_session(
                    services,
                    peer,
                    read_goose_method_params::<Named>(params)?.session_id,
                )
                .await?;
                Ok(json!({ "tools": tools::goose_session_tools(services, &view) }))
            }
            "extensions/available" => {
                Ok(json!({ "extensions": extensions::goose_global_extensions(services, &peer.caller) }))
            }
            "extensions/add" => handle_goose_add_extension(services, peer, params).await,
            "extensions/remove" => handle_goose_remove_extension(services, peer, params).await,
            "slash-commands/list" => handle_goose_list_commands(services, peer, params).await,
            "sources/list" => Ok(json!({ "sources": [] })),
            _ => Err(unknown_goose_method(name)),
        },
    }
}

/// The slash commands of a session, or without one those of every new session, with the kind that goose's menus show.
async fn handle_goose_list_commands(
    services: &Services,
    peer: &ClientPeer,
    params: Value,
) -> Result<Value, ServiceError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Listed {
        session_id: Option<SessionId>,
    }
    let session = if params.is_null() { None } else { read_goose_method_params::<Listed>(params)?.session_id };
    let commands = goose_slash_commands_of(services, peer, session).await?;
    let told = commands.iter().map(|command| {
        let mut told = json!({ "name": command.name, "description": command.description });
        told["_meta"] = json!({ "commandType": goose_command_type(command.kind) });
        if !command.hint.is_empty() {
            told["input"] = json!({ "hint": command.hint });
        }
        told
    });
    Ok(json!({ "availableCommands": told.collect::<Vec<_>>() }))
}

/// The slash commands of a session of this client's, or without one those of every new session.
pub(super) async fn goose_slash_commands_of(
    services: &Services,
    peer: &ClientPeer,
    session: Option<SessionId>,
) -> Result<Vec<SlashCommand>, ServiceError> {
    match session {
        Some(session) => slash_commands::list_session_slash_commands(services, &peer.caller, session).await,
        None => slash_commands::list_slash_commands(services, &peer.caller, None).await,
    }
}

/// goose knows two kinds.
pub(super) fn goose_command_type(kind: SlashCommandKind) -> &'static str {
    match kind {
        SlashCommandKind::Session | SlashCommandKind::Agent => "Builtin",
        SlashCommandKind::Recipe | SlashCommandKind::McpPrompt => "Recipe",
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Named {
    session_id: SessionId,
}

async fn handle_goose_session_method(
    services: &Services,
    peer: &ClientPeer,
    name: &str,
    params: Value,
) -> Result<Value, ServiceError> {
    let known = |command| async {
        handle_goose_session_command(
            services,
            peer,
            read_goose_method_params::<Named>(params.clone())?.session_id,
            command,
        )
        .await
    };
    match name {
        "session/info" => handle_goose_session_info(services, peer, params).await,
        "session/export" => {
            let view =
                sessions::find_own_goose_session(services, peer, read_goose_method_params::<Named>(params)?.session_id)
                    .await?;
            Ok(json!({ "data": sessions::export_goose_session(services, &view).await? }))
        }
        "session/import" => handle_goose_import_session(services, peer, params).await,
        "session/rename" => {
            let title = sessions::check_session_title(params["title"].as_str().unwrap_or_default())?;
            known(Command::SetTitle { title }).await
        }
        "session/archive" => known(Command::Archive { archived: true }).await,
        "session/unarchive" => known(Command::Archive { archived: false }).await,
        "session/conversation/truncate" => handle_goose_truncate_session(services, peer, params).await,
        "session/extensions/list" | "session/extensions" => {
            let session = read_goose_method_params::<Named>(params)?.session_id;
            let view = sessions::find_own_goose_session(services, peer, session).await?;
            let keyed = |config: Value| json!({ "extensionKey": extensions::extension_config_name(&config), "extension": config });
            Ok(
                json!({ "extensions": extensions::goose_session_extensions(services, &view).into_iter().map(keyed).collect::<Vec<_>>() }),
            )
        }
        "session/extensions/add" => handle_goose_add_extension(services, peer, params).await,
        "session/extensions/remove" => handle_goose_remove_extension(services, peer, params).await,
        "session/working-dir/update" | "working_dir/update" => {
            handle_goose_update_working_dir(services, peer, params).await
        }
        "elicitation/respond" => handle_goose_elicitation_response(services, peer, params).await,
        _ => Err(unknown_goose_method(name)),
    }
}

async fn handle_goose_toggle_extension(
    services: &Services,
    peer: &ClientPeer,
    params: &Value,
) -> Result<Value, ServiceError> {
    let switch = match params["enabled"].as_bool() {
        Some(true) => Switch::On,
        Some(false) => Switch::Off,
        None => return Err(ServiceError::BadParams("missing field `enabled`".to_owned())),
    };
    let name = params["configKey"].as_str().unwrap_or_default();
    extensions::switch_extension(services, &peer.caller, name, switch).await.map(|()| json!({}))
}

async fn handle_goose_add_extension(
    services: &Services,
    peer: &ClientPeer,
    params: Value,
) -> Result<Value, ServiceError> {
    let session = read_goose_method_params::<Named>(params.clone())?.session_id;
    extensions::add_goose_extension(services, peer, Some(session), &params["config"]).await.map(|()| json!({}))
}

async fn handle_goose_remove_extension(
    services: &Services,
    peer: &ClientPeer,
    params: Value,
) -> Result<Value, ServiceError> {
    let session = read_goose_method_params::<Named>(params.clone())?.session_id;
    let name = params["name"].as_str().unwrap_or_default();
    extensions::remove_extension(services, &peer.caller, Some(session), name).await.map(|()| json!({}))
}

async fn handle_goose_settings_method(
    services: &Services,
    peer: &ClientPeer,
    name: &str,
    params: Value,
) -> Result<Value, ServiceError> {
    let key = || params["key"].as_str().unwrap_or_default();
    match name {
        "config/read" if config::is_secret_config_key(services, key()) => Ok(json!({ "value": null })),
        "config/read" => Ok(json!({ "value": config::all_goose_config(services, peer).await?.get(key()) })),
        "config/read-all" => Ok(json!({ "config": config::all_goose_config(services, peer).await? })),
        "config/upsert" => {
            config::save_goose_config_key(services, peer, Collection::Config, key(), params["value"].clone()).await?;
            Ok(json!({}))
        }
        "config/remove" => {
            config::delete_goose_config_key(services, peer, Collection::Config, key()).await.map(|_| json!({}))
        }
        "config/extensions/list" | "config/extensions" => {
            let entry = |(config, on): (Value, bool)| json!({ "configKey": extensions::extension_config_name(&config), "extension": config, "enabled": on });
            let entries: Vec<Value> =
                extensions::list_known_goose_extensions(services, &peer.caller).into_iter().map(entry).collect();
            Ok(json!({ "extensions": entries, "warnings": [] }))
        }
        "config/extensions/add" => {
            let Some(mut config) = params["extensionConfig"].as_object().cloned().map(Value::Object) else {
                return Err(ServiceError::BadParams("extensionConfig must be an object".to_owned()));
            };
            config["name"] = params["name"].clone();
            extensions::add_goose_extension(services, peer, None, &config).await.map(|()| json!({}))
        }
        "config/extensions/remove" => {
            let name = params["configKey"].as_str().unwrap_or_default();
            extensions::remove_extension(services, &peer.caller, None, name).await.map(|()| json!({}))
        }
        "config/extensions/toggle" => handle_goose_toggle_extension(services, peer, &params).await,
        "defaults/read" => config::goose_config_default_model(services, peer).await,
        "defaults/save" => {
            let provider = params["providerId"].as_str().unwrap_or_default();
            config::save_goose_config_default_model(services, peer, provider, params["modelId"].as_str()).await?;
            config::goose_config_default_model(services, peer).await
        }
        "preferences/read" => handle_goose_load_preferences(services, peer, &params).await,
        "preferences/save" => handle_goose_save_preferences(services, peer, &params).await,
        "preferences/remove" => {
            for key in params["keys"].as_array().into_iter().flatten().filter_map(Value::as_str) {
                config::delete_goose_config_key(services, peer, Collection::Preference, key).await?;
            }
            Ok(json!({}))
        }
        _ => Err(unknown_goose_method(name)),
    }
}

fn handle_goose_provider_method(services: &Services, name: &str, params: Value) -> Result<Value, ServiceError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct ProviderQuery {
        #[serde(default)]
        provider_ids: Vec<String>,
        provider_id: Option<String>,
    }
    let ProviderQuery { provider_ids, provider_id } = read_goose_method_params(params)?;
    let all = services.models.providers();
    let listed = || all.iter().filter(|known| provider_ids.is_empty() || provider_ids.contains(&known.name));
    let named = || -> Result<&Provider, ServiceError> {
        let id = provider_id.clone().unwrap_or_default();
        let found = all.iter().find(|known| known.name == id);
        found.ok_or_else(|| ServiceError::BadParams(format!("no such provider: {id}")))
    };
    match name {
        "providers/list" => Ok(json!({ "entries": listed().map(providers::goose_provider_entry).collect::<Vec<_>>() })),
        "providers/supported-models/list" => {
            let models: Vec<&str> = named()?.models.iter().map(|model| model.model.as_str()).collect();
            Ok(json!({ "providerId": named()?.name, "models": models }))
        }
        "providers/config/read" => Ok(json!({ "fields": providers::goose_provider_fields(named()?) })),
        "providers/config/status" => {
            let status = |known: &Provider| json!({ "providerId": known.name, "isConfigured": known.configured });
            Ok(json!({ "statuses": listed().map(status).collect::<Vec<_>>() }))
        }
        _ => Err(unknown_goose_method(name)),
    }
}

async fn handle_goose_session_info(
    services: &Services,
    peer: &ClientPeer,
    params: Value,
) -> Result<Value, ServiceError> {
    let view =
        sessions::find_own_goose_session(services, peer, read_goose_method_params::<Named>(params)?.session_id).await?;
    let object = sessions::load_goose_session_object(services, &view).await?;
    let meta = json!({
    "messageCount": view.messages, "createdAt": goose_session_time(view.created_at), "userSetName": view.title.is_some(),
    "sessionType": "acp", "hasRecipe": !object["recipe"].is_null(), "providerId": object["provider_name"],
    "modelId": object["model_config"]["model_name"],
    });
    let session = json!({
    "sessionId": view.session, "cwd": view.workspace, "title": object["name"],
    "updatedAt": goose_session_time(view.updated_at), "_meta": meta,
    });
    Ok(json!({ "session": session }))
}

async fn handle_goose_import_session(
    services: &Services,
    peer: &ClientPeer,
    params: Value,
) -> Result<Value, ServiceError> {
    #[derive(Deserialize)]
    struct Import {
        data: String,
    }
    let view =
        sessions::import_goose_session(services, peer, &read_goose_method_params::<Import>(params)?.data).await?;
    Ok(json!({
    "sessionId": view.session, "title": view.title, "updatedAt": goose_session_time(view.updated_at),
    "messageCount": view.messages,
    }))
}

/// Goes back to before a message, which is named by its id or by the second it was said in.
async fn handle_goose_truncate_session(
    services: &Services,
    peer: &ClientPeer,
    params: Value,
) -> Result<Value, ServiceError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Truncate {
        session_id: SessionId,
        truncate_from: Value,
    }
    let Truncate { session_id, truncate_from } = read_goose_method_params(params)?;
    sessions::find_own_goose_session(services, peer, session_id).await?;
    let transcript = sessions::load_session_transcript(services, session_id).await?;
    let by_time = truncate_from.as_i64().map(|second| transcript.count_before_second(second));
    let count = truncate_from.as_str().map_or(by_time, |id| transcript.count_before_message(id));
    let count = count.ok_or_else(|| ServiceError::BadParams(format!("no such message: {truncate_from}")))?;
    handle_goose_session_command(services, peer, session_id, transcript.rewind_command(count)).await
}

/// A session keeps the folder it began in: every path in its history is about that one.
async fn handle_goose_update_working_dir(
    services: &Services,
    peer: &ClientPeer,
    params: Value,
) -> Result<Value, ServiceError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Update {
        session_id: SessionId,
        working_dir: String,
    }
    let Update { session_id, working_dir } = read_goose_method_params(params)?;
    let view = sessions::find_own_goose_session(services, peer, session_id).await?;
    if services.workspaces.is_same_folder(&working_dir, &view.workspace) {
        return Ok(json!({}));
    }
    let chosen = services.workspaces.choose_workspace(&services.hub, &peer.caller, &working_dir).await;
    chosen.map_err(|error| ServiceError::BadWorkspace(error.to_string()))?;
    Err(ServiceError::BadWorkspace("a session keeps its folder, begin another one there".to_owned()))
}

async fn handle_goose_elicitation_response(
    services: &Services,
    peer: &ClientPeer,
    params: Value,
) -> Result<Value, ServiceError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Respond {
        session_id: SessionId,
        elicitation_id: QuestionId,
        #[serde(default)]
        user_data: Value,
    }
    let Respond { session_id, elicitation_id, user_data } = read_goose_method_params(params)?;
    let reply = if user_data.is_null() { Reply::Declined } else { Reply::Filled { content: user_data } };
    let origin = RunOrigin { by: peer.caller.principal.clone(), door: "goose".to_owned() };
    handle_goose_session_command(
        services,
        peer,
        session_id,
        Command::Answer { question: elicitation_id, reply, origin, meta: None },
    )
    .await
}

async fn handle_goose_load_preferences(
    services: &Services,
    peer: &ClientPeer,
    params: &Value,
) -> Result<Value, ServiceError> {
    let saved = config::load_goose_config(services, peer, Collection::Preference).await?;
    let wanted: Vec<&str> = params["keys"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let keys = if wanted.is_empty() { PREFERENCES.to_vec() } else { wanted };
    let values: Vec<Value> = keys.iter().map(|key| json!({ "key": key, "value": saved.get(*key) })).collect();
    Ok(json!({ "values": values }))
}

async fn handle_goose_save_preferences(
    services: &Services,
    peer: &ClientPeer,
    params: &Value,
) -> Result<Value, ServiceError> {
    for entry in params["values"].as_array().into_iter().flatten() {
        let key = entry["key"].as_str().unwrap_or_default();
        config::save_goose_config_key(services, peer, Collection::Preference, key, entry["value"].clone()).await?;
    }
    Ok(json!({}))
}

async fn handle_goose_session_command(
    services: &Services,
    peer: &ClientPeer,
    session: SessionId,
    command: Command,
) -> Result<Value, ServiceError> {
    sessions::find_own_goose_session(services, peer, session).await?;
    let done = services.hub.execute_command(&peer.caller, session, command, Ack::Synced).await;
    done.map(|_| json!({})).map_err(|error| service_error_from_hub(session, &error))
}
