//! How servers start and end: once when they are added, for the sessions that use them, and no longer than these do.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use gander_domain::{Principal, SessionId, SessionView};
use gander_mcp::{Servers, ServersConfig, Sharing, Spec, TriedServer, spec_home_name};

use super::Extensions;

/// How long a server may take from its start to its lists.
const START_TIMEOUT: Duration = Duration::from_secs(30);

/// The same when it is added: its first start may fetch packages, and somebody watches.
const FIRST_START_TIMEOUT: Duration = Duration::from_secs(120);

/// A server that no run needs for so long sleeps: each may cost a hundred megabytes.
const IDLE_TIMEOUT: Duration = Duration::from_secs(600);

/// A server that sessions share stays so long after the last of them left it.
const SHARED_LINGER: Duration = Duration::from_secs(60);

/// Whether a program gets the network for good when it is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrialNetwork {
    /// As it is.
    Unchanged,
    /// A person said so.
    Granted,
}

impl Extensions {
    /// Starts a server once in this folder, says what came of it, and ends it again.
    pub async fn try_server(
        &self,
        owner: &Principal,
        spec: Spec,
        workspace: &Path,
        network: TrialNetwork,
    ) -> Option<TriedServer> {
        let config = self.servers_config(owner, workspace.to_owned(), Vec::new());
        let (name, spec) = (spec.name.clone(), Spec { shared: false, ..spec });
        let servers = Servers::new(vec![spec], ServersConfig { start: FIRST_START_TIMEOUT, ..config });
        if network == TrialNetwork::Granted {
            servers.grant_network(&name);
        }
        servers.try_all().await.into_iter().next()
    }

    /// Where the program of this principal's server keeps what must last.
    pub fn home_of(&self, owner: &Principal, server: &str) -> PathBuf {
        self.homes_of(owner).join(spec_home_name(server))
    }

    /// The same as [`Extensions::attach_session`], for a client that stays attached to the session.
    pub fn attach_client(&self, view: &SessionView, specs: Vec<Spec>) {
        self.attach_session(view, specs);
        if let Some(place) = self.lock_sessions().get_mut(&view.session) {
            place.has_client = true;
        }
    }

    /// Ends the servers of sessions that every client has left and no run uses, if that was so the last time too: a
    /// client that comes back at once finds them as they were. They start again when a run needs them.
    pub fn sleep_deserted(&self, deserted: &mut HashSet<SessionId>, is_attended: impl Fn(SessionId) -> bool) {
        let sessions = self.lock_sessions();
        let is_deserted = |place: &super::SessionExtensions| {
            place.has_client && Arc::strong_count(&place.servers) == 1 && !place.servers.are_asleep()
        };
        let now = sessions.iter().filter(|(session, place)| is_deserted(place) && !is_attended(**session));
        let now: HashSet<SessionId> = now.map(|(session, _)| *session).collect();
        let still = now.intersection(deserted).filter_map(|session| sessions.get(session));
        still.for_each(|place| place.servers.sleep_all());
        *deserted = now;
    }

    pub(super) fn servers_config(&self, owner: &Principal, workspace: PathBuf, folders: Vec<PathBuf>) -> ServersConfig {
        ServersConfig {
            workspace,
            folders,
            environment: self.config.environment.clone(),
            sandbox: self.config.sandbox.clone(),
            network: self.config.network,
            networks: self.config.networks.for_principal(owner),
            limits: self.config.limits,
            redactor: self.config.redactor.clone(),
            pins: self.config.pins.for_principal(owner),
            keyring: self.keyring_of(owner),
            sharing: Sharing { pool: self.pool.clone(), owner: owner.to_string(), linger: SHARED_LINGER },
            homes: Some(self.homes_of(owner)),
            start: START_TIMEOUT,
            idle: IDLE_TIMEOUT,
        }
    }

    fn homes_of(&self, owner: &Principal) -> PathBuf {
        self.config.homes.join(spec_home_name(owner.as_str()))
    }
}
