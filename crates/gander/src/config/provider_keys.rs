//! What `gander setup` keeps: keys of model providers, and the model that was chosen. One file for its owner alone.

use std::collections::BTreeMap;
use std::io;

use gander_models::{Keys, PROVIDER_VARIABLES};
use gander_services::paths::Paths;
use gander_services::vault::Vault;
use toml::{Table, Value};

use super::Environment;

/// What setup kept. Settings, the environment and flags come before it.
#[derive(Debug, Default)]
pub(super) struct StoredProvider {
    pub(super) keys: Keys,
    pub(super) model: Option<String>,
}

impl StoredProvider {
    /// A file that cannot be read counts as none: `gander setup` says what is wrong with it.
    pub(super) fn read(paths: &Paths) -> Self {
        let Ok(vault) = Vault::open(paths.provider_keys()) else { return Self::default() };
        let mut keys = Keys::default();
        for (name, value) in stored_provider_keys(&vault) {
            keys.set_key(name, value);
        }
        Self { keys, model: vault.get("model") }
    }
}

/// Keeps the model as the default, and its provider's key under the name of its variable.
pub fn store_provider(paths: &Paths, model: &str, key: Option<(String, String)>) -> io::Result<()> {
    let vault = Vault::open(paths.provider_keys())?;
    let mut keys = stored_provider_keys(&vault);
    keys.extend(key);
    vault.put("keys", &keys)?;
    vault.put("model", &model)
}

/// Keeps the key of an agent's server, and says under which name its entry finds it.
pub fn store_agent_key(paths: &Paths, agent: &str, key: &str) -> io::Result<String> {
    let vault = Vault::open(paths.provider_keys())?;
    let name = format!("AGENT_{}_KEY", agent.to_uppercase().replace('-', "_"));
    let mut keys = stored_provider_keys(&vault);
    keys.insert(name.clone(), key.to_owned());
    vault.put("keys", &keys)?;
    Ok(name)
}

fn stored_provider_keys(vault: &Vault) -> BTreeMap<String, String> {
    vault.get("keys").unwrap_or_default()
}

/// The variables of the known providers and of the owner's own.
pub(super) fn provider_keys_from_environment(environment: &Environment, providers: &Table) -> Keys {
    let named = providers.values().filter_map(Value::as_table).flat_map(|provider| {
        let addresses = ["base_url_variable", "host_variable"].into_iter().filter_map(|field| provider.get(field));
        let keys = provider.get("key_variables").and_then(Value::as_array).into_iter().flatten();
        addresses.chain(keys).filter_map(Value::as_str)
    });
    let mut keys = Keys::default();
    for name in PROVIDER_VARIABLES.iter().copied().chain(named) {
        if let Some(value) = environment.get(name) {
            keys.set_key(name, value);
        }
    }
    keys
}
