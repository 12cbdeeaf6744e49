//! A session begun anew under its own id: what was said is forgotten, everything else stays.

use std::time::Duration;

use gander_domain::caller::Caller;
use gander_domain::{Command, CommandError, ResetReason, RunOrigin, Seq, SessionId, SessionView};
use gander_runtime::hub::{Ack, HubError};
use gander_store::DeltaForm;

use super::{SessionError, Sessions};

/// How long a run that is under way may take to stop.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);

impl Sessions {
    /// Cancels what runs in a session of the caller's and clears its conversation. Its settings, folders, values and MCP
    /// servers stay; one that was archived is in use again.
    pub async fn start_over(
        &self,
        caller: &Caller,
        session: SessionId,
        origin: RunOrigin,
    ) -> Result<SessionView, SessionError> {
        let view = self.view(caller, session).await?;
        if view.archived {
            self.hub.execute_command(caller, session, Command::Archive { archived: false }, Ack::Committed).await?;
        }
        match tokio::time::timeout(STOP_TIMEOUT, self.clear_when_idle(caller, &view, origin)).await {
            Ok(cleared) => cleared?,
            Err(_) => self.hub.execute_command(caller, session, start_over_command(), Ack::Synced).await.map(drop)?,
        }
        self.stored_view(caller, session).await
    }

    /// A run that ends may be followed by one that waited: that one is cancelled too.
    async fn clear_when_idle(
        &self,
        caller: &Caller,
        view: &SessionView,
        origin: RunOrigin,
    ) -> Result<(), SessionError> {
        let mut follower = self.hub.follow_session(view.session, view.head, DeltaForm::Joined);
        loop {
            match self.hub.execute_command(caller, view.session, start_over_command(), Ack::Synced).await {
                Ok(_) => return Ok(()),
                Err(HubError::Refused(CommandError::RunActive(run))) => {
                    let cancel = Command::Cancel { run: Some(run), origin: origin.clone() };
                    match self.hub.execute_command(caller, view.session, cancel, Ack::Committed).await {
                        Ok(_) | Err(HubError::Refused(CommandError::NoSuchRun(_))) => {}
                        Err(error) => return Err(error.into()),
                    }
                    follower.next_batch().await.map_err(HubError::from)?;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
}

fn start_over_command() -> Command {
    Command::Reset { keep_to: Seq::ZERO, replacement: Vec::new(), reason: ResetReason::Cleared }
}
