//! From `provider/model` to a model that can be asked.

use std::sync::Arc;
use std::time::Duration;

use secrecy::SecretString;

use super::catalogue::{Catalogue, Engine, Vendor};
use super::demo::Demo;
use super::http::{Endpoint, HttpModel};
use super::profile::Profile;
use super::timeouts::Timeouts;
use super::wire::Wire;
use super::{Model, ModelError};

/// Finds a variable such as `OPENAI_API_KEY`, wherever the caller keeps them.
pub type Lookup<'a> = &'a (dyn Fn(&str) -> Option<String> + Sync);

/// Why a model cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// No such provider.
    #[error("unknown model provider in {name}, available: {known}")]
    UnknownProvider {
        /// What was asked for.
        name: String,
        /// All there are.
        known: String,
    },
    /// Only a provider was named, and it has no default.
    #[error("name a model as well, as in: {provider}/MODEL")]
    NoModel {
        /// The provider.
        provider: String,
    },
    /// The key is missing.
    #[error("{title} needs a key, store one with `gander setup` or set: {variables}")]
    NoKey {
        /// The provider, for people.
        title: String,
        /// Where it could be.
        variables: String,
    },
    /// The provider is served by a feature that is not built in.
    #[error("this build has no support for {provider}, build it with the cargo feature: genai")]
    NotBuilt {
        /// The provider.
        provider: String,
    },
    /// The connection cannot be prepared.
    #[error(transparent)]
    Model(#[from] ModelError),
}

/// Makes the model ready. Nothing is sent yet.
pub fn connect(catalogue: &Catalogue, name: &str, lookup: Lookup<'_>) -> Result<Arc<dyn Model>, ConnectError> {
    connect_with(catalogue, name, lookup, Timeouts::default())
}

/// As [`connect()`], with other limits.
pub fn connect_with(
    catalogue: &Catalogue,
    name: &str,
    lookup: Lookup<'_>,
    timeouts: Timeouts,
) -> Result<Arc<dyn Model>, ConnectError> {
    let (provider, model) = name.split_once('/').unwrap_or((name, ""));
    let vendor = catalogue.vendor(provider).ok_or_else(|| unknown_connect_provider(catalogue, name))?;
    let model = Some(model).filter(|model| !model.is_empty()).or(vendor.default_model.as_deref());
    let model = model.ok_or_else(|| ConnectError::NoModel { provider: provider.into() })?;
    let profile = Profile { info: vendor.model_info(provider, model), quirks: vendor.model_quirks(model) };
    let place = locate_connect_vendor(vendor, lookup);
    match place.engine {
        Engine::Demo => Ok(Arc::new(Demo::new(profile.info))),
        Engine::Genai => connect_genai(vendor, profile, lookup, timeouts),
        Engine::Wire(wire) => {
            let endpoint = build_connect_endpoint(vendor, wire, place, lookup)?;
            let mut limits = timeouts.limits;
            limits.header = vendor.header_seconds.map_or(limits.header, Duration::from_secs);
            Ok(Arc::new(HttpModel::new(profile, endpoint, limits, timeouts.retry)?))
        }
    }
}

/// Where a provider is, after a person's variables.
#[derive(Debug, PartialEq)]
pub(super) struct VendorAddress {
    /// Without a slash at its end.
    pub(super) base_url: String,
    pub(super) engine: Engine,
    /// True if a variable moved it away from its usual host.
    pub(super) moved: bool,
}

pub(super) fn locate_connect_vendor(vendor: &Vendor, lookup: Lookup<'_>) -> VendorAddress {
    let find =
        |variable: &Option<String>| variable.as_deref().and_then(|name| lookup_nonempty_to_connect(lookup, name));
    let url = find(&vendor.base_url_variable);
    let url = url.or_else(|| find(&vendor.host_variable).map(|host| connect_host_url(&host, &vendor.base_url)));
    let base_url = url.as_deref().unwrap_or(&vendor.base_url).trim_end_matches('/').to_owned();
    let moved = connect_url_host(&base_url) != connect_url_host(&vendor.base_url);
    let engine = vendor.engine_elsewhere.filter(|_| moved).unwrap_or(vendor.engine);
    VendorAddress { base_url, engine, moved }
}

/// A variable that is set to something.
pub(super) fn lookup_nonempty_to_connect(lookup: Lookup<'_>, variable: &str) -> Option<String> {
    lookup(variable).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
}

/// The key and the variable it was found in.
pub(super) fn find_connect_key(vendor: &Vendor, lookup: Lookup<'_>) -> Option<(String, SecretString)> {
    let mut variables = vendor.key_variables.iter();
    variables.find_map(|name| Some((name.clone(), SecretString::from(lookup_nonempty_to_connect(lookup, name)?))))
}

