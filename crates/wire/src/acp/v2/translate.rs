//! Messages of version 1 in the words of version 2.

use serde_json::{Map, Value, json};

use super::updates::v2_thought_id;
use crate::acp::slash_commands;
use gander_domain::git_patch::git_patch;

/// The one plan that a session has.
const PLAN_ID: &str = "plan";

/// One message; `None` for what version 2 tells otherwise.
pub(in crate::acp) fn translate_to_v2(message: &mut Value) -> Option<()> {
    match message["method"].as_str() {
        Some("session/update") => translate_update_to_v2(message["params"]["update"].as_object_mut()?),
        Some("session/request_permission") => translate_permission_to_v2(&mut message["params"]),
        Some(_) => Some(()),
        None => {
            translate_result_to_v2(message);
            Some(())
        }
    }
}

fn translate_update_to_v2(update: &mut Map<String, Value>) -> Option<()> {
    let kind = update.get("sessionUpdate")?.as_str()?.to_owned();
    match kind.as_str() {
        "agent_thought_chunk" => {
            let id = v2_thought_id(update.get("messageId")?.as_str()?);
            update.insert("messageId".to_owned(), json!(id));
        }
        "tool_call" => {
            update.insert("sessionUpdate".to_owned(), json!("tool_call_update"));
            update.entry("status").or_insert(json!("pending"));
            translate_tool_content_to_v2(update);
        }
        "tool_call_update" => translate_tool_content_to_v2(update),
        "plan" => {
            let entries = update.remove("entries");
            *update = Map::from_iter([
                ("sessionUpdate".to_owned(), json!("plan_update")),
                ("plan".to_owned(), json!({ "type": "items", "planId": PLAN_ID, "entries": entries })),
            ]);
        }
        "current_mode_update" => return None, // a config option like any other
        "config_option_update" => translate_config_options_to_v2(update),
        "available_commands_update" => translate_tool_inputs_to_v2(update),
        _ => {}
    }
    Some(())
}

fn translate_result_to_v2(message: &mut Value) {
    let Some(result) = message.get_mut("result").and_then(Value::as_object_mut) else { return };
    let opened = result.remove("modes").is_some() || result.contains_key("sessionId");
    translate_config_options_to_v2(result);
    if opened {
        let commands = serde_json::to_value(slash_commands::available_slash_commands()).unwrap_or_default();
        result.insert("availableCommands".to_owned(), commands["availableCommands"].clone());
        translate_tool_inputs_to_v2(result);
    }
}

fn translate_config_options_to_v2(members: &mut Map<String, Value>) {
    for option in members.get_mut("configOptions").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(option) = option.as_object_mut() {
            let renamed = std::mem::take(option).into_iter();
            *option =
                renamed.map(|(key, value)| (if key == "id" { "configId".to_owned() } else { key }, value)).collect();
        }
    }
}

fn translate_tool_inputs_to_v2(members: &mut Map<String, Value>) {
    for command in members.get_mut("availableCommands").and_then(Value::as_array_mut).into_iter().flatten() {
        command["type"] = json!("command");
        if let Some(hint) = command.get("input").and_then(|input| input.get("hint")).cloned() {
            command["input"] = json!({ "type": "text", "hint": hint });
        }
    }
}

fn translate_tool_content_to_v2(update: &mut Map<String, Value>) {
    for item in update.get_mut("content").and_then(Value::as_array_mut).into_iter().flatten() {
        if item["type"] == "diff" {
            let text = |key: &str| item[key].as_str();
            *item = translate_diff_to_v2(
                text("path").unwrap_or_default(),
                text("oldText"),
                text("newText").unwrap_or_default(),
            );
        }
    }
}

fn translate_diff_to_v2(path: &str, old: Option<&str>, new: &str) -> Value {
    let operation = if old.is_some() { "modify" } else { "add" };
    let patch = git_patch(path, old, new);
    json!({
        "type": "diff", "changes": [{ "operation": operation, "path": path }],
        "patch": { "format": "git_patch", "text": patch },
    })
}

/// The question has a title of its own; the tool call is what it is about.
fn translate_permission_to_v2(params: &mut Value) -> Option<()> {
    let mut call = params.as_object_mut()?.remove("toolCall")?;
    translate_tool_content_to_v2(call.as_object_mut()?);
    let title = call.get("title").cloned().unwrap_or_else(|| json!("May this run?"));
    let (session, options) = (params["sessionId"].take(), params["options"].take());
    *params = json!({
        "sessionId": session, "title": title, "subject": { "type": "tool_call", "toolCall": call }, "options": options,
    });
    Some(())
}
