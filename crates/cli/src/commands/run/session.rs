//! The session of a turn: found or made, and set to what the command line says.

use std::path::Path;

use anyhow::{Context as _, bail};
use gander_client::schema::SessionUpdate;
use gander_client::{AgentConnection, AgentEvent, CallError};
use serde_json::json;

use super::flags::RunOptions;
use crate::commands::UsageError;
use crate::commands::session_id::resolve_session_id;

/// Whether the session was there before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Opened {
    Made,
    Found,
}

/// The session to speak in: a named one, the last one of this folder, or a new one. One that is only followed is found
/// here and opened with its history later.
pub(super) async fn open_run_session(
    connection: &mut AgentConnection,
    options: &RunOptions,
    folder: &str,
    follows: bool,
) -> anyhow::Result<(String, Opened)> {
    let named = match &options.session {
        None if options.continue_last => Some(find_last_session(connection, folder).await?),
        None => None,
        Some(given) => Some(resolve_session_id(connection, given).await?),
    };
    let (call, opened) = match named {
        Some(id) if follows => return Ok((id, Opened::Found)),
        Some(id) => (connection.client.resume_session(&id, folder), Opened::Found),
        None => (connection.client.new_session(folder), Opened::Made),
    };
    let AgentEvent::Opened { session, .. } = connection.wait_for_answer(call, |_| {}).await? else {
        bail!("the server opened no session")
    };
    Ok((session, opened))
}

/// Opens a session and gives its history. Open questions are asked afterwards.
pub(crate) async fn load_session_history(
    connection: &mut AgentConnection,
    session: &str,
    folder: &str,
) -> anyhow::Result<Vec<SessionUpdate>> {
    let call = connection.client.load_session(session, folder);
    let mut history = Vec::new();
    let told = |event| {
        if let AgentEvent::Updated(update) = event {
            history.push(update.update);
        }
    };
    connection.wait_for_answer(call, told).await?;
    Ok(history)
}

/// The session of this folder that changed last.
pub(crate) async fn find_last_session(connection: &mut AgentConnection, folder: &str) -> anyhow::Result<String> {
    let answer = connection.call_method("session/list", &json!({ "cwd": folder })).await?;
    let id = answer["sessions"][0]["sessionId"].as_str();
    id.map(str::to_owned).with_context(|| format!("no session in this folder yet: {folder}"))
}

/// What was said on the command line holds for a session that exists already, too.
pub(super) async fn configure_run_session(
    connection: &mut AgentConnection,
    session: &str,
    options: &RunOptions,
    opened: Opened,
) -> anyhow::Result<()> {
    let model = options.settings.model.as_deref().filter(|_| opened == Opened::Found);
    let policy = options.settings.policy.map(|policy| policy.name());
    let (agent, mode) = (options.settings.agent.as_deref(), options.settings.mode.as_deref());
    for (option, value) in [("agent", agent), ("mode", mode), ("model", model), ("policy", policy)] {
        if let Some(value) = value {
            let params = json!({ "sessionId": session, "configId": option, "value": value });
            let set = connection.call_method("session/set_config_option", &params).await;
            set.map_err(session_usage_error)?;
        }
    }
    Ok(())
}

/// A value that there is not is a matter of the command line.
fn session_usage_error(error: CallError) -> anyhow::Error {
    match error {
        CallError::Refused(refused) => UsageError(refused.message).into(),
        CallError::Gone(_) | CallError::Late { .. } | CallError::Unreadable { .. } | CallError::Version(_) => {
            error.into()
        }
    }
}

/// A folder's name as the protocol takes it.
pub(crate) fn session_folder_name(folder: &Path) -> anyhow::Result<&str> {
    folder.to_str().context("the folder's name is not UTF-8")
}
