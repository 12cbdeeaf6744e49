//! Providers as goose's objects.

use gander_services::models::{Provider, Variable};
use serde_json::{Value, json};

/// A provider with what it needs and offers.
pub fn goose_provider_entry(provider: &Provider) -> Value {
    let models: Vec<Value> = provider.models.iter().map(provider_model_object).collect();
    let keys: Vec<Value> = provider.variables.iter().map(|variable| provider_config_key(provider, variable)).collect();
    json!({
        "providerId": provider.name, "providerName": provider.title, "description": goose_provider_description(provider),
        "defaultModel": provider.default_model.as_deref().unwrap_or_default(), "configured": provider.configured,
        "available": provider.configured, "providerType": "Builtin", "category": "model", "acp": false,
        "visibleInSetup": true, "deprecated": false, "configKeys": keys, "setupSteps": [],
        "supportsRefresh": false, "refreshing": false, "models": models, "stale": false,
    })
}

/// What a provider is told, with keys hidden.
pub fn goose_provider_fields(provider: &Provider) -> Vec<Value> {
    let field = |variable: &Variable| {
        let value = if variable.secret { variable.set.then_some("***") } else { variable.value.as_deref() };
        json!({
            "key": variable.name, "value": value, "isSet": variable.set, "isSecret": variable.secret,
            "required": variable.secret && provider_needs_only_key(provider),
        })
    };
    provider.variables.iter().map(field).collect()
}

/// One sentence about a provider.
pub fn goose_provider_description(provider: &Provider) -> String {
    match provider.variables.iter().find(|variable| variable.secret) {
        Some(key) => format!("{}, with the key in {}", provider.title, key.name),
        None => format!("{}, needs no key", provider.title),
    }
}

/// A variable in the list of what a provider needs.
pub fn provider_config_key(provider: &Provider, variable: &Variable) -> Value {
    json!({
        "name": variable.name, "required": variable.secret && provider_needs_only_key(provider), "secret": variable.secret,
        "default": null, "oauthFlow": false, "deviceCodeFlow": false, "primary": variable.secret,
    })
}

fn provider_needs_only_key(provider: &Provider) -> bool {
    provider.variables.iter().filter(|variable| variable.secret).count() == 1
}

fn provider_model_object(model: &gander_models::ModelInfo) -> Value {
    json!({
        "id": model.model, "name": model.model, "contextLimit": model.window, "reasoning": model.thinking,
        "recommended": true,
    })
}
