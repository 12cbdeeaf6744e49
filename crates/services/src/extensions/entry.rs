//! One MCP server as people write it down: in the settings file, in a project, or added while the server runs.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use gander_mcp::{Confinement, Reach, Spec, Transport};
use gander_models::Keys;
use gander_tools::{BuiltIn, extension_absence_reason};
use serde::{Deserialize, Serialize};

use crate::units::DurationSetting;

/// One server. It may hold secrets.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ExtensionEntry {
    /// What it is, where its other fields do not say.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<ExtensionKind>,
    /// A program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<PathBuf>,
    /// Its arguments.
    pub args: Vec<String>,
    /// What it finds in its environment.
    pub env: BTreeMap<String, String>,
    /// Names of keys that are handed on.
    pub env_keys: Vec<String>,
    /// Or an address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// What every request carries.
    pub headers: BTreeMap<String, String>,
    /// Who we are at its login, if somebody made us known there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
    /// How long one call may be silent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<DurationSetting>,
    /// Its program may use the network.
    pub network: bool,
    /// Sessions of the same person in the same folders use one.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub shared: bool,
    /// Its program is fenced, unless this is false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<bool>,
    /// It is used, unless this is false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
}

/// What an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExtensionKind {
    /// Tools of our own.
    #[serde(alias = "platform")]
    Builtin,
    /// A program.
    Stdio,
    /// An address.
    StreamableHttp,
}

impl ExtensionEntry {
    /// Tools of our own: the name says which.
    pub fn built_in() -> Self {
        Self { kind: Some(ExtensionKind::Builtin), ..Self::default() }
    }

    /// True if it names tools of our own.
    pub fn is_built_in(&self) -> bool {
        self.kind == Some(ExtensionKind::Builtin)
    }

    /// The same, if it can be one.
    pub fn validated(self, name: &str) -> Result<Self, String> {
        if self.is_built_in() {
            return self.validated_built_in(name);
        }
        match (self.kind, &self.command, &self.url) {
            (Some(ExtensionKind::Stdio), None, _) => {
                return Err(format!("an extension of type stdio has a command: {name}"));
            }
            (Some(ExtensionKind::StreamableHttp), _, None) => {
                return Err(format!("an extension of type streamable_http has a url: {name}"));
            }
            (Some(ExtensionKind::Stdio | ExtensionKind::StreamableHttp | ExtensionKind::Builtin) | None, _, _) => {}
        }
        match (&self.command, &self.url) {
            _ if name.is_empty() || name.len() > 128 || name.chars().any(char::is_control) => {
                Err("an extension's name has 1 to 128 bytes on one line".to_owned())
            }
            (Some(_), None) => Ok(self),
            (None, Some(url)) if is_extension_address(url) => Ok(self),
            (None, Some(url)) => Err(format!("a url begins with http:// or https://: {url}")),
            (Some(_), Some(_)) | (None, None) => Err(format!("an extension has either a command or a url: {name}")),
        }
    }

    fn validated_built_in(self, name: &str) -> Result<Self, String> {
        match (BuiltIn::from_name(name), &self.command, &self.url) {
            (Some(_), None, None) => Ok(self),
            (Some(_), _, _) => Err(format!("a built-in extension has neither a command nor a url: {name}")),
            (None, _, _) => Err(extension_absence_reason(name)),
        }
    }

    /// True if it should be read by its owner alone.
    pub fn is_secret(&self) -> bool {
        !self.env.is_empty() || !self.headers.is_empty()
    }

    /// As it is started; none if it is switched off, or starts nothing.
    pub fn to_mcp_spec(&self, name: &str, keys: &Keys, reach: Reach) -> Option<Spec> {
        if self.enabled == Some(false) || self.is_built_in() {
            return None;
        }
        let transport = match &self.command {
            Some(command) => {
                let handed = self.env_keys.iter().filter_map(|key| Some((key.clone(), keys.get(key)?.to_owned())));
                let env = handed.chain(self.env.clone()).collect();
                Transport::Stdio { command: command.clone(), args: self.args.clone(), env }
            }
            None => Transport::Http {
                url: self.url.clone().unwrap_or_default(),
                headers: self.headers.clone().into_iter().collect(),
                reach,
                client_id: self.client_id.clone(),
            },
        };
        let confinement = match (self.sandbox, self.network) {
            (Some(false), _) => Confinement::Free,
            (_, true) => Confinement::Networked,
            (_, false) => Confinement::Fenced,
        };
        let patience = self.timeout.map_or(Spec::DEFAULT_CALL_TIMEOUT, |span| span.0);
        Some(Spec { patience, confinement, shared: self.shared, ..Spec::new(name.to_owned(), transport) })
    }

