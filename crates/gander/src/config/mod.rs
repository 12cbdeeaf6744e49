//! What is in force, and where each value came from: flag over environment over file over default.
//!
//! The only place that reads the process's environment.

mod agents;
mod agents_file;
mod cluster;
mod default_file;
mod environment;
mod extensions;
mod file;
mod goose;
mod known_agents;
mod live;
mod load;
mod provider_keys;
mod proxy;
mod secret_names;
mod sections;
mod setting;
mod settings;
mod store;

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use gander_agent::context_files::UserDirs;
use gander_mcp::Spec;
use gander_models::{Catalogue, CatalogueError, Keys};
use gander_services::oidc::{OidcProvider, OidcSettings};
use gander_services::paths::Paths;
use gander_services::telemetry::OtlpHeaders;
use gander_tools::{self, BuiltIn};
use secrecy::{ExposeSecret as _, SecretString};

pub use agents::{AcpSettings, RemoteAgent, RemoteKind, ServerSettings, check_agent, is_web_address};
pub use agents_file::{AgentsFile, AgentsFileError, agents_file_path};
pub use cluster::ClusterSection;
pub use default_file::default_settings_text;
pub use environment::Environment;
pub use known_agents::{KNOWN_AGENTS, KnownAgent, find_known_agent};
pub use live::LiveConfig;
pub use load::{ConfigError, named_data_directory, settings_file};
pub use provider_keys::{store_agent_key, store_provider};
pub use proxy::{ProxyError, ProxyFlags, proxied_goose, with_proxy_flags};
pub use sections::{
    DaemonSection, LogSection, ModelSection, OnRestart, PermissionsSection, RecoverySection, SandboxSection,
    SchedulesSection, Sections, ToolsSection,
};
pub use setting::{Setting, TakesEffect};
pub use settings::SETTINGS;
pub use store::{StoreSection, StoreUrl};

/// Everything a process was told.
#[derive(Clone, Debug)]
pub struct Config {
    /// The values, by section.
    pub sections: Sections,
    /// Keys and addresses of model providers.
    pub keys: Keys,
    /// The owner's MCP servers. They may hold secrets.
    pub extensions: Vec<Spec>,
    /// Tools of our own that the owner switched on or off.
    pub built_ins: BTreeMap<BuiltIn, bool>,
    /// Agents that other servers run.
    pub agents: Vec<RemoteAgent>,
    /// The agent that serves whoever names none, if one was chosen.
    pub default_agent: Option<String>,
    /// Is the built-in agent there, before all others?
    pub native: bool,
    /// How long runs may go on while the server stops.
    pub grace: Duration,
    /// Is every connection encrypted, with a certificate of our own?
    pub tls: bool,
    /// May plain HTTP leave this machine?
    pub insecure_plain: bool,
    /// What commands of tools find in their environment.
    pub tool_environment: gander_tools::Environment,
    /// Where the person keeps notes for agents and skills of their own.
    pub own: UserDirs,
    /// What collectors for OpenTelemetry want to see, such as a key.
    pub otlp_headers: OtlpHeaders,
    /// A second token of the owner, chosen in the environment as goose's clients do.
    pub secret: Option<SecretString>,
    /// Where data lives.
    pub paths: Paths,
    /// The owner's home.
    pub home: Option<PathBuf>,
    /// The program that opens web addresses for the person, where there is a screen for it.
    pub browser: Option<String>,
    /// This program, to be started again as the helper that fences commands; none where it cannot be.
    pub helper: Option<PathBuf>,
    /// The settings file, whether it exists or not.
    pub file: PathBuf,
    /// Where each value came from, by key; a key that is absent has its default.
    pub origins: BTreeMap<String, Origin>,
    /// Things that look like a mistake but are none for sure.
    pub warnings: Vec<String>,
    /// What it was put together from, so that it can be again.
    pub source: ConfigSource,
}

/// What settings are put together from, beside their file.
#[derive(Clone, Debug, Default)]
pub struct ConfigSource {
    /// The command line.
    pub flags: Flags,
    /// The environment. It holds keys: its `Debug` shows names only.
    pub environment: Environment,
}

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Nobody said anything.
    Default,
    /// The settings file, at this line.
    File {
        /// Which file.
        path: PathBuf,
        /// Counted from 1.
        line: usize,
    },
    /// This environment variable.
    Variable(String),
    /// This flag of the command line.
    Flag(&'static str),
}

/// What the command line says about settings.
#[derive(Clone, Debug, Default)]
pub struct Flags {
    /// `--config`.
    pub config: Option<PathBuf>,
    /// `--data`.
    pub data: Option<PathBuf>,
    /// Settings by key, with the flag that named them.
    pub values: Vec<FlagValue>,
}

/// One setting, given as a flag.
#[derive(Clone, Debug)]
pub struct FlagValue {
    /// The setting's key.
    pub key: &'static str,
    /// The flag's name, for people.
    pub flag: &'static str,
    /// What was given.
    pub text: String,
}

impl Config {
    /// Puts together what flags, environment, file and defaults say.
    pub fn load(flags: &Flags, environment: &Environment) -> Result<Self, ConfigError> {
        load::load_config(flags, environment)
    }

    /// The same files, flags and environment, read again.
    pub fn reload(&self) -> Result<Self, ConfigError> {
        Ok(self.with_settings_of(Self::load(&self.source.flags, &self.source.environment)?))
    }

    /// This process with the settings of another reading: what is no setting stays as it is.
    fn with_settings_of(&self, read: Self) -> Self {
        let Self { native, grace, tls, insecure_plain, secret, paths, helper, file, .. } = self.clone();
        Self { native, grace, tls, insecure_plain, secret, paths, helper, file, ..read }
    }

    /// The known model providers, with the owner's own laid over them.
    pub fn catalogue(&self) -> Result<Catalogue, CatalogueError> {
        match self.sections.providers.is_empty() {
            true => Ok(Catalogue::built_in()),
            false => Catalogue::load_catalogue(&self.sections.providers.to_string()),
        }
    }

    /// The identity provider whose tokens count beside local ones, if the settings name one.
    pub fn identity_provider(&self) -> anyhow::Result<Option<OidcProvider>> {
        let settings = OidcSettings::from_section(&self.sections.auth.oidc).map_err(anyhow::Error::msg)?;
        Ok(settings.map(OidcProvider::new).transpose()?)
    }

    /// What must not be shown or written down, as far as settings know it: the keys of providers and of other agents, and
    /// the shared secret.
    pub fn known_secrets(&self) -> Vec<String> {
        let keys = self.keys.key_names().filter_map(|name| self.keys.get(name)).filter(|key| !key.starts_with("http"));
        let agents = self.agents.iter().flat_map(|agent| &agent.secrets);
        let secrets = self.secret.iter().chain(agents).map(|secret| secret.expose_secret());
        keys.chain(secrets).chain(self.otlp_headers.secrets()).map(str::to_owned).collect()
    }

    /// Where the owner's own agents are: beside the settings file.
    pub fn agents_folder(&self) -> PathBuf {
        self.file.with_file_name("agents")
    }

    /// Where the value of this key came from.
    pub fn origin(&self, key: &str) -> Origin {
        self.origins.get(key).cloned().unwrap_or(Origin::Default)
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { path, line } => write!(f, "{}:{line}", path.display()),
            Self::Variable(name) => f.write_str(name),
            Self::Flag(flag) => f.write_str(flag),
        }
    }
}
