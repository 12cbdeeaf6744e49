//! How a server is reached: a program to start, or an address.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use gander_tools::Guard;
use sha2::{Digest as _, Sha256};

/// One server, as a client or the owner named it. It may hold secrets: it is never written down.
#[derive(Clone)]
pub struct Spec {
    /// What people call it.
    pub name: String,
    /// How it is reached.
    pub transport: Transport,
    /// How long one call may be silent.
    pub patience: Duration,
    /// How much of the machine a program gets.
    pub confinement: Confinement,
    /// Sessions of the same person in the same folders use one.
    pub shared: bool,
}

/// How much of the machine a program gets, where there is a sandbox.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Confinement {
    /// The session's folders and what its command line names; no network.
    #[default]
    Fenced,
    /// The same, and the network.
    Networked,
    /// Everything.
    Free,
}

/// How a server is reached.
#[derive(Clone)]
pub enum Transport {
    /// A program that speaks over its standard streams.
    Stdio {
        /// The program.
        command: PathBuf,
        /// Its arguments.
        args: Vec<String>,
        /// What it finds in its environment beside the harmless names.
        env: Vec<(String, String)>,
    },
    /// Streamable HTTP.
    Http {
        url: String,
        /// What every request carries.
        headers: Vec<(String, String)>,
        /// Which addresses may be dialled.
        reach: Reach,
        /// Who we are at its login, if somebody made us known there.
        client_id: Option<String>,
    },
}

/// Which addresses may be dialled.
#[derive(Clone)]
pub enum Reach {
    /// Any: whoever named it may reach this machine anyway.
    Anywhere,
    /// Only what the guard lets through.
    Guarded(Guard),
}

impl Spec {
    /// How long one call may be silent unless somebody says otherwise.
    pub const DEFAULT_CALL_TIMEOUT: Duration = Duration::from_secs(300);

    /// True if a program on this machine works for it, and may write where its session does.
    pub fn is_program(&self) -> bool {
        matches!(self.transport, Transport::Stdio { .. })
    }

    /// A server with everything as usual.
    pub fn new(name: String, transport: Transport) -> Self {
        Self {
            name,
            transport,
            patience: Self::DEFAULT_CALL_TIMEOUT,
            confinement: Confinement::default(),
            shared: false,
        }
    }

    /// What pins belong to: the same name over another program or address is another server.
    pub(super) fn identity(&self) -> String {
        let mut hash = Sha256::new();
        let mut add = |text: &str| {
            hash.update((text.len() as u64).to_be_bytes());
            hash.update(text.as_bytes());
        };
        add(&self.name);
        match &self.transport {
            Transport::Stdio { command, args, .. } => {
                add(&command.to_string_lossy());
                args.iter().for_each(|argument| add(argument));
            }
            Transport::Http { url, .. } => add(url),
        }
        hash.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
    }

    /// Where it is, for people: without its environment, its headers and what an address may carry.
    pub fn command_or_url(&self) -> String {
        match &self.transport {
            Transport::Stdio { command, args, .. } => {
                let words = std::iter::once(command.to_string_lossy().into_owned()).chain(args.iter().cloned());
                words.collect::<Vec<_>>().join(" ")
            }
            Transport::Http { url, .. } => match reqwest::Url::parse(url) {
                Ok(url) => format!("{}{}", url.origin().ascii_serialization(), url.path()),
                Err(_) => "not an address".to_owned(),
            },
        }
    }

    /// Who we are at its login, if somebody made us known there.
    pub(super) fn client_id(&self) -> Option<String> {
        match &self.transport {
            Transport::Stdio { .. } => None,
            Transport::Http { client_id, .. } => client_id.clone(),
        }
    }

    /// True if it was given a token of its own: such a one needs no login, and none would help it.
    pub(super) fn is_authorized(&self) -> bool {
        match &self.transport {
            Transport::Stdio { .. } => false,
            Transport::Http { headers, .. } => {
                headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization"))
            }
        }
    }

    /// What must not appear in anything that is shown.
    pub(super) fn secret_values(&self) -> Vec<String> {
        match &self.transport {
            Transport::Stdio { env, .. } => env.iter().map(|(_, value)| value.clone()).collect(),
            Transport::Http { url, headers, .. } => {
                let headers = headers.iter().map(|(_, value)| value.clone());
                headers.chain(spec_url_secrets(url)).collect()
            }
        }
    }
}

/// The name of a server's home among those of its owner. What is no plain name is told apart by a digest.
pub fn spec_home_name(server: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if !server.is_empty() && server.len() <= 64 && !server.starts_with('.') && server.chars().all(plain) {
        return server.to_owned();
    }
    Sha256::digest(server.as_bytes()).iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

/// What an address may carry that is for nobody's eyes: who calls, with which password, and what is asked for.
fn spec_url_secrets(url: &str) -> Vec<String> {
    let Ok(url) = reqwest::Url::parse(url) else { return vec![url.to_owned()] };
    let named = [url.username(), url.password().unwrap_or_default(), url.query().unwrap_or_default()];
    let values = url.query_pairs().map(|(_, value)| value.into_owned());
    named.map(str::to_owned).into_iter().chain(values).filter(|text| !text.is_empty()).collect()
}

impl fmt::Debug for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spec").field("name", &self.name).field("place", &self.command_or_url()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stdio(command: &str, secret: &str) -> Spec {
        let env = vec![("TOKEN".to_owned(), secret.to_owned())];
        let transport = Transport::Stdio { command: command.into(), args: vec!["-x".to_owned()], env };
        Spec::new("files".to_owned(), transport)
    }

    #[test]
    fn another_program_is_another_server_and_a_new_key_is_not() {
        assert_eq!(stdio("/bin/a", "one").identity(), stdio("/bin/a", "two").identity());
        assert_ne!(stdio("/bin/a", "one").identity(), stdio("/bin/b", "one").identity());
    }

    #[test]
    fn secrets_are_not_shown() {
        assert_eq!(format!("{:?}", stdio("/bin/a", "hush")), r#"Spec { name: "files", place: "/bin/a -x", .. }"#);
        let transport = Transport::Http {
            url: "https://user:hush@example.org/mcp?key=hush".to_owned(),
            headers: vec![("authorization".to_owned(), "hush".to_owned())],
            reach: Reach::Anywhere,
            client_id: None,
        };
        let http = Spec::new("web".to_owned(), transport);
        assert_eq!(http.command_or_url(), "https://example.org/mcp");
        assert_eq!(http.secret_values(), ["hush", "user", "hush", "key=hush", "hush"]);
    }
}
