//! Deletes sessions, with what belongs to them alone: sub-agents' sessions and private folders.

use gander_domain::caller::Caller;
use gander_domain::{SessionId, Timestamp};
use gander_runtime::hub::HubError;
use gander_store::{SessionStatus, SessionSummary, StoreError};

use super::{SessionError, SessionFilter, Sessions, is_subagent_session};

/// Sessions that are looked at in one go.
const PAGE_SIZE: u32 = 1_000;

/// Whether sessions are deleted or only counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PruneMode {
    /// Says what would be deleted.
    DryRun,
    /// Deletes it.
    Delete,
}

/// A session that was pruned, or would be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrunedSession {
    /// As it was before.
    pub summary: SessionSummary,
    /// About how many bytes it took up: its log and its private folder, those of its sub-agents included.
    pub bytes: u64,
}

impl Sessions {
    /// Cancels what runs in a session, then removes it. Who lacks the scope does not learn this way what there is.
    pub async fn delete(&self, caller: &Caller, session: SessionId) -> Result<(), SessionError> {
        let summary = self.find(caller, session).await?;
        // Before, so that none is left if the server dies in between; afterwards, for those that it began meanwhile.
        self.delete_subagents(caller, session).await?;
        self.audit.keep_deleted(session, summary.owner.clone(), &caller.principal).await?;
        self.hub.delete_session(caller, session).await?;
        self.delete_subagents(caller, session).await?;
        self.remove_private_folders(&summary).await
    }

    /// Deletes the caller's sessions that were last used before a time. Those that run or wait for somebody stay, and so
    /// do those of sub-agents as long as the session that began them does.
    pub async fn prune(
        &self,
        caller: &Caller,
        before: Timestamp,
        mode: PruneMode,
    ) -> Result<Vec<PrunedSession>, SessionError> {
        caller.may_prompt().map_err(HubError::from)?;
        let mut pruned = Vec::new();
        for summary in self.list_unused(caller, before).await? {
            let bytes = self.size(&summary).await?;
            if mode == PruneMode::Delete {
                match self.delete_if_idle(caller, &summary).await {
                    Ok(true) => {}
                    Ok(false) => continue,
                    // Somebody else deleted it meanwhile.
                    Err(error) if error.is_unknown() => continue,
                    Err(error) => return Err(error),
                }
            }
            pruned.push(PrunedSession { summary, bytes });
        }
        Ok(pruned)
    }

    /// False if it was used since the list was made.
    async fn delete_if_idle(&self, caller: &Caller, summary: &SessionSummary) -> Result<bool, SessionError> {
        let now = self.find(caller, summary.session).await?;
        if now.state != SessionStatus::Idle || now.updated_at != summary.updated_at {
            return Ok(false);
        }
        self.delete(caller, summary.session).await?;
        Ok(true)
    }

    async fn list_unused(&self, caller: &Caller, before: Timestamp) -> Result<Vec<SessionSummary>, SessionError> {
        let mut unused = Vec::new();
        for archived in [false, true] {
            let mut after = None;
            loop {
                let state = Some(SessionStatus::Idle);
                let filter = SessionFilter { archived, state, after, limit: PAGE_SIZE, ..SessionFilter::default() };
                let page = self.list(caller, filter).await?;
                for summary in page.sessions.into_iter().filter(|summary| summary.updated_at < before) {
                    if !self.belongs_to_another(caller, &summary).await? {
                        unused.push(summary);
                    }
                }
                after = page.next;
                if after.is_none() {
                    break;
                }
            }
        }
        Ok(unused)
    }

    /// True for the session of a sub-agent whose parent is there: it goes with that one.
    async fn belongs_to_another(&self, caller: &Caller, summary: &SessionSummary) -> Result<bool, SessionError> {
        let Some(parent) = summary.parent.filter(|_| is_subagent_session(summary.session)) else { return Ok(false) };
        match self.find(caller, parent).await {
            Ok(_) => Ok(true),
            Err(error) if error.is_unknown() => Ok(false),
            Err(error) => Err(error),
        }
    }

    async fn size(&self, summary: &SessionSummary) -> Result<u64, SessionError> {
        let store = self.hub.store();
        let mut bytes = self.workspaces.scratch_size(summary.session).await;
        let mut sessions = vec![summary.session];
        while let Some(session) = sessions.pop() {
            bytes += store.session_size(session).await?;
            sessions.extend(store.children(session).await?.into_iter().filter(|child| is_subagent_session(*child)));
        }
        Ok(bytes)
    }

    async fn delete_subagents(&self, caller: &Caller, session: SessionId) -> Result<(), SessionError> {
        for child in self.hub.store().children(session).await? {
            if !is_subagent_session(child) {
                continue;
            }
            match Box::pin(self.delete(caller, child)).await {
                Ok(()) => {}
                Err(SessionError::Hub(HubError::Store(StoreError::NotFound(_) | StoreError::Deleted(_)))) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// The session's own private folder, and the one it worked in: a copy of a session works where that one did, and may
    /// outlive it.
    async fn remove_private_folders(&self, deleted: &SessionSummary) -> Result<(), SessionError> {
        let own = self.workspaces.scratch_of_session(deleted.session);
        let folders = [Some(own), self.workspaces.scratch_around(&deleted.workspace)];
        for folder in folders.into_iter().flatten() {
            if !self.has_sessions_in(deleted, &folder).await? {
                self.workspaces.remove_scratch(folder).await;
            }
        }
        Ok(())
    }

    async fn has_sessions_in(&self, deleted: &SessionSummary, folder: &str) -> Result<bool, SessionError> {
        for archived in [false, true] {
            let query = gander_store::SessionQuery {
                principal: deleted.owner.clone(),
                workspace: Some(folder.to_owned()),
                text: None,
                archived,
                non_empty: false,
                state: None,
                after: None,
                limit: 1,
            };
            if !self.hub.store().sessions(query).await?.sessions.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
