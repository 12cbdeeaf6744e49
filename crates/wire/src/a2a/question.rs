//! Questions as messages, and messages as answers.

use gander_domain::{Answer, Question, QuestionKind, RejectReason, Reply};
use serde_json::{Map, Value, json};

use super::error::A2aError;
use super::{Content, EXTENSION, Message, Part, TaskState};
use crate::answer::{ChoiceAnswer, is_decline, is_edited_plan, is_no, read_choice};
use crate::preview::question_with_preview;

/// The state of a task that asks this.
pub(super) fn question_task_state(question: &Question) -> TaskState {
    match question.ask {
        QuestionKind::Choose { .. } | QuestionKind::Form { .. } => TaskState::InputRequired,
        QuestionKind::Visit { .. } => TaskState::AuthRequired,
    }
}

/// The question in words.
pub(super) fn question_text(question: &Question) -> String {
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
pub(super) fn question_data(question: &Question) -> Value {
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
pub fn answered_question<'a>(open: &'a [Question], message: &Message) -> Option<&'a Question> {
    match question_id_in(message) {
        Some(id) => open.iter().find(|question| question.id.to_string() == id),
        None => open.iter().find(|question| !question.is_non_blocking()),
    }
}

/// The question that a message says it answers, if it says so.
pub fn question_id_in(message: &Message) -> Option<&str> {
    let metadata = message.metadata.as_ref().and_then(|metadata| metadata.get(EXTENSION)?.get("question")?.as_str());
    metadata.or_else(|| message_data(message).and_then(|data| data.get("question")?.as_str()))
}

/// True if a message says that it is a prompt and answers nothing.
pub fn declares_prompt(message: &Message) -> bool {
    let metadata = message.metadata.as_ref().and_then(|metadata| metadata.get(EXTENSION)?.get("prompt"));
    metadata == Some(&Value::Bool(true))
}

/// What a message answers to a question, or what it could have said.
pub fn read_reply(question: &Question, message: &Message) -> Result<Reply, A2aError> {
    let text = message_text(message);
    match &question.ask {
        QuestionKind::Choose { .. } if question.plan.is_some() && message_data(message).is_some_and(is_edited_plan) => {
            let content = message_data(message).cloned().unwrap_or_default();
            Ok(Reply::Filled { content: Value::Object(content) })
        }
        QuestionKind::Choose { choices } => {
            let data = message_data(message).and_then(|data| data.get("choice")?.as_str());
            let said = data.unwrap_or(text.trim());
            read_choice(choices, ChoiceAnswer::Words(said)).ok_or_else(|| {
                let ids: Vec<&str> = choices.iter().map(|choice| choice.id.as_str()).collect();
                A2aError::invalid_field("message.parts", format!("the task asks for one of: {}", ids.join(", ")))
            })
        }
        QuestionKind::Form { schema } => Ok(match (message_data(message), text.trim()) {
            (Some(data), _) => Reply::Filled { content: Value::Object(data.clone()) },
            (None, text) if is_decline(text) => Reply::Declined,
            (None, _) => Reply::Filled { content: fill_form(schema, &text) },
        }),
        QuestionKind::Visit { .. } if is_no(&text) => Ok(Reply::Declined),
        QuestionKind::Visit { .. } => Ok(Reply::Filled { content: json!({}) }),
    }
}

/// What was answered, as parts of a message.
pub(super) fn answer_parts(answer: &Answer) -> Vec<Part> {
    match &answer.reply {
        Reply::Chosen { choice, .. } => vec![Part::text(choice.clone())],
        Reply::Filled { content } => match single_text(content) {
            Some(text) => vec![Part::text(text)],
            None => vec![Part::data(content.clone())],
        },
        Reply::Rejected { reason: RejectReason::Said(why) } => vec![Part::text(why.clone())],
        Reply::Rejected { reason: RejectReason::Unattended } => vec![Part::text("reject_once")],
        Reply::Declined => vec![Part::text("decline")],
        Reply::Cancelled | Reply::Interrupted | Reply::Superseded => Vec::new(),
    }
}

fn message_text(message: &Message) -> String {
    let texts: Vec<&str> = message
        .parts
        .iter()
        .filter_map(|part| if let Content::Text(text) = &part.content { Some(text.as_str()) } else { None })
        .collect();
    texts.join("\n")
}

fn message_data(message: &Message) -> Option<&Map<String, Value>> {
    message.parts.iter().find_map(|part| if let Content::Data(data) = &part.content { data.as_object() } else { None })
}

/// Words fill a form that asks for one text; a form that asks for more takes them as JSON.
fn fill_form(schema: &Value, text: &str) -> Value {
    if let Ok(content @ Value::Object(_)) = serde_json::from_str(text) {
        return content;
    }
    let properties = schema.get("properties").and_then(Value::as_object);
    let required = schema.get("required").and_then(Value::as_array).and_then(|names| names.first()?.as_str());
    let name = required.or_else(|| properties.and_then(|properties| properties.keys().next().map(String::as_str)));
    json!({ name.unwrap_or("text"): text })
}

/// A form of one text is shown as that text.
fn single_text(content: &Value) -> Option<&str> {
    let object = content.as_object().filter(|object| object.len() == 1)?;
    object.values().next()?.as_str()
}
