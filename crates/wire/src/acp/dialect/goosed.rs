//! The legacy dialect of goose's unified server.

use gander_domain::{AgentMode, Mode, SessionCatalog, SessionId, SessionView};
use serde_json::{Map, Value, json};

use super::{dialect_block_text, dialect_session_update, key_case};
use crate::acp::abilities::ClientAbilities;
use crate::acp::config_options::{config_options, current_mode_option};
use crate::acp::initialize;
use crate::acp::types::AgentProfile;
use crate::key_case::snake_case;

/// The version that the branch answered to everybody.
const LEGACY_VERSION: &str = "2024-11-05";

/// The answer to `initialize`: that of version 1, and beside it what the branch said about the session it made.
pub(in crate::acp) fn goosed_initialize_result(
    profile: &AgentProfile,
    view: &SessionView,
    catalog: &SessionCatalog,
) -> Value {
    let mut hello = serde_json::to_value(initialize::v1_initialize_response(profile, ClientAbilities::default()))
        .unwrap_or_default();
    let capabilities = key_case::rename_keys_deep(hello["agentCapabilities"].clone(), snake_case);
    let shown = |way: &AgentMode| {
        let Mode { name, description, category, .. } = &way.mode;
        json!({ "id": way.name, "name": name, "description": description, "category": category })
    };
    let modes: Vec<Value> = catalog.roster.available_modes(&view.settings).map(shown).collect();
    hello["protocol_version"] = json!(LEGACY_VERSION);
    hello["_session_id"] = json!(view.session);
    hello["agent_capabilities"] = capabilities;
    hello["agent_info"] = hello["agentInfo"].clone();
    hello["modes"] = json!({ "available": modes, "default": current_mode_option(catalog, &view.settings) });
    hello["config_options"] = config_options(catalog, &view.settings)
        .into_iter()
        .filter_map(|option| serde_json::to_value(option).ok())
        .map(goosed_config_option)
        .collect();
    hello
}

/// One message; `None` for those that the branch had no words for and no client could ignore.
pub(super) fn translate_to_goosed(message: &mut Value, session: Option<SessionId>) -> Option<()> {
    if let Some(update) = dialect_session_update(message) {
        *update = goosed_update(std::mem::take(update))?;
        message["params"] = key_case::rename_keys_deep(message["params"].take(), snake_case);
    } else if message.get("result").is_some_and(|result| result.get("_session_id").is_none()) {
        let mut result = key_case::rename_keys_deep(message["result"].take(), snake_case);
        if let (Some(session), Some(_), None) = (session, result.get("modes"), result.get("session_id")) {
            result["session_id"] = json!(session);
        }
        message["result"] = result;
    }
    Some(())
}

fn goosed_config_option(mut option: Value) -> Value {
    option["label"] = option["name"].clone();
    option["default"] = option["currentValue"].clone();
    for choice in option["options"].as_array_mut().into_iter().flatten() {
        choice["label"] = choice["name"].clone();
    }
    key_case::rename_keys_deep(option, snake_case)
}

/// What a person said has a name of its own, so that nobody takes it for the agent's words.
fn goosed_update(mut update: Map<String, Value>) -> Option<Map<String, Value>> {
    let kind = update.remove("sessionUpdate")?;
    let words = |kind: &str| {
        let text = update.get("content").and_then(dialect_block_text)?;
        Some(json!({ "type": kind, "text": text }))
    };
    let told = match kind.as_str()? {
        "agent_message_chunk" => words("text"),
        "agent_thought_chunk" => words("thinking"),
        "user_message_chunk" => words("user_text"),
        "tool_call" => Some(goosed_tool_call(&update)),
        "tool_call_update" => goosed_tool_result(&update),
        _ => {
            update.insert("type".to_owned(), kind);
            return Some(update);
        }
    };
    told.and_then(|told| told.as_object().cloned())
}

fn goosed_tool_call(update: &Map<String, Value>) -> Value {
    let name = update.get("name").or_else(|| update.get("title"));
    let call = json!({
        "id": update.get("toolCallId"), "name": name, "status": "running",
        "title": update.get("title"), "arguments": update.get("rawInput"),
    });
    json!({ "type": "tool_call", "tool_call": call })
}

/// The branch told only of ends.
fn goosed_tool_result(update: &Map<String, Value>) -> Option<Value> {
    let status = update.get("status")?.as_str().filter(|status| ["completed", "failed"].contains(status))?;
    Some(json!({
        "type": "tool_result", "tool_call_id": update.get("toolCallId"), "status": status,
        "content": update.get("content").cloned().unwrap_or_else(|| json!([])),
    }))
}
