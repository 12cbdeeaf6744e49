//! Which goose session stands behind one of ours: a name in the store, so that it survives a restart.

use gander_domain::SessionView;
use gander_store::{Alias, Store, StoreError};
use gander_wire::goose::client::GoosedError;

/// Under this door the names of goose sessions are kept.
const ALIAS_DOOR: &str = "goosed";

/// The goose session of one of ours.
pub(super) struct SessionMapping<'a> {
    pub(super) store: &'a dyn Store,
    /// The agent whose sessions these are.
    pub(super) agent: &'a str,
    pub(super) view: &'a SessionView,
}

impl SessionMapping<'_> {
    /// Its id, if there is one.
    pub(super) async fn find_remote_id(&self) -> Result<Option<String>, GoosedError> {
        Ok(self.current_alias().await?.map(|alias| alias.text))
    }

    /// From now on it is this one. Goose counts its sessions by the day: after a loss it may give an id again.
    pub(super) async fn set_remote_id(&self, theirs: &str) -> Result<(), GoosedError> {
        let alias = Alias {
            principal: self.view.owner.clone(),
            door: ALIAS_DOOR.to_owned(),
            namespace: self.agent.to_owned(),
            text: theirs.to_owned(),
        };
        match self.store.set_alias(alias.clone(), self.view.session).await {
            Err(StoreError::AliasTaken(_)) => {
                self.store.remove_alias(&alias).await.map_err(store_trouble)?;
                self.store.set_alias(alias, self.view.session).await.map_err(store_trouble)
            }
            kept => kept.map_err(store_trouble),
        }
    }

    /// There is none any more.
    pub(super) async fn clear(&self) -> Result<(), GoosedError> {
        match self.current_alias().await? {
            Some(alias) => self.store.remove_alias(&alias).await.map(drop).map_err(store_trouble),
            None => Ok(()),
        }
    }

    async fn current_alias(&self) -> Result<Option<Alias>, GoosedError> {
        let aliases = self.store.aliases(self.view.session).await.map_err(store_trouble)?;
        Ok(aliases.into_iter().find(|alias| alias.door == ALIAS_DOOR && alias.namespace == self.agent))
    }
}

fn store_trouble(error: StoreError) -> GoosedError {
    tracing::error!(%error, "the store failed");
    GoosedError::Internal("the proxy's own store failed".to_owned())
}
