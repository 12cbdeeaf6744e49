//! Sessions: created, found, authorised, forked, imported, exported and deleted here and nowhere else.
//!
//! Every method takes the caller and shows it its own sessions alone: another's is as unknown as none, whatever is
//! asked of it. What somebody may read of a session that was found here comes from the hub and the store.

mod child;
mod create;
mod delete;
mod document;
mod error;
mod find;
mod fork;
mod history;
mod ids;
mod import;
mod start_over;

use std::fmt;
use std::sync::Arc;

use gander_domain::Settings;
use gander_runtime::hub::Hub;

pub use child::{ChildSession, is_subagent_session, start_child_session};
pub use create::{FirstPrompt, NewSession, SessionFolder};
pub use delete::{PruneMode, PrunedSession};
pub use document::{AdoptedLog, ImportTarget, ImportedDocument, adopt_session_document};
pub use error::SessionError;
pub use find::SessionFilter;
pub use fork::Fork;
pub use history::{HistoryEnd, HistoryPage};
pub use ids::SessionIds;
pub use import::ImportedSession;

use crate::audit::Audit;
use crate::workspaces::Workspaces;

/// The sessions of this server, as callers see them.
#[derive(Clone)]
pub struct Sessions {
    hub: Hub,
    workspaces: Workspaces,
    /// What new sessions are set to: nobody gets a looser policy from an old session or a file.
    defaults: Arc<dyn Fn() -> Settings + Send + Sync>,
    /// Keeps what is to be known of sessions that are gone.
    audit: Audit,
    ids: SessionIds,
}

impl Sessions {
    /// Sessions of this hub. Without further ado they work in these folders and are set to what this gives.
    pub fn new(
        hub: Hub,
        workspaces: Workspaces,
        defaults: Arc<dyn Fn() -> Settings + Send + Sync>,
        audit: Audit,
    ) -> Self {
        Self { hub, workspaces, defaults, audit, ids: SessionIds::Random }
    }
}

impl fmt::Debug for Sessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sessions").finish_non_exhaustive()
    }
}
