//! Pieces of content, one by one, both ways.

use crate::check;
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
pub(super) fn goose_action_required_content(question: &Question, tool: Option<(&str, &Value)>) -> Value {
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

/// Content without tools. What nobody here knows is kept as it came.
pub(super) fn read_goose_plain_content(piece: &Value) -> Part {
    let text = |key: &str| piece[key].as_str().map(str::to_owned);
    let known = match piece["type"].as_str() {
        Some("text") => text("text").map(|text| Part::Text { text: goose_text_without_tags(&text) }),
        Some("thinking" | "reasoning") => text("thinking").or_else(|| text("text")).map(|text| Part::Thought { text }),
        Some("image") => text("data")
            .zip(text("mimeType").or_else(|| text("mime_type")))
            .map(|(data, mime)| Part::Image { mime, data, uri: None }),
        Some(_) | None => None,
    };
    known.unwrap_or_else(|| Part::Unknown(piece.clone()))
}

/// A stored history comes in as it is, but what is no picture is not shown to a model as one.
pub(super) fn read_goose_stored_content(piece: &Value) -> Part {
    Some(read_goose_plain_content(piece))
        .filter(|part| check::check_media(part).is_ok())
        .unwrap_or_else(|| Part::Unknown(piece.clone()))
}

/// Unicode tag characters hide text from people: they are taken out, as goose does.
fn goose_text_without_tags(text: &str) -> String {
    text.chars().filter(|letter| !('\u{E0000}'..='\u{E007F}').contains(letter)).collect()
}

/// `{status, value}`, or the bare value as adk2goose and old sessions have it.
pub(super) fn unwrap_goose_content_outcome(outcome: &Value) -> &Value {
    outcome.get("value").filter(|_| outcome.get("status").is_some()).unwrap_or(outcome)
}

pub(super) fn read_goose_tool_result(outcome: &Value) -> ToolResult {
    if let Some(error) = outcome["error"].as_str() {
        return ToolResult::text(ToolEnd::Failed, error);
    }
    let value = unwrap_goose_content_outcome(outcome);
    let pieces = value.as_array().or_else(|| value["content"].as_array()).cloned().unwrap_or_default();
    let end = if value["isError"] == true { ToolEnd::Failed } else { ToolEnd::Completed };
    let content = pieces.iter().map(|piece| ToolContent::Part { part: read_goose_stored_content(piece) }).collect();
    ToolResult { end, content, raw: value.get("structuredContent").filter(|raw| !raw.is_null()).cloned() }
}

/// The result of a tool that a client ran, as the model is told of it in a prompt.
pub(super) fn goose_tool_result_content_text(piece: &Value) -> String {
    let ToolResult { content, raw, .. } = read_goose_tool_result(&piece["toolResult"]);
    let texts: Vec<String> = content
        .iter()
        .filter_map(|content| match content {
            ToolContent::Part { part: Part::Text { text } } => Some(text.clone()),
            ToolContent::Part { .. } | ToolContent::Diff { .. } | ToolContent::Terminal { .. } => None,
        })
        .chain(raw.map(|raw| raw.to_string()))
        .collect();
    format!("[result of tool call {}]\n{}", piece["id"].as_str().unwrap_or_default(), texts.join("\n"))
}
