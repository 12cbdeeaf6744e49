//! `gander cancel`: stops a turn.

use anyhow::bail;
use clap::Args;
use serde_json::{Value, json};

use super::client;
use super::session_id::{busy_sessions, resolve_session_id};
use super::shell_completion;
use crate::commands::{Context, Exit};

/// Options of `gander cancel`.
#[derive(Debug, Args)]
pub(super) struct CancelOptions {
    /// Session ID, or its beginning [default: the only session with a turn under way]
    #[arg(add = shell_completion::complete_running_sessions())]
    session: Option<String>,
}

pub(super) async fn run(context: Context, options: CancelOptions) -> anyhow::Result<Exit> {
    let here = std::env::current_dir()?;
    let mut connection = client::connect_client(&context.config, &here).await?;
    let session = match &options.session {
        Some(given) => resolve_session_id(&mut connection, given).await?,
        None => {
            let busy = busy_sessions(&mut connection).await?;
            let ids: Vec<&str> = busy.iter().filter_map(|session| session["sessionId"].as_str()).collect();
            match ids.as_slice() {
                [id] => (*id).to_owned(),
                [] => bail!("no turn is running"),
                several => bail!("several turns are running, name one: {}", several.join(", ")),
            }
        }
    };
    let view = connection.call_method("_gander/session/show", &json!({ "sessionId": session })).await?;
    if view["run"] == Value::Null {
        context.output.note(&format!("no turn is running in session {session}"));
        return Ok(Exit::Done);
    }
    connection.call_method("session/cancel", &json!({ "sessionId": session })).await?;
    context.output.note(&format!("cancelled the turn of session {session}"));
    Ok(Exit::Done)
}
