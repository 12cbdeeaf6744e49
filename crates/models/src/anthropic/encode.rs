//! A request as a Messages call.

use std::sync::Arc;

use gander_domain::{self as domain, Effort, Part, ToolSpec};
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::WIRE;
use crate::Request;
use crate::encoded_history::write_encoded_items;
use crate::encoded_tools::{FixedParts, encode_tools};
use crate::history::{
    AgentTurn, ContentPiece, HistoryReader, ToolReturn, Turn, history_provider_call_id, stable_history_prefix_len,
};
use crate::profile::{EffortStyle, Profile};

/// What an answer may take when nobody knows the model's limit. The wire demands a number.
const DEFAULT_MAX_OUTPUT: u64 = 16_000;
/// What is left to speak after the thinking budget.
const MIN_ANSWER_TOKENS: u64 = 4_096;
/// The wire's smallest thinking budget.
const MIN_THINKING_BUDGET: u64 = 1_024;

/// The body of the HTTP request without its conversation, whose list is the end of it.
pub fn encode_anthropic_envelope(request: &Request, profile: &Profile, fixed: FixedParts<'_>) -> Vec<u8> {
    let info = &profile.info;
    let end = &request.messages[stable_history_prefix_len(&request.messages)..];
    let turns = anthropic_history_reader(profile).group_into_turns(end);
    let system = SystemBlock { r#type: "text", text: fixed.system, cache_control: CACHE };
    let max_tokens = anthropic_max_tokens(request, profile);
    let thinking = anthropic_thinking_setting(request, profile, max_tokens)
        .filter(|_| !is_anthropic_tool_loop_without_thinking(&turns));
    let call = Call {
        model: &info.model,
        max_tokens,
        // A model that thinks takes no temperature, and this wire counts from 0 to 1.
        temperature: request.temperature.filter(|_| thinking.is_none()).map(|given| given.min(1.0)),
        system: (!request.system.is_empty()).then_some([system]),
        tools: fixed.tools,
        stream: true,
        thinking,
        output_config: anthropic_output_config(request, profile),
        messages: [],
    };
    serde_json::to_vec(&call).expect("strings and JSON values always serialise")
}

/// The list of tools. Its end is marked: every call begins with the same tools.
pub fn encode_anthropic_tools(tools: &[ToolSpec]) -> Box<RawValue> {
    let mut tools: Vec<Tool<'_>> = tools.iter().map(Tool::from).collect();
    if let Some(last) = tools.last_mut() {
        last.cache_control = Some(CACHE);
    }
    encode_tools(tools)
}

/// The items of a piece of the conversation. The last piece is marked: the next call begins with everything up to it.
pub fn encode_anthropic_conversation(
    pieces: &[Arc<domain::Message>],
    profile: &Profile,
    last: Option<&Arc<domain::Message>>,
    list: &mut Vec<u8>,
) {
    let turns = anthropic_history_reader(profile).group_into_turns(pieces);
    let mut messages = encode_anthropic_turns(&turns);
    if pieces.last().zip(last).is_some_and(|(end, last)| Arc::ptr_eq(end, last)) {
        set_anthropic_cache_breakpoint(&mut messages);
    }
    write_encoded_items(list, messages);
}

fn anthropic_history_reader(profile: &Profile) -> HistoryReader<'_> {
    HistoryReader {
        wire: WIRE,
        info: &profile.info,
        native_ids: anthropic_native_ids,
        make_id: history_provider_call_id,
    }
}

#[derive(Serialize)]
struct Call<'a> {
    model: &'a str,
    max_tokens: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    system: Option<[SystemBlock<'a>; 1]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<&'a RawValue>,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<Thinking>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_config: Option<OutputConfig>,
    messages: [(); 0],
}

#[derive(Serialize)]
struct SystemBlock<'a> {
    r#type: &'static str,
    text: &'a RawValue,
    cache_control: CacheControl,
}

#[derive(Serialize)]
struct Message<'a> {
    role: &'static str,
    content: Vec<Item<'a>>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Item<'a> {
    Native(&'a Value),
    Ours(Block<'a>),
}

#[derive(Serialize)]
struct Block<'a> {
    #[serde(flatten)]
    body: Body<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<CacheControl>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Body<'a> {
    Text {
        text: &'a str,
    },
    Image {
        source: Source<'a>,
    },
    ToolUse {
        id: &'a str,
        name: &'a str,
        input: &'a Value,
    },
    ToolResult {
        tool_use_id: &'a str,
        content: Vec<Block<'a>>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
    },
}

#[derive(Serialize)]
struct Source<'a> {
    r#type: &'static str,
    media_type: &'a str,
    data: &'a str,
}

#[derive(Serialize)]
struct Tool<'a> {
    name: &'a str,
    description: &'a str,
    input_schema: &'a Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<CacheControl>,
}

#[derive(Serialize)]
struct CacheControl {
    r#type: &'static str,
}

const CACHE: CacheControl = CacheControl { r#type: "ephemeral" };

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Thinking {
    Enabled { budget_tokens: u64 },
    Adaptive { display: &'static str },
    Disabled,
}

#[derive(Serialize)]
struct OutputConfig {
    effort: &'static str,
}

impl<'a> From<&'a ToolSpec> for Tool<'a> {
    fn from(ToolSpec { name, description, schema }: &'a ToolSpec) -> Self {
        Self { name, description, input_schema: schema, cache_control: None }
    }
}

impl<'a> From<Body<'a>> for Item<'a> {
    fn from(body: Body<'a>) -> Self {
        Self::Ours(Block { body, cache_control: None })
    }
}

