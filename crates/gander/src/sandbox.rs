//! The sandbox of this server, as the settings want it.

use std::path::PathBuf;

use gander_tools::sandbox::{Bubblewrap, Network, Sandbox, SandboxLimits, SandboxPaths};

use crate::config::{Config, SandboxSection};

/// Fences for commands and programs; none if they are switched off or this program cannot start itself.
pub fn configured_sandbox(config: &Config) -> Sandbox {
    let section = &config.sections.sandbox;
    let Some(helper) = config.helper.clone().filter(|_| section.enabled) else { return Sandbox::default() };
    let (own, home, temporary) = (server_paths(config), config.home.clone(), config.paths.temporary_folder());
    let lent = section.clone();
    let bounds = move || {
        let mut bounds = SandboxPaths::for_home(home.as_deref(), temporary, &own);
        bounds.readable.extend(lent.readable.iter().filter_map(|folder| folder.canonicalize().ok()));
        bounds.writable.extend(lent.writable.iter().filter_map(|folder| folder.canonicalize().ok()));
        bounds.caps = sandbox_limits(&lent);
        bounds
    };
    let bubblewrap = if section.bubblewrap { Bubblewrap::IfItWorks } else { Bubblewrap::Never };
    Sandbox::new(helper, bounds, bubblewrap)
}

/// What is the server's alone.
fn server_paths(config: &Config) -> [PathBuf; 3] {
    [config.paths.data_directory().to_owned(), config.paths.socket_folder().to_owned(), config.file.clone()]
}

/// How much a command may have; nothing set is no limit.
pub fn sandbox_limits(section: &SandboxSection) -> SandboxLimits {
    let memory = Some(section.memory.0).filter(|memory| *memory > 0);
    SandboxLimits { memory, processes: Some(section.processes).filter(|processes| *processes > 0) }
}

/// Whether the network is there without asking.
pub fn sandbox_network_access(open: bool) -> Network {
    if open { Network::Open } else { Network::Closed }
}
