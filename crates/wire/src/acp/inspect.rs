//! What a client that can do everything is sent because of one entry, as values.

use gander_domain::{Entry, Event, QuestionId, SessionCatalog, SessionView};
use serde_json::{Value, json};

use super::abilities::ClientAbilities;
use super::projection::project_acp_entry;
use super::question::acp_question_request;
use super::write_update::{UpdatePrefix, write_session_update};
use crate::jsonrpc::Outbox;

/// Messages to a client that is attached and did not send the prompt. `view` is the session before the entry.
pub(crate) fn inspected_acp_messages(view: &SessionView, catalog: &SessionCatalog, entry: &Entry) -> Vec<Value> {
    let mut outbox = Outbox::default();
    let prefix = UpdatePrefix::new(view.session);
    for update in project_acp_entry(view, entry) {
        write_session_update(&mut outbox, &prefix, catalog, &update);
    }
    let lines = outbox.bytes().split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let updates = lines.filter_map(|line| serde_json::from_slice(line).ok());
    updates.chain(inspected_acp_question(view, entry)).collect()
}

fn inspected_acp_question(view: &SessionView, entry: &Entry) -> Option<Value> {
    let everything = ClientAbilities { forms: true, visits: true, ..ClientAbilities::default() };
    match &entry.event {
        Event::QuestionAsked { question } => {
            let (method, params) = acp_question_request(everything, view, question)?;
            Some(json!({ "jsonrpc": "2.0", "id": question.id, "method": method, "params": params }))
        }
        Event::QuestionAnswered { question, .. } => Some(inspected_acp_withdrawal(*question)),
        Event::SessionCreated { .. }
        | Event::TitleSet { .. }
        | Event::ArchiveSet { .. }
        | Event::SettingsChanged { .. }
        | Event::StateChanged { .. }
        | Event::ArtifactSaved { .. }
        | Event::TextMarked { .. }
        | Event::Noticed { .. }
        | Event::HistoryReset { .. }
        | Event::RunQueued { .. }
        | Event::RunStarted { .. }
        | Event::RunRecovered { .. }
        | Event::Routed { .. }
        | Event::CancelRequested { .. }
        | Event::RunEnded { .. }
        | Event::MessageStarted { .. }
        | Event::PartDelta { .. }
        | Event::MessageDone { .. }
        | Event::ToolCalled { .. }
        | Event::ToolStarted { .. }
        | Event::ToolUpdated { .. }
        | Event::ToolDone { .. }
        | Event::PlanSet { .. }
        | Event::UsageAdded { .. }
        | Event::OpaqueUpdate { .. }
        | Event::Unknown(_) => None,
    }
}

/// What those are told who did not answer.
fn inspected_acp_withdrawal(question: QuestionId) -> Value {
    json!({ "jsonrpc": "2.0", "method": "$/cancel_request", "params": { "requestId": question } })
}
