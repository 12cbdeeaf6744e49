//! What a typed line means to a question.

use gander_client::schema::{PermissionOption, PermissionOptionKind};

/// What a line means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TypedAnswer {
    /// This option.
    Option(String),
    /// No, and why: the model is told.
    Reject { option: String, reason: String },
    /// "Always", and there are several: say which.
    WhichAlways,
    /// What can be typed here?
    Help,
    /// Show everything that does not fit on the screen.
    ShowAll,
    /// Nothing of that.
    Unclear,
}

/// Reads a line. What is not clearly a yes is never one: a few words are a no with its reason.
pub(crate) fn read_typed_answer(options: &[PermissionOption], line: &str) -> TypedAnswer {
    let line = line.trim();
    let lower = line.to_lowercase();
    if let Ok(number) = lower.parse::<usize>() {
        let option = number.checked_sub(1).and_then(|index| options.get(index));
        return option.map_or(TypedAnswer::Unclear, choose_answer);
    }
    match lower.as_str() {
        "" => TypedAnswer::Unclear,
        "?" | "help" => TypedAnswer::Help,
        "v" | "view" => TypedAnswer::ShowAll,
        "y" | "yes" => {
            answer_of_kind(options, PermissionOptionKind::AllowOnce).map_or(TypedAnswer::Unclear, choose_answer)
        }
        "n" | "no" => {
            answer_of_kind(options, PermissionOptionKind::RejectOnce).map_or(TypedAnswer::Unclear, choose_answer)
        }
        "a" | "always" => always_answer(options),
        _ => named_answer(options, &lower).unwrap_or_else(|| reason_answer(options, line)),
    }
}

/// The option that says no this once.
pub(crate) fn reject_once_answer(options: &[PermissionOption]) -> Option<&PermissionOption> {
    answer_of_kind(options, PermissionOptionKind::RejectOnce)
}

fn answer_of_kind(options: &[PermissionOption], kind: PermissionOptionKind) -> Option<&PermissionOption> {
    options.iter().find(|option| option.kind == kind)
}

fn choose_answer(option: &PermissionOption) -> TypedAnswer {
    TypedAnswer::Option(option.option_id.0.to_string())
}

fn always_answer(options: &[PermissionOption]) -> TypedAnswer {
    let mut always = options.iter().filter(|option| option.kind == PermissionOptionKind::AllowAlways);
    match (always.next(), always.next()) {
        (Some(option), None) => choose_answer(option),
        (Some(_), Some(_)) => TypedAnswer::WhichAlways,
        (None, _) => TypedAnswer::Unclear,
    }
}

/// The one option whose name begins like this. Of several, one that is called exactly so is meant.
fn named_answer(options: &[PermissionOption], line: &str) -> Option<TypedAnswer> {
    if let Some(exact) = options.iter().find(|option| option.name.to_lowercase() == line) {
        return Some(choose_answer(exact));
    }
    let mut fitting = options.iter().filter(|option| option.name.to_lowercase().starts_with(line));
    match (fitting.next()?, fitting.next()) {
        (option, None) => Some(choose_answer(option)),
        (_, Some(_)) => Some(TypedAnswer::Unclear),
    }
}

/// Several words that are no yes are a reason to say no. A single word is more likely a slip.
fn reason_answer(options: &[PermissionOption], line: &str) -> TypedAnswer {
    let mut words = line.split_whitespace();
    let first = words.next().unwrap_or_default().to_lowercase();
    let first = first.trim_matches(|c: char| c.is_ascii_punctuation());
    let Some(no) = reject_once_answer(options) else { return TypedAnswer::Unclear };
    let option = no.option_id.0.to_string();
    let rest = words.collect::<Vec<_>>().join(" ");
    match first {
        "y" | "yes" | "ok" | "okay" | "allow" | "a" | "always" | "sure" => TypedAnswer::Unclear,
        "n" | "no" if !rest.is_empty() => TypedAnswer::Reject { option, reason: rest },
        _ if rest.is_empty() => TypedAnswer::Unclear,
        _ => TypedAnswer::Reject { option, reason: line.to_owned() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options() -> Vec<PermissionOption> {
        vec![
            PermissionOption::new("a", "Allow", PermissionOptionKind::AllowOnce),
            PermissionOption::new("b", "Always allow `cargo test`", PermissionOptionKind::AllowAlways),
            PermissionOption::new("c", "Reject", PermissionOptionKind::RejectOnce),
            PermissionOption::new("d", "Never allow `cargo test`", PermissionOptionKind::RejectAlways),
        ]
    }

    #[test]
    fn letters_numbers_and_beginnings_choose() {
        let chosen = |line: &str| read_typed_answer(&options(), line);
        let option = |id: &str| TypedAnswer::Option(id.to_owned());
        for (line, id) in
            [("y", "a"), (" YES ", "a"), ("1", "a"), ("n", "c"), ("a", "b"), ("always", "b"), ("never", "d")]
        {
            assert_eq!(chosen(line), option(id), "{line}");
        }
        assert_eq!((chosen("allow"), chosen("rej"), chosen("4")), (option("a"), option("c"), option("d")));
        assert_eq!((chosen("?"), chosen("v")), (TypedAnswer::Help, TypedAnswer::ShowAll));
        for slip in ["", "0", "5", "-1", "yy", "yes please", "ok then", "x", "al"] {
            assert_eq!(chosen(slip), TypedAnswer::Unclear, "{slip}");
        }
    }

    #[test]
    fn words_are_a_no_with_its_reason() {
        let reject = |reason: &str| TypedAnswer::Reject { option: "c".to_owned(), reason: reason.to_owned() };
        assert_eq!(read_typed_answer(&options(), "use the venv instead"), reject("use the venv instead"));
        assert_eq!(read_typed_answer(&options(), "no, not on main"), reject("not on main"));
    }

    #[test]
    fn several_kinds_of_always_are_told_apart() {
        let mut options = options();
        options.push(PermissionOption::new("e", "Always allow cargo", PermissionOptionKind::AllowAlways));
        assert_eq!(read_typed_answer(&options, "a"), TypedAnswer::WhichAlways);
        assert_eq!(read_typed_answer(&options, "5"), TypedAnswer::Option("e".to_owned()));
    }
}
