//! What `gander agents add` keeps: one file beside the settings file, in the same form as its `[agents]`.

use std::io;
use std::path::{Path, PathBuf};

use gander_services::paths::write_private_file;
use toml::{Table, Value};

use super::agents::{FileAgent, parse_agent};

/// The agents that were added, and which one serves whoever names none.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AgentsFile {
    /// The default agent.
    pub default: Option<String>,
    /// The agents, by name.
    pub agents: Table,
}

/// Why it cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum AgentsFileError {
    /// The file system says no.
    #[error("cannot read {path}: {error}", path = .path.display())]
    Io {
        /// Which file.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// It says something that nobody understands.
    #[error("{path}: {reason}", path = .path.display())]
    Invalid {
        /// Which file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
}

/// Where it is, for this settings file.
pub fn agents_file_path(settings_file: &Path) -> PathBuf {
    settings_file.with_file_name("agents.toml")
}

impl AgentsFile {
    /// Reads it. One that does not exist names nobody.
    pub fn read(path: &Path) -> Result<Self, AgentsFileError> {
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(AgentsFileError::Io { path: path.to_owned(), error }),
        };
        let invalid = |reason: String| AgentsFileError::Invalid { path: path.to_owned(), reason };
        let mut table: Table = text.parse().map_err(|error: toml::de::Error| invalid(error.message().to_owned()))?;
        let default = match table.remove("default") {
            Some(Value::String(name)) => Some(name),
            Some(other) => return Err(invalid(format!("the default is the name of an agent: {other}"))),
            None => None,
        };
        Ok(Self { default, agents: table })
    }

    /// Writes it whole, for its owner alone: an entry may hold a key.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let mut text = "# Written by `gander agents`. Entries of the settings file come first.\n".to_owned();
        if let Some(default) = &self.default {
            text += &format!("default = {}\n", Value::String(default.clone()));
        }
        for (name, entry) in &self.agents {
            let mut section = Table::new();
            section.insert(name.clone(), entry.clone());
            text += &format!("\n{section}");
        }
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        write_private_file(path, text.as_bytes())
    }

    /// Its agents, or what is wrong with one of them.
    pub(super) fn parse_agents(self, path: &Path) -> Result<Vec<FileAgent>, AgentsFileError> {
        let parsed = self.agents.into_iter().map(|(name, entry)| {
            parse_agent(&name, entry).map_err(|reason| AgentsFileError::Invalid {
                path: path.to_owned(),
                reason: format!("the agent {name}: {reason}"),
            })
        });
        parsed.collect()
    }
}
