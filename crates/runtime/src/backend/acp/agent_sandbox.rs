//! The sandbox around an agent's own process, for agents that are set to run in it.

use std::ffi::OsString;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::PathBuf;

use gander_client::AgentLaunch;
use gander_tools::sandbox::{Network, Sandbox, SandboxPolicy, Wrap};

/// What an agent's process is lent besides the session's folders. The network is open: its model is there.
#[derive(Clone)]
pub struct AgentSandbox {
    pub sandbox: Sandbox,
    /// Where it keeps what must last, such as caches. Made when it is needed.
    pub home: PathBuf,
    /// Files and folders of the settings that it may write, such as its own settings and login.
    pub writable: Vec<PathBuf>,
}

impl AgentSandbox {
    /// The same program with the sandbox around it, or why there is none. Looks at files, and may try the sandbox out.
    pub(super) fn wrap_launch(&self, launch: AgentLaunch, folders: &[PathBuf]) -> Result<AgentLaunch, String> {
        let words = launch.find_command_words().map_err(|error| error.to_string())?;
        let wrap = self.wrap_policy(self.sandbox.policy_for_program(folders, Network::Open, words.clone()))?;
        // The program itself is the last of the words, and added by whoever starts it.
        let program = words.first().map(|program| program.clone().into_os_string()).unwrap_or_default();
        let command = wrap.wrapped_command(&program);
        let mut before: Vec<OsString> =
            std::iter::once(command.get_program()).chain(command.get_args()).map(OsString::from).collect();
        before.pop();
        let launch =
            wrap.environment().into_iter().fold(launch, |launch, (name, value)| launch.with_variable(name, value));
        Ok(launch.with_wrapper(before))
    }

    /// The same around the commands that it has us run: what its own process may not do, they may not do for it.
    pub(super) fn wrap_commands(&self, folders: &[PathBuf]) -> Result<Wrap, String> {
        self.wrap_policy(self.sandbox.policy_for(folders, Network::Open))
    }

    fn wrap_policy(&self, policy: Option<SandboxPolicy>) -> Result<Wrap, String> {
        let none = || format!("it is set to run in a sandbox, and there is none: {}", self.sandbox.available_layers());
        let policy = policy.ok_or_else(none)?.with_writable_paths(self.writable.iter().cloned());
        let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.home);
        made.map_err(|error| format!("its home cannot be made: {error}: {}", self.home.display()))?;
        self.sandbox.wrap_command(&policy.keeping_in(self.home.clone())).map_err(|error| format!("no sandbox: {error}"))
    }
}
