//! A request as a chat completion.

use std::borrow::Cow;

use gander_domain::{Effort, ToolCallId};
use serde::Serialize;
use serde_json::{Map, Value};

use super::WIRE;
use crate::model::history::{AgentTurn, Piece, Reader, Returned, Turn, joined, long_id, tool_uses};
use crate::model::wire::{EffortStyle, Profile, Quirks};
use crate::model::{Request, ToolSpec};

/// The body of the HTTP request.
pub fn encode(request: &Request, profile: &Profile) -> Vec<u8> {
    let Profile { info, quirks } = profile;
    let make_id = if quirks.short_tool_ids { short_id } else { long_id };
    let turns = Reader { wire: WIRE, info, native_ids, make_id }.turns(&request.messages);
    let mut messages = Vec::with_capacity(turns.len() + 1);
    if !request.system.is_empty() {
        messages.push(Message::plain("system", Content::Text(request.system.as_str().into())));
    }
    for turn in &turns {
        match turn {
            Turn::User(pieces) => messages.push(Message::plain("user", content(pieces))),
            Turn::Agent(turn) => messages.push(agent(turn, quirks)),
            Turn::Tool(returned) => messages.extend(tool(returned)),
        }
    }
    let limit = request.max_output;
    let body = Body {
        model: &info.model,
        messages,
        tools: request.tools.iter().map(Tool::from).collect(),
        stream: true,
        stream_options: (!quirks.no_stream_options).then_some(StreamOptions { include_usage: true }),
        max_tokens: limit.filter(|_| !quirks.max_completion_tokens),
        max_completion_tokens: limit.filter(|_| quirks.max_completion_tokens),
        reasoning_effort: effort(request, profile, EffortStyle::Word),
        reasoning: effort(request, profile, EffortStyle::Object).map(|effort| Reasoning { effort }),
    };
    serde_json::to_vec(&body).expect("strings and JSON values always serialise")
}

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    messages: Vec<Message<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<StreamOptions>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<Reasoning<'a>>,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
struct Reasoning<'a> {
    effort: &'a str,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Message<'a> {
    Native(Map<String, Value>),
    Ours {
        role: &'static str,
        content: Content<'a>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<ToolCall<'a>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        tool_call_id: Option<&'a str>,
    },
}

#[derive(Serialize)]
#[serde(untagged)]
enum Content<'a> {
    Text(Cow<'a, str>),
    Parts(Vec<ContentPart<'a>>),
    Nothing(()),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ContentPart<'a> {
    Text { text: &'a str },
    ImageUrl { image_url: ImageUrl },
}

#[derive(Serialize)]
struct ImageUrl {
    url: String,
}

#[derive(Serialize)]
struct ToolCall<'a> {
    id: &'a str,
    r#type: &'static str,
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    arguments: String,
}

#[derive(Serialize)]
struct Tool<'a> {
    r#type: &'static str,
    function: ToolFunction<'a>,
}

#[derive(Serialize)]
struct ToolFunction<'a> {
    name: &'a str,
    description: &'a str,
    parameters: &'a Value,
}

impl<'a> Message<'a> {
    fn plain(role: &'static str, content: Content<'a>) -> Self {
        Self::Ours { role, content, tool_calls: Vec::new(), tool_call_id: None }
    }
}

impl<'a> From<&'a ToolSpec> for Tool<'a> {
    fn from(ToolSpec { name, description, schema }: &'a ToolSpec) -> Self {
        Self { r#type: "function", function: ToolFunction { name, description, parameters: schema } }
    }
}

fn agent<'a>(turn: &'a AgentTurn<'a>, quirks: &Quirks) -> Message<'a> {
    if let Some(Value::Object(native)) = turn.native.and_then(<[Value]>::first) {
        return Message::Native(replayed(native, quirks));
    }
    let text = gander_domain::message::plain_text(turn.parts);
    let tool_calls = tool_uses(turn.parts)
        .zip(&turn.ids)
        .map(|((_, name, arguments), id)| ToolCall {
            id,
            r#type: "function",
            function: Function { name, arguments: arguments.to_string() },
        })
        .collect();
    let content = if text.is_empty() { Content::Nothing(()) } else { Content::Text(text.into()) };
    Message::Ours { role: "assistant", content, tool_calls, tool_call_id: None }
}

/// Most servers refuse or misread reasoning that is sent back; a few insist on it.
fn replayed(native: &Map<String, Value>, quirks: &Quirks) -> Map<String, Value> {
    let is_reasoning = |field: &str| field.starts_with("reasoning");
    let kept = native.iter().filter(|(field, _)| quirks.replay_reasoning || !is_reasoning(field));
    kept.map(|(field, value)| (field.clone(), value.clone())).collect()
}

/// A tool's answer is text on this wire: its pictures follow as if a person had sent them.
fn tool<'a>(returned: &'a [Returned<'a>]) -> impl Iterator<Item = Message<'a>> {
    let texts = returned.iter().map(|Returned { id, pieces, .. }| {
        let text = joined(pieces);
        let text = if text.is_empty() { "see the image below".into() } else { text };
        Message::Ours { role: "tool", content: Content::Text(text), tool_calls: Vec::new(), tool_call_id: Some(id) }
    });
    let images: Vec<_> = returned.iter().flat_map(|returned| &returned.pieces).filter_map(image).collect();
    let images = (!images.is_empty()).then(|| Message::plain("user", Content::Parts(images)));
    texts.chain(images)
}

fn content<'a>(pieces: &'a [Piece<'a>]) -> Content<'a> {
    if pieces.iter().all(|piece| matches!(piece, Piece::Text(_))) {
        return Content::Text(joined(pieces));
    }
    Content::Parts(pieces.iter().filter_map(|piece| image(piece).or_else(|| text(piece))).collect())
}

fn image<'a>(piece: &Piece<'a>) -> Option<ContentPart<'a>> {
    match piece {
        Piece::Image { mime, data } => {
            Some(ContentPart::ImageUrl { image_url: ImageUrl { url: format!("data:{mime};base64,{data}") } })
        }
        Piece::Text(_) => None,
    }
}

fn text<'a>(piece: &'a Piece<'a>) -> Option<ContentPart<'a>> {
    match piece {
        Piece::Text(text) => Some(ContentPart::Text { text }),
        Piece::Image { .. } => None,
    }
}

fn effort<'a>(request: &Request, profile: &'a Profile, style: EffortStyle) -> Option<&'a str> {
    if !profile.info.thinking || profile.quirks.effort != style {
        return None;
    }
    match request.effort? {
        Effort::Off => profile.quirks.effort_off.as_deref(),
        Effort::Low => Some("low"),
        Effort::Medium => Some("medium"),
        Effort::High => Some("high"),
    }
}

fn native_ids(items: &[Value]) -> Vec<String> {
    let calls = items.first().and_then(|message| message.get("tool_calls")).and_then(Value::as_array);
    let ids = calls.into_iter().flatten().map(|call| call.get("id").and_then(Value::as_str));
    ids.map(|id| id.unwrap_or_default().to_owned()).collect()
}

/// The random end of the id: Mistral's API takes exactly nine letters and digits.
fn short_id(call: ToolCallId) -> String {
    let mut id = call.uuid().simple().to_string();
    id.split_off(id.len() - 9)
}
