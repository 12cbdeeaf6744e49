//! The page's folder `web/`: whether it is there, can be built, and has to be.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::SystemTime;

/// What was found out about the page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Web {
    /// There is a `web/package.json`.
    pub(crate) exists: bool,
    /// Node and npm can be started.
    pub(crate) node: bool,
    /// Its packages are installed as the lock file says.
    pub(crate) is_installed: bool,
    /// What was built is newer than every source.
    pub(crate) is_fresh: bool,
}

impl Web {
    pub(crate) fn found(root: &Path) -> Self {
        let web = root.join("web");
        if !web.join("package.json").is_file() {
            return Self::default();
        }
        // npm writes this file at the end of an installation.
        let installed = modified(&web.join("node_modules/.package-lock.json"));
        let built = modified(&web.join("dist/index.html"));
        Self {
            exists: true,
            node: ["node", "npm"].into_iter().all(starts),
            is_installed: installed.is_some() && installed >= modified(&web.join("package-lock.json")),
            is_fresh: built.is_some() && built >= newest(&web),
        }
    }
}

fn starts(program: &str) -> bool {
    let mut command = Command::new(program);
    command.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

fn modified(path: &Path) -> Option<SystemTime> {
    path.metadata().and_then(|metadata| metadata.modified()).ok()
}

/// When the last source was changed, leaving out what npm and the build write.
fn newest(folder: &Path) -> Option<SystemTime> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let sources = entries.filter(|path| !["node_modules", "dist"].iter().any(|name| path.ends_with(name)));
    sources.filter_map(|path| if path.is_dir() { newest(&path) } else { modified(&path) }).max()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    use std::time::Duration;

    fn write(root: &Path, name: &str, seconds: u64) {
        let path = root.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let file = std::fs::File::create(path).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)).unwrap();
    }

    #[test]
    fn no_folder_is_no_page() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(Web::found(root.path()), Web::default());
    }

    #[test]
    fn a_page_is_fresh_until_a_source_changes() {
        let root = tempfile::tempdir().unwrap();
        write(root.path(), "web/package.json", 10);
        write(root.path(), "web/package-lock.json", 10);
        let new = Web::found(root.path());
        assert_eq!((new.exists, new.is_installed, new.is_fresh), (true, false, false));
        write(root.path(), "web/src/deep/app.ts", 20);
        write(root.path(), "web/node_modules/.package-lock.json", 30);
        write(root.path(), "web/dist/index.html", 40);
        write(root.path(), "web/node_modules/other/index.js", 50);
        let built = Web::found(root.path());
        assert_eq!((built.is_installed, built.is_fresh), (true, true));
        write(root.path(), "web/src/deep/app.ts", 60);
        write(root.path(), "web/package-lock.json", 60);
        let changed = Web::found(root.path());
        assert_eq!((changed.is_installed, changed.is_fresh), (false, false));
    }

    #[test]
    fn a_program_that_is_not_there_does_not_start() {
        assert!(!starts("gander-no-such-program"));
    }
}
