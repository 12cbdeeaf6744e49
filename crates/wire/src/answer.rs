//! The one reader of answers: what counts as a yes, as a no, and as the choice of an option.
//!
//! Protocols differ in where an answer stands: in a text, a member of an object, a flag, a word of their own. They take it
//! from there. What it means to the question is decided here, so that no protocol takes for a yes what another refuses.

use gander_domain::{Choice, ChoiceKind, Reply};
use serde_json::{Map, Value};

/// Words that allow once. Nothing else is ever taken for a yes, and no plain word allows for good.
const YES_WORDS: [&str; 5] = ["yes", "y", "allow", "approve", "ok"];

/// Words that refuse once.
const NO_WORDS: [&str; 5] = ["no", "n", "reject", "deny", "decline"];

/// An answer to a question that offers choices, taken out of its protocol's form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChoiceAnswer<'a> {
    /// The id of an option, exactly. A program that sends another id is wrong, and is not guessed at.
    OptionId(&'a str),
    /// What a person may have typed: the id or the name of an option in any case, or a plain yes or no.
    Words(&'a str),
    /// A flag.
    Confirmed(bool),
    /// The first of these kinds that is offered.
    Kinds(&'a [ChoiceKind]),
}

/// The choice that an answer means, if it means one of those that are offered.
pub fn read_choice_answer(choices: &[Choice], answer: ChoiceAnswer<'_>) -> Option<Reply> {
    let of_kind = |kind: ChoiceKind| choices.iter().find(|choice| choice.kind == kind);
    let choice = match answer {
        ChoiceAnswer::OptionId(id) => choices.iter().find(|choice| choice.id == id),
        ChoiceAnswer::Words(words) => choice_in_words(choices, words.trim()),
        ChoiceAnswer::Confirmed(true) => of_kind(ChoiceKind::AllowOnce),
        ChoiceAnswer::Confirmed(false) => of_kind(ChoiceKind::RejectOnce),
        ChoiceAnswer::Kinds(kinds) => kinds.iter().find_map(|kind| of_kind(*kind)),
    }?;
    Some(Reply::Chosen { choice: choice.id.clone(), kind: choice.kind })
}

/// True if words are a plain no. A question that offers nothing but an address to visit is declined with one.
pub fn is_no_answer(words: &str) -> bool {
    is_one_of_answers(&NO_WORDS, words) || is_decline_answer(words)
}

/// True if words decline to fill in a form. A plain "no" does not: it may be what the form asks for.
pub fn is_decline_answer(words: &str) -> bool {
    is_one_of_answers(&["decline", "/decline"], words)
}

/// True if this is a plan that somebody changed, and approves by sending it back.
pub fn is_edited_plan(content: &Map<String, Value>) -> bool {
    content.contains_key("items") || content.contains_key("plan")
}

fn choice_in_words<'a>(choices: &'a [Choice], words: &str) -> Option<&'a Choice> {
    // An id or name that is written exactly so comes first: options may differ in case alone.
    let exact = choices.iter().find(|choice| choice.id == words);
    let any_case = |choice: &&Choice| choice.id.eq_ignore_ascii_case(words) || choice.name.eq_ignore_ascii_case(words);
    let plain = || {
        let yes = is_one_of_answers(&YES_WORDS, words).then_some(ChoiceKind::AllowOnce);
        let kind = yes.or(is_one_of_answers(&NO_WORDS, words).then_some(ChoiceKind::RejectOnce))?;
        choices.iter().find(|choice| choice.kind == kind)
    };
    exact.or_else(|| choices.iter().find(any_case)).or_else(plain)
}

fn is_one_of_answers(known: &[&str], words: &str) -> bool {
    known.iter().any(|word| word.eq_ignore_ascii_case(words.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choices() -> [Choice; 3] {
        let choice = |id: &str, name: &str, kind| Choice { id: id.to_owned(), name: name.to_owned(), kind };
        [
            choice("allow_once", "Allow", ChoiceKind::AllowOnce),
            choice("allow_always", "Always allow", ChoiceKind::AllowAlways),
            choice("reject_once", "Reject", ChoiceKind::RejectOnce),
        ]
    }

    fn chosen(answer: ChoiceAnswer<'_>) -> Option<ChoiceKind> {
        match read_choice_answer(&choices(), answer)? {
            Reply::Chosen { kind, .. } => Some(kind),
            Reply::Rejected { .. }
            | Reply::Filled { .. }
            | Reply::Declined
            | Reply::Cancelled
            | Reply::Interrupted
            | Reply::Superseded => None,
        }
    }

    #[test]
    fn words_choose_by_id_name_or_a_plain_yes_or_no_and_by_nothing_else() {
        for words in ["yes", " OK ", "approve", "Allow_Once", "ALLOW"] {
            assert_eq!(chosen(ChoiceAnswer::Words(words)), Some(ChoiceKind::AllowOnce), "{words}");
        }
        for words in ["no", "N", "deny", "decline", "reject_once"] {
            assert_eq!(chosen(ChoiceAnswer::Words(words)), Some(ChoiceKind::RejectOnce), "{words}");
        }
        assert_eq!(chosen(ChoiceAnswer::Words("always allow")), Some(ChoiceKind::AllowAlways));
        for words in ["", "yes please", "yess", "true", "1", "allow_forever"] {
            assert_eq!(chosen(ChoiceAnswer::Words(words)), None, "{words}");
        }
    }

    #[test]
    fn ids_are_exact_flags_mean_once_and_kinds_fall_back() {
        assert_eq!(chosen(ChoiceAnswer::OptionId("allow_once")), Some(ChoiceKind::AllowOnce));
        assert_eq!(chosen(ChoiceAnswer::OptionId("Allow_Once")), None);
        assert_eq!(chosen(ChoiceAnswer::OptionId("yes")), None);
        assert_eq!(chosen(ChoiceAnswer::Confirmed(true)), Some(ChoiceKind::AllowOnce));
        assert_eq!(chosen(ChoiceAnswer::Confirmed(false)), Some(ChoiceKind::RejectOnce));
        let for_good = [ChoiceKind::RejectAlways, ChoiceKind::RejectOnce];
        assert_eq!(chosen(ChoiceAnswer::Kinds(&for_good)), Some(ChoiceKind::RejectOnce));
    }

    #[test]
    fn a_form_is_declined_by_that_word_alone() {
        assert_eq!(["decline", "/Decline", " DECLINE"].map(is_decline_answer), [true; 3]);
        assert_eq!(["no", "declined", ""].map(is_decline_answer), [false; 3]);
        assert_eq!(["no", "deny", "/decline"].map(is_no_answer), [true; 3]);
    }
}
