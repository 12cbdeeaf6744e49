//! `gander sessions list`: a table with what each session does now.

use std::path::PathBuf;

use anyhow::Context as _;
use gander_client::AgentConnection;
use serde_json::{Map, Value, json};

use crate::commands::Context;
use crate::commands::session_id::short_session_id_length;
use crate::terminal::list_table::{print_list_table, table_local_time};

/// Which sessions are listed.
pub(super) struct SessionSelection {
    pub(super) folder: Option<PathBuf>,
    /// Those of sub-agents too.
    pub(super) all: bool,
}

/// Prints them, last changed first.
pub(super) async fn list_sessions(
    context: &Context,
    connection: &mut AgentConnection,
    selection: SessionSelection,
    json: bool,
) -> anyhow::Result<()> {
    let folder = selection.folder.as_ref();
    let folder =
        folder.map(|folder| folder.canonicalize().with_context(|| format!("no such folder: {}", folder.display())));
    let mut params = Map::new();
    params.extend(folder.transpose()?.map(|folder| ("cwd".to_owned(), json!(folder))));
    let mut sessions: Vec<Value> = Vec::new();
    loop {
        let page = connection.call_method("_gander/sessions/list", &Value::Object(params.clone())).await?;
        sessions.extend(page["sessions"].as_array().into_iter().flatten().cloned());
        let Some(cursor) = page["nextCursor"].as_str() else { break };
        params.insert("cursor".to_owned(), json!(cursor));
    }
    if json {
        return Ok(sessions.iter().try_for_each(|session| context.output.line(&session.to_string()))?);
    }
    if sessions.is_empty() {
        context.output.note("No sessions yet. Start one: gander run \"…\"");
        return Ok(());
    }
    let rows = session_list_rows(&sessions, selection.all);
    Ok(print_list_table(context.output, &["ID", "STATE", "UPDATED", "TITLE", "FOLDER"], &rows)?)
}

/// Sessions of sub-agents stand below the one that began them.
fn session_list_rows(sessions: &[Value], all: bool) -> Vec<Vec<String>> {
    let ids: Vec<&str> = sessions.iter().filter_map(|session| session["sessionId"].as_str()).collect();
    let length = short_session_id_length(&ids);
    let is_child = |session: &&Value| session["parent"].as_str().is_some_and(|parent| ids.contains(&parent));
    let mut rows = Vec::new();
    for session in sessions.iter().filter(|session| !is_child(session)) {
        rows.push(session_list_row(session, length, ""));
        let own = |child: &&Value| child["parent"] == session["sessionId"];
        let children = sessions.iter().filter(|_| all).filter(own);
        rows.extend(children.map(|child| session_list_row(child, length, "└ ")));
    }
    rows
}

fn session_list_row(session: &Value, length: usize, indent: &str) -> Vec<String> {
    let text = |name: &str| session[name].as_str().unwrap_or_default().to_owned();
    let id: String = text("sessionId").chars().take(length).collect();
    let title = Some(text("title")).filter(|title| !title.is_empty()).unwrap_or_else(|| "(no title)".to_owned());
    let title = if title.chars().count() > 48 { title.chars().take(47).chain(['…']).collect() } else { title };
    let updated = table_local_time(session["updatedAt"].as_i64().unwrap_or_default());
    vec![id, session_state_text(&text("state")).to_owned(), updated, format!("{indent}{title}"), text("cwd")]
}

fn session_state_text(state: &str) -> &str {
    match state {
        "waiting" => "waiting for you",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sub_sessions_stand_below_the_one_that_began_them() {
        let session = |id: &str, parent: Option<&str>| json!({ "sessionId": id, "title": id, "cwd": "/w", "state": "waiting", "updatedAt": 0, "parent": parent });
        let child = session("cccccccc-3", Some("bbbbbbbb-2"));
        let all = [child, session("aaaaaaaa-1", None), session("bbbbbbbb-2", Some("gone"))];
        let titles =
            |all_too| session_list_rows(&all, all_too).into_iter().map(|row| row[3].clone()).collect::<Vec<_>>();
        assert_eq!(titles(true), ["aaaaaaaa-1", "bbbbbbbb-2", "└ cccccccc-3"]);
        assert_eq!(titles(false), ["aaaaaaaa-1", "bbbbbbbb-2"]);
        assert_eq!(session_list_rows(&all, false)[0][..2], ["aaaaaaaa".to_owned(), "waiting for you".to_owned()]);
    }
}
