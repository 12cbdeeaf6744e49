//! Events of a MessagesDecoder stream.

use std::borrow::Cow;

use gander_domain::{Delta, DeltaKind};
use serde::Deserialize;
use serde_json::{Value, json};

use super::WIRE;
use crate::codec::{self, Codec};
use crate::{Finish, ModelError, ModelEvent, ModelInfo, ModelStop, Tokens, failure};

/// One answer of the MessagesDecoder API.
pub struct MessagesDecoder {
    info: ModelInfo,
    blocks: Vec<Block>,
    calls: u32,
    stop: Option<ModelStop>,
    usage: UsageBody,
}

/// A content block while it grows.
struct Block {
    slot: u32,
    /// As it began.
    item: Value,
    /// Its number among the tool calls.
    call: Option<u32>,
    text: String,
    thinking: String,
    signature: String,
    json: String,
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(borrow)]
    r#type: Cow<'a, str>,
    index: Option<u32>,
    #[serde(borrow)]
    delta: Option<DeltaBody<'a>>,
    content_block: Option<Value>,
    message: Option<Start>,
    usage: Option<UsageBody>,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct DeltaBody<'a> {
    #[serde(borrow)]
    text: Option<Text<'a>>,
    #[serde(borrow)]
    thinking: Option<Text<'a>>,
    #[serde(borrow)]
    signature: Option<Text<'a>>,
    #[serde(borrow)]
    partial_json: Option<Text<'a>>,
    #[serde(borrow)]
    stop_reason: Option<Text<'a>>,
}

#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

#[derive(Deserialize)]
struct Start {
    usage: Option<UsageBody>,
}

#[derive(Default, Deserialize)]
struct UsageBody {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
    output_tokens_details: Option<OutputDetails>,
}

#[derive(Deserialize)]
struct OutputDetails {
    thinking_tokens: Option<u64>,
}

impl MessagesDecoder {
    /// For an answer of this model.
    pub fn new(info: &ModelInfo) -> Self {
        Self { info: info.clone(), blocks: Vec::new(), calls: 0, stop: None, usage: UsageBody::default() }
    }

    fn start_block(&mut self, slot: u32, item: Value, out: &mut Vec<ModelEvent>) {
        let field = |name: &str| item[name].as_str().unwrap_or_default().to_owned();
        let (text, thinking, name) = (field("text"), field("thinking"), field("name"));
        let call = (item["type"] == "tool_use").then_some(self.calls);
        if let Some(index) = call {
            self.calls += 1;
            out.push(ModelEvent::ToolStarted { index, name });
        }
        let (signature, json) = (field("signature"), String::new());
        let block = Block { slot, item, call, text: String::new(), thinking: String::new(), signature, json };
        self.blocks.push(block);
        let begun = |text: String| (!text.is_empty()).then_some(Text(text.into()));
        let delta = DeltaBody {
            text: begun(text),
            thinking: begun(thinking),
            signature: None,
            partial_json: None,
            stop_reason: None,
        };
        self.append_delta(slot, delta, out);
    }

    fn append_delta(&mut self, slot: u32, delta: DeltaBody<'_>, out: &mut Vec<ModelEvent>) {
        let Some(block) = self.blocks.iter_mut().rfind(|block| block.slot == slot) else { return };
        let filled = |text: &Text<'_>| !text.0.is_empty();
        if let Some(Text(text)) = delta.text.filter(filled) {
            block.text.push_str(&text);
            out.push(ModelEvent::Delta(Delta { growth: DeltaKind::Text, text: text.into_owned() }));
        }
        if let Some(Text(text)) = delta.thinking.filter(filled) {
            block.thinking.push_str(&text);
            out.push(ModelEvent::Delta(Delta { growth: DeltaKind::Thought, text: text.into_owned() }));
        }
        if let Some(Text(text)) = delta.signature {
            block.signature.push_str(&text);
        }
        if let Some(Text(text)) = delta.partial_json.filter(filled) {
            block.json.push_str(&text);
            if let Some(index) = block.call {
                out.push(ModelEvent::ToolArguments { index, text: text.into_owned() });
            }
        }
    }

