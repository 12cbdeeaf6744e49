//! Layers of settings, one over the other: default, file, environment, flag.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use gander_agent::context_files::UserDirs;
use gander_services::oidc::OidcSettings;
use gander_services::paths::{Paths, PathsError};
use gander_services::telemetry::OtlpHeaders;
use toml::{Table, Value};

use super::agents::FileAgent;
use super::agents_file::{AgentsFile, AgentsFileError, agents_file_path};
use super::file::{self, FileValue};
use super::provider_keys::{StoredProvider, provider_keys_from_environment};
use super::setting::Setting;
use super::settings::{self, SETTINGS};
use super::{Config, ConfigSource, Environment, Flags, Origin, Sections, goose};

/// How long runs may go on while the server stops. Systems kill after 30 seconds.
const GRACE: Duration = Duration::from_secs(10);

/// Why there is no configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// It is there but cannot be read.
    #[error("cannot read the settings file, {reason}: {path}")]
    Unreadable {
        /// Which file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// `--config` names nothing.
    #[error("no such settings file: {0}")]
    Missing(PathBuf),
    /// It is no TOML.
    #[error("{path}:{line}: {reason}")]
    BadFile {
        /// Which file.
        path: PathBuf,
        /// Counted from 1.
        line: usize,
        /// What is wrong.
        reason: String,
    },
    /// Nobody would read this.
    #[error("{path}:{line}: unknown key{hint}: {key}")]
    UnknownKey {
        /// Which file.
        path: PathBuf,
        /// Counted from 1.
        line: usize,
        /// The nearest known key, in words.
        hint: String,
        /// What it says.
        key: String,
    },
    /// The value is of the wrong kind.
    #[error("{origin}: {reason}: {key}")]
    BadValue {
        /// Who said so.
        origin: Origin,
        /// What is wrong.
        reason: String,
        /// Of which setting.
        key: &'static str,
    },
    /// Keys in a file that others can read.
    #[error("settings file holds keys but other users can read it, run chmod 600 on it: {0}")]
    KeysExposed(PathBuf),
    /// The file of `gander agents` is wrong.
    #[error(transparent)]
    Agents(#[from] AgentsFileError),
    /// No place for data.
    #[error(transparent)]
    Paths(#[from] PathsError),
}

impl ConfigError {
    pub(super) fn unknown_key(path: &Path, line: usize, key: String) -> Self {
        let hint = settings::nearest_setting_name(&key, SETTINGS.iter().map(|setting| setting.key))
            .map(|near| format!(" (did you mean {near}?)"))
            .unwrap_or_default();
        Self::UnknownKey { path: path.to_owned(), line, hint, key }
    }
}

/// Puts the layers together.
pub(super) fn load_config(flags: &Flags, environment: &Environment) -> Result<Config, ConfigError> {
    let path = settings_file(flags, environment)?;
    if let Some(named) = load_chosen_settings_file(flags, environment).filter(|named| !named.exists()) {
        return Err(ConfigError::Missing(named));
    }
    let mut from_file = file::read_settings_file(&path)?;
    let default_agent = load_agents_of_file(&path, &mut from_file.agents)?;
    let mut layers = ConfigLayers::defaults();
    for (key, text, variable) in goose::goose_settings(environment) {
        let setting =
            settings::find_setting(key).expect("goose's variables name settings of the table: a test walks them");
        layers.set_from_text(setting, &text, Origin::Variable(variable.to_owned()))?;
    }
    let (data, data_origin) = load_data_directory(flags, environment)?;
    layers.origins.insert("data".to_owned(), data_origin);
    let paths = Paths::new(data, environment.get("XDG_RUNTIME_DIR").map(Path::new));
    let stored = StoredProvider::read(&paths);
    if let Some(model) = &stored.model {
        let origin = Origin::File { path: paths.provider_keys(), line: 1 };
        layers.set_value("model.default", Value::String(model.clone()), origin)?;
    }
    for FileValue { setting, value, line } in from_file.values {
        layers.set_value(setting, value, Origin::File { path: path.clone(), line })?;
    }
    layers.set_variables_and_flags(flags, environment)?;
    let mut sections = layers.deserialize_sections().expect("each value was checked when it was put");
    layers.check_sections(&sections)?;
    sections.providers = from_file.providers;
    let keys = provider_keys_from_environment(environment, &sections.providers).with_fallback(&from_file.keys);
    let keys = keys.with_fallback(&stored.keys);
    Ok(Config {
        built_ins: from_file.extensions.iter().filter_map(|extension| extension.built_in_switch()).collect(),
        extensions: from_file.extensions.into_iter().filter_map(|extension| extension.spec(&keys)).collect(),
        agents: from_file.agents.into_iter().map(|agent| agent.into_remote_agent(environment, &stored.keys)).collect(),
        default_agent,
        native: true,
        grace: GRACE,
        tls: false,
        insecure_plain: false,
        keys,
        sections,
        tool_environment: environment.for_tools(),
        own: load_user_dirs(environment),
        otlp_headers: OtlpHeaders::parse(environment.get("OTEL_EXPORTER_OTLP_HEADERS").unwrap_or_default()),
        secret: goose::goose_secret_key(environment),
        home: environment.get("HOME").map(PathBuf::from),
        browser: environment.browser(),
        helper: None,
        paths,
        file: path,
        origins: layers.origins,
        warnings: unknown_config_variables(environment),
        source: ConfigSource { flags: flags.clone(), environment: environment.clone() },
    })
}

/// Adds what `gander agents` keeps, behind what the settings file says, and tells which agent is the default.
fn load_agents_of_file(settings_file: &Path, agents: &mut Vec<FileAgent>) -> Result<Option<String>, AgentsFileError> {
    let path = agents_file_path(settings_file);
    let file = AgentsFile::read(&path)?;
    let default = file.default.clone();
    for added in file.parse_agents(&path)? {
        if agents.iter().all(|agent| agent.name != added.name) {
            agents.push(added);
        }
    }
    Ok(default)
}

/// Values under construction.
struct ConfigLayers {
    values: Table,
    origins: BTreeMap<String, Origin>,
}

impl ConfigLayers {
    fn set_variables_and_flags(&mut self, flags: &Flags, environment: &Environment) -> Result<(), ConfigError> {
        for setting in SETTINGS {
            let variable = setting.variable();
            if let Some(text) = environment.get(&variable) {
                self.set_from_text(setting, text, Origin::Variable(variable))?;
            }
        }
        for flag in &flags.values {
            let setting =
                settings::find_setting(flag.key).expect("flags name settings of the table: a test walks them");
            self.set_from_text(setting, &flag.text, Origin::Flag(flag.flag))?;
        }
        Ok(())
    }

    fn defaults() -> Self {
        let mut layers = Self { values: Table::new(), origins: BTreeMap::new() };
        for setting in SETTINGS {
            let section = load_section_table(&mut layers.values, setting);
            if let Some(value) = setting.default_value() {
                section.insert(setting.name().to_owned(), value);
            }
        }
        layers
    }

    fn set_from_text(&mut self, setting: &'static Setting, text: &str, origin: Origin) -> Result<(), ConfigError> {
        match setting.parse_value(text) {
            Ok(value) => self.set_value(setting.key, value, origin),
            Err(reason) => Err(ConfigError::BadValue { origin, reason, key: setting.key }),
        }
    }

    /// Replaces a value, and finds out at once whether it can be one.
    fn set_value(&mut self, key: &'static str, value: Value, origin: Origin) -> Result<(), ConfigError> {
        let setting = settings::find_setting(key).expect("callers name settings of the table");
        load_section_table(&mut self.values, setting).insert(setting.name().to_owned(), value);
        if let Err(reason) = self.deserialize_sections() {
            return Err(ConfigError::BadValue { origin, reason, key });
        }
        self.origins.insert(key.to_owned(), origin);
        Ok(())
    }

    /// What can only be judged together with other settings.
    fn check_sections(&self, sections: &Sections) -> Result<(), ConfigError> {
        let origin = |key: &str| self.origins.get(key).cloned().unwrap_or(Origin::Default);
        if sections.audit.file.as_ref().is_some_and(|file| file.is_relative()) {
            let (origin, reason) = (origin("audit.file"), "must be an absolute path".to_owned());
            return Err(ConfigError::BadValue { origin, reason, key: "audit.file" });
        }
        match OidcSettings::from_section(&sections.auth.oidc) {
            Ok(_) => Ok(()),
            Err(reason) => Err(ConfigError::BadValue { origin: origin("auth.oidc.issuer"), reason, key: "auth.oidc" }),
        }
    }

    fn deserialize_sections(&self) -> Result<Sections, String> {
        let sections = self.values.clone().try_into();
        sections.map_err(|error: toml::de::Error| error.message().trim().to_owned())
    }
}

fn load_section_table<'a>(values: &'a mut Table, setting: &Setting) -> &'a mut Table {
    setting.section().split('.').fold(values, |values, name| {
        let section = values.entry(name).or_insert_with(|| Value::Table(Table::new()));
        section.as_table_mut().expect("sections are tables: nothing else is ever put there")
    })
}

