//! Providers and their models as data: a built-in list, and a person's own laid over it.

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::{Table, Value};

use super::http::Auth;
use super::profile::{EffortStyle, Quirks};
use super::wire::Wire;
use super::{ModelInfo, Price};

const BUILT_IN: &str = include_str!("vendors.toml");

/// Every provider that is known, by name.
#[derive(Clone, Debug, PartialEq)]
pub struct Catalogue {
    vendors: BTreeMap<String, Vendor>,
}

/// One provider.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Vendor {
    /// For people.
    #[serde(default)]
    pub title: String,
    /// Its place when a default is looked for; absent: only if asked for.
    pub rank: Option<u32>,
    /// What serves it.
    pub engine: Engine,
    /// What serves it when the base URL points to another host.
    pub engine_elsewhere: Option<Engine>,
    /// Its name in the `genai` crate.
    #[serde(default)]
    pub namespace: String,
    /// Where it is.
    #[serde(default)]
    pub base_url: String,
    /// The variable that moves it.
    pub base_url_variable: Option<String>,
    /// The variable that moves it by host and port only.
    pub host_variable: Option<String>,
    /// The variables that may hold its key; none: it needs no key.
    #[serde(default)]
    pub key_variables: Vec<String>,
    /// How it is shown the key.
    #[serde(default)]
    pub auth: Auth,
    /// Headers of every request.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// A local server's list of models.
    pub probe: Option<String>,
    /// How long an answer may take to begin.
    pub header_seconds: Option<u64>,
    /// The model that is taken when none is named.
    pub default_model: Option<String>,
    /// Whether its models read images, unless a model says otherwise.
    #[serde(default)]
    pub images: bool,
    /// Whether its models hear sounds, unless a model says otherwise. Only one wire carries them: `openai_chat`.
    #[serde(default)]
    pub audio: bool,
    /// Whether its models think, unless a model says otherwise.
    #[serde(default)]
    pub thinking: bool,
    /// How it differs from others on its wire.
    #[serde(default)]
    pub quirks: Quirks,
    /// What is known of its models.
    #[serde(default)]
    pub models: BTreeMap<String, ModelData>,
}

/// What serves a provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Engine {
    /// The `genai` crate.
    Genai,
    /// The scripted demo.
    Demo,
    /// Our own codec.
    #[serde(untagged)]
    Wire(Wire),
}

impl Engine {
    /// True if this build has it.
    pub fn is_built(self) -> bool {
        match self {
            Self::Genai => cfg!(feature = "genai"),
            Self::Demo | Self::Wire(_) => true,
        }
    }
}

/// What is known of a model.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ModelData {
    window: Option<u64>,
    max_output: Option<u64>,
    images: Option<bool>,
    audio: Option<bool>,
    thinking: Option<bool>,
    effort: Option<EffortStyle>,
    effort_off: Option<String>,
    input: Option<f64>,
    output: Option<f64>,
    cached: Option<f64>,
    cache_write: Option<f64>,
}