/// Tool results and what a person says after them are one message of the user.
fn encode_anthropic_turns<'a>(turns: &'a [Turn<'a>]) -> Vec<Message<'a>> {
    let mut messages: Vec<Message<'a>> = Vec::with_capacity(turns.len());
    for turn in turns {
        let (role, content): (_, Vec<Item<'a>>) = match turn {
            Turn::User(pieces) => ("user", pieces.iter().map(|piece| encode_anthropic_piece(piece).into()).collect()),
            Turn::Agent(turn) => ("assistant", encode_anthropic_agent_turn(turn)),
            Turn::Tool(returned) => {
                ("user", returned.iter().map(|returned| encode_anthropic_tool_result(returned).into()).collect())
            }
        };
        match messages.last_mut() {
            Some(last) if last.role == role => last.content.extend(content),
            Some(_) | None => messages.push(Message { role, content }),
        }
    }
    messages
}

fn set_anthropic_cache_breakpoint(messages: &mut [Message<'_>]) {
    if let Some(Item::Ours(block)) = messages.last_mut().and_then(|message| message.content.last_mut()) {
        block.cache_control = Some(CACHE);
    }
}

fn encode_anthropic_agent_turn<'a>(turn: &'a AgentTurn<'a>) -> Vec<Item<'a>> {
    if let Some(items) = turn.native {
        return items.iter().map(Item::Native).collect();
    }
    let mut ids = turn.ids.iter();
    let blocks = turn.parts.iter().filter_map(|part| match part {
        Part::Text { text } if !text.trim().is_empty() => Some(Body::Text { text }.into()),
        Part::ToolUse { name, arguments, .. } => {
            let id = ids.next().map_or("", String::as_str);
            Some(Body::ToolUse { id, name, input: arguments }.into())
        }
        Part::Text { .. }
        | Part::Thought { .. }
        | Part::Image { .. }
        | Part::Audio { .. }
        | Part::Link { .. }
        | Part::Resource { .. }
        | Part::ToolResult { .. }
        | Part::Unknown(_) => None,
    });
    blocks.collect()
}

fn encode_anthropic_tool_result<'a>(returned: &'a ToolReturn<'a>) -> Body<'a> {
    let ToolReturn { id, failed, pieces } = returned;
    let content =
        pieces.iter().map(|piece| Block { body: encode_anthropic_piece(piece), cache_control: None }).collect();
    Body::ToolResult { tool_use_id: id, content, is_error: *failed }
}

fn encode_anthropic_piece<'a>(piece: &'a ContentPiece<'a>) -> Body<'a> {
    match piece {
        ContentPiece::Text(text) => Body::Text { text },
        // No model of this wire says that it hears.
        ContentPiece::Audio { .. } => Body::Text { text: "[a sound, which this wire does not carry]" },
        ContentPiece::Image { mime, data } => {
            Body::Image { source: Source { r#type: "base64", media_type: mime, data } }
        }
    }
}

fn anthropic_max_tokens(request: &Request, profile: &Profile) -> u64 {
    let wanted = request.max_output.map(u64::from);
    match (wanted, profile.info.max_output) {
        (Some(wanted), Some(most)) => wanted.min(most),
        (Some(wanted), None) => wanted,
        (None, Some(most)) => most.min(DEFAULT_MAX_OUTPUT * 2),
        (None, None) => DEFAULT_MAX_OUTPUT,
    }
}

fn anthropic_thinking_setting(request: &Request, profile: &Profile, max_tokens: u64) -> Option<Thinking> {
    let effort = request.effort.filter(|_| profile.info.thinking)?;
    let budget = match (profile.quirks.effort, effort) {
        (EffortStyle::None | EffortStyle::Word | EffortStyle::Object, _) | (EffortStyle::Budget, Effort::Off) => {
            return None;
        }
        (EffortStyle::Adaptive, Effort::Off) => return Some(Thinking::Disabled),
        (EffortStyle::Adaptive, Effort::Low | Effort::Medium | Effort::High) => {
            return Some(Thinking::Adaptive { display: "summarized" });
        }
        (EffortStyle::Budget, Effort::Low) => 4_096,
        (EffortStyle::Budget, Effort::Medium) => 10_240,
        (EffortStyle::Budget, Effort::High) => 24_576,
    };
    let budget_tokens = budget.min(max_tokens.saturating_sub(MIN_ANSWER_TOKENS));
    (budget_tokens >= MIN_THINKING_BUDGET).then_some(Thinking::Enabled { budget_tokens })
}

/// The wire refuses to think on behind a tool use that began without thinking.
fn is_anthropic_tool_loop_without_thinking(turns: &[Turn<'_>]) -> bool {
    let [.., Turn::Agent(AgentTurn { native, .. }), Turn::Tool(_)] = turns else { return false };
    let is_thought = |item: &Value| item["type"] == "thinking" || item["type"] == "redacted_thinking";
    !native.is_some_and(|items| items.first().is_some_and(is_thought))
}

fn anthropic_output_config(request: &Request, profile: &Profile) -> Option<OutputConfig> {
    if !profile.info.thinking || profile.quirks.effort != EffortStyle::Adaptive {
        return None;
    }
    match request.effort? {
        Effort::Off => None,
        Effort::Low => Some(OutputConfig { effort: "low" }),
        Effort::Medium => Some(OutputConfig { effort: "medium" }),
        Effort::High => Some(OutputConfig { effort: "high" }),
    }
}

fn anthropic_native_ids(items: &[Value]) -> Vec<String> {
    let calls = items.iter().filter(|item| item["type"] == "tool_use");
    calls.map(|call| call["id"].as_str().unwrap_or_default().to_owned()).collect()
}
