//! Events of a ResponsesDecoder stream.

use std::borrow::Cow;

use gander_domain::{Delta, DeltaKind, Part};
use serde::Deserialize;
use serde_json::Value;

use super::WIRE;
use crate::codec::{self, Codec};
use crate::{Finish, ModelError, ModelEvent, ModelInfo, ModelStop, Tokens, failure};

/// One answer of the ResponsesDecoder API.
pub struct ResponsesDecoder {
    info: ModelInfo,
    items: Vec<Value>,
    calls: Vec<Call>,
    refused: bool,
    thought: bool,
}

struct Call {
    slot: u32,
    name: String,
    arguments: String,
}

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(borrow)]
    r#type: Cow<'a, str>,
    output_index: Option<u32>,
    #[serde(borrow)]
    delta: Option<Text<'a>>,
    item: Option<Value>,
    response: Option<ResponseBody>,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

#[derive(Deserialize)]
struct ResponseBody {
    usage: Option<UsageBody>,
    incomplete_details: Option<Incomplete>,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Incomplete {
    reason: Option<String>,
}

#[derive(Deserialize)]
struct UsageBody {
    #[serde(default)]
    input_tokens: u64,
    #[serde(default)]
    output_tokens: u64,
    input_tokens_details: Option<InputDetails>,
    output_tokens_details: Option<OutputDetails>,
}

#[derive(Deserialize)]
struct InputDetails {
    cached_tokens: Option<u64>,
    cache_write_tokens: Option<u64>,
}

#[derive(Deserialize)]
struct OutputDetails {
    reasoning_tokens: Option<u64>,
}

impl ResponsesDecoder {
    /// For an answer of this model.
    pub fn new(info: &ModelInfo) -> Self {
        Self { info: info.clone(), items: Vec::new(), calls: Vec::new(), refused: false, thought: false }
    }

    fn append_delta(&mut self, growth: DeltaKind, delta: Option<Text<'_>>, out: &mut Vec<ModelEvent>) {
        if let Some(Text(text)) = delta.filter(|text| !text.0.is_empty()) {
            self.thought |= growth == DeltaKind::Thought;
            out.push(ModelEvent::Delta(Delta { growth, text: text.into_owned() }));
        }
    }

    fn append_arguments(&mut self, slot: u32, text: Cow<'_, str>, out: &mut Vec<ModelEvent>) {
        let Some(index) = self.calls.iter().position(|call| call.slot == slot) else { return };
        if !text.is_empty() {
            self.calls[index].arguments.push_str(&text);
            out.push(ModelEvent::ToolArguments { index: index as u32, text: text.into_owned() });
        }
    }

    fn item_added(&mut self, slot: u32, item: &Value, out: &mut Vec<ModelEvent>) {
        if item["type"] == "function_call" && !self.calls.iter().any(|call| call.slot == slot) {
            let name = item["name"].as_str().unwrap_or_default().to_owned();
            out.push(ModelEvent::ToolStarted { index: self.calls.len() as u32, name: name.clone() });
            self.calls.push(Call { slot, name, arguments: String::new() });
        }
    }

    fn item_done(&mut self, slot: u32, item: Value, out: &mut Vec<ModelEvent>) {
        self.item_added(slot, &item, out);
        let whole = item["arguments"].as_str().unwrap_or_default();
        let call = self.calls.iter().find(|call| call.slot == slot);
        // A server that sends no fragments tells the arguments here.
        let rest = call.and_then(|call| whole.strip_prefix(call.arguments.as_str())).unwrap_or_default().to_owned();
        self.append_arguments(slot, rest.into(), out);
        if item["type"] == "image_generation_call"
            && let Some(data) = item["result"].as_str()
        {
            let format = item["output_format"].as_str().unwrap_or("png");
            out.push(ModelEvent::Part(Part::Image { mime: format!("image/{format}"), data: data.into(), uri: None }));
        }
        self.items.push(item);
    }

    fn finish_response(&mut self, response: Option<ResponseBody>, out: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        let reason = response.as_ref().and_then(|response| response.incomplete_details.as_ref()?.reason.as_deref());
        let stop = match reason {
            Some("content_filter") => ModelStop::Refusal,
            Some(_) => ModelStop::MaxTokens,
            None if self.refused => ModelStop::Refusal,
            None if self.calls.is_empty() => ModelStop::EndTurn,
            None => ModelStop::ToolUse,
        };
        for (index, call) in self.calls.iter_mut().enumerate() {
            if call.arguments.is_empty() {
                call.arguments.push_str("{}");
                out.push(ModelEvent::ToolArguments { index: index as u32, text: "{}".into() });
            }
            if reason.is_none() {
                codec::parse_codec_arguments(&self.info, &call.name, &call.arguments)?;
            }
        }
        let items = std::mem::take(&mut self.items);
        let is_worth_it = reason.is_none() && items.iter().any(|item| item["type"] != "message");
        let native = is_worth_it.then(|| codec::codec_native_payload(WIRE, &self.info, items));
        let usage = response
            .and_then(|response| response.usage)
            .map(|usage| openai_responses_tokens(&usage))
            .unwrap_or_default();
        out.push(ModelEvent::Done(Finish { stop, usage, native }));
        Ok(())
    }
}

impl Codec for ResponsesDecoder {
    fn decode_event(&mut self, data: &[u8], out: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        if data.trim_ascii() == b"[DONE]" {
            return Ok(());
        }
        let event: Event<'_> =
            serde_json::from_slice(data).map_err(|error| codec::codec_bad_event_error(&self.info, &error, data))?;
        let slot = event.output_index.unwrap_or(0);
        match event.r#type.as_ref() {
            "response.output_text.delta" => self.append_delta(DeltaKind::Text, event.delta, out),
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                self.append_delta(DeltaKind::Thought, event.delta, out);
            }
            // The next paragraph of the summary.
            "response.reasoning_summary_part.added" if self.thought => {
                self.append_delta(DeltaKind::Thought, Some(Text("\n\n".into())), out);
            }
            "response.refusal.delta" => {
                self.refused = true;
                self.append_delta(DeltaKind::Text, event.delta, out);
            }
            "response.function_call_arguments.delta" => {
                self.append_arguments(slot, event.delta.map(|text| text.0).unwrap_or_default(), out);
            }
            "response.output_item.added" => self.item_added(slot, &event.item.unwrap_or_default(), out),
            "response.output_item.done" => self.item_done(slot, event.item.unwrap_or_default(), out),
            "response.completed" | "response.incomplete" => return self.finish_response(event.response, out),
            "response.failed" => {
                let error = event.response.and_then(|response| response.error).unwrap_or_default();
                return Err(failure::failure_in_stream(&self.info.provider, &error));
            }
            "error" => {
                let whole = serde_json::from_slice(data).unwrap_or_default();
                return Err(failure::failure_in_stream(&self.info.provider, &event.error.unwrap_or(whole)));
            }
            _ => {}
        }
        Ok(())
    }

    fn finish_stream(&mut self, _out: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        Err(codec::codec_cut_off_error(&self.info))
    }
}

fn openai_responses_tokens(usage: &UsageBody) -> Tokens {
    let input = usage.input_tokens_details.as_ref();
    let thinking = usage.output_tokens_details.as_ref().and_then(|details| details.reasoning_tokens);
    Tokens {
        input: usage.input_tokens,
        output: usage.output_tokens,
        cached: input.and_then(|details| details.cached_tokens).unwrap_or(0),
        cache_write: input.and_then(|details| details.cache_write_tokens).unwrap_or(0),
        thinking: thinking.unwrap_or(0),
    }
}
