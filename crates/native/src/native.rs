//! What the native agent is made of.

use std::sync::{Arc, OnceLock};

use gander_agent::AgentSettings;
use gander_agent::context_files::UserDirs;
use gander_agent::modes::AgentCatalog;
use gander_runtime::hub::WeakHub;
use gander_services::apps::Apps;
use gander_services::artifacts::Artifacts;
use gander_services::extensions::Extensions;
use gander_services::grants::Grants;
use gander_services::memory::Memories;
use gander_services::models::Models;
use gander_services::recipes::Recipes;
use gander_services::telemetry::Telemetry;
use gander_services::trust::Trust;
use gander_services::workspaces::Workspaces;
use gander_tools::permission::{LivePolicy, LiveRules};
use gander_tools::{FileAccess, Limits, ListedTool, Toolbox};

/// The native agent.
pub struct Native {
    /// The agents and their modes.
    pub agent_catalog: Arc<AgentCatalog>,
    pub models: Arc<Models>,
    /// What the settings say of runs, asked when one begins.
    pub run_settings: Arc<dyn Fn() -> RunSettings + Send + Sync>,
    /// How files are read for sessions.
    pub files: FileAccess,
    /// Which folders sessions work in.
    pub workspaces: Workspaces,
    /// What people allowed or refused for good.
    pub grants: Grants,
    /// Which projects' own settings count.
    pub trust: Trust,
    /// The MCP servers of sessions.
    pub extensions: Arc<Extensions>,
    /// Where the user keeps context files and skills of their own.
    pub user_dirs: UserDirs,
    /// Which sessions follow which recipe.
    pub recipes: Arc<Recipes>,
    pub apps: Apps,
    pub artifacts: Artifacts,
    pub memories: Memories,
    pub telemetry: Telemetry,
    /// Every tool of our own, whichever of them are on.
    pub own_tools: Arc<[ListedTool]>,
    /// Where sub-agents are started. Set once the hub is there, which itself is made with this back-end.
    pub hub: Arc<OnceLock<WeakHub>>,
}

/// What the settings say of a run. It holds for that run, but for the rules, which are read at each decision.
#[derive(Clone)]
pub struct RunSettings {
    /// Limits and pauses.
    pub agent: AgentSettings,
    /// Limits of its tools.
    pub limits: Limits,
    /// The built-in tools.
    pub toolbox: Arc<Toolbox>,
    /// What the owner decided beforehand.
    pub rules: LiveRules,
    /// What runs unasked in sessions that chose nothing.
    pub policy: LivePolicy,
}
