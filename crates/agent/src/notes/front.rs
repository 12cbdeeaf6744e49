//! Front matter: YAML between two lines of dashes at the beginning of a Markdown file.

use serde::de::DeserializeOwned;

/// The front matter and the text after it, or what is wrong with it.
pub fn matter<T: DeserializeOwned>(text: &str) -> Result<(T, &str), String> {
    let text = text.trim_start_matches('\u{feff}');
    let (yaml, body) = split(text).ok_or("it does not begin with front matter between lines of ---")?;
    let front = serde_saphyr::from_str(yaml).map_err(|error| one_line(&error.to_string()))?;
    Ok((front, body))
}

fn split(text: &str) -> Option<(&str, &str)> {
    let rest = text.strip_prefix("---").map(|rest| rest.trim_start_matches([' ', '\t', '\r']))?.strip_prefix('\n')?;
    let mut at = 0;
    for line in rest.split_inclusive('\n') {
        if line.trim_end() == "---" {
            return Some((&rest[..at], &rest[at + line.len()..]));
        }
        at += line.len();
    }
    None
}

fn one_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn yaml_between_dashes() {
        let (front, body) = matter::<Value>("---\nname: tidy\ndescription: \"a: b\"\n---\n\n# Tidy\n---\n").unwrap();
        assert_eq!((front, body), (json!({"name": "tidy", "description": "a: b"}), "\n# Tidy\n---\n"));
        for bad in ["", "# Tidy", "---\nname: tidy\n", "--- name: x\n---\n", "---\n[\n---\n"] {
            assert!(matter::<Value>(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_text_that_grows_without_end_is_refused() {
        let mut bomb = "---\na: &a [x,x,x,x,x,x,x,x,x]\n".to_owned();
        for (next, last) in ('b'..='j').zip('a'..) {
            bomb.push_str(&format!("{next}: &{next} [{}]\n", vec![format!("*{last}"); 9].join(",")));
        }
        bomb.push_str("---\n");
        assert!(matter::<Value>(&bomb).is_err());
    }
}
