//! What commands find in their environment: a short list of names, and settings that keep them quiet.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The environment of commands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Environment {
    kept: Vec<(String, String)>,
    /// What a line that only reads finds besides, before everything else.
    pinned: Vec<(String, String)>,
}

/// Names that are handed on. Everything else may hold a secret or change what a program does.
const KEPT: [&str; 36] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "TZ",
    "TMPDIR",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "CARGO_HOME",
    "CARGO_TARGET_DIR",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "GOPATH",
    "GOROOT",
    "GOCACHE",
    "GOMODCACHE",
    "JAVA_HOME",
    "GRADLE_USER_HOME",
    "NVM_DIR",
    "NVM_BIN",
    "PNPM_HOME",
    "VOLTA_HOME",
    "BUN_INSTALL",
    "DENO_DIR",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "PYENV_ROOT",
    "GEM_HOME",
    "GEM_PATH",
    "RBENV_ROOT",
    "NIX_PATH",
    "XDG_CACHE_HOME",
    "DEVELOPER_DIR",
];

/// No pager, no prompt, no colour: nobody sits at this terminal.
///
/// git does not run a file system monitor, nor take a folder for a bare repository by itself. Whatever else a repository
/// configures (filters, hooks, external comparisons, signatures) runs as it would for the person: a command that could
/// do so was asked about. What runs unasked gets [`Environment::for_reading`].
const FIXED: [(&str, &str); 15] = [
    ("TERM", "dumb"),
    ("PAGER", "cat"),
    ("GIT_PAGER", "cat"),
    ("MANPAGER", "cat"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_CONFIG_COUNT", "2"),
    ("GIT_CONFIG_KEY_0", "safe.bareRepository"),
    ("GIT_CONFIG_VALUE_0", "explicit"),
    ("GIT_CONFIG_KEY_1", "core.fsmonitor"),
    ("GIT_CONFIG_VALUE_1", "false"),
    ("NO_COLOR", "1"),
    ("DEBIAN_FRONTEND", "noninteractive"),
    ("PIP_NO_INPUT", "1"),
    ("GANDER", "1"),
];

/// Variables by which git asks nobody, fetches nothing and opens nothing.
const GIT_VARIABLES: [(&str, &str); 6] = [
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_ALLOW_PROTOCOL", "none"),
    ("GIT_SSH_COMMAND", "false"),
    ("GIT_ASKPASS", "false"),
    ("SSH_ASKPASS", "false"),
    ("GIT_EDITOR", "false"),
];

/// Settings that go before those of a repository, and name a program or a file there.
const GIT_SETTINGS: [(&str, &str); 25] = [
    ("safe.bareRepository", "explicit"),
    ("core.fsmonitor", "false"),
    ("core.hooksPath", "/dev/null"),
    ("core.pager", "cat"),
    ("core.editor", "false"),
    ("core.sshCommand", "false"),
    ("core.askPass", "false"),
    ("core.gitProxy", ""),
    ("core.alternateRefsCommand", "false"),
    ("core.untrackedCache", "false"),
    ("credential.helper", ""),
    ("protocol.allow", "never"),
    ("gpg.program", "false"),
    ("gpg.openpgp.program", "false"),
    ("gpg.x509.program", "false"),
    ("gpg.ssh.program", "false"),
    ("log.showSignature", "false"),
    ("diff.submodule", "short"),
    ("diff.ignoreSubmodules", "dirty"),
    ("diff.orderFile", "/dev/null"),
    ("status.submoduleSummary", "false"),
    ("submodule.recurse", "false"),
    ("blame.ignoreRevsFile", ""),
    ("mailmap.file", "/dev/null"),
    ("interactive.diffFilter", "cat"),
];

/// Where programs are looked for if nothing else is said.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

impl Environment {
    /// Picks the harmless names out of a whole environment.
    pub fn harmless_variables_of(whole: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        let texts =
            whole.into_iter().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
        let kept = texts.filter(|(name, _)| KEPT.contains(&name.as_str()) || name.starts_with("LC_")).collect();
        Self { kept, pinned: Vec::new() }
    }

    /// The same for a line that only reads: programs are not looked for inside of these folders, and git starts
    /// nothing that a repository names. What secret files hold is binary to git, by this file of attributes.
    pub fn for_reading(&self, folders: &[PathBuf], attributes: &Path) -> Self {
        let kept_path = self.kept.iter().rfind(|(name, _)| name == "PATH").map_or(PATH, |(_, value)| value);
        let outside = |entry: &&str| {
            let entry = Path::new(entry);
            let real = entry.canonicalize().unwrap_or_else(|_| entry.to_owned());
            entry.is_absolute() && !folders.iter().any(|folder| entry.starts_with(folder) || real.starts_with(folder))
        };
        let path = kept_path.split(':').filter(outside).collect::<Vec<_>>().join(":");
        let above = folders.iter().filter_map(|folder| folder.parent()).map(|path| path.to_string_lossy());
        let ceilings = above.collect::<Vec<_>>().join(":");
        let attributes = attributes.to_string_lossy();
        let settings = GIT_SETTINGS.into_iter().chain([("core.attributesFile", attributes.as_ref())]).enumerate();
        let settings = settings.flat_map(|(index, (key, value))| {
            [
                (format!("GIT_CONFIG_KEY_{index}"), key.to_owned()),
                (format!("GIT_CONFIG_VALUE_{index}"), value.to_owned()),
            ]
        });
        let count = GIT_SETTINGS.len() + 1;
        let others = GIT_VARIABLES.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let own = [("PATH", path), ("GIT_CEILING_DIRECTORIES", ceilings), ("GIT_CONFIG_COUNT", count.to_string())];
        let own = own.into_iter().map(|(name, value)| (name.to_owned(), value));
        Self { kept: self.kept.clone(), pinned: own.chain(others).chain(settings).collect() }
    }

    /// The settings that every command gets, wherever it runs.
    pub fn fixed_variables(&self) -> impl Iterator<Item = (&str, &str)> {
        FIXED.into_iter()
    }

    /// Everything a command on this machine finds.
    pub fn all_variables(&self) -> impl Iterator<Item = (&str, &str)> {
        let kept = self.kept.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let pinned = self.pinned.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        std::iter::once(("PATH", PATH)).chain(kept).chain(self.fixed_variables()).chain(pinned)
    }
}
