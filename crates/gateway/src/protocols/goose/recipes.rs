//! Recipes as goose's clients keep them: saved under an id, listed, given a slash command, made from a conversation.

use gander_agent::recipe::{self, Recipe, Values};
use gander_domain::{ServiceError, SessionView};
use gander_services::Services;
use gander_services::errors::service_error_from_recipe;
use gander_services::errors::service_error_from_store;
use gander_services::recipe_from_session::{RecipeExtras, SessionAsRecipe};
use gander_services::user_store::{Collection, UserStore};
use gander_store::clock;
use serde_json::{Value, json};

use super::{config, extensions};
use crate::ClientPeer;

/// Longer ids name nothing.
const MAX_RECIPE_ID: usize = 128;

/// Commands that are ours.
const RESERVED_COMMANDS: [&str; 3] = ["clear", "title", "compact"];

/// A recipe that can be used.
pub fn check_goose_recipe(value: &Value) -> Result<Recipe, ServiceError> {
    recipe::recipe_from_value(value.clone()).map_err(|flaw| service_error_from_recipe(&flaw))
}

/// The recipe in a text, as it was written.
pub fn parse_goose_recipe(content: &str) -> Result<Value, ServiceError> {
    recipe::parse_whole_recipe(content).map(|(value, _)| value).map_err(|flaw| service_error_from_recipe(&flaw))
}

/// The recipe in a link, as it was written.
pub fn decode_goose_recipe_link(link: &str) -> Result<Value, ServiceError> {
    recipe::decode_recipe_link(link).map(|(value, _)| value).map_err(|flaw| service_error_from_recipe(&flaw))
}

/// A recipe as the text of a file.
pub fn goose_recipe_yaml(value: &Value) -> Result<String, ServiceError> {
    check_goose_recipe(value)?;
    recipe::recipe_to_yaml(value).map_err(|flaw| service_error_from_recipe(&flaw))
}

/// Everything that somebody saved, by id.
pub async fn list_saved_goose_recipes(services: &Services, peer: &ClientPeer) -> Result<Vec<Value>, ServiceError> {
    let saved = config::load_goose_config(services, peer, Collection::Recipe).await?;
    let slashes = config::load_goose_config(services, peer, Collection::Slash).await?;
    let cron = |id: &str| services.schedules.get(&peer.caller.principal, id).map(|state| state.job.cron);
    let manifest = |(id, saved): (&String, &Value)| {
        json!({
        "id": id, "recipe": saved["recipe"], "file_path": format!("{id}.json"),
        "last_modified": saved["last_modified"], "schedule_cron": cron(id), "slash_command": slashes.get(id),
        })
    };
    Ok(saved.iter().map(manifest).collect())
}

/// The saved recipe of this id.
pub async fn find_saved_goose_recipe(
    services: &Services,
    peer: &ClientPeer,
    id: &str,
) -> Result<Option<Value>, ServiceError> {
    let saved = config::load_goose_config(services, peer, Collection::Recipe).await?.remove(id);
    Ok(saved.map(|saved| saved["recipe"].clone()))
}

/// Saves a recipe; gives its id.
pub async fn save_goose_recipe(
    services: &Services,
    peer: &ClientPeer,
    recipe: Value,
    id: Option<String>,
) -> Result<String, ServiceError> {
    let title = check_goose_recipe(&recipe)?.title;
    let id = id.filter(|id| !id.is_empty()).unwrap_or_else(|| slugify_recipe_title(&title));
    if id.len() > MAX_RECIPE_ID || id.contains(['/', '\\', '\0']) || id.starts_with('.') {
        return Err(ServiceError::BadParams(format!("id must be a plain name of at most {MAX_RECIPE_ID} bytes")));
    }
    let at = gander_wire::goose::session::goose_session_time(clock::current_time());
    let user_store = UserStore::open(services.hub.store(), &peer.caller.principal);
    let kept = json!({ "recipe": recipe, "last_modified": at });
    user_store.put(Collection::Recipe, &id, kept).await.map_err(|error| service_error_from_store(&error))?;
    services.recipes.forget_slashes(&peer.caller.principal);
    Ok(id)
}

/// Forgets a recipe and its slash command; false if there is none.
pub async fn delete_goose_recipe(services: &Services, peer: &ClientPeer, id: &str) -> Result<bool, ServiceError> {
    config::delete_goose_config_key(services, peer, Collection::Slash, id).await?;
    let forgotten = config::delete_goose_config_key(services, peer, Collection::Recipe, id).await?;
    services.recipes.forget_slashes(&peer.caller.principal);
    Ok(forgotten)
}

/// Gives a recipe a slash command, or takes it away; false if there is no such recipe.
pub async fn set_recipe_slash_command(
    services: &Services,
    peer: &ClientPeer,
    id: &str,
    name: Option<&str>,
) -> Result<bool, ServiceError> {
    if find_saved_goose_recipe(services, peer, id).await?.is_none() {
        return Ok(false);
    }
    match name.map(|name| name.trim().trim_start_matches('/')).filter(|name| !name.is_empty()) {
        Some(name) => {
            let plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-');
            if RESERVED_COMMANDS.contains(&name) || name.len() > 64 || !name.chars().all(plain) {
                return Err(ServiceError::BadParams(format!("not a name for a slash command: {name:?}")));
            }
            config::save_goose_config_key(services, peer, Collection::Slash, id, json!(name)).await?;
        }
        None => drop(config::delete_goose_config_key(services, peer, Collection::Slash, id).await?),
    }
    services.recipes.forget_slashes(&peer.caller.principal);
    Ok(true)
}

/// Values that a client gives as JSON.
pub fn goose_recipe_values(given: &serde_json::Map<String, Value>) -> Values {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    given.iter().map(|(key, value)| (key.clone(), text(value))).collect()
}

/// The text with `{{ key }}` replaced by values, for prompts that somebody kept.
pub fn fill_recipe_placeholders(text: &Value, values: &Value) -> Value {
    let (Some(text), Some(values)) = (text.as_str(), values.as_object()) else { return text.clone() };
    Value::String(values.iter().fold(text.to_owned(), |text, (key, value)| {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        text.replace(&format!("{{{{ {key} }}}}"), &value).replace(&format!("{{{{{key}}}}}"), &value)
    }))
}

/// A recipe made of a session, with the extensions that it has; none if nothing was said in it.
pub async fn goose_recipe_from_session(
    services: &Services,
    peer: &ClientPeer,
    view: &SessionView,
    author: Option<Value>,
) -> Result<Option<SessionAsRecipe>, ServiceError> {
    let extras = RecipeExtras { extensions: extensions::goose_session_extensions(services, view), author };
    gander_services::recipe_from_session::recipe_from_session(services, &peer.caller, view, extras).await
}

/// The answer to whoever wanted such a recipe: it also says who wrote it.
pub fn session_recipe_object(made: &SessionAsRecipe) -> Value {
    let writer = if made.is_written { "recipe_maker" } else { "mechanical" };
    json!({ "recipe": made.recipe, "error": null, "written_by": writer })
}

/// A name that can stand in an address.
fn slugify_recipe_title(title: &str) -> String {
    let letters =
        title.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter.to_ascii_lowercase() } else { '-' });
    let words: Vec<String> =
        letters.collect::<String>().split('-').filter(|word| !word.is_empty()).map(str::to_owned).collect();
    let slug = words.join("-");
    if slug.is_empty() { "recipe".to_owned() } else { slug.chars().take(60).collect() }
}