/// Where the settings file is, or would be.
pub fn settings_file(flags: &Flags, environment: &Environment) -> Result<PathBuf, ConfigError> {
    if let Some(named) = load_chosen_settings_file(flags, environment) {
        return Ok(named);
    }
    let base = load_folder_below_home(environment, "XDG_CONFIG_HOME", ".config")?;
    Ok(base.join("gander").join("gander.toml"))
}

fn load_chosen_settings_file(flags: &Flags, environment: &Environment) -> Option<PathBuf> {
    flags.config.clone().or_else(|| environment.get("GANDER_CONFIG").map(PathBuf::from))
}

fn load_data_directory(flags: &Flags, environment: &Environment) -> Result<(PathBuf, Origin), ConfigError> {
    if let Some(data) = &flags.data {
        return Ok((data.clone(), Origin::Flag("--data")));
    }
    if let Some(data) = environment.get("GANDER_DATA") {
        return Ok((PathBuf::from(data), Origin::Variable("GANDER_DATA".to_owned())));
    }
    let base = load_folder_below_home(environment, "XDG_DATA_HOME", ".local/share")?;
    Ok((base.join("gander"), Origin::Default))
}

/// Where a program of this name keeps its data, unless it is told otherwise.
pub fn named_data_directory(environment: &Environment, name: &str) -> Result<PathBuf, ConfigError> {
    Ok(load_folder_below_home(environment, "XDG_DATA_HOME", ".local/share")?.join(name))
}

