//! What every protocol asks for, once each: sessions and their folders, artifacts, memory, grants, trust, extensions,
//! recipes, schedules, apps, agents and models.
//!
//! Services know callers and their scopes; they know no protocol. [`Services`] is the one handle to all of them.

pub mod agents;
pub mod apply_recipe;
pub mod apps;
pub mod artifacts;
pub mod audit;
pub mod browser_access;
pub mod clients;
mod control;
mod credential_hashes;
pub mod direct_calls;
pub mod errors;
pub mod evaluations;
pub mod extension_changes;
pub mod extensions;
pub mod grants;
pub mod memory;
pub mod models;
pub mod oidc;
pub mod other_nodes;
pub mod paths;
pub mod permission_changes;
pub mod prompts;
pub mod recipe_from_session;
pub mod recipes;
pub mod request_hash;
pub mod schedule_methods;
pub mod scheduler;
pub mod schedules;
pub mod server_vault;
mod services;
pub mod session_watch;
pub mod sessions;
pub mod shared_credentials;
pub mod slash_commands;
pub mod state;
pub mod telemetry;
mod times;
pub mod token;
#[cfg(test)]
mod token_timing;
mod tool_arguments;
pub mod trust;
pub mod units;
pub mod user_store;
pub mod vault;
pub mod workspaces;

pub use control::{Control, ListenSecurity, TicketReach};
pub use services::{CatalogOf, NodeFacts, Services};

/// The version of this build.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