    /// The same with what its writer could not see of the one before: a client is shown names of variables without
    /// their values, and an address without what it carries. Another program or address gets nothing of it.
    pub fn with_hidden_values_kept(mut self, before: &Spec, keys: &Keys) -> Self {
        match &before.transport {
            Transport::Stdio { command, env, .. } if self.command.as_ref() == Some(command) => {
                let hidden = |name: &str, value: &str| keys.get(name) != Some(value);
                let unseen = env.iter().filter(|(name, value)| self.env_keys.contains(name) && hidden(name, value));
                let unseen: BTreeMap<String, String> = unseen.cloned().collect();
                self.env_keys.retain(|name| !unseen.contains_key(name));
                self.env = unseen.into_iter().chain(self.env).collect();
                self.shared |= before.shared;
                self.network |= before.confinement == Confinement::Networked;
                self.sandbox = self.sandbox.or((before.confinement == Confinement::Free).then_some(false));
            }
            Transport::Http { url, headers, client_id, .. } if self.url.as_ref() == Some(&before.command_or_url()) => {
                self.shared |= before.shared;
                self.url = Some(url.clone());
                self.headers = headers.iter().cloned().chain(self.headers).collect();
                self.headers.retain(|_, value| !value.is_empty());
                self.client_id = self.client_id.or_else(|| client_id.clone());
            }
            Transport::Stdio { .. } | Transport::Http { .. } => {}
        }
        self
    }

    /// Takes out what nobody else may read.
    pub(super) fn without_secrets(mut self) -> (Self, Secrets) {
        let url = self.url.clone().filter(|url| url_carries_secrets(url));
        if url.is_some() {
            self.url = Some(String::new());
        }
        let secrets = Secrets { env: std::mem::take(&mut self.env), headers: std::mem::take(&mut self.headers), url };
        (self, secrets)
    }

    /// Puts it back.
    pub(super) fn with_secrets(self, secrets: Secrets) -> Self {
        let Secrets { env, headers, url } = secrets;
        Self { env, headers, url: url.or(self.url), ..self }
    }
}

/// What an entry holds that nobody else may read.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Secrets {
    env: BTreeMap<String, String>,
    headers: BTreeMap<String, String>,
    url: Option<String>,
}

impl Secrets {
    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl fmt::Debug for ExtensionEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExtensionEntry").field("command", &self.command).finish_non_exhaustive()
    }
}

