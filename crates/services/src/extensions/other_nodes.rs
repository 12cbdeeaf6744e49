//! What another node wrote about MCP servers.

use gander_store::StoreError;

use super::{Extensions, networks, pins, registry};
use crate::server_vault;

/// The logs whose folds are kept in memory.
pub(crate) const SCOPES: [&str; 4] = [networks::SCOPE, pins::SCOPE, registry::SCOPE, server_vault::SCOPE];

impl Extensions {
    /// Reads them again. Sessions follow what has changed.
    pub(crate) async fn refresh(&self) -> Result<(), StoreError> {
        self.config.pins.refresh().await?;
        self.config.networks.refresh().await?;
        self.config.registry.refresh().await?;
        self.refresh_sessions();
        Ok(())
    }
}
