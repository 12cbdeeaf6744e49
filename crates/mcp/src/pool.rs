//! Servers that sessions share: one child for all sessions of one person in the same folders, where its entry says so.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use sha2::{Digest as _, Sha256};

use super::server::{McpServer, ServerTimeouts};
use super::server_env::ServerEnv;
use super::session_handle::SessionHandle;
use super::spec::{Spec, Transport};

/// The servers that sessions share. Cheap to clone.
#[derive(Clone, Default)]
pub struct Pool(Arc<Mutex<HashMap<[u8; 32], Weak<McpServer>>>>);

/// Whose servers are shared with whom.
#[derive(Clone, Default)]
pub struct Sharing {
    /// Where they are found.
    pub pool: Pool,
    /// Whose sessions: nobody shares with anybody else.
    pub owner: String,
    /// How long one stays after the last session left it.
    pub linger: Duration,
}

/// A session's hold on a server.
pub(super) struct PoolLease {
    pub server: Arc<McpServer>,
    session: SessionHandle,
    /// How long it stays after the last session; none: it is this session's alone.
    linger: Option<Duration>,
}

impl PoolLease {
    /// A server for this session alone.
    pub(super) fn private_server(name: String, spec: Spec, env: &ServerEnv, times: ServerTimeouts) -> Self {
        let server = Arc::new(McpServer::new(name, spec, env.clone(), times));
        server.sessions.add_session(&env.session);
        Self { server, session: env.session.clone(), linger: None }
    }

    /// The one that others of the same owner use in these folders, or a new one that they may join.
    pub(super) fn shared_server(
        name: String,
        spec: Spec,
        env: &ServerEnv,
        times: ServerTimeouts,
        sharing: &Sharing,
    ) -> Self {
        let key = pool_key(&name, &spec, env, &sharing.owner);
        let mut servers = sharing.pool.0.lock().unwrap_or_else(PoisonError::into_inner);
        let server = servers.get(&key).and_then(Weak::upgrade).unwrap_or_else(|| {
            let server = Arc::new(McpServer::new(name, spec, env.clone(), times));
            servers.retain(|_, server| server.strong_count() > 0);
            servers.insert(key, Arc::downgrade(&server));
            server
        });
        server.sessions.add_session(&env.session);
        Self { server, session: env.session.clone(), linger: Some(sharing.linger) }
    }
}

impl Drop for PoolLease {
    /// Whoever comes soon after the last one finds it still there.
    fn drop(&mut self) {
        self.server.sessions.remove_session(&self.session);
        let runtime = tokio::runtime::Handle::try_current();
        if let (Some(linger), Ok(runtime)) = (self.linger, runtime) {
            let server = Arc::clone(&self.server);
            runtime.spawn(async move {
                tokio::time::sleep(linger).await;
                drop(server);
            });
        }
    }
}

/// Everything that two sessions must have in common to share a server. Secrets are in it: only a hash is kept.
fn pool_key(name: &str, spec: &Spec, server_env: &ServerEnv, owner: &str) -> [u8; 32] {
    let mut hash = Sha256::new();
    let mut add = |text: &[u8]| {
        hash.update((text.len() as u64).to_be_bytes());
        hash.update(text);
    };
    add(owner.as_bytes());
    add(name.as_bytes());
    add(spec.identity().as_bytes());
    add(format!("{:?} {:?} {:?}", spec.confinement, spec.patience, spec.client_id()).as_bytes());
    spec.secret_values().iter().for_each(|secret| add(secret.as_bytes()));
    let env: &[(String, String)] = match &spec.transport {
        Transport::Stdio { env, .. } => env,
        Transport::Http { headers, .. } => headers,
    };
    env.iter().for_each(|(name, _)| add(name.as_bytes()));
    // Where it runs, and what it is told of: also an address hears of the folders.
    std::iter::once(&server_env.cwd)
        .chain(&server_env.folders)
        .for_each(|folder| add(folder.as_os_str().as_encoded_bytes()));
    hash.finalize().into()
}
