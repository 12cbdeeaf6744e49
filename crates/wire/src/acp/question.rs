//! Questions as requests to a client, and its answers as replies.

use gander_domain::{
    Choice, ChoiceKind, Plan, Question, QuestionId, QuestionKind, RejectReason, Reply, SessionId, SessionView,
    SubagentCall,
};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::abilities::ClientAbilities;
use super::agent_words::{AGENT_WORDS, merge_agent_words};
use super::content::acp_tool_content;
use super::projection::acp_permission_tool_call;
use super::schema::{
    Meta, PermissionOption, PermissionOptionKind, RequestPermissionOutcome, RequestPermissionRequest,
    RequestPermissionResponse, ToolCallUpdate, ToolCallUpdateFields,
};
use super::types::Withdrawal;
use crate::answer::{ChoiceAnswer, read_choice_answer};
use crate::jsonrpc::{Error, Peer, RequestId};

/// Where in `_meta` of an approval a changed plan stands.
const PLAN_META: &str = "gander/plan";

/// Where in `_meta` of a rejection stands why, in a person's words.
pub const REASON_META: &str = "gander/reason";

/// Where in `_meta` of a rejection a client says that it has nobody to ask.
pub const UNATTENDED_META: &str = "gander/unattended";

/// Where in `_meta` of a tool call stands the sub-agent that wants it.
const SUBAGENT_META: &str = "gander/subagent";

/// A reason is a sentence or two: longer ones are cut.
const MAX_REASON: usize = 2_000;

/// Where in `_meta` of a question that is asked again stands why the last answer was none.
const REFUSED_META: &str = "gander/refused";

/// Of what a client sent no more than this is told back.
const MAX_QUOTED: usize = 64;

/// The id of a question's request: the same at every client and after every restart.
pub(super) fn acp_question_request_id(question: QuestionId) -> RequestId {
    RequestId::text(question.to_string())
}

/// What a client's answer is, if it is no reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NoReply {
    /// The client leaves the question to others.
    Withdrew(Withdrawal),
    /// It answers with something that was not asked for.
    Unfit(String),
}

/// Sends the question, if this client can answer such a one. True if it is asked now.
pub(super) fn send_acp_question<C>(
    peer: &mut Peer<C>,
    abilities: ClientAbilities,
    view: &SessionView,
    question: &Question,
    context: C,
) -> bool {
    let id = acp_question_request_id(question.id);
    match acp_question_request(abilities, view, question) {
        Some((method, params)) => peer.send_request(id, method, &params, context),
        None => false,
    }
}

/// Sends the question once more, and why the last answer was none.
pub(super) fn resend_acp_question<C>(
    peer: &mut Peer<C>,
    abilities: ClientAbilities,
    view: &SessionView,
    question: &Question,
    why: &str,
    context: C,
) {
    if let Some((method, mut params)) = acp_question_request(abilities, view, question) {
        params["_meta"] = json!({ REFUSED_META: why });
        peer.send_request(acp_question_request_id(question.id), method, &params, context);
    }
}

pub(super) fn acp_question_request(
    abilities: ClientAbilities,
    view: &SessionView,
    question: &Question,
) -> Option<(&'static str, Value)> {
    const ELICITATION: &str = "elicitation/create";
    match &question.ask {
        QuestionKind::Choose { choices } => {
            let mut params = serde_json::to_value(acp_permission_request(view, question, choices)).ok()?;
            if let Some(words) = question.meta.as_deref().and_then(|meta| meta.get(AGENT_WORDS)) {
                merge_agent_words(&mut params, words);
            }
            Some(("session/request_permission", params))
        }
        QuestionKind::Form { schema } if abilities.forms => {
            Some((ELICITATION, form_question_params(view.session, question, schema)))
        }
        QuestionKind::Visit { url } if abilities.visits => {
            Some((ELICITATION, visit_question_params(view.session, question, url)))
        }
        QuestionKind::Form { .. } | QuestionKind::Visit { .. } => None,
    }
}

/// What the client's answer means. Only a clear choice is a reply.
pub(super) fn read_acp_reply(question: &Question, result: Result<&RawValue, Error>) -> Result<Reply, NoReply> {
    let json = result.map_err(|_| NoReply::Withdrew(Withdrawal::Failed))?.get();
    match &question.ask {
        QuestionKind::Choose { choices } => read_acp_permission_reply(question, choices, json),
        QuestionKind::Form { .. } | QuestionKind::Visit { .. } => read_acp_elicitation_reply(json),
    }
}

fn acp_permission_request(view: &SessionView, question: &Question, choices: &[Choice]) -> RequestPermissionRequest {
    let options = choices.iter().map(|choice| {
        PermissionOption::new(choice.id.clone(), choice.name.clone(), acp_question_option_kind(choice.kind))
    });
    RequestPermissionRequest::new(
        view.session.to_string(),
        acp_permission_question_subject(view, question),
        options.collect(),
    )
}

/// The tool call that the question is about; the protocol wants one even where there is none.
fn acp_permission_question_subject(view: &SessionView, question: &Question) -> ToolCallUpdate {
    let tool = question.call.and_then(|call| view.run.as_ref()?.find_tool_call(call));
    match (tool, question.call) {
        (Some(tool), _) => with_question_preview(acp_permission_tool_call(&tool.call), question),
        (None, Some(call)) => titled_question_tool_call(&call.to_string(), &question.title),
        (None, None) => match &question.subagent {
            Some(asked) => acp_subagent_question_tool_call(question, asked),
            None => titled_question_tool_call(&question.id.to_string(), &question.title),
        },
    }
}

