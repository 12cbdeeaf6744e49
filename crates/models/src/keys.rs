//! Keys and addresses of model providers. They are shown by name only, never by value.

use std::collections::BTreeMap;
use std::fmt;

use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The variables in which the known providers' keys and addresses are kept.
pub const PROVIDER_VARIABLES: &[&str] = &[
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_BASE_URL",
    "OPENAI_API_KEY",
    "OPENAI_BASE_URL",
    "GEMINI_API_KEY",
    "GEMINI_BASE_URL",
    "GOOGLE_API_KEY",
    "OPENROUTER_API_KEY",
    "OPENROUTER_BASE_URL",
    "XAI_API_KEY",
    "XAI_BASE_URL",
    "DEEPSEEK_API_KEY",
    "DEEPSEEK_BASE_URL",
    "MISTRAL_API_KEY",
    "MISTRAL_BASE_URL",
    "GROQ_API_KEY",
    "GROQ_BASE_URL",
    "TOGETHER_API_KEY",
    "TOGETHER_BASE_URL",
    "FIREWORKS_API_KEY",
    "FIREWORKS_BASE_URL",
    "OLLAMA_HOST",
    "LMSTUDIO_BASE_URL",
    "LLAMACPP_BASE_URL",
    "VLLM_BASE_URL",
    "BEDROCK_API_KEY",
    "AWS_BEARER_TOKEN_BEDROCK",
    "VERTEX_API_KEY",
    "COHERE_API_KEY",
    "GITHUB_TOKEN",
];

/// Values by the name of their variable. In memory only: written nowhere but to the server's own socket.
#[derive(Clone, Default)]
pub struct Keys(BTreeMap<String, SecretString>);

impl Keys {
    /// The value of a variable.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(SecretString::expose_secret)
    }

    /// Which there are.
    pub fn key_names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Adds one, in place of an older value.
    pub fn set_key(&mut self, name: impl Into<String>, value: impl Into<String>) {
        self.0.insert(name.into(), SecretString::from(value.into()));
    }

    /// These, and from the other those that are missing here.
    #[must_use]
    pub fn with_fallback(mut self, other: &Self) -> Self {
        for (name, value) in &other.0 {
            self.0.entry(name.clone()).or_insert_with(|| value.clone());
        }
        self
    }
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.key_names()).finish()
    }
}

impl<'de> Deserialize<'de> for Keys {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let plain = BTreeMap::<String, String>::deserialize(deserializer)?;
        Ok(Self(plain.into_iter().map(|(name, value)| (name, SecretString::from(value))).collect()))
    }
}

/// For the hello of an attaching client, over a socket that only its own user can open.
impl Serialize for Keys {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value.expose_secret())))
    }
}

#[cfg(test)]
mod tests {
    use crate::Catalogue;

    use super::*;

    #[test]
    fn every_variable_of_the_known_providers_is_read() {
        for (name, vendor) in Catalogue::built_in().vendors() {
            let addresses = [&vendor.base_url_variable, &vendor.host_variable].into_iter().flatten();
            for variable in vendor.key_variables.iter().chain(addresses) {
                assert!(PROVIDER_VARIABLES.contains(&variable.as_str()), "{name}: {variable}");
            }
        }
    }

    #[test]
    fn debug_shows_names_only() {
        let mut keys = Keys::default();
        keys.set_key("OPENAI_API_KEY", "sk-secret");
        assert_eq!(format!("{keys:?}"), r#"{"OPENAI_API_KEY"}"#);
        assert_eq!(keys.get("OPENAI_API_KEY"), Some("sk-secret"));
    }
}
