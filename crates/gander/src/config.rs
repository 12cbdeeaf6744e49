//! What is in force, and where each value came from: flag over environment over file over default.
//!
//! The only place that reads the process's environment.

mod agents;
mod agents_file;
mod default_file;
mod extensions;
mod file;
mod goose;
mod known_agents;
mod live;
mod load;
mod provider_keys;
mod proxy;
mod sections;
mod settings;
mod store;

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use gander_agent::context_files::UserDirs;
use gander_mcp::Spec;
use gander_models::{Catalogue, CatalogueError, Keys};
use gander_services::paths::Paths;
use gander_tools::{self, BuiltIn};
use secrecy::SecretString;

pub use agents::{AcpSettings, RemoteAgent, RemoteKind, ServerSettings, check_agent, is_web_address};
pub use agents_file::{AgentsFile, AgentsFileError, agents_file_path};
pub use default_file::default_settings_text;
pub use known_agents::{KNOWN_AGENTS, KnownAgent, find_known_agent};
pub use live::LiveConfig;
pub use load::{ConfigError, named_data_directory, settings_file};
pub use provider_keys::{store_agent_key, store_provider};
pub use proxy::{ProxyError, ProxyFlags, proxied_goose, with_proxy_flags};
pub use sections::{
    DaemonSection, LogSection, ModelSection, OnRestart, PermissionsSection, RecoverySection, SandboxSection,
    SchedulesSection, Sections, ToolsSection,
};
pub use settings::{SETTINGS, Setting, TakesEffect};
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

/// The environment of a process, as far as it is text.
#[derive(Clone, Default)]
pub struct Environment(BTreeMap<String, String>);

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

    /// Where the owner's own agents are: beside the settings file.
    pub fn agents_folder(&self) -> PathBuf {
        self.file.with_file_name("agents")
    }

    /// Where the value of this key came from.
    pub fn origin(&self, key: &str) -> Origin {
        self.origins.get(key).cloned().unwrap_or(Origin::Default)
    }
}

impl Environment {
    /// Reads the process's environment. Some editors start agents without `HOME`: then it is the one of the password
    /// database.
    pub fn of_process() -> Self {
        let environment = Self::from_pairs(std::env::vars_os().filter_map(|(name, value)| {
            let (Ok(name), Ok(value)) = (name.into_string(), value.into_string()) else { return None };
            Some((name, value))
        }));
        let home = || std::env::home_dir().and_then(|home| home.into_os_string().into_string().ok());
        match environment.get("HOME") {
            Some(_) => environment,
            None => environment.with_home(home()),
        }
    }

    fn with_home(mut self, home: Option<String>) -> Self {
        self.0.extend(home.filter(|home| !home.is_empty()).map(|home| ("HOME".to_owned(), home)));
        self
    }

    /// An environment of these variables.
    pub fn from_pairs(pairs: impl IntoIterator<Item = (String, String)>) -> Self {
        Self(pairs.into_iter().filter(|(_, value)| !value.is_empty()).collect())
    }

    /// The value of a variable that is set and not empty.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// The names of the variables that are set.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// What commands of tools may see of it.
    pub fn for_tools(&self) -> gander_tools::Environment {
        gander_tools::Environment::harmless_variables_of(self.0.iter().map(|(name, value)| (name.into(), value.into())))
    }

    /// The program that opens web addresses: the one that is named, else the desktop's, if there is a desktop.
    pub fn browser(&self) -> Option<String> {
        if let Some(named) = self.get("BROWSER") {
            return named.split(':').next().map(str::to_owned);
        }
        let desktop =
            cfg!(target_os = "macos") || ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| self.get(name).is_some());
        match self.get("WSL_DISTRO_NAME") {
            Some(_) => Some("wslview".to_owned()),
            None => desktop.then(|| if cfg!(target_os = "macos") { "open" } else { "xdg-open" }.to_owned()),
        }
    }

    /// True if the user does not want colours.
    pub fn no_color(&self) -> bool {
        self.get("NO_COLOR").is_some() || self.get("TERM") == Some("dumb")
    }
}

/// Names only: a value may be a secret.
impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.names()).finish()
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
