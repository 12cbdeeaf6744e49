//! Questions as messages, and messages as answers.

use gander_domain::{Answer, Question, QuestionKind, RejectReason, Reply};
use serde_json::{Map, Value, json};

use super::error::A2aError;
use super::{A2aMessage, A2aPart, A2aPartContent, EXTENSION, TaskState};
use crate::answer::{ChoiceAnswer, is_decline_answer, is_edited_plan, is_no_answer, read_choice_answer};
use crate::preview::question_with_preview;

/// The state of a task that asks this.
pub(super) fn a2a_question_task_state(question: &Question) -> TaskState {
    match question.ask {
        QuestionKind::Choose { .. } | QuestionKind::Form { .. } => TaskState::InputRequired,
        QuestionKind::Visit { .. } => TaskState::AuthRequired,
    }
}

/// The question in words.
pub(super) fn a2a_question_text(question: &Question) -> String {
    match &question.ask {
        QuestionKind::Choose { choices } => {
            let names: Vec<&str> = choices.iter().map(|choice| choice.id.as_str()).collect();
            format!("{} [{}]", question_with_preview(question), names.join(" | "))
        }
        QuestionKind::Form { .. } => question.title.clone(),
        QuestionKind::Visit { url } => format!("{}: {url}", question.title),
    }
}

/// The question as data.
pub(super) fn a2a_question_data(question: &Question) -> Value {
    let mut data = json!({ "kind": "question", "id": question.id, "title": question.title });
    match &question.ask {
        QuestionKind::Choose { choices } => data["choices"] = json!(choices),
        QuestionKind::Form { schema } => data["schema"] = schema.clone(),
        QuestionKind::Visit { url } => data["url"] = json!(url),
    }
    if let Some(proposal) = &question.plan {
        data["plan"] = json!(proposal.plan);
    }
    if !question.shown_preview().is_empty() {
        data["preview"] = json!(question.shown_preview());
    }
    if let Some(call) = question.call {
        data["call"] = json!(call);
    }
    data
}

/// The question that a message answers: the one it names, else the oldest that holds the task up.
pub fn a2a_answered_question<'a>(open: &'a [Question], message: &A2aMessage) -> Option<&'a Question> {
    match a2a_question_id_in(message) {
        Some(id) => open.iter().find(|question| question.id.to_string() == id),
        None => open.iter().find(|question| !question.is_non_blocking()),
    }
}

/// The question that a message says it answers, if it says so.
pub fn a2a_question_id_in(message: &A2aMessage) -> Option<&str> {
    let metadata = message.metadata.as_ref().and_then(|metadata| metadata.get(EXTENSION)?.get("question")?.as_str());
    metadata.or_else(|| a2a_question_reply_data(message).and_then(|data| data.get("question")?.as_str()))
}

/// True if a message says that it is a prompt and answers nothing.
pub fn is_a2a_question_marked_as_prompt(message: &A2aMessage) -> bool {
    let metadata = message.metadata.as_ref().and_then(|metadata| metadata.get(EXTENSION)?.get("prompt"));
    metadata == Some(&Value::Bool(true))
}

/// What a message answers to a question, or what it could have said.
pub fn read_a2a_reply(question: &Question, message: &A2aMessage) -> Result<Reply, A2aError> {
    let text = a2a_question_reply_text(message);
    match &question.ask {
        QuestionKind::Choose { .. }
            if question.plan.is_some() && a2a_question_reply_data(message).is_some_and(is_edited_plan) =>
        {
            let content = a2a_question_reply_data(message).cloned().unwrap_or_default();
            Ok(Reply::Filled { content: Value::Object(content) })
        }
        QuestionKind::Choose { choices } => {
            let data = a2a_question_reply_data(message).and_then(|data| data.get("choice")?.as_str());
            let said = data.unwrap_or(text.trim());
            read_choice_answer(choices, ChoiceAnswer::Words(said)).ok_or_else(|| {
                let ids: Vec<&str> = choices.iter().map(|choice| choice.id.as_str()).collect();
                A2aError::invalid_field("message.parts", format!("the task asks for one of: {}", ids.join(", ")))
            })
        }
        QuestionKind::Form { schema } => Ok(match (a2a_question_reply_data(message), text.trim()) {
            (Some(data), _) => Reply::Filled { content: Value::Object(data.clone()) },
            (None, text) if is_decline_answer(text) => Reply::Declined,
            (None, _) => Reply::Filled { content: fill_a2a_question_form(schema, &text) },
        }),
        QuestionKind::Visit { .. } if is_no_answer(&text) => Ok(Reply::Declined),
        QuestionKind::Visit { .. } => Ok(Reply::Filled { content: json!({}) }),
    }
}

/// What was answered, as parts of a message.
pub(super) fn a2a_question_answer_parts(answer: &Answer) -> Vec<A2aPart> {
    match &answer.reply {
        Reply::Chosen { choice, .. } => vec![A2aPart::text(choice.clone())],
        Reply::Filled { content } => match single_a2a_question_reply_text(content) {
            Some(text) => vec![A2aPart::text(text)],
            None => vec![A2aPart::data(content.clone())],
        },
        Reply::Rejected { reason: RejectReason::Said(why) } => vec![A2aPart::text(why.clone())],
        Reply::Rejected { reason: RejectReason::Unattended } => vec![A2aPart::text("reject_once")],
        Reply::Declined => vec![A2aPart::text("decline")],
        Reply::Cancelled | Reply::Interrupted | Reply::Superseded => Vec::new(),
    }
}

fn a2a_question_reply_text(message: &A2aMessage) -> String {
    let texts: Vec<&str> = message
        .parts
        .iter()
        .filter_map(|part| if let A2aPartContent::Text(text) = &part.content { Some(text.as_str()) } else { None })
        .collect();
    texts.join("\n")
}

fn a2a_question_reply_data(message: &A2aMessage) -> Option<&Map<String, Value>> {
    message
        .parts
        .iter()
        .find_map(|part| if let A2aPartContent::Data(data) = &part.content { data.as_object() } else { None })
}

/// Words fill a form that asks for one text; a form that asks for more takes them as JSON.
fn fill_a2a_question_form(schema: &Value, text: &str) -> Value {
    if let Ok(content @ Value::Object(_)) = serde_json::from_str(text) {
        return content;
    }
    let properties = schema.get("properties").and_then(Value::as_object);
    let required = schema.get("required").and_then(Value::as_array).and_then(|names| names.first()?.as_str());
    let name = required.or_else(|| properties.and_then(|properties| properties.keys().next().map(String::as_str)));
    json!({ name.unwrap_or("text"): text })
}

/// A form of one text is shown as that text.
fn single_a2a_question_reply_text(content: &Value) -> Option<&str> {
    let object = content.as_object().filter(|object| object.len() == 1)?;
    object.values().next()?.as_str()
}
