//! Which model answers: the session's, the owner's, or whatever can be found.

mod providers;

use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use gander_domain::{AgentModels, Effort, ModelChoice, Policy, Roster, SessionCatalog};
use gander_models::{
    Catalogue, ConnectError, DetectedModel, Keys, Model, Retry, Timeouts, connect_with, detect_model, probes_to_try,
};
pub use providers::{Provider, Variable};

/// Connections kept at once: each holds a pool of sockets.
const MAX_CONNECTIONS: usize = 16;

/// What answers where nothing else was found.
const DEMO_MODEL: &str = "demo/demo";
/// A model server that starts later is found so soon.
const LOOK_AGAIN_AFTER: Duration = Duration::from_secs(5);

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
    source: RwLock<Arc<ModelSource>>,
    connected: Mutex<HashMap<(String, u64), Arc<dyn Model>>>,
}

/// Where models come from, until the settings change.
struct ModelSource {
    catalogue: Catalogue,
    keys: Keys,
    /// What the owner chose.
    chosen: ModelPreferences,
    /// What was found where nothing was chosen, and when.
    found: Mutex<Option<(DetectedModel, Instant)>>,
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
        let source = ModelSource { catalogue, keys, chosen, found: Mutex::default() };
        Self { source: RwLock::new(Arc::new(source)), connected: Mutex::default() }
    }

    /// From now on models of this catalogue, reached with these keys. Runs that have their model keep it.
    pub fn replace(&self, catalogue: Catalogue, keys: Keys, chosen: ModelPreferences) {
        let source = ModelSource { catalogue, keys, chosen, found: Mutex::default() };
        *self.source.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(source);
    }

    fn current_source(&self) -> Arc<ModelSource> {
        Arc::clone(&self.source.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// What a session without a choice of its own uses, and why. Looks around once; again if only the demo was there.
    pub async fn default_model(&self) -> DetectedModel {
        let source = self.current_source();
        if let Some(model) = &source.chosen.default {
            let reason = "it is set in the configuration or in GANDER_MODEL".to_owned();
            return DetectedModel { model: model.clone(), reason, alternatives: Vec::new() };
        }
        if let Some((found, at)) = source.detected_model()
            && (found.model != DEMO_MODEL || at.elapsed() < LOOK_AGAIN_AFTER)
        {
            return found;
        }
        let found = detect_default_model(&source.catalogue, &source.keys).await;
        *source.found.lock().unwrap_or_else(PoisonError::into_inner) = Some((found.clone(), Instant::now()));
        found
    }

    /// True if a model hears what is sent to it as a sound.
    pub fn takes_audio(&self, name: &str) -> bool {
        let source = self.current_source();
        let known = name
            .split_once('/')
            .and_then(|(provider, model)| Some((source.catalogue.vendor(provider)?, provider, model)));
        known.is_some_and(|(vendor, provider, model)| vendor.model_info(provider, model).audio)
    }

    /// The default, if it is known already.
    pub fn known_default(&self) -> Option<String> {
        let source = self.current_source();
        source.chosen.default.clone().or_else(|| source.detected_model().map(|(found, _)| found.model))
    }

    /// The model of a session, reached with a client's own keys where it has some.
    pub async fn model_for_session(
        &self,
        session: Option<&str>,
        lent: Option<&Keys>,
    ) -> Result<Arc<dyn Model>, ConnectError> {
        let source = self.current_source();
        let keys = lent.map_or_else(|| source.keys.clone(), |lent| lent.clone().with_fallback(&source.keys));
        let name = match session {
            Some(name) => name.to_owned(),
            None => self.default_model_with_keys(lent, &keys).await,
        };
        let key = (name.clone(), model_keys_fingerprint(&keys));
        if let Some(model) = self.lock_models().get(&key) {
            return Ok(Arc::clone(model));
        }
        let lookup = |variable: &str| keys.get(variable).map(str::to_owned);
        let model = connect_with(&source.catalogue, &name, &lookup, single_model_attempt())?;
        let mut connected = self.lock_models();
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
        let source = self.current_source();
        let preferred = match mode {
            Some("fast") => source.chosen.fast.as_deref(),
            Some("strong") => source.chosen.strong.as_deref(),
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
    pub fn session_catalog(
        &self,
        roster: Arc<Roster>,
        agent_models: BTreeMap<String, AgentModels>,
        policy: Policy,
    ) -> SessionCatalog {
        let models = self.list_models();
        let efforts = vec![Effort::Off, Effort::Low, Effort::Medium, Effort::High];
        let default_model = self.known_default();
        let (agent_options, policy) = (BTreeMap::new(), Some(policy));
        SessionCatalog { roster, models, default_model, efforts, agent_models, agent_options, policy }
    }

    /// A client that brings keys of its own may have a better default than the server.
    async fn default_model_with_keys(&self, lent: Option<&Keys>, keys: &Keys) -> String {
        let source = self.current_source();
        let brings = lent.is_some_and(|lent| lent.key_names().any(|name| source.keys.get(name).is_none()));
        if brings && source.chosen.default.is_none() {
            return detect_default_model(&source.catalogue, keys).await.model;
        }
        self.default_model().await.model
    }

    fn list_models(&self) -> Vec<ModelChoice> {
        let (known, source) = (self.known_default(), self.current_source());
        let usable = source.catalogue.vendors().filter(|(name, vendor)| {
            *name == "demo" || vendor.key_variables.iter().any(|variable| source.keys.get(variable).is_some())
        });
        let mut models: Vec<ModelChoice> = usable
            .flat_map(|(name, vendor)| {
                let models = vendor.models.keys().cloned().chain(vendor.default_model.clone());
                models.map(move |model| model_choice(&format!("{name}/{model}")))
            })
            .chain(known.as_deref().map(model_choice))
            .chain(
                source
                    .detected_model()
                    .into_iter()
                    .flat_map(|(found, _)| found.alternatives)
                    .map(|model| model_choice(&model)),
            )
            .collect();
        models.sort_by(|a, b| a.id.cmp(&b.id));
        models.dedup();
        models
    }

    /// A panic while the lock was held leaves nothing half done here.
    fn lock_models(&self) -> std::sync::MutexGuard<'_, HashMap<(String, u64), Arc<dyn Model>>> {
        self.connected.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ModelSource {
    fn detected_model(&self) -> Option<(DetectedModel, Instant)> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

async fn detect_default_model(catalogue: &Catalogue, keys: &Keys) -> DetectedModel {
    let lookup = |variable: &str| keys.get(variable).map(str::to_owned);
    let choice = detect_model(catalogue, &lookup, &probes_to_try(catalogue, &lookup)).await;
    tracing::info!(model = choice.model, "{}", choice.reason);
    choice
}

/// The turn itself tries again, and tells people that it does.
fn single_model_attempt() -> Timeouts {
    Timeouts { retry: Retry { attempts: 1, ..Retry::default() }, ..Timeouts::default() }
}

fn model_choice(id: &str) -> ModelChoice {
    ModelChoice { id: id.to_owned(), name: id.to_owned() }
}

/// Tells sets of keys apart, in memory only.
fn model_keys_fingerprint(keys: &Keys) -> u64 {
    let mut hasher = DefaultHasher::new();
    for name in keys.key_names() {
        (name, keys.get(name)).hash(&mut hasher);
    }
    hasher.finish()
}
