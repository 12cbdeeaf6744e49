//! `gander sessions`: what there is, and what becomes of it.

mod list;
mod prune;
mod show;

use std::io::Read;
use std::path::{Path, PathBuf};
use std::str::FromStr as _;

use anyhow::{Context as _, bail};
use clap::{Subcommand, ValueHint};
use gander_client::AgentConnection;
use gander_services::paths::write_private_file;
use gander_services::units::DurationSetting;
use serde_json::{Value, json};

use super::session_id::resolve_session_id;
use super::{client, shell_completion};
use crate::commands::{Context, Exit};
use crate::output::clean_output_text;

#[derive(Debug, Subcommand)]
pub(in crate::commands) enum SessionsCommand {
    /// List sessions, the latest first
    List {
        /// Only sessions of this folder
        #[arg(long, value_name = "DIR", alias = "folder", value_hint = ValueHint::DirPath)]
        cwd: Option<PathBuf>,
        /// Include sub-agents' sessions
        #[arg(long, short)]
        all: bool,
        /// One JSON object per line
        #[arg(long)]
        json: bool,
    },
    /// Print a session: messages, tool calls and their output, what it cost
    Show {
        /// Session ID, or its beginning
        #[arg(add = shell_completion::complete_sessions())]
        id: String,
        /// One event per line, as JSON
        #[arg(long)]
        json: bool,
    },
    /// Print a session's log, one entry per line
    Export {
        /// Session ID, or its beginning
        #[arg(add = shell_completion::complete_sessions())]
        id: String,
        /// Write to FILE (mode 600)
        #[arg(long, short, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Import an exported log as a new session, with this server's policy
    Import {
        /// The file; `-` reads stdin
        file: PathBuf,
        /// The folder to work in [default: a private one]
        #[arg(long, value_name = "DIR", alias = "folder", value_hint = ValueHint::DirPath)]
        cwd: Option<PathBuf>,
    },
    /// Change a session's title
    Rename {
        /// Session ID, or its beginning
        #[arg(add = shell_completion::complete_sessions())]
        id: String,
        /// The new title
        title: String,
    },
    /// Delete sessions permanently: their content, artifacts and private folders are overwritten and removed
    Delete {
        /// Session IDs, or their beginnings
        #[arg(required = true, add = shell_completion::complete_sessions())]
        ids: Vec<String>,
    },
    /// Delete sessions that were not used for a while; running and waiting ones are kept
    Prune {
        /// How long unused, such as 30d, 12h or 90m
        #[arg(long, value_name = "TIME", value_parser = DurationSetting::from_str)]
        older_than: DurationSetting,
        /// Only print what would be deleted
        #[arg(long)]
        dry_run: bool,
    },
}

pub(super) async fn run(context: Context, command: SessionsCommand) -> anyhow::Result<Exit> {
    let here = std::env::current_dir()?;
    let mut connection = client::connect_client(&context.config, &here).await?;
    match command {
        SessionsCommand::List { cwd, all, json } => {
            let selection = list::SessionSelection { folder: cwd, all };
            list::list_sessions(&context, &mut connection, selection, json).await?;
        }
        SessionsCommand::Show { id, json } => {
            let id = resolve_session_id(&mut connection, &id).await?;
            show::show_session(&context, &mut connection, &id, &here, json).await?;
        }
        SessionsCommand::Export { id, output } => {
            let id = resolve_session_id(&mut connection, &id).await?;
            export_session(&context, &mut connection, &id, output.as_deref()).await?;
        }
        SessionsCommand::Prune { older_than, dry_run } => {
            prune::prune_sessions(&context, &mut connection, older_than.0, dry_run).await?;
        }
        SessionsCommand::Import { file, cwd } => {
            import_session(&context, &mut connection, &file, cwd.as_deref()).await?
        }
        SessionsCommand::Rename { id, title } => {
            let id = resolve_session_id(&mut connection, &id).await?;
            connection.call_method("_gander/session/rename", &json!({ "sessionId": id, "title": title })).await?;
            context.output.note(&format!("Renamed session {id}."));
        }
        SessionsCommand::Delete { ids } => {
            for id in ids {
                let id = resolve_session_id(&mut connection, &id).await?;
                let deleted = connection.call_method("session/delete", &json!({ "sessionId": id })).await;
                deleted.with_context(|| format!("cannot delete {id}"))?;
                context.output.note(&format!("Deleted session {id}."));
            }
        }
    }
    Ok(Exit::Done)
}

/// One line that says what it is, then one entry per line: every tool that knows lines can read it.
async fn export_session(
    context: &Context,
    connection: &mut AgentConnection,
    id: &str,
    to: Option<&Path>,
) -> anyhow::Result<()> {
    let mut document = connection.call_method("_gander/session/export", &json!({ "sessionId": id })).await?;
    let entries = document.as_object_mut().and_then(|document| document.remove("entries"));
    let Some(Value::Array(entries)) = entries else { bail!("the server exported no entries") };
    let lines = std::iter::once(&document).chain(&entries).map(|line| format!("{line}\n"));
    match to {
        Some(path) => {
            let text: String = lines.collect();
            write_private_file(path, text.as_bytes()).with_context(|| format!("cannot write {}", path.display()))
        }
        None => Ok(lines.into_iter().try_for_each(|line| context.output.piece(&line))?),
    }
}

async fn import_session(
    context: &Context,
    connection: &mut AgentConnection,
    from: &Path,
    cwd: Option<&Path>,
) -> anyhow::Result<()> {
    let mut text = String::new();
    match from.to_str() {
        Some("-") => std::io::stdin().read_to_string(&mut text).map(drop),
        Some(_) | None => std::fs::read_to_string(from).map(|read| text = read),
    }
    .with_context(|| format!("cannot read {}", from.display()))?;
    let mut lines = text.lines().filter(|line| !line.trim().is_empty()).zip(1..).map(|(line, number)| {
        serde_json::from_str::<Value>(line).with_context(|| format!("line {number} is not JSON"))
    });
    let mut log = lines.next().context("the file is empty")??;
    let entries = lines.collect::<Result<Vec<Value>, _>>()?;
    let Some(document) = log.as_object_mut() else {
        bail!("not an exported session: the first line is not a JSON object")
    };
    // A document in one piece is as good as one entry per line.
    document.entry("entries").or_insert(Value::Array(entries));
    let cwd = cwd.map(|cwd| cwd.canonicalize().with_context(|| format!("no such folder: {}", cwd.display())));
    let params = json!({ "log": log, "cwd": cwd.transpose()? });
    let answer = connection.call_method("_gander/session/import", &params).await?;
    let reset: Vec<&str> = answer["reset"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    if !reset.is_empty() {
        context.output.note(&format!("Ignored from the file: {}", clean_output_text(&reset.join(", "))));
    }
    let folder = clean_output_text(answer["workspace"].as_str().unwrap_or_default());
    context.output.note(&format!("The session works in {folder} (choose another folder with --cwd)."));
    context.output.line(answer["sessionId"].as_str().unwrap_or_default())?;
    Ok(())
}
