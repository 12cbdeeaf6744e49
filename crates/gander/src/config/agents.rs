//! Agents that are not our own, as the settings file and `gander agents add` name them.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::PathBuf;
use std::time::Duration;

use gander_client::{AgentLaunch, CertificatePin, Endpoint, ProgramSearch};
use gander_models::Keys;
use gander_runtime::backend::acp::AgentAddress;
use gander_runtime::backend::goosed::{GoosedRemote, Protocol};
use gander_runtime::backend::remote::RemoteEndpoint;
use gander_services::units::DurationSetting;
use gander_wire::a2a::A2aDialect;
use secrecy::SecretString;
use serde::Deserialize;
use toml::Value;

use super::Environment;
use super::known_agents::{KNOWN_AGENTS, KnownAgent, find_known_agent};
use super::secret_names::is_secret_variable;

/// An agent without a prompt for so long is stopped, unless something else is set.
const IDLE_TIMEOUT: Duration = Duration::from_secs(15 * 60);

/// An agent that another program or server runs.
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
    /// Keys that it is given: no tool may show them.
    pub secrets: Vec<SecretString>,
    /// Another one for another entry: an agent whose entry is the same goes on when settings change.
    pub fingerprint: u64,
}

/// What speaks to an agent.
#[derive(Clone, Debug)]
pub enum RemoteKind {
    /// A goosed, a `goose serve`, or another server of our kind.
    Goosed(GoosedRemote),
    /// Anything that speaks the Agent Client Protocol.
    Acp(Box<AcpSettings>),
    /// A server that speaks A2A, 1.0 or 0.3.
    A2a(Box<ServerSettings>),
    /// A server that speaks the Agent Communication Protocol.
    AcpRest(Box<ServerSettings>),
    /// A server that speaks the REST of Google's ADK.
    Adk(Box<ServerSettings>),
}

/// How an agent is reached that a server of another protocol runs.
#[derive(Clone, Debug)]
pub struct ServerSettings {
    /// Where the server is.
    pub endpoint: RemoteEndpoint,
    /// The agent's name there; absent: the only one.
    pub agent: Option<String>,
    /// The user whose sessions these are there, for ADK.
    pub user: Option<String>,
    /// The one version of A2A that is spoken; absent: the newest that its card names.
    pub version: Option<A2aDialect>,
    /// Whether it is told what was said before it came.
    pub tells_history: bool,
}

/// How an agent is reached that speaks the Agent Client Protocol.
#[derive(Clone, Debug)]
pub struct AcpSettings {
    /// Where it is.
    pub address: AgentAddress,
    /// That for people: a command line or a URL.
    pub place: String,
    /// The program that must be installed, if it is one.
    pub program: Option<ProgramSearch>,
    /// The folder of its sessions; absent: that of ours.
    pub folder: Option<PathBuf>,
    /// What logs in to it.
    pub login: Option<String>,
    /// What installs it.
    pub install: Option<String>,
    /// After so long without a prompt it is stopped.
    pub idle_timeout: Duration,
    /// Whether it is told what was said before it came.
    pub tells_transcript: bool,
    /// What its process may write besides the session's folders, if it runs in the sandbox.
    pub sandbox: Option<Vec<PathBuf>>,
}

