//! A server that is lost in the middle of a turn: the turn is in the log and resumes, and so does its terminal.

use std::path::Path;
use std::time::Duration;

use gander::config::Config;
use gander_client::AgentConnection;
use gander_client::schema::SessionUpdate;
use gander_wire::jsonrpc::Error;

use super::seen::{last_prompt_seen, last_turn_seen};
use super::session::{load_session_history, session_folder_name};
use super::turn::{RunTurn, Then, Work};
use crate::commands::client::{self, StandaloneClient};
use crate::output::Tone;

/// How often the server is tried to be reached again, and the pause before each further time.
const ATTEMPTS: u32 = 5;
const PAUSE: Duration = Duration::from_secs(1);

/// Where the turn runs.
pub(crate) enum RunHost<'a> {
    /// In the server of the data directory, which is started if none runs.
    Server { config: &'a Config, folder: &'a Path },
    /// In this process.
    StandaloneClient(StandaloneClient),
}

impl RunHost<'_> {
    pub(crate) async fn connect(&self, config: &Config, folder: &Path) -> anyhow::Result<AgentConnection> {
        match self {
            Self::Server { .. } => client::connect_client(config, folder).await,
            Self::StandaloneClient(standalone) => client::connect_client_within(standalone, config, folder).await,
        }
    }
}

impl RunTurn<'_> {
    /// Finds the session again, and shows what was missed.
    pub(super) async fn resume_after_loss(&mut self) -> anyhow::Result<()> {
        let RunHost::Server { config, folder } = self.host else { return Ok(()) };
        self.screen.line(Tone::Warn, "! Lost the server. The turn is saved and resumes; reconnecting …")?;
        let mut last = None;
        for attempt in 0..ATTEMPTS {
            if attempt > 0 {
                tokio::time::sleep(PAUSE).await;
            }
            match self.find_again(config, folder).await {
                Ok(history) => return self.go_on(history),
                Err(error) => last = Some(error),
            }
        }
        let lost = format!("Lost the server. The turn will resume; {}", reconnect_hint(&self.session));
        Err(last.unwrap_or_else(|| anyhow::anyhow!("no attempt was made")).context(lost))
    }

    async fn find_again(&mut self, config: &Config, folder: &Path) -> anyhow::Result<Vec<SessionUpdate>> {
        self.connection = client::connect_client(config, folder).await?;
        let history = load_session_history(&mut self.connection, &self.session, session_folder_name(folder)?).await?;
        Ok(last_turn_seen(history))
    }

    /// Goes on where the last connection broke off. A prompt that never arrived is sent again.
    fn go_on(&mut self, turn: Vec<SessionUpdate>) -> anyhow::Result<()> {
        self.screen.line(Tone::Dim, "  reconnected")?;
        if self.work == Work::Watch {
            return Ok(());
        }
        let asked = self.prompt.text.as_deref().is_some_and(|text| last_prompt_seen(&turn) != text);
        if asked && matches!(self.work, Work::Prompt(_)) {
            self.send_prompt();
            return Ok(());
        }
        let then = if let Work::Wait(_, then) = self.work { then } else { Then::Leave };
        let is_own = |update: &SessionUpdate| matches!(update, SessionUpdate::UserMessageChunk(_));
        for update in self.seen.take_unseen(turn).into_iter().filter(|update| !is_own(update)) {
            self.ending.note(&update);
            self.screen.show_update(update.into())?;
        }
        self.wait_for_run(then);
        Ok(())
    }
}

/// How a person comes back to a session.
pub(crate) fn reconnect_hint(session: &str) -> String {
    format!("follow it with: gander run --session {session}")
}

/// What is said to somebody who stops following.
pub(crate) fn left_run_hint(session: &str) -> String {
    format!("The turn continues. Follow it: gander run --session {session} · stop it: gander cancel {session}")
}

/// Why a prompt was not taken, and what a script can do about it.
pub(crate) fn reconnect_busy_message(session: &str, error: &Error) -> String {
    let data = error.data.as_ref();
    match data.and_then(|data| data["state"].as_str()) {
        Some("awaiting") => format!(
            "this session waits for an answer to a question: gander run --session {session} asks you, \
             --if-busy queue runs the prompt afterwards"
        ),
        Some(_) | None => {
            format!(
                "a turn is running in this session: use --if-busy steer, queue or wait, or {}",
                reconnect_hint(session)
            )
        }
    }
}
