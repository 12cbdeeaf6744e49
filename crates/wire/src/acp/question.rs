//! Questions as requests to a client, and its answers as replies.

use gander_domain::{Ask, Choice, ChoiceKind, Question, QuestionId, Reply, SessionId, SessionView};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::output::asked_tool_call;
use super::schema::{
    PermissionOption, PermissionOptionKind, RequestPermissionOutcome, RequestPermissionRequest,
    RequestPermissionResponse, ToolCallUpdate, ToolCallUpdateFields,
};
use super::types::{Abilities, Withdrawal};
use crate::jsonrpc::{Error, Peer, RequestId};

/// Where in `_meta` of an approval a changed plan stands.
const PLAN: &str = "gander/plan";

/// The id of a question's request: the same at every client and after every restart.
pub(super) fn request_id(question: QuestionId) -> RequestId {
    RequestId::text(question.to_string())
}

/// Sends the question, if this client can answer such a one. True if it is asked now.
pub(super) fn ask<C>(
    peer: &mut Peer<C>,
    abilities: Abilities,
    view: &SessionView,
    question: &Question,
    context: C,
) -> bool {
    let id = request_id(question.id);
    match &question.ask {
        Ask::Choose { choices } => {
            let params = permission(view, question, choices);
            peer.request(id, "session/request_permission", &params, context)
        }
        Ask::Form { schema } => {
            abilities.forms && peer.request(id, "elicitation/create", &form(view.session, question, schema), context)
        }
        Ask::Visit { url } => {
            abilities.visits && peer.request(id, "elicitation/create", &visit(view.session, question, url), context)
        }
    }
}

/// What the client's answer means. Only a clear choice is a reply.
pub(super) fn reply(question: &Question, result: Result<&RawValue, Error>) -> Result<Reply, Withdrawal> {
    let json = result.map_err(|_| Withdrawal::Failed)?.get();
    match &question.ask {
        Ask::Choose { .. } => chosen(question, json),
        Ask::Form { .. } | Ask::Visit { .. } => filled(json),
    }
}

fn permission(view: &SessionView, question: &Question, choices: &[Choice]) -> RequestPermissionRequest {
    let options = choices
        .iter()
        .map(|choice| PermissionOption::new(choice.id.clone(), choice.name.clone(), option_kind(choice.kind)));
    RequestPermissionRequest::new(view.session.to_string(), subject(view, question), options.collect())
}

/// The tool call that the question is about; the protocol wants one even where there is none.
fn subject(view: &SessionView, question: &Question) -> ToolCallUpdate {
    let tool = question.call.and_then(|call| view.run.as_ref()?.tool(call));
    match (tool, question.call) {
        (Some(tool), _) => asked_tool_call(&tool.call),
        (None, Some(call)) => titled(&call.to_string(), &question.title),
        (None, None) => titled(&question.id.to_string(), &question.title),
    }
}

fn titled(id: &str, title: &str) -> ToolCallUpdate {
    ToolCallUpdate::new(id.to_owned(), ToolCallUpdateFields::new().title(title.to_owned()))
}

fn option_kind(kind: ChoiceKind) -> PermissionOptionKind {
    match kind {
        ChoiceKind::AllowOnce => PermissionOptionKind::AllowOnce,
        ChoiceKind::AllowAlways => PermissionOptionKind::AllowAlways,
        ChoiceKind::RejectOnce => PermissionOptionKind::RejectOnce,
        ChoiceKind::RejectAlways => PermissionOptionKind::RejectAlways,
    }
}

fn form(session: SessionId, question: &Question, schema: &Value) -> Value {
    scoped(
        json!({ "mode": "form", "message": question.title, "requestedSchema": schema, "sessionId": session }),
        question,
    )
}

fn visit(session: SessionId, question: &Question, url: &str) -> Value {
    let params = json!({
        "mode": "url", "message": question.title, "elicitationId": question.id, "url": url, "sessionId": session,
    });
    scoped(params, question)
}

fn scoped(mut params: Value, question: &Question) -> Value {
    if let Some(call) = question.call {
        params["toolCallId"] = json!(call);
    }
    params
}

fn chosen(question: &Question, json: &str) -> Result<Reply, Withdrawal> {
    let response: RequestPermissionResponse = serde_json::from_str(json).map_err(|_| Withdrawal::Failed)?;
    match response.outcome {
        RequestPermissionOutcome::Cancelled => Err(Withdrawal::Cancelled),
        RequestPermissionOutcome::Selected(selected) => {
            let choice = question.choice(&selected.option_id.0).ok_or(Withdrawal::Failed)?;
            let edited = response.meta.as_ref().and_then(|meta| meta.get(PLAN)).filter(|_| question.plan.is_some());
            if let (Some(plan), ChoiceKind::AllowOnce | ChoiceKind::AllowAlways) = (edited, choice.kind) {
                return Ok(Reply::Filled { content: plan.clone() });
            }
            Ok(Reply::Chosen { choice: choice.id.clone(), kind: choice.kind })
        }
        _ => Err(Withdrawal::Failed), // open in the schema crate: an unknown outcome is never approval
    }
}

fn filled(json: &str) -> Result<Reply, Withdrawal> {
    let response: Value = serde_json::from_str(json).map_err(|_| Withdrawal::Failed)?;
    match response["action"].as_str() {
        Some("accept") => Ok(Reply::Filled { content: response.get("content").cloned().unwrap_or_else(|| json!({})) }),
        Some("decline") => Ok(Reply::Declined),
        Some("cancel") => Err(Withdrawal::Cancelled),
        Some(_) | None => Err(Withdrawal::Failed),
    }
}
