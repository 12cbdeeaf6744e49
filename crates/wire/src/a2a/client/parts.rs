//! Parts of messages as a client reads them, in the JSON of either version, and as it sends them.

use gander_domain::{Part, Reply, ToolEnd, ToolResult};
use serde_json::Value;

use super::AskedRemotely;
use crate::a2a::content::{a2a_prompt_part, a2a_visible_parts};
use crate::a2a::{A2aMessage, A2aPart, A2aPartContent, A2aRole, EXTENSION};

/// A part, read.
pub(super) enum ReadPart<'a> {
    Text { text: &'a str, is_thought: bool },
    Data(Value),
    File(Box<Part>),
}

pub(super) fn read_a2a_client_part(part: &Value) -> ReadPart<'_> {
    if let Some(text) = part["text"].as_str() {
        let metadata = &part["metadata"];
        let is_thought = metadata[EXTENSION]["kind"] == "thought" || metadata["adk_thought"] == true;
        return ReadPart::Text { text, is_thought };
    }
    let file = &part["file"];
    let text = |of: &Value, names: &[&str]| names.iter().find_map(|name| of[*name].as_str()).map(str::to_owned);
    let raw = text(part, &["raw"]).or_else(|| text(file, &["bytes", "fileWithBytes"])).map(A2aPartContent::Raw);
    let content =
        raw.or_else(|| text(part, &["url"]).or_else(|| text(file, &["uri", "fileWithUri"])).map(A2aPartContent::Url));
    let Some(content) = content else { return ReadPart::Data(part["data"].clone()) };
    let media_type = text(part, &["mediaType"]).or_else(|| text(file, &["mimeType", "mediaType"]));
    let filename = text(part, &["filename"]).or_else(|| text(file, &["name"]));
    let read = a2a_prompt_part(&A2aPart { content, metadata: None, filename, media_type }, &["*/*".to_owned()]);
    ReadPart::File(Box::new(read.unwrap_or_else(|_| Part::Unknown(part.clone()))))
}

/// The words of a message.
pub(super) fn a2a_client_parts_text(message: &Value) -> String {
    let parts = message["parts"].as_array().into_iter().flatten();
    parts.filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join("\n")
}

/// A message of the user's.
pub(super) fn a2a_client_prompt_parts(id: &str, context: Option<String>, parts: &[Part]) -> A2aMessage {
    A2aMessage {
        message_id: id.to_owned(),
        context_id: context,
        task_id: None,
        role: A2aRole::User,
        parts: a2a_visible_parts(parts),
        metadata: None,
        extensions: Vec::new(),
        reference_task_ids: Vec::new(),
    }
}

/// The choice in words, the content as data; a form of one text as that text.
pub(super) fn a2a_client_answer_parts(asked: &AskedRemotely, reply: &Reply) -> Vec<A2aPart> {
    match reply {
        Reply::Chosen { choice, .. } => vec![A2aPart::text(choice.clone())],
        Reply::Filled { content } => match content["text"].as_str().filter(|_| asked.theirs.is_none()) {
            Some(said) => vec![A2aPart::text(said)],
            None => vec![A2aPart::data(content.clone())],
        },
        Reply::Rejected { .. } | Reply::Declined | Reply::Cancelled | Reply::Interrupted | Reply::Superseded => {
            vec![A2aPart::text(if asked.is_choice { "no" } else { "decline" })]
        }
    }
}

/// What a function gave, as Google's ADK tells it over A2A.
pub(super) fn a2a_client_function_result_part(response: &Value) -> ToolResult {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    match response.get("error").filter(|error| !error.is_null()) {
        Some(error) => ToolResult::text(ToolEnd::Failed, text(error)),
        None => ToolResult::text(ToolEnd::Completed, text(response.get("result").unwrap_or(response))),
    }
}
