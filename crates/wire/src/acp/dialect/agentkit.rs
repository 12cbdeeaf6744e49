//! The dialect of the Go acp package.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use super::{
    dialect_block_text, dialect_result_object, dialect_session_update, dialect_stop_of_failed_run,
    dialect_stop_of_unknown_command,
};
use crate::key_case::camel_case;

/// Tool calls without an end: each update says again what they are.
pub(super) type OpenToolCalls = HashMap<String, Map<String, Value>>;

/// The version of a server that is asked by a client without one.
const DEFAULT_VERSION: &str = "2025-01-01";

/// One message.
pub(super) fn translate_to_agentkit(
    message: &mut Value,
    metadata: Option<&Value>,
    tools: &mut OpenToolCalls,
) -> Option<()> {
    dialect_stop_of_failed_run(message);
    dialect_stop_of_unknown_command(message);
    if let Some(update) = dialect_session_update(message) {
        *update = agentkit_update(std::mem::take(update), tools)?;
    } else if let Some(result) = dialect_result_object(message) {
        agentkit_result(result, metadata);
    }
    Some(())
}

/// What the paper names stands beside what version 1 names.
fn agentkit_result(result: &mut Map<String, Value>, metadata: Option<&Value>) {
    if let Some(stop) = result.get("stopReason").and_then(Value::as_str) {
        let stop = json!(camel_case(stop));
        result.insert("stopReason".to_owned(), stop);
    }
    if let Some(capabilities) = result.get("agentCapabilities").cloned() {
        result.insert("capabilities".to_owned(), capabilities);
        if !result["protocolVersion"].is_string() {
            result.insert("protocolVersion".to_owned(), json!(DEFAULT_VERSION));
        }
    }
    if let Some(session) = result.get("sessionId").cloned() {
        let mut session = json!({ "id": session });
        if let Some(metadata) = metadata {
            session["metadata"] = metadata.clone();
        }
        result.insert("session".to_owned(), session);
    }
}

fn agentkit_update(mut update: Map<String, Value>, tools: &mut OpenToolCalls) -> Option<Map<String, Value>> {
    let kind = update.remove("sessionUpdate")?;
    let chunk = |kind: &str, role: &str| {
        let text = update.get("content").and_then(dialect_block_text)?;
        Some(json!({ "type": kind, "role": role, "chunk": text }))
    };
    let told = match kind.as_str()? {
        "agent_message_chunk" => chunk("messageChunk", "assistant"),
        "user_message_chunk" => chunk("messageChunk", "user"),
        "agent_thought_chunk" => chunk("thoughtChunk", "assistant"),
        "tool_call" | "tool_call_update" => {
            Some(json!({ "type": "toolCall", "toolCall": agentkit_tool_call(&update, tools)? }))
        }
        "plan" => Some(json!({ "type": "planUpdate", "entries": update.get("entries") })),
        other => {
            update.insert("type".to_owned(), json!(camel_case(other)));
            return Some(update);
        }
    };
    told.and_then(|told| told.as_object().cloned())
}

/// A call as far as it is known, with its input and output as text.
fn agentkit_tool_call(update: &Map<String, Value>, tools: &mut OpenToolCalls) -> Option<Value> {
    let id = update.get("toolCallId")?.as_str()?;
    let known = tools.entry(id.to_owned()).or_default();
    let before = known.clone();
    known.insert("id".to_owned(), json!(id));
    let name = update.get("name").or_else(|| update.get("title").filter(|_| !known.contains_key("name")));
    let output = update.get("content").and_then(Value::as_array).map(|content| json!(agentkit_tool_text(content)));
    let input =
        update.get("rawInput").map(|input| json!(input.as_str().map_or_else(|| input.to_string(), str::to_owned)));
    let status = match update.get("status").and_then(Value::as_str) {
        Some("completed") => "completed",
        Some("failed") => "error",
        Some(_) | None => "running",
    };
    known.extend(name.map(|name| ("name".to_owned(), name.clone())));
    known.insert("status".to_owned(), json!(status));
    known.extend(input.map(|input| ("input".to_owned(), input)));
    known.extend(output.map(|output| ("output".to_owned(), output)));
    if *known == before {
        return None; // `pending` and `in_progress` are one to this client
    }
    let told = Value::Object(known.clone());
    if status != "running" {
        tools.remove(id);
    }
    Some(told)
}

/// What a tool shows, as text: of a change the new text, of a terminal nothing.
fn agentkit_tool_text(content: &[Value]) -> String {
    let text =
        |item: &Value| dialect_block_text(&item["content"]).or_else(|| item["newText"].as_str()).map(str::to_owned);
    content.iter().filter_map(text).collect::<Vec<_>>().join("\n")
}
