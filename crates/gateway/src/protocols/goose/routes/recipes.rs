//! Recipes: kept, linked, looked through, given a time.

use axum::response::IntoResponse;
use bytes::Bytes;
use gander_domain::SessionId;
use gander_services::schedules::call::{self, Plan, Wrong};
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Answer, Caller, Fault, empty, json_answer, no_session, read};
use crate::protocols::goose::{recipes, sessions};

#[derive(Deserialize)]
struct WithRecipe {
    recipe: Value,
    id: Option<String>,
}

#[derive(Deserialize)]
struct Identified {
    id: String,
}

/// `POST /recipes/create`: from a session, without asking the model.
pub(crate) async fn create(caller: Caller, body: Bytes) -> Answer {
    #[derive(Deserialize)]
    struct Create {
        session_id: String,
        author: Option<Value>,
    }
    let Create { session_id, author } = read(&body)?;
    let session: SessionId = session_id.parse().map_err(|_| no_session())?;
    let view = sessions::own(caller.desk(), &caller.peer, session).await?;
    match recipes::of_session(caller.desk(), &view, author.as_ref()).await? {
        Some(recipe) => json_answer(json!({ "recipe": recipe, "error": null })),
        None => json_answer(json!({ "recipe": null, "error": "the session has no messages" })),
    }
}

/// `POST /recipes/encode`.
pub(crate) async fn encode(_caller: Caller, body: Bytes) -> Answer {
    let WithRecipe { recipe, .. } = read(&body)?;
    recipes::check(&recipe)?;
    json_answer(json!({ "deeplink": gander_agent::recipe::encode(&recipe) }))
}

/// `POST /recipes/decode`.
pub(crate) async fn decode(_caller: Caller, body: Bytes) -> Answer {
    #[derive(Deserialize)]
    struct Decode {
        deeplink: String,
    }
    json_answer(json!({ "recipe": recipes::decode(&read::<Decode>(&body)?.deeplink)? }))
}

/// `POST /recipes/scan`: hidden text, and programs that would be started.
pub(crate) async fn scan(_caller: Caller, body: Bytes) -> Answer {
    let WithRecipe { recipe, .. } = read(&body)?;
    let extensions = recipe["extensions"].as_array().into_iter().flatten();
    let programs = extensions.filter(|extension| extension["type"] == "stdio").count();
    let commands = recipe["retry"]["checks"].as_array().map_or(0, Vec::len);
    let hidden = gander_agent::recipe::hidden(&recipe).is_some();
    json_answer(json!({ "has_security_warnings": hidden || programs + commands > 0 }))
}

/// `GET /recipes/list`.
pub(crate) async fn list(caller: Caller) -> Answer {
    json_answer(json!({ "manifests": recipes::manifests(caller.desk(), &caller.peer).await? }))
}

/// `POST /recipes/save`.
pub(crate) async fn save(caller: Caller, body: Bytes) -> Answer {
    let WithRecipe { recipe, id } = read(&body)?;
    let id = recipes::save(caller.desk(), &caller.peer, recipe, id).await?;
    let file = format!("{id}.json");
    json_answer(json!({ "id": id, "file_name": file, "file_path": file }))
}

/// `POST /recipes/delete`.
pub(crate) async fn delete(caller: Caller, body: Bytes) -> Answer {
    let Identified { id } = read(&body)?;
    match recipes::delete(caller.desk(), &caller.peer, &id).await? {
        true => Ok(StatusCode::NO_CONTENT.into_response()),
        false => Err(missing()),
    }
}

/// `POST /recipes/parse`: YAML or JSON.
pub(crate) async fn parse(_caller: Caller, body: Bytes) -> Answer {
    #[derive(Deserialize)]
    struct Parse {
        content: String,
    }
    json_answer(json!({ "recipe": recipes::parse(&read::<Parse>(&body)?.content)? }))
}

/// `POST /recipes/to-yaml`.
pub(crate) async fn to_yaml(_caller: Caller, body: Bytes) -> Answer {
    let WithRecipe { recipe, .. } = read(&body)?;
    json_answer(json!({ "yaml": recipes::yaml(&recipe)? }))
}

/// `POST /recipes/slash-command`.
pub(crate) async fn slash_command(caller: Caller, body: Bytes) -> Answer {
    #[derive(Deserialize)]
    struct Slash {
        id: String,
        slash_command: Option<String>,
    }
    let Slash { id, slash_command } = read(&body)?;
    match recipes::set_slash(caller.desk(), &caller.peer, &id, slash_command.as_deref()).await? {
        true => empty(),
        false => Err(missing()),
    }
}

/// `POST /recipes/schedule`: gives a saved recipe a time, another time, or none.
pub(crate) async fn schedule(caller: Caller, body: Bytes) -> Answer {
    #[derive(Deserialize)]
    struct Schedule {
        id: String,
        cron_schedule: Option<String>,
    }
    let Schedule { id, cron_schedule } = read(&body)?;
    let (desk, peer) = (caller.desk(), &caller.peer);
    let recipe = recipes::saved(desk, peer, &id).await?.ok_or_else(missing)?;
    match (cron_schedule.filter(|cron| !cron.trim().is_empty()), desk.schedules.get(&peer.caller.principal, &id)) {
        (Some(cron), Some(_)) => drop(call::update(desk, &peer.caller, &id, &cron).await?),
        (Some(cron), None) => {
            let source = Some(format!("{id}.json"));
            drop(call::create(desk, &peer.caller, Plan { id, cron, recipe, source, ..Plan::default() }).await?);
        }
        (None, Some(_)) => call::delete(desk, &peer.caller, &id).await?,
        (None, None) => {}
    }
    empty()
}

impl From<Wrong> for Fault {
    fn from(wrong: Wrong) -> Self {
        match wrong {
            Wrong::Missing(_) => Self::new(StatusCode::NOT_FOUND, wrong.to_string()),
            Wrong::Taken(_) => Self::new(StatusCode::CONFLICT, wrong.to_string()),
            Wrong::Refused(refusal) => refusal.into(),
        }
    }
}

fn missing() -> Fault {
    Fault::new(StatusCode::NOT_FOUND, "Recipe not found")
}
