//! The wires we speak, and what varies inside one.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::codec::Codec;
pub use super::decoder::Decoder;
use super::encoded_history::EncodedHistoryCache;
use super::encoded_tools::FixedParts;
pub use super::profile::{EffortStyle, Profile, Quirks};
use super::{ModelInfo, Request, anthropic, openai_chat, openai_responses};

/// How a body ends whose last field is its conversation.
const LIST_END: &[u8] = b"]}";

/// A family of HTTP APIs with one shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wire {
    /// OpenAI chat completions, spoken by nearly everybody.
    OpenaiChat,
    /// OpenAI Responses.
    OpenaiResponses,
    /// Anthropic Messages.
    Anthropic,
}

/// Fields that say what the model sees and may call: nobody but this server sets them.
const RESERVED_PARAMS: [&str; 14] = [
    "model",
    "messages",
    "input",
    "system",
    "instructions",
    "prompt",
    "tools",
    "tool_choice",
    "functions",
    "function_call",
    "mcp_servers",
    "plugins",
    "stream",
    "store",
];

/// Puts further fields before those of an envelope whose list is open.
fn add_wire_params(body: &mut Vec<u8>, params: &Map<String, Value>) {
    if params.is_empty() {
        return;
    }
    let whole = [body.as_slice(), LIST_END].concat();
    let own: Map<String, Value> = serde_json::from_slice(&whole).unwrap_or_default();
    let mut added = params.clone();
    added.retain(|name, _| !own.contains_key(name) && !RESERVED_PARAMS.contains(&name.as_str()));
    if let Ok(mut fields) = serde_json::to_vec(&added)
        && !added.is_empty()
    {
        fields.pop();
        fields.push(b',');
        body.splice(..1, fields);
    }
}

impl Wire {
    /// The body of the HTTP request.
    pub fn encode(self, request: &Request, profile: &Profile) -> Vec<u8> {
        self.encode_with_cache(request, profile, &EncodedHistoryCache::default())
    }

    /// The same, without writing again what was written for an earlier request of the conversation.
    pub fn encode_with_cache(self, request: &Request, profile: &Profile, encoded: &EncodedHistoryCache) -> Vec<u8> {
        let (messages, last) = (&request.messages, request.messages.last());
        let tools = encoded.tools.encoded_list(&request.tools, |tools| match self {
            Self::OpenaiChat => openai_chat::encode_openai_chat_tools(tools),
            Self::OpenaiResponses => openai_responses::encode_openai_responses_tools(tools),
            Self::Anthropic => anthropic::encode_anthropic_tools(tools),
        });
        let system = encoded.prompts.encoded_prompt(&request.system);
        let fixed = FixedParts { system: &system, tools: tools.as_deref() };
        let mut body = match self {
            Self::OpenaiChat => openai_chat::encode_openai_chat_envelope(request, profile, fixed),
            Self::OpenaiResponses => openai_responses::encode_openai_responses_envelope(request, profile, fixed),
            Self::Anthropic => anthropic::encode_anthropic_envelope(request, profile, fixed),
        };
        body.truncate(body.len() - LIST_END.len());
        add_wire_params(&mut body, &request.params);
        match self {
            Self::OpenaiChat => encoded.append_conversation(&mut body, messages, |some, list| {
                openai_chat::encode_openai_chat_conversation(some, profile, list)
            }),
            Self::OpenaiResponses => {
                encoded.append_conversation(&mut body, messages, |some, list| {
                    openai_responses::encode_openai_responses_conversation(some, profile, list)
                });
            }
            Self::Anthropic => {
                encoded.append_conversation(&mut body, messages, |some, list| {
                    anthropic::encode_anthropic_conversation(some, profile, last, list)
                });
            }
        }
        body.extend_from_slice(LIST_END);
        body
    }

    /// A decoder of one answer.
    pub fn new_decoder(self, info: &ModelInfo) -> Decoder {
        let codec: Box<dyn Codec> = match self {
            Self::OpenaiResponses => Box::new(openai_responses::ResponsesDecoder::new(info)),
            Self::Anthropic => Box::new(anthropic::MessagesDecoder::new(info)),
            Self::OpenaiChat => Box::new(openai_chat::ChatDecoder::new(info)),
        };
        Decoder::new(codec)
    }

    /// Where the request goes, below the base URL.
    pub fn request_path(self) -> &'static str {
        match self {
            Self::OpenaiResponses => "/responses",
            Self::Anthropic => "/v1/messages",
            Self::OpenaiChat => "/chat/completions",
        }
    }
}