/// One agent of the settings file.
#[derive(Debug)]
pub(super) struct FileAgent {
    pub(super) name: String,
    entry: AgentFileEntry,
    kind: AgentEntryKind,
    pin: Option<CertificatePin>,
    fingerprint: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AgentFileEntry {
    kind: Option<AgentEntryKind>,
    url: Option<String>,
    command: Option<Vec<String>>,
    preset: Option<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    title: Option<String>,
    description: Option<String>,
    secret_key: Option<String>,
    secret_key_variable: Option<String>,
    key_header: Option<String>,
    agent: Option<String>,
    user: Option<String>,
    version: Option<A2aVersion>,
    cert_fingerprint: Option<String>,
    working_dir: Option<String>,
    login: Option<String>,
    mode: Option<String>,
    timeout: Option<DurationSetting>,
    idle_timeout: Option<DurationSetting>,
    transcript: Option<bool>,
    #[serde(default)]
    sandbox: bool,
    #[serde(default)]
    sandbox_writable: Vec<String>,
    protocol: Option<Speaks>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum AgentEntryKind {
    Goosed,
    Acp,
    A2a,
    AcpRest,
    Adk,
}

#[derive(Clone, Copy, Debug, Deserialize)]
enum A2aVersion {
    #[serde(rename = "1.0")]
    V1,
    #[serde(rename = "0.3")]
    V03,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Speaks {
    Rest,
    Acp,
}

impl std::fmt::Debug for AgentFileEntry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Entry").field("url", &self.url).field("command", &self.command).finish_non_exhaustive()
    }
}

/// Reads one agent, or says what is wrong with it.
pub fn check_agent(name: &str, value: Value) -> Result<(), String> {
    parse_agent(name, value).map(drop)
}

/// Reads one agent, or says what is wrong with it.
pub(super) fn parse_agent(name: &str, value: Value) -> Result<FileAgent, String> {
    let mut hasher = DefaultHasher::new();
    (name, value.to_string()).hash(&mut hasher);
    let entry: AgentFileEntry = value.try_into().map_err(|error: toml::de::Error| error.message().to_owned())?;
    let letters = |text: &str| text.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_'));
    if !letters(name) || name.is_empty() || name.len() > 63 || name.starts_with(['-', '_']) {
        return Err(format!("an agent's name is made of a-z, 0-9, - and _: {name}"));
    }
    let kind = check_agent_address(&entry)?;
    if entry.sandbox && entry.url.is_some() {
        return Err("a sandbox is for an agent with a command: a server runs elsewhere".to_owned());
    }
    if !entry.sandbox && !entry.sandbox_writable.is_empty() {
        return Err("sandbox_writable counts for an agent with sandbox = true".to_owned());
    }
    let pin = entry.cert_fingerprint.as_deref().map(str::parse::<CertificatePin>).transpose();
    let pin = pin.map_err(|error| error.to_string())?;
    let url = entry.url.as_deref().unwrap_or_default();
    if pin.is_some() && !(url.starts_with("https://") || url.starts_with("wss://")) {
        return Err(format!("a certificate is pinned, so the url of the agent begins with https://: {url}"));
    }
    Ok(FileAgent { name: name.to_owned(), entry, kind, pin, fingerprint: hasher.finish() })
}

/// What speaks to the agent, if the entry names one place where it is.
fn check_agent_address(entry: &AgentFileEntry) -> Result<AgentEntryKind, String> {
    if let Some(preset) = &entry.preset {
        let known = KNOWN_AGENTS.map(|known| known.name).join(", ");
        find_known_agent(preset).ok_or_else(|| format!("no such preset, there are {known}: {preset}"))?;
    }
    match (&entry.url, &entry.command, &entry.preset) {
        (None, None, None) => Err("an agent needs a url, a command or a preset".to_owned()),
        (Some(_), Some(_), _) | (Some(_), _, Some(_)) => Err("an agent has a url or a command, not both".to_owned()),
        (None, Some(command), _) if command.first().is_none_or(String::is_empty) => {
            Err("the command of an agent is a list that begins with its program".to_owned())
        }
        (None, _, _) => match entry.kind {
            Some(AgentEntryKind::Goosed) => {
                Err("a goosed has a url; for goose as a program leave out the kind".to_owned())
            }
            Some(AgentEntryKind::A2a | AgentEntryKind::AcpRest | AgentEntryKind::Adk) => {
                Err("an agent of this kind has a url".to_owned())
            }
            Some(AgentEntryKind::Acp) | None => Ok(AgentEntryKind::Acp),
        },
        (Some(url), None, None) => {
            let is_socket =
                url.strip_prefix("ws://").or_else(|| url.strip_prefix("wss://")).is_some_and(address_has_host);
            match entry.kind {
                Some(AgentEntryKind::Acp) | None if is_socket => Ok(AgentEntryKind::Acp),
                Some(kind) if is_web_address(url) => Ok(kind),
                None if is_web_address(url) => {
                    let kinds = "kind = \"acp\", \"a2a\", \"acp_rest\", \"adk\" or \"goosed\"";
                    Err(format!("say what the server speaks: {kinds}"))
                }
                Some(
                    AgentEntryKind::Goosed
                    | AgentEntryKind::Acp
                    | AgentEntryKind::A2a
                    | AgentEntryKind::AcpRest
                    | AgentEntryKind::Adk,
                )
                | None => Err(format!("the url of an agent begins with http:// or https://: {url}")),
            }
        }
    }
}

/// True for an address that can be asked by HTTP.
pub fn is_web_address(url: &str) -> bool {
    url.strip_prefix("http://").or_else(|| url.strip_prefix("https://")).is_some_and(address_has_host)
}

fn address_has_host(rest: &str) -> bool {
    !rest.is_empty() && !rest.starts_with('/')
}

impl FileAgent {
    /// True if the file should be read by its owner alone.
    pub(super) fn is_secret(&self) -> bool {
        self.entry.secret_key.is_some()
    }

