//! Which program an agent is, and how it is started.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use tokio::process::Command;

use crate::{ProgramSearch, Version};

/// What to start, and how.
#[derive(Clone, Debug)]
pub struct AgentLaunch {
    pub(crate) search: ProgramSearch,
    pub(crate) minimum: Option<Version>,
    arguments: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    clear_environment: bool,
    folder: Option<PathBuf>,
}

impl AgentLaunch {
    /// The program that this search finds, each time anew.
    pub fn from_search(search: impl Into<ProgramSearch>) -> Self {
        let (arguments, environment) = (Vec::new(), Vec::new());
        Self { search: search.into(), minimum: None, arguments, environment, clear_environment: false, folder: None }
    }

    /// Only if `--version` says at least this.
    #[must_use]
    pub fn with_minimum_version(mut self, minimum: Version) -> Self {
        self.minimum = Some(minimum);
        self
    }

    /// One more argument.
    #[must_use]
    pub fn with_argument(mut self, argument: impl Into<OsString>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// One more variable of its environment, which is else that of this process.
    #[must_use]
    pub fn with_variable(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// Its environment is what is given here, and nothing of that of this process.
    #[must_use]
    pub fn with_clear_environment(mut self) -> Self {
        self.clear_environment = true;
        self
    }

    /// The folder that it starts in.
    #[must_use]
    pub fn with_folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folder = Some(folder.into());
        self
    }

    pub(crate) fn process_command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        if self.clear_environment {
            command.env_clear();
        }
        command.args(&self.arguments).envs(self.environment.iter().map(|(name, value)| (name, value)));
        if let Some(folder) = &self.folder {
            command.current_dir(folder);
        }
        command
    }
}