fn build_connect_endpoint(
    vendor: &Vendor,
    wire: Wire,
    place: VendorAddress,
    lookup: Lookup<'_>,
) -> Result<Endpoint, ConnectError> {
    let key = find_connect_key(vendor, lookup).map(|(_, key)| key);
    // A server of one's own may want no key.
    if key.is_none() && !vendor.key_variables.is_empty() && !place.moved {
        return Err(no_connect_key_error(vendor));
    }
    let base_url = match wire {
        // Its variable names the root, but many write the version as well.
        Wire::Anthropic => place.base_url.trim_end_matches("/v1"),
        Wire::OpenaiChat | Wire::OpenaiResponses => &place.base_url,
    };
    Ok(Endpoint {
        wire,
        url: format!("{base_url}{}", wire.request_path()),
        auth: vendor.auth,
        key,
        headers: vendor.headers.clone().into_iter().collect(),
        key_variables: vendor.key_variables.clone(),
    })
}

#[cfg(feature = "genai")]
fn connect_genai(
    vendor: &Vendor,
    profile: Profile,
    lookup: Lookup<'_>,
    timeouts: Timeouts,
) -> Result<Arc<dyn Model>, ConnectError> {
    let (_, key) = find_connect_key(vendor, lookup).ok_or_else(|| no_connect_key_error(vendor))?;
    Ok(Arc::new(super::genai::GenaiModel::new(profile, &vendor.namespace, key, timeouts)?))
}

#[cfg(not(feature = "genai"))]
fn connect_genai(_: &Vendor, profile: Profile, _: Lookup<'_>, _: Timeouts) -> Result<Arc<dyn Model>, ConnectError> {
    Err(ConnectError::NotBuilt { provider: profile.info.provider })
}

fn no_connect_key_error(vendor: &Vendor) -> ConnectError {
    ConnectError::NoKey { title: vendor.title.clone(), variables: vendor.key_variables.join(" or ") }
}

fn unknown_connect_provider(catalogue: &Catalogue, name: &str) -> ConnectError {
    let known: Vec<&str> = catalogue.vendors().map(|(name, _)| name).collect();
    ConnectError::UnknownProvider { name: name.into(), known: known.join(", ") }
}

fn connect_url_host(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.split('/').next().unwrap_or_default()
}

/// `OLLAMA_HOST` is what the server binds to: host, port, both, or a URL, and possibly "any address".
fn connect_host_url(text: &str, usual: &str) -> String {
    let (scheme, rest) = text.split_once("://").unwrap_or(("http", text));
    let authority = rest.split('/').next().unwrap_or_default();
    let usual_port = connect_url_host(usual).rsplit(':').next().unwrap_or_default();
    let (name, port) = match authority.rsplit_once(':') {
        Some((name, port)) if !port.contains(']') => (name, port),
        Some(_) | None => (authority, if text.contains("://") { "" } else { usual_port }),
    };
    let name = match name {
        "" | "0.0.0.0" => "127.0.0.1",
        "[::]" => "[::1]",
        name => name,
    };
    let colon = if port.is_empty() { "" } else { ":" };
    format!("{scheme}://{name}{colon}{port}/v1")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn place_of(provider: &str, variables: &[(&str, &str)]) -> VendorAddress {
        let catalogue = Catalogue::built_in();
        let lookup = |name: &str| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
        locate_connect_vendor(catalogue.vendor(provider).unwrap(), &lookup)
    }

    #[test]
    fn a_custom_base_url_speaks_chat_but_openai_itself_does_not() {
        let chat = Engine::Wire(Wire::OpenaiChat);
        let moved = place_of("openai", &[("OPENAI_BASE_URL", "http://127.0.0.1:18080/v1/")]);
        assert_eq!(moved, VendorAddress { base_url: "http://127.0.0.1:18080/v1".into(), engine: chat, moved: true });
        let usual = place_of("openai", &[("OPENAI_BASE_URL", "https://api.openai.com/v1")]);
        assert_eq!((usual.engine, usual.moved), (Engine::Wire(Wire::OpenaiResponses), false));
    }

    #[test]
    fn ollama_is_found_however_its_host_is_written() {
        let url = |host: &str| place_of("ollama", &[("OLLAMA_HOST", host)]).base_url;
        assert_eq!(url(""), "http://127.0.0.1:11434/v1");
        assert_eq!(url("0.0.0.0"), "http://127.0.0.1:11434/v1");
        assert_eq!(url(":9999"), "http://127.0.0.1:9999/v1");
        assert_eq!(url("box:1234"), "http://box:1234/v1");
        assert_eq!(url("[::]:11434"), "http://[::1]:11434/v1");
        assert_eq!(url("https://models.example.com/"), "https://models.example.com/v1");
    }

    #[test]
    fn what_is_missing_is_named() {
        let catalogue = Catalogue::built_in();
        let nothing = |_: &str| None;
        let told = |name: &str| connect(&catalogue, name, &nothing).err().unwrap().to_string();
        assert_eq!(
            told("anthropic/claude-sonnet-5"),
            "Anthropic needs a key, store one with `gander setup` or set: ANTHROPIC_API_KEY"
        );
        assert_eq!(told("ollama"), "name a model as well, as in: ollama/MODEL");
        let unknown = told("antropic/claude");
        assert!(unknown.starts_with("unknown model provider in antropic/claude, available: anthropic, "), "{unknown}");
    }
}
