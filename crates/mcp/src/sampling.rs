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

use super::audience::{Audience, News, Seat};

/// How much of what is asked the person is shown.
const SHOWN: usize = 200;

/// Asks a person, then the model.
pub(super) async fn sample(
    server: &str,
    seat: &Seat,
    params: CreateMessageRequestParams,
    origin: QuestionOrigin,
) -> Result<CreateMessageResult, ErrorData> {
    let Some(audience) = seat.audience() else { return Err(refused("no run is under way")) };
    let request = request(params)?;
    let title = format!("{server} wants to ask the model: {}", gist(&request));
    if !seat.ask(&title, QuestionKind::Choose { choices: choices() }, origin).await.allows() {
        return Err(refused("the user said no"));
    }
    answer(&audience, request).await.map_err(|error| ErrorData::internal_error(error.to_string(), None))
}

async fn answer(audience: &Audience, request: Request) -> Result<CreateMessageResult, ModelError> {
    let mut stream = audience.model.stream(request).await?;
    let mut text = String::new();
    while let Some(events) = stream.next().await {
        for event in events? {
            match event {
                ModelEvent::Delta(Delta { growth: DeltaKind::Text, text: more }) => text.push_str(&more),
                ModelEvent::Done(finish) => return Ok(result(audience, text, &finish).await),
                ModelEvent::Delta(Delta { growth: DeltaKind::Thought, .. })
                | ModelEvent::ToolStarted { .. }
                | ModelEvent::ToolArguments { .. }
                | ModelEvent::Part(_) => {} // only words were asked for
            }
        }
    }
    Err(ModelError::BadStream("the model's answer broke off".to_owned()))
}

async fn result(audience: &Audience, text: String, finish: &Finish) -> CreateMessageResult {
    let info = audience.model.info();
    if audience.news.send(News::Spent(info.usage(&finish.usage))).await.is_err() {
        tracing::debug!("a run ended before a server's model call");
    }
    let stop = match finish.stop {
        ModelStop::EndTurn | ModelStop::ToolUse | ModelStop::Refusal => CreateMessageResult::STOP_REASON_END_TURN,
        ModelStop::MaxTokens => CreateMessageResult::STOP_REASON_END_MAX_TOKEN,
    };
    CreateMessageResult::new(SamplingMessage::assistant_text(text), info.name()).with_stop_reason(stop)
}

fn request(params: CreateMessageRequestParams) -> Result<Request, ErrorData> {
    let messages = params.messages.into_iter().enumerate().map(|(number, given)| message(number, given));
    Ok(Request {
        system: params.system_prompt.unwrap_or_default(),
        messages: messages.collect::<Result<_, _>>()?,
        tools: Arc::new([]),
        effort: None,
        temperature: None,
        max_output: Some(params.max_tokens),
    })
}

fn message(number: usize, given: SamplingMessage) -> Result<Arc<Message>, ErrorData> {
    let role = if given.role == McpRole::User { Role::User } else { Role::Agent };
    let parts = given.content.into_vec().into_iter().map(part).collect::<Result<_, _>>()?;
    let id = MessageId::new(Uuid::from_u128(number as u128));
    Ok(Arc::new(Message { id, role, parts, interrupted: false, native: None }))
}

fn part(block: SamplingMessageContentBlock) -> Result<Part, ErrorData> {
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

fn gist(request: &Request) -> String {
    let text = request.messages.last().map(|message| message.plain_text()).unwrap_or_default();
    text.chars().take(SHOWN).collect()
}

fn choices() -> Vec<Choice> {
    let choice = |id: &str, name: &str, kind| Choice { id: id.to_owned(), name: name.to_owned(), kind };
    vec![choice("allow_once", "Allow", ChoiceKind::AllowOnce), choice("reject_once", "Reject", ChoiceKind::RejectOnce)]
}

/// -1 is what the specification says for a user's refusal.
fn refused(why: &'static str) -> ErrorData {
    ErrorData::new(rmcp::model::ErrorCode(-1), why, None)
}
