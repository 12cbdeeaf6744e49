//! Recipes: kept, linked, looked through, given a time.

use axum::response::IntoResponse;
use bytes::Bytes;
use gander_domain::SessionId;
use gander_services::schedule_methods::{self, NewSchedule, ScheduleError};
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{GooseCaller, HandlerResult, goose_empty_response, goose_json_response, read_goose_json};
use crate::protocols::goose::error::{GooseError, no_such_goose_session};
use crate::protocols::goose::{recipes, sessions};

#[derive(Deserialize)]
struct WithRecipe {
    recipe: Value,
    id: Option<String>,
}

#[derive(Deserialize)]
struct RecipeId {
    id: String,
}

/// `POST /recipes/create`: from a session, without asking the model.
pub(crate) async fn post_recipe_create(caller: GooseCaller, body: Bytes) -> HandlerResult {
    #[derive(Deserialize)]
    struct Create {
        session_id: String,
        author: Option<Value>,
    }
    let Create { session_id, author } = read_goose_json(&body)?;
    let session: SessionId = session_id.parse().map_err(|_| no_such_goose_session())?;
    let view = sessions::find_own_goose_session(caller.services(), &caller.peer, session).await?;
    match recipes::goose_recipe_from_session(caller.services(), &caller.peer, &view, author).await? {
        Some(made) => goose_json_response(recipes::session_recipe_object(&made)),
        None => goose_json_response(json!({ "recipe": null, "error": "the session has no messages" })),
    }
}

/// `POST /recipes/encode`.
pub(crate) async fn post_recipe_encode(_caller: GooseCaller, body: Bytes) -> HandlerResult {
    let WithRecipe { recipe, .. } = read_goose_json(&body)?;
    recipes::check_goose_recipe(&recipe)?;
    goose_json_response(json!({ "deeplink": gander_agent::recipe::encode_recipe_link(&recipe) }))
}

/// `POST /recipes/decode`.
pub(crate) async fn post_recipe_decode(_caller: GooseCaller, body: Bytes) -> HandlerResult {
    #[derive(Deserialize)]
    struct Decode {
        deeplink: String,
    }
    goose_json_response(
        json!({ "recipe": recipes::decode_goose_recipe_link(&read_goose_json::<Decode>(&body)?.deeplink)? }),
    )
}

/// `POST /recipes/scan`: hidden text, and programs that would be started.
pub(crate) async fn post_recipe_scan(_caller: GooseCaller, body: Bytes) -> HandlerResult {
    let WithRecipe { recipe, .. } = read_goose_json(&body)?;
    let extensions = recipe["extensions"].as_array().into_iter().flatten();
    let programs = extensions.filter(|extension| extension["type"] == "stdio").count();
    let commands = recipe["retry"]["checks"].as_array().map_or(0, Vec::len);
    let hidden = gander_agent::recipe::recipe_hidden_characters(&recipe).is_some();
    goose_json_response(json!({ "has_security_warnings": hidden || programs + commands > 0 }))
}

/// `GET /recipes/list`.
pub(crate) async fn get_recipe_list(caller: GooseCaller) -> HandlerResult {
    goose_json_response(
        json!({ "manifests": recipes::list_saved_goose_recipes(caller.services(), &caller.peer).await? }),
    )
}

/// `POST /recipes/save`.
pub(crate) async fn post_recipe_save(caller: GooseCaller, body: Bytes) -> HandlerResult {
    let WithRecipe { recipe, id } = read_goose_json(&body)?;
    let id = recipes::save_goose_recipe(caller.services(), &caller.peer, recipe, id).await?;
    let file = format!("{id}.json");
    goose_json_response(json!({ "id": id, "file_name": file, "file_path": file }))
}

/// `POST /recipes/delete`.
pub(crate) async fn post_recipe_delete(caller: GooseCaller, body: Bytes) -> HandlerResult {
    let RecipeId { id } = read_goose_json(&body)?;
    match recipes::delete_goose_recipe(caller.services(), &caller.peer, &id).await? {
        true => Ok(StatusCode::NO_CONTENT.into_response()),
        false => Err(no_such_goose_recipe()),
    }
}

/// `POST /recipes/parse`: YAML or JSON.
pub(crate) async fn post_recipe_parse(_caller: GooseCaller, body: Bytes) -> HandlerResult {
    #[derive(Deserialize)]
    struct Parse {
        content: String,
    }
    goose_json_response(json!({ "recipe": recipes::parse_goose_recipe(&read_goose_json::<Parse>(&body)?.content)? }))
}

/// `POST /recipes/to-yaml`.
pub(crate) async fn post_recipe_to_yaml(_caller: GooseCaller, body: Bytes) -> HandlerResult {
    let WithRecipe { recipe, .. } = read_goose_json(&body)?;
    goose_json_response(json!({ "yaml": recipes::goose_recipe_yaml(&recipe)? }))
}

/// `POST /recipes/slash-command`.
pub(crate) async fn post_recipe_slash_command(caller: GooseCaller, body: Bytes) -> HandlerResult {
    #[derive(Deserialize)]
    struct Slash {
        id: String,
        slash_command: Option<String>,
    }
    let Slash { id, slash_command } = read_goose_json(&body)?;
    match recipes::set_recipe_slash_command(caller.services(), &caller.peer, &id, slash_command.as_deref()).await? {
        true => goose_empty_response(),
        false => Err(no_such_goose_recipe()),
    }
}

/// `POST /recipes/schedule`: gives a saved recipe a time, another time, or none.
pub(crate) async fn post_recipe_schedule(caller: GooseCaller, body: Bytes) -> HandlerResult {
    #[derive(Deserialize)]
    struct Schedule {
        id: String,
        cron_schedule: Option<String>,
    }
    let Schedule { id, cron_schedule } = read_goose_json(&body)?;
    let (services, peer) = (caller.services(), &caller.peer);
    let recipe = recipes::find_saved_goose_recipe(services, peer, &id).await?.ok_or_else(no_such_goose_recipe)?;
    match (cron_schedule.filter(|cron| !cron.trim().is_empty()), services.schedules.get(&peer.caller.principal, &id)) {
        (Some(cron), Some(_)) => {
            drop(schedule_methods::update_schedule_cron(services, &peer.caller, &id, &cron).await?)
        }
        (Some(cron), None) => {
            let source = Some(format!("{id}.json"));
            drop(
                schedule_methods::create_schedule(
                    services,
                    &peer.caller,
                    NewSchedule { id, cron, recipe, source, ..NewSchedule::default() },
                )
                .await?,
            );
        }
        (None, Some(_)) => schedule_methods::delete_schedule(services, &peer.caller, &id).await?,
        (None, None) => {}
    }
    goose_empty_response()
}

impl From<ScheduleError> for GooseError {
    fn from(wrong: ScheduleError) -> Self {
        match wrong {
            ScheduleError::Missing(_) => Self::new(StatusCode::NOT_FOUND, wrong.to_string()),
            ScheduleError::Taken(_) => Self::new(StatusCode::CONFLICT, wrong.to_string()),
            ScheduleError::Refused(refusal) => refusal.into(),
        }
    }
}

fn no_such_goose_recipe() -> GooseError {
    GooseError::new(StatusCode::NOT_FOUND, "Recipe not found")
}
