//! Text that PostgreSQL takes: it has no NUL, which titles and names may hold.

use std::borrow::Cow;

/// NUL and the first two control characters become two characters each. The order of texts stays, and so does whether one
/// holds another.
const ESCAPE: char = '\u{1}';

/// A text as it is stored.
pub(crate) fn encode_postgres_text(text: &str) -> Cow<'_, str> {
    if !text.bytes().any(|byte| byte <= 2) {
        return Cow::Borrowed(text);
    }
    let mut encoded = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        match character {
            '\0'..='\u{2}' => encoded.extend([ESCAPE, char::from(character as u8 + 1)]),
            other => encoded.push(other),
        }
    }
    Cow::Owned(encoded)
}

/// A stored text as it was.
pub(crate) fn decode_postgres_text(text: String) -> String {
    if !text.contains(ESCAPE) {
        return text;
    }
    let mut decoded = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            ESCAPE => decoded.extend(characters.next().map(|code| char::from((code as u8).saturating_sub(1)))),
            other => decoded.push(other),
        }
    }
    decoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_comes_back_and_keeps_its_order() {
        let texts = ["", "\0", "\0\0", "\0a", "\u{1}", "\u{1}\0", "\u{2}", "\u{3}", "a", "a\0", "a\u{1}b", "ä\0🦆"];
        let encoded: Vec<_> = texts.iter().map(|text| encode_postgres_text(text).into_owned()).collect();
        assert!(encoded.iter().all(|text| !text.contains('\0')));
        assert!(encoded.is_sorted(), "{encoded:?}");
        let decoded: Vec<_> = encoded.into_iter().map(decode_postgres_text).collect();
        assert_eq!(decoded, texts);
    }
}
