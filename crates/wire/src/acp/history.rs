//! A part of a conversation as session updates, for clients that read it page by page.

use gander_domain::{Entry, Event, RunOrigin, Seq, SessionCatalog, SessionView};
use serde_json::Value;

use super::agent_words::is_raw_conversation;
use super::projection::{SessionUpdateOut, join_session_updates, present_updates, project_acp_entry};
use super::schema::SessionUpdate;
use super::write_update::{UpdatePrefix, write_session_update};
use crate::jsonrpc::Outbox;

/// What was said and done in these entries, as `session/load` tells it: messages, thoughts, tool calls and compactions.
///
/// They begin where no message is open and no tool is under way. `view` is the session as it is now: what it was then
/// does not matter to what was said.
pub fn history_conversation_updates(view: &SessionView, catalog: &SessionCatalog, entries: &[Entry]) -> Vec<Value> {
    let mut view = SessionView { run: None, ..view.clone() };
    let mut updates: Vec<SessionUpdateOut<'_>> = Vec::new();
    for entry in entries {
        continue_run_in_history(&mut view, entry);
        for update in project_acp_entry(&view, entry).into_iter().filter(is_conversation_update) {
            let separate = match updates.last_mut() {
                Some(last) => join_session_updates(last, update),
                None => Some(update),
            };
            updates.extend(separate);
        }
        view.apply(entry);
    }
    history_update_values(&view, catalog, &updates)
}

/// The title, the plan and the usage of a session as they are now.
pub fn history_state_updates(view: &SessionView, catalog: &SessionCatalog) -> Vec<Value> {
    history_update_values(view, catalog, &present_updates(view))
}

/// Entries may begin within a run: what of its messages was streamed is known only while the run is.
fn continue_run_in_history(view: &mut SessionView, entry: &Entry) {
    let known = view.run.as_ref().map(|run| run.id);
    if matches!(entry.event, Event::MessageStarted { .. }) && entry.run.is_some() && entry.run != known {
        let origin = RunOrigin { by: view.owner.clone(), door: String::new() };
        let seq = Seq(entry.seq.0.saturating_sub(1));
        let started = Entry { seq, at: entry.at, run: entry.run, event: Event::RunStarted { origin }, meta: None };
        view.apply(&started);
    }
}

fn is_conversation_update(update: &SessionUpdateOut<'_>) -> bool {
    match update {
        SessionUpdateOut::Text(_) | SessionUpdateOut::Compaction(_) => true,
        SessionUpdateOut::Settings { .. } | SessionUpdateOut::Notice(_) => false,
        SessionUpdateOut::Raw(raw) => is_raw_conversation(raw),
        SessionUpdateOut::Other(update) => matches!(
            **update,
            SessionUpdate::UserMessageChunk(_)
                | SessionUpdate::AgentMessageChunk(_)
                | SessionUpdate::AgentThoughtChunk(_)
                | SessionUpdate::ToolCall(_)
                | SessionUpdate::ToolCallUpdate(_)
        ),
    }
}

fn history_update_values(view: &SessionView, catalog: &SessionCatalog, updates: &[SessionUpdateOut<'_>]) -> Vec<Value> {
    let (mut outbox, prefix) = (Outbox::default(), UpdatePrefix::new(view.session));
    updates.iter().for_each(|update| write_session_update(&mut outbox, &prefix, catalog, update));
    let lines = outbox.bytes().split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let messages = lines.filter_map(|line| serde_json::from_slice::<Value>(line).ok());
    messages.map(|mut message| message["params"]["update"].take()).collect()
}
