//! Questions as what a run awaits, and messages as their answers.

use gander_domain::{Question, QuestionKind, Reply};
use serde_json::{Map, Value, json};

use super::refusal::AcpRestError;
use super::types::{AcpRestMessage, AwaitRequest, MessagePart, WireTime};
use crate::answer::{ChoiceAnswer, is_decline_answer, is_edited_plan, is_no_answer, read_choice_answer};
use crate::preview::question_with_preview;

/// What a question awaits. People read the first part, programs the second.
pub fn acp_rest_question_await_request(role: &str, question: &Question, at: WireTime) -> AwaitRequest {
    let title = Some(question_with_preview(question)).filter(|text| !text.is_empty()).map(MessagePart::text);
    let detail = acp_rest_question_detail(question).map(|detail| MessagePart {
        content_type: "application/json".to_owned(),
        ..MessagePart::text(detail.to_string())
    });
    let parts = title.into_iter().chain(detail).collect();
    let message = AcpRestMessage { role: role.to_owned(), parts, created_at: Some(at), completed_at: Some(at) };
    AwaitRequest::Message { message }
}

/// The question that a message says it answers, if it says so.
pub fn acp_rest_question_id_in(message: &AcpRestMessage) -> Option<String> {
    acp_rest_question_reply_json(message)?.get("question")?.as_str().map(str::to_owned)
}

/// What a message answers, or what it would have to say.
pub fn read_acp_rest_reply(question: &Question, message: &AcpRestMessage) -> Result<Reply, AcpRestError> {
    let (text, content) = (acp_rest_question_reply_text(message), acp_rest_question_reply_json(message));
    match &question.ask {
        QuestionKind::Choose { .. } if question.plan.is_some() && content.as_ref().is_some_and(is_edited_plan) => {
            Ok(Reply::Filled { content: Value::Object(content.unwrap_or_default()) })
        }
        QuestionKind::Choose { choices } => {
            let named = content.as_ref().and_then(|content| content.get("choice")).and_then(Value::as_str);
            read_choice_answer(choices, ChoiceAnswer::Words(named.unwrap_or(&text))).ok_or_else(|| {
                let ids: Vec<&str> = choices.iter().map(|choice| choice.id.as_str()).collect();
                AcpRestError::invalid(format!("say one of: {}", ids.join(", ")))
            })
        }
        QuestionKind::Form { .. } if is_decline_answer(&text) && content.is_none() => Ok(Reply::Declined),
        QuestionKind::Visit { .. } if is_no_answer(&text) && content.is_none() => Ok(Reply::Declined),
        // Only a form that takes no text is declined by a plain no: elsewhere that is what is filled in.
        QuestionKind::Form { schema } => match fill_acp_rest_question_form(schema, content, &text) {
            Ok(content) => Ok(Reply::Filled { content }),
            Err(_) if is_no_answer(&text) => Ok(Reply::Declined),
            Err(error) => Err(error),
        },
        QuestionKind::Visit { .. } => Ok(Reply::Filled { content: Value::Object(content.unwrap_or_default()) }),
    }
}

fn acp_rest_question_detail(question: &Question) -> Option<Value> {
    let id = question.id;
    match &question.ask {
        QuestionKind::Choose { choices } => match &question.plan {
            Some(proposal) => Some(json!({ "question": id, "choices": choices, "plan": proposal.plan })),
            None if question.shown_preview().is_empty() => Some(json!({ "question": id, "choices": choices })),
            None => Some(json!({ "question": id, "choices": choices, "preview": question.shown_preview() })),
        },
        QuestionKind::Form { schema } if acp_rest_question_accepts_anything(schema) => None,
        QuestionKind::Form { schema } => Some(json!({ "question": id, "schema": schema })),
        QuestionKind::Visit { url } => Some(json!({ "question": id, "url": url })),
    }
}

/// A form of one text needs no JSON.
fn fill_acp_rest_question_form(
    schema: &Value,
    content: Option<Map<String, Value>>,
    text: &str,
) -> Result<Value, AcpRestError> {
    if let Some(content) = content {
        return Ok(Value::Object(content));
    }
    if acp_rest_question_accepts_anything(schema) {
        return Ok(json!({ "text": text }));
    }
    let fields = schema.get("properties").and_then(Value::as_object);
    let mut words = fields.into_iter().flatten().filter(|(_, field)| field["type"] == "string").map(|(name, _)| name);
    match (words.next(), words.next(), fields.map(Map::len)) {
        (Some(only), None, Some(1)) => {
            Ok(Value::Object(Map::from_iter([(only.clone(), Value::String(text.to_owned()))])))
        }
        _ => Err(AcpRestError::invalid("answer with a part of application/json that fits the schema")),
    }
}

/// A form that says nothing about its content takes any message.
fn acp_rest_question_accepts_anything(schema: &Value) -> bool {
    schema.as_object().is_none_or(Map::is_empty)
}

fn acp_rest_question_reply_text(message: &AcpRestMessage) -> String {
    let plain = message.parts.iter().filter(|part| part.content_type.starts_with("text/"));
    plain.filter_map(|part| part.content.as_deref()).collect::<Vec<_>>().join("\n")
}

fn acp_rest_question_reply_json(message: &AcpRestMessage) -> Option<Map<String, Value>> {
    let mut json = message.parts.iter().filter(|part| part.content_type.ends_with("json"));
    json.find_map(|part| serde_json::from_str(part.content.as_deref()?).ok())
}
