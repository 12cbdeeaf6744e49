//! Which goose session stands behind one of ours: a name in the store, so that it survives a restart.

use gander_domain::SessionView;
use gander_store::{Alias, Store, StoreError};
use gander_wire::goose::client::GoosedError;

/// Under this door the names of goose sessions are kept.
const DOOR: &str = "goosed";

/// The goose session of one of ours.
pub(super) struct Mapping<'a> {
    pub(super) store: &'a dyn Store,
    /// The agent whose sessions these are.
    pub(super) agent: &'a str,
    pub(super) view: &'a SessionView,
}

impl Mapping<'_> {
    /// Its id, if there is one.
    pub(super) async fn find(&self) -> Result<Option<String>, GoosedError> {
        Ok(self.alias().await?.map(|alias| alias.text))
    }

    /// From now on it is this one. Goose counts its sessions by the day: after a loss it may give an id again.
    pub(super) async fn keep(&self, theirs: &str) -> Result<(), GoosedError> {
        let alias = Alias {
            principal: self.view.owner.clone(),
            door: DOOR.to_owned(),
            namespace: self.agent.to_owned(),
            text: theirs.to_owned(),
        };
        match self.store.set_alias(alias.clone(), self.view.session).await {
            Err(StoreError::AliasTaken(_)) => {
                self.store.free_alias(&alias).await.map_err(failed)?;
                self.store.set_alias(alias, self.view.session).await.map_err(failed)
            }
            kept => kept.map_err(failed),
        }
    }

    /// There is none any more.
    pub(super) async fn clear(&self) -> Result<(), GoosedError> {
        match self.alias().await? {
            Some(alias) => self.store.free_alias(&alias).await.map(drop).map_err(failed),
            None => Ok(()),
        }
    }

    async fn alias(&self) -> Result<Option<Alias>, GoosedError> {
        let aliases = self.store.aliases(self.view.session).await.map_err(failed)?;
        Ok(aliases.into_iter().find(|alias| alias.door == DOOR && alias.namespace == self.agent))
    }
}

fn failed(error: StoreError) -> GoosedError {
    tracing::error!(%error, "the store failed");
    GoosedError::Internal("the proxy's own store failed".to_owned())
}
