//! Chunks of a chat completion.

use std::borrow::Cow;

use gander_domain::{Delta, DeltaKind, Part};
use serde_json::{Map, Value, json};

use super::WIRE;
use super::chunk::{CallDelta, Choices, Chunk, Content, DeltaBody, UsageBody};
use crate::codec::{self, Codec};
use crate::{Finish, ModelError, ModelEvent, ModelInfo, ModelStop, Tokens, failure};

/// One answer of a chat completion.
pub struct ChatDecoder {
    info: ModelInfo,
    text: String,
    reasoning: Map<String, Value>,
    calls: Vec<Call>,
    stop: Option<ModelStop>,
    refused: bool,
    usage: Tokens,
}

struct Call {
    /// The server's number for it.
    slot: u32,
    id: String,
    name: String,
    arguments: String,
    /// What else came with it, such as Gemini's thought signatures.
    extra: Option<Value>,
}

impl ChatDecoder {
    /// For an answer of this model.
    pub fn new(info: &ModelInfo) -> Self {
        Self {
            info: info.clone(),
            text: String::new(),
            reasoning: Map::new(),
            calls: Vec::new(),
            stop: None,
            refused: false,
            usage: Tokens::default(),
        }
    }

    fn handle_delta(&mut self, delta: DeltaBody<'_>, out: &mut Vec<ModelEvent>) {
        match delta.content {
            Some(Content::Text(text)) => self.push_text(text, out),
            Some(Content::Parts(parts)) => parts.iter().for_each(|part| self.push_content_part(part, out)),
            None => {}
        }
        if let Some(text) = delta.reasoning_content {
            self.push_thought("reasoning_content", text.0, out);
        } else if let Some(text) = delta.reasoning {
            self.push_thought("reasoning", text.0, out);
        }
        if let Some(text) = delta.refusal {
            self.refused = true;
            self.push_text(text.0, out);
        }
        if let Some(Value::Array(details)) = delta.reasoning_details {
            let kept = self.reasoning.entry("reasoning_details").or_insert_with(|| json!([]));
            details.into_iter().for_each(|detail| merge_openai_chat_detail(kept, detail));
        }
        out.extend(delta.images.iter().flatten().filter_map(decode_openai_chat_image));
        for call in delta.tool_calls.unwrap_or_default() {
            self.handle_call_delta(call, out);
        }
    }

    fn push_text(&mut self, text: Cow<'_, str>, out: &mut Vec<ModelEvent>) {
        if !text.is_empty() {
            self.text.push_str(&text);
            out.push(ModelEvent::Delta(Delta { growth: DeltaKind::Text, text: text.into_owned() }));
        }
    }

    fn push_thought(&mut self, field: &str, text: Cow<'_, str>, out: &mut Vec<ModelEvent>) {
        if text.is_empty() {
            return;
        }
        if let Some(Value::String(kept)) = self.reasoning.get_mut(field) {
            kept.push_str(&text);
        } else {
            self.reasoning.insert(field.to_owned(), text.as_ref().into());
        }
        out.push(ModelEvent::Delta(Delta { growth: DeltaKind::Thought, text: text.into_owned() }));
    }

    /// Mistral's reasoning models send their content in typed parts.
    fn push_content_part(&mut self, part: &Value, out: &mut Vec<ModelEvent>) {
        let text = |value: &Value| value.get("text").and_then(Value::as_str).unwrap_or_default().to_owned();
        match part.get("type").and_then(Value::as_str) {
            Some("thinking") => {
                let thoughts: String = part["thinking"].as_array().into_iter().flatten().map(text).collect();
                self.push_thought("reasoning", thoughts.into(), out);
            }
            Some(_) | None => self.push_text(text(part).into(), out),
        }
    }

    fn handle_call_delta(&mut self, delta: CallDelta<'_>, out: &mut Vec<ModelEvent>) {
        let function = delta.function.unwrap_or_default();
        let id = delta.id.map(|id| id.0).unwrap_or_default();
        let name = function.name.map(|name| name.0).unwrap_or_default();
        let slot = delta.index.unwrap_or_else(|| self.calls.last().map_or(0, |call| call.slot));
        let known = self.calls.iter().rposition(|call| call.slot == slot);
        // Some servers number every call 0: another id with a name is another call.
        let known = known.filter(|at| id.is_empty() || name.is_empty() || self.calls[*at].id == id);
        let at = known.unwrap_or_else(|| {
            let index = self.calls.len();
            out.push(ModelEvent::ToolStarted { index: index as u32, name: name.clone().into_owned() });
            let (id, name) = (id.into_owned(), name.into_owned());
            self.calls.push(Call { slot, id, name, arguments: String::new(), extra: None });
            index
        });
        let call = &mut self.calls[at];
        call.extra = delta.extra_content.or(call.extra.take());
        if let Some(text) = function.arguments.map(|text| text.0).filter(|text| !text.is_empty()) {
            call.arguments.push_str(&text);
            out.push(ModelEvent::ToolArguments { index: at as u32, text: text.into_owned() });
        }
    }

