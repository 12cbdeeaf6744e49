//! Answers of functions as replies to questions.

use gander_domain::{Question, QuestionKind, Reply};
use serde_json::Value;

use super::refusal::AdkRefusal;
use crate::answer::{ChoiceAnswer, is_edited_plan, read_choice_answer};

/// What an answer means to a question. Some clients wrap it into a text.
pub fn read_adk_reply(question: &Question, response: &Value) -> Result<Reply, AdkRefusal> {
    let unwrapped = response.get("response").and_then(Value::as_str).and_then(|text| serde_json::from_str(text).ok());
    let response: &Value = unwrapped.as_ref().unwrap_or(response);
    let confirmed = response.get("confirmed").and_then(Value::as_bool);
    if let (Some(plan), Some(true)) = (changed_plan_in_adk_reply(question, response), confirmed) {
        return Ok(Reply::Filled { content: plan.clone() });
    }
    match &question.ask {
        // Only what was chosen is an answer: anything else leaves the question open.
        QuestionKind::Choose { .. } if confirmed.is_none() && !response["choice"].is_string() => {
            Err(AdkRefusal::new(400, "the answer is {\"confirmed\": true} or {\"confirmed\": false}"))
        }
        QuestionKind::Choose { choices } => {
            let named = response.get("choice").and_then(Value::as_str);
            let answer = match named {
                Some(id) => ChoiceAnswer::OptionId(id),
                None => ChoiceAnswer::Confirmed(confirmed == Some(true)),
            };
            match read_choice_answer(choices, answer) {
                Some(reply) => Ok(reply),
                // A flag says no also to a question that has no such choice.
                None if answer == ChoiceAnswer::Confirmed(false) => Ok(Reply::Declined),
                None => {
                    let ids: Vec<&str> = choices.iter().map(|choice| choice.id.as_str()).collect();
                    let message = format!("the question offers no such answer, choose one of: {}", ids.join(", "));
                    Err(AdkRefusal::new(400, message))
                }
            }
        }
        QuestionKind::Form { .. } | QuestionKind::Visit { .. } if confirmed == Some(false) => Ok(Reply::Declined),
        QuestionKind::Form { .. } | QuestionKind::Visit { .. } => {
            let content = response.get("payload").filter(|payload| !payload.is_null()).unwrap_or(response);
            Ok(Reply::Filled { content: content.clone() })
        }
    }
}

/// The plan that was sent back in place of a proposed one.
fn changed_plan_in_adk_reply<'a>(question: &Question, response: &'a Value) -> Option<&'a Value> {
    question.plan.as_ref()?;
    response.get("payload").filter(|payload| payload.as_object().is_some_and(is_edited_plan))
}
