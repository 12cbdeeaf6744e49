//! Providers of the long tail, through the `genai` crate.
//!
//! Tool results are text there, and a tool's arguments come as the whole string so far: what is new is cut out here.

use async_trait::async_trait;
use futures::{StreamExt, stream};
use gander_domain::{Delta, DeltaKind, Effort};
use genai::Client;
use genai::chat::{
    ChatMessage, ChatOptions, ChatRequest, ChatStream, ChatStreamEvent, ContentPart, MessageContent, ReasoningEffort,
    StopReason, StreamEnd, Tool, ToolCall, ToolResponse, Usage,
};
use genai::resolver::AuthData;
use jiff::Timestamp;
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;

use super::failure::{self, FailureHints};
use super::history::{
    AgentTurn, ContentPiece, HistoryReader, ToolReturn, Turn, history_provider_call_id, history_tool_uses,
    join_history_text,
};
use super::profile::Profile;
use super::timeouts::Timeouts;
use super::{
    Finish, Model, ModelError, ModelEvent, ModelInfo, ModelStop, ModelStream, Request, Tokens, codec, http, retry,
};

/// The tag of native items: the content parts of the `genai` crate.
const WIRE: &str = "genai";

/// A model behind the `genai` crate.
pub struct GenaiModel {
    info: ModelInfo,
    /// The crate's name for the provider and the model.
    target: String,
    client: Client,
    timeouts: Timeouts,
}

impl GenaiModel {
    /// Prepares to ask; nothing is sent yet.
    pub fn new(profile: Profile, namespace: &str, key: SecretString, timeouts: Timeouts) -> Result<Self, ModelError> {
        let failed = |error: String| ModelError::Network(format!("cannot prepare a connection: {error}"));
        let web = http::build_model_http_client("https://", timeouts.limits.connect)
            .map_err(|error| failed(failure::describe_network_failure(&error)))?;
        let auth = move |_| Ok(Some(AuthData::from_single(key.expose_secret())));
        let client = Client::builder().with_reqwest(web).with_auth_resolver_fn(auth).build();
        let client = client.map_err(|error| failed(error.to_string()))?;
        let info = profile.info;
        Ok(Self { target: format!("{namespace}::{}", info.model), info, client, timeouts })
    }

    async fn start_stream(&self, request: ChatRequest, options: &ChatOptions) -> Result<ModelStream, ModelError> {
        let answer = self.client.exec_chat_stream(&self.target, request, Some(options)).await;
        let answer = answer.map_err(|error| genai_model_error(&self.info, &error))?;
        let mut reading =
            GenaiStream { stream: answer.stream, calls: Vec::new(), info: self.info.clone(), done: false };
        let first = reading.next_batch().await.transpose()?.unwrap_or_default();
        let rest = stream::unfold(reading, |mut reading| async move { Some((reading.next_batch().await?, reading)) });
        Ok(ModelStream::new(stream::iter([Ok(first)]).chain(rest)))
    }

    fn chat_options(&self, request: &Request) -> ChatOptions {
        let limits = &self.timeouts.limits;
        let mut options = ChatOptions::default()
            .with_capture_usage(true)
            .with_capture_content(true)
            .with_capture_tool_calls(true)
            .with_capture_reasoning_content(true)
            .with_stream_header_timeout(limits.header)
            .with_stream_read_timeout(limits.idle);
        if let Some(most) = request.max_output {
            options = options.with_max_tokens(most);
        }
        if let Some(temperature) = request.temperature {
            options = options.with_temperature(f64::from(temperature));
        }
        match request.effort {
            None => options,
            Some(Effort::Off) => options.with_reasoning_effort(ReasoningEffort::Zero),
            Some(Effort::Low) => options.with_reasoning_effort(ReasoningEffort::Low),
            Some(Effort::Medium) => options.with_reasoning_effort(ReasoningEffort::Medium),
            Some(Effort::High) => options.with_reasoning_effort(ReasoningEffort::High),
        }
    }
}

#[async_trait]
impl Model for GenaiModel {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    async fn stream(&self, request: Request) -> Result<ModelStream, ModelError> {
        let (chat, options) = (encode_genai_request(&request, &self.info), self.chat_options(&request));
        let attempt = || self.start_stream(chat.clone(), &options);
        retry::retry_until_streaming(&self.timeouts.retry, &self.info, attempt).await
    }
}

/// An answer that is being read.
struct GenaiStream {
    stream: ChatStream,
    calls: Vec<ToolCall>,
    info: ModelInfo,
    done: bool,
}

impl GenaiStream {
    async fn next_batch(&mut self) -> Option<Result<Vec<ModelEvent>, ModelError>> {
        let mut events = Vec::new();
        while events.is_empty() && !self.done {
            let read = match self.stream.next().await {
                Some(Ok(event)) => self.handle_event(event, &mut events),
                Some(Err(error)) => Err(genai_model_error(&self.info, &error)),
                None => Err(codec::codec_cut_off_error(&self.info)),
            };
            if let Err(error) = read {
                self.done = true;
                return Some(Err(error));
            }
        }
        (!events.is_empty()).then_some(Ok(events))
    }

