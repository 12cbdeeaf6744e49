//! Finding tasks and contexts: only the caller's own exist.

use gander_domain::{Command, CommandError, Principal, RunId, Seq, SessionId};
use gander_wire::a2a::{DOOR, Error, Kind, Task};

use super::{A2a, Caller, Ends, Thread, refused, stored};
use crate::hub::{Ack, HubError};
use crate::log::{Alias, RunState, StoreError};

impl A2a {
    /// The run behind a task's id, and how far it is.
    pub(super) async fn thread(&self, caller: &Caller, id: &str) -> Result<(Thread, RunState), Error> {
        let run: RunId = id.parse().map_err(|_| Error::no_task(id))?;
        let store = self.desk.hub.store();
        let row = store.run(run).await.map_err(stored)?.ok_or_else(|| Error::no_task(id))?;
        let card = store.card(row.session).await.map_err(stored)?;
        if card.owner != caller.identity.principal {
            return Err(Error::no_task(id));
        }
        let context = self.context(&card.owner, row.session).await?;
        let after = Seq(row.first.0.saturating_sub(1));
        let head = store.head(row.session).await.map_err(stored)?;
        Ok((Thread { session: row.session, context, run, after, check_from: head, newborn: None }, row.state))
    }

    /// The task as it is now.
    pub(super) async fn task(&self, caller: &Caller, id: &str) -> Result<Task, Error> {
        let (thread, _) = self.thread(caller, id).await?;
        let (_, task, _) = self.fold(caller, &thread).await?;
        task.ok_or_else(|| Error::no_task(id))
    }

    /// Stops a task and waits until it has stopped.
    pub(super) async fn cancel(&self, caller: &Caller, id: &str) -> Result<Task, Error> {
        let (mut thread, state) = self.thread(caller, id).await?;
        let over = || Error::new(Kind::TaskNotCancelable, format!("task is over: {id}"));
        if matches!(state, RunState::Ended(..)) {
            return Err(over());
        }
        let command = Command::Cancel { run: Some(thread.run), origin: caller.origin() };
        match self.desk.hub.command(thread.session, command, Ack::Committed).await {
            Ok(_) => {}
            Err(HubError::Refused(CommandError::NoSuchRun(_))) => return Err(over()),
            Err(error) => return Err(refused(error)),
        }
        thread.check_from = Seq::ZERO;
        self.until(caller, thread, Ends::Terminal).await
    }

    /// The name under which the caller knows a session.
    pub(super) async fn context(&self, principal: &Principal, session: SessionId) -> Result<String, Error> {
        let aliases = self.desk.hub.store().aliases(session).await.map_err(stored)?;
        let own = aliases.into_iter().find(|alias| alias.door == DOOR && alias.principal == *principal);
        Ok(own.map_or_else(|| session.to_string(), |alias| alias.text))
    }

    /// The session that the caller means, if there is one.
    pub(super) async fn session(&self, principal: &Principal, context: &str) -> Result<Option<SessionId>, Error> {
        if let Ok(session) = context.parse::<SessionId>() {
            match self.desk.hub.store().card(session).await {
                Ok(card) if card.owner == *principal => return Ok(Some(session)),
                Ok(_) | Err(StoreError::NotFound(_) | StoreError::Deleted(_)) => {}
                Err(error) => return Err(stored(error)),
            }
        }
        self.desk.hub.store().resolve_alias(&alias(principal, context)).await.map_err(stored)
    }
}

/// A context's name that the client chose.
pub(super) fn alias(principal: &Principal, context: &str) -> Alias {
    Alias { principal: principal.clone(), door: DOOR.to_owned(), namespace: String::new(), text: context.to_owned() }
}
