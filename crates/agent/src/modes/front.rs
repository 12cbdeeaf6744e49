//! Front matter: `key: value` lines between two lines of three hyphens, a small and strict part of YAML.

use std::collections::BTreeMap;

/// What stands before the text of a file.
pub(super) struct Front<'a> {
    /// Values by key.
    pub values: BTreeMap<&'a str, Value>,
    /// The text behind it.
    pub body: &'a str,
}

/// One value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Value {
    /// Text.
    Text(String),
    /// Texts.
    List(Vec<String>),
}

/// Takes a file apart, or says what is wrong and in which line.
pub(super) fn split(text: &str) -> Result<Front<'_>, String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut rest = text;
    let mut lines = std::iter::from_fn(|| {
        let (line, after) = rest.split_once('\n').unwrap_or((rest, ""));
        let found = (!rest.is_empty()).then(|| (line.trim_end_matches('\r'), after));
        rest = after;
        found
    });
    if lines.next().is_none_or(|(line, _)| line.trim_end() != "---") {
        return Err("the first line must be ---".to_owned());
    }
    let mut values: BTreeMap<&str, Value> = BTreeMap::new();
    let mut last: Option<&str> = None;
    for (number, (line, after)) in (2..).zip(lines) {
        if line.trim_end() == "---" {
            return Ok(Front { values, body: after });
        }
        let wrong = |what: &str| Err(format!("line {number} {what}: {}", line.trim()));
        let plain = line.trim();
        if plain.is_empty() || plain.starts_with('#') {
            continue;
        }
        if let Some(item) = plain.strip_prefix("- ") {
            match last.and_then(|key| values.get_mut(key)) {
                Some(Value::List(items)) => items.push(scalar(item)),
                Some(Value::Text(_)) | None => return wrong("is an item of no list"),
            }
            continue;
        }
        let Some((key, value)) = line.split_once(':') else { return wrong("is no `key: value`") };
        if key.trim() != key || key.is_empty() {
            return wrong("is indented");
        }
        if values.insert(key, read(value.trim())).is_some() {
            return wrong("says it twice");
        }
        last = Some(key);
    }
    Err("the front matter has no end: a line of ---".to_owned())
}

fn read(value: &str) -> Value {
    if value.is_empty() {
        return Value::List(Vec::new());
    }
    match value.strip_prefix('[').and_then(|inner| inner.strip_suffix(']')) {
        Some(inner) => Value::List(inner.split(',').map(scalar).filter(|item| !item.is_empty()).collect()),
        None => Value::Text(scalar(value)),
    }
}

fn scalar(text: &str) -> String {
    let text = text.trim();
    let quoted = |mark: char| text.strip_prefix(mark).and_then(|inner| inner.strip_suffix(mark));
    quoted('"').or_else(|| quoted('\'')).unwrap_or(text).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_lists_and_the_text_behind() {
        let text = "---\r\n# why\ntitle: \"A: b\"\ntools: [look, 'run']\nwords:\n  - one\n- two\n---\nBody\n---\n";
        let Front { values, body } = split(text).expect("it is well formed");
        assert_eq!(values["title"], Value::Text("A: b".to_owned()));
        assert_eq!(values["tools"], Value::List(vec!["look".to_owned(), "run".to_owned()]));
        assert_eq!(values["words"], Value::List(vec!["one".to_owned(), "two".to_owned()]));
        assert_eq!(body, "Body\n---\n");
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        let wrong = |text: &str| split(text).err().unwrap_or_default();
        assert_eq!(wrong("title: x"), "the first line must be ---");
        assert_eq!(wrong("---\ntitle: x\n"), "the front matter has no end: a line of ---");
        assert_eq!(wrong("---\ntitle\n---\n"), "line 2 is no `key: value`: title");
        assert_eq!(wrong("---\na: b\n a: b\n---\n"), "line 3 is indented: a: b");
        assert_eq!(wrong("---\na: b\na: c\n---\n"), "line 3 says it twice: a: c");
        assert_eq!(wrong("---\na: b\n- c\n---\n"), "line 3 is an item of no list: - c");
    }
}
