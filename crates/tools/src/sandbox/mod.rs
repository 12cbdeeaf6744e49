//! The sandbox: commands and MCP servers see and reach no more than they are lent.
//!
//! A fenced command is started through a helper mode of this very program ([`enter`]), which puts Landlock and
//! seccomp around itself and then becomes the command; where bubblewrap works, it stands around the helper.

mod bubblewrap;
#[cfg_attr(not(target_os = "linux"), path = "unsupported.rs")]
mod helper;
#[cfg(target_os = "linux")]
mod landlock;
mod layers;
mod limits;
mod named_files;
pub mod network_failure;
mod paths;
mod plan;
mod policy;
#[cfg(target_os = "linux")]
mod root;
#[cfg(target_os = "linux")]
mod supervisor;
#[cfg(target_os = "linux")]
mod syscalls;

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, LazyLock, OnceLock};

pub use helper::{enter_sandbox_and_exec, probe_sandbox, supervise_command};
pub use layers::{ActiveLayers, Layers};
pub use limits::SandboxLimits;
pub use paths::SandboxPaths;
pub use plan::{Around, Root};
pub use policy::{Network, SandboxPolicy};

use named_files::NamedFiles;
use plan::Plan;

/// The helper's name on the command line.
pub const HELPER: &str = "policy";

/// What tells it to stand above a command instead.
const SUPERVISE: &str = "--supervise";

/// How commands are fenced on this machine. Cheap to clone; by default they are not.
#[derive(Clone, Default)]
pub struct Sandbox {
    inner: Option<Arc<Inner>>,
}

struct Inner {
    helper: PathBuf,
    bounds: LateBounds,
    bubblewrap: Bubblewrap,
    layers: OnceLock<Layers>,
}

/// Found when first needed: hundreds of places are looked at.
type LateBounds = LazyLock<SandboxPaths, Box<dyn FnOnce() -> SandboxPaths + Send>>;

/// Whether bubblewrap is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bubblewrap {
    /// Where it works.
    IfItWorks,
    /// Never.
    Never,
}

impl Sandbox {
    /// Fences put up by this program, which answers to [`HELPER`].
    pub fn new(
        helper: PathBuf,
        bounds: impl FnOnce() -> SandboxPaths + Send + 'static,
        bubblewrap: Bubblewrap,
    ) -> Self {
        let bounds: LateBounds = LazyLock::new(Box::new(bounds));
        Self { inner: Some(Arc::new(Inner { helper, bounds, bubblewrap, layers: OnceLock::new() })) }
    }

    /// Which layers are in force. The first to ask waits until they were tried.
    pub fn available_layers(&self) -> Layers {
        let Some(inner) = &self.inner else { return Layers::None("it is switched off".to_owned()) };
        let tried = inner.layers.get_or_init(|| match inner.bubblewrap {
            Bubblewrap::IfItWorks => Layers::probe_layers(&inner.helper, &inner.bounds),
            Bubblewrap::Never => Layers::probe_alone(&inner.helper, &inner.bounds),
        });
        tried.clone()
    }

    /// True if there is a policy around commands.
    pub fn is_in_force(&self) -> bool {
        matches!(self.available_layers(), Layers::Some(_))
    }

    /// A policy around these folders; none if no layer works.
    pub fn policy_for(&self, folders: &[PathBuf], network: Network) -> Option<SandboxPolicy> {
        let inner = self.inner.as_ref().filter(|_| self.is_in_force())?;
        Some(SandboxPolicy::for_folders(&inner.bounds, folders, network))
    }

    /// The folders that commands in these folders may write.
    pub fn lent_folders(&self, folders: &[PathBuf]) -> Vec<PathBuf> {
        let further = self.inner.iter().flat_map(|inner| inner.bounds.writable.iter());
        folders.iter().chain(further).cloned().collect()
    }

    /// The same for a program, which is also lent what its command line names.
    pub fn policy_for_program(
        &self,
        folders: &[PathBuf],
        network: Network,
        words: Vec<PathBuf>,
    ) -> Option<SandboxPolicy> {
        let inner = self.inner.as_ref()?;
        let named = NamedFiles::from_command_words(&inner.bounds, words);
        self.policy_for(folders, network)
            .map(|policy| policy.with_readable_paths(named.read).with_writable_paths(named.write))
    }

