//! Front matter at the beginning of a Markdown file, between two lines of three hyphens.
//!
//! Agents and modes are written in a small and strict part of YAML ([`parse_strict_front_matter`]), so that a mistake is named with
//! its line. Skills come from elsewhere and are read as whole YAML ([`parse_yaml_front_matter`]).

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;

/// The front matter of a mode's file, and the text behind it.
pub(crate) struct FrontMatter<'a> {
    /// Values by key.
    pub values: BTreeMap<&'a str, FieldValue>,
    /// The text behind it.
    pub body: &'a str,
}

/// One value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FieldValue {
    /// Text.
    Text(String),
    /// Texts.
    List(Vec<String>),
}

/// The front matter as YAML and the text after it, or what is wrong with it.
pub fn parse_yaml_front_matter<T: DeserializeOwned>(text: &str) -> Result<(T, &str), String> {
    let (yaml, body) = split_front_matter(text)
        .and_then(|(yaml, body)| Some((yaml, body?)))
        .ok_or("it does not begin with front matter between lines of ---")?;
    let front = serde_saphyr::from_str(yaml).map_err(|error| first_line(&error.to_string()))?;
    Ok((front, body))
}

/// `key: value` lines and lists, or what is wrong and in which line.
pub(crate) fn parse_strict_front_matter(text: &str) -> Result<FrontMatter<'_>, String> {
    let (header, body) = split_front_matter(text).ok_or("the first line must be ---")?;
    let mut values: BTreeMap<&str, FieldValue> = BTreeMap::new();
    let mut last: Option<&str> = None;
    for (number, line) in (2..).zip(header.lines()) {
        let wrong = |what: &str| Err(format!("line {number} {what}: {}", line.trim()));
        let plain = line.trim();
        if plain.is_empty() || plain.starts_with('#') {
            continue;
        }
        if let Some(item) = plain.strip_prefix("- ") {
            match last.and_then(|key| values.get_mut(key)) {
                Some(FieldValue::List(items)) => items.push(parse_front_matter_scalar(item)),
                Some(FieldValue::Text(_)) | None => return wrong("is an item of no list"),
            }
            continue;
        }
        let Some((key, value)) = line.split_once(':') else { return wrong("is no `key: value`") };
        if key.trim() != key || key.is_empty() {
            return wrong("is indented");
        }
        if values.insert(key, parse_front_matter_value(value.trim())).is_some() {
            return wrong("says it twice");
        }
        last = Some(key);
    }
    let body = body.ok_or("the front matter has no end: a line of ---")?;
    Ok(FrontMatter { values, body })
}

/// What stands between the two lines of hyphens, and what follows the second; without a second line no body.
fn split_front_matter(text: &str) -> Option<(&str, Option<&str>)> {
    let text = text.trim_start_matches('\u{feff}');
    let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
    if first.trim_end() != "---" {
        return None;
    }
    let mut at = 0;
    for line in rest.split_inclusive('\n') {
        if line.trim_end() == "---" {
            return Some((&rest[..at], Some(&rest[at + line.len()..])));
        }
        at += line.len();
    }
    Some((rest, None))
}

fn parse_front_matter_value(value: &str) -> FieldValue {
    if value.is_empty() {
        return FieldValue::List(Vec::new());
    }
    match value.strip_prefix('[').and_then(|inner| inner.strip_suffix(']')) {
        Some(inner) => {
            FieldValue::List(inner.split(',').map(parse_front_matter_scalar).filter(|item| !item.is_empty()).collect())
        }
        None => FieldValue::Text(parse_front_matter_scalar(value)),
    }
}

fn parse_front_matter_scalar(text: &str) -> String {
    let text = text.trim();
    let quoted = |mark: char| text.strip_prefix(mark).and_then(|inner| inner.strip_suffix(mark));
    quoted('"').or_else(|| quoted('\'')).unwrap_or(text).to_owned()
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn values_lists_and_the_text_behind() {
        let text = "---\r\n# why\ntitle: \"A: b\"\ntools: [look, 'run']\nwords:\n  - one\n- two\n---\nBody\n---\n";
        let FrontMatter { values, body } = parse_strict_front_matter(text).expect("it is well formed");
        assert_eq!(values["title"], FieldValue::Text("A: b".to_owned()));
        assert_eq!(values["tools"], FieldValue::List(vec!["look".to_owned(), "run".to_owned()]));
        assert_eq!(values["words"], FieldValue::List(vec!["one".to_owned(), "two".to_owned()]));
        assert_eq!(body, "Body\n---\n");
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        let wrong = |text: &str| parse_strict_front_matter(text).err().unwrap_or_default();
        assert_eq!(wrong("title: x"), "the first line must be ---");
        assert_eq!(wrong("---\ntitle: x\n"), "the front matter has no end: a line of ---");
        assert_eq!(wrong("---\ntitle\n---\n"), "line 2 is no `key: value`: title");
        assert_eq!(wrong("---\na: b\n a: b\n---\n"), "line 3 is indented: a: b");
        assert_eq!(wrong("---\na: b\na: c\n---\n"), "line 3 says it twice: a: c");
        assert_eq!(wrong("---\na: b\n- c\n---\n"), "line 3 is an item of no list: - c");
    }

    #[test]
    fn yaml_between_dashes() {
        let (front, body) =
            parse_yaml_front_matter::<Value>("---\nname: tidy\ndescription: \"a: b\"\n---\n\n# Tidy\n---\n").unwrap();
        assert_eq!((front, body), (json!({"name": "tidy", "description": "a: b"}), "\n# Tidy\n---\n"));
        for bad in ["", "# Tidy", "---\nname: tidy\n", "--- name: x\n---\n", "---\n[\n---\n"] {
            assert!(parse_yaml_front_matter::<Value>(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_text_that_grows_without_end_is_refused() {
        let mut bomb = "---\na: &a [x,x,x,x,x,x,x,x,x]\n".to_owned();
        for (next, last) in ('b'..='j').zip('a'..) {
            bomb.push_str(&format!("{next}: &{next} [{}]\n", vec![format!("*{last}"); 9].join(",")));
        }
        bomb.push_str("---\n");
        assert!(parse_yaml_front_matter::<Value>(&bomb).is_err());
    }
}
