//! A server that wants a model's answer: a person is asked first, then the session's model.

use std::sync::Arc;

use gander_domain::{
    Choice, ChoiceKind, Delta, DeltaKind, Message, MessageId, Part, QuestionKind, QuestionOrigin, Role,
};
use gander_models::{Finish, ModelError, ModelEvent, ModelStop, Request};
use rmcp::model::{
    CreateMessageRequestParams, CreateMessageResult, ErrorData, Role as McpRole, SamplingMessage,
    SamplingMessageContentBlock,
};
use uuid::Uuid;

use super::session_handle::{RunListener, ServerEvent, SessionHandle};

/// How much of what is asked the person is shown.
const MAX_PREVIEW_CHARS: usize = 200;

/// Asks a person, then the model.
pub(super) async fn sample_with_session_model(
    server: &str,
    session: &SessionHandle,
    params: CreateMessageRequestParams,
    origin: QuestionOrigin,
) -> Result<CreateMessageResult, ErrorData> {
    let Some(listener) = session.current_listener() else { return Err(refused_sampling("no run is under way")) };
    let request = sampling_model_request(params)?;
    let title = format!("{server} wants to ask the model: {}", sampling_preview(&request));
    if !session.ask_person(&title, QuestionKind::Choose { choices: sampling_choices() }, origin).await.is_allowed() {
        return Err(refused_sampling("the user said no"));
    }
    sample_model(&listener, request).await.map_err(|error| ErrorData::internal_error(error.to_string(), None))
}

async fn sample_model(listener: &RunListener, request: Request) -> Result<CreateMessageResult, ModelError> {
    let mut stream = listener.model.stream(request).await?;
    let mut text = String::new();
    while let Some(events) = stream.next_batch().await {
        for event in events? {
            match event {
                ModelEvent::Delta(Delta { growth: DeltaKind::Text, text: more }) => text.push_str(&more),
                ModelEvent::Done(finish) => return Ok(sampling_result(listener, text, &finish).await),
                ModelEvent::Delta(Delta { growth: DeltaKind::Thought, .. })
                | ModelEvent::ToolStarted { .. }
                | ModelEvent::ToolArguments { .. }
                | ModelEvent::Part(_) => {} // only words were asked for
            }
        }
    }
    Err(ModelError::BadStream("the model's answer broke off".to_owned()))
}

async fn sampling_result(listener: &RunListener, text: String, finish: &Finish) -> CreateMessageResult {
    let info = listener.model.info();
    if listener.events.send(ServerEvent::Spent(info.priced_usage(&finish.usage))).await.is_err() {
        tracing::debug!("a run ended before a server's model call");
    }
    let stop = match finish.stop {
        ModelStop::EndTurn | ModelStop::ToolUse | ModelStop::Refusal => CreateMessageResult::STOP_REASON_END_TURN,
        ModelStop::MaxTokens => CreateMessageResult::STOP_REASON_END_MAX_TOKEN,
        ModelStop::StopSequence => CreateMessageResult::STOP_REASON_END_SEQUENCE,
    };
    CreateMessageResult::new(SamplingMessage::assistant_text(text), info.qualified_name()).with_stop_reason(stop)
}

fn sampling_model_request(params: CreateMessageRequestParams) -> Result<Request, ErrorData> {
    let messages = params.messages.into_iter().enumerate().map(|(number, given)| sampling_message(number, given));
    Ok(Request {
        system: params.system_prompt.unwrap_or_default(),
        messages: messages.collect::<Result<_, _>>()?,
        tools: Arc::new([]),
        effort: None,
        temperature: None,
        max_output: Some(params.max_tokens),
        params: serde_json::Map::new(),
    })
}

fn sampling_message(number: usize, given: SamplingMessage) -> Result<Arc<Message>, ErrorData> {
    let role = if given.role == McpRole::User { Role::User } else { Role::Agent };
    let parts = given.content.into_vec().into_iter().map(sampling_part).collect::<Result<_, _>>()?;
    let id = MessageId::new(Uuid::from_u128(number as u128));
    Ok(Arc::new(Message { id, role, parts, interrupted: false, native: None }))
}

fn sampling_part(block: SamplingMessageContentBlock) -> Result<Part, ErrorData> {
    match block {
        SamplingMessageContentBlock::Text(text) => Ok(Part::text(text.text)),
        SamplingMessageContentBlock::Image(image) => {
            Ok(Part::Image { mime: image.mime_type, data: image.data, uri: None })
        }
        SamplingMessageContentBlock::Audio(audio) => Ok(Part::Audio { mime: audio.mime_type, data: audio.data }),
        SamplingMessageContentBlock::ToolUse(_) | SamplingMessageContentBlock::ToolResult(_) | _ => {
            Err(ErrorData::invalid_params("sampling with tools is not supported", None))
        }
    }
}

fn sampling_preview(request: &Request) -> String {
    let text = request.messages.last().map(|message| message.plain_text()).unwrap_or_default();
    text.chars().take(MAX_PREVIEW_CHARS).collect()
}

fn sampling_choices() -> Vec<Choice> {
    let choice = |id: &str, name: &str, kind| Choice { id: id.to_owned(), name: name.to_owned(), kind };
    vec![choice("allow_once", "Allow", ChoiceKind::AllowOnce), choice("reject_once", "Reject", ChoiceKind::RejectOnce)]
}

/// -1 is what the specification says for a user's refusal.
fn refused_sampling(why: &'static str) -> ErrorData {
    ErrorData::new(rmcp::model::ErrorCode(-1), why, None)
}
