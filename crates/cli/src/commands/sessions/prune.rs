//! `gander sessions prune`: deletes what nobody used for a time.

use std::time::Duration;

use anyhow::Context as _;
use gander_client::AgentConnection;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::commands::Context;
use crate::commands::session_id::short_session_id_length;
use crate::terminal::list_table::{print_list_table, table_local_time, table_size_text};

/// Deletes the sessions that were last used longer ago, and says which and how much that was.
pub(super) async fn prune_sessions(
    context: &Context,
    connection: &mut AgentConnection,
    age: Duration,
    dry_run: bool,
) -> anyhow::Result<()> {
    let before = Timestamp::now().checked_sub(age).context("that is too long ago")?;
    let params = json!({ "before": before.as_microsecond(), "dryRun": dry_run });
    let answer = connection.call_method("_gander/sessions/prune", &params).await?;
    let sessions = answer["sessions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let ids: Vec<&str> = sessions.iter().filter_map(|session| session["sessionId"].as_str()).collect();
    let length = short_session_id_length(&ids);
    let rows: Vec<Vec<String>> = sessions.iter().map(|session| pruned_session_row(session, length)).collect();
    if !rows.is_empty() {
        print_list_table(context.output, &["ID", "UPDATED", "SIZE", "TITLE"], &rows)?;
    }
    let what = if rows.len() == 1 { "1 session".to_owned() } else { format!("{} sessions", rows.len()) };
    let bytes = sessions.iter().filter_map(|session| session["bytes"].as_u64()).sum();
    let done = if dry_run { "Would delete" } else { "Deleted" };
    context.output.note(&format!("{done} {what}, {}.", table_size_text(bytes)));
    Ok(())
}

fn pruned_session_row(session: &Value, length: usize) -> Vec<String> {
    let text = |name: &str| session[name].as_str().unwrap_or_default().to_owned();
    let title = Some(text("title")).filter(|title| !title.is_empty()).unwrap_or_else(|| "(no title)".to_owned());
    let updated = table_local_time(session["updatedAt"].as_i64().unwrap_or_default());
    let size = table_size_text(session["bytes"].as_u64().unwrap_or_default());
    vec![text("sessionId").chars().take(length).collect(), updated, size, title]
}
