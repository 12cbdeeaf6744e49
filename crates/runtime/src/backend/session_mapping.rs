//! Which session of an agent elsewhere stands behind one of ours: a name in the store, so that it survives a restart.

use gander_domain::{Context, MessageId, SessionView};
use gander_store::{Alias, Store, StoreError};

/// The session behind one of ours.
pub(super) struct SessionMapping<'a> {
    pub(super) store: &'a dyn Store,
    /// The kind of back-end; names of each kind are kept apart.
    pub(super) kind: &'static str,
    /// The agent whose sessions these are.
    pub(super) agent: &'a str,
    pub(super) view: &'a SessionView,
    pub(super) ids: RemoteIds,
}

/// How far the ids of an agent's sessions are unique.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RemoteIds {
    /// One server has all sessions: one id stands behind one session of ours.
    OfServer,
    /// Every process may count from 1: one id may stand behind several of ours.
    OfProcess,
}

impl SessionMapping<'_> {
    /// Its id, if there is one.
    pub(super) async fn find_remote_id(&self) -> Result<Option<String>, StoreError> {
        let prefix = self.id_prefix();
        // Before they had it, ids were kept as they came.
        let bare = |text: String| text.strip_prefix(&prefix).map(str::to_owned).unwrap_or(text);
        Ok(self.current_alias().await?.map(|alias| bare(alias.text)))
    }

    /// From now on it is this one. Some servers count their sessions by the day: after a loss they may give an id again.
    pub(super) async fn set_remote_id(&self, theirs: &str) -> Result<(), StoreError> {
        self.clear().await?;
        let alias = self.new_alias(self.kind.to_owned(), format!("{}{theirs}", self.id_prefix()));
        match self.store.set_alias(alias.clone(), self.view.session).await {
            Err(StoreError::AliasTaken(_)) => {
                self.store.remove_alias(&alias).await?;
                self.store.set_alias(alias, self.view.session).await
            }
            kept => kept,
        }
    }

    /// A name in the store is one session's alone: where an id may be that of several, ours stands before it.
    fn id_prefix(&self) -> String {
        match self.ids {
            RemoteIds::OfServer => String::new(),
            RemoteIds::OfProcess => format!("{}/", self.view.session),
        }
    }

    /// There is none any more.
    pub(super) async fn clear(&self) -> Result<(), StoreError> {
        match self.current_alias().await? {
            Some(alias) => self.store.remove_alias(&alias).await.map(drop),
            None => Ok(()),
        }
    }

    /// The message that the agent was prompted with last: what came after its turn was said by others.
    pub(super) async fn find_last_prompt(&self) -> Result<Option<MessageId>, StoreError> {
        Ok(self.find_alias(&self.prompt_kind()).await?.and_then(|alias| alias.text.parse().ok()))
    }

    /// The agent is about to be told the prompt of this context. Kept before the turn, so that the next one finds it.
    /// A failure makes the agent be told more than it needs, no less.
    pub(super) async fn note_last_prompt(&self, context: &Context) {
        let Some(prompt) = context.run_first_message else { return };
        let noted = async {
            let kind = self.prompt_kind();
            if let Some(before) = self.find_alias(&kind).await? {
                self.store.remove_alias(&before).await?;
            }
            self.store.set_alias(self.new_alias(kind, prompt.to_string()), self.view.session).await
        };
        if let Err(error) = noted.await {
            tracing::warn!(%error, "the last prompt of an agent is not remembered");
        }
    }

    fn prompt_kind(&self) -> String {
        format!("{}-prompt", self.kind)
    }

    fn new_alias(&self, door: String, text: String) -> Alias {
        Alias { principal: self.view.owner.clone(), door, namespace: self.agent.to_owned(), text }
    }

    async fn current_alias(&self) -> Result<Option<Alias>, StoreError> {
        self.find_alias(self.kind).await
    }

    async fn find_alias(&self, door: &str) -> Result<Option<Alias>, StoreError> {
        let aliases = self.store.aliases(self.view.session).await?;
        Ok(aliases.into_iter().find(|alias| alias.door == door && alias.namespace == self.agent))
    }
}