/// Why a catalogue cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("the list of model providers cannot be read: {0}")]
pub struct CatalogueError(#[from] toml::de::Error);

impl Catalogue {
    /// The built-in list.
    pub fn built_in() -> Self {
        Self::load_catalogue("").expect("a test reads the built-in list")
    }

    /// The built-in list with a person's own TOML laid over it; may be empty.
    pub fn load_catalogue(own: &str) -> Result<Self, CatalogueError> {
        let mut table: Table = BUILT_IN.parse()?;
        merge_catalogue_tables(&mut table, own.parse()?);
        Ok(Self { vendors: Value::Table(table).try_into()? })
    }

    /// The provider of this name.
    pub fn vendor(&self, name: &str) -> Option<&Vendor> {
        self.vendors.get(name)
    }

    /// Every provider, by name.
    pub fn vendors(&self) -> impl Iterator<Item = (&str, &Vendor)> {
        self.vendors.iter().map(|(name, vendor)| (name.as_str(), vendor))
    }

    /// The providers that may be picked unasked, best first.
    pub fn vendors_by_rank(&self) -> Vec<(&str, &Vendor)> {
        let mut ranked: Vec<_> = self.vendors().filter(|(_, vendor)| vendor.rank.is_some()).collect();
        ranked.sort_by_key(|(_, vendor)| vendor.rank);
        ranked
    }
}

impl Vendor {
    /// What is known of a model, also of one that is not listed.
    pub fn model_info(&self, provider: &str, model: &str) -> ModelInfo {
        let data = self.model_data(model);
        ModelInfo {
            provider: provider.to_owned(),
            model: model.to_owned(),
            window: data.window,
            max_output: data.max_output,
            images: data.images.unwrap_or(self.images),
            audio: data.audio.unwrap_or(self.audio) && self.engine == Engine::Wire(Wire::OpenaiChat),
            thinking: data.thinking.unwrap_or(self.thinking),
            price: data.price(),
            scripted: self.engine == Engine::Demo,
        }
    }

    /// How a model differs from others on its wire.
    pub fn model_quirks(&self, model: &str) -> Quirks {
        let (data, quirks) = (self.model_data(model), self.quirks.clone());
        let effort = data.effort.unwrap_or(quirks.effort);
        Quirks { effort, effort_off: data.effort_off.or(quirks.effort_off), ..quirks }
    }

    /// A dated snapshot is described by its alias.
    fn model_data(&self, model: &str) -> ModelData {
        let listed = self.models.get(model).or_else(|| self.models.get(super::history::history_model_family(model)));
        listed.cloned().unwrap_or_default()
    }
}

impl ModelData {
    fn price(&self) -> Option<Price> {
        let micros = |dollars: f64| (dollars * 1e6).round() as u64;
        let (input, output) = (self.input?, self.output?);
        Some(Price {
            input: micros(input),
            output: micros(output),
            cached: micros(self.cached.unwrap_or(input)),
            cache_write: micros(self.cache_write.unwrap_or(input)),
        })
    }
}

/// Lays one table over another, key by key.
fn merge_catalogue_tables(under: &mut Table, over: Table) {
    for (key, value) in over {
        match (under.get_mut(&key), value) {
            (Some(Value::Table(under)), Value::Table(over)) => merge_catalogue_tables(under, over),
            (Some(_) | None, value) => drop(under.insert(key, value)),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_built_in_list_is_whole() {
        let catalogue = Catalogue::load_catalogue("").unwrap();
        let names: Vec<&str> = catalogue.vendors().map(|(name, _)| name).collect();
        let wanted = "anthropic bedrock cohere copilot deepseek demo fireworks gemini gemini-native groq llamacpp \
                      lmstudio mistral ollama openai openrouter together vertex vllm xai";
        assert_eq!(names.join(" "), wanted);
        for (name, vendor) in catalogue.vendors() {
            let known = vendor.default_model.as_ref().map(|model| vendor.models.contains_key(model));
            assert_ne!((name, vendor.models.is_empty(), known), (name, false, Some(false)), "default is described");
        }
    }

    #[test]
    fn an_own_list_changes_single_keys_and_adds_providers() {
        let own = "[openai.models.\"gpt-4o\"]\nwindow = 9\n[openai.quirks]\nno_summary = true\n\
                   [work]\nengine = \"openai_chat\"\nbase_url = \"http://x/v1\"";
        let catalogue = Catalogue::load_catalogue(own).unwrap();
        let openai = catalogue.vendor("openai").unwrap();
        let info = openai.model_info("openai", "gpt-4o-2024-11-20");
        assert_eq!((info.window, info.max_output), (Some(9), Some(16_384)));
        assert_eq!(info.price.unwrap().input, 2_500_000);
        assert_eq!((openai.quirks.no_summary, openai.quirks.max_completion_tokens), (true, true));
        assert_eq!(catalogue.vendor("work").unwrap().engine, Engine::Wire(Wire::OpenaiChat));
    }

    #[test]
    fn a_misspelt_key_is_named() {
        let error = Catalogue::load_catalogue("[openai]\nbase_ulr = 1").unwrap_err().to_string();
        assert!(error.contains("base_ulr"), "{error}");
    }

    #[test]
    fn an_unlisted_model_works_without_figures() {
        let info = Catalogue::built_in().vendor("anthropic").unwrap().model_info("anthropic", "claude-next");
        assert_eq!((info.window, info.price, info.images, info.thinking), (None, None, true, true));
    }
}
