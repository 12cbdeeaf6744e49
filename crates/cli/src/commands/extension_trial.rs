//! What `gander extensions add` and `show` print about a server: whether it starts, its tools, and where its files are.

use std::io::{self, IsTerminal as _};
use std::path::Path;

use gander_client::AgentConnection;
use gander_services::paths::disk_use_of_path;
use serde_json::{Value, json};

use crate::commands::{Context, Exit};
use crate::output::clean_output_text;
use crate::terminal::list_table::table_size_text;

/// Lines of what a program complained about that are shown.
const MAX_STDERR_LINES: usize = 12;

/// The server that is tried.
pub(super) struct Trial<'a> {
    pub(super) name: &'a str,
    pub(super) session: Option<&'a str>,
    /// Where its program is started.
    pub(super) folder: &'a Path,
}

/// Starts a server that was just added, and shows its tools or what went wrong.
pub(super) async fn try_added_extension(
    context: &Context,
    connection: &mut AgentConnection,
    trial: &Trial<'_>,
) -> anyhow::Result<Exit> {
    let name = clean_output_text(trial.name);
    context.output.note(&format!("Starting {name} to see whether it works (up to 2 minutes)…"));
    let mut params = json!({ "sessionId": trial.session, "name": trial.name, "cwd": trial.folder });
    let mut tried = connection.call_method("_gander/extensions/try", &params).await?;
    if tried["wantsNetwork"] == true && trial_may_use_network(context, &name, &tried)? {
        params["grantNetwork"] = true.into();
        tried = connection.call_method("_gander/extensions/try", &params).await?;
    }
    report_trial(context, &name, &tried)
}

/// Asks the person at the terminal; with nobody there it stays as it is.
fn trial_may_use_network(context: &Context, name: &str, tried: &Value) -> io::Result<bool> {
    show_trial_stderr(context, tried);
    if !io::stdin().is_terminal() || !context.output.error_style().is_terminal() {
        return Ok(false);
    }
    context.output.note(&format!("{name} does not start without network access. Grant it from now on? [y/n]"));
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    Ok(["y", "yes"].contains(&answer.trim().to_lowercase().as_str()))
}

fn report_trial(context: &Context, name: &str, tried: &Value) -> anyhow::Result<Exit> {
    let output = context.output;
    let reason = clean_output_text(tried["reason"].as_str().unwrap_or_default());
    match tried["state"].as_str() {
        Some("ready") => {
            let tools: Vec<&str> = tried["tools"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
            let count = if tools.len() == 1 { "1 tool".to_owned() } else { format!("{} tools", tools.len()) };
            output.line(&format!("{name} works, {count}:"))?;
            tools.iter().try_for_each(|tool| output.line(&format!("  {}", clean_output_text(tool))))?;
            Ok(Exit::Done)
        }
        Some("needs_login") => {
            output.note(&format!("{name} is added. Log in to use it: {reason}"));
            Ok(Exit::Done)
        }
        Some(_) | None => {
            output.failure(&format!("{name} does not start: {reason}"));
            if tried["wantsNetwork"] == true {
                output.note(&format!(
                    "It needs the network. Add it again with: gander extensions add {name} --network -- …"
                ));
            } else {
                show_trial_stderr(context, tried);
            }
            output.note(&format!("It was added anyway. To remove it: gander extensions remove {name}"));
            Ok(Exit::Failed)
        }
    }
}

/// The end of what its program wrote to standard error.
fn show_trial_stderr(context: &Context, tried: &Value) {
    let stderr = tried["stderr"].as_str().unwrap_or_default();
    let lines: Vec<&str> = stderr.lines().filter(|line| !line.trim().is_empty()).collect();
    for line in &lines[lines.len().saturating_sub(MAX_STDERR_LINES)..] {
        context.output.note(&format!("  │ {}", clean_output_text(line)));
    }
}

/// Prints what is known of one server.
pub(super) fn show_tried_extension(context: &Context, extension: &Value) -> anyhow::Result<Exit> {
    let row = |name: &str, value: &str| context.output.line(&format!("{name:<10} {}", clean_output_text(value)));
    row("name", extension["name"].as_str().unwrap_or_default())?;
    row("runs", extension["place"].as_str().unwrap_or_default())?;
    if let Some(sandbox) = extension["sandbox"].as_str() {
        row("sandbox", sandbox)?;
    }
    if extension["shared"] == true {
        row("shared", "one process for all sessions in the same folders")?;
    }
    if let Some(home) = extension["home"].as_str() {
        row("home", &format!("{home} ({})", table_size_text(disk_use_of_path(Path::new(home)))))?;
    }
    Ok(Exit::Done)
}
