//! A request as a Responses call.

use std::borrow::Cow;
use std::sync::Arc;

use gander_domain::{Effort, Message, Part, ToolSpec};
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::WIRE;
use crate::Request;
use crate::encoded_history::write_encoded_items;
use crate::encoded_tools::{FixedParts, encode_tools};
use crate::history::{
    AgentTurn, ContentPiece, HistoryReader, ToolReturn, Turn, history_provider_call_id, join_history_text,
};
use crate::profile::{EffortStyle, Profile};

/// The body of the HTTP request without its conversation, whose list is the end of it.
pub fn encode_openai_responses_envelope(request: &Request, profile: &Profile, fixed: FixedParts<'_>) -> Vec<u8> {
    let info = &profile.info;
    let body = Body {
        model: &info.model,
        instructions: (!request.system.is_empty()).then_some(fixed.system),
        tools: fixed.tools,
        stream: true,
        store: false,
        include: if info.thinking { &["reasoning.encrypted_content"] } else { &[] },
        reasoning: openai_responses_reasoning_setting(request, profile),
        temperature: request.temperature,
        max_output_tokens: request.max_output,
        input: [],
    };
    serde_json::to_vec(&body).expect("strings and JSON values always serialise")
}

/// The list of tools.
pub fn encode_openai_responses_tools(tools: &[ToolSpec]) -> Box<RawValue> {
    encode_tools(tools.iter().map(Tool::from).collect())
}

/// The items of a piece of the conversation.
pub fn encode_openai_responses_conversation(messages: &[Arc<Message>], profile: &Profile, list: &mut Vec<u8>) {
    let turns = HistoryReader {
        wire: WIRE,
        info: &profile.info,
        native_ids: openai_responses_native_ids,
        make_id: history_provider_call_id,
    }
    .group_into_turns(messages);
    let mut input = Vec::with_capacity(turns.len());
    for turn in &turns {
        match turn {
            Turn::User(pieces) => {
                input.push(Item::Ours(Ours::Message { role: "user", content: encode_openai_responses_pieces(pieces) }))
            }
            Turn::Agent(turn) => encode_openai_responses_agent_turn(turn, &mut input),
            Turn::Tool(returned) => input.extend(returned.iter().map(encode_openai_responses_tool_output)),
        }
    }
    write_encoded_items(list, input);
}

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<&'a RawValue>,
    stream: bool,
    store: bool,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    include: &'static [&'static str],
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<Reasoning<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u32>,
    input: [(); 0],
}

#[derive(Serialize)]
struct Reasoning<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    effort: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<&'static str>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Item<'a> {
    Native(&'a Value),
    Ours(Ours<'a>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Ours<'a> {
    Message { role: &'static str, content: Vec<Content<'a>> },
    FunctionCall { call_id: &'a str, name: &'a str, arguments: String },
    FunctionCallOutput { call_id: &'a str, output: Output<'a> },
}

#[derive(Serialize)]
#[serde(untagged)]
enum Output<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<Content<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Content<'a> {
    InputText { text: &'a str },
    InputImage { image_url: String },
    OutputText { text: &'a str },
}

#[derive(Serialize)]
struct Tool<'a> {
    r#type: &'static str,
    name: &'a str,
    description: &'a str,
    parameters: &'a Value,
    /// Strict mode would demand schemas of a narrower kind than tools have.
    strict: bool,
}

impl<'a> From<&'a ToolSpec> for Tool<'a> {
    fn from(ToolSpec { name, description, schema }: &'a ToolSpec) -> Self {
        Self { r#type: "function", name, description, parameters: schema, strict: false }
    }
}

fn encode_openai_responses_agent_turn<'a>(turn: &'a AgentTurn<'a>, input: &mut Vec<Item<'a>>) {
    if let Some(items) = turn.native {
        return input.extend(items.iter().filter(|item| is_replayable_openai_item(item)).map(Item::Native));
    }
    let mut ids = turn.ids.iter();
    for part in turn.parts {
        match part {
            Part::Text { text } if !text.is_empty() => {
                let content = vec![Content::OutputText { text }];
                input.push(Item::Ours(Ours::Message { role: "assistant", content }));
            }
            Part::ToolUse { name, arguments, .. } => {
                let call_id = ids.next().map_or("", String::as_str);
                input.push(Item::Ours(Ours::FunctionCall { call_id, name, arguments: arguments.to_string() }));
            }
            Part::Text { .. }
            | Part::Thought { .. }
            | Part::Image { .. }
            | Part::Audio { .. }
            | Part::Link { .. }
            | Part::Resource { .. }
            | Part::ToolResult { .. }
            | Part::Unknown(_) => {}
        }
    }
}

/// Reasoning without its encrypted form is only a reference to something that was never stored.
fn is_replayable_openai_item(item: &Value) -> bool {
    item["type"] != "reasoning" || item["encrypted_content"].is_string()
}

fn encode_openai_responses_tool_output<'a>(returned: &'a ToolReturn<'a>) -> Item<'a> {
    let ToolReturn { id, pieces, .. } = returned;
    let has_image = pieces.iter().any(|piece| matches!(piece, ContentPiece::Image { .. }));
    let output = if has_image {
        Output::Parts(encode_openai_responses_pieces(pieces))
    } else {
        Output::Text(join_history_text(pieces))
    };
    Item::Ours(Ours::FunctionCallOutput { call_id: id, output })
}

fn encode_openai_responses_pieces<'a>(pieces: &'a [ContentPiece<'a>]) -> Vec<Content<'a>> {
    let content = pieces.iter().map(|piece| match piece {
        ContentPiece::Text(text) => Content::InputText { text },
        // No model of this wire says that it hears.
        ContentPiece::Audio { .. } => Content::InputText { text: "[a sound, which this wire does not carry]" },
        ContentPiece::Image { mime, data } => Content::InputImage { image_url: format!("data:{mime};base64,{data}") },
    });
    content.collect()
}

fn openai_responses_reasoning_setting<'a>(request: &Request, profile: &'a Profile) -> Option<Reasoning<'a>> {
    let effort = match request.effort.filter(|_| profile.quirks.effort == EffortStyle::Word) {
        None => None,
        Some(Effort::Off) => profile.quirks.effort_off.as_deref(),
        Some(Effort::Low) => Some("low"),
        Some(Effort::Medium) => Some("medium"),
        Some(Effort::High) => Some("high"),
    };
    let summary = (!profile.quirks.no_summary).then_some("auto");
    (profile.info.thinking && (effort.is_some() || summary.is_some())).then_some(Reasoning { effort, summary })
}

fn openai_responses_native_ids(items: &[Value]) -> Vec<String> {
    let calls = items.iter().filter(|item| item["type"] == "function_call");
    calls.map(|call| call["call_id"].as_str().unwrap_or_default().to_owned()).collect()
}