    /// As it is spoken to. The key is in the file, in the environment, or was stored by `gander agents add`.
    pub(super) fn into_remote_agent(self, environment: &Environment, stored: &Keys) -> RemoteAgent {
        let Self { name, mut entry, kind, pin, fingerprint } = self;
        let variable = entry.secret_key_variable.as_deref();
        let named = variable.and_then(|variable| environment.get(variable).or_else(|| stored.get(variable)));
        let key = entry.secret_key.take().or_else(|| named.map(str::to_owned));
        let mut hasher = DefaultHasher::new();
        (fingerprint, &key).hash(&mut hasher);
        let (fingerprint, key) = (hasher.finish(), key.map(SecretString::from));
        let given = entry.env.iter().filter(|(name, _)| is_secret_variable(name));
        let given = given.map(|(_, value)| SecretString::from(value.clone()));
        let secrets = key.iter().cloned().chain(given).collect();
        let (title, description) = (entry.title.take(), entry.description.take());
        let server = |entry: AgentFileEntry, key| Box::new(server_settings(entry, key, pin));
        let kind = match kind {
            AgentEntryKind::Goosed => RemoteKind::Goosed(goosed_agent_settings(entry, key, pin)),
            AgentEntryKind::Acp => RemoteKind::Acp(Box::new(acp_agent_settings(entry, key.as_ref(), pin, environment))),
            AgentEntryKind::A2a => RemoteKind::A2a(server(entry, key)),
            AgentEntryKind::AcpRest => RemoteKind::AcpRest(server(entry, key)),
            AgentEntryKind::Adk => RemoteKind::Adk(server(entry, key)),
        };
        RemoteAgent { name, title, description, kind, secrets, fingerprint }
    }
}

fn server_settings(entry: AgentFileEntry, key: Option<SecretString>, pin: Option<CertificatePin>) -> ServerSettings {
    let mut endpoint = RemoteEndpoint::new(entry.url.unwrap_or_default());
    (endpoint.key, endpoint.key_header, endpoint.pin) = (key, entry.key_header, pin);
    endpoint.timeout = entry.timeout.map_or(endpoint.timeout, |span| span.0);
    let version = entry.version.map(|version| match version {
        A2aVersion::V1 => A2aDialect::V1,
        A2aVersion::V03 => A2aDialect::V03,
    });
    let tells_history = entry.transcript.unwrap_or(true);
    ServerSettings { endpoint, agent: entry.agent, user: entry.user, version, tells_history }
}

fn goosed_agent_settings(
    entry: AgentFileEntry,
    key: Option<SecretString>,
    pin: Option<CertificatePin>,
) -> GoosedRemote {
    let mut remote = GoosedRemote::new(entry.url.unwrap_or_default());
    (remote.key, remote.pin, remote.folder, remote.mode) = (key, pin, entry.working_dir, entry.mode);
    remote.timeout = entry.timeout.map_or(remote.timeout, |span| span.0);
    remote.protocol = entry.protocol.map(|speaks| match speaks {
        Speaks::Rest => Protocol::Rest,
        Speaks::Acp => Protocol::Acp,
    });
    remote
}

fn acp_agent_settings(
    entry: AgentFileEntry,
    key: Option<&SecretString>,
    pin: Option<CertificatePin>,
    environment: &Environment,
) -> AcpSettings {
    let known = entry.preset.as_deref().and_then(find_known_agent);
    let (address, place, program) = match &entry.url {
        Some(url) => (agent_server_address(url, key, pin), url.clone(), None),
        None => {
            let command = entry.command.unwrap_or_else(|| preset_agent_command(known));
            let (search, launch) = agent_program_launch(&command, &entry.env, environment);
            (AgentAddress::Program(launch), command.join(" "), Some(search))
        }
    };
    AcpSettings {
        address,
        place,
        program,
        folder: entry.working_dir.map(PathBuf::from),
        login: entry.login.or_else(|| known.map(|known| known.login.to_owned())),
        install: known.map(|known| known.install.to_owned()),
        idle_timeout: entry.idle_timeout.map_or(IDLE_TIMEOUT, |span| span.0),
        tells_transcript: entry.transcript.unwrap_or(true),
        sandbox: entry.sandbox.then(|| lent_paths(&entry.sandbox_writable, environment)),
    }
}

/// Paths of the settings, whose `~` is the home of whoever started the server.
fn lent_paths(paths: &[String], environment: &Environment) -> Vec<PathBuf> {
    let home = environment.get("HOME").map(PathBuf::from).unwrap_or_default();
    let expanded = |path: &String| match path.strip_prefix("~/") {
        Some(below) => home.join(below),
        None => PathBuf::from(path),
    };
    paths.iter().map(expanded).collect()
}

fn preset_agent_command(known: Option<&KnownAgent>) -> Vec<String> {
    known.map(|known| known.command.iter().map(|word| (*word).to_owned()).collect()).unwrap_or_default()
}

/// The program with its arguments, in the environment of this process less what is for gander alone.
fn agent_program_launch(
    command: &[String],
    variables: &BTreeMap<String, String>,
    environment: &Environment,
) -> (ProgramSearch, AgentLaunch) {
    let program = command.first().map(String::as_str).unwrap_or_default();
    let home = environment.get("HOME").map(PathBuf::from);
    let search = match program.contains('/') {
        true => ProgramSearch::by_name(program).with_setting(Some(program)),
        false => ProgramSearch::by_name(program).with_path(environment.get("PATH").map(Into::into)),
    };
    let search = search.with_home(home);
    let own = |name: &&str| !name.starts_with("GANDER") && !name.ends_with("SERVER__SECRET_KEY");
    let inherited = environment.names().filter(own).filter_map(|name| Some((name, environment.get(name)?)));
    let given = variables.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let launch = AgentLaunch::from_search(search.clone()).with_clear_environment();
    let launch = inherited.chain(given).fold(launch, |launch, (name, value)| launch.with_variable(name, value));
    let launch = command.iter().skip(1).fold(launch, |launch, word| launch.with_argument(word));
    (search, launch)
}

fn agent_server_address(url: &str, key: Option<&SecretString>, pin: Option<CertificatePin>) -> AgentAddress {
    use secrecy::ExposeSecret as _;
    let mut endpoint = Endpoint::new(url);
    if let Some(key) = key {
        // A key that no header can hold is refused by the server, which says so better than we could here.
        endpoint = endpoint.clone().with_bearer(key.expose_secret()).unwrap_or(endpoint);
    }
    if let Some(pin) = pin {
        endpoint = endpoint.with_pin(pin);
    }
    match url.starts_with("ws") {
        true => AgentAddress::WebSocket(endpoint),
        false => AgentAddress::Http(endpoint),
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
        let agent = reading("goose", text).unwrap().into_remote_agent(&environment, &Keys::default());
        let RemoteKind::Goosed(remote) = agent.kind else { panic!("it is a goosed") };
        assert_eq!((remote.url.as_str(), remote.timeout.as_secs()), ("http://127.0.0.1:3000", 7));
        assert_eq!(remote.key.unwrap().expose_secret(), "hush");
    }

    #[test]
    fn a_server_of_another_protocol_has_a_name_there_and_a_key_that_may_be_stored() {
        let text = "kind = \"acp_rest\"\nurl = \"http://x\"\nagent = \"echo\"\nsecret_key_variable = \"K\"\nkey_header = \"X-Key\"";
        let mut stored = Keys::default();
        stored.set_key("K".to_owned(), "hush".to_owned());
        let read = |stored: &Keys| reading("a", text).unwrap().into_remote_agent(&Environment::default(), stored);
        let agent = read(&stored);
        assert_ne!(agent.fingerprint, read(&Keys::default()).fingerprint, "another key is another agent");
        let RemoteKind::AcpRest(settings) = agent.kind else { panic!("it speaks ACP-REST") };
        assert_eq!((settings.agent.as_deref(), settings.tells_history), (Some("echo"), true));
        assert_eq!(settings.endpoint.key.unwrap().expose_secret(), "hush");
        assert_eq!(settings.endpoint.key_header.as_deref(), Some("X-Key"));
        assert!(reading("a", "kind = \"a2a\"\ncommand = [\"x\"]").unwrap_err().contains("has a url"));
    }

    #[test]
    fn a_program_is_found_on_the_path_and_sees_nothing_of_gander() {
        let text = "command = [\"sh\", \"-c\", \"true\"]\nenv = { MODE = \"x\" }";
        let pairs = [("PATH", "/usr/bin:/bin"), ("GANDER_TOKEN", "t"), ("GOOSE_SERVER__SECRET_KEY", "s"), ("A", "1")];
        let pairs = pairs.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let agent = reading("mine", text).unwrap().into_remote_agent(&Environment::from_pairs(pairs), &Keys::default());
        let RemoteKind::Acp(settings) = agent.kind else { panic!("it speaks ACP") };
        assert_eq!(settings.place, "sh -c true");
        assert!(settings.program.unwrap().find_program().is_ok());
        let AgentAddress::Program(launch) = settings.address else { panic!("it is a program") };
        let shown = format!("{launch:?}");
        assert!(shown.contains("MODE") && shown.contains("\"A\""), "{shown}");
        assert!(!shown.contains("GANDER_TOKEN") && !shown.contains("SECRET_KEY"), "{shown}");
    }

    #[test]
    fn keys_of_an_agent_are_known_as_secrets() {
        let text =
            "command = [\"sh\"]\nsecret_key = \"in-the-file\"\nenv = { X_API_KEY = \"of-the-program\", MODE = \"x\" }";
        let agent = reading("mine", text).unwrap().into_remote_agent(&Environment::default(), &Keys::default());
        let secrets: Vec<&str> = agent.secrets.iter().map(|secret| secret.expose_secret()).collect();
        assert_eq!(secrets, ["in-the-file", "of-the-program"]);
    }

    #[test]
    fn a_program_may_be_set_to_run_in_the_sandbox() {
        let text = "command = [\"sh\"]\nsandbox = true\nsandbox_writable = [\"~/.config/mine\", \"/srv/mine\"]";
        let environment = Environment::from_pairs([("HOME".to_owned(), "/home/me".to_owned())]);
        let agent = reading("mine", text).unwrap().into_remote_agent(&environment, &Keys::default());
        let RemoteKind::Acp(settings) = agent.kind else { panic!("it speaks ACP") };
        assert_eq!(settings.sandbox.unwrap(), [PathBuf::from("/home/me/.config/mine"), PathBuf::from("/srv/mine")]);
        assert!(reading("a", "url = \"ws://x\"\nsandbox = true").unwrap_err().contains("with a command"));
        assert!(reading("a", "command = [\"x\"]\nsandbox_writable = [\"/x\"]").unwrap_err().contains("sandbox = true"));
    }

    #[test]
    fn a_preset_knows_how_an_agent_is_started_and_installed() {
        let agent = reading("code", "preset = \"opencode\"")
            .unwrap()
            .into_remote_agent(&Environment::default(), &Keys::default());
        let RemoteKind::Acp(settings) = agent.kind else { panic!("it speaks ACP") };
        assert_eq!(settings.place, "opencode acp");
        assert_eq!(settings.login.as_deref(), Some("opencode auth login"));
        assert!(settings.install.unwrap().contains("opencode-ai"));
    }

    #[test]
    fn what_nobody_could_use_is_an_error() {
        let good = "kind = \"goosed\"\nurl = \"http://x\"";
        assert!(reading("Goose", good).unwrap_err().contains("name"));
        assert!(reading("a", "kind = \"goosed\"\nurl = \"ftp://x\"").unwrap_err().contains("http://"));
        assert!(reading("a", "kind = \"unknown\"\nurl = \"http://x\"").unwrap_err().contains("unknown variant"));
        assert!(reading("a", &format!("{good}\nkey = 1")).unwrap_err().contains("unknown field"));
        assert!(reading("a", "title = \"x\"").unwrap_err().contains("needs a url, a command or a preset"));
        assert!(reading("a", "url = \"http://x\"").unwrap_err().contains("kind = \"acp\""));
        assert!(reading("a", "command = []").unwrap_err().contains("begins with its program"));
        assert!(reading("a", "preset = \"opncode\"").unwrap_err().contains("opencode"));
        assert!(reading("a", "url = \"ws://x\"\ncommand = [\"x\"]").unwrap_err().contains("not both"));
        let pinned = |fingerprint: &str| format!("{good}\ncert_fingerprint = \"{fingerprint}\"");
        assert!(reading("a", &pinned("x")).unwrap_err().contains("32 pairs of hexadecimal digits"));
        let fingerprint = CertificatePin::of_certificate(b"").to_string();
        assert!(reading("a", &pinned(&fingerprint)).unwrap_err().contains("begins with https://"));
        assert!(reading("a", &pinned(&fingerprint).replace("http:", "https:")).is_ok());
    }
}
