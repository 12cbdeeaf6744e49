//! The environment of the process: read once, here.

use std::collections::BTreeMap;
use std::fmt;

/// The environment of a process, as far as it is text.
#[derive(Clone, Default)]
pub struct Environment(BTreeMap<String, String>);

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
