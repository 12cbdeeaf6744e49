//! A caller's own sessions, by id, by alias, by run and in lists.

use gander_domain::caller::Caller;
use gander_domain::{QuestionId, RunId, SessionId, SessionView};
use gander_store::{
    Alias, PageKey, QuestionRow, RunPage, RunQuery, RunRow, SessionPage, SessionQuery, SessionStatus, SessionSummary,
    StoreError,
};

use super::{SessionError, Sessions};

/// Which of a caller's sessions to list, last changed first.
#[derive(Clone, Debug, Default)]
pub struct SessionFilter {
    /// Only of this folder.
    pub workspace: Option<String>,
    /// Only titles that hold each of these words, in any case.
    pub text: Option<String>,
    /// Archived ones, or the others.
    pub archived: bool,
    /// Only those in which something was said, or that have a title.
    pub non_empty: bool,
    /// Only in this state.
    pub state: Option<SessionStatus>,
    /// Go on after this page.
    pub after: Option<PageKey>,
    /// At most so many, up to 1,000.
    pub limit: u32,
}

impl Sessions {
    /// A session as it stands in lists. Its owner, and nobody else, is told that it was deleted.
    pub async fn find(&self, caller: &Caller, session: SessionId) -> Result<SessionSummary, SessionError> {
        match self.hub.store().session_summary(session).await {
            Ok(summary) if summary.owner == caller.principal => Ok(summary),
            Ok(_) => Err(StoreError::NotFound(session).into()),
            Err(deleted @ StoreError::Deleted(_)) => {
                let owner = self.hub.store().deleted_owner(session).await?;
                let was_theirs = owner.as_ref() == Some(&caller.principal);
                Err(if was_theirs { deleted } else { StoreError::NotFound(session) }.into())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// What a session is now, what waits for its commit included.
    pub async fn view(&self, caller: &Caller, session: SessionId) -> Result<SessionView, SessionError> {
        Ok(self.hub.view_for(session, &caller.principal).await?)
    }

    /// The same for somebody who answers its questions, or speaks for its tools: results of long-running calls count as
    /// answers too.
    pub async fn view_to_answer(&self, caller: &Caller, session: SessionId) -> Result<SessionView, SessionError> {
        caller.may_answer()?;
        self.view(caller, session).await
    }

    /// What a session's log says: nothing that waits for its commit is in it, so that live begins at its head.
    pub async fn stored_view(&self, caller: &Caller, session: SessionId) -> Result<SessionView, SessionError> {
        let view = self.hub.stored_view(session).await?;
        if view.owner == caller.principal { Ok(view) } else { Err(StoreError::NotFound(session).into()) }
    }

    /// A view without what is not stored yet and cannot be read: the log's own end is where live begins.
    pub async fn as_stored(&self, view: SessionView) -> Result<SessionView, SessionError> {
        let head = self.hub.store().head(view.session).await?;
        if view.head > head { Ok(self.hub.view_at(view.session, head).await?) } else { Ok(view) }
    }

    /// The session of this alias.
    pub async fn find_by_alias(&self, alias: &Alias) -> Result<Option<SessionId>, SessionError> {
        Ok(self.hub.store().resolve_alias(alias).await?)
    }

    /// What the caller calls a session.
    pub async fn aliases(&self, caller: &Caller, session: SessionId) -> Result<Vec<Alias>, SessionError> {
        let mut aliases = self.hub.store().aliases(session).await?;
        aliases.retain(|alias| alias.principal == caller.principal);
        Ok(aliases)
    }

    /// The caller's aliases in one namespace of a protocol and their sessions, by name, after one of them.
    pub async fn list_aliases(
        &self,
        caller: &Caller,
        (protocol, namespace): (&str, &str),
        after: Option<&str>,
        limit: u32,
    ) -> Result<Vec<(String, SessionId)>, SessionError> {
        Ok(self.hub.store().aliases_in(&caller.principal, protocol, namespace, after, limit).await?)
    }

    /// A run of this caller's.
    pub async fn find_run(&self, caller: &Caller, run: RunId) -> Result<Option<RunRow>, SessionError> {
        Ok(self.hub.store().run_of_owner(run, &caller.principal).await?)
    }

    /// The same for somebody who changes the run, or what is told of it and to whom. Who lacks the scope does not learn
    /// this way what there is.
    pub async fn find_run_to_change(&self, caller: &Caller, run: RunId) -> Result<Option<RunRow>, SessionError> {
        self.authorize_prompt(caller)?;
        self.find_run(caller, run).await
    }

    /// Whoever may not prompt is told so before anything is looked for or reached on its behalf.
    pub fn authorize_prompt(&self, caller: &Caller) -> Result<(), SessionError> {
        Ok(caller.may_prompt()?)
    }

    /// A question in a session of this caller's.
    pub async fn find_question(
        &self,
        caller: &Caller,
        question: QuestionId,
    ) -> Result<Option<QuestionRow>, SessionError> {
        let Some(row) = self.hub.store().question(question).await? else { return Ok(None) };
        match self.find(caller, row.session).await {
            Ok(_) => Ok(Some(row)),
            Err(error) if error.is_unknown() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// A question in a session that was found before. Another session's is as unknown as none.
    pub async fn find_question_in(
        &self,
        session: SessionId,
        question: QuestionId,
    ) -> Result<Option<QuestionRow>, SessionError> {
        let row = self.hub.store().question(question).await?;
        Ok(row.filter(|row| row.session == session))
    }

    /// A page of the caller's sessions.
    pub async fn list(&self, caller: &Caller, filter: SessionFilter) -> Result<SessionPage, SessionError> {
        let SessionFilter { workspace, text, archived, non_empty, state, after, limit } = filter;
        let principal = caller.principal.clone();
        Ok(self
            .hub
            .store()
            .sessions(SessionQuery { principal, workspace, text, archived, non_empty, state, after, limit })
            .await?)
    }

    /// A page of the caller's runs; whoever the query names, it is the caller's that are listed.
    pub async fn list_runs(&self, caller: &Caller, query: RunQuery) -> Result<RunPage, SessionError> {
        Ok(self.hub.store().runs(RunQuery { principal: caller.principal.clone(), ..query }).await?)
    }

    /// A session for somebody who proves the right to it otherwise, as a signed address does.
    pub async fn find_proven(&self, session: SessionId) -> Result<SessionSummary, SessionError> {
        Ok(self.hub.store().session_summary(session).await?)
    }
}
