//! What every server of a process is started with.

use std::path::PathBuf;
use std::sync::Arc;

use gander_tools::sandbox::{Network, Sandbox, network_failure};
use gander_tools::{Environment, Redactor};

use super::login::{self, Keyring};
use super::network_store::NetworkGrantStore;
use super::session_handle::SessionHandle;
use super::spec::{Confinement, Spec, Transport};

/// What surrounds a session's servers.
#[derive(Clone)]
pub(super) struct ServerEnv {
    /// The session's own place. A server that several use has theirs besides.
    pub session: SessionHandle,
    pub environment: Environment,
    pub cwd: PathBuf,
    pub folders: Vec<PathBuf>,
    pub sandbox: Sandbox,
    /// What programs find without a word in their entry.
    pub network: Network,
    /// Which of them a person gave it to.
    pub networks: Arc<dyn NetworkGrantStore>,
    pub roots: Arc<[String]>,
    pub redactor: Redactor,
    /// Tokens of the session's owner.
    pub keyring: Keyring,
    /// Holds the homes of programs; absent: nothing of theirs lasts.
    pub homes: Option<PathBuf>,
}

impl ServerEnv {
    /// Hides what this server was given, and what its login yielded by now.
    pub(super) fn redactor_for(&self, spec: &Spec) -> Redactor {
        self.redactor
            .with_more_secrets(spec.secret_values().into_iter().chain(login::stored_login_tokens(spec, &self.keyring)))
    }

    /// True unless the server is a program in a sandbox without the network.
    pub(super) fn reaches_out(&self, spec: &Spec) -> bool {
        let is_closed = connection_network_access(spec, self) == Some(Network::Closed) && self.sandbox.is_in_force();
        !(matches!(spec.transport, Transport::Stdio { .. }) && is_closed)
    }

    /// What may help, if this was said by a program for want of the network.
    pub(super) fn network_advice(&self, spec: &Spec, said: &str) -> Option<&'static str> {
        let stdio = matches!(spec.transport, Transport::Stdio { .. });
        let closed =
            stdio && connection_network_access(spec, self) == Some(Network::Closed) && self.sandbox.is_in_force();
        (closed && network_failure::is_network_failure(said)).then_some(
            "its program has no network in the sandbox: network = true in its entry, or sandbox.server_network, grants it",
        )
    }
}

/// Whether a server's program finds the network; none if it is not fenced at all.
pub(super) fn connection_network_access(spec: &Spec, server_env: &ServerEnv) -> Option<Network> {
    match spec.confinement {
        Confinement::Free => None,
        Confinement::Networked => Some(Network::Open),
        Confinement::Fenced if server_env.networks.is_granted(&spec.identity()) => Some(Network::Open),
        Confinement::Fenced => Some(server_env.network),
    }
}
