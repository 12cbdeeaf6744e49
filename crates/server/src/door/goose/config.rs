//! Settings as goose clients know them: what is in force here, and over it what they saved.

use std::collections::BTreeMap;

use gander_domain::Settings;
use gander_wire::acp::Refusal;
use gander_wire::goose::mode;
use serde_json::{Value, json};

use super::book::{Book, Shelf};
use crate::app::Peer;
use crate::door::Desk;
use crate::door::acp::unavailable;

const PROVIDER: &str = "GOOSE_PROVIDER";
const MODEL: &str = "GOOSE_MODEL";
const MODE: &str = "GOOSE_MODE";

/// Longer keys name nothing.
const LONGEST_KEY: usize = 256;

/// Sets a new session as this client's saved settings say.
pub async fn preset(desk: &Desk, peer: &Peer, settings: &mut Settings) -> Result<(), Refusal> {
    let saved = saved(desk, peer, Shelf::Config).await?;
    let text = |key: &str| saved.get(key).and_then(Value::as_str);
    if let Some(model) = text(PROVIDER).and_then(|provider| model_of(desk, provider, text(MODEL)))
        && peer.model.is_none()
    {
        settings.model = Some(model);
    }
    if let Some(policy) = text(MODE).and_then(mode::policy) {
        settings.policy = policy;
    }
    Ok(())
}

/// `provider/model`, if the provider is known; without a model its default.
pub fn model_of(desk: &Desk, provider: &str, model: Option<&str>) -> Option<String> {
    let known = desk.models.providers().into_iter().find(|known| known.name == provider)?;
    let model = model.map(str::to_owned).or(known.default_model)?;
    Some(format!("{provider}/{model}"))
}

/// What was saved of one kind.
pub async fn saved(desk: &Desk, peer: &Peer, shelf: Shelf) -> Result<BTreeMap<String, Value>, Refusal> {
    let book = Book::of(&**desk.hub.store(), &peer.principal);
    book.shelf(shelf).await.map_err(|error| unavailable(&error))
}

/// Every setting that is in force.
pub async fn all(desk: &Desk, peer: &Peer) -> Result<BTreeMap<String, Value>, Refusal> {
    let mut values = BTreeMap::from([(MODE.to_owned(), json!(mode::name(desk.settings.policy)))]);
    let model = desk.settings.model.clone().or_else(|| desk.models.known_default());
    if let Some((provider, model)) = model.as_deref().and_then(|model| model.split_once('/')) {
        values.insert(PROVIDER.to_owned(), json!(provider));
        values.insert(MODEL.to_owned(), json!(model));
    }
    values.extend(saved(desk, peer, Shelf::Config).await?);
    Ok(values)
}

/// Saves a setting.
pub async fn save(desk: &Desk, peer: &Peer, shelf: Shelf, key: &str, value: Value) -> Result<(), Refusal> {
    if key.is_empty() || key.len() > LONGEST_KEY {
        return Err(Refusal::BadParams(format!("key must have 1 to {LONGEST_KEY} bytes")));
    }
    if is_secret(desk, key) {
        return Err(Refusal::BadParams(format!(
            "keys of providers come from the environment or the settings file, not over the network: {key}"
        )));
    }
    let book = Book::of(&**desk.hub.store(), &peer.principal);
    book.put(shelf, key, value).await.map_err(|error| unavailable(&error))
}

/// Forgets a setting; false if there was none.
pub async fn forget(desk: &Desk, peer: &Peer, shelf: Shelf, key: &str) -> Result<bool, Refusal> {
    let book = Book::of(&**desk.hub.store(), &peer.principal);
    book.remove(shelf, key).await.map_err(|error| unavailable(&error))
}

/// True for what is never shown nor stored.
pub fn is_secret(desk: &Desk, key: &str) -> bool {
    let endings = ["_API_KEY", "_TOKEN", "_SECRET", "_SECRET_KEY", "_PASSWORD"];
    let upper = key.to_ascii_uppercase();
    let mut variables = desk.models.providers().into_iter().flat_map(|provider| provider.variables);
    endings.iter().any(|ending| upper.ends_with(ending))
        || variables.any(|variable| variable.secret && variable.name == upper)
}

/// The provider and model of new sessions.
pub async fn defaults(desk: &Desk, peer: &Peer) -> Result<Value, Refusal> {
    let values = all(desk, peer).await?;
    Ok(json!({ "providerId": values.get(PROVIDER), "modelId": values.get(MODEL) }))
}

/// Saves the provider and model of new sessions.
pub async fn save_defaults(desk: &Desk, peer: &Peer, provider: &str, model: Option<&str>) -> Result<(), Refusal> {
    let chosen = model_of(desk, provider, model);
    let chosen = chosen.ok_or_else(|| Refusal::BadParams(format!("no such provider: {provider}")))?;
    let model = chosen.split_once('/').map_or("", |(_, model)| model);
    save(desk, peer, Shelf::Config, PROVIDER, json!(provider)).await?;
    save(desk, peer, Shelf::Config, MODEL, json!(model)).await
}
