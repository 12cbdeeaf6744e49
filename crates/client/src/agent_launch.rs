//! Which program an agent is, and how it is started.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use tokio::process::Command;

use crate::{ProgramSearch, SearchError, Version};

/// What to start, and how.
#[derive(Clone, Debug)]
pub struct AgentLaunch {
    pub(crate) search: ProgramSearch,
    pub(crate) minimum: Option<Version>,
    arguments: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    clear_environment: bool,
    folder: Option<PathBuf>,
    wrapper: Vec<OsString>,
}

impl AgentLaunch {
    /// The program that this search finds, each time anew.
    pub fn from_search(search: impl Into<ProgramSearch>) -> Self {
        Self {
            search: search.into(),
            minimum: None,
            arguments: Vec::new(),
            environment: Vec::new(),
            clear_environment: false,
            folder: None,
            wrapper: Vec::new(),
        }
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

    /// Started by another program, such as one that puts a sandbox around it: these words stand before its own.
    #[must_use]
    pub fn with_wrapper(mut self, words: impl IntoIterator<Item = OsString>) -> Self {
        self.wrapper = words.into_iter().collect();
        self
    }

    /// The program, looked for now, and its arguments.
    pub fn find_command_words(&self) -> Result<Vec<PathBuf>, SearchError> {
        let program = self.search.find_program()?;
        Ok(std::iter::once(program).chain(self.arguments.iter().map(PathBuf::from)).collect())
    }

    pub(crate) fn process_command(&self, program: &Path) -> Command {
        let mut words = self.wrapper.iter().map(OsString::as_os_str).chain([program.as_os_str()]);
        let mut command = Command::new(words.next().unwrap_or(program.as_os_str()));
        command.args(words);
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
