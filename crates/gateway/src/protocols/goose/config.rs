//! Settings as goose clients know them: what is in force here, and over it what they saved.

use std::collections::BTreeMap;

use gander_domain::{ServiceError, Settings};
use gander_services::Services;
use gander_services::errors::service_error_from_store;
use gander_services::permission_changes;
use gander_services::user_store::{Collection, UserStore};
use gander_wire::goose::mode;
use serde_json::{Value, json};

use crate::ClientPeer;

const PROVIDER: &str = "GOOSE_PROVIDER";
const MODEL: &str = "GOOSE_MODEL";
const MODE: &str = "GOOSE_MODE";

/// Longer keys name nothing.
const MAX_KEY_LEN: usize = 256;

/// Sets a new session as this client's saved settings say.
pub async fn apply_goose_config(
    services: &Services,
    peer: &ClientPeer,
    settings: &mut Settings,
) -> Result<(), ServiceError> {
    let saved = load_goose_config(services, peer, Collection::Config).await?;
    let text = |key: &str| saved.get(key).and_then(Value::as_str);
    if let Some(model) = text(PROVIDER).and_then(|provider| services.models.qualified_name(provider, text(MODEL)))
        && peer.model.is_none()
    {
        settings.model = Some(model);
    }
    if let Some(policy) = text(MODE).and_then(mode::policy_of_goose_mode)
        && peer.policy.is_none()
    {
        permission_changes::choose_policy(services, &peer.caller, settings, policy);
    }
    Ok(())
}

/// What was saved of one kind.
pub async fn load_goose_config(
    services: &Services,
    peer: &ClientPeer,
    collection: Collection,
) -> Result<BTreeMap<String, Value>, ServiceError> {
    let user_store = UserStore::open(services.hub.store(), &peer.caller.principal);
    user_store.collection(collection).await.map_err(|error| service_error_from_store(&error))
}

/// Every setting that is in force.
pub async fn all_goose_config(services: &Services, peer: &ClientPeer) -> Result<BTreeMap<String, Value>, ServiceError> {
    let mut values = BTreeMap::from([(
        MODE.to_owned(),
        json!(mode::goose_mode_of_policy(services.default_session_settings().policy)),
    )]);
    let model = services.default_session_settings().model.clone().or_else(|| services.models.known_default());
    if let Some((provider, model)) = model.as_deref().and_then(|model| model.split_once('/')) {
        values.insert(PROVIDER.to_owned(), json!(provider));
        values.insert(MODEL.to_owned(), json!(model));
    }
    values.extend(load_goose_config(services, peer, Collection::Config).await?);
    Ok(values)
}

/// Saves a setting.
pub async fn save_goose_config_key(
    services: &Services,
    peer: &ClientPeer,
    collection: Collection,
    key: &str,
    value: Value,
) -> Result<(), ServiceError> {
    if key.is_empty() || key.len() > MAX_KEY_LEN {
        return Err(ServiceError::BadParams(format!("key must have 1 to {MAX_KEY_LEN} bytes")));
    }
    if is_secret_config_key(services, key) {
        return Err(ServiceError::BadParams(format!(
            "keys of providers come from the environment or the settings file, not over the network: {key}"
        )));
    }
    if let (Collection::Config, MODE, Some(policy)) =
        (collection, key, value.as_str().and_then(mode::policy_of_goose_mode))
    {
        permission_changes::check_saved_policy(services, &peer.caller, policy)?;
    }
    let user_store = UserStore::open(services.hub.store(), &peer.caller.principal);
    user_store.put(collection, key, value).await.map_err(|error| service_error_from_store(&error))
}

/// Forgets a setting; false if there was none.
pub async fn delete_goose_config_key(
    services: &Services,
    peer: &ClientPeer,
    collection: Collection,
    key: &str,
) -> Result<bool, ServiceError> {
    let user_store = UserStore::open(services.hub.store(), &peer.caller.principal);
    user_store.remove(collection, key).await.map_err(|error| service_error_from_store(&error))
}

/// True for what is never shown nor stored.
pub fn is_secret_config_key(services: &Services, key: &str) -> bool {
    let endings = ["_API_KEY", "_TOKEN", "_SECRET", "_SECRET_KEY", "_PASSWORD"];
    let upper = key.to_ascii_uppercase();
    let mut variables = services.models.providers().into_iter().flat_map(|provider| provider.variables);
    endings.iter().any(|ending| upper.ends_with(ending))
        || variables.any(|variable| variable.secret && variable.name == upper)
}

/// The provider and model of new sessions.
pub async fn goose_config_default_model(services: &Services, peer: &ClientPeer) -> Result<Value, ServiceError> {
    let values = all_goose_config(services, peer).await?;
    Ok(json!({ "providerId": values.get(PROVIDER), "modelId": values.get(MODEL) }))
}

/// Saves the provider and model of new sessions.
pub async fn save_goose_config_default_model(
    services: &Services,
    peer: &ClientPeer,
    provider: &str,
    model: Option<&str>,
) -> Result<(), ServiceError> {
    let chosen = services.models.qualified_name(provider, model);
    let chosen = chosen.ok_or_else(|| ServiceError::BadParams(format!("no such provider: {provider}")))?;
    let model = chosen.split_once('/').map_or("", |(_, model)| model);
    save_goose_config_key(services, peer, Collection::Config, PROVIDER, json!(provider)).await?;
    save_goose_config_key(services, peer, Collection::Config, MODEL, json!(model)).await
}
