//! Which model to use when nobody chose one: keys first, then local servers, then the demo.

use std::time::Duration;

use futures::future;
use serde_json::Value;
use tokio::time::timeout;

use super::catalogue::{Catalogue, Vendor};
use super::connect::{Lookup, find_connect_key, locate_connect_vendor, lookup_nonempty_to_connect};
use super::http;

/// How long a local server may take to show itself.
const PROBE_TIMEOUT: Duration = Duration::from_millis(300);

/// What was chosen, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DetectedModel {
    /// `provider/model`.
    pub model: String,
    /// A sentence for people.
    pub reason: String,
    /// What else could have been chosen, best first.
    pub alternatives: Vec<String>,
}

/// A local server to knock at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    /// Which provider it would be.
    pub provider: String,
    /// The address that lists its models.
    pub url: String,
}

/// Where local servers usually are, after a person's variables.
pub fn probes_to_try(catalogue: &Catalogue, lookup: Lookup<'_>) -> Vec<Probe> {
    let probe = |(name, vendor): (&str, &Vendor)| {
        let base_url = locate_connect_vendor(vendor, lookup).base_url;
        let path = vendor.probe.as_deref()?;
        Some(Probe { provider: name.into(), url: format!("{}{path}", base_url.trim_end_matches("/v1")) })
    };
    catalogue.vendors_by_rank().into_iter().filter_map(probe).collect()
}

/// Chooses a model: by keys if there are any, else by knocking at all of `probes` at once.
pub async fn detect_model(catalogue: &Catalogue, lookup: Lookup<'_>, probes: &[Probe]) -> DetectedModel {
    let mut found = detect_by_keys(catalogue, lookup).await;
    if found.is_empty() {
        found = detect_by_probes(probes).await;
    }
    let mut names = found.iter().map(|(model, _)| model.clone()).skip(1).collect::<Vec<_>>();
    let first = found.into_iter().next();
    names.dedup();
    match first {
        Some((model, reason)) => DetectedModel { model, reason, alternatives: names },
        None => DetectedModel { model: "demo/demo".into(), reason: NO_MODEL_FOUND.into(), alternatives: Vec::new() },
    }
}

const NO_MODEL_FOUND: &str = "no key and no local model server was found, so this is the built-in scripted demo, not a \
                       language model; to connect a real one run `gander setup`, or set ANTHROPIC_API_KEY, OPENAI_API_KEY, GEMINI_API_KEY \
                       or another provider's key, or start Ollama, LM Studio, llama.cpp or vLLM on this machine";

type Candidates = Vec<(String, String)>;

async fn detect_by_keys(catalogue: &Catalogue, lookup: Lookup<'_>) -> Candidates {
    let candidates = catalogue.vendors_by_rank().into_iter().filter_map(|(name, vendor)| {
        let place = locate_connect_vendor(vendor, lookup);
        let moved =
            vendor.base_url_variable.clone().filter(|variable| lookup_nonempty_to_connect(lookup, variable).is_some());
        let variable =
            find_connect_key(vendor, lookup).map(|(variable, _)| variable).or(moved.filter(|_| place.moved))?;
        Some(async move {
            let usual = vendor.default_model.clone();
            // Another host has other models: it is asked which.
            let listed =
                if place.moved { probe_models(&format!("{}/models", place.base_url)).await } else { Vec::new() };
            let model = usual.filter(|model| listed.is_empty() || listed.contains(model));
            let model = model.or_else(|| listed.into_iter().next())?;
            Some((format!("{name}/{model}"), format!("{variable} is set")))
        })
    });
    future::join_all(candidates).await.into_iter().flatten().collect()
}

async fn detect_by_probes(probes: &[Probe]) -> Candidates {
    let lists = probes.iter().map(|Probe { provider, url }| async move {
        let models = probe_models(url).await.into_iter();
        models
            .map(|model| (format!("{provider}/{model}"), format!("a local server answers at {url}")))
            .collect::<Vec<_>>()
    });
    future::join_all(lists).await.into_iter().flatten().collect()
}

/// The chat models of a server; none if it is not there in time or is something else.
async fn probe_models(url: &str) -> Vec<String> {
    let models = async {
        let client = http::build_model_http_client(url, PROBE_TIMEOUT).ok()?;
        let body = client.get(url).send().await.ok()?.error_for_status().ok()?.bytes().await.ok()?;
        Some(probed_model_names(&serde_json::from_slice(&body).ok()?))
    };
    timeout(PROBE_TIMEOUT, models).await.ok().flatten().unwrap_or_default()
}

/// Ollama says `models` and `name`, the others `data` and `id`.
fn probed_model_names(body: &Value) -> Vec<String> {
    let list = body.get("models").or_else(|| body.get("data")).and_then(Value::as_array);
    let name = |model: &Value| model.get("id").or_else(|| model.get("name")).and_then(Value::as_str).map(str::to_owned);
    list.into_iter().flatten().filter_map(name).filter(|name| !is_embedding_model(name)).collect()
}

fn is_embedding_model(name: &str) -> bool {
    let name = name.to_lowercase();
    ["embed", "rerank", "bge-", "whisper"].iter().any(|word| name.contains(word))
}
