//! Where the program of an agent is: as set, on the PATH, or where its platform puts it.

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

/// What to look for, and where. The environment is given, not read: nothing here depends on anything else.
#[derive(Clone, Debug, Default)]
pub struct ProgramSearch {
    name: String,
    setting: Option<PathBuf>,
    path: Option<OsString>,
    home: Option<PathBuf>,
}

/// Why there is no program.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SearchError {
    /// The one that was set cannot be run. No other is taken in its place.
    #[error("not a program that can be run: {0}")]
    Setting(PathBuf),
    /// It is nowhere.
    #[error("no program {name} on the PATH or in {}", list_searched_places(.places))]
    Nowhere {
        /// What was looked for.
        name: String,
        /// Where, besides the PATH.
        places: Vec<PathBuf>,
    },
}

impl ProgramSearch {
    /// A program of this name.
    pub fn by_name(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    /// This very program; `~/` is the home directory.
    #[must_use]
    pub fn with_setting(mut self, setting: Option<impl Into<PathBuf>>) -> Self {
        self.setting = setting.map(Into::into);
        self
    }

    /// What `PATH` holds.
    #[must_use]
    pub fn with_path(mut self, path: Option<OsString>) -> Self {
        self.path = path;
        self
    }

    /// The home directory.
    #[must_use]
    pub fn with_home(mut self, home: Option<impl Into<PathBuf>>) -> Self {
        self.home = home.map(Into::into);
        self
    }

    /// The first that can be run: the setting, the PATH, then the places of this platform.
    pub fn find_program(&self) -> Result<PathBuf, SearchError> {
        if let Some(setting) = &self.setting {
            let setting = self.expand_home(setting);
            return if is_searched_executable(&setting) { Ok(setting) } else { Err(SearchError::Setting(setting)) };
        }
        let folders = self.path.iter().flat_map(env::split_paths).filter(|folder| folder.is_absolute());
        let places = self.platform_places();
        let found = folders
            .map(|folder| folder.join(&self.name))
            .chain(places.iter().cloned())
            .find(|p| is_searched_executable(p));
        found.ok_or_else(|| SearchError::Nowhere { name: self.name.clone(), places })
    }

    fn platform_places(&self) -> Vec<PathBuf> {
        let name = &self.name;
        let home = self.home.iter().flat_map(|home| [home.join(".local/bin"), home.join(".cargo/bin")]);
        let system: Vec<PathBuf> = if cfg!(target_os = "macos") {
            let mut letters = name.chars();
            let app: String = letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect();
            let app = PathBuf::from(format!("/Applications/{app}.app/Contents/MacOS"));
            vec![app, "/usr/local/bin".into(), "/opt/homebrew/bin".into()]
        } else {
            vec!["/usr/local/bin".into(), "/usr/bin".into(), format!("/usr/share/{name}/bin").into()]
        };
        home.chain(system).map(|folder| folder.join(name)).collect()
    }

    fn expand_home(&self, path: &Path) -> PathBuf {
        match (path.strip_prefix("~"), &self.home) {
            (Ok(rest), Some(home)) => home.join(rest),
            (Ok(_), None) | (Err(_), _) => path.to_owned(),
        }
    }
}

impl From<PathBuf> for ProgramSearch {
    fn from(program: PathBuf) -> Self {
        let name = program.file_name().and_then(OsStr::to_str).unwrap_or_default().to_owned();
        Self { name, setting: Some(program), ..Self::default() }
    }
}

fn is_searched_executable(path: &Path) -> bool {
    path.is_file() && access(path, Access::EXEC_OK).is_ok()
}

fn list_searched_places(places: &[PathBuf]) -> String {
    places.iter().map(|place| place.display().to_string()).collect::<Vec<_>>().join(", ")
}
