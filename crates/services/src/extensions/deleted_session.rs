//! What is left of a deleted session's extensions: nothing.

use gander_domain::SessionId;

use super::{ExtensionScope, Extensions};

impl Extensions {
    /// Ends the servers of a session that was deleted, and forgets those that were added to it, with their secrets.
    pub async fn forget_session(&self, session: SessionId) {
        self.close_session(session);
        if let Err(error) = self.config.registry.forget_range(ExtensionScope::Session(session)).await {
            tracing::warn!(%error, %session, "extensions of a deleted session are left behind");
        }
    }
}
