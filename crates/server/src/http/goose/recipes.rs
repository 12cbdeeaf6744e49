//! Recipes: kept, linked, looked through.

use axum::response::IntoResponse;
use bytes::Bytes;
use gander_domain::SessionId;
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Answer, Caller, Fault, bad, empty, json_answer, no_session, read};
use crate::clock;
use crate::door::goose::{Book, Shelf, config, recipes, sessions};

/// Longer ids name nothing.
const LONGEST_ID: usize = 128;

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
pub(super) async fn create(caller: Caller, body: Bytes) -> Answer {
    #[derive(Deserialize)]
    struct Create {
        session_id: String,
        author: Option<Value>,
    }
    let Create { session_id, author } = read(&body)?;
    let session: SessionId = session_id.parse().map_err(|_| no_session())?;
    let view = sessions::own(caller.desk(), &caller.peer, session).await?;
    let messages = sessions::transcript(caller.desk(), session).await?.messages();
    let title = view.title.unwrap_or_else(|| "Untitled".to_owned());
    match recipes::from_conversation(&title, &messages, author.as_ref()) {
        Some(recipe) => json_answer(json!({ "recipe": recipe, "error": null })),
        None => json_answer(json!({ "recipe": null, "error": "the session has no messages" })),
    }
}

/// `POST /recipes/encode`.
pub(super) async fn encode(_caller: Caller, body: Bytes) -> Answer {
    let WithRecipe { recipe, .. } = read(&body)?;
    recipes::check(&recipe)?;
    json_answer(json!({ "deeplink": recipes::encode(&recipe) }))
}

/// `POST /recipes/decode`.
pub(super) async fn decode(_caller: Caller, body: Bytes) -> Answer {
    #[derive(Deserialize)]
    struct Decode {
        deeplink: String,
    }
    json_answer(json!({ "recipe": recipes::decode(&read::<Decode>(&body)?.deeplink)? }))
}

/// `POST /recipes/scan`: hidden text only.
pub(super) async fn scan(_caller: Caller, body: Bytes) -> Answer {
    let WithRecipe { recipe, .. } = read(&body)?;
    json_answer(json!({ "has_security_warnings": recipes::hides_text(&recipe) }))
}

/// `GET /recipes/list`.
pub(super) async fn list(caller: Caller) -> Answer {
    let saved = config::saved(caller.desk(), &caller.peer, Shelf::Recipe).await?;
    let slashes = config::saved(caller.desk(), &caller.peer, Shelf::Slash).await?;
    let manifest = |(id, saved): (&String, &Value)| {
        json!({
            "id": id, "recipe": saved["recipe"], "file_path": format!("{id}.json"),
            "last_modified": saved["last_modified"], "schedule_cron": null, "slash_command": slashes.get(id),
        })
    };
    json_answer(json!({ "manifests": saved.iter().map(manifest).collect::<Vec<_>>() }))
}

/// `POST /recipes/save`.
pub(super) async fn save(caller: Caller, body: Bytes) -> Answer {
    let WithRecipe { recipe, id } = read(&body)?;
    let title = recipes::check(&recipe)?["title"].as_str().unwrap_or_default();
    let id = id.filter(|id| !id.is_empty()).unwrap_or_else(|| slug(title));
    if id.len() > LONGEST_ID {
        return Err(bad(format!("id is longer than {LONGEST_ID} bytes")));
    }
    let at = gander_wire::goose::session::time(clock::now());
    let book = Book::of(&**caller.desk().hub.store(), &caller.peer.principal);
    let kept = book.put(Shelf::Recipe, &id, json!({ "recipe": recipe, "last_modified": at })).await;
    kept.map_err(|_| Fault::new(StatusCode::INTERNAL_SERVER_ERROR, "the store failed"))?;
    let file = format!("{id}.json");
    json_answer(json!({ "id": id, "file_name": file, "file_path": file }))
}

/// `POST /recipes/delete`.
pub(super) async fn delete(caller: Caller, body: Bytes) -> Answer {
    let Identified { id } = read(&body)?;
    config::forget(caller.desk(), &caller.peer, Shelf::Slash, &id).await?;
    match config::forget(caller.desk(), &caller.peer, Shelf::Recipe, &id).await? {
        true => Ok(StatusCode::NO_CONTENT.into_response()),
        false => Err(Fault::new(StatusCode::NOT_FOUND, "Recipe not found")),
    }
}

/// `POST /recipes/parse`: JSON, which is YAML too.
pub(super) async fn parse(_caller: Caller, body: Bytes) -> Answer {
    #[derive(Deserialize)]
    struct Parse {
        content: String,
    }
    let recipe: Value = serde_json::from_str(&read::<Parse>(&body)?.content)
        .map_err(|error| bad(format!("only recipes in JSON can be read: {error}")))?;
    recipes::check(&recipe)?;
    json_answer(json!({ "recipe": recipe }))
}

/// `POST /recipes/slash-command`.
pub(super) async fn slash_command(caller: Caller, body: Bytes) -> Answer {
    #[derive(Deserialize)]
    struct Slash {
        id: String,
        slash_command: Option<String>,
    }
    let Slash { id, slash_command } = read(&body)?;
    if !config::saved(caller.desk(), &caller.peer, Shelf::Recipe).await?.contains_key(&id) {
        return Err(Fault::new(StatusCode::NOT_FOUND, "Recipe not found"));
    }
    match slash_command.filter(|command| !command.trim().is_empty()) {
        Some(command) => config::save(caller.desk(), &caller.peer, Shelf::Slash, &id, json!(command)).await?,
        None => config::forget(caller.desk(), &caller.peer, Shelf::Slash, &id).await.map(drop)?,
    }
    empty()
}

/// A name that can stand in an address.
fn slug(title: &str) -> String {
    let letters =
        title.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter.to_ascii_lowercase() } else { '-' });
    let words: Vec<String> =
        letters.collect::<String>().split('-').filter(|word| !word.is_empty()).map(str::to_owned).collect();
    let slug = words.join("-");
    if slug.is_empty() { "recipe".to_owned() } else { slug.chars().take(60).collect() }
}
