//! Bubblewrap around a command: namespaces of its own, and a file system in which hidden things are not there.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::policy::{Network, SandboxPolicy};

/// Where it is looked for. Never through a search path: that is somebody else's to set.
const PLACES: [&str; 3] = ["/usr/bin/bwrap", "/bin/bwrap", "/usr/local/bin/bwrap"];

/// Bytes that each private folder in memory may hold.
const MEMORY: &str = "536870912";

/// Where it is, if it is there.
pub(super) fn find_bubblewrap() -> Option<PathBuf> {
    PLACES.iter().map(PathBuf::from).find(|path| path.exists())
}

/// What it is told for this policy, up to the command.
pub(super) fn bubblewrap_arguments(policy: &SandboxPolicy, helper: &Path) -> Vec<OsString> {
    let mut words = BubblewrapWords::default();
    for flag in ["--die-with-parent", "--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-uts"] {
        words.push_flag(flag);
    }
    words.push_flag("--unshare-cgroup-try").push_flag("--cap-drop").push_flag("ALL");
    if policy.network == Network::Closed {
        words.push_flag("--unshare-net");
    }
    words.bind_path("--ro-bind", Path::new("/"));
    words.push_flag("--dev").push_flag("/dev").push_flag("--proc").push_flag("/proc");
    for path in outermost_bubblewrap_paths(&policy.hidden) {
        words.hide_path(path);
    }
    for path in ["/tmp", "/var/tmp"].map(Path::new).into_iter().filter(|path| path.is_dir()) {
        words.push_flag("--bind").push_path(&policy.temporary).push_path(path);
    }
    let resolver = PathBuf::from("/etc/resolv.conf").canonicalize().ok();
    let resolver = resolver.filter(|_| policy.network == Network::Open);
    let helper = [helper.to_owned()];
    for path in policy
        .readable
        .iter()
        .chain(&helper)
        .chain(&resolver)
        .filter(|path| is_covered_in_bubblewrap(path, &policy.hidden))
    {
        words.bind_path("--ro-bind", path);
    }
    policy.writable.iter().filter(|path| path.exists()).for_each(|path| words.bind_path("--bind", path));
    policy.repositories.iter().filter(|path| path.exists()).for_each(|path| words.bind_path("--bind", path));
    let guarded = policy.guarded.iter().chain(&policy.delicate);
    guarded.filter(|path| path.exists()).for_each(|path| words.bind_path("--ro-bind", path));
    for path in policy.hidden_inside_allowed() {
        words.hide_path(path);
    }
    words.push_flag("--");
    words.0
}

#[derive(Default)]
struct BubblewrapWords(Vec<OsString>);

impl BubblewrapWords {
    fn push_flag(&mut self, word: &str) -> &mut Self {
        self.0.push(word.into());
        self
    }

    fn push_path(&mut self, path: &Path) -> &mut Self {
        self.0.push(path.into());
        self
    }

    fn bind_path(&mut self, how: &str, path: &Path) {
        self.push_flag(how).push_path(path).push_path(path);
    }

    /// An empty folder over a folder, an empty file over a file.
    fn hide_path(&mut self, path: &Path) {
        match path.symlink_metadata() {
            Ok(there) if there.is_dir() => {
                self.push_flag("--size").push_flag(MEMORY).push_flag("--tmpfs").push_path(path)
            }
            Ok(_) => self.push_flag("--ro-bind").push_flag("/dev/null").push_path(path),
            Err(_) => self,
        };
    }
}

/// Those that lie in none of the others.
fn outermost_bubblewrap_paths(paths: &[PathBuf]) -> impl Iterator<Item = &PathBuf> {
    paths.iter().filter(|path| !paths.iter().any(|other| other != *path && path.starts_with(other)))
}

fn is_covered_in_bubblewrap(path: &Path, hidden: &[PathBuf]) -> bool {
    path.exists() && hidden.iter().any(|hidden| path.starts_with(hidden))
}