    /// A file for fenced commands to read, which none of them can write.
    pub fn file_for_commands(&self, name: &str, content: &str) -> io::Result<PathBuf> {
        let inner = self.inner.as_ref().ok_or_else(|| io::Error::other("there is no sandbox"))?;
        let folder = &inner.bounds.scratch;
        let path = folder.join(name);
        if std::fs::read_to_string(&path).is_ok_and(|found| found == content) {
            return Ok(path);
        }
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        // Others may read it at this moment: it appears as a whole.
        let mut new = sandbox_tempfile_in(folder, name)?;
        io::Write::write_all(&mut new.0, content.as_bytes())?;
        std::fs::rename(&new.1, &path)?;
        Ok(path)
    }

    /// What stands before a command to put this policy around it.
    pub fn wrap_command(&self, policy: &SandboxPolicy) -> io::Result<Wrap> {
        let none = || io::Error::other("there is no sandbox");
        let inner = self.inner.as_ref().ok_or_else(none)?;
        let Layers::Some(standing) = self.available_layers() else { return Err(none()) };
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&policy.temporary)?;
        let temporary = match standing.around {
            Around::Bubblewrap => PathBuf::from("/tmp"),
            Around::Nothing => policy.temporary.clone(),
        };
        let mut words: Vec<OsString> = vec![inner.helper.clone().into(), HELPER.into(), SUPERVISE.into(), "--".into()];
        words.extend(self::sandbox_wrapper_arguments(standing.around, &inner.helper, policy).ok_or_else(none)?);
        words.push("--".into());
        Ok(Wrap { words, temporary, home: policy.program_home.clone(), network: policy.network })
    }
}

/// What stands before a command to put a policy around it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrap {
    words: Vec<OsString>,
    /// Where the command finds room for what does not last.
    temporary: PathBuf,
    /// Where a program finds room for what does.
    home: Option<PathBuf>,
    network: Network,
}

impl Wrap {
    /// This program inside of the policy; arguments, folder and streams are to be added.
    pub fn wrapped_command(&self, program: &OsStr) -> Command {
        let mut command = Command::new(self.words.first().map_or(program, OsString::as_os_str));
        command.args(self.words.iter().skip(1)).arg(program);
        command
    }

    /// Where things are kept, as variables of the environment: caches last if the program has a home.
    pub fn environment(&self) -> Vec<(&'static str, OsString)> {
        let at = |name: &str| self.home.as_ref().unwrap_or(&self.temporary).join(name).into_os_string();
        let mut variables = vec![
            ("TMPDIR", self.temporary.clone().into_os_string()),
            ("XDG_CACHE_HOME", at(".cache")),
            ("npm_config_cache", at(".npm")),
        ];
        if self.home.is_some() {
            variables.extend([("XDG_DATA_HOME", at("data")), ("XDG_STATE_HOME", at("state"))]);
        }
        if self.network == Network::Closed {
            // npm tries for minutes what cannot work, and nobody learns what is missing.
            variables.push(("npm_config_fetch_retries", "0".into()));
        }
        variables
    }
}

/// A new file beside the one of this name.
fn sandbox_tempfile_in(folder: &Path, name: &str) -> io::Result<(std::fs::File, PathBuf)> {
    let path = folder.join(format!("{name}.{}", uuid::Uuid::now_v7()));
    Ok((std::fs::OpenOptions::new().write(true).create_new(true).open(&path)?, path))
}

/// The helper with its plan, and what stands around it.
fn sandbox_wrapper_arguments(around: Around, helper: &Path, policy: &SandboxPolicy) -> Option<Vec<OsString>> {
    let plan = serde_json::to_string(&Plan { policy: policy.clone(), around }).ok()?;
    let mut words = match around {
        Around::Bubblewrap => {
            let first = std::iter::once(bubblewrap::find_bubblewrap()?.into_os_string());
            first.chain(bubblewrap::bubblewrap_arguments(policy, helper)).collect()
        }
        Around::Nothing => Vec::new(),
    };
    words.extend([helper.into(), HELPER.into(), plan.into()]);
    Some(words)
}