/// A person's own notes and skills; none if nothing says where home is.
fn load_user_dirs(environment: &Environment) -> UserDirs {
    let config = load_folder_below_home(environment, "XDG_CONFIG_HOME", ".config").ok();
    let folder = |name: &str| config.iter().map(|config| config.join(name)).collect::<Vec<_>>();
    let agents = environment.get("HOME").map(|home| Path::new(home).join(".agents/skills"));
    UserDirs {
        notes: [folder("goose"), folder("gander")].concat(),
        skills: folder("gander/skills").into_iter().chain(agents).collect(),
        recipes: [folder("gander/recipes"), folder("goose/recipes")].concat(),
    }
}

fn load_folder_below_home(environment: &Environment, variable: &str, under_home: &str) -> Result<PathBuf, ConfigError> {
    let named = environment.get(variable).map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || environment.get("HOME").map(|home| Path::new(home).join(under_home));
    Ok(named.or_else(home).ok_or(PathsError::NoHome)?)
}

/// Variables that look like ours but mean nothing.
fn unknown_config_variables(environment: &Environment) -> Vec<String> {
    let mut known: Vec<String> = SETTINGS.iter().map(Setting::variable).collect();
    known.extend(["GANDER_DATA", "GANDER_CONFIG"].map(str::to_owned));
    let strange =
        environment.names().filter(|name| name.starts_with("GANDER_") && !known.iter().any(|known| known == name));
    let warning = |name: &str| match settings::nearest_setting_name(name, known.iter().map(String::as_str)) {
        Some(near) => format!("environment variable means nothing (did you mean {near}?): {name}"),
        None => format!("environment variable means nothing: {name}"),
    };
    strange.map(warning).collect()
}
