//! Providers as people choose among them: what they need, whether they have it, which models they offer.

use gander_models::ModelInfo;

use super::{ModelSource, Models};

/// A provider of models.
#[derive(Clone, Debug, PartialEq)]
pub struct Provider {
    /// As in `provider/model`.
    pub name: String,
    /// For people.
    pub title: String,
    /// What is taken when no model is named.
    pub default_model: Option<String>,
    /// Whether it can be used as things are.
    pub configured: bool,
    /// Whether this build can talk to it.
    pub built: bool,
    /// What it is told by the environment or the settings file.
    pub variables: Vec<Variable>,
    /// The models that are known of it.
    pub models: Vec<ModelInfo>,
}

/// Something a provider is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// A key, never shown.
    pub secret: bool,
    /// Whether it is set.
    pub set: bool,
    /// Its value, unless it is secret.
    pub value: Option<String>,
}

impl Models {
    /// Every provider there is, by name.
    pub fn providers(&self) -> Vec<Provider> {
        let (default, source) = (self.known_default(), self.current_source());
        let found = source.detected_model().map(|(found, _)| found.alternatives).unwrap_or_default();
        let reached = |name: &str| {
            let mut models = default.iter().chain(&found);
            models.any(|model| model.split_once('/').is_some_and(|(provider, _)| provider == name))
        };
        let vendors = source.catalogue.vendors().map(|(name, vendor)| {
            let keys = vendor.key_variables.iter().map(|key| source.describe_variable(key, true));
            let addresses = [&vendor.base_url_variable, &vendor.host_variable].into_iter().flatten();
            let variables: Vec<Variable> =
                keys.chain(addresses.map(|name| source.describe_variable(name, false))).collect();
            let has_key = variables.iter().any(|variable| variable.secret && variable.set);
            let listed = vendor.models.keys().cloned();
            let unlisted = vendor.default_model.iter().filter(|model| !vendor.models.contains_key(*model)).cloned();
            Provider {
                name: name.to_owned(),
                title: if vendor.title.is_empty() { name.to_owned() } else { vendor.title.clone() },
                default_model: vendor.default_model.clone(),
                configured: name == "demo" || has_key || reached(name),
                built: vendor.engine.is_built(),
                variables,
                models: listed.chain(unlisted).map(|model| vendor.model_info(name, &model)).collect(),
            }
        });
        vendors.collect()
    }
}

impl ModelSource {
    fn describe_variable(&self, name: &str, secret: bool) -> Variable {
        let value = self.keys.get(name);
        let shown = value.filter(|_| !secret).map(str::to_owned);
        Variable { name: name.to_owned(), secret, set: value.is_some(), value: shown }
    }
}
