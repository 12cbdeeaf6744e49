//! The owner's MCP servers, as the settings file names them.

use std::collections::BTreeMap;
use std::path::PathBuf;

use gander_agent::mcp::{Confinement, Reach, Spec, Transport};
use serde::Deserialize;
use toml::Value;

use super::{Keys, Span};

/// One server of the settings file.
#[derive(Debug)]
pub(super) struct Extension {
    name: String,
    entry: Entry,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Entry {
    command: Option<PathBuf>,
    args: Vec<String>,
    env: BTreeMap<String, String>,
    env_keys: Vec<String>,
    url: Option<String>,
    headers: BTreeMap<String, String>,
    timeout: Option<Span>,
    network: bool,
    sandbox: Option<bool>,
    enabled: Option<bool>,
}

impl std::fmt::Debug for Entry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Entry").field("command", &self.command).finish_non_exhaustive()
    }
}

/// Reads one server, or says what is wrong with it.
pub(super) fn read(name: &str, value: Value) -> Result<Extension, String> {
    let entry: Entry = value.try_into().map_err(|error: toml::de::Error| error.message().to_owned())?;
    match (&entry.command, &entry.url) {
        (Some(_), None) | (None, Some(_)) => Ok(Extension { name: name.to_owned(), entry }),
        _ => Err(format!("an extension has either a command or a url: {name}")),
    }
}

impl Extension {
    /// True if the file should be read by its owner alone.
    pub(super) fn is_secret(&self) -> bool {
        !self.entry.env.is_empty() || !self.entry.headers.is_empty()
    }

    /// As it is started; none if it is switched off.
    pub(super) fn spec(self, keys: &Keys) -> Option<Spec> {
        let Self { name, entry } = self;
        if entry.enabled == Some(false) {
            return None;
        }
        let transport = match (entry.command, entry.url) {
            (Some(command), _) => {
                let handed = entry.env_keys.iter().filter_map(|key| Some((key.clone(), keys.get(key)?.to_owned())));
                let env = handed.chain(entry.env).collect();
                Transport::Stdio { command, args: entry.args, env }
            }
            (None, url) => Transport::Http {
                url: url.unwrap_or_default(),
                headers: entry.headers.into_iter().collect(),
                reach: Reach::Anywhere,
            },
        };
        let confinement = match (entry.sandbox, entry.network) {
            (Some(false), _) => Confinement::Free,
            (_, true) => Confinement::Networked,
            (_, false) => Confinement::Fenced,
        };
        let patience = entry.timeout.map_or(Spec::PATIENCE, |span| span.0);
        Some(Spec { patience, confinement, ..Spec::new(name, transport) })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn reading(text: &str) -> Result<Extension, String> {
        read("files", Value::Table(text.parse().unwrap()))
    }

    #[test]
    fn a_program_or_an_address() {
        let mut keys = Keys::default();
        keys.set("TOKEN".to_owned(), "hush".to_owned());
        let text = "command = \"npx\"\nargs = [\"-y\"]\nenv_keys = [\"TOKEN\", \"NONE\"]\ntimeout = \"5s\"";
        let spec = reading(text).unwrap().spec(&keys).unwrap();
        let Transport::Stdio { env, .. } = &spec.transport else { panic!("a program") };
        assert_eq!(env, &[("TOKEN".to_owned(), "hush".to_owned())]);
        assert_eq!((spec.place().as_str(), spec.patience.as_secs()), ("npx -y", 5));
        let web = reading("url = \"https://example.org/mcp\"").unwrap().spec(&keys).unwrap();
        assert_eq!(web.place(), "https://example.org/mcp");
        assert!(reading("command = \"npx\"\nenabled = false").unwrap().spec(&keys).is_none());
    }

    #[test]
    fn what_nobody_would_read_is_an_error() {
        assert_eq!(reading("args = []").unwrap_err(), "an extension has either a command or a url: files");
        assert!(reading("command = \"a\"\nurl = \"b\"").is_err());
        assert!(reading("comand = \"a\"").unwrap_err().contains("unknown field"));
    }
}
