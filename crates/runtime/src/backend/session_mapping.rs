//! Which session of an agent elsewhere stands behind one of ours: a name in the store, so that it survives a restart.

use gander_domain::SessionView;
use gander_store::{Alias, Store, StoreError};

/// The session behind one of ours.
pub(super) struct SessionMapping<'a> {
    pub(super) store: &'a dyn Store,
    /// The kind of back-end; names of each kind are kept apart.
    pub(super) kind: &'static str,
    /// The agent whose sessions these are.
    pub(super) agent: &'a str,
    pub(super) view: &'a SessionView,
}

impl SessionMapping<'_> {
    /// Its id, if there is one.
    pub(super) async fn find_remote_id(&self) -> Result<Option<String>, StoreError> {
        Ok(self.current_alias().await?.map(|alias| alias.text))
    }

    /// From now on it is this one. Some agents count their sessions by the day: after a loss they may give an id again.
    pub(super) async fn set_remote_id(&self, theirs: &str) -> Result<(), StoreError> {
        self.clear().await?;
        let alias = Alias {
            principal: self.view.owner.clone(),
            door: self.kind.to_owned(),
            namespace: self.agent.to_owned(),
            text: theirs.to_owned(),
        };
        match self.store.set_alias(alias.clone(), self.view.session).await {
            Err(StoreError::AliasTaken(_)) => {
                self.store.remove_alias(&alias).await?;
                self.store.set_alias(alias, self.view.session).await
            }
            kept => kept,
        }
    }

    /// There is none any more.
    pub(super) async fn clear(&self) -> Result<(), StoreError> {
        match self.current_alias().await? {
            Some(alias) => self.store.remove_alias(&alias).await.map(drop),
            None => Ok(()),
        }
    }

    async fn current_alias(&self) -> Result<Option<Alias>, StoreError> {
        let aliases = self.store.aliases(self.view.session).await?;
        Ok(aliases.into_iter().find(|alias| alias.door == self.kind && alias.namespace == self.agent))
    }
}