    fn finish_response(&mut self, out: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        let stop = match self.stop {
            Some(ModelStop::EndTurn | ModelStop::ToolUse | ModelStop::StopSequence) if self.calls > 0 => {
                ModelStop::ToolUse
            }
            Some(ModelStop::ToolUse) | None => ModelStop::EndTurn,
            Some(stop) => stop,
        };
        let (mut items, mut whole) = (Vec::new(), true);
        for block in std::mem::take(&mut self.blocks) {
            match self.native_item(block, out) {
                Ok(item) => items.extend(item),
                Err(_) if stop == ModelStop::MaxTokens => whole = false,
                Err(error) => return Err(error),
            }
        }
        let is_worth_it = whole && items.iter().any(|item| item["type"] != "text");
        let native = is_worth_it.then(|| codec::codec_native_payload(WIRE, &self.info, items));
        out.push(ModelEvent::Done(Finish { stop, usage: self.to_tokens(), native }));
        Ok(())
    }

    /// The whole block, unless it is empty: the wire takes no empty text back.
    fn native_item(&self, block: Block, out: &mut Vec<ModelEvent>) -> Result<Option<Value>, ModelError> {
        let Block { mut item, call, text, thinking, signature, mut json, .. } = block;
        match item["type"].as_str() {
            Some("text") if text.trim().is_empty() => return Ok(None),
            Some("text") => item["text"] = text.into(),
            Some("thinking") => (item["thinking"], item["signature"]) = (thinking.into(), signature.into()),
            Some(_) | None => {}
        }
        if let Some(index) = call {
            if json.is_empty() {
                json = item.get("input").filter(|input| input.is_object()).map_or("{}".into(), Value::to_string);
                out.push(ModelEvent::ToolArguments { index, text: json.clone() });
            }
            let name = item["name"].as_str().unwrap_or_default().to_owned();
            item["input"] = codec::parse_codec_arguments(&self.info, &name, &json)?;
        } else if !json.is_empty() {
            item["input"] = serde_json::from_str(&json).unwrap_or_else(|_| json!({}));
        }
        Ok(Some(item))
    }

    /// Later events repeat or correct what the first one said.
    fn merge_usage(&mut self, usage: UsageBody) {
        let known = std::mem::take(&mut self.usage);
        self.usage = UsageBody {
            input_tokens: usage.input_tokens.or(known.input_tokens),
            output_tokens: usage.output_tokens.or(known.output_tokens),
            cache_read_input_tokens: usage.cache_read_input_tokens.or(known.cache_read_input_tokens),
            cache_creation_input_tokens: usage.cache_creation_input_tokens.or(known.cache_creation_input_tokens),
            output_tokens_details: usage.output_tokens_details.or(known.output_tokens_details),
        };
    }

    /// This wire counts cached tokens apart from the others.
    fn to_tokens(&self) -> Tokens {
        let usage = &self.usage;
        let cached = usage.cache_read_input_tokens.unwrap_or(0);
        let cache_write = usage.cache_creation_input_tokens.unwrap_or(0);
        let thinking = usage.output_tokens_details.as_ref().and_then(|details| details.thinking_tokens);
        Tokens {
            input: usage.input_tokens.unwrap_or(0) + cached + cache_write,
            output: usage.output_tokens.unwrap_or(0),
            cached,
            cache_write,
            thinking: thinking.unwrap_or(0),
        }
    }
}

impl Codec for MessagesDecoder {
    fn decode_event(&mut self, data: &[u8], out: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        let event: Event<'_> =
            serde_json::from_slice(data).map_err(|error| codec::codec_bad_event_error(&self.info, &error, data))?;
        if let Some(error) = event.error {
            return Err(failure::failure_in_stream(&self.info.provider, &error));
        }
        let usage = event.usage.or_else(|| event.message.and_then(|message| message.usage));
        if let Some(usage) = usage {
            self.merge_usage(usage);
        }
        let slot = event.index.unwrap_or(0);
        match (event.r#type.as_ref(), event.delta) {
            ("content_block_start", _) => self.start_block(slot, event.content_block.unwrap_or_default(), out),
            ("content_block_delta", Some(delta)) => self.append_delta(slot, delta, out),
            ("message_delta", Some(delta)) => {
                self.stop = delta.stop_reason.map(|reason| anthropic_stop_reason(&reason.0)).or(self.stop);
            }
            ("message_stop", _) => return self.finish_response(out),
            (_, _) => {}
        }
        Ok(())
    }

    fn finish_stream(&mut self, out: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        if self.stop.is_none() { Err(codec::codec_cut_off_error(&self.info)) } else { self.finish_response(out) }
    }
}

fn anthropic_stop_reason(reason: &str) -> ModelStop {
    match reason {
        "max_tokens" | "model_context_window_exceeded" => ModelStop::MaxTokens,
        "refusal" => ModelStop::Refusal,
        "stop_sequence" => ModelStop::StopSequence,
        "tool_use" => ModelStop::ToolUse,
        _ => ModelStop::EndTurn,
    }
}
