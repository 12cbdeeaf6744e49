//! The MCP servers of sessions: those that clients bring along and those that the owner configured.

mod pins;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use gander_agent::mcp::{Circumstances, Condition, PromptSpec, Servers, Spec, Standing};
use gander_agent::sandbox::{Network, Sandbox};
use gander_agent::tools::{Environment, Limits, Redactor};
use gander_domain::{Part, SessionId, SessionView};
use serde_json::{Value, json};

pub use pins::PinStore;

/// How long a server may take from its start to its lists.
const START: Duration = Duration::from_secs(30);

/// A server that no run needs for so long sleeps: each may cost a hundred megabytes.
const IDLE: Duration = Duration::from_secs(600);

/// How long a server may take to say one of its prompts: whoever typed its name waits.
const EXPAND: Duration = Duration::from_secs(5);

/// Sessions whose servers are kept in mind. Of more, those that sleep are forgotten first.
const REMEMBERED: usize = 1_000;

/// The MCP servers of all sessions. They live in memory alone, with the secrets that came with them.
pub struct Extensions {
    configured: Vec<Spec>,
    ground: Ground,
    sessions: Mutex<HashMap<SessionId, Entry>>,
}

/// What all servers have in common.
pub struct Ground {
    /// What programs find around them.
    pub environment: Environment,
    /// Puts fences around programs.
    pub sandbox: Sandbox,
    /// Whether programs find the network without a word in their entry.
    pub network: Network,
    /// How much a result may hold.
    pub limits: Limits,
    /// Hides secrets in everything that is shown.
    pub redactor: Redactor,
    /// What tools were when they were first seen.
    pub pins: Arc<PinStore>,
}

struct Entry {
    servers: Arc<Servers>,
    brought: Vec<Spec>,
}

impl Extensions {
    /// With these for every session.
    pub fn new(configured: Vec<Spec>, ground: Ground) -> Self {
        Self { configured, ground, sessions: Mutex::default() }
    }

    /// A client opens a session and brings these along. They start in the background, and so do the owner's.
    pub fn bring(&self, view: &SessionView, specs: Vec<Spec>) {
        if specs.is_empty() && self.configured.is_empty() {
            return;
        }
        let mut sessions = self.lock();
        forget(&mut sessions);
        let entry = sessions.entry(view.session).or_insert_with(|| self.entry(view));
        if !specs.is_empty() {
            entry.brought.retain(|old| specs.iter().all(|new| new.name != old.name));
            entry.brought.extend(specs);
            entry.servers.set(joined(&self.configured, &entry.brought));
        }
        entry.servers.wake();
    }

    /// The servers of a session, for a run of it.
    pub fn of(&self, view: &SessionView) -> Arc<Servers> {
        let mut sessions = self.lock();
        match sessions.get(&view.session) {
            Some(entry) => Arc::clone(&entry.servers),
            None if self.configured.is_empty() => Arc::default(),
            None => {
                forget(&mut sessions);
                let entry = self.entry(view);
                let servers = Arc::clone(&entry.servers);
                sessions.insert(view.session, entry);
                servers
            }
        }
    }

    /// True if the owner configured one of this name.
    pub fn is_configured(&self, name: &str) -> bool {
        self.configured.iter().any(|spec| spec.name == name)
    }

    /// True if the session has any servers.
    pub fn has(&self, session: SessionId) -> bool {
        self.known(session).is_some()
    }

    /// The prompts of a session's servers, once these have settled.
    pub async fn prompts(&self, session: SessionId) -> Vec<PromptSpec> {
        let Some(servers) = self.known(session) else { return Vec::new() };
        servers.settled().await;
        servers.prompts()
    }

    /// What a person's prompt becomes: the name of a server's prompt becomes what that prompt says.
    pub async fn expanded(&self, session: SessionId, parts: Vec<Part>) -> Result<Vec<Part>, String> {
        let Some(servers) = self.known(session) else { return Ok(parts) };
        let expanded = tokio::time::timeout(EXPAND, servers.expanded(parts)).await;
        expanded.unwrap_or_else(|_| Err("the prompt's server does not answer in time".to_owned()))
    }

    /// A session is closed: its servers end.
    pub fn close(&self, session: SessionId) {
        let closed = self.lock().remove(&session);
        drop(closed);
    }

    /// How the servers of a session are; without one, which are configured.
    pub fn list(&self, session: Option<SessionId>) -> Value {
        let Some(session) = session else {
            return self.configured.iter().map(|spec| json!({"name": spec.name, "place": spec.place()})).collect();
        };
        self.known(session).map_or_else(|| json!([]), |servers| servers.standing().into_iter().map(shown).collect())
    }

    fn known(&self, session: SessionId) -> Option<Arc<Servers>> {
        self.lock().get(&session).map(|entry| Arc::clone(&entry.servers))
    }

    fn entry(&self, view: &SessionView) -> Entry {
        let circumstances = Circumstances {
            workspace: PathBuf::from(&view.workspace),
            folders: view.folders.iter().map(PathBuf::from).collect(),
            environment: self.ground.environment.clone(),
            sandbox: self.ground.sandbox.clone(),
            network: self.ground.network,
            limits: self.ground.limits,
            redactor: self.ground.redactor.clone(),
            pins: Arc::clone(&self.ground.pins) as _,
            start: START,
            idle: IDLE,
        };
        Entry { servers: Arc::new(Servers::new(self.configured.clone(), circumstances)), brought: Vec::new() }
    }

    /// A panic while the lock was held leaves nothing half done here.
    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, Entry>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a client brings under a configured name is used instead.
fn joined(configured: &[Spec], brought: &[Spec]) -> Vec<Spec> {
    let kept = configured.iter().filter(|spec| brought.iter().all(|other| other.name != spec.name));
    kept.chain(brought).cloned().collect()
}

fn forget(sessions: &mut HashMap<SessionId, Entry>) {
    if sessions.len() >= REMEMBERED {
        sessions.retain(|_, entry| !entry.servers.are_asleep());
    }
}

fn shown(standing: Standing) -> Value {
    let Standing { name, place, condition, tools, changed } = standing;
    let (state, reason) = match condition {
        Condition::Asleep => ("asleep", None),
        Condition::Starting => ("starting", None),
        Condition::Ready => ("ready", None),
        Condition::Failed(reason) => ("failed", Some(reason)),
    };
    json!({"name": name, "place": place, "state": state, "reason": reason, "tools": tools, "changed": changed})
}
