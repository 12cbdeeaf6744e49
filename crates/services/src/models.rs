//! Which model answers: the session's, the owner's, or whatever can be found.

mod providers;

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, Mutex, PoisonError};

use gander_domain::{Effort, ModelChoice, Roster, SessionCatalog};
use gander_models::{
    Catalogue, ConnectError, DetectedModel, Keys, Model, Retry, Timeouts, connect_with, detect, probes,
};
pub use providers::{Provider, Variable};
use tokio::sync::OnceCell;

/// Connections kept at once: each holds a pool of sockets.
const MAX_CONNECTIONS: usize = 16;

/// Models that the owner chose, as `provider/model`.
#[derive(Clone, Debug, Default)]
pub struct ModelPreferences {
    /// For sessions without a choice of their own.
    pub default: Option<String>,
    /// For modes that want a quick one.
    pub fast: Option<String>,
    /// For modes that want a good one.
    pub strong: Option<String>,
}

/// Finds, connects and keeps models.
pub struct Models {
    catalogue: Catalogue,
    keys: Keys,
    /// What the owner chose.
    chosen: ModelPreferences,
    found: OnceCell<DetectedModel>,
    connected: Mutex<HashMap<(String, u64), Arc<dyn Model>>>,
}

impl Models {
    /// `provider/model`, if the provider is known; without a model its default.
    pub fn qualified_name(&self, provider: &str, model: Option<&str>) -> Option<String> {
        let known = self.providers().into_iter().find(|known| known.name == provider)?;
        let model = model.map(str::to_owned).or(known.default_model)?;
        Some(format!("{provider}/{model}"))
    }

    /// Models of this catalogue, reached with these keys.
    pub fn new(catalogue: Catalogue, keys: Keys, chosen: ModelPreferences) -> Self {
        // Whoever comes second finds the same provider installed.
        drop(rustls::crypto::ring::default_provider().install_default());
        Self { catalogue, keys, chosen, found: OnceCell::new(), connected: Mutex::default() }
    }

    /// What a session without a choice of its own uses, and why. Looks around once.
    pub async fn default_model(&self) -> DetectedModel {
        match &self.chosen.default {
            Some(model) => {
                let reason = "it is set in the configuration or in GANDER_MODEL".to_owned();
                DetectedModel { model: model.clone(), reason, alternatives: Vec::new() }
            }
            None => self.found.get_or_init(|| detect_default_model(&self.catalogue, &self.keys)).await.clone(),
        }
    }

    /// The default, if it is known already.
    pub fn known_default(&self) -> Option<String> {
        self.chosen.default.clone().or_else(|| self.found.get().map(|choice| choice.model.clone()))
    }

    /// The model of a session, reached with a client's own keys where it has some.
    pub async fn model_for_session(
        &self,
        session: Option<&str>,
        lent: Option<&Keys>,
    ) -> Result<Arc<dyn Model>, ConnectError> {
        let keys = lent.map_or_else(|| self.keys.clone(), |lent| lent.clone().with_fallback(&self.keys));
        let name = match session {
            Some(name) => name.to_owned(),
            None => self.default_model_with_keys(lent, &keys).await,
        };
        let key = (name.clone(), keys_fingerprint(&keys));
        if let Some(model) = self.lock().get(&key) {
            return Ok(Arc::clone(model));
        }
        let lookup = |variable: &str| keys.get(variable).map(str::to_owned);
        let model = connect_with(&self.catalogue, &name, &lookup, single_attempt())?;
        let mut connected = self.lock();
        if connected.len() >= MAX_CONNECTIONS {
            connected.clear();
        }
        connected.insert(key, Arc::clone(&model));
        Ok(model)
    }

    /// The same, for a mode that prefers a model: that one is used unless the session has a choice of its own, or it
    /// cannot be reached.
    pub async fn model_for_mode(
        &self,
        session: Option<&str>,
        mode: Option<&str>,
        lent: Option<&Keys>,
    ) -> Result<Arc<dyn Model>, ConnectError> {
        let preferred = match mode {
            Some("fast") => self.chosen.fast.as_deref(),
            Some("strong") => self.chosen.strong.as_deref(),
            other => other,
        };
        if let (None, Some(preferred)) = (session, preferred) {
            match self.model_for_session(Some(preferred), lent).await {
                Ok(model) => return Ok(model),
                Err(error) => tracing::warn!(preferred, %error, "a mode's own model cannot be reached"),
            }
        }
        self.model_for_session(session, lent).await
    }

    /// What sessions can be set to.
    pub fn catalog(&self, roster: Arc<Roster>) -> Arc<SessionCatalog> {
        let models = self.list_models();
        let efforts = vec![Effort::Off, Effort::Low, Effort::Medium, Effort::High];
        Arc::new(SessionCatalog { roster, models, default_model: self.known_default(), efforts })
    }

    /// A client that brings keys of its own may have a better default than the server.
    async fn default_model_with_keys(&self, lent: Option<&Keys>, keys: &Keys) -> String {
        let brings = lent.is_some_and(|lent| lent.names().any(|name| self.keys.get(name).is_none()));
        if brings && self.chosen.default.is_none() {
            return detect_default_model(&self.catalogue, keys).await.model;
        }
        self.default_model().await.model
    }

    fn list_models(&self) -> Vec<ModelChoice> {
        let known = self.known_default();
        let usable = self.catalogue.vendors().filter(|(name, vendor)| {
            *name == "demo" || vendor.key_variables.iter().any(|variable| self.keys.get(variable).is_some())
        });
        let mut models: Vec<ModelChoice> = usable
            .flat_map(|(name, vendor)| {
                let models = vendor.models.keys().cloned().chain(vendor.default_model.clone());
                models.map(move |model| model_choice(&format!("{name}/{model}")))
            })
            .chain(known.as_deref().map(model_choice))
            .chain(
                self.found.get().into_iter().flat_map(|choice| &choice.alternatives).map(|model| model_choice(model)),
            )
            .collect();
        models.sort_by(|a, b| a.id.cmp(&b.id));
        models.dedup();
        models
    }

    /// A panic while the lock was held leaves nothing half done here.
    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<(String, u64), Arc<dyn Model>>> {
        self.connected.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn detect_default_model(catalogue: &Catalogue, keys: &Keys) -> DetectedModel {
    let lookup = |variable: &str| keys.get(variable).map(str::to_owned);
    let choice = detect(catalogue, &lookup, &probes(catalogue, &lookup)).await;
    tracing::info!(model = choice.model, "{}", choice.reason);
    choice
}

/// The turn itself tries again, and tells people that it does.
fn single_attempt() -> Timeouts {
    Timeouts { retry: Retry { attempts: 1, ..Retry::default() }, ..Timeouts::default() }
}

fn model_choice(id: &str) -> ModelChoice {
    ModelChoice { id: id.to_owned(), name: id.to_owned() }
}

/// Tells sets of keys apart, in memory only.
fn keys_fingerprint(keys: &Keys) -> u64 {
    let mut hasher = DefaultHasher::new();
    for name in keys.names() {
        (name, keys.get(name)).hash(&mut hasher);
    }
    hasher.finish()
}
