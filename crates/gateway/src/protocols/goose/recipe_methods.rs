//! goose's extension methods about what is prepared: recipes, schedules and apps. Our own command line uses them too.

use gander_domain::caller::Transport;
use gander_domain::{ServiceError, SessionId};
use gander_services::Services;
use gander_services::apps::{AppError, Summary};
use gander_services::artifacts::ArtifactError;
use gander_services::errors::unavailable;
use gander_services::recipes::{Wish, apply};
use gander_services::schedules::call::{self, Plan, Wrong};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::extension_methods::{read, unknown};
use super::{recipes, sessions};
use crate::Peer;

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
pub(super) async fn about_recipes(
    desk: &Services,
    peer: &Peer,
    name: &str,
    params: Value,
) -> Result<Value, ServiceError> {
    match name {
        "recipes/apply" => follow(desk, peer, params).await,
        _ => about_saved_recipes(desk, peer, name, params).await,
    }
}

async fn about_saved_recipes(desk: &Services, peer: &Peer, name: &str, params: Value) -> Result<Value, ServiceError> {
    let Given { id, recipe, content, deeplink, slash_command, session_id } = read(params)?;
    let named = || id.as_deref().ok_or_else(|| ServiceError::BadParams("id is missing".to_owned()));
    let known = |found: bool| match found {
        true => Ok(json!({})),
        false => Err(ServiceError::BadParams(format!("no such recipe: {}", id.as_deref().unwrap_or_default()))),
    };
    match name {
        "recipes/list" => Ok(json!({ "manifests": recipes::manifests(desk, peer).await? })),
        "recipes/read" => {
            let saved = recipes::saved(desk, peer, named()?).await?;
            known(saved.is_some()).map(|_| json!({ "recipe": saved }))
        }
        "recipes/save" => Ok(json!({ "id": recipes::save(desk, peer, recipe, id.clone()).await? })),
        "recipes/delete" => known(recipes::delete(desk, peer, named()?).await?),
        "recipes/parse" => Ok(json!({ "recipe": recipes::parse(content.as_deref().unwrap_or_default())? })),
        "recipes/encode" => {
            recipes::check(&recipe)?;
            Ok(json!({ "deeplink": gander_agent::recipe::encode(&recipe) }))
        }
        "recipes/decode" => Ok(json!({ "recipe": recipes::decode(deeplink.as_deref().unwrap_or_default())? })),
        "recipes/to-yaml" => Ok(json!({ "yaml": recipes::yaml(&recipe)? })),
        "recipes/slash-command" => known(recipes::set_slash(desk, peer, named()?, slash_command.as_deref()).await?),
        "recipes/create" => {
            let session = session_id.ok_or_else(|| ServiceError::BadParams("sessionId is missing".to_owned()))?;
            let view = sessions::own(desk, peer, session).await?;
            Ok(json!({ "recipe": recipes::of_session(desk, &view, None).await? }))
        }
        _ => Err(unknown(name)),
    }
}

/// A session begins to follow a recipe. A folder is believed of local clients only.
async fn follow(desk: &Services, peer: &Peer, params: Value) -> Result<Value, ServiceError> {
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
    let Follow { session_id, recipe, values, folder, approved } = read(params)?;
    let view = sessions::own(desk, peer, session_id).await?;
    let folder = folder.filter(|_| peer.caller.transport == Transport::Local);
    let wish = Wish { recipe: recipes::check(&recipe)?, values: recipes::values(&values), folder, approved };
    let begun = apply(desk, &peer.caller, &view, wish).await?;
    Ok(json!({ "prompt": begun.prompt, "recipe": begun.recipe, "absent": begun.absent }))
}

/// `apps/…`.
pub(super) async fn about_apps(desk: &Services, peer: &Peer, name: &str, params: Value) -> Result<Value, ServiceError> {
    #[derive(Deserialize)]
    struct Named {
        #[serde(default)]
        name: String,
        #[serde(default)]
        html: String,
        #[serde(default)]
        version: Option<u64>,
    }
    let Named { name: app, html, version } = read(params)?;
    let (apps, principal) = (&desk.apps, &peer.caller.principal);
    let done = match name {
        "apps/list" => apps
            .list(principal)
            .await
            .map(|apps| json!({ "apps": apps.iter().map(Summary::shown).collect::<Vec<_>>() })),
        "apps/export" => apps.read(principal, &app, version).await.map(|(_, html)| json!({ "html": html })),
        "apps/import" => apps.import(principal, html).await.map(|name| json!({ "name": name })),
        "apps/delete" => apps.delete(principal, &app).await.map(|()| json!({})),
        _ => return Err(unknown(name)),
    };
    done.map_err(|error| match error {
        AppError::Kept(ArtifactError::Store(error)) => unavailable(&error),
        AppError::Kept(_) | AppError::BadName(_) | AppError::BadPage(_) | AppError::Missing(_) | AppError::Taken(_) => {
            ServiceError::BadParams(error.to_string())
        }
    })
}

/// `schedules/…`.
pub(super) async fn about_schedules(
    desk: &Services,
    peer: &Peer,
    name: &str,
    params: Value,
) -> Result<Value, ServiceError> {
    scheduled(desk, peer, name, params).await.map_err(|wrong| match wrong {
        Wrong::Missing(_) | Wrong::Taken(_) => ServiceError::BadParams(wrong.to_string()),
        Wrong::Refused(refusal) => refusal,
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

async fn scheduled(desk: &Services, peer: &Peer, name: &str, params: Value) -> Result<Value, Wrong> {
    let Scheduled { id, cron, zone, recipe, values, working_dir, folder, source, limit } = read(params)?;
    match name {
        "schedules/list" => Ok(json!({ "jobs": call::list(desk, &peer.caller).await })),
        "schedules/create" => {
            let (values, folder) =
                (recipes::values(&values), folder.filter(|_| peer.caller.transport == Transport::Local));
            let plan = Plan { id, cron, zone, recipe, values, workspace: working_dir, folder, source };
            call::create(desk, &peer.caller, plan).await
        }
        "schedules/read" => call::show(desk, &peer.caller, &id).await,
        "schedules/update" => call::update(desk, &peer.caller, &id, &cron).await,
        "schedules/delete" => call::delete(desk, &peer.caller, &id).await.map(|()| json!({})),
        "schedules/pause" => call::pause(desk, &peer.caller, &id, true).await.map(|()| json!({})),
        "schedules/unpause" => call::pause(desk, &peer.caller, &id, false).await.map(|()| json!({})),
        "schedules/run-now" => Ok(json!({ "sessionId": call::run_now(desk, &peer.caller, &id).await? })),
        "schedules/kill" => Ok(json!({ "killed": call::kill(desk, &peer.caller, &id).await? })),
        "schedules/inspect" => call::inspect(desk, &peer.caller, &id).await,
        "schedules/sessions" => {
            Ok(json!({ "sessions": call::sessions_of(desk, &peer.caller, &id, limit.unwrap_or(50)).await? }))
        }
        _ => Err(unknown(name).into()),
    }
}
