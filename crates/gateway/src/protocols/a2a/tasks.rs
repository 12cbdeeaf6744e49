//! Finding tasks and contexts: only the caller's own exist.

use gander_domain::caller::Caller;
use gander_domain::{Command, CommandError, Principal, RunId, Seq, SessionId};
use gander_runtime::hub::{Ack, HubError};
use gander_services::sessions::SessionError;
use gander_store::{Alias, RunRow, RunState, StoreError};
use gander_wire::a2a::{A2aError, A2aErrorKind, A2aTask, PROTOCOL_NAME};

use super::{A2a, A2aCaller, StopWhen, TaskRef, a2a_hub_error, a2a_session_error, a2a_store_error};

impl A2a {
    /// The run behind a task's id, and how far it is.
    pub(super) async fn find_task(&self, caller: &A2aCaller, id: &str) -> Result<(TaskRef, RunState), A2aError> {
        let run: RunId = id.parse().map_err(|_| A2aError::no_such_task(id))?;
        let row = self.services.sessions.find_run(&caller.identity, run).await.map_err(a2a_session_error)?;
        self.task_ref(caller, id, row).await
    }

    /// The same for somebody who changes it, or who is told of it: push configurations hold credentials.
    pub(super) async fn find_task_to_change(
        &self,
        caller: &A2aCaller,
        id: &str,
    ) -> Result<(TaskRef, RunState), A2aError> {
        // No run has the id zero: who may not change any is told so, whatever it names.
        let run: RunId = id.parse().unwrap_or_else(|_| RunId::new(uuid::Uuid::nil()));
        let row = self.services.sessions.find_run_to_change(&caller.identity, run).await.map_err(a2a_session_error)?;
        self.task_ref(caller, id, row).await
    }

    async fn task_ref(
        &self,
        caller: &A2aCaller,
        id: &str,
        row: Option<RunRow>,
    ) -> Result<(TaskRef, RunState), A2aError> {
        let row = row.ok_or_else(|| A2aError::no_such_task(id))?;
        let run = row.run;
        let context = self.context_id(&caller.identity, row.session).await?;
        let after = Seq(row.first.0.saturating_sub(1));
        let head = self.services.hub.store().head(row.session).await.map_err(a2a_store_error)?;
        Ok((TaskRef { session: row.session, context, run, after, check_from: head, newborn: None }, row.state))
    }

    /// The task as it is now.
    pub(super) async fn load_task(&self, caller: &A2aCaller, id: &str) -> Result<A2aTask, A2aError> {
        let (task_ref, _) = self.find_task(caller, id).await?;
        let (_, task, _) = self.rebuild_task(caller, &task_ref).await?;
        task.ok_or_else(|| A2aError::no_such_task(id))
    }

    /// Stops a task and waits until it has stopped.
    pub(super) async fn cancel_task(&self, caller: &A2aCaller, id: &str) -> Result<A2aTask, A2aError> {
        let (mut task_ref, state) = self.find_task_to_change(caller, id).await?;
        let over = || A2aError::new(A2aErrorKind::TaskNotCancelable, format!("task is over: {id}"));
        if matches!(state, RunState::Ended(..)) {
            return Err(over());
        }
        let command = Command::Cancel { run: Some(task_ref.run), origin: caller.origin() };
        match self.services.hub.execute_command(&caller.identity, task_ref.session, command, Ack::Committed).await {
            Ok(_) => {}
            Err(HubError::Refused(CommandError::NoSuchRun(_))) => return Err(over()),
            Err(error) => return Err(a2a_hub_error(error)),
        }
        task_ref.check_from = Seq::ZERO;
        self.wait_for_task(caller, task_ref, StopWhen::Terminal).await
    }

    /// The name under which the caller knows a session.
    pub(super) async fn context_id(&self, caller: &Caller, session: SessionId) -> Result<String, A2aError> {
        let aliases = self.services.sessions.aliases(caller, session).await.map_err(a2a_session_error)?;
        let own = aliases.into_iter().find(|alias| alias.door == PROTOCOL_NAME);
        Ok(own.map_or_else(|| session.to_string(), |alias| alias.text))
    }

    /// The session that the caller goes on with, if there is one. An id of ours is never given again, so that of a
    /// session which the caller deleted is refused and not taken for a name that it chose. Another's is any name.
    pub(super) async fn find_open_session(
        &self,
        caller: &Caller,
        context: &str,
    ) -> Result<Option<SessionId>, A2aError> {
        if let Ok(session) = context.parse::<SessionId>() {
            match self.services.sessions.find(caller, session).await {
                Ok(summary) => return Ok(Some(summary.session)),
                Err(SessionError::Hub(HubError::Store(StoreError::NotFound(_)))) => {}
                Err(error) => return Err(a2a_session_error(error)),
            }
        }
        self.find_named_session(caller, context).await
    }

    /// The session that the caller means, if there is one.
    pub(super) async fn find_session(&self, caller: &Caller, context: &str) -> Result<Option<SessionId>, A2aError> {
        if let Ok(session) = context.parse::<SessionId>() {
            match self.services.sessions.find(caller, session).await {
                Ok(summary) => return Ok(Some(summary.session)),
                Err(error) if error.is_unknown() => {}
                Err(error) => return Err(a2a_session_error(error)),
            }
        }
        self.find_named_session(caller, context).await
    }

    async fn find_named_session(&self, caller: &Caller, name: &str) -> Result<Option<SessionId>, A2aError> {
        let alias = a2a_context_alias(&caller.principal, name);
        self.services.sessions.find_by_alias(&alias).await.map_err(a2a_session_error)
    }
}

/// A context's name that the client chose.
pub(super) fn a2a_context_alias(principal: &Principal, context: &str) -> Alias {
    Alias {
        principal: principal.clone(),
        door: PROTOCOL_NAME.to_owned(),
        namespace: String::new(),
        text: context.to_owned(),
    }
}