    fn finish_response(&mut self, out: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        let stop = self.stop_reason();
        let mut whole = true;
        for (index, call) in self.calls.iter_mut().enumerate() {
            if call.arguments.is_empty() {
                call.arguments.push_str("{}");
                out.push(ModelEvent::ToolArguments { index: index as u32, text: "{}".into() });
            }
            if let Err(error) = codec::parse_codec_arguments(&self.info, &call.name, &call.arguments) {
                if stop != ModelStop::MaxTokens {
                    return Err(error);
                }
                whole = false;
            }
        }
        let needs_native = !self.calls.is_empty() || self.reasoning.contains_key("reasoning_details");
        let message = (whole && needs_native).then(|| self.native_message());
        let native = message.map(|message| codec::codec_native_payload(WIRE, &self.info, vec![message]));
        out.push(ModelEvent::Done(Finish { stop, usage: self.usage, native }));
        Ok(())
    }

    fn stop_reason(&self) -> ModelStop {
        match self.stop {
            _ if self.refused => ModelStop::Refusal,
            // Several servers say `stop` even when tools are wanted, some say `tool_calls` without any.
            Some(ModelStop::EndTurn | ModelStop::ToolUse) | None if !self.calls.is_empty() => ModelStop::ToolUse,
            Some(ModelStop::ToolUse) | None => ModelStop::EndTurn,
            Some(stop) => stop,
        }
    }

    fn native_message(&mut self) -> Value {
        let calls = self.calls.drain(..).map(|call| {
            let Call { id, name, arguments, extra, .. } = call;
            let mut call = json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}});
            if let Some(extra) = extra {
                call["extra_content"] = extra;
            }
            call
        });
        let calls: Vec<Value> = calls.collect();
        let content = if self.text.is_empty() { Value::Null } else { std::mem::take(&mut self.text).into() };
        let mut message = json!({"role": "assistant", "content": content});
        if !calls.is_empty() {
            message["tool_calls"] = calls.into();
        }
        for (field, value) in std::mem::take(&mut self.reasoning) {
            message[field] = value;
        }
        message
    }
}

impl Codec for ChatDecoder {
    fn decode_event(&mut self, data: &[u8], out: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        if data.trim_ascii() == b"[DONE]" {
            return self.finish_stream(out);
        }
        let chunk: Chunk<'_> =
            serde_json::from_slice(data).map_err(|error| codec::codec_bad_event_error(&self.info, &error, data))?;
        if let Some(error) = chunk.error.filter(|error| !error.is_null()) {
            return Err(failure::failure_in_stream(&self.info.provider, &error));
        }
        if let Some(usage) = chunk.usage {
            self.usage = openai_chat_tokens(&usage);
        }
        let Choices(Some(choice)) = chunk.choices else { return Ok(()) };
        if let Some(delta) = choice.delta {
            self.handle_delta(delta, out);
        }
        if let Some(reason) = choice.finish_reason {
            self.stop = Some(openai_chat_stop_reason(&reason.0));
        }
        Ok(())
    }

    fn finish_stream(&mut self, out: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        if self.stop.is_none() { Err(codec::codec_cut_off_error(&self.info)) } else { self.finish_response(out) }
    }
}

fn openai_chat_stop_reason(reason: &str) -> ModelStop {
    match reason {
        "length" | "max_tokens" | "model_length" => ModelStop::MaxTokens,
        "content_filter" | "refusal" => ModelStop::Refusal,
        "tool_calls" | "function_call" => ModelStop::ToolUse,
        _ => ModelStop::EndTurn,
    }
}

fn openai_chat_tokens(usage: &UsageBody) -> Tokens {
    let (prompt, completion) = (usage.prompt_tokens.unwrap_or(0), usage.completion_tokens.unwrap_or(0));
    // xAI and Gemini leave thinking out of the completion but not out of the total.
    let output = completion.max(usage.total_tokens.unwrap_or(0).saturating_sub(prompt));
    let details = |details: &Option<Map<String, Value>>, field: &str| {
        details.as_ref().and_then(|details| details.get(field)).and_then(Value::as_u64)
    };
    let cached = details(&usage.prompt_tokens_details, "cached_tokens").or(usage.prompt_cache_hit_tokens);
    let thinking = details(&usage.completion_tokens_details, "reasoning_tokens");
    Tokens { input: prompt, output, cached: cached.unwrap_or(0), cache_write: 0, thinking: thinking.unwrap_or(0) }
}

/// OpenRouter streams each detail of the reasoning in fragments of the same type and index.
fn merge_openai_chat_detail(kept: &mut Value, detail: Value) {
    let Some(list) = kept.as_array_mut() else { return };
    let same = |other: &&mut Value| other["type"] == detail["type"] && other["index"] == detail["index"];
    let Some(before) = list.iter_mut().find(same) else { return list.push(detail) };
    let Value::Object(detail) = detail else { return };
    for (field, value) in detail {
        match (&mut before[field.as_str()], value) {
            (Value::String(text), Value::String(more)) if ["text", "summary", "data"].contains(&field.as_str()) => {
                text.push_str(&more);
            }
            (_, Value::Null) => {}
            (place, value) => *place = value,
        }
    }
}

fn decode_openai_chat_image(image: &Value) -> Option<ModelEvent> {
    let url = image.get("image_url")?.get("url")?.as_str()?;
    let (mime, data) = url.strip_prefix("data:")?.split_once(";base64,")?;
    Some(ModelEvent::Part(Part::Image { mime: mime.into(), data: data.into(), uri: None }))
}
