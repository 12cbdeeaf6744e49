//! goose's extension methods about what is prepared: recipes, schedules and apps. Our own command line uses them too.

use gander_domain::caller::Transport;
use gander_domain::{ServiceError, SessionId};
use gander_services::Services;
use gander_services::apply_recipe::{self, ApplyRecipe};
use gander_services::apps::{AppError, AppSummary};
use gander_services::artifacts::ArtifactError;
use gander_services::errors::service_error_from_store;
use gander_services::schedule_methods::{self, NewSchedule, ScheduleError};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::method_params::{read_goose_method_params, unknown_goose_method};
use super::{recipes, sessions};
use crate::ClientPeer;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Given {
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    recipe: Value,
    #[serde(default)]
    content: Option<String>,
    #[serde(default, alias = "deepLink")]
    deeplink: Option<String>,
    #[serde(default)]
    slash_command: Option<String>,
    #[serde(default)]
    session_id: Option<SessionId>,
}

/// `recipes/…`.
pub(super) async fn handle_recipe_method(
    services: &Services,
    peer: &ClientPeer,
    name: &str,
    params: Value,
) -> Result<Value, ServiceError> {
    match name {
        "recipes/apply" => handle_apply_recipe(services, peer, params).await,
        _ => handle_saved_recipe_method(services, peer, name, params).await,
    }
}

async fn handle_saved_recipe_method(
    services: &Services,
    peer: &ClientPeer,
    name: &str,
    params: Value,
) -> Result<Value, ServiceError> {
    let Given { id, recipe, content, deeplink, slash_command, session_id } = read_goose_method_params(params)?;
    let named = || id.as_deref().ok_or_else(|| ServiceError::BadParams("id is missing".to_owned()));
    let known = |found: bool| match found {
        true => Ok(json!({})),
        false => Err(ServiceError::BadParams(format!("no such recipe: {}", id.as_deref().unwrap_or_default()))),
    };
    match name {
        "recipes/list" => Ok(json!({ "manifests": recipes::list_saved_goose_recipes(services, peer).await? })),
        "recipes/read" => {
            let saved = recipes::find_saved_goose_recipe(services, peer, named()?).await?;
            known(saved.is_some()).map(|_| json!({ "recipe": saved }))
        }
        "recipes/save" => Ok(json!({ "id": recipes::save_goose_recipe(services, peer, recipe, id.clone()).await? })),
        "recipes/delete" => known(recipes::delete_goose_recipe(services, peer, named()?).await?),
        "recipes/parse" => {
            Ok(json!({ "recipe": recipes::parse_goose_recipe(content.as_deref().unwrap_or_default())? }))
        }
        "recipes/encode" => {
            recipes::check_goose_recipe(&recipe)?;
            Ok(json!({ "deeplink": gander_agent::recipe::encode_recipe_link(&recipe) }))
        }
        "recipes/decode" => {
            Ok(json!({ "recipe": recipes::decode_goose_recipe_link(deeplink.as_deref().unwrap_or_default())? }))
        }
        "recipes/to-yaml" => Ok(json!({ "yaml": recipes::goose_recipe_yaml(&recipe)? })),
        "recipes/slash-command" => {
            known(recipes::set_recipe_slash_command(services, peer, named()?, slash_command.as_deref()).await?)
        }
        "recipes/create" => {
            let session = session_id.ok_or_else(|| ServiceError::BadParams("sessionId is missing".to_owned()))?;
            let view = sessions::find_own_goose_session(services, peer, session).await?;
            let made = recipes::goose_recipe_from_session(services, peer, &view, None).await?;
            Ok(made.map_or_else(|| json!({ "recipe": null }), |made| recipes::session_recipe_object(&made)))
        }
        _ => Err(unknown_goose_method(name)),
    }
}

/// A session begins to follow a recipe. A folder is believed of local clients only.
async fn handle_apply_recipe(services: &Services, peer: &ClientPeer, params: Value) -> Result<Value, ServiceError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Follow {
        session_id: SessionId,
        recipe: Value,
        #[serde(default)]
        values: Map<String, Value>,
        #[serde(default)]
        folder: Option<String>,
        #[serde(default)]
        approved: Vec<String>,
    }
    let Follow { session_id, recipe, values, folder, approved } = read_goose_method_params(params)?;
    let view = sessions::find_own_goose_session(services, peer, session_id).await?;
    let folder = folder.filter(|_| peer.caller.transport == Transport::Local);
    let wish = ApplyRecipe {
        recipe: recipes::check_goose_recipe(&recipe)?,
        values: recipes::goose_recipe_values(&values),
        folder,
        approved,
    };
    let begun = apply_recipe::apply_recipe(services, &peer.caller, &view, wish).await?;
    Ok(json!({ "prompt": begun.prompt, "recipe": begun.recipe, "absent": begun.absent }))
}

