//! A request as a chat completion.

use std::borrow::Cow;
use std::sync::Arc;

use gander_domain::{self as domain, Effort, ToolCallId, ToolSpec};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::WIRE;
use crate::Request;
use crate::encoded_history::write_encoded_items;
use crate::encoded_tools::{FixedParts, encode_tools};
use crate::history::{
    AgentTurn, ContentPiece, HistoryReader, ToolReturn, Turn, history_provider_call_id, history_tool_uses,
    join_history_text,
};
use crate::profile::{EffortStyle, Profile, Quirks};

/// The body of the HTTP request without its conversation, whose list is the end of it.
pub fn encode_openai_chat_envelope(request: &Request, profile: &Profile, fixed: FixedParts<'_>) -> Vec<u8> {
    let Profile { info, quirks } = profile;
    let limit = request.max_output;
    let system = Message::with_content("system", Content::Encoded(fixed.system));
    let body = Body {
        model: &info.model,
        tools: fixed.tools,
        stream: true,
        stream_options: (!quirks.no_stream_options).then_some(StreamOptions { include_usage: true }),
        temperature: request.temperature,
        max_tokens: limit.filter(|_| !quirks.max_completion_tokens),
        max_completion_tokens: limit.filter(|_| quirks.max_completion_tokens),
        reasoning_effort: openai_chat_effort_word(request, profile, EffortStyle::Word),
        reasoning: openai_chat_effort_word(request, profile, EffortStyle::Object).map(|effort| Reasoning { effort }),
        messages: (!request.system.is_empty()).then_some(system).into_iter().collect(),
    };
    serde_json::to_vec(&body).expect("strings and JSON values always serialise")
}

/// The list of tools.
pub fn encode_openai_chat_tools(tools: &[ToolSpec]) -> Box<RawValue> {
    encode_tools(tools.iter().map(Tool::from).collect())
}

/// The items of a piece of the conversation.
pub fn encode_openai_chat_conversation(messages: &[Arc<domain::Message>], profile: &Profile, list: &mut Vec<u8>) {
    let Profile { info, quirks } = profile;
    let make_id = if quirks.short_tool_ids { openai_chat_short_id } else { history_provider_call_id };
    let turns =
        HistoryReader { wire: WIRE, info, native_ids: openai_chat_native_ids, make_id }.group_into_turns(messages);
    let mut messages = Vec::with_capacity(turns.len() + 1);
    for turn in &turns {
        match turn {
            Turn::User(pieces) => messages.push(Message::with_content("user", encode_openai_chat_pieces(pieces))),
            Turn::Agent(turn) => messages.push(encode_openai_chat_agent_turn(turn, quirks)),
            Turn::Tool(returned) => messages.extend(encode_openai_chat_tool_results(returned)),
        }
    }
    write_encoded_items(list, messages);
}

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<&'a RawValue>,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<StreamOptions>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<Reasoning<'a>>,
    messages: Vec<Message<'a>>,
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
    Native(Replayed<'a>),
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
    Encoded(&'a RawValue),
    Parts(Vec<ContentPart<'a>>),
    Nothing(()),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ContentPart<'a> {
    Text { text: &'a str },
    ImageUrl { image_url: ImageUrl },
    InputAudio { input_audio: InputAudio<'a> },
}

#[derive(Serialize)]
struct InputAudio<'a> {
    data: &'a str,
    format: &'static str,
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
    fn with_content(role: &'static str, content: Content<'a>) -> Self {
        Self::Ours { role, content, tool_calls: Vec::new(), tool_call_id: None }
    }
}

impl<'a> From<&'a ToolSpec> for Tool<'a> {
    fn from(ToolSpec { name, description, schema }: &'a ToolSpec) -> Self {
        Self { r#type: "function", function: ToolFunction { name, description, parameters: schema } }
    }
}

fn encode_openai_chat_agent_turn<'a>(turn: &'a AgentTurn<'a>, quirks: &Quirks) -> Message<'a> {
    if let Some(Value::Object(native)) = turn.native.and_then(<[Value]>::first) {
        return Message::Native(Replayed { native, reasoning: quirks.replay_reasoning });
    }
    let text = gander_domain::message::plain_text(turn.parts);
    let tool_calls = history_tool_uses(turn.parts)
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

/// The provider's own words. Most servers refuse or misread reasoning that is sent back; a few insist on it.
struct Replayed<'a> {
    native: &'a Map<String, Value>,
    reasoning: bool,
}

impl Serialize for Replayed<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let is_kept = |field: &str| self.reasoning || !field.starts_with("reasoning");
        serializer.collect_map(self.native.iter().filter(|(field, _)| is_kept(field)))
    }
}

/// A tool's answer is text on this wire: its pictures and sounds follow as if a person had sent them.
fn encode_openai_chat_tool_results<'a>(returned: &'a [ToolReturn<'a>]) -> impl Iterator<Item = Message<'a>> {
    let texts = returned.iter().map(|ToolReturn { id, pieces, .. }| {
        let text = join_history_text(pieces);
        let text = if text.is_empty() { "see the image below".into() } else { text };
        Message::Ours { role: "tool", content: Content::Text(text), tool_calls: Vec::new(), tool_call_id: Some(id) }
    });
    let media: Vec<_> =
        returned.iter().flat_map(|returned| &returned.pieces).filter_map(openai_chat_media_part).collect();
    let media = (!media.is_empty()).then(|| Message::with_content("user", Content::Parts(media)));
    texts.chain(media)
}

fn encode_openai_chat_pieces<'a>(pieces: &'a [ContentPiece<'a>]) -> Content<'a> {
    if pieces.iter().all(|piece| matches!(piece, ContentPiece::Text(_))) {
        return Content::Text(join_history_text(pieces));
    }
    Content::Parts(
        pieces
            .iter()
            .filter_map(|piece| openai_chat_media_part(piece).or_else(|| openai_chat_text_part(piece)))
            .collect(),
    )
}

fn openai_chat_media_part<'a>(piece: &ContentPiece<'a>) -> Option<ContentPart<'a>> {
    match piece {
        ContentPiece::Image { mime, data } => {
            Some(ContentPart::ImageUrl { image_url: ImageUrl { url: format!("data:{mime};base64,{data}") } })
        }
        ContentPiece::Audio { format, data } => {
            Some(ContentPart::InputAudio { input_audio: InputAudio { data, format } })
        }
        ContentPiece::Text(_) => None,
    }
}

fn openai_chat_text_part<'a>(piece: &'a ContentPiece<'a>) -> Option<ContentPart<'a>> {
    match piece {
        ContentPiece::Text(text) => Some(ContentPart::Text { text }),
        ContentPiece::Image { .. } | ContentPiece::Audio { .. } => None,
    }
}

fn openai_chat_effort_word<'a>(request: &Request, profile: &'a Profile, style: EffortStyle) -> Option<&'a str> {
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

fn openai_chat_native_ids(items: &[Value]) -> Vec<String> {
    let calls = items.first().and_then(|message| message.get("tool_calls")).and_then(Value::as_array);
    let ids = calls.into_iter().flatten().map(|call| call.get("id").and_then(Value::as_str));
    ids.map(|id| id.unwrap_or_default().to_owned()).collect()
}

/// The random end of the id: Mistral's API takes exactly nine letters and digits.
fn openai_chat_short_id(call: ToolCallId) -> String {
    let mut id = call.uuid().simple().to_string();
    id.split_off(id.len() - 9)
}
