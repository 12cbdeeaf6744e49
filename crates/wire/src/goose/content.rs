//! Pieces of content, one by one, both ways.

use crate::preview::question_with_preview;
use gander_domain::{Part, Question, QuestionKind, ToolContent, ToolEnd, ToolResult};
use serde_json::{Map, Value, json};

/// Under this name a message keeps the very form in which goose wrote it.
pub(super) const PAYLOAD_NAME: &str = "goose";

/// A part as goose writes it; nothing for what goose has no form of and people need not see.
pub(super) fn goose_content_object(part: &Part) -> Value {
    match part {
        Part::Text { text } => json!({ "type": "text", "text": text }),
        Part::Thought { text } => json!({ "type": "thinking", "thinking": text, "signature": "" }),
        Part::Image { mime, data, .. } => json!({ "type": "image", "data": data, "mimeType": mime }),
        Part::Audio { mime, .. } => json!({ "type": "text", "text": format!("[audio: {mime}]") }),
        Part::Link { uri, name, .. } => json!({ "type": "text", "text": format!("[{name}]({uri})") }),
        Part::Resource { uri, text, .. } => {
            json!({ "type": "text", "text": text.as_ref().map_or(uri.clone(), |text| format!("{uri}\n{text}")) })
        }
        Part::ToolUse { call, name, arguments } => {
            let value = json!({ "name": name, "arguments": arguments });
            json!({ "type": "toolRequest", "id": call, "toolCall": { "status": "success", "value": value } })
        }
        Part::ToolResult { call, result } => goose_tool_response_content(&call.to_string(), result),
        Part::Unknown(value) => value.clone(),
    }
}

/// What a tool gave back.
pub(super) fn goose_tool_response_content(call: &str, result: &ToolResult) -> Value {
    let content: Vec<Value> = result.content.iter().map(goose_tool_content_object).collect();
    let mut value = json!({ "content": content, "isError": result.end != ToolEnd::Completed });
    if let Some(raw) = result.raw.as_ref().filter(|raw| raw.is_object()) {
        value["structuredContent"] = raw.clone();
    }
    json!({ "type": "toolResponse", "id": call, "toolResult": { "status": "success", "value": value } })
}

/// A question that waits, as the content that asks for it.
pub(super) fn action_required_content(question: &Question, tool: Option<(&str, &Value)>) -> Value {
    let data = match &question.ask {
        QuestionKind::Choose { .. } => {
            let (name, arguments) = tool.map_or(("", json!({})), |(name, arguments)| (name, arguments.clone()));
            let prompt = question_with_preview(question);
            // clients look for the tool's own id, to show the question beside it
            let id = question.call.map_or(question.id.to_string(), |call| call.to_string());
            json!({
                "actionType": "toolConfirmation", "id": id, "toolName": name,
                "arguments": if arguments.is_object() { arguments } else { json!({}) }, "prompt": prompt,
            })
        }
        QuestionKind::Form { schema } => json!({
            "actionType": "elicitation", "id": question.id, "message": question.title, "requested_schema": schema,
        }),
        QuestionKind::Visit { url } => json!({
            "actionType": "elicitation", "id": question.id, "message": format!("{}: {url}", question.title),
            "requested_schema": { "type": "object", "properties": {} },
        }),
    };
    json!({ "type": "actionRequired", "data": data })
}

pub(super) fn goose_tool_content_object(content: &ToolContent) -> Value {
    match content {
        ToolContent::Part { part: Part::Image { mime, data, .. } } => {
            json!({ "type": "image", "data": data, "mimeType": mime })
        }
        ToolContent::Part { part: Part::Resource { uri, mime, text, blob } } => {
            let mut resource = Map::from_iter([("uri".to_owned(), json!(uri))]);
            let more = [("mimeType", mime), ("text", text), ("blob", blob)];
            resource.extend(more.into_iter().filter_map(|(key, value)| Some((key.to_owned(), json!(value.as_ref()?)))));
            json!({ "type": "resource", "resource": resource })
        }
        ToolContent::Part { part } => {
            let shown = self::goose_content_object(part);
            json!({ "type": "text", "text": shown.get("text").or_else(|| shown.get("thinking")).cloned().unwrap_or_else(|| json!(shown.to_string())) })
        }
        ToolContent::Diff { path, new, .. } => json!({ "type": "text", "text": format!("{path}\n{new}") }),
        ToolContent::Terminal { id } => json!({ "type": "text", "text": format!("[terminal: {id}]") }),
    }
}
