//! Log entries as the events of goose's streams.

use gander_domain::{
    DeltaKind, Entry, Event, Notice, Outcome, Part, ResetReason, Role, Route, SessionView, ToolCall, ToolContent,
    ToolResult,
};
use serde_json::{Value, json};

use super::content::{goose_content_object, goose_tool_content_object, goose_tool_response_content};
use super::transcript::{goose_transcript_message, goose_transcript_question_message};
use super::types::{GooseMessage, Metadata, TokenState, goose_epoch_seconds};

/// What an entry looks like to a goose client. `view` is the session before the entry.
///
/// A client's own prompt is not told to it, and a history that begins anew is told whole by who has the log.
pub fn project_goose_entry(view: &SessionView, entry: &Entry) -> Vec<Value> {
    let spent = TokenState::from_view(view);
    let message = |message: GooseMessage| vec![goose_message_event(&message, &spent)];
    match &entry.event {
        Event::PartDelta { message: id, growth, text, .. } => {
            let part = match growth {
                DeltaKind::Text => Part::text(text),
                DeltaKind::Thought => Part::Thought { text: text.clone() },
            };
            message(goose_assistant_message(id.to_string(), entry, vec![goose_content_object(&part)]))
        }
        Event::MessageDone { message: whole } if whole.role == Role::Agent => {
            let rest = goose_unstreamed_content(view, &whole.parts);
            if rest.is_empty() { vec![] } else { message(goose_assistant_message(whole.id.to_string(), entry, rest)) }
        }
        Event::MessageDone { .. } if is_own_goose_prompt(view, entry) => vec![],
        Event::MessageDone { message: whole } => goose_transcript_message(whole, entry.at).map(message).unwrap_or_default(),
        Event::ToolDone { call, result } => message(GooseMessage {
            id: Some(call.to_string()),
            role: "user",
            created: goose_epoch_seconds(entry.at),
            content: vec![goose_tool_response_content(&call.to_string(), result)],
            metadata: Metadata::ALL,
        }),
        Event::QuestionAsked { question } => {
            message(goose_transcript_question_message(entry.at, question, question.call.and_then(|call| find_goose_tool_call(view, call))))
        }
        Event::Noticed { notice } => message(goose_notification_message(entry, goose_notice_text(notice))),
        Event::HistoryReset { reason: ResetReason::Compacted, .. } => {
            message(goose_notification_message(entry, "Conversation compacted".to_owned()))
        }
        Event::UsageAdded { .. }
        | Event::HistoryReset { reason: ResetReason::Cleared | ResetReason::Rewound | ResetReason::Replaced, .. }
        | Event::SessionCreated { .. }
        | Event::TitleSet { .. }
        | Event::SettingsChanged { .. }
        | Event::ArchiveSet { .. }
        | Event::PlanSet { .. }
        | Event::StateChanged { .. } // no client of goose knows values or artifacts of a session
        | Event::ArtifactSaved { .. }
        | Event::TextMarked { .. }
        | Event::Routed { .. }
        | Event::RunQueued { .. }
        | Event::RunStarted { .. }
        | Event::RunRecovered { .. }
        | Event::CancelRequested { .. }
        | Event::MessageStarted { .. }
        | Event::ToolCalled { .. }
        | Event::ToolStarted { .. }
        | Event::ToolUpdated { .. }
        | Event::QuestionAnswered { .. }
        | Event::OpaqueUpdate { .. }
        | Event::Unknown(_) => vec![],
        Event::RunEnded { outcome } => goose_run_end_events(outcome, &spent),
    }
}

/// Events that only versions before 1.29 and a branch of goose knew: who answers, and what is planned.
pub fn project_legacy_goose_events(view: &SessionView, entry: &Entry) -> Vec<Value> {
    match &entry.event {
        Event::SettingsChanged { patch } => {
            let mode = patch.mode.as_deref().unwrap_or(&view.settings.mode);
            let model =
                patch.model.as_ref().map(|model| json!({ "type": "ModelChange", "model": model, "mode": mode }));
            let agent = patch.agent.as_deref().unwrap_or(&view.settings.agent);
            let routed = (patch.agent.is_some() || patch.mode.is_some())
                .then(|| json!({ "type": "RoutingDecision", "agent_name": agent, "mode_slug": mode }));
            model.into_iter().chain(routed).collect()
        }
        Event::PlanSet { plan } => vec![json!({ "type": "PlanProposal", "plan": plan })],
        Event::Routed { route } => vec![goose_routing_event(route)],
        Event::PartDelta { .. }
        | Event::MessageDone { .. }
        | Event::StateChanged { .. }
        | Event::ArtifactSaved { .. }
        | Event::TextMarked { .. }
        | Event::ToolDone { .. }
        | Event::QuestionAsked { .. }
        | Event::Noticed { .. }
        | Event::HistoryReset { .. }
        | Event::UsageAdded { .. }
        | Event::SessionCreated { .. }
        | Event::TitleSet { .. }
        | Event::ArchiveSet { .. }
        | Event::RunQueued { .. }
        | Event::RunStarted { .. }
        | Event::RunRecovered { .. }
        | Event::RunEnded { .. }
        | Event::CancelRequested { .. }
        | Event::MessageStarted { .. }
        | Event::ToolCalled { .. }
        | Event::ToolStarted { .. }
        | Event::ToolUpdated { .. }
        | Event::QuestionAnswered { .. }
        | Event::OpaqueUpdate { .. }
        | Event::Unknown(_) => vec![],
    }
}