    fn handle_event(&mut self, event: ChatStreamEvent, out: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        let delta = |growth, text| ModelEvent::Delta(Delta { growth, text });
        match event {
            ChatStreamEvent::Chunk(chunk) if !chunk.content.is_empty() => {
                out.push(delta(DeltaKind::Text, chunk.content))
            }
            ChatStreamEvent::ReasoningChunk(chunk) if !chunk.content.is_empty() => {
                out.push(delta(DeltaKind::Thought, chunk.content));
            }
            ChatStreamEvent::ToolCallChunk(chunk) => merge_genai_call_chunk(&mut self.calls, chunk.tool_call, out),
            ChatStreamEvent::End(end) => return self.finish_response(end, out),
            ChatStreamEvent::Start
            | ChatStreamEvent::Chunk(_)
            | ChatStreamEvent::ReasoningChunk(_)
            | ChatStreamEvent::ThoughtSignatureChunk(_)
            | ChatStreamEvent::Heartbeat => {}
        }
        Ok(())
    }

    fn finish_response(&mut self, end: StreamEnd, out: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        self.done = true;
        let stop = match end.captured_stop_reason {
            Some(StopReason::MaxTokens(_)) => ModelStop::MaxTokens,
            Some(StopReason::ContentFilter(_)) => ModelStop::Refusal,
            Some(_) | None if !self.calls.is_empty() => ModelStop::ToolUse,
            Some(_) | None => ModelStop::EndTurn,
        };
        for (index, call) in self.calls.iter().enumerate() {
            let arguments = call.fn_arguments.as_str().filter(|text| !text.is_empty());
            if arguments.is_none() {
                out.push(ModelEvent::ToolArguments { index: index as u32, text: "{}".into() });
            }
            if stop != ModelStop::MaxTokens {
                codec::parse_codec_arguments(&self.info, &call.fn_name, arguments.unwrap_or("{}"))?;
            }
        }
        let content = end.captured_content.filter(|_| stop == ModelStop::ToolUse);
        let items = content.and_then(|content| serde_json::to_value(content.into_parts()).ok());
        let native =
            items.and_then(|items| Some(codec::codec_native_payload(WIRE, &self.info, items.as_array()?.clone())));
        let usage = end.captured_usage.map(|usage| genai_tokens(&usage)).unwrap_or_default();
        out.push(ModelEvent::Done(Finish { stop, usage, native }));
        Ok(())
    }
}

