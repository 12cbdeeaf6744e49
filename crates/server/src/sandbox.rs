//! The sandbox of this server, as the settings want it.

use gander_agent::sandbox::{Bounds, Bubblewrap, Caps, Network, Sandbox};

use crate::config::{Config, SandboxSection};

/// Fences for commands and programs; none if they are switched off or this program cannot start itself.
pub fn of(config: &Config) -> Sandbox {
    let section = &config.sections.sandbox;
    let Some(helper) = config.helper.clone().filter(|_| section.enabled) else { return Sandbox::default() };
    let own = [config.paths.data().to_owned(), config.paths.sockets().to_owned(), config.file.clone()];
    let mut bounds = Bounds::of(config.home.as_deref(), config.paths.temporary(), &own);
    bounds.readable.extend(section.readable.iter().filter_map(|folder| folder.canonicalize().ok()));
    bounds.writable.extend(section.writable.iter().filter_map(|folder| folder.canonicalize().ok()));
    bounds.caps = caps(section);
    let bubblewrap = if section.bubblewrap { Bubblewrap::IfItWorks } else { Bubblewrap::Never };
    Sandbox::new(helper, bounds, bubblewrap)
}

/// How much a command may have; nothing set is no limit.
pub fn caps(section: &SandboxSection) -> Caps {
    let memory = Some(section.memory.0).filter(|memory| *memory > 0);
    Caps { memory, processes: Some(section.processes).filter(|processes| *processes > 0) }
}

/// Whether the network is there without asking.
pub fn network(open: bool) -> Network {
    if open { Network::Open } else { Network::Closed }
}
