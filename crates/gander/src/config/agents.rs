//! Agents that others run, as the settings file names them.

use gander_client::CertificatePin;
use gander_runtime::backend::goosed::{Protocol, Remote};
use gander_services::units::DurationSetting;
use secrecy::SecretString;
use serde::Deserialize;
use toml::Value;

use super::Environment;

/// An agent that another server runs.
#[derive(Clone, Debug)]
pub struct RemoteAgent {
    /// Its name here.
    pub name: String,
    /// What it is called for people; absent: its kind.
    pub title: Option<String>,
    /// One paragraph.
    pub description: Option<String>,
    /// What speaks to it.
    pub kind: RemoteKind,
}

/// What speaks to an agent elsewhere.
#[derive(Clone, Debug)]
pub enum RemoteKind {
    /// A goosed, a `goose serve`, or another server of our kind.
    Goosed(Remote),
}

/// One agent of the settings file.
#[derive(Debug)]
pub(super) struct FileAgent {
    name: String,
    entry: Entry,
    pin: Option<CertificatePin>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    kind: Kind,
    url: String,
    title: Option<String>,
    description: Option<String>,
    secret_key: Option<String>,
    secret_key_variable: Option<String>,
    cert_fingerprint: Option<String>,
    working_dir: Option<String>,
    mode: Option<String>,
    timeout: Option<DurationSetting>,
    protocol: Option<Speaks>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Goosed,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Speaks {
    Rest,
    Acp,
}

impl std::fmt::Debug for Entry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Entry").field("url", &self.url).finish_non_exhaustive()
    }
}

/// Reads one agent, or says what is wrong with it.
pub(super) fn parse_agent(name: &str, value: Value) -> Result<FileAgent, String> {
    let entry: Entry = value.try_into().map_err(|error: toml::de::Error| error.message().to_owned())?;
    let letters = |text: &str| text.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_'));
    if !letters(name) || name.is_empty() || name.len() > 63 || name.starts_with(['-', '_']) {
        return Err(format!("an agent's name is made of a-z, 0-9, - and _: {name}"));
    }
    if !is_web_address(&entry.url) {
        return Err(format!("the url of an agent begins with http:// or https://: {}", entry.url));
    }
    let pin = entry
        .cert_fingerprint
        .as_deref()
        .map(str::parse::<CertificatePin>)
        .transpose()
        .map_err(|error| error.to_string())?;
    if pin.is_some() && !entry.url.starts_with("https://") {
        return Err(format!("a certificate is pinned, so the url of the agent begins with https://: {}", entry.url));
    }
    Ok(FileAgent { name: name.to_owned(), entry, pin })
}

/// True for an address that can be asked by HTTP.
pub fn is_web_address(url: &str) -> bool {
    let host = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"));
    host.is_some_and(|host| !host.is_empty() && !host.starts_with('/'))
}

impl FileAgent {
    /// True if the file should be read by its owner alone.
    pub(super) fn is_secret(&self) -> bool {
        self.entry.secret_key.is_some()
    }

    /// As it is spoken to.
    pub(super) fn into_remote_agent(self, environment: &Environment) -> RemoteAgent {
        let Self { name, entry, pin } = self;
        let kind = match entry.kind {
            Kind::Goosed => {
                let mut remote = Remote::new(entry.url);
                let variable = entry.secret_key_variable.as_deref().and_then(|variable| environment.get(variable));
                remote.key = entry.secret_key.or_else(|| variable.map(str::to_owned)).map(SecretString::from);
                remote.pin = pin;
                remote.folder = entry.working_dir;
                remote.mode = entry.mode;
                remote.timeout = entry.timeout.map_or(remote.timeout, |span| span.0);
                remote.protocol = entry.protocol.map(|speaks| match speaks {
                    Speaks::Rest => Protocol::Rest,
                    Speaks::Acp => Protocol::Acp,
                });
                RemoteKind::Goosed(remote)
            }
        };
        RemoteAgent { name, title: entry.title, description: entry.description, kind }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use secrecy::ExposeSecret as _;

    use super::*;

    fn reading(name: &str, text: &str) -> Result<FileAgent, String> {
        parse_agent(name, Value::Table(text.parse().unwrap()))
    }

    #[test]
    fn a_goosed_has_an_address_and_a_key() {
        let text =
            "kind = \"goosed\"\nurl = \"http://127.0.0.1:3000\"\nsecret_key_variable = \"KEY\"\ntimeout = \"7s\"";
        let environment = Environment::from_pairs([("KEY".to_owned(), "hush".to_owned())]);
        let agent = reading("goose", text).unwrap().into_remote_agent(&environment);
        let RemoteKind::Goosed(remote) = agent.kind;
        assert_eq!((remote.url.as_str(), remote.timeout.as_secs()), ("http://127.0.0.1:3000", 7));
        assert_eq!(remote.key.unwrap().expose_secret(), "hush");
    }

    #[test]
    fn what_nobody_could_use_is_an_error() {
        let good = "kind = \"goosed\"\nurl = \"http://x\"";
        assert!(reading("Goose", good).unwrap_err().contains("name"));
        assert!(reading("a", "kind = \"goosed\"\nurl = \"ftp://x\"").unwrap_err().contains("http://"));
        assert!(reading("a", "kind = \"unknown\"\nurl = \"http://x\"").unwrap_err().contains("unknown variant"));
        assert!(reading("a", &format!("{good}\nkey = 1")).unwrap_err().contains("unknown field"));
        let pinned = |fingerprint: &str| format!("{good}\ncert_fingerprint = \"{fingerprint}\"");
        assert!(reading("a", &pinned("x")).unwrap_err().contains("32 pairs of hexadecimal digits"));
        let fingerprint = CertificatePin::of_certificate(b"").to_string();
        assert!(reading("a", &pinned(&fingerprint)).unwrap_err().contains("begins with https://"));
        assert!(reading("a", &pinned(&fingerprint).replace("http:", "https:")).is_ok());
    }
}
