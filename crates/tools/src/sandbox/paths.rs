//! What fenced commands find of a machine, by a list that is data.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::limits::SandboxLimits;

/// The list.
const FOLDERS: &str = include_str!("folders.toml");

/// What all fences of a server have in common.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SandboxPaths {
    /// Nothing of these is seen.
    pub hidden: Vec<PathBuf>,
    /// Nor of these, where a folder above them is lent.
    pub secret: Vec<PathBuf>,
    /// Seen although they lie in something hidden.
    pub readable: Vec<PathBuf>,
    /// Lent for writing besides the workspace.
    pub writable: Vec<PathBuf>,
    /// Read-only although they lie in something lent.
    pub guarded: Vec<PathBuf>,
    /// The owner's home.
    pub home: Option<PathBuf>,
    /// Where private folders for temporary files are made; they stay as long as the server wants.
    pub scratch: PathBuf,
    /// How much a command may have.
    pub caps: SandboxLimits,
}

#[derive(Deserialize)]
struct Lists {
    hidden: Vec<String>,
    readable: Vec<String>,
    secret: Vec<String>,
    guarded: Vec<String>,
}

impl SandboxPaths {
    /// The built-in list for this home. What belongs to the server itself is hidden too.
    pub fn for_home(home: Option<&Path>, scratch: PathBuf, own: &[PathBuf]) -> Self {
        let lists: Lists = toml::from_str(FOLDERS).expect("the list is part of the program: a test reads it");
        let home = home.and_then(|home| home.canonicalize().ok()).filter(|home| home.parent().is_some());
        let paths =
            |names: &[String]| names.iter().filter_map(|name| existing_sandbox_path(name, home.as_deref())).collect();
        let own: Vec<PathBuf> = own.iter().map(|path| path.canonicalize().unwrap_or_else(|_| path.clone())).collect();
        let with_own = |mut paths: Vec<PathBuf>| {
            paths.extend(own.iter().cloned());
            paths
        };
        Self {
            hidden: with_own(paths(&lists.hidden)),
            secret: with_own(paths(&lists.secret)),
            readable: paths(&lists.readable),
            writable: Vec::new(),
            guarded: paths(&lists.guarded),
            home,
            scratch,
            caps: SandboxLimits::default(),
        }
    }
}

/// A path of the list as it is really called here; links in the system's folders are followed once and for all.
fn existing_sandbox_path(name: &str, home: Option<&Path>) -> Option<PathBuf> {
    let path = match name.strip_prefix('~') {
        Some(rest) => home?.join(rest.trim_start_matches('/')),
        None => PathBuf::from(name),
    };
    path.canonicalize().ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_list_is_read_for_a_home_that_is_there() {
        let home = tempfile::tempdir().unwrap();
        let real = home.path().canonicalize().unwrap();
        std::fs::create_dir_all(real.join(".cargo/bin")).unwrap();
        std::fs::create_dir(real.join(".ssh")).unwrap();
        let bounds = SandboxPaths::for_home(Some(home.path()), "/scratch".into(), &["/data".into()]);
        assert!(bounds.hidden.contains(&real) && bounds.hidden.contains(&"/data".into()));
        assert_eq!(bounds.readable, [real.join(".cargo/bin")]);
        assert_eq!(bounds.secret, [real.join(".ssh"), "/data".into()]);
        assert_eq!(bounds.home, Some(real));
    }
}
