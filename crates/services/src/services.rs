//! What every protocol works with, behind one handle.

use std::fmt;
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures::future::BoxFuture;
use gander_agent::modes::AgentCatalog;
use gander_domain::{LoadSession, ServiceError, SessionCatalog, SessionView, Settings};
use gander_runtime::hub::Hub;
use gander_tools::FileAccess;
use gander_tools::ListedTool;
use gander_tools::protected::ProtectedFiles;
use serde_json::Value;

use crate::agents::Agents;
use crate::apps::Apps;
use crate::artifacts::Artifacts;
use crate::audit::Audit;
use crate::clients::AttachedClients;
use crate::control::Control;
use crate::extensions::Extensions;
use crate::grants::Grants;
use crate::models::Models;
use crate::recipes::Recipes;
use crate::schedules::{Schedule, Schedules};
use crate::sessions::Sessions;
use crate::state::SharedState;
use crate::telemetry::Telemetry;
use crate::trust::Trust;
use crate::workspaces::Workspaces;

/// What sessions in a folder can be set to.
pub type CatalogOf = Arc<dyn Fn(&str) -> Arc<SessionCatalog> + Send + Sync>;

/// What a server knows of itself among others on one database.
#[derive(Debug, Default)]
pub struct NodeFacts {
    /// Nodes that serve clients, this one among them; zero while nobody counted.
    pub live_gateways: AtomicU32,
    /// Where other nodes reach this one, if they do.
    pub address: OnceLock<String>,
}

/// What every protocol works with.
pub struct Services {
    /// Everybody's sessions: created, found and authorised.
    pub sessions: Sessions,
    /// What runs them, and what was found is read and followed through.
    pub hub: Hub,
    /// This server among others.
    pub nodes: Arc<NodeFacts>,
    /// Who is attached where.
    pub clients: Arc<AttachedClients>,
    /// How files are read for sessions and clients.
    pub files: FileAccess,
    /// Which folders sessions work in.
    pub workspaces: Workspaces,
    /// A longer line or message is refused.
    pub max_line_bytes: usize,
    /// How long a question waits for a client before the client's stream speaks of it; `None`: for ever.
    pub reminder_delay: Option<Duration>,
    /// What agents did, and with whose consent.
    pub audit: Audit,
    /// Traces, if the settings name a collector.
    pub telemetry: Telemetry,
    /// What was put away under a name.
    pub artifacts: Artifacts,
    /// Values that outlive a session.
    pub shared_state: SharedState,
    /// What was allowed for good.
    pub grants: Grants,
    /// Files that make something run, watched while programs work in their folders.
    pub protected: ProtectedFiles,
    /// Whose own settings count.
    pub trust: Trust,
    /// The MCP servers of sessions.
    pub extensions: Arc<Extensions>,
    /// Everybody's apps.
    pub apps: Apps,
    /// Which sessions follow which recipe.
    pub recipes: Arc<Recipes>,
    /// What runs by the clock.
    pub schedules: Arc<Schedules>,
    /// May clients on the network name programs to start?
    pub remote_commands: bool,
    /// Who can serve a session.
    pub agents: Arc<Agents>,
    /// What new sessions are set to.
    pub default_settings: Arc<dyn Fn() -> Settings + Send + Sync>,
    /// The built-in agents and their modes.
    pub agent_catalog: Arc<AgentCatalog>,
    /// The built-in agents' tools.
    pub tools: Arc<[ListedTool]>,
    /// Who answers.
    pub models: Arc<Models>,
    /// How long a reply that nobody reads goes on.
    pub reply_grace: Duration,
    /// What sessions in a folder can be set to.
    pub catalog: CatalogOf,
    /// What the protocol that shows schedules keeps in the sessions that they begin.
    pub schedule_meta: fn(&Schedule) -> Value,
    /// Facts about the server, for those who may ask.
    pub status: Arc<dyn Fn() -> Value + Send + Sync>,
    /// What the owner tells the server itself.
    pub control: Arc<dyn Fn(Control) -> BoxFuture<'static, Result<Value, String>> + Send + Sync>,
}

impl Services {
    /// What new sessions are set to, as the settings are now.
    pub fn default_session_settings(&self) -> Settings {
        (self.default_settings)()
    }

    /// Whether the history of this agent's sessions can be read back. An agent that is not here any more had no say in it.
    pub fn load_session(&self, agent: &str) -> LoadSession {
        self.agents.manifest(agent).map_or(LoadSession::Supported, |manifest| manifest.load_session)
    }

    /// Refuses to load a session of an agent that has none loaded, as if there were no such method.
    pub fn require_load(&self, view: &SessionView) -> Result<(), ServiceError> {
        let agent = &view.settings.agent;
        match self.load_session(agent) {
            LoadSession::Supported => Ok(()),
            LoadSession::Unsupported => {
                Err(ServiceError::UnknownMethod(format!("the agent {agent} does not load sessions")))
            }
        }
    }
}

impl fmt::Debug for Services {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Services").finish_non_exhaustive()
    }
}
