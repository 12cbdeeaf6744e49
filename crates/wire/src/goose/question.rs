//! Actions of goose's clients as replies to questions.

use gander_domain::{ChoiceKind, Question, QuestionKind, Reply};

use crate::answer::{ChoiceAnswer, read_choice_answer};

/// The choice that an action means; what a question does not offer for good is chosen for once.
pub fn read_goose_action(question: &Question, action: &str) -> Option<Reply> {
    let kinds: &[ChoiceKind] = match action {
        "always_allow" => &[ChoiceKind::AllowAlways, ChoiceKind::AllowOnce],
        "allow_once" => &[ChoiceKind::AllowOnce],
        "deny_once" | "deny" => &[ChoiceKind::RejectOnce],
        "always_deny" => &[ChoiceKind::RejectAlways, ChoiceKind::RejectOnce],
        "cancel" => return Some(Reply::Cancelled),
        _ => return None,
    };
    match &question.ask {
        QuestionKind::Choose { choices } => read_choice_answer(choices, ChoiceAnswer::Kinds(kinds)),
        QuestionKind::Form { .. } | QuestionKind::Visit { .. } => Some(Reply::Declined),
    }
}
