//! The wires we speak, what varies inside one, and the sans-IO decoder over all of them.

use gander_domain::ProviderPayload;
use serde::Deserialize;
use serde_json::{Value, json};

use super::sse::Sse;
use super::written::Written;
use super::{ModelError, ModelEvent, ModelInfo, Request, anthropic, openai_chat, openai_responses};

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

/// What a request is encoded for.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// The model.
    pub info: ModelInfo,
    /// How its provider differs.
    pub quirks: Quirks,
}

/// How a provider differs from others on the same wire.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Quirks {
    /// How it is told how hard to think.
    pub effort: EffortStyle,
    /// Its word for not thinking at all; absent: it cannot be told so.
    pub effort_off: Option<String>,
    /// Chat: the output limit is called `max_completion_tokens`.
    pub max_completion_tokens: bool,
    /// Chat: usage comes unasked and asking is an error.
    pub no_stream_options: bool,
    /// Chat: wants its own reasoning back with its tool calls.
    pub replay_reasoning: bool,
    /// Chat: takes only ids of nine letters and digits.
    pub short_tool_ids: bool,
    /// Responses: no summaries of the reasoning (needs a verified organisation).
    pub no_summary: bool,
}

/// How a model is told how hard to think.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EffortStyle {
    /// It cannot be told.
    #[default]
    None,
    /// Chat: `reasoning_effort`; Responses: `reasoning.effort`.
    Word,
    /// Chat: a `reasoning` object.
    Object,
    /// Anthropic: a budget of tokens.
    Budget,
    /// Anthropic: adaptive thinking with an effort.
    Adaptive,
}

impl Wire {
    /// The body of the HTTP request.
    pub fn encode(self, request: &Request, profile: &Profile) -> Vec<u8> {
        self.encode_after(request, profile, &Written::default())
    }

    /// The same, without writing again what was written for an earlier request of the conversation.
    pub fn encode_after(self, request: &Request, profile: &Profile, written: &Written) -> Vec<u8> {
        let (messages, last) = (&request.messages, request.messages.last());
        let mut body = match self {
            Self::OpenaiChat => openai_chat::frame(request, profile),
            Self::OpenaiResponses => openai_responses::frame(request, profile),
            Self::Anthropic => anthropic::frame(request, profile),
        };
        body.truncate(body.len() - LIST_END.len());
        match self {
            Self::OpenaiChat => {
                written.add(&mut body, messages, |some, list| openai_chat::conversation(some, profile, list))
            }
            Self::OpenaiResponses => {
                written.add(&mut body, messages, |some, list| openai_responses::conversation(some, profile, list));
            }
            Self::Anthropic => {
                written.add(&mut body, messages, |some, list| anthropic::conversation(some, profile, last, list));
            }
        }
        body.extend_from_slice(LIST_END);
        body
    }

    /// A decoder of one answer.
    pub fn decoder(self, info: &ModelInfo) -> Decoder {
        let codec: Box<dyn Codec> = match self {
            Self::OpenaiResponses => Box::new(openai_responses::Responses::new(info)),
            Self::Anthropic => Box::new(anthropic::Messages::new(info)),
            Self::OpenaiChat => Box::new(openai_chat::Chat::new(info)),
        };
        Decoder { sse: Sse::default(), codec, done: false }
    }

    /// Where the request goes, below the base URL.
    pub fn path(self) -> &'static str {
        match self {
            Self::OpenaiResponses => "/responses",
            Self::Anthropic => "/v1/messages",
            Self::OpenaiChat => "/chat/completions",
        }
    }
}

/// Understands the events of one wire.
pub trait Codec: Send {
    /// Takes the data of one event.
    fn frame(&mut self, data: &[u8], out: &mut Vec<ModelEvent>) -> Result<(), ModelError>;

    /// The stream ended without [`ModelEvent::Done`]: it is whole after all, or an error.
    fn close(&mut self, out: &mut Vec<ModelEvent>) -> Result<(), ModelError>;
}

/// Bytes of an answer in, events out, the same for every cut of the bytes.
pub struct Decoder {
    sse: Sse,
    codec: Box<dyn Codec>,
    done: bool,
}

impl Decoder {
    /// Takes the next bytes. What comes after [`ModelEvent::Done`] is ignored.
    pub fn feed(&mut self, bytes: &[u8], out: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        let Self { sse, codec, done } = self;
        sse.feed(bytes, |data| frame(codec.as_mut(), done, data, out))
    }

    /// The bytes are over.
    pub fn finish(&mut self, out: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        let Self { sse, codec, done } = self;
        let is_stream = sse.has_begun();
        match sse.finish(|data| frame(codec.as_mut(), done, data, out)) {
            // The last event is a torn one.
            Err(ModelError::BadStream(_)) if is_stream => {}
            whole => whole?,
        }
        if !*done {
            codec.close(out)?;
            *done = true;
        }
        Ok(())
    }

    /// True after [`ModelEvent::Done`].
    pub fn is_done(&self) -> bool {
        self.done
    }
}

/// The native form of an answer, marked with who alone understands it.
pub(super) fn native(wire: &str, info: &ModelInfo, items: Vec<Value>) -> ProviderPayload {
    ProviderPayload {
        wire: wire.into(),
        items: json!({ "provider": info.provider, "model": info.model, "items": items }),
    }
}

/// The stream ended in the middle.
pub(super) fn cut(info: &ModelInfo) -> ModelError {
    ModelError::Network(format!("the answer was cut off before its end, provider: {}", info.provider))
}

/// An event is not what the wire prescribes.
pub(super) fn bad_event(info: &ModelInfo, error: &serde_json::Error, data: &[u8]) -> ModelError {
    let start = String::from_utf8_lossy(&data[..data.len().min(200)]).into_owned();
    ModelError::BadStream(format!("{} sent an event that cannot be read ({error}): {start}", info.provider))
}

/// A tool's arguments as JSON, or why not.
pub(super) fn arguments(info: &ModelInfo, name: &str, text: &str) -> Result<Value, ModelError> {
    match serde_json::from_str(text) {
        Ok(value @ Value::Object(_)) => Ok(value),
        Ok(Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) | Err(_) => {
            let start: String = text.chars().take(200).collect();
            let model = info.name();
            Err(ModelError::BadArguments(format!(
                "{model} called {name} with arguments that are not a JSON object: {start}"
            )))
        }
    }
}

fn frame(codec: &mut dyn Codec, done: &mut bool, data: &[u8], out: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
    if !*done {
        codec.frame(data, out)?;
        *done = matches!(out.last(), Some(ModelEvent::Done(_)));
    }
    Ok(())
}