/// What a sub-agent wants to do. The id is the question's: no client was told of the sub-agent's call.
fn acp_subagent_question_tool_call(question: &Question, asked: &SubagentCall) -> ToolCallUpdate {
    let mut shown = with_question_preview(acp_permission_tool_call(&asked.call), question);
    shown.fields.title = Some(question.title.clone());
    let meta = json!({ SUBAGENT_META: asked.agent });
    ToolCallUpdate::new(question.id.to_string(), shown.fields).meta(meta.as_object().cloned())
}

/// The call with what an approval would do: a diff, or a command and its folder.
fn with_question_preview(mut shown: ToolCallUpdate, question: &Question) -> ToolCallUpdate {
    let content = acp_tool_content(question.shown_preview());
    shown.fields.content = (!content.is_empty()).then_some(content);
    shown
}

fn titled_question_tool_call(id: &str, title: &str) -> ToolCallUpdate {
    ToolCallUpdate::new(id.to_owned(), ToolCallUpdateFields::new().title(title.to_owned()))
}

fn acp_question_option_kind(kind: ChoiceKind) -> PermissionOptionKind {
    match kind {
        ChoiceKind::AllowOnce => PermissionOptionKind::AllowOnce,
        ChoiceKind::AllowAlways => PermissionOptionKind::AllowAlways,
        ChoiceKind::RejectOnce => PermissionOptionKind::RejectOnce,
        ChoiceKind::RejectAlways => PermissionOptionKind::RejectAlways,
    }
}

fn form_question_params(session: SessionId, question: &Question, schema: &Value) -> Value {
    with_question_tool_call(
        json!({ "mode": "form", "message": question.title, "requestedSchema": schema, "sessionId": session }),
        question,
    )
}

fn visit_question_params(session: SessionId, question: &Question, url: &str) -> Value {
    let params = json!({
        "mode": "url", "message": question.title, "elicitationId": question.id, "url": url, "sessionId": session,
    });
    with_question_tool_call(params, question)
}

fn with_question_tool_call(mut params: Value, question: &Question) -> Value {
    if let Some(call) = question.call {
        params["toolCallId"] = json!(call);
    }
    params
}

fn read_acp_permission_reply(question: &Question, choices: &[Choice], json: &str) -> Result<Reply, NoReply> {
    let unreadable = |_| NoReply::Unfit("the result is no outcome of session/request_permission".to_owned());
    let response: RequestPermissionResponse = serde_json::from_str(json).map_err(unreadable)?;
    match response.outcome {
        RequestPermissionOutcome::Cancelled => Err(NoReply::Withdrew(Withdrawal::Cancelled)),
        RequestPermissionOutcome::Selected(selected) => {
            let id = &selected.option_id.0;
            let reply = read_choice_answer(choices, ChoiceAnswer::OptionId(id));
            let reply = reply.ok_or_else(|| unfit_acp_question_reply("no such option", id))?;
            let edited =
                response.meta.as_ref().and_then(|meta| meta.get(PLAN_META)).filter(|_| question.plan.is_some());
            if let Some(plan) = edited.filter(|_| reply.is_allowed()) {
                Plan::parse_edited(plan).map_err(NoReply::Unfit)?;
                return Ok(Reply::Filled { content: plan.clone() });
            }
            let reason = response.meta.as_ref().and_then(acp_question_reject_reason);
            match (&reply, reason) {
                (Reply::Chosen { kind: ChoiceKind::RejectOnce, .. }, Some(reason)) => Ok(Reply::Rejected { reason }),
                (_, Some(_) | None) => Ok(reply),
            }
        }
        // Open in the schema crate: an unknown outcome is never approval.
        _ => Err(NoReply::Unfit("no such outcome".to_owned())),
    }
}

/// Why a client rejects, if it says so. "Never" is a grant: it is stored as it was offered, without a reason.
fn acp_question_reject_reason(meta: &Meta) -> Option<RejectReason> {
    if meta.get(UNATTENDED_META) == Some(&Value::Bool(true)) {
        return Some(RejectReason::Unattended);
    }
    let said = meta.get(REASON_META)?.as_str()?.trim();
    (!said.is_empty()).then(|| RejectReason::Said(said[..said.floor_char_boundary(MAX_REASON)].to_owned()))
}

fn unfit_acp_question_reply(what: &str, said: &str) -> NoReply {
    NoReply::Unfit(format!("{what}: {}", &said[..said.floor_char_boundary(MAX_QUOTED)]))
}

fn read_acp_elicitation_reply(json: &str) -> Result<Reply, NoReply> {
    let unreadable = |_| NoReply::Unfit("the result is no action of elicitation/create".to_owned());
    let response: Value = serde_json::from_str(json).map_err(unreadable)?;
    match response["action"].as_str() {
        Some("accept") => Ok(Reply::Filled { content: response.get("content").cloned().unwrap_or_else(|| json!({})) }),
        Some("decline") => Ok(Reply::Declined),
        Some("cancel") => Err(NoReply::Withdrew(Withdrawal::Cancelled)),
        Some(other) => Err(unfit_acp_question_reply("no such action", other)),
        None => Err(NoReply::Unfit("the result has no action".to_owned())),
    }
}
