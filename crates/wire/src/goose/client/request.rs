//! Bodies of requests to a goosed.

use gander_domain::{ChoiceKind, Message, Part, Reply, Timestamp, ToolCallId};
use serde_json::{Map, Value, json};

use super::PAYLOAD_NAME;
use crate::goose::content::{goose_content_object, goose_tool_response_content};
use crate::goose::types::goose_epoch_seconds;

/// Which model answers, and how.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProviderChoice {
    /// `provider/model`, or a model alone.
    pub model: Option<String>,
    /// Generation parameters under their own names.
    pub parameters: Map<String, Value>,
}

/// `POST /agent/start`.
pub fn goosed_start_body(folder: &str, recipe: Option<&Value>) -> Value {
    match recipe {
        Some(recipe) => json!({ "working_dir": folder, "recipe": recipe }),
        None => json!({ "working_dir": folder }),
    }
}

/// `POST /agent/resume`.
pub fn goosed_resume_body(session: &str) -> Value {
    json!({ "session_id": session, "load_model_and_extensions": true })
}

/// `POST /agent/stop`.
pub fn goosed_stop_body(session: &str) -> Value {
    json!({ "session_id": session })
}

/// `POST /agent/update_session`.
pub fn goosed_update_session_body(session: &str, mode: &str) -> Value {
    json!({ "session_id": session, "goose_mode": mode })
}

/// `POST /agent/update_provider`; none if there is nothing to tell.
///
/// A model without a provider is one of the provider that the session has.
pub fn goosed_update_provider_body(session: &str, wanted: &ProviderChoice, current: Option<&str>) -> Option<Value> {
    let ProviderChoice { model, parameters } = wanted;
    let (provider, model) = match model.as_deref().map(|model| model.split_once('/').ok_or(model)) {
        Some(Ok((provider, model))) => (provider, Some(model)),
        Some(Err(model)) => (current?, Some(model)),
        None if parameters.is_empty() => return None,
        None => (current?, None),
    };
    let mut body = json!({ "session_id": session, "provider": provider });
    let limit = parameters.get("context_limit").filter(|limit| limit.is_u64());
    let params: Map<String, Value> = parameters
        .iter()
        .filter(|(key, _)| *key != "context_limit")
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    let more = [
        ("model", model.map(Value::from)),
        ("context_limit", limit.cloned()),
        ("request_params", (!params.is_empty()).then_some(Value::Object(params))),
    ];
    for (key, value) in more {
        if let Some(value) = value {
            body[key] = value;
        }
    }
    Some(body)
}

/// `POST /reply`.
pub fn goosed_reply_body(session: &str, message: Value) -> Value {
    json!({ "session_id": session, "user_message": message })
}

/// A prompt. Results of tools go under the ids by which goose knows their calls.
pub fn goosed_prompt_message(parts: &[Part], history: &[impl AsRef<Message>], at: Timestamp) -> Value {
    let pieces = parts.iter().map(|part| match part {
        Part::ToolResult { call, result } => goose_tool_response_content(&goosed_call_id(history, *call), result),
        Part::Unknown(value) => goosed_function_response(value, history).unwrap_or_else(|| value.clone()),
        Part::Text { .. }
        | Part::Thought { .. }
        | Part::Image { .. }
        | Part::Audio { .. }
        | Part::Link { .. }
        | Part::Resource { .. }
        | Part::ToolUse { .. } => goose_content_object(part),
    });
    goosed_user_message(pieces.collect(), at)
}

/// The answer to a form, as the message that goose routes to whoever asked.
pub fn goosed_elicitation_message(id: &str, data: &Value, at: Timestamp) -> Value {
    let data = json!({ "actionType": "elicitationResponse", "id": id, "user_data": data });
    goosed_user_message(vec![json!({ "type": "actionRequired", "data": data })], at)
}

/// `POST /action-required/tool-confirmation`, and `/confirm` before 1.16.
pub fn goosed_confirmation_body(session: &str, id: &str, action: &str) -> Value {
    json!({ "id": id, "principalType": "Tool", "action": action, "sessionId": session })
}

/// What an answer means to goose.
pub fn goosed_confirmation_action(reply: &Reply) -> &'static str {
    match reply {
        Reply::Chosen { kind: ChoiceKind::AllowOnce, .. } | Reply::Filled { .. } => "allow_once",
        Reply::Chosen { kind: ChoiceKind::AllowAlways, .. } => "always_allow",
        Reply::Chosen { kind: ChoiceKind::RejectOnce, .. } | Reply::Rejected { .. } | Reply::Declined => "deny_once",
        Reply::Chosen { kind: ChoiceKind::RejectAlways, .. } => "always_deny",
        Reply::Cancelled | Reply::Interrupted | Reply::Superseded => "cancel",
    }
}

fn goosed_user_message(content: Vec<Value>, at: Timestamp) -> Value {
    let metadata = json!({ "userVisible": true, "agentVisible": true });
    json!({ "id": null, "role": "user", "created": goose_epoch_seconds(at), "content": content, "metadata": metadata })
}

/// What a client says a function gave, as the message of a tool that has run.
fn goosed_function_response(value: &Value, history: &[impl AsRef<Message>]) -> Option<Value> {
    let given = value.get("functionResponse").or_else(|| value.get("function_response"))?;
    let id = given["id"].as_str()?;
    let id = id.parse().map_or_else(|_| id.to_owned(), |call| goosed_call_id(history, call));
    let response = given.get("response").cloned().unwrap_or(Value::Null);
    let failed = response.get("error").is_some_and(|error| !error.is_null());
    let text = response.as_str().map_or_else(|| response.to_string(), str::to_owned);
    let mut value = json!({ "content": [{ "type": "text", "text": text }], "isError": failed });
    if response.is_object() {
        value["structuredContent"] = response;
    }
    Some(json!({ "type": "toolResponse", "id": id, "toolResult": { "status": "success", "value": value } }))
}

/// The id by which goose knows a call.
fn goosed_call_id(history: &[impl AsRef<Message>], wanted: ToolCallId) -> String {
    let found = history.iter().rev().find_map(|message| {
        let message = message.as_ref();
        let ids = message.native.as_ref().filter(|native| native.wire == PAYLOAD_NAME)?.items["calls"].as_array()?;
        let uses = message.parts.iter().filter_map(|part| match part {
            Part::ToolUse { call, .. } => Some(*call),
            Part::Text { .. }
            | Part::Thought { .. }
            | Part::Image { .. }
            | Part::Audio { .. }
            | Part::Link { .. }
            | Part::Resource { .. }
            | Part::ToolResult { .. }
            | Part::Unknown(_) => None,
        });
        let mut pairs = uses.zip(ids);
        pairs.find(|(call, _)| *call == wanted)?.1.as_str().map(str::to_owned)
    });
    found.unwrap_or_else(|| wanted.to_string())
}
