//! Doors: how clients reach sessions. Each keeps a connection and nothing of the sessions behind it.

pub mod a2a;
pub mod acp;
pub mod acp_rest;
pub mod adk;
mod clients;
pub mod extensions;
pub mod goose;
pub mod websocket;
mod workspace;

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use gander_agent::model::ToolSpec;
use gander_agent::modes::Shelf;
use gander_domain::Settings;
use gander_wire::acp::Catalog;
use serde_json::Value;

pub use clients::{Clients, Presence};
pub use workspace::{BadWorkspace, Workspaces};

use crate::apps::Apps;
use crate::artifacts::Artifacts;
use crate::backend::agents::Agents;
use crate::extensions::Extensions;
use crate::grants::Grants;
use crate::hub::Hub;
use crate::models::Models;
use crate::recipes::Recipes;
use crate::schedules::Schedules;
use crate::state::Shared;
use crate::trust::Trust;

/// What sessions in a folder can be set to.
pub type CatalogOf = Arc<dyn Fn(&str) -> Arc<Catalog> + Send + Sync>;

/// What every door works with.
pub struct Desk {
    /// The sessions.
    pub hub: Hub,
    /// Who is attached where.
    pub clients: Arc<Clients>,
    /// Which folders sessions work in.
    pub workspaces: Workspaces,
    /// A longer line or message is refused.
    pub longest_line: usize,
    /// How ACP clients are spoken to.
    pub manner: acp::Manner,
    /// What was put away under a name.
    pub artifacts: Artifacts,
    /// Values that outlive a session.
    pub shared: Shared,
    /// What was allowed for good.
    pub grants: Grants,
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
    pub settings: Settings,
    /// The built-in agents and their modes.
    pub shelf: Arc<Shelf>,
    /// The built-in agents' tools.
    pub tools: Arc<[ToolSpec]>,
    /// Who answers.
    pub models: Arc<Models>,
    /// How long a reply that nobody reads goes on.
    pub reply_grace: Duration,
    /// What sessions in a folder can be set to.
    pub catalog: CatalogOf,
    /// Facts about the server, for those who may ask.
    pub status: Arc<dyn Fn() -> Value + Send + Sync>,
    /// What the owner tells the server itself.
    pub control: Arc<dyn Fn(Control) -> BoxFuture<'static, Result<Value, String>> + Send + Sync>,
}

/// What the owner tells the server itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Control {
    /// Listen on the network, here or where the configuration says.
    Listen(Option<String>),
    /// Listen on the network no longer.
    Unlisten,
    /// Come to an end.
    Drain,
}