/// Takes a call as it is now and tells what is new about it. Known calls keep their arguments as text.
fn merge_genai_call_chunk(calls: &mut Vec<ToolCall>, mut call: ToolCall, out: &mut Vec<ModelEvent>) {
    let whole = match call.fn_arguments.take() {
        Value::String(text) => text,
        Value::Null => String::new(),
        value @ (Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => value.to_string(),
    };
    let known = calls.iter().position(|known| known.call_id == call.call_id);
    let at = known.unwrap_or_else(|| {
        out.push(ModelEvent::ToolStarted { index: calls.len() as u32, name: call.fn_name.clone() });
        calls.push(call);
        calls.len() - 1
    });
    let before = calls[at].fn_arguments.as_str().unwrap_or_default();
    if let Some(new) = whole.strip_prefix(before).filter(|new| !new.is_empty()) {
        out.push(ModelEvent::ToolArguments { index: at as u32, text: new.to_owned() });
        calls[at].fn_arguments = whole.into();
    }
}

fn encode_genai_request(request: &Request, info: &ModelInfo) -> ChatRequest {
    let turns = HistoryReader { wire: WIRE, info, native_ids: genai_native_ids, make_id: history_provider_call_id }
        .group_into_turns(&request.messages);
    let mut messages = Vec::with_capacity(turns.len());
    for turn in &turns {
        match turn {
            Turn::User(pieces) => messages.push(ChatMessage::user(encode_genai_pieces(pieces))),
            Turn::Agent(turn) => messages.push(ChatMessage::assistant(encode_genai_agent_turn(turn))),
            Turn::Tool(returned) => messages.extend(encode_genai_tool_results(returned)),
        }
    }
    let tools = request.tools.iter().map(|tool| {
        Tool::new(tool.name.clone()).with_description(tool.description.clone()).with_schema((*tool.schema).clone())
    });
    let chat = ChatRequest::from_messages(messages).with_tools(tools);
    if request.system.is_empty() { chat } else { chat.with_system(request.system.clone()) }
}

fn encode_genai_agent_turn(turn: &AgentTurn<'_>) -> MessageContent {
    let native = turn.native.and_then(|items| serde_json::from_value(Value::Array(items.to_vec())).ok());
    if let Some(content) = native {
        return content;
    }
    let text = gander_domain::message::plain_text(turn.parts);
    let mut parts: Vec<ContentPart> = Vec::new();
    if !text.is_empty() {
        parts.push(ContentPart::from_text(text));
    }
    parts.extend(history_tool_uses(turn.parts).zip(&turn.ids).map(|((_, name, arguments), id)| {
        ContentPart::ToolCall(ToolCall {
            call_id: id.clone(),
            fn_name: name.to_owned(),
            fn_arguments: arguments.clone(),
            thought_signatures: None,
        })
    }));
    MessageContent::from_parts(parts)
}

/// One message per result, then one of a person with all pictures.
fn encode_genai_tool_results(returned: &[ToolReturn<'_>]) -> impl Iterator<Item = ChatMessage> {
    let texts = returned.iter().map(|ToolReturn { id, pieces, .. }| {
        let text = join_history_text(pieces).into_owned();
        ChatMessage::tool(MessageContent::from_tool_responses(vec![ToolResponse::new(id.clone(), text)]))
    });
    let is_image = |piece: &&ContentPiece<'_>| matches!(piece, ContentPiece::Image { .. });
    let images: Vec<ContentPiece<'_>> = returned.iter().flat_map(|one| &one.pieces).filter(is_image).cloned().collect();
    let images = (!images.is_empty()).then(|| ChatMessage::user(encode_genai_pieces(&images)));
    texts.chain(images)
}

fn encode_genai_pieces(pieces: &[ContentPiece<'_>]) -> MessageContent {
    let parts = pieces.iter().map(|piece| match piece {
        ContentPiece::Text(text) => ContentPart::from_text(text.as_ref()),
        // No model of this wire says that it hears.
        ContentPiece::Audio { .. } => ContentPart::from_text("[a sound, which this wire does not carry]"),
        ContentPiece::Image { mime, data } => ContentPart::from_binary_base64(*mime, *data, None),
    });
    MessageContent::from_parts(parts.collect::<Vec<_>>())
}

fn genai_native_ids(items: &[Value]) -> Vec<String> {
    let calls = items.iter().filter_map(|item| item.get("ToolCall"));
    calls.map(|call| call["call_id"].as_str().unwrap_or_default().to_owned()).collect()
}

fn genai_tokens(usage: &Usage) -> Tokens {
    let count = |count: Option<i32>| count.and_then(|count| u64::try_from(count).ok()).unwrap_or(0);
    let prompt = usage.prompt_tokens_details.as_ref();
    let completion = usage.completion_tokens_details.as_ref();
    Tokens {
        input: count(usage.prompt_tokens),
        output: count(usage.completion_tokens),
        cached: count(prompt.and_then(|details| details.cached_tokens)),
        cache_write: count(prompt.and_then(|details| details.cache_creation_tokens)),
        thinking: count(completion.and_then(|details| details.reasoning_tokens)),
    }
}

/// What the crate's error means. Its own text may quote whole requests.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "the enum is another crate's and its other reasons are all one to us"
)]
fn genai_model_error(info: &ModelInfo, error: &genai::Error) -> ModelError {
    use genai::webc::Error as WebError;
    let hints = FailureHints { provider: info.provider.clone(), ..FailureHints::default() };
    let refusal = |status: reqwest::StatusCode, body: &str, headers: &reqwest::header::HeaderMap| {
        let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        let wait = retry::retry_after(header, Timestamp::now());
        failure::failure_from_status(&hints, status.as_u16(), body.as_bytes(), wait)
    };
    match error {
        genai::Error::HttpError { status, body, headers, .. } => refusal(*status, body, headers),
        genai::Error::WebModelCall { webc_error: WebError::ResponseFailedStatus { status, body, headers }, .. } => {
            refusal(*status, body, headers)
        }
        genai::Error::ChatResponse { body, .. } => failure::failure_in_stream(&info.provider, body),
        genai::Error::WebModelCall { .. } | genai::Error::WebStream { .. } => {
            ModelError::Network(format!("cannot reach {}: {error}", info.provider))
        }
        genai::Error::StreamParse { .. } => {
            ModelError::BadStream(format!("{} sent an event that cannot be read: {error}", info.provider))
        }
        error => ModelError::BadRequest(failure::truncate_failure_text(&format!(
            "{} cannot be asked: {error}",
            info.provider
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_that_repeat_themselves_become_true_deltas() {
        let call = |text: &str| ToolCall {
            call_id: "a".into(),
            fn_name: "list".into(),
            fn_arguments: text.into(),
            thought_signatures: None,
        };
        let (mut calls, mut out) = (Vec::new(), Vec::new());
        for text in ["", "{\"pa", "{\"path\":1}"] {
            merge_genai_call_chunk(&mut calls, call(text), &mut out);
        }
        let wanted = [
            ModelEvent::ToolStarted { index: 0, name: "list".into() },
            ModelEvent::ToolArguments { index: 0, text: "{\"pa".into() },
            ModelEvent::ToolArguments { index: 0, text: "th\":1}".into() },
        ];
        assert_eq!(out, wanted);
    }
}
