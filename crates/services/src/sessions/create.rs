//! New sessions: what they are made of, and where they work.

use gander_domain::caller::Caller;
use gander_domain::{Command, SessionId, SessionInit, SessionView, Settings, TextMark};
use gander_runtime::backend::ClientResources;
use gander_runtime::hub::{Ack, StartedSession};
use gander_store::Alias;
use gander_store::clock::SystemIds;
use serde_json::Value;

use super::{SessionError, Sessions};
use crate::workspaces::BadWorkspace;

/// A session that is to be created for a caller, who owns it.
#[derive(Clone, Debug)]
pub struct NewSession {
    /// Its id.
    pub id: SessionId,
    /// The folder it works in; a private one if none is named.
    pub workspace: Option<SessionFolder>,
    /// Further folders.
    pub folders: Vec<SessionFolder>,
    /// What it is set to.
    pub settings: Settings,
    /// The session it comes from.
    pub parent: Option<SessionId>,
    /// What the protocol keeps for itself.
    pub meta: Option<Value>,
    /// What the client calls it.
    pub aliases: Vec<Alias>,
}

/// A folder that a session works in, by how it was come by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionFolder {
    /// The caller names it: it must be one that the caller may choose.
    Chosen(String),
    /// It was chosen some time ago: checked again, since roots may be fewer and links may have been turned.
    ChosenBefore(String),
    /// Another session of the caller's works in it. Whoever has the session has its folder too, however it was chosen.
    Inherited(String),
    /// The client names none: the one of the session's agent in `server.workspaces`, else a private one.
    OfAgent,
}

/// What a session begins with.
#[derive(Clone, Debug)]
pub struct FirstPrompt {
    /// A `Command::Prompt`.
    pub command: Command,
    /// When it is acknowledged.
    pub ack: Ack,
}

impl NewSession {
    /// A session under an id of its own, in a private folder.
    pub fn new(settings: Settings) -> Self {
        Self::with_id(SessionId::make(&mut SystemIds), settings)
    }

    /// A session under an id that was given out before.
    pub fn with_id(id: SessionId, settings: Settings) -> Self {
        let (folders, aliases) = (Vec::new(), Vec::new());
        Self { id, workspace: None, folders, settings, parent: None, meta: None, aliases }
    }
}

impl Sessions {
    /// Creates a session; it is stored when this returns.
    pub async fn create(&self, caller: &Caller, new: NewSession) -> Result<SessionView, SessionError> {
        let (init, aliases) = self.resolve_init(caller, new).await?;
        Ok(self.hub.create_session(caller, init, aliases).await?)
    }

    /// Creates a session with its first prompt: one append holds both.
    ///
    /// The error is about the session's folders. Whether session and prompt are accepted is told by the future in what
    /// is given back.
    pub async fn create_with_prompt(
        &self,
        caller: &Caller,
        new: NewSession,
        prompt: FirstPrompt,
    ) -> Result<StartedSession, SessionError> {
        let (init, aliases) = self.resolve_init(caller, new).await?;
        let FirstPrompt { command, ack } = prompt;
        Ok(self.hub.create_with_prompt(caller, init, aliases, command, ack, ClientResources::default()).await)
    }

    /// The folder that a caller names for a session, as sessions name it.
    pub async fn choose_folder(&self, caller: &Caller, folder: &str) -> Result<String, SessionError> {
        Ok(self.workspaces.choose_workspace(&self.hub, caller, folder).await?)
    }

    pub(super) async fn resolve_init(
        &self,
        caller: &Caller,
        new: NewSession,
    ) -> Result<(SessionInit, Vec<Alias>), BadWorkspace> {
        let NewSession { id: session, workspace, folders: named, settings, parent, meta, aliases } = new;
        let workspace = match workspace {
            Some(folder) => self.resolve_folder(caller, &settings.agent, folder).await?,
            None => None,
        };
        let workspace = match workspace {
            Some(folder) => folder,
            None => self.workspaces.create_scratch(session)?,
        };
        let mut folders = Vec::with_capacity(named.len());
        for folder in named {
            folders.extend(self.resolve_folder(caller, &settings.agent, folder).await?);
        }
        let (owner, inherited) = (caller.principal.clone(), TextMark::default());
        if let Err(error) = self.audit.note_principal(&owner).await {
            tracing::warn!(%error, principal = %owner, "the audit trail finds this principal by name only");
        }
        Ok((SessionInit { session, owner, workspace, folders, settings, parent, meta, inherited }, aliases))
    }

    async fn resolve_folder(
        &self,
        caller: &Caller,
        agent: &str,
        folder: SessionFolder,
    ) -> Result<Option<String>, BadWorkspace> {
        match folder {
            SessionFolder::Chosen(folder) => {
                self.workspaces.choose_workspace(&self.hub, caller, &folder).await.map(Some)
            }
            SessionFolder::ChosenBefore(folder) => {
                self.workspaces.check_allowed(&caller.principal, &folder)?;
                Ok(Some(folder))
            }
            SessionFolder::Inherited(folder) => Ok(Some(folder)),
            SessionFolder::OfAgent => self.workspaces.agent_workspace(&self.hub, caller, agent).await,
        }
    }
}