fn goose_routing_event(route: &Route) -> Value {
    json!({
        "type": "RoutingDecision", "agent_name": route.agent, "mode_slug": route.mode,
        "confidence": f64::from(route.confidence) / 100.0, "reasoning": route.reasons.join("; "),
    })
}

/// How a stream ends: a failure is told first, and a Finish always follows.
pub fn goose_run_end_events(outcome: &Outcome, spent: &TokenState) -> Vec<Value> {
    let finish = json!({ "type": "Finish", "reason": "stop", "token_state": spent.to_json() });
    match outcome {
        Outcome::Completed { stop } => {
            stop.limit_message().map(goose_error_event).into_iter().chain([finish]).collect()
        }
        Outcome::Cancelled => vec![finish],
        Outcome::Failed { message, .. } => vec![goose_error_event(message), finish],
    }
}

/// What a tool gave, as the answer to who called it without the agent.
pub fn goose_tool_result_object(result: &ToolResult) -> Value {
    let mut told = goose_tool_response_content("", result);
    told["toolResult"]["value"].take()
}

/// A block of a prompt, in the form that MCP gives it.
pub fn goose_prompt_block(part: &Part) -> Value {
    goose_tool_content_object(&ToolContent::Part { part: part.clone() })
}

/// Something went wrong.
pub fn goose_error_event(text: &str) -> Value {
    json!({ "type": "Error", "error": text })
}

/// Nothing but a sign of life.
pub fn goose_ping_event() -> Value {
    json!({ "type": "Ping" })
}

/// The history is now this.
pub fn goose_conversation_event(conversation: Vec<Value>) -> Value {
    json!({ "type": "UpdateConversation", "conversation": conversation })
}

/// Which requests are under way, for who comes later.
pub fn goose_active_requests_event(ids: &[String]) -> Value {
    json!({ "type": "ActiveRequests", "request_ids": ids })
}

/// A client of this protocol shows its prompt already.
fn is_own_goose_prompt(view: &SessionView, entry: &Entry) -> bool {
    view.run.as_ref().is_some_and(|run| run.origin.door == "goose" && entry.seq == run.from.next())
}

fn goose_message_event(message: &GooseMessage, spent: &TokenState) -> Value {
    json!({ "type": "Message", "message": message, "token_state": spent.to_json() })
}

fn goose_assistant_message(id: String, entry: &Entry, content: Vec<Value>) -> GooseMessage {
    GooseMessage {
        id: Some(id),
        role: "assistant",
        created: goose_epoch_seconds(entry.at),
        content,
        metadata: Metadata::ALL,
    }
}

fn goose_notification_message(entry: &Entry, text: String) -> GooseMessage {
    let content =
        json!({ "type": "systemNotification", "notificationType": "inlineMessage", "msg": text, "data": null });
    GooseMessage {
        id: None,
        role: "assistant",
        created: goose_epoch_seconds(entry.at),
        content: vec![content],
        metadata: Metadata::PEOPLE,
    }
}

fn goose_notice_text(notice: &Notice) -> String {
    match &notice.detail {
        Some(detail) => format!("{}: {detail}", notice.title),
        None => notice.title.clone(),
    }
}

/// Parts of a whole message that no delta brought.
fn goose_unstreamed_content(view: &SessionView, parts: &[Part]) -> Vec<Value> {
    let streamed = view.run.as_ref().and_then(|run| run.open.as_ref()).map_or(0, |open| open.parts.len());
    parts.iter().skip(streamed).map(goose_content_object).collect()
}

fn find_goose_tool_call(view: &SessionView, call: gander_domain::ToolCallId) -> Option<&ToolCall> {
    view.run.as_ref()?.find_tool_call(call).map(|open| &open.call)
}
