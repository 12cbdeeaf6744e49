//! Members of a part that must be objects, and words in them that must be one of a few.

use serde_json::{Map, Value};

use super::key_case::{either_key_case_field, is_either_key_case};

/// Members of a part that are objects.
const OBJECT_MEMBERS: [&str; 6] =
    ["inlineData", "fileData", "functionCall", "functionResponse", "executableCode", "codeExecutionResult"];

/// Objects with a word that is one of a few: the member, the word, its values, and all that the object may hold.
const WORD_MEMBERS: [(&str, &str, &[&str], &[&str]); 2] = [
    ("executableCode", "language", &["LANGUAGE_UNSPECIFIED", "PYTHON"], &["code", "language", "id"]),
    (
        "codeExecutionResult",
        "outcome",
        &["OUTCOME_UNSPECIFIED", "OUTCOME_OK", "OUTCOME_FAILED", "OUTCOME_DEADLINE_EXCEEDED"],
        &["outcome", "output", "id"],
    ),
];

/// A member that cannot be what it is.
pub(super) struct WrongMember<'a> {
    pub(super) kind: &'static str,
    pub(super) path: Vec<&'a str>,
    pub(super) message: String,
    pub(super) found: &'a Value,
}

/// The first member of a part that cannot be what it is.
pub(super) fn check_adk_part_member(part: &Map<String, Value>) -> Option<WrongMember<'_>> {
    check_adk_part_object(part).or_else(|| WORD_MEMBERS.into_iter().find_map(|word| check_adk_part_word(part, word)))
}

fn check_adk_part_object(part: &Map<String, Value>) -> Option<WrongMember<'_>> {
    let named = OBJECT_MEMBERS.into_iter().filter_map(|name| Some((name, either_key_case_field(part, name)?)));
    let (name, found) = named.into_iter().find(|(_, value)| !value.is_object())?;
    let message = "Input should be a valid dictionary or object to extract fields from".to_owned();
    Some(WrongMember { kind: "model_attributes_type", path: vec![name], message, found })
}

fn check_adk_part_word<'a>(
    part: &'a Map<String, Value>,
    (name, word, values, members): (&'static str, &'static str, &[&str], &[&str]),
) -> Option<WrongMember<'a>> {
    let inner = either_key_case_field(part, name)?.as_object()?;
    if let Some((key, found)) =
        inner.iter().find(|(key, _)| !members.iter().any(|member| is_either_key_case(member, key)))
    {
        let message = "Extra inputs are not permitted".to_owned();
        return Some(WrongMember { kind: "extra_forbidden", path: vec![name, key], message, found });
    }
    let found = either_key_case_field(inner, word)?;
    // google-genai does not mind the case.
    if found.as_str().is_some_and(|said| values.iter().any(|value| value.eq_ignore_ascii_case(said))) {
        return None;
    }
    let quoted: Vec<String> = values.iter().map(|value| format!("'{value}'")).collect();
    let (last, first) = quoted.split_last()?;
    let message = format!("Input should be {} or {last}", first.join(", "));
    Some(WrongMember { kind: "enum", path: vec![name, word], message, found })
}