fn is_extension_address(url: &str) -> bool {
    reqwest::Url::parse(url).is_ok_and(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
}

fn url_carries_secrets(url: &str) -> bool {
    reqwest::Url::parse(url).is_ok_and(|url| url.query().is_some() || !url.username().is_empty())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn entry(text: &str) -> Result<ExtensionEntry, String> {
        let entry: ExtensionEntry = toml::from_str(text).map_err(|error| error.message().to_owned())?;
        entry.validated("files")
    }

    #[test]
    fn a_program_or_an_address() {
        let mut keys = Keys::default();
        keys.set_key("TOKEN".to_owned(), "hush".to_owned());
        let text = "command = \"npx\"\nargs = [\"-y\"]\nenv_keys = [\"TOKEN\", \"NONE\"]\ntimeout = \"5s\"";
        let spec = entry(text).unwrap().to_mcp_spec("files", &keys, Reach::Anywhere).unwrap();
        let Transport::Stdio { env, .. } = &spec.transport else { panic!("a program") };
        assert_eq!(env, &[("TOKEN".to_owned(), "hush".to_owned())]);
        assert_eq!((spec.command_or_url().as_str(), spec.patience.as_secs()), ("npx -y", 5));
        let web =
            entry("url = \"https://example.org/mcp\"").unwrap().to_mcp_spec("web", &keys, Reach::Anywhere).unwrap();
        assert_eq!(web.command_or_url(), "https://example.org/mcp");
        assert!(
            entry("command = \"npx\"\nenabled = false").unwrap().to_mcp_spec("off", &keys, Reach::Anywhere).is_none()
        );
    }

    #[test]
    fn what_nobody_would_read_is_an_error() {
        assert_eq!(entry("args = []").unwrap_err(), "an extension has either a command or a url: files");
        assert!(entry("command = \"a\"\nurl = \"https://b\"").is_err());
        assert!(entry("comand = \"a\"").unwrap_err().contains("unknown field"));
        assert!(entry("url = \"file:///etc/passwd\"").is_err());
    }

    #[test]
    fn tools_of_our_own_are_named_and_nothing_else() {
        let named = |name: &str, text: &str| toml::from_str::<ExtensionEntry>(text).unwrap().validated(name);
        assert!(named("memory", "type = \"builtin\"").unwrap().is_built_in());
        assert!(
            named("todo", "type = \"platform\"")
                .unwrap()
                .to_mcp_spec("todo", &Keys::default(), Reach::Anywhere)
                .is_none()
        );
        assert!(named("tutorial", "type = \"builtin\"").unwrap_err().contains("a skill or a recipe can teach"));
        assert!(named("memory", "type = \"builtin\"\ncommand = \"a\"").is_err());
        assert!(named("files", "type = \"stdio\"\nurl = \"https://b\"").unwrap_err().contains("has a command"));
        assert!(named("memory", "command = \"npx\"").is_ok(), "a server may take the place of one");
    }

    #[test]
    fn what_could_not_be_seen_is_kept_for_the_same_program_or_address_alone() {
        let mut keys = Keys::default();
        keys.set_key("SHARED".to_owned(), "of the owner".to_owned());
        let text = "command = \"npx\"\nenv = { KEY = \"hush\", OLD = \"x\" }\nenv_keys = [\"SHARED\"]\nnetwork = true";
        let before = entry(text).unwrap().to_mcp_spec("files", &keys, Reach::Anywhere).unwrap();
        let given = "command = \"npx\"\nargs = [\"-y\"]\nenv_keys = [\"KEY\", \"SHARED\"]\nenv = { NEW = \"y\" }";
        let kept = entry(given).unwrap().with_hidden_values_kept(&before, &keys);
        let pairs = |pairs: &[(&str, &str)]| pairs.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
        assert_eq!(kept.env, pairs(&[("KEY", "hush"), ("NEW", "y")]), "what is named no longer is gone");
        assert_eq!((kept.env_keys.as_slice(), kept.network), (["SHARED".to_owned()].as_slice(), true));
        let other = entry("command = \"evil\"\nenv_keys = [\"KEY\"]").unwrap().with_hidden_values_kept(&before, &keys);
        assert!(other.env.is_empty() && !other.network);
        let web = "url = \"https://example.org/mcp?key=hush\"\nheaders = { a = \"hush\", b = \"hush\" }";
        let before = entry(web).unwrap().to_mcp_spec("web", &keys, Reach::Anywhere).unwrap();
        let given = "url = \"https://example.org/mcp\"\nheaders = { b = \"\", c = \"new\" }\ntimeout = \"9s\"";
        let kept = entry(given).unwrap().with_hidden_values_kept(&before, &keys);
        assert_eq!(kept.url.as_deref(), Some("https://example.org/mcp?key=hush"));
        assert_eq!(kept.headers, pairs(&[("a", "hush"), ("c", "new")]));
        let other = entry("url = \"https://evil.example/mcp\"").unwrap().with_hidden_values_kept(&before, &keys);
        assert!(other.headers.is_empty());
    }

    #[test]
    fn secrets_are_taken_out_and_put_back() {
        let whole = entry("url = \"https://example.org/mcp?key=hush\"\nheaders = { a = \"hush\" }").unwrap();
        let (bare, secrets) = whole.clone().without_secrets();
        assert!(!serde_json::to_string(&bare).unwrap().contains("hush"));
        assert_eq!(bare.with_secrets(secrets), whole);
    }
}
