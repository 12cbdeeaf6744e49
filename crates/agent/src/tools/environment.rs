//! What commands find in their environment: a short list of names, and settings that keep them quiet.

use std::ffi::OsString;

/// The environment of commands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Environment {
    kept: Vec<(String, String)>,
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
/// And git runs nothing that a folder inside the workspace could have configured.
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

/// Where programs are looked for if nothing else is said.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

impl Environment {
    /// Picks the harmless names out of a whole environment.
    pub fn pick(whole: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        let texts =
            whole.into_iter().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
        Self { kept: texts.filter(|(name, _)| KEPT.contains(&name.as_str()) || name.starts_with("LC_")).collect() }
    }

    /// The settings that every command gets, wherever it runs.
    pub fn fixed(&self) -> impl Iterator<Item = (&str, &str)> {
        FIXED.into_iter()
    }

    /// Everything a command on this machine finds.
    pub fn all(&self) -> impl Iterator<Item = (&str, &str)> {
        let kept = self.kept.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        std::iter::once(("PATH", PATH)).chain(kept).chain(self.fixed())
    }
}