/// `apps/…`.
pub(super) async fn handle_app_method(
    services: &Services,
    peer: &ClientPeer,
    name: &str,
    params: Value,
) -> Result<Value, ServiceError> {
    #[derive(Deserialize)]
    struct Named {
        #[serde(default)]
        name: String,
        #[serde(default)]
        html: String,
        #[serde(default)]
        version: Option<u64>,
    }
    let Named { name: app, html, version } = read_goose_method_params(params)?;
    let (apps, principal) = (&services.apps, &peer.caller.principal);
    let done = match name {
        "apps/list" => apps
            .list(principal)
            .await
            .map(|apps| json!({ "apps": apps.iter().map(AppSummary::to_json).collect::<Vec<_>>() })),
        "apps/export" => apps.read(principal, &app, version).await.map(|(_, html)| json!({ "html": html })),
        "apps/import" => apps.import(principal, html).await.map(|name| json!({ "name": name })),
        "apps/delete" => apps.delete(principal, &app).await.map(|()| json!({})),
        _ => return Err(unknown_goose_method(name)),
    };
    done.map_err(|error| match error {
        AppError::Kept(ArtifactError::Store(error)) => service_error_from_store(&error),
        AppError::Kept(_) | AppError::BadName(_) | AppError::BadPage(_) | AppError::Missing(_) | AppError::Taken(_) => {
            ServiceError::BadParams(error.to_string())
        }
    })
}

/// `schedules/…`.
pub(super) async fn handle_schedule_method(
    services: &Services,
    peer: &ClientPeer,
    name: &str,
    params: Value,
) -> Result<Value, ServiceError> {
    handle_schedule_change(services, peer, name, params).await.map_err(|wrong| match wrong {
        ScheduleError::Missing(_) | ScheduleError::Taken(_) => ServiceError::BadParams(wrong.to_string()),
        ScheduleError::Refused(refusal) => refusal,
    })
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Scheduled {
    #[serde(default)]
    id: String,
    #[serde(default)]
    cron: String,
    #[serde(default)]
    zone: Option<String>,
    #[serde(default)]
    recipe: Value,
    #[serde(default)]
    values: Map<String, Value>,
    #[serde(default)]
    working_dir: Option<String>,
    #[serde(default)]
    folder: Option<String>,
    #[serde(default)]
    source: Option<String>,
    #[serde(default)]
    limit: Option<usize>,
}

async fn handle_schedule_change(
    services: &Services,
    peer: &ClientPeer,
    name: &str,
    params: Value,
) -> Result<Value, ScheduleError> {
    let Scheduled { id, cron, zone, recipe, values, working_dir, folder, source, limit } =
        read_goose_method_params(params)?;
    match name {
        "schedules/list" => Ok(json!({ "jobs": schedule_methods::list_schedules(services, &peer.caller).await })),
        "schedules/create" => {
            let (values, folder) =
                (recipes::goose_recipe_values(&values), folder.filter(|_| peer.caller.transport == Transport::Local));
            let plan = NewSchedule { id, cron, zone, recipe, values, workspace: working_dir, folder, source };
            schedule_methods::create_schedule(services, &peer.caller, plan).await
        }
        "schedules/read" => schedule_methods::show_schedule(services, &peer.caller, &id).await,
        "schedules/update" => schedule_methods::update_schedule_cron(services, &peer.caller, &id, &cron).await,
        "schedules/delete" => schedule_methods::delete_schedule(services, &peer.caller, &id).await.map(|()| json!({})),
        "schedules/pause" => {
            schedule_methods::pause_schedule(services, &peer.caller, &id, true).await.map(|()| json!({}))
        }
        "schedules/unpause" => {
            schedule_methods::pause_schedule(services, &peer.caller, &id, false).await.map(|()| json!({}))
        }
        "schedules/run-now" => {
            Ok(json!({ "sessionId": schedule_methods::run_schedule_now(services, &peer.caller, &id).await? }))
        }
        "schedules/kill" => {
            Ok(json!({ "killed": schedule_methods::cancel_schedule_run(services, &peer.caller, &id).await? }))
        }
        "schedules/inspect" => schedule_methods::inspect_schedule_run(services, &peer.caller, &id).await,
        "schedules/sessions" => Ok(
            json!({ "sessions": schedule_methods::list_schedule_sessions(services, &peer.caller, &id, limit.unwrap_or(50)).await? }),
        ),
        _ => Err(unknown_goose_method(name).into()),
    }
}
